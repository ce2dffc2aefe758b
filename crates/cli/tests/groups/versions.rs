//! The versions of references to groups of the domain file: what commands print, nodes say, and
//! clients are told.

use std::fs;
use std::time::Duration;

use quorba_orb::{Client, ClientOptions, Reference};
use serde_json::Value;

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::wait_until;

fn made(cluster: &Cluster, more: &[&str]) -> Reference {
    let text = cluster.ok(&[&["ior", "make", "bank"], more].concat());
    Reference::parse(text.trim()).expect("a reference")
}

fn client(reference: &Reference) -> Client {
    let call_timeout = Some(Duration::from_secs(20));
    Client::new(reference, ClientOptions { call_timeout, ..ClientOptions::default() })
}

fn version(reference: &Reference) -> u32 {
    reference.group().expect("it names its group").reference_version
}

/// The client goes on calling until it was told that version.
fn is_told(client: &mut Client, wanted: u32) {
    wait_until("the client is told the version", || {
        assert!(!client.non_existent().expect("it answers"));
        version(client.reference()) == wanted
    });
}

fn all_say(cluster: &Cluster, wanted: u32) {
    wait_until("all nodes have the version", || {
        (0..3).all(|node| cluster.group_at(node, "bank")["reference_version"] == wanted)
    });
}

#[test]
fn clients_with_old_references_are_told_what_has_changed_of_their_group() {
    let mut cluster = Cluster::start(&bank("bank", &["n1", "n2"], ""));
    let first = made(&cluster, &[]);
    let listed = cluster.json(&["group", "list"]);
    let group = first.group().expect("it names its group");
    assert_eq!(listed["id"], format!("{:016x}", group.group_id));
    assert_eq!((&*group.domain_id, group.reference_version), (&b"groups"[..], 0));
    assert_eq!(listed["reference_version"], Value::from(0));
    let of_another_object = made(&cluster, &["--key", "other"]);
    assert_eq!(of_another_object.group(), None, "the group is made for one object");
    let mut bank_client = client(&first);
    is_told(&mut bank_client, 0);

    for (file, members, wanted) in [("three", &ALL[..], 1), ("other", &ALL[1..], 2)] {
        cluster.write_file(file, &bank("bank", members, ""));
        cluster.ok(&["config", "apply", &format!("{file}.toml")]);
        cluster.wait_healthy();
        all_say(&cluster, wanted);
        is_told(&mut bank_client, wanted);
        assert_eq!(made(&cluster, &[]).group(), bank_client.reference().group());
    }

    // The whole domain is stopped, and begins again with another gateway.
    for node in 0..3 {
        cluster.kill(node);
    }
    for file in ALL.iter().chain(&["quorba"]) {
        let path = cluster.folder.path().join(format!("{file}.toml"));
        let text = fs::read_to_string(&path).expect("it is there");
        let other = text.replace("gateway_port_offset = 2", "gateway_port_offset = 3");
        assert_ne!(text, other);
        fs::write(&path, other).expect("written");
    }
    cluster.start_all();
    cluster.wait_healthy();
    all_say(&cluster, 3);
    let mut late = client(&first);
    is_told(&mut late, 3);
    let newest = late.reference();
    assert_eq!(newest.group(), made(&cluster, &[]).group());
    let ports: Vec<u16> = newest.addresses().iter().map(|address| address.port).collect();
    assert!(ports.contains(&(cluster.gateway(2) + 1)), "{ports:?}");
}
