//! What nodes have the system bring to disk before they answer, seen at its calls.
//!
//! What it is not: a test of what a disk keeps. Invariant: what is not seen fails the test.

mod stage;
#[path = "../../journal/tests/syncs/mod.rs"]
mod syncs;

use std::process::Command;

use rustix::process::{Signal, kill_process};
use stage::{Domain, QUORBA, pids, up_as, wait_until};
use syncs::Syncs;

/// When the third node ends, the others write down in what ring they go on.
#[test]
fn an_answer_of_a_durable_group_and_a_new_ring_are_on_the_disks_of_a_majority_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let syncs = Syncs::new(folder.path());
    let domain = Domain::start_by("durable = true\n", |folder| {
        let mut command = Command::new(QUORBA);
        command.arg("up");
        syncs.watch(&mut command);
        up_as(command, folder)
    });
    let healthy = domain.wait_healthy();
    let of = |node: usize, name: &str| {
        let part = format!("/n{node}/");
        syncs.count(|file| file.contains(&part) && file.ends_with(name))
    };
    for node in 1..=3 {
        assert!(of(node, "/node.state") > 0, "n{node} takes part, and its boot is on no disk");
        let folder = format!("/n{node}");
        assert!(syncs.count(|file| file.ends_with(&folder)) > 0, "the file's name, at n{node}");
    }
    let logs = || [1, 2, 3].map(|node| of(node, ".seg"));
    let mut bank = domain.bank(0);
    let mut call = |reference: &str| {
        let before = logs();
        bank.increment(reference).expect("it answers");
        let grown = logs().iter().zip(before).filter(|(now, before)| *now > before).count();
        assert!(grown >= 2, "call {reference} is answered, and on the disks of {grown} nodes");
    };
    (0..40).for_each(|number| call(&number.to_string()));
    let before = [1, 2].map(|node| of(node, "/node.state"));
    let running = pids(&healthy);
    let third = running.iter().find(|(name, _)| name == "n3").expect("it runs");
    kill_process(third.1, Signal::KILL).expect("it runs");
    wait_until("n1 and n2 have written down in what ring they go on", || {
        [1, 2].iter().zip(before).all(|(node, before)| of(*node, "/node.state") > before)
    });
    call("after n3 ended");
}
