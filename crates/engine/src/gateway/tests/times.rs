//! How long a client may take, and what counts.

use super::stand::*;
use super::*;

fn patient() -> Stand {
    Stand::new(GatewayLimits { idle: SECOND * 3600, ..limits() })
}

fn pass(stand: &mut Stand, seconds: u32) {
    stand.pass(SECOND * seconds, Availability::Ready);
}

#[test]
fn the_time_in_which_a_client_is_not_read_does_not_count_against_it() {
    let mut stand = patient();
    stand.open(ONE, ACTIVE, ADDRESS);
    stand.receive(ONE, &long_call(1, 5000)[..500]);
    stand.unsent(ONE, (1 << 20) + 1);
    assert!(stand.holdings().0.connections[&ONE].paused);
    pass(&mut stand, 30);
    stand.unsent(ONE, 0);
    pass(&mut stand, 3);
    assert_eq!(stand.closed, [], "it could not go on with its message");
    pass(&mut stand, 5);
    assert_eq!(stand.closed, [(ONE, CloseReason::TooSlow)], "now it could");
}

#[test]
fn who_takes_its_replies_slowly_takes_them() {
    let mut stand = patient();
    stand.open(ONE, ACTIVE, ADDRESS);
    for left in (1..=4).rev() {
        stand.unsent(ONE, left * 1000);
        pass(&mut stand, 40);
        // What the driver says again is nothing that was taken.
        stand.unsent(ONE, left * 1000);
    }
    assert_eq!(stand.closed, []);
    pass(&mut stand, 22);
    assert_eq!(stand.closed, [(ONE, CloseReason::TooSlow)]);
}

#[test]
fn who_waits_for_a_reply_or_leaves_one_is_not_idle() {
    let mut stand = Stand::new(limits());
    for (id, said) in [(ONE, call(1)), (ConnectionId(2), oneway(1))] {
        stand.open(id, ACTIVE, ADDRESS);
        stand.receive(id, &said);
    }
    stand.submit();
    pass(&mut stand, 30);
    assert_eq!(stand.closed, [(ConnectionId(2), CloseReason::Idle)]);
    stand.settle();
    stand.unsent(ONE, 10);
    pass(&mut stand, 5);
    assert_eq!(stand.closed.len(), 1);
    stand.unsent(ONE, 0);
    pass(&mut stand, 10);
    assert_eq!(stand.closed[1..], [(ONE, CloseReason::Idle)]);
}

/// Its server is just being started anew.
#[test]
fn what_was_executed_nowhere_waits_a_moment_even_where_nothing_waits() {
    let mut stand = Stand::new(limits());
    stand.gateway.groups[GroupId(0)].rules.unavailable_wait = Duration::ZERO;
    stand.open(ONE, ACTIVE, ADDRESS);
    stand.receive(ONE, &call(1));
    stand.submit();
    stand.hold();
    stand.drop_all();
    stand.pass(SECOND / 20, Availability::NoMember);
    assert_eq!(stand.sent, 0);
    stand.pass(SECOND / 10, Availability::NoMember);
    assert_eq!(stand.sent, 1, "refused in the end");
}
