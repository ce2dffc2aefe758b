//! Ways in which connections end that are no business of anybody else.

use super::stand::*;
use super::*;

/// When all is as if the connection had not been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Back {
    /// At once.
    AtOnce,
    /// When servers have executed what they were given.
    Executed,
}
use Back::{AtOnce, Executed};

/// What happens.
pub(super) type Story = fn(&mut Stand);

/// Its name, when all is back, and what happens.
pub(super) type StoryOfOne = (&'static str, Back, Story);

pub(super) fn begin(stand: &mut Stand) {
    stand.open(ONE, ACTIVE, ADDRESS);
}

pub(super) fn ask(stand: &mut Stand, group: GroupId, said: &[&[u8]]) {
    stand.open(ONE, group, ADDRESS);
    said.iter().for_each(|bytes| stand.receive(ONE, bytes));
}

pub(super) fn was_closed(stand: &Stand, id: u64, reason: CloseReason) {
    assert!(stand.closed.contains(&(ConnectionId(id), reason)), "{:?}", stand.closed);
}

pub(super) const GOES: &[StoryOfOne] = &[
    ("it said nothing", AtOnce, |stand| {
        begin(stand);
        stand.close(ONE);
    }),
    ("in the middle of a message", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&long_call(1, 1000)[..500]]);
        stand.close(ONE);
    }),
    ("in the middle of a fragmented message", AtOnce, |stand| {
        let [first, last] = fragmented(1);
        ask(stand, ACTIVE, &[&first, &last[..10]]);
        stand.close(ONE);
    }),
    ("in the middle of a message that is too large", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&long_call(1, 3 << 20)[..1 << 20]]);
        stand.close(ONE);
    }),
    ("it is the one of its address that is read on", AtOnce, |stand| {
        for id in [ONE, ConnectionId(2)] {
            stand.open(id, ACTIVE, ADDRESS);
            stand.receive(id, &long_call(1, (2 << 20) - 1000)[..1900 << 10]);
        }
        assert_eq!(stand.holdings().0.peers[&ADDRESS].leader, Some(ConnectionId(2)));
        stand.close(ConnectionId(2));
        stand.close(ONE);
    }),
    ("its calls were not submitted", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &call(2), &read(3)]);
        stand.close(ONE);
    }),
    ("its fragmented call is whole", AtOnce, |stand| {
        let [first, last] = fragmented(1);
        ask(stand, ACTIVE, &[&first, &last]);
        stand.close(ONE);
    }),
    ("the order had no room", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &call(2)]);
        stand.submit_in_vain();
        stand.close(ONE);
    }),
    ("it has more calls than it may", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &call(2), &call(3), &call(4), &call(5), &call(6)]);
        stand.close(ONE);
    }),
    ("its calls were submitted", Executed, |stand| {
        ask(stand, ACTIVE, &[&call(1), &call(2)]);
        stand.submit();
        stand.close(ONE);
    }),
    ("its calls were safe", Executed, |stand| {
        ask(stand, ACTIVE, &[&call(1), &call(2)]);
        stand.submit();
        stand.hold();
        stand.close(ONE);
    }),
    ("its call was executed, and is not safe", Executed, |stand| {
        ask(stand, ACTIVE, &[&call(1)]);
        stand.submit();
        stand.execute();
        stand.close(ONE);
    }),
    ("it was answered", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &read(2)]);
        stand.settle();
        assert_eq!(stand.sent, 2);
        stand.close(ONE);
    }),
    ("a oneway waits", Executed, |stand| {
        ask(stand, ACTIVE, &[&oneway(1)]);
        stand.close(ONE);
    }),
    ("a oneway was submitted", Executed, |stand| {
        ask(stand, ACTIVE, &[&oneway(1)]);
        stand.submit();
        stand.close(ONE);
    }),
    ("a oneway was executed", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&oneway(1)]);
        stand.settle();
        stand.close(ONE);
    }),
    ("it offered to be called", Executed, |stand| {
        ask(stand, ACTIVE, &[&bidirectional(1)]);
        stand.submit();
        stand.close(ONE);
    }),
];

