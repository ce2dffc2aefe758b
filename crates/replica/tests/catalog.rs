//! Groups that come, change and go: what operators are told, and what nodes come to that were away
//! or have ended.

mod cluster;

use bytes::Bytes;
use cluster::{Cluster, Plan};
use quorba_replica::{
    CatalogChange, CatalogChanged, CatalogRefused, Definition, DefinitionNews, GroupId, Lacks,
    MemberState, ReadConsistency, Style,
};

fn definition(name: &str, text: &str) -> Definition {
    Definition { name: name.into(), text: Bytes::copy_from_slice(text.as_bytes()) }
}

fn create(name: &str, text: &str) -> CatalogChange {
    CatalogChange::Create(definition(name, text))
}

fn change(name: &str, text: &str) -> CatalogChange {
    CatalogChange::Change(definition(name, text))
}

fn delete(name: &str) -> CatalogChange {
    CatalogChange::Delete(name.into())
}

/// An operator at a node asks for it; what became of it so far.
fn ask(c: &mut Cluster, index: usize, operation: &str, change: CatalogChange) -> Told {
    let operation = Bytes::copy_from_slice(operation.as_bytes());
    c.nodes[index].defined.clear();
    c.nodes[index].replica.handle_define(7, operation, change);
    c.drain_all();
    c.settle();
    c.nodes[index].defined.last().cloned()
}

type Told = Option<Result<CatalogChanged, CatalogRefused>>;

fn done(told: Told) -> CatalogChanged {
    told.expect("it is answered").expect("it is carried out")
}

fn refused(told: Told) -> CatalogRefused {
    told.expect("it is answered").expect_err("it is refused")
}

/// What all of these nodes say alike of a name.
fn id_of(c: &Cluster, nodes: &[usize], name: &str) -> Option<GroupId> {
    let all: Vec<_> = nodes.iter().map(|node| c.nodes[*node].replica.catalog()).collect();
    assert!(all.iter().all(|catalog| *catalog == all[0]), "{all:?}");
    all[0].id_of(name)
}

#[test]
fn a_group_is_created_at_all_nodes_and_its_operation_is_done_once() {
    let mut c = Cluster::whole(true);
    let told = done(ask(&mut c, 1, "op1", create("shop", "plain")));
    assert!(!told.is_repeated);
    assert_eq!(id_of(&c, &[0, 1, 2], "shop"), Some(told.id));
    for node in &c.nodes {
        assert_eq!(node.news, [(told.id, DefinitionNews::Created)]);
    }
    let again = done(ask(&mut c, 2, "op1", create("shop", "plain")));
    assert_eq!(again, CatalogChanged { id: told.id, is_repeated: true });
    assert_eq!(c.nodes[0].news.len(), 1, "nothing is created twice");
    let other = refused(ask(&mut c, 2, "op1", create("mill", "plain")));
    assert_eq!(other, CatalogRefused::OperationReused);
}

#[test]
fn a_name_is_free_when_its_group_is_deleted_and_the_next_one_has_another_id() {
    let mut c = Cluster::whole(true);
    let first = done(ask(&mut c, 0, "a", create("shop", "plain"))).id;
    let exists = refused(ask(&mut c, 0, "b", create("shop", "plain")));
    assert_eq!(exists, CatalogRefused::Exists("shop".into()));
    assert_eq!(done(ask(&mut c, 0, "c", delete("shop"))).id, first);
    assert_eq!(id_of(&c, &[0, 1, 2], "shop"), None);
    let unknown = refused(ask(&mut c, 0, "d", delete("shop")));
    assert_eq!(unknown, CatalogRefused::Unknown("shop".into()));
    let second = done(ask(&mut c, 0, "e", create("shop", "plain"))).id;
    assert_ne!(first, second);
    assert_eq!(done(ask(&mut c, 1, "c", delete("shop"))).id, first, "it was done before");
    assert_eq!(id_of(&c, &[0, 1, 2], "shop"), Some(second));
}

