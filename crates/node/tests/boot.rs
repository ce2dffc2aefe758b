//! That what a node remembers of itself was brought to disk before it is used, seen at the system's
//! calls.

#[path = "../../journal/tests/syncs/mod.rs"]
mod syncs;

use quorba_node::boot::BootFile;
use std::path::Path;
use syncs::Syncs;

const DIRECTORY: &str = "QUORBA_BOOT_SYNCED";

/// The process that is watched: two boots, which go on when they are told to.
#[test]
#[ignore = "a part of the test below"]
fn node() {
    let path = std::env::var_os(DIRECTORY).expect("the test below says where");
    let begin = || BootFile::begin(Path::new(&path)).expect("a boot");
    let mut boot = begin();
    println!("begun");
    for (number, line) in (1..).zip(std::io::stdin().lines()) {
        match line.expect("an order").as_str() {
            "boot" => {
                drop(boot);
                boot = begin();
                println!("begun");
            }
            _ => {
                boot.set_ring_seq(number).expect("stored");
                println!("stored");
            }
        }
    }
}

#[test]
fn a_boot_and_a_ring_number_are_on_disk_before_they_are_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("n1");
    let syncs = Syncs::new(folder.path());
    let mut node = syncs.start("node", (DIRECTORY, &state), "begun");
    let of_file = || syncs.count(|file| file.contains("/n1/node.state"));
    assert!(of_file() > 0, "the first boot");
    assert!(syncs.count(|file| Path::new(file) == state) > 0, "the file's name");
    for (order, told) in [("go on", "stored"), ("boot", "begun"), ("go on", "stored")] {
        for turn in 0..5 {
            let before = of_file();
            node.goes_on(order, told);
            assert!(of_file() > before, "{told}, {turn}, and not on disk");
        }
    }
    node.ends();
}
