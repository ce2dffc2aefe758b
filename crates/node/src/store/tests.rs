//! What the file of the catalog keeps, and what it makes of damage.

use super::*;
use quorba_engine::replica::{Definition, GroupId};

/// Catalogs, each with one group more, as records.
fn whole(text: &str) -> Catalog {
    let definition =
        Definition { name: "bank".into(), text: Bytes::copy_from_slice(text.as_bytes()) };
    let catalog = Catalog::of_file([(GroupId(7), definition)]);
    // A version comes with a component: as if one had gone on from it.
    let mut octets = catalog.to_bytes().to_vec();
    octets.splice(0..1, [1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    Catalog::from_bytes(octets.into()).expect("a catalog")
}

fn open(folder: &Path) -> (CatalogStore, Option<Catalog>, Receiver<Position>) {
    let (tell, told) = channel();
    let opened = CatalogStore::open(folder, move |version| {
        let _ = tell.send(version);
    });
    let (store, catalog) = opened.expect("it opens");
    (store, catalog, told)
}

#[test]
fn what_was_told_to_be_on_disk_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, found, told) = open(folder.path());
    assert_eq!(found, None);
    store.write(whole("one").record().expect("it has a version"));
    told.recv().expect("it is on disk");
    drop(store);
    let (mut store, found, told) = open(folder.path());
    assert_eq!(found, Some(whole("one")));
    store.write(whole("two").record().expect("it has a version"));
    store.sync();
    told.try_recv().expect("told before the sync was over");
    drop(store);
    assert_eq!(open(folder.path()).1, Some(whole("two")));
}

#[test]
fn a_torn_tail_is_cut_off_and_damage_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _, told) = open(folder.path());
    store.write(whole("one").record().expect("it has a version"));
    told.recv().expect("it is on disk");
    drop(store);
    let path = folder.path().join("groups.state");
    let good = fs::read(&path).expect("it is there");
    for tail in [&[1, 2][..], &[200, 0, 0, 0, 1, 2, 3, 4, 5], &[1, 0, 0, 0, 1, 2, 3, 4, 5]] {
        fs::write(&path, [&good, tail].concat()).expect("written");
        assert_eq!(open(folder.path()).1, Some(whole("one")), "{tail:?}");
        assert_eq!(fs::read(&path).expect("it is there"), good);
    }
    let mut bad = good.clone();
    bad[HEAD_BYTES + 9] ^= 1;
    bad.extend_from_slice(&good[HEAD_BYTES..]);
    for octets in [&bad[..], b"something else", &good[..HEAD_BYTES]] {
        fs::write(&path, octets).expect("written");
        let refused = CatalogStore::open(folder.path(), |_| {}).err().expect("it is refused");
        assert!(matches!(refused, NodeError::Groups { .. }), "{refused}");
        assert_eq!(fs::read(&path).expect("untouched"), octets);
    }
}
