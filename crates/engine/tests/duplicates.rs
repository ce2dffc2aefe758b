//! Replies of all members through the order, of which one is sent.

mod stage;

use quorba_base::Duration;
use quorba_engine::replica::{OrderedReplies, ReplyPath};
use stage::{GROUP, Got, Plan, Stage};

const CALLS: u32 = 50;

/// Sent, suppressed by their members, and dropped by the gateway.
fn replies(reply: ReplyPath) -> (u64, u64, u64) {
    let plan = Plan { nodes: 3, reply, ..Plan::default() };
    let mut s = Stage::of(plan).with_servers();
    for number in 1..=CALLS {
        s.call(number);
        s.pass_until(|stage| !stage.got[0].is_empty());
        assert_eq!(s.client_got(), [Got::Results(number)]);
    }
    s.pass(Duration::from_secs(1));
    let of = |figure: fn(&OrderedReplies) -> u64| {
        let snapshots = s.nodes.iter().map(|node| node.snapshot().groups[GROUP].ordered_replies);
        snapshots.map(|replies| figure(&replies)).sum::<u64>()
    };
    let dropped = s.nodes[0].snapshot().gateway.groups[GROUP].replies_dropped;
    (of(|replies| replies.sent), of(|replies| replies.suppressed), dropped)
}

#[test]
fn a_reply_that_waits_for_the_token_is_taken_back_when_anothers_comes() {
    let calls = u64::from(CALLS);
    assert_eq!(replies(ReplyPath::Ordered), (3 * calls, 0, 2 * calls));
    let (sent, suppressed, dropped) = replies(ReplyPath::OrderedOnce);
    assert_eq!(sent + suppressed, 3 * calls);
    assert_eq!(sent - dropped, calls, "one of each counts");
    assert!(suppressed > calls, "{suppressed} of {}", 3 * calls);
}