#[test]
fn servers_outside_come_change_and_go_like_groups_at_all_nodes_and_at_who_was_away() {
    let mut c = Cluster::whole(true);
    let unknown = refused(ask(&mut c, 0, "a", create("shop", "calls=bank")));
    assert!(matches!(unknown, CatalogRefused::Invalid(_)), "{unknown:?}");
    let bank = done(ask(&mut c, 0, "b", create("bank", "outside=4096"))).id;
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    done(ask(&mut c, 1, "c", create("shop", "calls=bank")));
    let called = refused(ask(&mut c, 1, "d", delete("bank")));
    assert_eq!(called, CatalogRefused::IsCalled("shop".into()));
    done(ask(&mut c, 1, "e", change("bank", "outside=8192")));
    let mill = done(ask(&mut c, 1, "f", create("mill", "outside=4096"))).id;
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.settle();
    let is_outside = |c: &Cluster, id| c.nodes.iter().all(|node| node.replica.is_outside(id));
    assert!(is_outside(&c, bank) && is_outside(&c, mill));
    done(ask(&mut c, 2, "g", delete("shop")));
    assert_eq!(done(ask(&mut c, 2, "h", delete("bank"))).id, bank);
    assert!(c.nodes.iter().all(|node| !node.replica.is_outside(bank)));
    assert_eq!(id_of(&c, &[0, 1, 2], "bank"), None);
    assert!(is_outside(&c, mill), "nobody has spoken of that one");
}

#[test]
fn a_group_becomes_no_server_outside_nor_the_other_way_round() {
    let mut c = Cluster::whole(true);
    done(ask(&mut c, 0, "a", create("bank", "outside=4096")));
    done(ask(&mut c, 0, "b", create("shop", "plain")));
    for (operation, name, text) in [("c", "bank", "plain"), ("d", "shop", "outside=4096")] {
        let other = refused(ask(&mut c, 0, operation, change(name, text)));
        assert_eq!(other, CatalogRefused::OtherKind(name.into()));
    }
    let exists = refused(ask(&mut c, 0, "e", create("bank", "plain")));
    assert_eq!(exists, CatalogRefused::Exists("bank".into()));
}

#[test]
fn nobody_is_answered_before_a_majority_has_it_on_disk() {
    let mut c = Cluster::whole(true);
    (0..3).for_each(|node| c.nodes[node].disk.catalog_is_slow = true);
    assert_eq!(ask(&mut c, 0, "op", create("shop", "plain")), None);
    c.sync_catalog(0);
    c.settle();
    assert!(c.nodes[0].defined.is_empty(), "one disk is none");
    c.sync_catalog(2);
    c.settle();
    assert!(c.nodes[0].defined[0].is_ok());
}

#[test]
fn who_waits_when_the_view_ends_is_told_so_and_asks_again() {
    let mut c = Cluster::whole(true);
    (0..3).for_each(|node| c.nodes[node].disk.catalog_is_slow = true);
    assert_eq!(ask(&mut c, 0, "op", create("shop", "plain")), None);
    c.crash(1);
    c.install(&[0, 2]);
    assert_eq!(c.nodes[0].defined, [Err(CatalogRefused::Interrupted)]);
    assert!(CatalogRefused::Interrupted.may_be_repeated());
    c.settle();
    (0..3).for_each(|node| c.sync_catalog(node));
    assert!(done(ask(&mut c, 0, "op", create("shop", "plain"))).is_repeated);
}

#[test]
fn a_node_that_was_away_comes_to_the_same_groups() {
    let mut c = Cluster::whole(true);
    let mill = done(ask(&mut c, 0, "a", create("mill", "plain"))).id;
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    done(ask(&mut c, 0, "b", delete("mill")));
    let shop = done(ask(&mut c, 0, "c", create("shop", "plain"))).id;
    done(ask(&mut c, 0, "d", change("shop", "reply=99")));
    c.restart(2);
    assert_eq!(c.nodes[2].replica.catalog().id_of("mill"), Some(mill), "so its disk says");
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(id_of(&c, &[0, 1, 2], "shop"), Some(shop));
    assert_eq!(id_of(&c, &[0, 1, 2], "mill"), None);
    let news = &c.nodes[2].news;
    assert!(news.contains(&(mill, DefinitionNews::Deleted)), "{news:?}");
    assert!(news.contains(&(shop, DefinitionNews::Created)), "{news:?}");
}

#[test]
fn what_was_answered_is_there_when_all_nodes_have_ended() {
    let mut c = Cluster::whole(true);
    let old = done(ask(&mut c, 0, "a", create("old", "plain"))).id;
    c.nodes[1].disk.catalog_is_slow = true;
    let shop = done(ask(&mut c, 0, "b", create("shop", "plain"))).id;
    done(ask(&mut c, 0, "c", delete("old")));
    (0..3).for_each(|node| c.crash(node));
    (0..3).for_each(|node| c.restart(node));
    assert_eq!(c.nodes[1].replica.catalog().id_of("old"), Some(old), "its disk was slow");
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(id_of(&c, &[0, 1, 2], "shop"), Some(shop));
    assert_eq!(id_of(&c, &[0, 1, 2], "old"), None);
}

