//! One claim each, over a quiet network of real rings.

mod stage;

use quorba_groups::{Gone, JoinReason, MESSAGE_HEADER_BYTES, Refused};
use quorba_order::{LeaveReason, ViewKind};
use stage::harness::ms;
use stage::{Stage, Told, name};

#[test]
fn a_join_and_a_leave_are_told_to_all_members_in_one_order() {
    let mut stage = Stage::formed(3, 1);
    let (a, b) = (stage.process(0), stage.process(1));
    let group = stage.join(0, a, "bank").unwrap();
    stage.run_for(ms(100));
    let other = stage.join(1, b, "bank").unwrap();
    stage.run_for(ms(100));
    let (id_a, id_b) = (stage.id(0, a), stage.id(1, b));
    let views = stage.views(0, a, group);
    assert_eq!(views.len(), 2);
    assert_eq!(*views[1].members, [id_a, id_b]);
    assert_eq!(views[1].joined, [(id_b, JoinReason::Joined)]);
    assert_eq!(stage.views(1, b, other), views[1..]);
    stage.leave(0, a, group);
    stage.run_for(ms(100));
    let last = stage.views(0, a, group).pop().unwrap();
    assert_eq!(last.left, [(id_a, Gone::Left)], "the leaver is told, too");
    assert_eq!(stage.views(1, b, other).pop().unwrap(), last);
    stage.check_settled();
}

#[test]
fn a_message_goes_to_the_members_at_its_place_and_to_nobody_else() {
    let mut stage = Stage::formed(3, 2);
    let (a, b, c) = (stage.process(0), stage.process(1), stage.process(1));
    let group = stage.join(0, a, "g").unwrap();
    let other = stage.join(1, b, "g").unwrap();
    let elsewhere = stage.join(1, c, "h").unwrap();
    stage.run_for(ms(100));
    stage.send(0, a, group).unwrap();
    assert_eq!(stage.send(1, c, other), Err(Refused::NotMember));
    stage.run_for(ms(100));
    let messages =
        |told: Vec<Told>| told.iter().filter(|t| matches!(t, Told::Message { .. })).count();
    assert_eq!(messages(stage.told(0, a, group)), 1);
    assert_eq!(messages(stage.told(1, b, other)), 1);
    assert_eq!(messages(stage.told(1, c, elsewhere)), 0);
    stage.check_settled();
}

#[test]
fn a_process_that_ends_leaves_all_its_groups_and_the_reason_is_told() {
    let mut stage = Stage::formed(2, 3);
    let (a, b) = (stage.process(0), stage.process(1));
    let groups: Vec<_> = (0..5).map(|i| stage.join(0, a, &format!("g{i}")).unwrap()).collect();
    stage.join(1, b, "g0").unwrap();
    let mine = stage.join(1, b, "g3").unwrap();
    stage.run_for(ms(100));
    assert_eq!(groups.len(), 5);
    stage.gone(0, a);
    stage.run_for(ms(100));
    let id = stage.id(0, a);
    let last = stage.views(1, b, mine).pop().unwrap();
    assert_eq!(last.left, [(id, Gone::Died)]);
    assert_eq!(stage.host(1).groups.snapshot().groups, 2);
    stage.check_settled();
}

#[test]
fn a_node_that_dies_takes_its_members_along_with_the_rings_reason() {
    let mut stage = Stage::formed(3, 4);
    let numbers: Vec<_> = (0..3).map(|i| stage.process(i)).collect();
    let groups: Vec<_> = (0..3).map(|i| stage.join(i, numbers[i], "g").unwrap()).collect();
    stage.run_for(ms(100));
    let gone = stage.id(2, numbers[2]);
    let before = stage.views(0, numbers[0], groups[0]).len();
    stage.net.crash(2);
    stage.net.report_lost(2);
    stage.until_settled();
    let views = stage.views(0, numbers[0], groups[0]).split_off(before);
    let kinds: Vec<_> = views.iter().map(|view| view.kind).collect();
    assert_eq!(kinds, [ViewKind::Transitional, ViewKind::Regular]);
    let left = [(gone, Gone::Node(LeaveReason::ProcessLost))];
    assert!(views.iter().all(|view| view.left == left && view.members.len() == 2));
    assert_eq!(stage.views(1, numbers[1], groups[1]).pop(), views.last().cloned());
    stage.check_settled();
}