pub(super) const PAST_THE_ORDER: &[StoryOfOne] = &[
    ("a read waits", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&read(1)]);
        stand.close(ONE);
    }),
    ("a read is away", Executed, |stand| {
        ask(stand, ACTIVE, &[&read(1)]);
        stand.submit();
        stand.close(ONE);
    }),
    ("a read is given back, and then ordered", Executed, |stand| {
        ask(stand, ACTIVE, &[&read(1)]);
        stand.submit();
        stand.execute_with(|_| None);
        stand.submit();
        stand.close(ONE);
    }),
    ("a read is given back", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&read(1)]);
        stand.submit();
        stand.execute_with(|_| None);
        stand.close(ONE);
    }),
    ("a read ends processes, and is with another one", Executed, |stand| {
        ask(stand, ACTIVE, &[&read(1)]);
        stand.submit();
        stand.gateway.read_ended(ACTIVE, RequestNumber(2));
        stand.gateway.read_ended(ACTIVE, RequestNumber(2));
        stand.close(ONE);
    }),
    ("a stateless call waits", AtOnce, |stand| {
        ask(stand, STATELESS, &[&call(1)]);
        stand.close(ONE);
    }),
    ("a stateless call is away", Executed, |stand| {
        ask(stand, STATELESS, &[&call(1), &call(2)]);
        stand.submit();
        stand.close(ONE);
    }),
    ("a stateless call is given back, and goes through the order", Executed, |stand| {
        ask(stand, STATELESS, &[&call(1)]);
        stand.submit();
        stand.execute_with(|_| None);
        stand.submit();
        stand.close(ONE);
    }),
    ("a read is given back when nobody waits for it any more", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&read(1)]);
        stand.submit();
        stand.close(ONE);
        stand.execute_with(|_| None);
    }),
    ("a stateless call is given back when nobody waits for it any more", AtOnce, |stand| {
        ask(stand, STATELESS, &[&call(1), &call(2)]);
        stand.submit();
        stand.close(ONE);
        stand.execute_with(|_| None);
    }),
    ("a stateless oneway is away", Executed, |stand| {
        ask(stand, STATELESS, &[&oneway(1)]);
        stand.submit();
        stand.close(ONE);
    }),
    ("a stateless oneway is executed", AtOnce, |stand| {
        ask(stand, STATELESS, &[&oneway(1)]);
        stand.settle();
        stand.close(ONE);
    }),
];

pub(super) const LEAVES_REPLIES: &[StoryOfOne] = &[
    ("a reply is not taken", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1)]);
        stand.settle();
        stand.unsent(ONE, 100_000);
        stand.unsent(ONE, 50_000);
        stand.close(ONE);
    }),
    ("so much is not taken that its calls are set aside", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &read(2)]);
        stand.unsent(ONE, (1 << 20) + 1);
        stand.submit();
        stand.close(ONE);
    }),
    ("a oneway was set aside", Executed, |stand| {
        ask(stand, ACTIVE, &[&oneway(1)]);
        stand.unsent(ONE, (1 << 20) + 1);
        stand.submit();
        stand.close(ONE);
    }),
    ("it takes them, and its calls have their turn", Executed, |stand| {
        ask(stand, ACTIVE, &[&call(1)]);
        stand.unsent(ONE, (1 << 20) + 1);
        stand.submit();
        stand.unsent(ONE, 0);
        stand.submit();
        stand.close(ONE);
    }),
    ("its address leaves more than it may", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&long_call(1, 100)]);
        stand.unsent(ONE, 65 << 20);
        was_closed(stand, 1, CloseReason::OverBudget);
    }),
    ("its call is refused, for the node holds too much", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&long_call(1, 1000)]);
        stand.open(ConnectionId(2), ACTIVE, ADDRESS);
        stand.unsent(ConnectionId(2), 5 << 20);
        was_closed(stand, 2, CloseReason::OverBudget);
        assert_eq!(stand.sent, 1, "the call");
        stand.close(ONE);
    }),
    ("it ends its sending, and then has its reply", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1)]);
        stand.half_close(ONE);
        stand.settle();
        was_closed(stand, 1, CloseReason::ByClient);
    }),
    ("it ends its sending in the middle of a message", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&long_call(1, 1000)[..500]]);
        stand.half_close(ONE);
        was_closed(stand, 1, CloseReason::ByClient);
    }),
];

