//! Calls that wait until there is something to answer.

use super::*;
use alloc::boxed::Box;
use alloc::vec;
use bytes::Bytes;
use quorba_giop::{Body, Completion, ExceptionKind, FtRequest, Message, ReplyStatus, context};
use quorba_giop::{MinorCode, SystemException};
use quorba_replica::{LeaderRule, WaitRule};

const GROUP: GroupId = GroupId(0);
const ONE: ConnectionId = ConnectionId(1);
const TICK: Duration = Duration::from_millis(10);
/// An object whose calls are ordered, and one whose calls go past the order.
const ORDERED: &[u8] = b"o/1";
const PAST: &[u8] = b"u/1";

/// A gateway, and an event channel behind it.
struct Stand {
    gateway: Gateway,
    now: Instant,
    tickets: u64,
    /// Events that wait.
    events: u32,
    /// Nobody takes what goes past the order.
    is_cut_off: bool,
    /// What was named was ordered before.
    is_known: bool,
    /// What was called: `has`, `pull` past the order, or `ordered`.
    calls: Vec<&'static str>,
    /// What clients were told.
    told: Vec<(ConnectionId, Bytes)>,
    goodbyes: usize,
    /// After each step all figures are counted again, which takes long if there are many.
    counts: bool,
}

fn reply(status: ReplyStatus, value: Option<bool>) -> Bytes {
    let write = |out: &mut quorba_giop::cdr::Writer| {
        value.into_iter().for_each(|value| out.write_bool(value));
    };
    build::reply(Version::V1_2, Endian::Little, 0, status, write).bytes().clone()
}

fn nothing() -> Bytes {
    let (kind, code) = (ExceptionKind::Transient, MinorCode::NothingYet);
    let raised = SystemException::ours(kind, code, Completion::No);
    build::system_exception(Version::V1_2, Endian::Little, 0, &raised).bytes().clone()
}

fn pull(request_id: u32, object_key: &[u8], contexts: &[(u32, &[u8])]) -> Bytes {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key,
        operation: b"pull",
        contexts,
    };
    build::request(&head, |_| {}).bytes().clone()
}

impl Stand {
    fn new() -> Self {
        let mut settings = settings();
        let name = Bytes::from_static;
        settings.replica.reads.operations = vec![name(b"pull")];
        let waits = WaitRule {
            keys: vec![name(b"o/"), name(b"u/")],
            operation: name(b"pull"),
            question: name(b"has"),
        };
        let of_leader = LeaderRule { keys: name(b"u/"), waits: Some(waits) };
        settings.replica.reads.of_leader = Some(Box::new(of_leader));
        let limits = GatewayLimits { pending: 400, ..GatewayLimits::default() };
        let mut stand = Self {
            gateway: with_groups(limits, [(GROUP, settings)]),
            now: NOW,
            tickets: 0,
            events: 0,
            is_cut_off: false,
            is_known: false,
            calls: Vec::new(),
            told: Vec::new(),
            goodbyes: 0,
            counts: true,
        };
        stand.open(ONE);
        stand
    }

    fn open(&mut self, id: ConnectionId) {
        self.gateway.opened(self.now, id, GROUP, ClientPeer::at(Ipv4Addr::LOCALHOST.into()));
    }

    fn pull(&mut self, request_id: u32, object_key: &[u8]) {
        self.gateway.received(self.now, ONE, &pull(request_id, object_key, &[]));
        self.run();
    }

    /// An event is taken, if there is one.
    fn answer(&mut self) -> Bytes {
        if self.events == 0 {
            return nothing();
        }
        self.events -= 1;
        reply(ReplyStatus::NoException, None)
    }

