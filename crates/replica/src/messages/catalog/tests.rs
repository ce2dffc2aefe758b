//! What the catalog remembers, and what comes back of its records.

use super::*;
use alloc::format;
use alloc::vec;
use quorba_base::{NodeId, RingId};

fn at(seq: u64, prefix: u64) -> Position {
    let representative = NodeId::new(0).unwrap();
    Position { component: RingId { seq, representative }, prefix }
}

fn definition(name: &str, text: &str) -> Definition {
    Definition { name: name.into(), text: Bytes::copy_from_slice(text.as_bytes()) }
}

fn op(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn filled() -> Catalog {
    let mut catalog = Catalog::of_file([(GroupId(3), definition("bank", "x"))]);
    catalog.establish(at(4, 0), 9);
    catalog.apply(at(4, 1), op("a"), &CatalogChange::Create(definition("shop", "y")));
    catalog.apply(at(4, 2), op("b"), &CatalogChange::Change(definition("bank", "z")));
    catalog
}

#[test]
fn an_id_is_of_the_place_at_which_it_was_given_out() {
    let mut ids: Vec<_> = (0..100)
        .flat_map(|seq| (0..100).map(move |prefix| Catalog::default().id_at(at(seq, prefix))))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_000);
    let (mut one, mut other) = (Catalog::default(), Catalog::default());
    let create = CatalogChange::Create(definition("shop", "y"));
    assert_eq!(one.apply(at(4, 1), op("a"), &create), other.apply(at(4, 1), op("a"), &create));
    other.apply(at(4, 2), op("b"), &CatalogChange::Delete("shop".into()));
    assert_ne!(one.id_of("shop"), Some(other.apply(at(4, 3), op("c"), &create)));
}

#[test]
fn a_repeated_operation_is_recognised_and_its_name_is_no_other_ones() {
    let catalog = filled();
    let create = CatalogChange::Create(definition("shop", "y"));
    let found = catalog.repeated(&op("a"), &create).unwrap().unwrap();
    assert_eq!((Some(found.id), found.is_repeated), (catalog.id_of("shop"), true));
    assert_eq!(catalog.repeated(&op("new"), &create), Ok(None));
    assert_eq!(catalog.repeated(&op("b"), &create), Err(OperationReused));
}

#[test]
fn what_is_written_down_is_put_together_again() {
    let mut catalog = Catalog::of_file([(GroupId(3), definition("bank", "x"))]);
    catalog.establish(at(4, 0), 9);
    let mut records = vec![catalog.record().unwrap().bytes];
    let changes = [
        CatalogChange::Create(definition("shop", "y")),
        CatalogChange::Change(definition("bank", "z")),
        CatalogChange::Delete("shop".into()),
    ];
    for (prefix, change) in (1..).zip(changes) {
        let (at, operation) = (at(4, prefix), op(&format!("op{prefix}")));
        records.push(Catalog::record_of(at, &operation, &change).bytes);
        catalog.apply(at, operation, &change);
        assert_eq!(Catalog::recover(records.clone()).unwrap().as_ref(), Some(&catalog));
        let whole = vec![catalog.record().unwrap().bytes];
        assert_eq!(Catalog::recover(whole).unwrap().as_ref(), Some(&catalog));
    }
    assert_eq!(Catalog::recover(Vec::new()), Ok(None));
    records.swap(1, 2);
    assert_eq!(Catalog::recover(records.clone()).unwrap_err().record, 2);
    records.remove(0);
    assert_eq!(Catalog::recover(records).unwrap_err().record, 0);
}

#[test]
fn damage_is_no_panic() {
    let bytes = filled().record().unwrap().bytes;
    for length in 0..bytes.len() {
        assert!(Catalog::recover(vec![bytes.slice(..length)]).is_err());
    }
    for place in 0..bytes.len() {
        let mut other = bytes.to_vec();
        other[place] ^= 0x55;
        let _ = Catalog::recover(vec![other.into()]);
    }
}

#[test]
fn what_becomes_of_definitions_in_another_catalog() {
    let before = Catalog::of_file([(GroupId(3), definition("bank", "x"))]);
    let after = filled();
    let there = before.changes_to(&after);
    let shop = after.id_of("shop").unwrap();
    assert_eq!(
        (there.created, there.changed, there.deleted.len()),
        (vec![shop], vec![GroupId(3)], 0)
    );
    let back = after.changes_to(&before);
    assert_eq!((back.created.len(), back.changed, back.deleted), (0, vec![GroupId(3)], vec![shop]));
}

