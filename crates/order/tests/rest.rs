//! The resting token: how few datagrams and how little time a message costs, and how quiet an idle
//! ring is.

mod harness;

use harness::{Faults, Net, check, ms, us};
use quorba_order::{Destination, Guarantee};

/// A ring of `count` where one hop takes exactly 100 µs, at rest.
fn calm(count: usize) -> Net {
    let mut net = Net::with_config(count, 3, |_, config| {
        config.timing.presence_min = ms(1000);
    });
    net.faults = Faults { delay_us: (100, 100), ..Faults::default() };
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.run_for(ms(50));
    net
}

fn owner(net: &Net) -> usize {
    let at = (0..net.count).find(|index| net.snapshot(*index).has_token);
    at.expect("an idle ring's token rests")
}

/// Lets the idle rotation pass by, so that a test has the next 20 ms for itself.
fn just_rested(net: &mut Net) -> usize {
    assert!(net.run_till(ms(100), |net| (0..net.count).all(|i| !net.snapshot(i).has_token)));
    assert!(net.run_till(ms(100), |net| (0..net.count).any(|i| net.snapshot(i).has_token)));
    net.run_for(ms(1));
    owner(net)
}

#[test]
fn at_the_resting_holder_a_message_costs_one_multicast_and_one_ack() {
    let mut net = calm(3);
    let first = just_rested(&mut net);
    net.trace.clear();
    net.send(first, 1000, Guarantee::Agreed);
    assert_eq!(net.delivered(first).len(), 1, "zero hops to its own delivery");
    assert!(net.run_till(us(200), |net| net.life(first).held == 1), "one round trip to Held");
    net.run_for(ms(5));
    let to: Vec<Destination> = net.trace.iter().map(|(_, _, to, _)| *to).collect();
    assert_eq!(to.len(), 2, "{to:?}");
    assert_eq!(to[0], Destination::Others);
    assert!(matches!(to[1], Destination::Node(node) if usize::from(node.index()) == first));
    for index in 0..3 {
        assert_eq!(net.delivered(index).len(), 1);
    }
}

#[test]
fn elsewhere_it_costs_a_request_and_a_token_more() {
    let mut net = calm(3);
    let holder = just_rested(&mut net);
    let sender = (holder + 2) % 3;
    net.trace.clear();
    net.send(sender, 1000, Guarantee::Agreed);
    let done = |net: &Net| net.delivered(sender).len() == 1;
    assert!(net.run_till(us(200), done), "request and token, one hop each, then it is ordered");
    assert!(net.run_till(us(200), |net| net.life(sender).held == 1));
    net.run_for(ms(5));
    assert_eq!(net.trace.len(), 4, "request, token, data, ack: {:?}", net.trace);
    assert_eq!(owner(&net), sender, "the token rests where it was used");
}

#[test]
fn a_safe_message_needs_all_acks_but_no_rotation() {
    let mut net = calm(4);
    let first = just_rested(&mut net);
    net.trace.clear();
    net.send(first, 1000, Guarantee::Safe);
    assert!(net.delivered(first).is_empty());
    assert!(net.run_till(us(200), |net| net.delivered(first).len() == 1), "one round trip");
    assert!(net.run_till(us(110), |net| (0..4).all(|i| net.delivered(i).len() == 1)));
    assert_eq!(net.trace.len(), 5, "data, three acks, settled: {:?}", net.trace);
}

/// Who delivers does not wait for all, but somebody does.
#[test]
fn a_message_that_is_awaited_of_all_is_stable_after_one_round_trip() {
    let mut net = calm(4);
    let holder = just_rested(&mut net);
    net.trace.clear();
    net.send_to_all(holder, 1000);
    assert_eq!(net.delivered(holder).len(), 1, "its delivery waits for nobody");
    assert!(net.run_till(us(210), |net| net.life(holder).stable == 1), "one round trip");
    assert_eq!(net.trace.len(), 4, "data and three acks: {:?}", net.trace);
    let elsewhere = (holder + 1) % 4;
    net.send_to_all(elsewhere, 1000);
    assert!(net.run_till(us(410), |net| net.life(elsewhere).stable == 1), "request, token too");
    // What is awaited of nobody any more asks a majority again.
    net.trace.clear();
    net.send(elsewhere, 1000, Guarantee::Agreed);
    net.run_for(ms(3));
    assert_eq!(net.trace.len(), 3, "data and two acks: {:?}", net.trace);
}

#[test]
fn a_message_that_is_awaited_of_all_is_stable_soon_though_a_datagram_is_lost() {
    for drop in 0..6 {
        let mut net = calm(3);
        let holder = just_rested(&mut net);
        let mut seen = 0;
        net.filter = Some(Box::new(move |_, _, _, _| {
            seen += 1;
            seen == drop + 1
        }));
        net.send_to_all(holder, 500);
        assert!(net.run_till(ms(10), |net| net.life(holder).stable == 1), "datagram {drop} lost");
        net.run_for(ms(100));
        check::settled(&net);
        assert_eq!(net.snapshot(0).counters.gathers, 1, "no loss of one datagram breaks the ring");
    }
}

