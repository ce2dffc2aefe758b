//! A gateway with an order and servers that do what a test says; after each step all figures are
//! counted again.

use super::*;
use crate::gateway::holdings::{Holdings, Remembered};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;
use quorba_giop::{Message, context};
use quorba_replica::{Attempt, CallKey, History, NestedCall};

/// A group whose calls are ordered; `read` changes nothing.
pub(super) const ACTIVE: GroupId = GroupId(0);
/// A group without an order.
pub(super) const STATELESS: GroupId = GroupId(1);
/// Who is there all the time, from another address.
pub(super) const BYSTANDER: ConnectionId = ConnectionId(0);
/// Who comes and goes.
pub(super) const ONE: ConnectionId = ConnectionId(1);
pub(super) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

pub(super) fn limits() -> GatewayLimits {
    GatewayLimits {
        connections_per_peer: 2,
        turned_away: 4,
        message_bytes: 2 << 20,
        buffered_bytes: 4 << 20,
        buffered_bytes_per_peer: 3 << 20,
        pending_per_connection: 4,
        idle: SECOND * 20,
        ..GatewayLimits::default()
    }
}

/// How servers have a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Order,
    Call,
}

pub(super) struct Stand {
    pub(super) gateway: Gateway,
    now: Instant,
    tickets: u64,
    /// What servers have, in the order in which they got it.
    with_servers: Vec<(GroupId, RequestNumber, By)>,
    calls: u32,
    /// Answers and refusals that went to anybody.
    pub(super) sent: usize,
    /// Whose connections the gateway has closed.
    pub(super) closed: Vec<(ConnectionId, CloseReason)>,
}

impl Stand {
    pub(super) fn new(limits: GatewayLimits) -> Self {
        let mut active = settings();
        active.replica.reads.operations = [Bytes::from_static(b"read")].into();
        let mut stateless = settings();
        stateless.replica.style = Style::Stateless;
        let groups = [(GroupId(0), active), (GroupId(1), stateless)];
        Self {
            gateway: with_groups(limits, groups),
            now: NOW,
            tickets: 0,
            with_servers: Vec::new(),
            calls: 0,
            sent: 0,
            closed: Vec::new(),
        }
    }

    /// What the driver and the replica take out of it; then all figures must agree.
    fn step(&mut self) {
        while self.gateway.next_ended_call().is_some() {}
        while self.gateway.next_given_up().is_some() {}
        for output in self.gateway.out.drain(..) {
            match output {
                Output::ClientSend { .. } => self.sent += 1,
                Output::ClientClose { connection, reason, .. } => {
                    self.closed.push((connection, reason));
                }
                _ => {}
            }
        }
        let _agrees = self.gateway.holdings();
    }

    pub(super) fn holdings(&self) -> (Holdings, Remembered) {
        self.gateway.holdings()
    }

    // -- connections ------------------------------------------------------------------------

    pub(super) fn open(&mut self, id: ConnectionId, group: GroupId, address: IpAddr) {
        self.gateway.opened(self.now, id, group, ClientPeer::at(address));
        self.step();
    }

    pub(super) fn open_by_server(&mut self, id: ConnectionId) {
        self.gateway.opened_by_server(self.now, id, (STATELESS, ACTIVE), ADDRESS);
        self.step();
    }

    pub(super) fn receive(&mut self, id: ConnectionId, bytes: &[u8]) {
        self.gateway.received(self.now, id, bytes);
        self.step();
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        self.gateway.closed(id);
        self.step();
    }

    pub(super) fn half_close(&mut self, id: ConnectionId) {
        self.gateway.half_closed(self.now, id);
        self.step();
    }

    pub(super) fn unsent(&mut self, id: ConnectionId, bytes: usize) {
        self.gateway.unsent(self.now, id, bytes);
        self.step();
    }

    // -- the order and the servers ----------------------------------------------------------

    /// All that may go into the order, or to servers past it, goes.
    pub(super) fn submit(&mut self) {
        self.name_calls();
        while let Some(submission) =
            self.gateway.next_submission(|_| Availability::Ready, |_| Backlog::default())
        {
            let Submission { group, number, .. } = submission;
            if group == STATELESS && !self.gateway.is_to_be_ordered(&submission) {
                self.gateway.called(&submission);
                self.with_servers.push((group, number, By::Call));
            } else {
                self.tickets += 1;
                self.gateway.submitted(&submission, Ticket(self.tickets));
                self.with_servers.push((group, number, By::Order));
            }
            self.step();
        }
        while let Some(read) = self.gateway.next_read(|_| Availability::Ready, |_| true, |_| false)
        {
            self.with_servers.push((read.group, read.number, By::Call));
            self.step();
        }
    }

    pub(super) fn name_calls(&mut self) {
        while let Some(call) = self.gateway.next_call() {
            self.calls += 1;
            let key = CallKey { caller: call.caller, during: History::EMPTY, number: self.calls };
            let name = NestedCall { key, attempt: Attempt(1), digest: 0 };
            self.gateway.take_call(self.now, call, name);
            self.step();
        }
    }

