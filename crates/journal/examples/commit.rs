//! How fast a disk makes records durable: `cargo run --release -p quorba-journal --example commit
//! -- [DIRECTORY]`. Each line is one second of commits of one size.
//!
//! What it is not: a test; figures of two runs compare only if nothing else ran.

use bytes::Bytes;
use quorba_base::{Instant, NodeId};
use quorba_journal::disk::{Disk, FileDisk};
use quorba_journal::{
    Committer, Found, Journal, Notice, Opened, Options, Owner, Position, Record, Refused, RingId,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Clock};

const LINE: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let parent = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = parent.join(format!("quorba-commit-{}", std::process::id()));
    let result = measure(&path);
    std::fs::remove_dir_all(&path)?;
    result
}

fn measure(path: &Path) -> Result<(), Failure> {
    println!(
        "{:<34} {:>9} {:>10} {:>8} {:>9} {:>9}",
        "", "commits/s", "records/s", "MB/s", "p50 µs", "p99 µs"
    );
    let disk = Arc::new(FileDisk::open(path)?);
    bare(&*disk)?;
    let options = Options::new(owner()?, 1, 1);
    let Opened { mut journal, .. } = Journal::open(disk, options)?;
    for (records, bytes) in
        [(1, 100), (1, 1_000), (16, 1_000), (256, 1_000), (16, 64_000), (16, 1_000_000)]
    {
        by_commit(&mut journal, records, bytes)?;
    }
    checkpoint(&mut journal)?;
    for (records, bytes) in [(1, 1_000), (16, 1_000)] {
        journal = by_thread(journal, records, bytes)?;
    }
    drop(journal);
    start(path)
}

/// The state of a group, written, synced, read back and taken in.
fn checkpoint(journal: &mut Journal) -> Result<(), Failure> {
    const PARTS: usize = 256;
    let part = vec![7; 1 << 20];
    let Record::Message { position, .. } = record(0)? else { return Err("a message".into()) };
    let begun = Clock::now();
    let mut writer = journal.checkpoints().begin(0, journal.durable(), position)?;
    for _ in 0..PARTS {
        writer.write(&part)?;
    }
    journal.adopt(&writer.seal()?)?;
    line("a checkpoint of 256 MiB", 0, 0, (PARTS * part.len()) as u64, begun.elapsed(), Vec::new());
    Ok(())
}

/// A start: everything is read and checked, then read again as records.
fn start(path: &Path) -> Result<(), Failure> {
    let disk = Arc::new(FileDisk::open(path)?);
    let begun = Clock::now();
    let Opened { recovered, .. } = Journal::open(disk, Options::new(owner()?, 2, 2))?;
    let Found::Clean(memory) = recovered else { return Err("doubt".into()) };
    let (mut records, mut bytes) = (0, 0);
    for entry in memory.records() {
        records += 1;
        bytes += entry?.record.payload().len() as u64;
    }
    line("a start with that", 0, records, bytes, begun.elapsed(), Vec::new());
    Ok(())
}

fn owner() -> Result<Owner, Failure> {
    Ok(Owner { domain_digest: 1, node: NodeId::new(0).ok_or("no node")? })
}

fn record(bytes: usize) -> Result<Record, Failure> {
    let Owner { node, .. } = owner()?;
    let component = RingId { seq: 1, representative: node };
    let position = Position { component, prefix: 1 };
    let payload = Bytes::from(vec![7; bytes]);
    Ok(Record::Message { origin: node, incarnation: 1, ticket: 1, position, payload })
}

/// What the disk alone takes: 4 KiB at the end of a file, and a sync.
fn bare(disk: &dyn Disk) -> Result<(), Failure> {
    let file = disk.create("bare")?;
    let mut times = Vec::new();
    let start = Clock::now();
    let mut offset = 0;
    while start.elapsed() < LINE {
        let before = Clock::now();
        file.write_at(offset, &[7; 4096])?;
        file.sync()?;
        times.push(before.elapsed());
        offset += 4096;
    }
    line("4 KiB and fdatasync alone", times.len() as u64, 0, offset, start.elapsed(), times);
    Ok(disk.delete("bare")?)
}

fn by_commit(journal: &mut Journal, records: usize, bytes: usize) -> Result<(), Failure> {
    let record = record(bytes)?;
    let start = Clock::now();
    let mut times = Vec::new();
    while start.elapsed() < LINE {
        let before = Clock::now();
        for _ in 0..records {
            journal.append(record.clone())?;
        }
        journal.commit(Instant::from_nanos(u64::try_from(start.elapsed().as_nanos())?))?;
        times.push(before.elapsed());
    }
    journal.truncate_before(journal.durable())?;
    let commits = times.len() as u64;
    let count = commits * records as u64;
    let name = format!("commits of {records} records of {bytes} B");
    line(&name, commits, count, count * bytes as u64, start.elapsed(), times);
    Ok(())
}

/// A thread hands over batches as fast as they are taken; what waits becomes one commit.
fn by_thread(journal: Journal, records: usize, bytes: usize) -> Result<Journal, Failure> {
    let record = record(bytes)?;
    let commits = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&commits);
    let before = journal.durable().0;
    let committer = Committer::start(journal, 4 << 20, move |notice| match notice {
        Notice::Durable(_) => drop(counter.fetch_add(1, Ordering::Relaxed)),
        other => eprintln!("{other:?}"),
    })?;
    let start = Clock::now();
    while start.elapsed() < LINE {
        match committer.append(vec![record.clone(); records]) {
            Ok(()) => {}
            Err(Refused::Full(_)) => std::thread::sleep(Duration::from_micros(50)),
            Err(refused) => return Err(format!("{refused:?}").into()),
        }
    }
    let journal = committer.stop().ok_or("the disk failed")?;
    let elapsed = start.elapsed();
    let count = journal.durable().0 - before;
    let name = format!("thread, batches of {records} of {bytes} B");
    let commits = commits.load(Ordering::Relaxed);
    line(&name, commits, count, count * bytes as u64, elapsed, Vec::new());
    Ok(journal)
}

fn line(
    what: &str,
    commits: u64,
    records: u64,
    bytes: u64,
    elapsed: Duration,
    mut times: Vec<Duration>,
) {
    times.sort_unstable();
    let percentile = |of_hundred: usize| {
        let index = (times.len() * of_hundred / 100).min(times.len().saturating_sub(1));
        times.get(index).map_or_else(|| "-".to_string(), |time| time.as_micros().to_string())
    };
    let per_second = |count: u64| count as f64 / elapsed.as_secs_f64();
    println!(
        "{what:<34} {:>9.0} {:>10.0} {:>8.1} {:>9} {:>9}",
        per_second(commits),
        per_second(records),
        per_second(bytes) / 1e6,
        percentile(50),
        percentile(99)
    );
}