    /// Everything that goes out is answered at once.
    fn run(&mut self) {
        loop {
            let mut is_quiet = true;
            let is_known = self.is_known;
            let ready = |_| Availability::Ready;
            while let Some(read) = self.gateway.next_read(ready, |_| true, |_| is_known) {
                is_quiet = false;
                let message = Message::from_bytes(read.giop).expect("a message");
                let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
                let asks = request.operation() == b"has";
                self.calls.push(if asks { "has" } else { "pull" });
                let giop = match asks {
                    _ if self.is_cut_off => None,
                    true => Some(reply(ReplyStatus::NoException, Some(self.events > 0))),
                    false => Some(self.answer()),
                };
                self.gateway.read(GROUP, read.number, giop, false);
            }
            while let Some(submission) =
                self.gateway.next_submission(|_| Availability::Ready, |_| Backlog::default())
            {
                is_quiet = false;
                self.calls.push("ordered");
                self.tickets += 1;
                self.gateway.submitted(&submission, Ticket(self.tickets));
                let reply = self.answer();
                self.gateway.replied(GROUP, submission.number, Some(reply), false);
                self.gateway.held(Ticket(self.tickets));
            }
            for output in self.gateway.out.drain(..) {
                let Output::ClientSend { connection, bytes } = output else { continue };
                let message = Message::from_bytes(bytes.clone()).expect("a message");
                match message.parse() {
                    Ok(Body::CloseConnection) => self.goodbyes += 1,
                    _ => self.told.push((connection, bytes)),
                }
            }
            if self.counts {
                let _agrees = self.gateway.holdings();
            }
            if is_quiet {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.gateway.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.gateway.handle_timeout(self.now, |_| Availability::Ready);
            self.run();
        }
        self.now = end;
        self.gateway.at(end);
    }

    /// What clients were told since: the ids of requests with an answer, and those with none yet.
    fn told(&mut self) -> (Vec<u32>, Vec<u32>) {
        let (mut answers, mut nothing) = (Vec::new(), Vec::new());
        for (_, bytes) in self.told.drain(..) {
            let message = Message::from_bytes(bytes).expect("a message");
            let Ok(Body::Reply(reply)) = message.parse() else { panic!("a reply") };
            match reply.system_exception() {
                None => answers.push(reply.request_id()),
                Some(raised) => {
                    let code = MinorCode::from_minor(raised.expect("it can be read").minor);
                    assert_eq!(code, Some(MinorCode::NothingYet));
                    nothing.push(reply.request_id());
                }
            }
        }
        (answers, nothing)
    }

    fn calls(&mut self, what: &str) -> usize {
        core::mem::take(&mut self.calls).into_iter().filter(|call| *call == what).count()
    }
}

#[test]
fn a_pull_is_held_until_an_event_is_there_and_no_longer() {
    for (key, tries) in [(PAST, "pull"), (ORDERED, "has")] {
        let mut stand = Stand::new();
        stand.pull(7, key);
        stand.pass(SECOND * 300);
        assert_eq!(stand.told(), (vec![], vec![]), "no limit of time ends it");
        let tried = stand.calls(tries);
        assert!((2_900..3_100).contains(&tried), "{tried} tries in 300 s");
        stand.events = 1;
        stand.pass(TICK * 11);
        assert_eq!((stand.told(), stand.events), ((vec![7], vec![]), 0));
        let left = stand.gateway.holdings().0;
        assert_eq!((stand.gateway.pending, left.connections[&ONE].calls), (0, 0));
    }
}

#[test]
fn only_the_first_pull_of_an_object_is_ordered_when_there_is_nothing() {
    let mut stand = Stand::new();
    stand.pull(1, ORDERED);
    stand.pass(SECOND);
    assert_eq!(stand.calls("ordered"), 1, "something may have been lost at another gateway");
    stand.events = 1;
    stand.pass(SECOND);
    assert_eq!(stand.calls("ordered"), 1);
    stand.pull(2, ORDERED);
    stand.pass(SECOND);
    assert_eq!(stand.calls("ordered"), 0);
    stand.events = 1;
    stand.pass(SECOND);
    assert_eq!((stand.told().0, stand.calls("ordered")), (vec![1, 2], 1));
}

#[test]
fn what_a_client_has_named_is_ordered_once_and_ends_with_its_expiration() {
    let mut stand = Stand::new();
    let named = |expiration_time| {
        let client_id = b"me".to_vec();
        let named = FtRequest { client_id, retention_id: 1, expiration_time };
        named.encode(Endian::Little)
    };
    // The time begins at 0; 100 ns each.
    let data = named(20_000_000);
    let contexts: &[(u32, &[u8])] = &[(context::FT_REQUEST, &data)];
    stand.gateway.received(NOW, ONE, &pull(1, ORDERED, contexts));
    stand.run();
    stand.pass(SECOND);
    assert_eq!((stand.calls("ordered"), stand.told()), (0, (vec![], vec![])));
    stand.pass(SECOND * 2);
    assert_eq!((stand.calls("ordered"), stand.told()), (1, (vec![], vec![1])));
    let data = named(90_000_000);
    let contexts: &[(u32, &[u8])] = &[(context::FT_REQUEST, &data)];
    stand.gateway.received(stand.now, ONE, &pull(2, ORDERED, contexts));
    stand.events = 1;
    stand.run();
    assert_eq!((stand.calls("ordered"), stand.told()), (1, (vec![2], vec![])));
}

#[test]
fn a_named_pull_that_was_ordered_for_another_gateway_is_answered_by_the_order() {
    let mut stand = Stand::new();
    let named = FtRequest { client_id: b"me".to_vec(), retention_id: 1, expiration_time: u64::MAX };
    let data = named.encode(Endian::Little);
    let contexts: &[(u32, &[u8])] = &[(context::FT_REQUEST, &data)];
    stand.gateway.received(NOW, ONE, &pull(1, ORDERED, contexts));
    stand.run();
    assert_eq!(stand.calls("ordered"), 0);
    // The order delivers it for the other gateway: its reply has what the question does not find.
    stand.is_known = true;
    stand.pass(SECOND);
    assert_eq!(stand.calls("ordered"), 1);
}

#[test]
fn a_pull_that_waits_for_long_is_ordered_now_and_then_though_nothing_is_there() {
    let mut stand = Stand::new();
    stand.pull(1, ORDERED);
    stand.pass(SECOND);
    stand.calls("");
    stand.pass(SECOND * 30);
    assert!((2..=3).contains(&stand.calls("ordered")), "what was lost elsewhere is not asked for");
    // And it is no different where nobody takes questions.
    stand.is_cut_off = true;
    stand.pass(SECOND * 90);
    assert_eq!(stand.told(), (vec![], vec![]));
}

/// Each member would answer it where it is ordered, and only the leader has the answer.
#[test]
fn a_question_of_a_client_is_refused_and_the_gateways_own_go_on() {
    let mut stand = Stand::new();
    stand.pull(1, ORDERED);
    let ask = |request_id, object_key, response_flags| {
        let (version, endian) = (Version::V1_2, Endian::Little);
        let (operation, contexts) = (b"has".as_slice(), [].as_slice());
        let head = RequestHead {
            version,
            endian,
            request_id,
            response_flags,
            object_key,
            operation,
            contexts,
        };
        build::request(&head, |_| {}).bytes().clone()
    };
    stand.calls("");
    for (id, key) in [(2, ORDERED), (3, PAST)] {
        let with_reply = ask(id, key, ResponseFlags::WithTarget);
        stand.gateway.received(stand.now, ONE, &with_reply);
        stand.gateway.received(stand.now, ONE, &ask(id + 10, key, ResponseFlags::None));
        stand.run();
        assert!(stand.calls.is_empty(), "nobody else is given it");
        let (_, bytes) = stand.told.pop().expect("it is told");
        let message = Message::from_bytes(bytes).expect("a message");
        let Ok(Body::Reply(reply)) = message.parse() else { panic!("a reply") };
        let raised = reply.system_exception().expect("refused").expect("it can be read");
        assert_eq!((reply.request_id(), raised.kind), (id, ExceptionKind::BadOperation));
        assert_eq!(raised.completed, Completion::No);
        assert!(stand.told.is_empty());
    }
    // Of other objects it is an operation like any other.
    stand.gateway.received(stand.now, ONE, &ask(4, b"x/1", ResponseFlags::WithTarget));
    stand.run();
    assert_eq!(stand.calls("ordered"), 1);
    stand.told.clear();
    stand.events = 1;
    stand.pass(SECOND);
    assert!(stand.calls("has") > 0);
    assert_eq!(stand.told().0, [1]);
}

#[test]
fn a_call_with_arguments_is_no_pull_that_is_held() {
    let mut stand = Stand::new();
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: 1,
        response_flags: ResponseFlags::WithTarget,
        object_key: PAST,
        operation: b"pull",
        contexts: &[],
    };
    let large = build::request(&head, |out| out.write_octets(&[0; 10]));
    stand.gateway.received(NOW, ONE, large.bytes());
    stand.run();
    assert_eq!(stand.told(), (vec![], vec![1]));
}

