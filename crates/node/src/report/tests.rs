//! What is said of a node that others have left out.

use super::*;
use quorba_engine::order::{
    Boot, Config, DomainKey, GatherReason, Hold, LeftOut, Ring, RingId, Timing, ViewKind,
};
use std::os::unix::fs::PermissionsExt;

const FILE: &str = "[domain]\nid = \"d\"\nkey_file = \"domain.key\"\n\
    [node.n1]\nhost = \"10.0.0.1\"\n[node.n2]\nhost = \"10.0.0.2\"\n\
    [node.n3]\nhost = \"10.0.0.3\"\n";

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

/// As if a ring of `members` were installed.
fn order(members: NodeSet) -> Snapshot {
    let config = Config {
        me: node(0),
        nodes: NodeSet::first(3),
        domain_key: DomainKey::new([7; 32]),
        domain_digest: 1,
        datagram_bytes_max: 1400,
        encrypt: false,
        accelerated: false,
        hold: Hold::default(),
        timing: Timing::default(),
    };
    let boot = Boot { incarnation: 1, salt: [1; 16], ring_seq_min: 0 };
    let ring = Ring::new(config, boot, quorba_base::Instant::ZERO);
    Snapshot { members, ..ring.snapshot() }
}

#[test]
fn who_is_left_out_for_its_links_is_shown_with_the_reason_and_when_it_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("quorba.toml");
    fs::write(&path, FILE).expect("written");
    let key = folder.path().join("domain.key");
    fs::write(&key, "7e".repeat(32)).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
    let mut reporter = Reporter::new(
        (Arc::new(Domain::load(&path).expect("a domain")), "".into()),
        Groups::default(),
        node(0),
        1,
    );
    let members = NodeSet::first(2);
    reporter.saw_view(&View {
        kind: ViewKind::Regular,
        ring: RingId { seq: 3, representative: node(0) },
        members,
        previous: None,
        transitional: members,
        left: vec![(node(2), LeaveReason::PoorLinks)],
        joined: NodeSet::EMPTY,
        reason: GatherReason::PoorLinks(node(2)),
        incarnations: Vec::new(),
        unheld: None,
    });
    let again_in = quorba_base::Duration::from_millis(2_400);
    let out = LeftOut { node: node(2), cause: LeaveReason::PoorLinks, again_in };
    let order = Snapshot { left_out: vec![out], ..order(members) };
    let nodes = reporter.nodes(&order, PrimaryStatus::Primary, &BTreeMap::new());
    assert_eq!(
        nodes[2].standing,
        "much of what goes to it or comes from it is lost or late; its links are measured \
         again in 3 s, and it is taken in if good"
    );
    let told = Snapshot { told_out: true, ..order };
    let nodes = reporter.nodes(&told, PrimaryStatus::Primary, &BTreeMap::new());
    assert!(nodes[0].standing.starts_with("left out by the others"), "{}", nodes[0].standing);
}
