//! Whatever way a connection ends, the gateway keeps nothing of it.
//!
//! Each story is told to one of two gateways that have the same bystander; when it is over, they
//! keep the same. When the bystander is gone, too, and some time has passed, they keep nothing.

use super::stand::*;
use super::stories::*;
use super::stories_of_all::*;
use super::*;

/// Tells all stories of a table.
fn tell(stories: &[StoryOfOne]) {
    for (name, back, story) in stories {
        tell_one(name, *back, *story, |_| {}, |_| {});
    }
}

/// The same where something happens to all in between.
fn tell_of_all(stories: &[StoryOfAll]) {
    for (name, back, story, to_all, last) in stories {
        tell_one(name, *back, *story, *to_all, *last);
    }
}

fn tell_one(name: &str, back: Back, story: Story, to_all: Story, last: Story) {
    let bystander = || {
        let mut stand = Stand::new(limits());
        stand.open(BYSTANDER, ACTIVE, Ipv4Addr::LOCALHOST.into());
        stand.receive(BYSTANDER, &call(7));
        stand.submit();
        stand.hold();
        stand
    };
    let (mut told, mut twin) = (bystander(), bystander());
    story(&mut told);
    to_all(&mut told);
    to_all(&mut twin);
    last(&mut told);
    let before = twin.holdings().0;
    if back == Back::AtOnce {
        assert_eq!(told.holdings().0, before, "{name}");
    } else {
        assert_ne!(told.holdings().0, before, "{name}: it is back at once");
    }
    told.settle();
    twin.settle();
    assert_eq!(told.holdings().0, twin.holdings().0, "{name}, and executed");
    over(&mut told, name);
}

/// The bystander goes, and its call is over; then time passes.
fn over(stand: &mut Stand, name: &str) {
    stand.close(BYSTANDER);
    let never_used = Stand::new(limits()).holdings();
    stand.pass(SECOND * 200, Availability::Ready);
    let mut holdings = stand.holdings();
    holdings.0.stopping();
    assert_eq!(holdings, never_used, "{name}, and all is over");
    assert_eq!(stand.gateway.poll_timeout(), None, "{name}: nothing is waited for");
}

#[test]
fn nothing_is_kept_of_a_client_that_goes() {
    tell(GOES);
}

#[test]
fn nothing_is_kept_of_reads_and_of_calls_to_stateless_groups() {
    tell(PAST_THE_ORDER);
}

#[test]
fn nothing_is_kept_of_a_client_that_leaves_replies() {
    tell(LEAVES_REPLIES);
}

#[test]
fn nothing_is_kept_of_a_client_that_says_something_else() {
    tell(SAYS_SOMETHING_ELSE);
}

#[test]
fn nothing_is_kept_of_a_client_that_is_turned_away() {
    tell(TURNED_AWAY);
}

#[test]
fn nothing_is_kept_of_calls_of_local_servers() {
    tell(SERVERS);
}

#[test]
fn nothing_is_kept_of_a_client_whose_time_is_up() {
    tell_of_all(TIME_IS_UP);
}

#[test]
fn nothing_is_kept_of_a_client_whose_group_cannot_serve() {
    tell_of_all(CANNOT_SERVE);
}

/// It was in the order for most of the time that it may wait for a member, and nobody was in.
#[test]
fn what_was_executed_nowhere_waits_anew() {
    let mut stand = Stand::new(limits());
    ask(&mut stand, ACTIVE, &[&call(1)]);
    stand.submit();
    stand.hold();
    stand.pass(SECOND / 10 * 9, Availability::Ready);
    stand.drop_all();
    stand.pass(SECOND / 10 * 9, Availability::NoMember);
    assert_eq!(stand.sent, 0, "refused before its time was up");
    stand.settle();
    assert_eq!(stand.sent, 1);
}

#[test]
fn nothing_is_kept_of_clients_when_the_node_stops() {
    tell_of_all(STOPS);
}
