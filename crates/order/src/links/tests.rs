//! Who is left out, and what probes tell.

extern crate std;

use super::verdict::verdict;
use super::*;
use std::vec;
use std::vec::Vec;

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

/// Who is left out of `count` nodes if `losses` says how many of 32 probes of the second node the
/// first one missed, and all others none.
fn out(count: usize, losses: &[(u8, u8, u8)]) -> Vec<u8> {
    let missed = |to: NodeId, from: NodeId| {
        let known = losses.iter().find(|(a, b, _)| (*a, *b) == (to.index(), from.index()));
        Some(known.map_or(0, |(_, _, missed)| *missed))
    };
    let out = verdict(NodeSet::first(count), count / 2 + 1, missed);
    out.unwrap_or(NodeSet::EMPTY).iter().map(NodeId::index).collect()
}

#[test]
fn a_node_that_loses_much_either_way_is_left_out() {
    assert_eq!(out(3, &[(0, 2, 19), (1, 2, 19)]), [2], "what it sends");
    assert_eq!(out(3, &[(2, 0, 19), (2, 1, 19)]), [2], "what it gets");
    assert_eq!(out(3, &[(0, 1, 10), (1, 0, 9), (2, 0, 11), (0, 2, 8)]), [0], "the first as well");
}

#[test]
fn what_one_node_says_puts_out_none_but_itself() {
    assert_eq!(out(3, &[(2, 0, 32)]), [2]);
    assert_eq!(out(3, &[(2, 0, 32), (2, 1, 32)]), [2]);
    assert_eq!(out(5, &[(4, 0, 32), (4, 1, 32), (4, 2, 32), (4, 3, 32)]), [4]);
    assert_eq!(out(5, &[(3, 0, 32), (4, 0, 32)]), [0], "two say it");
}

#[test]
fn of_one_bad_link_one_end_goes() {
    assert_eq!(out(3, &[(0, 1, 19), (1, 0, 19)]), [1]);
    assert_eq!(out(3, &[(0, 1, 19)]), [0], "who says so itself");
}

#[test]
fn a_majority_always_remains_and_is_well_connected() {
    assert_eq!(out(2, &[(0, 1, 19), (1, 0, 19)]), [0; 0]);
    let all = [(0, 1, 9), (1, 2, 9), (2, 0, 9)];
    assert_eq!(out(3, &all), [0; 0], "all are bad");
    let five = [(0, 1, 19), (2, 1, 19), (0, 3, 19), (2, 3, 19), (0, 4, 19), (2, 4, 19)];
    let kept = 5 - out(5, &five).len();
    assert!(kept >= 3, "{kept} of five remain");
    assert_eq!(out(3, &[(0, 1, 4), (2, 0, 11), (2, 1, 9)]), [0; 0], "not much worse");
}

#[test]
fn nobody_is_left_out_for_links_that_are_not_known() {
    let missed = |to: NodeId, from: NodeId| match (to.index(), from.index()) {
        (0, 2) | (1, 2) => Some(32),
        (0, 1) => None,
        _ => Some(0),
    };
    assert_eq!(verdict(NodeSet::first(3), 2, missed), None);
}

// Node 1 hears nothing of node 0 any more, with which its link was good, when all its links become
// bad (seed 330462 of the simulator's `ring`).
#[test]
fn nobody_is_left_out_for_links_that_were_measured_at_another_time() {
    let said = |index, missed, last| Reception {
        node: node(index),
        missed: Some(missed),
        last,
        held_us: 0,
    };
    let judged = |hears_on: bool| {
        let mut links = Links::new(NodeSet::first(3), at(0));
        links.note_near(NodeSet::first(3));
        let mut out = None;
        for number in 1..=120 {
            let ms = 10 * number;
            let _ = links.probe(at(ms));
            let last = links.number;
            let receptions = vec![said(1, 0, last), said(2, 0, last)];
            let probe = Probe { number, troubled: true, receptions };
            if number <= 80 || hears_on {
                links.on_probe(at(ms), (node(0), 1), node(1), probe);
            }
            if number > 80 && number % 5 < 2 {
                let receptions = vec![said(0, 0, last), said(1, 20, last)];
                let probe = Probe { number, troubled: true, receptions };
                links.on_probe(at(ms), (node(2), 1), node(1), probe);
            }
            out = out.or(links.judge(at(ms), node(1), NodeSet::first(3), 2));
        }
        out
    };
    assert_eq!(judged(true), Some(NodeSet::EMPTY.with(node(2))), "all is of now");
    assert_eq!(judged(false), None, "nothing was heard of node 0 since");
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
}

#[test]
fn numbers_tell_what_was_missed_and_a_pause_is_no_loss() {
    let mut hearing = Hearing::new();
    let fresh = Duration::from_millis(500);
    for step in 0..20 {
        hearing.hear(at(10 * step), 2 * step + 1, fresh);
    }
    assert_eq!(hearing.missed(at(190), fresh, false), Some(16));
    assert_eq!(hearing.missed(at(800), fresh, false), None, "too long ago");
    for step in 0..12 {
        hearing.hear(at(1_000 + 10 * step), 100 + step, fresh);
    }
    assert_eq!(hearing.missed(at(1_110), fresh, false), Some(0), "the silence was long");
    assert!(!hearing.hear(at(1_111), 50, fresh), "it was overtaken");
}

