//! Domain files: that differ, that are applied, and that nodes are told to read again.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::wait_until;

#[test]
fn nodes_whose_files_have_other_groups_form_one_domain_and_say_so() {
    let (one, other) = (bank("bank", &ALL, ""), bank("bank", &ALL, "stuck_ms = 7000"));
    let more = format!("{other}{}", bank("more", &ALL, ""));
    let mut cluster = Cluster::of_files([&one, &more, ""]);
    cluster.start_all();
    cluster.wait_healthy();
    let all: Vec<Vec<String>> = (0..3).map(|node| cluster.groups_at(node)).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
    let is_told = |node: usize| {
        cluster.warnings(node).iter().any(|it| it.contains("domain file") && it.contains("bank"))
    };
    // The groups are those of one of the files, and the nodes that have others say so.
    assert!((0..3).filter(|node| is_told(*node)).count() >= 1, "{}", cluster.status());
    cluster.write_file("wanted", &one);
    cluster.ok(&["config", "apply", "wanted.toml", "--yes"]);
    cluster.wait_groups(&["bank"]);
    wait_until("those whose files are right say nothing", || {
        cluster.warnings(0).iter().all(|it| !it.contains("domain file")) && is_told(1) && is_told(2)
    });
    assert!(cluster.warnings(1).iter().any(|it| it.contains("it alone has: more")));
    assert!(cluster.warnings(2).iter().any(|it| it.contains("it lacks: bank")));
    // Who starts a node with another file finds it in the log.
    cluster.kill(1);
    cluster.start_node(1);
    cluster.wait_healthy();
    let log = cluster.log(1);
    assert!(log.contains("the domain file of this node is not what runs"), "{log}");
}

#[test]
fn a_file_is_applied_after_its_difference_was_shown() {
    let cluster = Cluster::start(&(bank("bank", &ALL, "") + &bank("gone", &ALL, "")));
    let file = bank("bank", &ALL, "stuck_ms = 7000") + &bank("new", &["n1", "n2"], "");
    cluster.write_file("next", &file);
    let plan = cluster.json(&["config", "apply", "next.toml", "--dry-run"]);
    assert_eq!(plan["plan"]["creates"], json!(["new"]));
    assert_eq!(plan["plan"]["changes"][0]["group"], "bank");
    assert_eq!(plan["plan"]["deletes"], json!(["gone"]));
    cluster.wait_groups(&["bank", "gone"]);
    let said = cluster.refused(&["config", "apply", "next.toml"]);
    assert!(said.contains("gone"), "{said}");
    cluster.wait_groups(&["bank", "gone", "new"]);
    cluster.ok(&["config", "apply", "next.toml", "--yes"]);
    cluster.wait_groups(&["bank", "new"]);
    let again = cluster.ok(&["config", "apply", "next.toml"]);
    assert!(again.contains("as the file says"), "{again}");
    cluster.wait_healthy();
    assert_eq!(cluster.bank(2, "new").increment("a").expect("it answers"), 1);
}

fn count(cluster: &Cluster, node: usize, what: &str) -> usize {
    cluster.log(node).lines().filter(|line| line.contains(what)).count()
}

#[test]
fn nodes_that_are_told_to_read_their_files_again_do_once_what_they_say() {
    let cluster = Cluster::start(&(bank("bank", &ALL, "") + &bank("gone", &ALL, "")));
    let id = || cluster.json(&["group", "show", "bank"]);
    assert!(id()["nodes"].is_array());
    let next = bank("bank", &ALL, "stuck_ms = 7000") + &bank("new", &ALL, "durable = true");
    for name in ALL {
        cluster.write_file(name, &next);
    }
    (0..3).for_each(|node| cluster.signal(node, Signal::HUP));
    for node in 0..3 {
        wait_until("each has read its file", || {
            count(&cluster, node, "the domain file was read again") == 1
        });
        // Nothing is deleted by it; the command that does is named.
        assert_eq!(count(&cluster, node, "quorba group delete gone --yes"), 1);
    }
    cluster.wait_groups(&["bank", "gone", "new"]);
    for node in 0..3 {
        for (what, group) in [("is created", "new"), ("is changed", "bank")] {
            let log = cluster.log(node);
            let lines = log.lines().filter(|line| line.contains(&format!("the group {what}")));
            let lines: Vec<_> = lines.filter(|line| line.contains(group)).collect();
            assert_eq!(lines.len(), 1, "once, whoever was told: {log}");
            assert!(lines[0].contains("file-"), "under a name: {}", lines[0]);
        }
    }
    cluster.wait_healthy();
    assert_eq!(cluster.bank(1, "new").increment("a").expect("it answers"), 1);
    // What cannot be done is named, with what does it; what is wrong changes nothing.
    cluster.write_file("n2", &(bank("bank", &ALL, "durable = true") + &bank("new", &ALL, "")));
    cluster.signal(1, Signal::HUP);
    wait_until("what cannot change is named", || {
        let log = cluster.log(1);
        ["bank", "new"].iter().all(|group| {
            let next = format!("quorba group delete {group} --yes");
            log.lines().any(|line| line.contains("durable") && line.contains(&next))
        })
    });
    fs::write(cluster.folder.path().join("n2.toml"), "[domain\n").expect("written");
    cluster.signal(1, Signal::HUP);
    wait_until("a wrong file is told", || count(&cluster, 1, "the domain file has errors") == 1);
    cluster.wait_groups(&["bank", "gone", "new"]);
    assert_eq!(cluster.bank(1, "new").increment("b").expect("it answers"), 2);
    // Status holds what runs against the file as it is now.
    wait_until("the nodes say in what their files differ", || {
        let warned = |node: usize, what: &str| {
            cluster.warnings(node).iter().any(|it| it.contains("domain file") && it.contains(what))
        };
        warned(0, "it lacks: gone") && warned(1, "it says something else of: bank, new")
    });
}

/// What one node's file does not say, the others' may.
#[test]
fn a_node_without_a_shared_port_has_the_groups_of_all_others() {
    let mut cluster = Cluster::of_files([""; 3]);
    let path = cluster.folder.path().join("n3.toml");
    let text = fs::read_to_string(&path).expect("written");
    let (before, _) = text.split_once("[gateway]").expect("it has one");
    fs::write(&path, before).expect("written");
    cluster.start_all();
    cluster.wait_healthy();
    cluster.create("bank", &bank("bank", &ALL, ""), &[]);
    cluster.wait_healthy();
    cluster.wait_groups(&["bank"]);
    assert_eq!(cluster.bank(1, "bank").increment("a").expect("it answers"), 1);
    wait_until("the node says what it lacks", || {
        count(&cluster, 2, "clients cannot reach the group on this node") == 1
    });
}