#[test]
fn what_cannot_be_is_refused_alike_and_changes_nothing() {
    let mut c = Cluster::whole(true);
    let bad = refused(ask(&mut c, 0, "a", create("shop", "nonsense")));
    assert!(matches!(bad, CatalogRefused::Invalid(_)), "{bad:?}");
    let missing = refused(ask(&mut c, 0, "b", create("shop", "calls=mill")));
    assert!(matches!(missing, CatalogRefused::Invalid(_)), "{missing:?}");
    done(ask(&mut c, 0, "c", create("mill", "plain")));
    done(ask(&mut c, 0, "d", create("shop", "calls=mill")));
    let called = refused(ask(&mut c, 0, "e", delete("mill")));
    assert_eq!(called, CatalogRefused::IsCalled("shop".into()));
    done(ask(&mut c, 0, "f", create("free", "stateless")));
    let stateless = refused(ask(&mut c, 0, "g", create("bad", "calls=free")));
    assert_eq!(stateless, CatalogRefused::CallsStateless("free".into()));
    let fixed = refused(ask(&mut c, 0, "h", change("mill", "durable")));
    assert_eq!(fixed, CatalogRefused::Fixed("durable"));
    assert_eq!(id_of(&c, &[0, 1, 2], "bad"), None);
    done(ask(&mut c, 0, "i", delete("shop")));
    done(ask(&mut c, 0, "j", delete("mill")));
    let long = refused(ask(&mut c, 0, "k", create(&"x".repeat(65), "plain")));
    assert_eq!(long, CatalogRefused::TooLong("name"));
}

#[test]
fn a_node_in_no_primary_component_refuses() {
    let mut c = Cluster::whole(true);
    c.install(&[0]);
    c.settle();
    assert_eq!(refused(ask(&mut c, 0, "a", create("shop", "plain"))), CatalogRefused::NoPrimary);
}

#[test]
fn the_first_component_goes_on_from_one_of_the_files() {
    let mut c = Cluster::new(3, true);
    c.install(&[0, 1, 2]);
    c.settle();
    c.start(&[0, 1, 2]);
    let version = c.nodes[0].replica.catalog().version();
    assert!(
        version.is_some(),
        "a component has gone on: the catalog is one of the order, not of the file"
    );
    assert_eq!(id_of(&c, &[0, 1, 2], "5"), Some(cluster::GROUP));
    let found = quorba_replica::Catalog::recover(c.nodes[1].disk.catalog.clone());
    assert_eq!(found.expect("it is whole").and_then(|catalog| catalog.version()), version);
}

#[test]
fn a_request_in_a_group_goes_on_while_others_come_and_go() {
    let mut c = Cluster::whole_planned(Plan::style(Style::Active));
    for round in 0..10 {
        done(ask(&mut c, round % 3, &format!("c{round}"), create("shop", "plain")));
        c.request(round % 3, round as u64 + 1, &format!("r{round}"));
        c.settle();
        done(ask(&mut c, (round + 1) % 3, &format!("d{round}"), delete("shop")));
    }
    for index in 0..3 {
        assert_eq!(c.executed(index).len(), 10);
    }
}

// It waited for ever for a node that was asked for nothing any more (seed 81879 of the simulator's
// `groups`).
#[test]
fn who_is_given_requests_by_a_member_that_goes_asks_another() {
    let mut c = Cluster::whole(true);
    c.request(0, 1, "a");
    c.settle();
    c.install(&[0, 1]);
    c.settle();
    c.request(0, 2, "b");
    c.settle();
    c.cut = true;
    c.install(&[0, 1, 2]);
    c.settle();
    let MemberState::Joining { donor, lacks: Lacks::Requests, .. } = c.snapshot(0).members[2].1
    else {
        panic!("it is given requests");
    };
    let stays = 1 - donor.index();
    // Who is answered when a majority has it on disk hears nothing on these links.
    ask(&mut c, 0, "op", change("5", &format!("members={stays}2")));
    c.relink();
    c.settle();
    let states: Vec<_> = c.snapshot(2).members.iter().map(|(node, _)| node.index()).collect();
    assert_eq!(states, [stays, 2]);
    assert_eq!(c.states(2), ["in", "in"]);
    assert_eq!(c.executed(2), ["a", "b"]);
}

// The gateway counted it as under way for ever, and let no others in (seed 620046 of the
// simulator's `groups`).
#[test]
fn a_read_that_waits_for_no_mark_is_given_back_when_its_member_goes() {
    for style in [Style::Active, Style::ColdPassive] {
        let reads = Some(ReadConsistency::Sequential);
        let mut c = Cluster::planned(3, Plan { reads, ..Plan::style(style) });
        c.install(&[0, 1, 2]);
        c.settle();
        if style == Style::Active {
            (0..3).for_each(|index| c.start_server(index));
            c.settle();
        }
        c.relink();
        c.read(0, 1);
        c.settle();
        c.hold_marks(0);
        assert_eq!(c.nodes[0].reads.len(), 1);
        c.server(0).held = true;
        c.read(0, 2);
        c.settle();
        assert!(c.nodes[0].reads.len() == 1 && c.nodes[0].marks.is_empty(), "it is executed");
        done(ask(&mut c, 1, "op", change("5", "members=12")));
        assert_eq!(c.nodes[0].reads[1..], [(2, "order it".into())], "{style:?}");
    }
}

