//! Reads of clients that repeat what they were not answered in time.

use super::*;
use alloc::collections::VecDeque;
use bytes::Bytes;
use quorba_giop::ReplyStatus;

const GROUP: GroupId = GroupId(0);
const TICK: Duration = Duration::from_millis(10);
/// Each client is told after this time that it was not answered.
const PATIENCE: Duration = Duration::from_millis(500);
const CLIENTS: usize = 64;

/// A gateway whose clients always wait for a read each, and the member that serves them.
struct Stand {
    gateway: Gateway,
    now: Instant,
    calls: u32,
    /// With the member: when each was given to it.
    given: VecDeque<(Instant, RequestNumber)>,
    most_given: usize,
}

impl Stand {
    fn new() -> Self {
        let mut settings = settings();
        settings.replica.reads.operations = alloc::vec![Bytes::from_static(b"echo")];
        let limits = GatewayLimits { request: PATIENCE, ..GatewayLimits::default() };
        let mut gateway = with_groups(limits, [(GROUP, settings)]);
        let peer = ClientPeer::at(Ipv4Addr::LOCALHOST.into());
        gateway.opened(NOW, ConnectionId(0), GROUP, peer);
        Self { gateway, now: NOW, calls: 0, given: VecDeque::new(), most_given: 0 }
    }

    /// Time goes on, clients call again, and the member is given what the gateway has for it.
    fn tick(&mut self) {
        self.now = self.now + TICK;
        self.gateway.handle_timeout(self.now, |_| Availability::Ready);
        while self.gateway.groups[GROUP].book.len() < CLIENTS {
            self.calls += 1;
            let head = RequestHead {
                version: Version::V1_2,
                endian: Endian::Little,
                request_id: self.calls,
                response_flags: ResponseFlags::WithTarget,
                object_key: b"echo",
                operation: b"echo",
                contexts: &[],
            };
            let message = build::request(&head, |_| {});
            self.gateway.received(self.now, ConnectionId(0), message.bytes());
        }
        while let Some(read) = self.gateway.next_read(|_| Availability::Ready, |_| true, |_| false)
        {
            self.given.push_back((self.now, read.number));
        }
        self.most_given = self.most_given.max(self.given.len());
        self.gateway.out.clear();
    }

    /// The member has answered the first that it was given.
    fn answer(&mut self) {
        let Some((_, number)) = self.given.pop_front() else { return };
        let ok = ReplyStatus::NoException;
        let reply = build::reply(Version::V1_2, Endian::Little, 0, ok, |_| {});
        self.gateway.read(GROUP, number, Some(reply.bytes().clone()), false);
    }

    fn answered(&self) -> u64 {
        self.gateway.groups[GROUP].counters.reads
    }
}

// Members had thousands of reads that nobody waited for any more (seeds 7086 of the simulator's
// `groups` and 1917 of `backups`).
#[test]
fn a_slow_member_serves_reads_that_somebody_waits_for() {
    let mut stand = Stand::new();
    for tick in 1..=3_000 {
        stand.tick();
        if tick % 30 == 0 {
            stand.answer();
        }
    }
    assert!(stand.most_given <= 10, "{} at the member", stand.most_given);
    assert!(stand.answered() >= 50, "{} of 100 in time", stand.answered());
    // It counts again what there is.
    let _ = stand.gateway.holdings();
}

// The replies of a durable group come when disks have the mark, for all reads at once (seed 208 of
// the simulator's `groups`).
#[test]
fn reads_wait_for_the_disks_together() {
    let mut stand = Stand::new();
    for _ in 0..3_000 {
        stand.tick();
        let is_due = |(at, _): &(Instant, RequestNumber)| stand.now.since(*at) >= PATIENCE * 3 / 4;
        let due = stand.given.iter().filter(|given| is_due(given)).count();
        (0..due).for_each(|_| stand.answer());
    }
    let most = 30_000 / 375 * CLIENTS as u64;
    assert!(stand.answered() >= most / 2, "{} of {most}", stand.answered());
}

#[test]
fn a_read_that_was_given_back_after_its_client_gave_it_up_takes_no_room() {
    let mut stand = Stand::new();
    for _ in 0..100 {
        stand.tick();
    }
    assert!(stand.given.len() > 1, "some were given, and then given up");
    for (_, number) in core::mem::take(&mut stand.given) {
        stand.gateway.read(GROUP, number, None, false);
    }
    stand.gateway.closed(ConnectionId(0));
    assert_eq!(stand.gateway.groups[GROUP].read_window.holdings(), (0, 0, 0));
}

#[test]
fn a_named_read_that_ended_two_processes_is_tried_no_more_however_short_its_client_waits() {
    let mut stand = Stand::new();
    let name = quorba_giop::FtRequest {
        client_id: b"me".to_vec(),
        retention_id: 1,
        expiration_time: u64::MAX,
    };
    let name = name.encode(Endian::Little);
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: 1,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"echo",
        operation: b"echo",
        contexts: &[(quorba_giop::context::FT_REQUEST, &name)],
    };
    let message = build::request(&head, |_| {});
    let mut given = |client: u64| {
        let (id, peer) = (ConnectionId(client), ClientPeer::at(Ipv4Addr::LOCALHOST.into()));
        stand.gateway.opened(NOW, id, GROUP, peer);
        stand.gateway.received(NOW, id, message.bytes());
        let next = stand.gateway.next_read(|_| Availability::Ready, |_| true, |_| false);
        let answers = stand.gateway.out.drain(..);
        let told = answers.filter(|output| matches!(output, Output::ClientSend { .. })).count();
        stand.gateway.closed(id);
        if let Some(read) = &next {
            stand.gateway.read(GROUP, read.number, None, true);
        }
        let _agrees = stand.gateway.holdings();
        (next.is_some(), told)
    };
    assert_eq!([1, 2, 3].map(&mut given), [(true, 0), (true, 0), (false, 1)]);
}
