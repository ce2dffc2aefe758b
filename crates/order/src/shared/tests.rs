//! What is remembered of nodes that were left out, and how timeouts are stretched.

use super::*;

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn core() -> Core {
    let config = crate::fuzzing::config(node(0), NodeSet::first(8));
    let boot = Boot { incarnation: 10, salt: [3; 16], ring_seq_min: 0 };
    Core::new(config, boot, Instant::ZERO)
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// `other` is in for a moment, and left out again; for how long.
fn leaves(core: &mut Core, other: NodeId, cause: LeaveReason) -> Duration {
    core.now = core.now.max(core.memory(other).hold_off_until);
    let now = core.now;
    let memory = core.memory(other);
    (memory.left_out, memory.joined_at) = (None, now);
    core.hold_off(other, cause);
    core.memory(other).hold_off_until.since(now)
}

#[test]
fn who_is_left_out_again_and_again_waits_twice_as_long_each_time_up_to_a_most() {
    let growth = |first: u64, most: u64| {
        let doubled = core::iter::successors(Some(first), move |last| Some((last * 2).min(most)));
        doubled.take(12).map(ms)
    };
    for (cause, first, most) in [
        (LeaveReason::Silent, 20, 320),
        (LeaveReason::Parted, 20, 320),
        (LeaveReason::Unreachable, 500, 10_000),
        (LeaveReason::FailedToReceive, 500, 10_000),
        (LeaveReason::PoorLinks, 1_000, 10_000),
    ] {
        let mut core = core();
        // The first node has no time added to that.
        for (times, expected) in growth(first, most).enumerate() {
            let waits = leaves(&mut core, node(0), cause);
            assert_eq!(waits, expected, "{cause:?}, left out for the {times}th time");
            assert_eq!(core.memory(node(0)).hold_off, expected);
        }
    }
}

#[test]
fn who_said_why_it_goes_is_not_kept_waiting() {
    for cause in [LeaveReason::ProcessLost, LeaveReason::Departed, LeaveReason::Restarted] {
        let mut core = core();
        assert_eq!(leaves(&mut core, node(1), cause), Duration::ZERO);
        assert!(!core.is_held_off(node(1), NodeSet::first(8)));
    }
}

#[test]
fn of_nodes_with_poor_links_each_waits_for_a_time_of_its_own_that_is_little_longer() {
    let mut core = core();
    let mut all = Vec::new();
    for other in (0..8).map(node) {
        let waits = leaves(&mut core, other, LeaveReason::PoorLinks);
        assert!((ms(1_000)..ms(1_250)).contains(&waits), "{waits:?}");
        all.push(waits);
    }
    all.sort();
    assert!(all.windows(2).all(|two| two[1] - two[0] >= ms(20)), "not two at once: {all:?}");
    for _ in 0..10 {
        let waits = leaves(&mut core, node(3), LeaveReason::PoorLinks);
        assert!(waits < ms(12_500), "{waits:?}");
    }
    assert_eq!(leaves(&mut core, node(3), LeaveReason::Unreachable), ms(10_000), "nothing added");
}

#[test]
fn who_was_in_for_long_begins_anew() {
    let mut core = core();
    (0..3).for_each(|_| _ = leaves(&mut core, node(1), LeaveReason::Silent));
    core.now = core.now + Duration::from_secs(30);
    core.hold_off(node(1), LeaveReason::Silent);
    assert_eq!(core.memory(node(1)).hold_off, ms(160), "30 s are not long");
    core.now = core.now + ms(1);
    core.hold_off(node(1), LeaveReason::Silent);
    assert_eq!(core.memory(node(1)).hold_off, ms(20));
}

#[test]
fn who_is_held_off_may_come_when_its_time_is_over_and_not_before() {
    let mut core = core();
    leaves(&mut core, node(1), LeaveReason::Silent);
    let until = core.memory(node(1)).hold_off_until;
    core.now = Instant::ZERO + (until.since(Instant::ZERO) - Duration::from_nanos(1));
    assert!(core.is_held_off(node(1), NodeSet::first(8)));
    core.now = until;
    assert!(!core.is_held_off(node(1), NodeSet::first(8)));
}

#[test]
fn who_is_kept_out_for_poor_links_is_not_kept_out_longer_by_every_word() {
    let mut core = core();
    leaves(&mut core, node(1), LeaveReason::PoorLinks);
    let until = core.memory(node(1)).hold_off_until;
    core.now = Instant::ZERO + (until.since(Instant::ZERO) - Duration::from_nanos(1));
    core.hold_off(node(1), LeaveReason::PoorLinks);
    core.hold_off(node(1), LeaveReason::Silent);
    assert_eq!(core.memory(node(1)).hold_off_until, until);
    core.now = until;
    core.hold_off(node(1), LeaveReason::PoorLinks);
    assert_eq!(core.memory(node(1)).hold_off, ms(2_000));
}

/// It has not been in for a minute, which is no reason to try it every second.
#[test]
fn who_is_kept_out_for_poor_links_is_tried_less_often_however_long_it_is_out() {
    let mut core = core();
    leaves(&mut core, node(0), LeaveReason::PoorLinks);
    let mut waits = Vec::new();
    for _ in 0..10 {
        let until = core.memory(node(0)).hold_off_until;
        waits.push(until.since(core.now).as_millis());
        core.now = until;
        core.try_again(node(0));
    }
    assert_eq!(waits[..5], [1_000, 2_000, 4_000, 8_000, 10_000]);
    assert_eq!(waits[5..], [10_000; 5]);
}

#[test]
fn timeouts_are_stretched_at_most_by_thirty_two() {
    let mut core = core();
    for doublings in [1, 2, 4, 8, 16, 32, 32, 32] {
        assert_eq!(core.patient(ms(3)), ms(3) * doublings);
        core.stretch_timeouts();
    }
}

#[test]
fn who_was_left_out_as_silent_and_speaks_soon_was_only_slow() {
    for (after, doublings) in [(0, 1), (199, 1), (200, 0), (5_000, 0)] {
        let mut core = core();
        leaves(&mut core, node(1), LeaveReason::Silent);
        assert!(core.memory(node(1)).was_silent());
        core.now = core.now + ms(after);
        core.note_late(node(1));
        assert_eq!(core.patience, doublings, "after {after} ms");
        assert!(!core.memory(node(1)).was_silent(), "that counts once");
    }
    // In a gather it is not remembered yet since when it is silent.
    let mut core = core();
    core.note_late(node(1));
    assert_eq!(core.patience, 1);
}
