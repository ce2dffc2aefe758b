//! Messages over links, and what is told of them.

use super::*;

/// Two nodes that pass messages.
fn pair() -> Net {
    let mut net = Net::new(2);
    net.start(0, &[KEY]);
    net.start(1, &[KEY]);
    until_up(&mut net);
    net
}

fn is_up(net: &Net, from: usize, to: usize) -> bool {
    net.node(from).up().any(|(other, _)| other == node(to))
}

fn until_up(net: &mut Net) {
    net.until("messages pass", |net| is_up(net, 0, 1) && is_up(net, 1, 0));
}

fn came(net: &Net, to: usize) -> Vec<(u64, Bytes)> {
    let message = |event: &LinkEvent| match event {
        LinkEvent::Message { incarnation, bytes, .. } => Some((*incarnation, bytes.clone())),
        _ => None,
    };
    net.told[to].iter().filter_map(message).collect()
}

fn send(net: &mut Net, from: usize, lane: Lane, message: &[u8]) -> Sent {
    let links = net.nodes[from].as_mut().expect("it runs");
    links.send(node(1 - from), lane, Bytes::copy_from_slice(message))
}

fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    message.resize(length.max(4), number as u8);
    message
}

#[test]
fn messages_come_in_their_order_from_the_boot_that_sent_them_in_both_directions() {
    let mut net = pair();
    let lengths = [4, 100, 70_000, MESSAGE_BYTES_MAX, 5, 64 << 10];
    for number in 0..60 {
        let message = numbered(number, lengths[number as usize % lengths.len()]);
        for from in [0, 1] {
            net.until("there is room", |net| send(net, from, Lane::Bulk, &message) == Sent::Queued);
        }
    }
    net.until("all came", |net| came(net, 0).len() == 60 && came(net, 1).len() == 60);
    for to in [0, 1] {
        for (number, (incarnation, message)) in came(&net, to).into_iter().enumerate() {
            let length = lengths[number % lengths.len()];
            assert_eq!(message, numbered(number as u32, length), "to {to}: {number}");
            assert_eq!(incarnation, if to == 0 { 2 } else { 1 });
        }
    }
}

#[test]
fn a_small_message_overtakes_the_bulk_that_waits() {
    let mut net = pair();
    let mut bulk = 0;
    while send(&mut net, 0, Lane::Bulk, &numbered(bulk, 60_000)) == Sent::Queued {
        bulk += 1;
    }
    assert_eq!(send(&mut net, 0, Lane::Control, b"now"), Sent::Queued);
    assert_eq!(send(&mut net, 0, Lane::Control, b"then"), Sent::Queued);
    net.until("all came", |net| came(net, 1).len() == bulk as usize + 2);
    let came = came(&net, 1);
    assert_eq!((&came[0].1[..], &came[1].1[..]), (&b"now"[..], &b"then"[..]));
}

#[test]
fn a_full_lane_takes_no_more_until_it_says_that_there_is_room_and_the_other_does() {
    let mut net = pair();
    let mut taken = 0;
    while send(&mut net, 0, Lane::Bulk, &numbered(taken, 60_000)) == Sent::Queued {
        taken += 1;
        assert!(taken < 1_000, "the queue is bounded");
    }
    assert_eq!(send(&mut net, 0, Lane::Bulk, &numbered(0, 60_000)), Sent::Full);
    assert_eq!(send(&mut net, 0, Lane::Control, b"still"), Sent::Queued);
    assert!(net.node(0).queued_bytes(node(1)) < 5 << 20);
    net.until("room", |net| net.told[0].contains(&LinkEvent::Room { node: node(1) }));
    assert_eq!(send(&mut net, 0, Lane::Bulk, b"again"), Sent::Queued);
    net.until("all came", |net| came(net, 1).len() == taken as usize + 2);
    let rooms = net.told[0].iter().filter(|event| matches!(event, LinkEvent::Room { .. }));
    assert_eq!(rooms.count(), 1, "it is said once");
}

#[test]
fn nothing_is_sent_to_who_is_not_there_and_a_new_boot_is_told_before_its_messages() {
    let mut net = Net::new(2);
    net.start(0, &[KEY]);
    assert_eq!(send(&mut net, 0, Lane::Control, b"nobody"), Sent::NotConnected);
    for boot in 2..5 {
        net.start(1, &[KEY]);
        until_up(&mut net);
        assert_eq!(send(&mut net, 1, Lane::Control, b"hello"), Sent::Queued);
        net.until("it came", |net| came(net, 0).len() == boot - 1);
        net.nodes[1] = None;
        net.until("its end", |net| net.lost.len() == boot - 1);
    }
    let it = node(1);
    let life = |incarnation| {
        let bytes = Bytes::from_static(b"hello");
        [
            LinkEvent::Up { node: it, incarnation },
            LinkEvent::Message { from: it, incarnation, bytes },
            LinkEvent::Down { node: it },
        ]
    };
    assert_eq!(net.told[0], [life(2), life(3), life(4)].concat());
}

#[test]
fn messages_pass_while_the_domain_keys_change() {
    let mut net = pair();
    for keys in [[KEY, OTHER_KEY].as_slice(), &[OTHER_KEY]] {
        for links in net.nodes.iter_mut().flatten() {
            links.set_keys(keys.iter());
        }
        let before = came(&net, 1).len();
        assert_eq!(send(&mut net, 0, Lane::Control, b"as before"), Sent::Queued);
        net.until("it came", |net| came(net, 1).len() == before + 1);
    }
    assert!(net.told[0].iter().all(|event| !matches!(event, LinkEvent::Down { .. })));
}

#[test]
fn a_frame_that_does_not_authenticate_ends_the_link_and_is_no_message() {
    let mut net = Net::new(2);
    net.start(1, &[KEY]);
    let mut caller = net.stranger(1);
    let challenge = net.hear(&mut caller, 19);
    caller.say(&answer(&KEY, (0, 1), &challenge));
    assert_eq!(net.hear(&mut caller, 40).len(), 40, "the node proves itself");
    caller.say(&[&[0, 0, 0, 5][..], &[7; 21]].concat());
    net.until("it is out", |_| caller.is_out());
    assert!(came(&net, 1).is_empty() && net.lost.is_empty());
}

#[test]
fn when_one_direction_breaks_both_sides_are_told_and_messages_pass_again() {
    for broken in [0, 1] {
        let mut net = pair();
        for round in 1..4 {
            // The connection that node 0 opened ends at one of its ends, and both processes live.
            if broken == 0 {
                net.nodes[0].as_mut().expect("it runs").incoming.clear();
                let links = net.nodes[0].as_mut().expect("it runs");
                links.look_at(node(1));
            } else {
                net.nodes[1].as_mut().expect("it runs").incoming.clear();
                net.nodes[1].as_mut().expect("it runs").look_at(node(0));
            }
            let downs = |net: &Net, at: usize| {
                net.told[at].iter().filter(|e| matches!(e, LinkEvent::Down { .. })).count()
            };
            net.until("both know", |net| downs(net, 0) >= round && downs(net, 1) >= round);
            until_up(&mut net);
        }
        assert_eq!(send(&mut net, 0, Lane::Control, b"again"), Sent::Queued);
        net.until("it came", |net| came(net, 1).len() == 1);
    }
}

#[test]
#[should_panic(expected = "are too many")]
fn a_message_that_is_too_long_is_the_senders_mistake() {
    let mut net = pair();
    send(&mut net, 0, Lane::Bulk, &vec![0; MESSAGE_BYTES_MAX + 1]);
}