/// The time of an exchange is what a call with another leader is predicted from: a rotation's
/// follows whoever was slow.
#[test]
fn an_exchange_takes_there_and_back_and_a_slow_rotation_changes_nothing_of_it() {
    let mut net = calm(3);
    let first = just_rested(&mut net);
    for number in 1..=50 {
        net.send(first, 1000, Guarantee::Agreed);
        assert!(net.run_till(ms(1), |net| net.life(first).held == number), "{number}");
    }
    let there_and_back = net.snapshot(first).exchange;
    assert_eq!(there_and_back, us(200));
    net.faults.delay_us = (2_000, 2_000);
    net.run_for(ms(200));
    net.faults.delay_us = (100, 100);
    let look = net.snapshot(first);
    assert!(look.rotation > us(1_000), "{:?}", look.rotation);
    assert_eq!(look.exchange, there_and_back);
}

#[test]
fn safe_messages_one_after_another_leave_the_token_at_rest() {
    let mut net = calm(3);
    let first = just_rested(&mut net);
    // It goes round, so that the messages begin with a token that has to come to rest.
    assert!(net.run_till(ms(100), |net| (0..3).all(|i| !net.snapshot(i).has_token)));
    let before = net.snapshot(first).counters.token_visits;
    for number in 1..=400 {
        net.send(first, 1000, Guarantee::Safe);
        let limit = if number == 1 { ms(2) } else { us(700) };
        assert!(net.run_till(limit, |net| net.delivered(first).len() == number), "{number}");
    }
    // A rotation each 25 ms: four in the 80 ms that they take.
    let visits = net.snapshot(first).counters.token_visits - before;
    assert!((3..=10).contains(&visits), "{visits} visits of the token for 400 messages");
    net.run_for(ms(1));
    assert!((0..3).all(|index| net.delivered(index).len() == 400), "all are told of the last");
}

#[test]
fn a_lost_request_a_lost_ack_and_a_lost_message_are_made_up_for() {
    for drop in 0..6 {
        let mut net = calm(3);
        let holder = just_rested(&mut net);
        let sender = (holder + 1) % 3;
        let mut seen = 0;
        net.filter = Some(Box::new(move |_, _, _, _| {
            seen += 1;
            seen == drop + 1
        }));
        net.send(sender, 500, Guarantee::Agreed);
        let held = net.run_till(ms(60), |net| {
            net.life(sender).held == 1 && (0..3).all(|i| net.delivered(i).len() == 1)
        });
        assert!(held, "datagram {drop} lost");
        net.run_for(ms(100));
        check::settled(&net);
        assert_eq!(net.views(0).len(), net.views(1).len());
        assert_eq!(net.snapshot(0).counters.gathers, 1, "no loss of one datagram breaks the ring");
    }
}

#[test]
fn an_idle_ring_rotates_fourteen_times_a_second_and_does_nothing_else() {
    let mut net = calm(3);
    net.run_for(ms(100));
    net.trace.clear();
    net.run_for(ms(1000));
    let datagrams = net.trace.len();
    assert!((39..=42).contains(&datagrams), "{datagrams} datagrams per idle second");
    assert_eq!(net.snapshot(0).counters.gathers, 1);
    assert_eq!(net.snapshot(0).counters.token_resent, 0);
}

#[test]
fn a_token_that_is_lost_in_an_idle_ring_is_soon_found() {
    for drop in 0..3 {
        let mut net = calm(3);
        net.run_for(ms(200));
        just_rested(&mut net);
        net.trace.clear();
        let mut seen = 0;
        net.filter = Some(Box::new(move |_, _, _, _| {
            seen += 1;
            seen == drop + 1
        }));
        assert!(net.run_till(ms(100), |net| !net.trace.is_empty()), "it sets out");
        // Sent again by who sent it round, and by all behind that one in turn.
        assert!(net.run_till(ms(7), |net| (0..3).any(|index| net.snapshot(index).has_token)));
        net.run_for(ms(300));
        assert_eq!(net.snapshot(0).counters.gathers, 1, "hop {drop}");
    }
}

#[test]
fn a_token_that_is_lost_on_its_way_to_who_asked_for_it_is_soon_found() {
    let mut net = calm(3);
    net.run_for(ms(200));
    let sender = (just_rested(&mut net) + 1) % 3;
    let mut seen = 0;
    net.filter = Some(Box::new(move |_, _, to, _| {
        seen += u32::from(to == sender);
        to == sender && seen == 1
    }));
    net.send(sender, 100, Guarantee::Agreed);
    assert!(net.run_till(ms(10), |net| net.delivered(sender).len() == 1), "it asks again");
}

