//! A process that writes a log is killed at any moment; the next one finds all that it reported.

mod harness;

use harness::{chance, owner, record};
use quorba_base::Instant;
use quorba_journal::disk::FileDisk;
use quorba_journal::{Found, Journal, Opened, Options};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const DIRECTORY: &str = "QUORBA_JOURNAL_KILLED";

fn open(path: &Path, boot: u64) -> Opened {
    let mut options = Options::new(owner(), boot, boot);
    options.segment_bytes = 20_000;
    Journal::open(Arc::new(FileDisk::open(path).unwrap()), options).unwrap()
}

/// The process that is killed: boot after boot of it goes on with the same records.
#[test]
#[ignore = "a part of the test below"]
fn writer() {
    let path = std::env::var_os(DIRECTORY).expect("the test below says where");
    let boot = std::env::var("BOOT").unwrap().parse().unwrap();
    let Opened { mut journal, .. } = open(Path::new(&path), boot);
    let mut next = chance(boot);
    loop {
        for _ in 0..=next() % 8 {
            let number = journal.last().0 + 1;
            journal.append(record(0, number, (number * 37 % 3_000) as usize)).unwrap();
        }
        let durable = journal.commit(Instant::from_nanos(next() % 1_000_000)).unwrap();
        println!("durable {durable}");
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_reported() {
    let path = std::env::temp_dir().join(format!("quorba-killed-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let mut next = chance(3);
    let mut last = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["writer", "--exact", "--ignored", "--nocapture"])
            .env(DIRECTORY, &path)
            .env("BOOT", (round * 2 + 1).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut reported = lines.by_ref().filter_map(|line| {
            line.rsplit_once("durable ").and_then(|(_, seq)| seq.parse::<u64>().ok())
        });
        let enough = 1 + next() as usize % 15;
        let at_least = reported.by_ref().take(enough).last().expect("the writer reports");
        child.kill().unwrap();
        let at_least = reported.last().unwrap_or(at_least);
        child.wait().unwrap();
        let Opened { journal, recovered } = open(&path, round * 2 + 2);
        let Found::Clean(memory) = recovered else { panic!("{recovered:?}") };
        assert!(memory.last.0 >= at_least && memory.last.0 > last, "{} {at_least}", memory.last);
        for entry in memory.records() {
            let entry = entry.unwrap();
            let number = entry.seq.0;
            assert_eq!(entry.record, record(0, number, (number * 37 % 3_000) as usize));
        }
        last = memory.last.0;
        journal.close().unwrap();
    }
    std::fs::remove_dir_all(&path).unwrap();
}