#[test]
fn who_has_gone_or_does_not_want_it_any_more_is_given_no_event() {
    for key in [PAST, ORDERED] {
        let cancel = build::cancel_request(Version::V1_2, Endian::Little, 1);
        let ways: [&dyn Fn(&mut Stand); 3] = [
            &|stand| stand.gateway.received(stand.now, ONE, cancel.bytes()),
            &|stand| stand.gateway.half_closed(stand.now, ONE),
            &|stand| stand.gateway.closed(ONE),
        ];
        for (way, ends) in ways.into_iter().enumerate() {
            let mut stand = Stand::new();
            stand.pull(1, key);
            stand.pass(SECOND);
            ends(&mut stand);
            stand.run();
            stand.events = 1;
            stand.pass(SECOND);
            assert_eq!((stand.events, stand.gateway.pending), (1, 0), "way {way}");
            assert_eq!(stand.told().0, []);
        }
    }
}

#[test]
fn a_thousand_pulls_are_tried_a_thousand_times_a_second_at_most_and_others_have_room() {
    let mut stand = Stand::new();
    stand.gateway.limits.pending = 4_096;
    stand.counts = false;
    for id in 2..22 {
        stand.open(ConnectionId(id));
        for request_id in 0..60 {
            stand.gateway.received(stand.now, ConnectionId(id), &pull(request_id, PAST, &[]));
        }
        stand.run();
    }
    assert_eq!(stand.told().1.len(), 1_200 - 768, "as many as may be held of one address");
    stand.pass(SECOND);
    stand.calls("");
    stand.pass(SECOND * 10);
    let tried = stand.calls("pull");
    assert!((9_000..=10_300).contains(&tried), "{tried} in 10 s");
    let _agrees = stand.gateway.holdings();
    stand.events = 768;
    stand.pass(SECOND * 2);
    assert_eq!(stand.told().0.len(), 768);
}

