//! The end of all nodes at once.

use std::thread;

use crate::cluster::{ALL, Cluster, bank};

fn black_out(cluster: &mut Cluster) {
    (0..3).for_each(|node| cluster.kill(node));
    cluster.start_all();
    cluster.wait_healthy();
}

#[test]
fn groups_are_there_after_all_nodes_were_killed() {
    let mut cluster = Cluster::start("");
    cluster.create("bank", &bank("bank", &ALL, ""), &[]);
    cluster.create("gone", &bank("gone", &ALL, ""), &[]);
    cluster.ok(&["group", "delete", "gone", "--yes"]);
    black_out(&mut cluster);
    cluster.wait_groups(&["bank"]);
    assert_eq!(cluster.bank(2, "bank").increment("a").expect("it answers"), 1);
}

#[test]
fn the_first_durable_group_of_a_domain_may_be_created_while_it_runs() {
    let mut cluster = Cluster::start(&bank("plain", &ALL, ""));
    cluster.create("vault", &bank("vault", &ALL, "durable = true"), &[]);
    cluster.wait_healthy();
    let mut recordings = Vec::new();
    for round in 0..2 {
        let mut load = cluster.load("vault", &format!("r{round}"));
        (0..3).for_each(|node| cluster.kill(node));
        let stopping = thread::spawn(move || load.stop());
        cluster.start_all();
        recordings.push(stopping.join().expect("no panic").recording);
        cluster.wait_healthy();
        cluster.account("vault", &[0, 1, 2], &recordings);
    }
    cluster.wait_groups(&["plain", "vault"]);
    // The last durable group goes, and its log with it; the next one begins anew.
    cluster.ok(&["group", "delete", "vault", "--yes"]);
    black_out(&mut cluster);
    cluster.create("vault", &bank("vault", &ALL, "durable = true"), &[]);
    cluster.wait_healthy();
    assert_eq!(cluster.bank(0, "vault").increment("a").expect("it answers"), 1);
    black_out(&mut cluster);
    assert_eq!(cluster.bank(0, "vault").increment("b").expect("it answers"), 2);
}
