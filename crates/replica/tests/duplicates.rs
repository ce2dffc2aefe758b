//! Replies through the order, of which one is enough.

mod cluster;

use cluster::{Cluster, Plan};
use quorba_replica::{OrderedReplies, ReplyPath, Style};

fn once(style: Style) -> Cluster {
    Cluster::whole_planned(Plan { reply: ReplyPath::OrderedOnce, ..Plan::style(style) })
}

/// Sent and suppressed, of each member.
fn figures(c: &Cluster) -> [(u64, u64); 3] {
    [0, 1, 2].map(|index| {
        let OrderedReplies { sent, suppressed, .. } = c.snapshot(index).ordered_replies;
        (sent, suppressed)
    })
}

#[test]
fn whoever_hears_anothers_reply_takes_its_own_back() {
    let mut c = once(Style::Active);
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())], "one, where there were three");
    let all = figures(&c);
    assert_eq!(all.map(|(sent, _)| sent).iter().sum::<u64>(), 1, "{all:?}");
    assert_eq!(all.map(|(_, suppressed)| suppressed).iter().sum::<u64>(), 2, "{all:?}");
    for index in 0..3 {
        assert_eq!(c.executed(index), ["a"]);
    }
}

#[test]
fn a_slow_member_does_not_reply_behind_another() {
    let mut c = once(Style::Active);
    c.nodes[2].server.as_mut().unwrap().held = true;
    c.request(0, 1, "a");
    c.settle();
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.executed(2), ["a"]);
    assert_eq!(figures(&c)[2], (0, 1));
    assert_eq!(c.nodes[0].replies.len(), 1);
}

#[test]
fn who_kept_silent_answers_when_the_gateway_asks_again() {
    let mut c = once(Style::Active);
    c.nodes[2].server.as_mut().unwrap().held = true;
    c.request(0, 1, "a");
    c.settle();
    // Those that replied are gone, and with them, perhaps, the reply.
    c.nodes[0].replies.clear();
    c.crash(1);
    c.install(&[0, 2]);
    c.crash_server(0);
    c.settle();
    c.request(0, 1, "a");
    c.settle();
    c.nodes[2].server.as_mut().unwrap().held = false;
    c.settle();
    assert_eq!(c.nodes[0].replies, [(1, "a is number 1".into())]);
    // And once more, from the log.
    c.request(0, 1, "a");
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 2);
    assert_eq!(c.executed(2), ["a"]);
}

#[test]
fn voted_replies_are_sent_once_too() {
    let mut c = once(Style::ActiveWithVoting);
    for (number, text) in [(1, "a"), (2, "b")] {
        c.request(1, number, text);
        c.settle();
    }
    assert_eq!(c.nodes[1].replies, [(1, "a is number 1".into()), (2, "b is number 2".into())]);
}
