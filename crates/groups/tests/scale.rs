//! Thousands of groups: what is ordered, and what is told, grows with the number of memberships
//! and not faster. Times are printed (`--nocapture`), never asserted.

mod stage;

use quorba_groups::{GROUPS_PER_NODE_MAX, GroupName, Groups, Refused};
use stage::harness::node;
use stage::{Stage, Told, name};
use std::time::Instant;

struct Cost {
    joins: usize,
    join_bytes: usize,
    merge_bytes: usize,
    merge_views: usize,
}

/// `groups` groups with one member on each of four nodes, fifty processes a node; then the ring
/// parts in two and merges.
fn cost(groups: usize) -> Cost {
    let mut stage = Stage::formed(4, 11);
    let before: usize = stage.hosts.iter().map(|host| host.submitted_bytes).sum();
    let start = Instant::now();
    for index in 0..4 {
        let processes: Vec<_> = (0..50).map(|_| stage.process(index)).collect();
        for group in 0..groups {
            stage.join(index, processes[group % 50], &format!("group {group:05}")).unwrap();
        }
    }
    stage.until_settled();
    let joined = start.elapsed();
    let bytes = |stage: &Stage| stage.hosts.iter().map(|h| h.submitted_bytes).sum::<usize>();
    let views = |stage: &Stage| -> usize {
        let told = stage.hosts.iter().flat_map(|host| host.told.values().flatten());
        told.filter(|told| matches!(told, Told::View(_))).count()
    };
    let join_bytes = bytes(&stage) - before;
    for index in 0..4 {
        let snapshot = stage.host(index).groups.snapshot();
        assert_eq!((snapshot.groups, snapshot.memberships), (groups, 4 * groups));
    }
    stage.net.partition(0b1100);
    stage.run_for(stage::harness::ms(1_000));
    let (told, said) = (views(&stage), bytes(&stage));
    let start = Instant::now();
    stage.net.heal();
    stage.until_settled();
    let merged = start.elapsed();
    let cost = Cost {
        joins: 4 * groups,
        join_bytes,
        merge_bytes: bytes(&stage) - said,
        merge_views: views(&stage) - told,
    };
    println!(
        "{groups} groups, {} joins: {joined:.2?} for four nodes and their network, {} B a join; \
         merge: {merged:.2?}, {} B a membership, {} views",
        cost.joins,
        cost.join_bytes / cost.joins,
        cost.merge_bytes / cost.joins,
        cost.merge_views,
    );
    cost
}

#[test]
fn five_thousand_groups_cost_five_times_as_much_as_one_thousand() {
    let (small, large) = (cost(1_000), cost(5_000));
    assert_eq!(large.joins, 20_000);
    // kind, operation, process, group and name.
    let join_bytes = 1 + 8 + 4 + 4 + "group 00000".len();
    assert_eq!(small.join_bytes, small.joins * join_bytes);
    assert_eq!(large.join_bytes, large.joins * join_bytes);
    for cost in [&small, &large] {
        assert_eq!(cost.merge_views, cost.joins, "each member is given one view");
        assert!(cost.merge_bytes < 20 * cost.joins, "{} bytes", cost.merge_bytes);
    }
}

#[test]
fn a_node_has_limits() {
    let mut groups = Groups::new(node(0), 1);
    let process = groups.add_process().unwrap();
    let numbered = |i: usize| GroupName::new(&i.to_be_bytes()).unwrap();
    for index in 0..GROUPS_PER_NODE_MAX {
        groups.join(process, &numbered(index)).unwrap();
    }
    assert_eq!(groups.join(process, &name("one more")), Err(Refused::TooManyGroups));
    let other = groups.add_process().unwrap();
    groups.join(other, &numbered(0)).unwrap();
    assert_eq!(GroupName::new(&[]), None);
    assert_eq!(GroupName::new(&[0; 129]), None);
}
