//! That what is reported as durable was brought to disk, seen at the system's calls.
//!
//! The simulated disk forgets what was not synced, and so finds a sync that is not asked for. Here
//! is found one that is asked for and not made.

mod harness;
#[path = "syncs/mod.rs"]
mod noted;

use harness::{owner, record};
use noted::Syncs;
use quorba_base::Instant;
use quorba_journal::disk::FileDisk;
use quorba_journal::{Journal, Opened, Options};
use std::path::Path;
use std::sync::Arc;

const DIRECTORY: &str = "QUORBA_JOURNAL_SYNCED";
const COMMITS: usize = 60;

/// The process that is watched: it goes on when it is told to.
#[test]
#[ignore = "a part of the test below"]
fn writer() {
    let path = std::env::var_os(DIRECTORY).expect("the test below says where");
    let options = Options { segment_bytes: 20_000, ..Options::new(owner(), 1, 1) };
    let disk = Arc::new(FileDisk::open(Path::new(&path)).expect("a disk"));
    let Opened { mut journal, .. } = Journal::open(disk, options).expect("it is new");
    println!("opened");
    for (number, line) in (1..).zip(std::io::stdin().lines()) {
        line.expect("an order");
        journal.append(record(0, number, 1_500)).expect("appended");
        journal.commit(Instant::from_nanos(number)).expect("durable");
        println!("durable {number}");
    }
}

#[test]
fn what_is_reported_durable_was_synced_before_and_so_was_the_name_of_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let syncs = Syncs::new(folder.path());
    let mut writer = syncs.start("writer", (DIRECTORY, &log), "opened");
    let of_segments = || syncs.count(|file| file.ends_with(".seg"));
    let of_names = || syncs.count(|file| Path::new(file) == log);
    let files = || std::fs::read_dir(&log).expect("a log").count();
    let (mut synced, mut names, mut known) = (of_segments(), of_names(), files());
    assert!(names > 0, "the first file's name");
    let mut more_files = 0;
    for number in 1..=COMMITS {
        writer.goes_on("go on", &format!("durable {number}"));
        let now = of_segments();
        assert!(now > synced, "record {number} is reported durable and was not synced");
        synced = now;
        let there = files();
        if there > known {
            more_files += 1;
            let now = of_names();
            assert!(now > names, "at record {number} a file is new, and its name not synced");
            names = now;
        }
        known = there;
    }
    assert!(more_files > 1, "{more_files}");
    writer.ends();
}
