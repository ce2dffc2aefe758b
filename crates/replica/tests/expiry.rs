//! How long a client's request is remembered: by time as the order tells it.
//!
//! The cluster's groups remember for 60 s.

mod cluster;

use cluster::Cluster;
use quorba_giop::{MinorCode, QUORBA_VMCID};

const SECOND: u64 = 10_000_000;
const NAME: i32 = 7;

/// Its gateway 0 has a clock that starts at a time of its own, and has ordered the named request.
struct Story {
    c: Cluster,
    number: u64,
}

impl Story {
    fn new(at: u64, until: u64) -> Self {
        let mut story = Self { c: Cluster::whole(true), number: 0 };
        story.named(at, until);
        story
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn named(&mut self, at: u64, until: u64) {
        let number = self.next();
        self.c.ft_request_at(0, (number, "named"), NAME, (at, until));
        self.c.settle();
    }

    /// Another request comes: what time passes, the order hears so.
    fn clock(&mut self, at: u64) {
        let number = self.next();
        self.c.request_at(0, number, "other", at);
        self.c.settle();
    }

    /// So it does from the gateway of a node, in whose clock it is this time.
    fn clock_of(&mut self, gateway: usize, at: u64) {
        let number = self.next();
        self.c.request_at(gateway, number, "other", at);
        self.c.settle();
    }

    /// The clock goes on from one time to another, and no request is far behind the last.
    fn pass(&mut self, from: u64, to: u64) {
        (from..to).step_by(10 * SECOND as usize).skip(1).for_each(|at| self.clock(at));
        self.clock(to);
    }

    fn executed(&self) -> usize {
        let all = [0, 1, 2].map(|index| {
            let texts = self.c.executed(index);
            texts.iter().filter(|text| **text == "named").count()
        });
        assert!(all[0] == all[1] && all[1] == all[2], "{all:?}");
        all[0]
    }
}

#[test]
fn a_request_is_remembered_until_its_time_is_over_and_no_longer() {
    // What a client asks for counts from its gateway's clock, which may be any.
    for (start, until, kept) in [
        (1000 * SECOND, 0, 60),
        (1000 * SECOND, 1030 * SECOND, 60),
        (1000 * SECOND, 1100 * SECOND, 100),
    ] {
        let mut story = Story::new(start, until);
        let end = start + kept * SECOND;
        story.pass(start, end);
        story.named(end, until);
        assert_eq!(story.executed(), 1, "answered from what is known: {kept}");
        story.clock(end + 1);
        story.named(end + 1, until);
        assert_eq!(story.executed(), 2, "its name is free again: {kept}");
        // And the new one is remembered from then on.
        story.named(end + 2 * SECOND, until);
        assert_eq!(story.executed(), 2);
    }
}

#[test]
fn one_clock_that_jumps_makes_nothing_be_forgotten() {
    let start = 1000 * SECOND;
    let mut story = Story::new(start, 0);
    for (at, why) in [
        (start + 365 * 24 * 3600 * SECOND, "a year ahead"),
        (start, "and back"),
        (0, "to the beginning"),
    ] {
        story.clock(at);
        story.named(at, 0);
        assert_eq!(story.executed(), 1, "{why}");
    }
}

/// Seed 620245 of the simulator's groups: nobody served for a while, and then each gateway had
/// ordered what had come in meanwhile. The same 40 s passed three times.
#[test]
fn time_for_which_calls_waited_at_several_gateways_passes_once() {
    let (start, hours) = (10_000 * SECOND, 7200 * SECOND);
    for clocks in [[start, start], [start + hours, start - hours], [start - hours, start + hours]] {
        let mut story = Story::new(start, 0);
        story.pass(start, start + 40 * SECOND);
        let number = story.next();
        story.c.ft_request_at(0, (number, "late"), NAME + 1, (start + 40 * SECOND, 0));
        story.c.settle();
        for (gateway, clock) in [1, 2].into_iter().zip(clocks) {
            (0..=40).for_each(|second| story.clock_of(gateway, clock + second * SECOND));
        }
        let number = story.next();
        story.c.ft_request_at(0, (number, "late"), NAME + 1, (start + 41 * SECOND, 0));
        story.c.settle();
        let executed = story.c.executed(0);
        let times = executed.iter().filter(|text| **text == "late").count();
        assert_eq!(times, 1, "of {executed:?}");
    }
}

/// A client may ask for a day, and not for ever.
#[test]
fn no_client_has_its_request_remembered_for_ever() {
    let start = 1000 * SECOND;
    let day = 24 * 3600 * SECOND;
    let mut story = Story::new(start, u64::MAX);
    story.pass(start, start + day);
    story.named(start + day, u64::MAX);
    assert_eq!(story.executed(), 1);
    story.clock(start + day + 1);
    story.named(start + day + 1, u64::MAX);
    assert_eq!(story.executed(), 2);
}

/// BAD_CONTEXT, COMPLETED_MAYBE.
fn says_forgotten(reply: &str) -> bool {
    let code = QUORBA_VMCID | MinorCode::Forgotten.number();
    reply.contains(&format!("BadContext, minor: {code}, completed: Maybe"))
}

/// Seed 20224 of the simulator's domains: a gateway was suspended for longer than a request is
/// remembered, and had it ordered again under its old number.
#[test]
fn what_a_gateway_orders_again_when_its_time_is_over_is_not_executed_twice() {
    let start = 1000 * SECOND;
    let mut story = Story::new(start, 0);
    let again = |story: &mut Story| {
        story.c.nodes[0].replies.clear();
        story.c.ft_request_at(0, (1, "named"), NAME, (start, 0));
        story.c.settle();
        let (number, text) = story.c.nodes[0].replies.pop().expect("it is answered");
        assert_eq!(number, 1);
        text
    };
    assert!(!says_forgotten(&again(&mut story)), "its time is not over");
    story.pass(start, start + 61 * SECOND);
    assert!(says_forgotten(&again(&mut story)));
    assert_eq!(story.executed(), 1);
    // Whoever joins later knows it as well.
    story.c.crash_server(1);
    story.c.settle();
    story.c.start_server(1);
    story.c.settle();
    assert!(says_forgotten(&again(&mut story)));
    assert_eq!(story.executed(), 1);
    // What is released is forgotten for good.
    let unreleased = |story: &Story| [0, 1, 2].map(|index| story.c.snapshot(index).unreleased);
    assert_eq!(unreleased(&story), [1; 3]);
    let below = story.next();
    story.c.release_below(0, below);
    story.clock(start + 62 * SECOND);
    assert_eq!(unreleased(&story), [0; 3]);
}