#[test]
fn a_merge_gives_each_group_one_view_and_untouched_groups_none() {
    let mut stage = Stage::formed(4, 5);
    let numbers: Vec<_> = (0..4).map(|i| stage.process(i)).collect();
    let shared: Vec<_> = (0..4).map(|i| stage.join(i, numbers[i], "shared").unwrap()).collect();
    let near = stage.join(0, numbers[0], "near").unwrap();
    stage.join(1, numbers[1], "near").unwrap();
    stage.run_for(ms(100));
    let untouched = stage.views(0, numbers[0], near).len();
    stage.net.partition(0b1100);
    stage.run_for(ms(1_000));
    let before = stage.views(0, numbers[0], shared[0]);
    assert_eq!(before.last().unwrap().members.len(), 2);
    stage.net.heal();
    stage.until_settled();
    let after = stage.views(0, numbers[0], shared[0]);
    assert_eq!(after.len(), before.len() + 1, "one view, not one per member");
    let merged = after.last().unwrap();
    let others: Vec<_> = merged.joined.iter().map(|(p, reason)| (p.node, *reason)).collect();
    let node = stage::harness::node;
    assert_eq!(others, [(node(2), JoinReason::Merged), (node(3), JoinReason::Merged)]);
    for (index, group) in shared.iter().enumerate() {
        let mine = stage.views(index, numbers[index], *group).pop().unwrap();
        assert_eq!((mine.id, &mine.members), (merged.id, &merged.members));
    }
    assert_eq!(stage.views(0, numbers[0], near).len(), untouched);
    stage.check_settled();
}

/// Corosync's ghost members (2ab885ab): a node dies while memberships are being exchanged.
#[test]
fn a_node_that_dies_before_all_announcements_are_in_leaves_no_ghost() {
    for cut in 0..40 {
        let mut stage = Stage::formed(4, 60 + cut);
        for index in 0..4 {
            let process = stage.process(index);
            stage.join(index, process, "g").unwrap();
            stage.join(index, process, &format!("own{index}")).unwrap();
        }
        stage.run_for(ms(100));
        stage.net.crash(3);
        stage.net.report_lost(3);
        // Somewhere between the first Join of the ring and the settled groups.
        stage.run_for(stage::harness::us(100 * cut));
        stage.net.crash(2);
        stage.net.report_lost(2);
        stage.until_settled();
        assert_eq!(stage.members(0, "g").len(), 2);
        assert!(stage.members(0, "own3").is_empty() && stage.members(1, "own2").is_empty());
        stage.check_settled();
    }
}

#[test]
fn nothing_can_be_sent_until_views_are_settled_and_joins_wait() {
    let mut stage = Stage::new(2, 8);
    let a = stage.process(0);
    let group = stage.join(0, a, "g").unwrap();
    assert_eq!(stage.send(0, a, group), Err(Refused::NotMember));
    assert_eq!(stage.join(0, a, "g"), Err(Refused::AlreadyMember));
    stage.until_settled();
    assert_eq!(stage.send(0, a, group), Ok(()));
    let host = stage.host(0);
    host.groups.leave(a, group).unwrap();
    host.wants.clear();
    assert_eq!(host.groups.send(a, group, &mut [0; 20]), Err(Refused::Leaving));
    assert_eq!(host.groups.join(a, &name("g")), Err(Refused::Leaving));
    assert_eq!(host.groups.leave(a, group), Err(Refused::Leaving));
    stage.until_settled();
    stage.join(0, a, "g").unwrap();
    stage.until_settled();
    stage.check_settled();
}

#[test]
fn a_frame_is_sent_as_it_is_and_nothing_of_it_is_copied() {
    let mut stage = Stage::formed(1, 9);
    let a = stage.process(0);
    let group = stage.join(0, a, "g").unwrap();
    stage.until_settled();
    let mut frame = vec![7; MESSAGE_HEADER_BYTES + 100];
    let host = stage.host(0);
    host.groups.send(a, group, &mut frame).unwrap();
    let payload = bytes::Bytes::from(frame);
    let (me, incarnation) = (stage::harness::node(0), host.incarnation);
    host.groups.handle_delivery(me, incarnation, &payload);
    let Some(quorba_groups::Output::Message { payload: got, .. }) = host.groups.poll() else {
        panic!("delivered to its sender");
    };
    assert_eq!(got.as_ptr(), payload[MESSAGE_HEADER_BYTES..].as_ptr());
    assert_eq!(got.len(), 100);
}

#[test]
fn what_is_malformed_is_skipped_with_a_reason() {
    let mut stage = Stage::formed(2, 10);
    let junk = bytes::Bytes::from_static(&[77, 1, 2]);
    stage.net.submit_payload(0, junk, quorba_order::Guarantee::Agreed).unwrap();
    stage.net.drain(0);
    stage.run_for(ms(100));
    assert_eq!((stage.host(0).malformed, stage.host(1).malformed), (1, 1));
    let a = stage.process(0);
    stage.join(0, a, "still works").unwrap();
    stage.run_for(ms(100));
    assert_eq!(stage.members(1, "still works").len(), 1);
    assert!(stage.host(0).groups.members(&name("nowhere")).is_empty());
}