#[test]
fn marks_tell_what_files_say_apart_until_there_is_a_version() {
    let of = |text| Catalog::of_file([(GroupId(3), definition("bank", text))]);
    assert_eq!(of("x").mark(), of("x").mark());
    assert_ne!(of("x").mark(), of("y").mark());
    assert!(of("x").mark() < filled().mark());
    let mut later = filled();
    later.apply(at(5, 1), op("c"), &CatalogChange::Delete("shop".into()));
    assert!(filled().mark() < later.mark());
}

#[test]
fn references_become_others_with_definitions_and_with_gateways() {
    let mut catalog = filled();
    let shop = catalog.id_of("shop").unwrap();
    let versions = |catalog: &Catalog| [GroupId(3), shop].map(|id| catalog.reference_version(id));
    assert_eq!(versions(&catalog), [1, 0], "the bank was changed, the shop is new");
    catalog.apply(at(4, 3), op("c"), &CatalogChange::Change(definition("bank", "z")));
    assert_eq!(versions(&catalog), [1, 0], "it says the same");
    assert_eq!(catalog.establish(at(5, 0), 9), CatalogNews::Same);
    assert_eq!((versions(&catalog), catalog.version()), ([1, 0], Some(at(4, 3))));
    assert_eq!(catalog.establish(at(6, 0), 8), CatalogNews::Moved);
    assert_eq!((versions(&catalog), catalog.version()), ([2, 1], Some(at(6, 0))));
    let recovered = Catalog::recover(vec![catalog.record().unwrap().bytes]).unwrap();
    assert_eq!(recovered, Some(catalog));
}

/// What a node wrote before versions were counted: a whole catalog.
fn uncounted_whole() -> Bytes {
    let mut w = crate::words::wire::Writer::default();
    w.u8(1); // a whole one
    w.u8(1); // it has a version
    put_position(&mut w, at(4, 1));
    w.u32(1);
    w.u64(3);
    w.bytes(b"bank");
    w.bytes(b"x");
    w.u32(1);
    w.bytes(b"a");
    w.u64(77);
    w.u64(3);
    w.finish()
}

#[test]
fn records_of_before_there_were_counts_are_read_and_count_from_the_next_component_on() {
    let bank = GroupId(3);
    let whole = Catalog::recover(vec![uncounted_whole()]).unwrap().unwrap();
    assert_eq!(whole.record().unwrap().bytes, uncounted_whole(), "it is written as it was read");
    let change = CatalogChange::Change(definition("bank", "y"));
    let change = Catalog::record_of(at(4, 2), b"b", &change).bytes;
    let with_change = Catalog::recover(vec![uncounted_whole(), change]).unwrap().unwrap();
    // Another node may have written the same as a whole.
    let mut nodes = [
        Catalog::recover(vec![with_change.record().unwrap().bytes]).unwrap().unwrap(),
        with_change,
    ];
    for catalog in &mut nodes {
        assert_eq!(catalog.reference_version(bank), 0);
        assert_eq!(catalog.establish(at(5, 0), 9), CatalogNews::Begun);
        assert_eq!(catalog.version(), Some(at(4, 2)), "nothing has changed");
        catalog.apply(at(5, 1), op("c"), &CatalogChange::Change(definition("bank", "z")));
        assert_eq!(catalog.reference_version(bank), 1);
    }
    assert_eq!(nodes[0], nodes[1]);
}

/// After an update of all nodes one may have begun to count before another one was back.
#[test]
fn of_two_catalogs_of_one_version_the_one_that_counts_is_another_and_is_ahead() {
    let uncounted = Catalog::recover(vec![uncounted_whole()]).unwrap().unwrap();
    let mut counted = uncounted.clone();
    assert_eq!(counted.establish(at(5, 0), 0), CatalogNews::Begun);
    assert_eq!(counted.version(), uncounted.version());
    assert_ne!(counted.mark(), uncounted.mark(), "so the others are given it");
    assert!(counted.mark().counts() && !uncounted.mark().counts());
    assert!(counted.is_ahead_of(&uncounted) && !uncounted.is_ahead_of(&counted));
    let mut file = Catalog::of_file([(GroupId(3), definition("bank", "x"))]);
    assert!(!file.mark().counts());
    file.establish(at(4, 0), 9);
    assert!(!file.is_ahead_of(&counted), "a later version is ahead of all");
}