    /// The order has no room for the next one.
    pub(super) fn submit_in_vain(&mut self) {
        let next = self.gateway.next_submission(|_| Availability::Ready, |_| Backlog::default());
        self.gateway.put_back(next.expect("something waits"));
        self.step();
    }

    pub(super) fn hold(&mut self) {
        self.gateway.held(Ticket(self.tickets));
        self.step();
    }

    /// Servers execute what they have; but for the bystander's, whose server is slow.
    pub(super) fn execute(&mut self) {
        self.execute_with(|_| Some(skipped()));
    }

    /// What comes of requests with servers is what `reply` says.
    pub(super) fn execute_with(&mut self, reply: impl Fn(RequestNumber) -> Option<Bytes>) {
        let waits_for_it = |gateway: &Gateway, group: GroupId, number| {
            let found = gateway.groups[group].book.get(number);
            found.is_some_and(|request| request.connection == BYSTANDER)
        };
        let (holdings, executed): (Vec<_>, Vec<_>) = core::mem::take(&mut self.with_servers)
            .into_iter()
            .partition(|(group, number, _)| waits_for_it(&self.gateway, *group, *number));
        self.with_servers = holdings;
        for (group, number, by) in executed {
            let found = self.gateway.groups[group].book.get(number);
            let oneway = found.is_some_and(|request| request.is_oneway());
            let reply = reply(number).filter(|_| !oneway);
            match by {
                By::Order => self.gateway.replied(group, number, reply, false),
                By::Call => self.gateway.read(group, number, reply, false),
            }
            self.step();
        }
    }

    /// What was ordered was delivered while nobody was in; the rest is given back.
    pub(super) fn drop_all(&mut self) {
        for (group, number, by) in core::mem::take(&mut self.with_servers) {
            match by {
                By::Order => self.gateway.dropped(self.now, group, number),
                By::Call => self.gateway.read(group, number, None, false),
            }
            self.step();
        }
    }

    /// What waits runs its course.
    pub(super) fn settle(&mut self) {
        for _ in 0..8 {
            self.submit();
            self.hold();
            self.execute();
        }
    }

    /// Time passes; `available`: what groups can take meanwhile.
    pub(super) fn pass(&mut self, time: Duration, available: Availability) {
        let end = self.now + time;
        while let Some(at) = self.gateway.poll_timeout().filter(|at| *at <= end) {
            // As a driver does, that wakes up a little late.
            self.now = self.now.max(at) + Duration::from_millis(1);
            self.gateway.handle_timeout(self.now, |_| available);
            self.step();
        }
        self.now = self.now.max(end);
        self.gateway.at(self.now);
    }

    pub(super) fn stop(&mut self) {
        self.gateway.stop();
        self.step();
    }

    pub(super) fn change_view(&mut self) {
        self.gateway.view_changed();
        self.gateway.resubmit(None);
        // Reads are the replica's business.
        self.with_servers.retain(|(group, _, by)| *group == ACTIVE && *by == By::Call);
        self.step();
    }
}

// -- what clients say -----------------------------------------------------------------------

pub(super) fn call(request_id: u32) -> Bytes {
    long_call(request_id, 0)
}

pub(super) fn long_call(request_id: u32, bytes: usize) -> Bytes {
    request(request_id, b"echo", ResponseFlags::WithTarget, &[], bytes)
}

pub(super) fn read(request_id: u32) -> Bytes {
    request(request_id, b"read", ResponseFlags::WithTarget, &[], 0)
}

pub(super) fn oneway(request_id: u32) -> Bytes {
    request(request_id, b"echo", ResponseFlags::None, &[], 0)
}

/// It offers to be called over its own connection.
pub(super) fn bidirectional(request_id: u32) -> Bytes {
    let contexts: &[(u32, &[u8])] = &[(context::BI_DIR_IIOP, &[1, 0, 0, 0, 0, 0, 0, 0])];
    request(request_id, b"echo", ResponseFlags::WithTarget, contexts, 0)
}

/// The same in two messages: all, to be continued, and the end.
pub(super) fn fragmented(request_id: u32) -> [Bytes; 2] {
    let mut first = long_call(request_id, 64).to_vec();
    first[6] |= 2;
    let mut last = first[..8].to_vec();
    (last[6], last[7]) = (first[6] & !2, 7);
    last.extend(12_u32.to_le_bytes());
    last.extend(request_id.to_le_bytes());
    last.extend([0; 8]);
    [first.into(), last.into()]
}

fn request(
    request_id: u32,
    operation: &[u8],
    response_flags: ResponseFlags,
    contexts: &[(u32, &[u8])],
    bytes: usize,
) -> Bytes {
    let (version, endian) = (Version::V1_2, Endian::Little);
    let object_key = b"echo";
    let head = RequestHead {
        version,
        endian,
        request_id,
        response_flags,
        object_key,
        operation,
        contexts,
    };
    build::request(&head, |body| body.write_raw(&alloc::vec![0; bytes])).bytes().clone()
}

pub(super) fn said(message: &Message) -> Bytes {
    message.bytes().clone()
}