#[test]
fn a_question_that_nobody_takes_is_asked_again_and_the_call_ordered_in_the_end() {
    let mut stand = Stand::new();
    stand.pull(1, ORDERED);
    stand.is_cut_off = true;
    stand.calls("");
    stand.pass(SECOND);
    assert_eq!(stand.calls("ordered"), 0);
    stand.events = 1;
    stand.pass(SECOND * 3);
    assert_eq!((stand.calls("ordered"), stand.told().0), (1, vec![1]));
}

#[test]
fn a_node_that_stops_leaves_held_pulls_to_other_gateways() {
    let mut stand = Stand::new();
    stand.pull(1, PAST);
    stand.pull(2, ORDERED);
    stand.gateway.stop();
    stand.run();
    assert_eq!((stand.told(), stand.goodbyes), ((vec![], vec![]), 1));
    assert_eq!((stand.gateway.pending, stand.gateway.connections.len()), (0, 0));
}

// A node that was cut off heard that there is nothing, where the others gave the event away.
#[test]
fn that_there_is_nothing_counts_when_the_call_is_safe() {
    let mut stand = Stand::new();
    stand.gateway.received(NOW, ONE, &pull(1, ORDERED, &[]));
    let next = |stand: &mut Stand| {
        let next = stand.gateway.next_submission(|_| Availability::Ready, |_| Backlog::default());
        next.expect("it waits")
    };
    let first = next(&mut stand);
    stand.gateway.submitted(&first, Ticket(1));
    stand.gateway.replied(GROUP, first.number, Some(nothing()), false);
    stand.gateway.view_changed();
    stand.gateway.resubmit(None);
    let again = next(&mut stand);
    assert_eq!(again.number, first.number, "what was executed is known by its number");
    stand.gateway.submitted(&again, Ticket(2));
    let event = reply(ReplyStatus::NoException, None);
    stand.gateway.replied(GROUP, again.number, Some(event), false);
    stand.gateway.held(Ticket(2));
    stand.run();
    assert_eq!(stand.told().0, [1]);
}