// It went on as if what was answered since had not been, and a reply that was voted on then was
// voted on again by the one member whose log snapshot lacked it (seed 640016 of the simulator's
// `groups`).
#[test]
fn no_group_comes_back_as_it_was_when_the_last_durable_one_went() {
    let mut c = Cluster::whole(true);
    done(ask(&mut c, 0, "come", create("vault", "durable")));
    c.request(0, 1, "a");
    c.settle();
    done(ask(&mut c, 0, "go", delete("vault")));
    c.request(0, 2, "b");
    c.settle();
    assert_eq!(c.nodes[0].replies.len(), 2, "both are acknowledged");
    (0..3).for_each(|index| c.crash(index));
    (0..3).for_each(|index| c.restart(index));
    c.start(&[0, 1, 2]);
    for index in 0..3 {
        assert_eq!(c.states(index), ["out", "out", "out"], "{index}");
    }
}

// A node that had not heard that the others had gone on without it counted what they said of their
// disks, which had something else (seed 301442 of the simulator's `groups`).
#[test]
fn what_a_later_component_has_on_disk_is_not_what_an_earlier_one_waits_for() {
    let mut c = Cluster::whole(true);
    c.install(&[0, 1]);
    c.settle();
    done(ask(&mut c, 0, "a", create("shop", "plain")));
    c.only_at(2, |c| {
        let operation = Bytes::from_static(b"b");
        c.nodes[2].replica.handle_define(8, operation, create("mill", "plain"));
        c.drain_all();
    });
    c.relink();
    c.settle();
    assert_eq!(c.nodes[2].defined, [], "nobody else has it");
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(c.nodes[2].defined, [Err(CatalogRefused::Interrupted)]);
    assert_eq!(id_of(&c, &[0, 1, 2], "mill"), None);
}

/// What all nodes say alike of how often references have become others.
fn reference_versions(c: &Cluster, names: &[&str]) -> Vec<u32> {
    let count = |name: &&str| {
        let id = id_of(c, &[0, 1, 2], name).expect("it is there");
        c.nodes[0].replica.catalog().reference_version(id)
    };
    names.iter().map(count).collect()
}

#[test]
fn versions_of_references_rise_alike_at_nodes_that_were_away_or_have_ended() {
    let mut c = Cluster::whole(true);
    done(ask(&mut c, 0, "a", create("shop", "plain")));
    done(ask(&mut c, 1, "b", change("shop", "reply=99")));
    c.crash(2);
    c.install(&[0, 1]);
    c.settle();
    done(ask(&mut c, 0, "c", change("shop", "reply=98")));
    c.restart(2);
    c.install(&[0, 1, 2]);
    c.settle();
    assert_eq!(reference_versions(&c, &["shop", "5"]), [2, 0]);
    (0..3).for_each(|node| c.crash(node));
    (0..3).for_each(|node| c.restart(node));
    assert_eq!(reference_versions(&c, &["shop", "5"]), [2, 0], "so their disks say");
}

#[test]
fn other_gateways_make_all_references_others_in_the_next_component() {
    for durable in [false, true] {
        let mut c = Cluster::whole_planned(Plan { durable, ..Plan::plain(true) });
        done(ask(&mut c, 0, "a", create("shop", "plain")));
        done(ask(&mut c, 0, "b", change("shop", "reply=99")));
        (0..3).for_each(|node| c.crash(node));
        c.plan.gateways += 1;
        (0..3).for_each(|node| c.restart(node));
        c.install(&[0, 1]);
        c.settle();
        c.install(&[0, 1, 2]);
        c.settle();
        assert_eq!(reference_versions(&c, &["shop", "5"]), [2, 1], "durable: {durable}");
        let version = c.nodes[0].replica.catalog().version();
        (0..3).for_each(|node| c.crash(node));
        (0..3).for_each(|node| c.restart(node));
        c.install(&[0, 1, 2]);
        c.settle();
        assert_eq!(reference_versions(&c, &["shop", "5"]), [2, 1], "durable: {durable}");
        assert_eq!(c.nodes[0].replica.catalog().version(), version, "nothing has changed");
    }
}