pub(super) const SAYS_SOMETHING_ELSE: &[StoryOfOne] = &[
    ("CancelRequest of what waits", Executed, |stand| {
        let cancel = build::cancel_request(Version::V1_2, Endian::Little, 1);
        ask(stand, ACTIVE, &[&call(1), &said(&cancel)]);
        stand.close(ONE);
    }),
    ("CancelRequest of what was submitted", Executed, |stand| {
        ask(stand, ACTIVE, &[&call(1)]);
        stand.submit();
        stand.receive(ONE, build::cancel_request(Version::V1_2, Endian::Little, 1).bytes());
        stand.close(ONE);
    }),
    ("CancelRequest, and the call is executed", AtOnce, |stand| {
        let cancel = build::cancel_request(Version::V1_2, Endian::Little, 1);
        ask(stand, ACTIVE, &[&call(1), &said(&cancel)]);
        stand.settle();
        assert_eq!(stand.sent, 0);
        stand.close(ONE);
    }),
    ("LocateRequest", AtOnce, |stand| {
        let locate = build::locate_request(Version::V1_2, Endian::Little, 1, b"echo");
        ask(stand, ACTIVE, &[&said(&locate)]);
        stand.close(ONE);
    }),
    ("what is no GIOP", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), b"GET / HTTP/1.1\r\n\r\n"]);
        was_closed(stand, 1, CloseReason::Malformed);
    }),
    ("what is no GIOP, behind a call that was submitted", Executed, |stand| {
        ask(stand, ACTIVE, &[&call(1)]);
        stand.submit();
        stand.receive(ONE, b"GET / HTTP/1.1\r\n\r\n");
        was_closed(stand, 1, CloseReason::Malformed);
    }),
    ("one id for two calls", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &call(1)]);
        was_closed(stand, 1, CloseReason::Malformed);
    }),
    ("MessageError", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &said(&build::message_error(Version::V1_2))]);
        was_closed(stand, 1, CloseReason::Malformed);
    }),
    ("CloseConnection", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&call(1), &said(&build::close_connection(Version::V1_2))]);
        was_closed(stand, 1, CloseReason::ByClient);
    }),
    ("CloseConnection, with more behind it", AtOnce, |stand| {
        let close = said(&build::close_connection(Version::V1_2));
        ask(stand, ACTIVE, &[&[&close[..], &call(1)[..20]].concat()]);
        was_closed(stand, 1, CloseReason::ByClient);
    }),
    ("a call that no order carries", AtOnce, |stand| {
        ask(stand, ACTIVE, &[&long_call(1, 3 << 19)]);
        assert_eq!(stand.sent, 1);
        stand.close(ONE);
    }),
];

/// But for the bystander: nobody else will ask for what the order still has.
fn nobody_waits(stand: &Stand) {
    assert_eq!(stand.holdings().0.groups[GroupId(0)].book.len(), 1);
}

/// Two connections are allowed.
fn all_close(stand: &mut Stand, last: u64) {
    (1..=last).for_each(|id| stand.close(ConnectionId(id)));
}

pub(super) const TURNED_AWAY: &[StoryOfOne] = &[
    ("it goes without a word", AtOnce, |stand| {
        (1..=3).for_each(|id| stand.open(ConnectionId(id), ACTIVE, ADDRESS));
        all_close(stand, 3);
    }),
    ("it goes in the middle of a message", AtOnce, |stand| {
        (1..=3).for_each(|id| stand.open(ConnectionId(id), ACTIVE, ADDRESS));
        stand.receive(ConnectionId(3), &call(1)[..20]);
        all_close(stand, 3);
    }),
    ("it is told so", AtOnce, |stand| {
        (1..=3).for_each(|id| stand.open(ConnectionId(id), ACTIVE, ADDRESS));
        stand.receive(ConnectionId(3), &call(1));
        was_closed(stand, 3, CloseReason::TooMany);
        all_close(stand, 2);
    }),
    ("it is told so, and goes last", AtOnce, |stand| {
        (1..=3).for_each(|id| stand.open(ConnectionId(id), ACTIVE, ADDRESS));
        all_close(stand, 2);
        stand.receive(ConnectionId(3), &call(1));
        was_closed(stand, 3, CloseReason::TooMany);
    }),
    ("there are too many to tell", AtOnce, |stand| {
        (1..=9).for_each(|id| stand.open(ConnectionId(id), ACTIVE, ADDRESS));
        assert_eq!(stand.closed.len(), 3);
        all_close(stand, 9);
    }),
];

pub(super) const SERVERS: &[StoryOfOne] = &[
    ("it goes before its call has a name", Executed, |stand| {
        stand.open_by_server(ONE);
        stand.receive(ONE, &call(1));
        stand.close(ONE);
    }),
    ("it goes before its call is submitted", Executed, |stand| {
        stand.open_by_server(ONE);
        stand.receive(ONE, &call(1));
        stand.name_calls();
        stand.close(ONE);
        nobody_waits(stand);
    }),
    ("it goes while its call is away", Executed, |stand| {
        stand.open_by_server(ONE);
        stand.receive(ONE, &call(1));
        stand.submit();
        stand.half_close(ONE);
        nobody_waits(stand);
    }),
    ("its request is given up", Executed, |stand| {
        stand.open_by_server(ONE);
        stand.receive(ONE, &call(1));
        stand.submit();
        stand.gateway.end_calls(STATELESS, quorba_replica::History::EMPTY);
        stand.close(ONE);
    }),
    ("it is answered", AtOnce, |stand| {
        stand.open_by_server(ONE);
        stand.receive(ONE, &call(1));
        stand.settle();
        assert_eq!(stand.sent, 1);
        stand.close(ONE);
    }),
    ("it leaves a reply and half a call", AtOnce, |stand| {
        stand.open_by_server(ONE);
        stand.receive(ONE, &call(1)[..20]);
        stand.unsent(ONE, 1000);
        stand.close(ONE);
    }),
];