#[test]
fn a_token_that_never_rests_circulates_and_nobody_asks_for_it() {
    let mut net = Net::with_config(4, 3, |_, config| {
        config.timing.presence_min = ms(1000);
        config.timing.rest_max = ms(0);
    });
    net.faults = Faults { delay_us: (100, 100), ..Faults::default() };
    assert!(net.run_till(ms(1000), Net::is_whole));
    net.run_for(ms(50));
    let before = net.snapshot(2).counters;
    net.run_for(ms(40));
    let visits = net.snapshot(2).counters.token_visits - before.token_visits;
    assert!((95..=105).contains(&visits), "{visits} rotations of 400 µs in 40 ms");
    for _ in 0..20 {
        net.send(1, 1000, Guarantee::Agreed);
        net.send(3, 1000, Guarantee::Safe);
        net.run_for(us(730));
    }
    net.run_for(ms(10));
    check::settled(&net);
    for index in 0..4 {
        let snapshot = net.snapshot(index);
        assert_eq!(net.delivered(index).len(), 40);
        assert!(!snapshot.has_token, "it rests nowhere");
        let counters = snapshot.counters;
        assert_eq!((counters.token_requests, counters.token_resent, counters.gathers), (0, 0, 1));
    }
}

#[test]
fn progress_tells_what_was_submitted_and_what_is_on_its_way() {
    let mut net = calm(3);
    let holder = just_rested(&mut net);
    let sender = (holder + 1) % 3;
    let before = net.progress(sender);
    net.send(sender, 100, Guarantee::Agreed);
    let asked = net.progress(sender);
    assert_eq!((asked.submitted.0, asked.numbered), (before.submitted.0 + 1, before.numbered));
    net.run_for(us(250));
    let sent = net.progress(sender);
    assert_eq!(sent.numbered, asked.submitted);
    assert_eq!(sent.token_visits, before.token_visits + 1);
}

#[test]
fn requesters_in_turns_do_not_starve_the_third() {
    let mut net = calm(3);
    for _ in 0..400 {
        for index in 0..2 {
            net.send(index, 100, Guarantee::Agreed);
            net.run_for(us(500));
        }
    }
    net.run_for(ms(100));
    check::settled(&net);
    for index in 0..3 {
        assert_eq!(net.delivered(index).len(), 800);
        assert_eq!(net.snapshot(index).counters.gathers, 1, "node {index} never lost the token");
    }
}

#[test]
fn nothing_is_kept_once_all_have_it() {
    let mut net = calm(3);
    for index in 0..3 {
        net.send(index, 50_000, Guarantee::Agreed);
    }
    net.run_for(ms(200));
    check::settled(&net);
    for index in 0..3 {
        let snapshot = net.snapshot(index);
        assert_eq!((snapshot.log_packets, snapshot.partial_bytes), (0, 0), "{snapshot:?}");
    }
}

#[test]
fn a_throttled_node_slows_everyone_down_and_lets_them_go_again() {
    let mut net = calm(3);
    let keep_sending = |net: &mut Net, rounds: u32| {
        let before = net.delivered(0).len();
        for _ in 0..rounds {
            for index in 0..2 {
                while net.snapshot(index).queue_messages < 200 {
                    net.send(index, 1000, Guarantee::Agreed);
                }
            }
            net.run_for(ms(1));
        }
        net.delivered(0).len() - before
    };
    let free = keep_sending(&mut net, 20);
    net.ring(2).throttle(true);
    keep_sending(&mut net, 5);
    let slow = keep_sending(&mut net, 20);
    assert!(slow * 20 < free, "{slow} messages instead of {free}");
    // What the throttled node itself has to say still gets through.
    let own = net.life(2).held;
    net.send(2, 1000, Guarantee::Agreed);
    assert!(net.run_till(ms(50), |net| net.life(2).held > own));
    net.ring(2).throttle(false);
    keep_sending(&mut net, 5);
    let again = keep_sending(&mut net, 20);
    assert!(again * 2 > free, "{again} messages instead of {free}");
    check::safety(&net);
}

#[test]
fn what_was_missed_is_repeated_to_each_node_by_itself() {
    let mut net = calm(3);
    let first = just_rested(&mut net);
    net.trace.clear();
    net.faults.loss = 100;
    for _ in 0..50 {
        net.send(first, 1000, Guarantee::Agreed);
        net.run_for(ms(1));
    }
    net.faults.loss = 0;
    net.run_for(ms(100));
    assert_eq!(net.delivered((first + 1) % 3).len(), 50);
    let repeated: u64 = (0..3).map(|index| net.snapshot(index).counters.repeated).sum();
    assert!(repeated > 0, "something was lost");
    // Whoever missed it may not be reached by multicast.
    let to_each =
        net.trace.iter().filter(|(_, _, to, bytes)| *to == Destination::Each && *bytes > 1000);
    assert_eq!(to_each.count() as u64, repeated);
}
