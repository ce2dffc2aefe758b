//! What a group costs that nobody calls, in the heap of a node that has a member of it.
//!
//! Bytes are counted, not measured: the same build counts the same.

#[allow(dead_code, unreachable_pub, reason = "shared with tests that want more")]
#[path = "stage/plan.rs"]
mod plan;

use peak_alloc::PeakAlloc;
use plan::Plan;
use quorba_base::{Duration, Instant, NodeId};
use quorba_engine::replica::{DriverOutput, GroupId, ServerCommand};
use quorba_engine::{Node, Output};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// As the plan wants it.
const STATE_OBJECT: &[u8] = b"state";
const UNAVAILABLE_WAIT: Duration = Duration::from_secs(3);

fn id(index: usize) -> NodeId {
    NodeId::new(index as u8).expect("in range")
}

/// A node with so many groups, and what of the heap it has.
fn counted(groups: usize, with_servers: bool) -> usize {
    let config = Plan { groups, ..Plan::default() }.config(0);
    let before = HEAP.current_usage();
    let mut now = Instant::ZERO;
    let mut node = Node::new(config, now);
    let ids = (0..groups as u64).map(GroupId);
    rest(&mut node, &mut now);
    if with_servers {
        ids.clone().for_each(|group| node.handle_server_up(now, group));
        rest(&mut node, &mut now);
        let snapshot = node.snapshot();
        assert!(snapshot.groups.values().all(|group| group.local == Some("serving")));
    }
    HEAP.current_usage() - before
}

/// Ten seconds pass; connections to servers are made at once.
fn rest(node: &mut Node, now: &mut Instant) {
    let until = *now + Duration::from_secs(10);
    loop {
        while let Some(output) = node.poll() {
            if let Output::Replica(DriverOutput::Server { group, command }) = output
                && let ServerCommand::Connect(channel) = command
            {
                node.handle_server_connected(*now, group, channel);
            }
        }
        match node.poll_timeout().filter(|at| *at <= until) {
            Some(at) => *now = at.max(*now),
            None => return *now = until,
        }
        node.handle_timeout(*now);
    }
}

fn per_group(with_servers: bool) -> usize {
    let more = 4000;
    (counted(more + 1, with_servers) - counted(1, with_servers)) / more
}

/// One test, for the allocator counts all threads.
#[test]
fn a_resting_group_costs_six_kilobytes() {
    let (without, with) = (per_group(false), per_group(true));
    println!("{without} bytes without servers, {with} with servers that nobody calls");
    assert!(without <= 5_700, "{without} bytes without a server");
    assert!(with <= 6_400, "{with} bytes with a server");
}