#[test]
fn a_link_that_was_cut_and_is_whole_again_is_not_bad() {
    let mut hearing = Hearing::new();
    let fresh = Duration::from_millis(500);
    for number in (1..20).chain(40..50) {
        hearing.hear(at(10 * number), number, fresh);
    }
    assert_eq!(hearing.missed(at(490), fresh, false), None);
}

#[test]
fn a_link_that_was_cut_and_loses_a_few_besides_is_not_bad() {
    let fresh = Duration::from_millis(500);
    let missed = |gone: &dyn Fn(u64) -> bool| {
        let mut hearing = Hearing::new();
        for number in (1..60).filter(|number| !gone(*number)) {
            hearing.hear(at(10 * number), number, fresh);
        }
        hearing.missed(at(590), fresh, false)
    };
    let cut = missed(&|number| (35..52).contains(&number) || number == 30 || number == 55);
    assert_eq!(cut, None);
    assert!(missed(&|number| number % 5 < 3) > Some(verdict::BAD), "three of five");
    assert!(missed(&|number| number % 9 > 0) > Some(verdict::BAD), "eight of nine");
}

#[test]
fn a_link_that_is_farther_than_it_was_is_good_unless_that_alone_makes_it_bad() {
    let mut hearing = Hearing::new();
    let fresh = Duration::from_millis(500);
    for step in 0..60 {
        hearing.hear(at(10 * step), step + 1, fresh);
        hearing.note_round_trip(at(10 * step), Duration::from_millis(24));
    }
    assert_eq!(hearing.missed(at(590), fresh, true), Some(0), "else nobody takes it in again");
}

#[test]
fn what_takes_long_there_and_back_is_as_good_as_lost() {
    let mut hearing = Hearing::new();
    let fresh = Duration::from_millis(500);
    for step in 0..60 {
        hearing.hear(at(10 * step), step + 1, fresh);
        hearing.note_round_trip(at(10 * step), Duration::from_millis(100));
    }
    assert_eq!(hearing.missed(at(590), fresh, true), Some(12));
    for step in 0..20 {
        hearing.hear(at(2_000 + 10 * step), 100 + step, fresh);
    }
    assert_eq!(hearing.missed(at(2_200), fresh, true), None, "nothing has come back yet");
    hearing.note_round_trip(at(2_201), Duration::from_millis(100));
    hearing.note_round_trip(at(2_302), Duration::from_millis(100));
    for step in 0..12 {
        hearing.hear(at(2_310 + step), 120 + step, fresh);
    }
    assert_eq!(hearing.missed(at(2_330), fresh, true), Some(12));
    assert_eq!(hearing.missed(at(2_330), fresh, false), Some(0), "it always was so far away");
    hearing.note_round_trip(at(2_331), Duration::from_millis(1));
    assert_eq!(hearing.missed(at(2_331), fresh, true), Some(0));
}

#[test]
fn a_few_signs_start_probes_and_they_end() {
    let mut links = Links::new(NodeSet::first(3), at(0));
    links.note_near(NodeSet::first(3));
    let probes = |links: &mut Links, from: u64, to: u64| {
        (from..to).filter(|ms| links.probe(at(*ms)).is_some()).count()
    };
    assert!(probes(&mut links, 0, 500) <= 1);
    for ms in [500, 1_100, 1_700, 2_300] {
        links.see_trouble(at(ms));
    }
    assert_eq!(probes(&mut links, 2_300, 4_000), 0, "signs far apart mean nothing");
    for _ in 0..=SIGNS {
        links.see_trouble(at(4_000));
    }
    let sent = probes(&mut links, 4_000, 9_000);
    assert!((90..=110).contains(&sent), "{sent} probes");
    let troubled = Probe { number: 1, troubled: true, receptions: vec![] };
    links.on_probe(at(9_000), (node(1), 7), node(0), troubled);
    let sent = probes(&mut links, 9_000, 12_000);
    assert!((40..=60).contains(&sent), "{sent} probes for another's trouble");
    let calm = Probe { number: 2, troubled: false, receptions: vec![] };
    links.on_probe(at(12_000), (node(1), 7), node(0), calm);
    assert_eq!(probes(&mut links, 12_000, 13_000), 0);
}

// Where all lose a little, who comes back is measured against that (seed 2455 of the simulator's
// `backups`).
#[test]
fn links_of_who_comes_back_are_good_unless_they_are_much_worse_than_the_others() {
    let limits = [0, 1, 2, 5].map(verdict::good_below);
    assert_eq!(limits, [verdict::GOOD, verdict::GOOD, 6, verdict::BAD]);
}
