//! Ways in which connections end while something happens to all: time passes, members go, the view
//! changes, the node stops.

use super::stand::*;
use super::stories::*;
use super::*;
use Back::{AtOnce, Executed};

/// Its name, when all is back; what happens to one, to all, and to the one again.
pub(super) type StoryOfAll = (&'static str, Back, Story, Story, Story);

fn seconds(stand: &mut Stand, count: u32) {
    stand.pass(SECOND * count, Availability::Ready);
}

pub(super) const TIME_IS_UP: &[StoryOfAll] = &[
    (
        "it is idle",
        AtOnce,
        |stand| begin(stand),
        |stand| seconds(stand, 31),
        |stand| was_closed(stand, 1, CloseReason::Idle),
    ),
    (
        "it does not go on with a message",
        AtOnce,
        |stand| ask(stand, ACTIVE, &[&long_call(1, 5000)[..500]]),
        |stand| seconds(stand, 10),
        |stand| was_closed(stand, 1, CloseReason::TooSlow),
    ),
    (
        "it takes nothing of its reply",
        AtOnce,
        |stand| {
            ask(stand, ACTIVE, &[&call(1)]);
            stand.settle();
            stand.unsent(ONE, 1000);
        },
        |stand| seconds(stand, 65),
        |stand| was_closed(stand, 1, CloseReason::TooSlow),
    ),
    (
        "it is one too many, and says nothing",
        AtOnce,
        |stand| {
            (1..=3).for_each(|id| stand.open(ConnectionId(id), ACTIVE, ADDRESS));
            stand.close(ConnectionId(2));
        },
        |stand| seconds(stand, 10),
        |stand| {
            was_closed(stand, 3, CloseReason::TooMany);
            stand.close(ONE);
        },
    ),
    (
        "it makes room for another one",
        AtOnce,
        begin,
        |stand| seconds(stand, 2),
        |stand| {
            assert!(stand.gateway.make_room(NOW + SECOND * 2));
            stand.settle();
            was_closed(stand, 1, CloseReason::Idle);
        },
    ),
    (
        "its call waits for its turn for too long",
        AtOnce,
        |stand| ask(stand, ACTIVE, &[&call(1)]),
        |stand| seconds(stand, 61),
        |stand| {
            assert_eq!(stand.sent, 2, "TIMEOUT, and the bystander's");
            stand.close(ONE);
        },
    ),
    (
        "its call is not executed in time",
        Executed,
        |stand| {
            ask(stand, ACTIVE, &[&call(1)]);
            stand.submit();
        },
        |stand| seconds(stand, 61),
        |stand| {
            assert_eq!(stand.sent, 2, "TIMEOUT, and the bystander's");
            stand.close(ONE);
        },
    ),
];

fn waits(stand: &mut Stand) {
    stand.pass(SECOND / 2, Availability::NoMember);
}

fn ends(stand: &mut Stand) {
    stand.pass(SECOND * 3, Availability::NoMember);
}

fn asks(stand: &mut Stand) {
    ask(stand, STATELESS, &[&call(1)]);
}

fn closes(stand: &mut Stand) {
    stand.close(ONE);
}

fn asks_for_two(stand: &mut Stand) {
    ask(stand, ACTIVE, &[&call(1), &read(2)]);
    stand.submit();
}

fn orders(stand: &mut Stand) {
    ask(stand, ACTIVE, &[&call(1), &read(2)]);
    stand.submit();
    stand.hold();
}

pub(super) const CANNOT_SERVE: &[StoryOfAll] = &[
    ("nobody takes its call, and it goes", AtOnce, asks, waits, closes),
    ("its call is refused", AtOnce, asks, ends, closes),
    (
        "its call was executed nowhere, and is refused",
        AtOnce,
        orders,
        |stand| {
            seconds(stand, 2);
            stand.drop_all();
            stand.pass(SECOND * 3, Availability::NoMember);
        },
        |stand| {
            assert!(stand.sent > 1);
            stand.close(ONE);
        },
    ),
    (
        "its call was executed nowhere, and it goes",
        AtOnce,
        orders,
        |stand| {
            stand.pass(SECOND / 2, Availability::Ready);
            stand.drop_all();
        },
        closes,
    ),
    (
        "its call was executed nowhere, and is submitted again",
        Executed,
        orders,
        |stand| {
            seconds(stand, 2);
            stand.drop_all();
        },
        |stand| {
            stand.submit();
            stand.close(ONE);
        },
    ),
    ("the view changes, and it goes", Executed, asks_for_two, Stand::change_view, closes),
    (
        "it goes, and the view changes",
        Executed,
        |stand| {
            ask(stand, ACTIVE, &[&call(1), &read(2)]);
            stand.submit();
            stand.close(ONE);
        },
        Stand::change_view,
        |_| {},
    ),
];

pub(super) const STOPS: &[StoryOfAll] = &[
    ("it waits for nothing", AtOnce, begin, Stand::stop, |stand| {
        was_closed(stand, 1, CloseReason::Stopping)
    }),
    (
        "it is in the middle of a message",
        AtOnce,
        |stand| ask(stand, ACTIVE, &[&call(1)[..20]]),
        Stand::stop,
        |stand| was_closed(stand, 1, CloseReason::Stopping),
    ),
    (
        "it waits for a reply",
        AtOnce,
        |stand| {
            ask(stand, ACTIVE, &[&call(1)]);
            stand.submit();
        },
        Stand::stop,
        |stand| {
            assert_eq!(stand.closed, []);
            stand.settle();
            assert_eq!(stand.sent, 1);
            stand.stop();
            was_closed(stand, 1, CloseReason::Stopping);
        },
    ),
    (
        "a oneway was submitted",
        Executed,
        |stand| {
            ask(stand, ACTIVE, &[&oneway(1)]);
            stand.submit();
        },
        Stand::stop,
        |stand| was_closed(stand, 1, CloseReason::Stopping),
    ),
    (
        "it comes too late",
        AtOnce,
        |_| {},
        Stand::stop,
        |stand| {
            begin(stand);
            was_closed(stand, 1, CloseReason::Stopping);
        },
    ),
];
