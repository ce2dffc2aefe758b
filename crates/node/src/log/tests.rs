//! What waits because the disk takes no more, and what stands behind it.

use super::*;
use bytes::Bytes;
use quorba_base::RingId;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::{Receiver, channel};

const DOMAIN: &str = r#"
[domain]
id = "test"
key_file = "domain.key"

[node.n1]
host = "127.0.0.1"

[group.bank]
type_id = "IDL:Bank:1.0"
members = ["n1"]
listen = 5000
durable = true
state_object = "state"
server = ["/bin/true", "{port}"]
"#;

fn open(folder: &Path) -> (Log, Receiver<LogNews>) {
    let file = folder.join("quorba.toml");
    std::fs::write(&file, DOMAIN).expect("a file");
    let options = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).to_owned();
    let mut key = options.open(folder.join("domain.key")).expect("a file");
    key.write_all(&[b'7'; 64]).expect("it is written");
    let domain = Domain::load(&file).expect("a domain");
    let me = domain.node_id("n1").expect("a node");
    let (tell, news) = channel();
    let opened = Log::open(&domain, me, 1, folder, move |news| {
        let _ = tell.send(news);
    });
    (opened.expect("it opens").0, news)
}

fn record(prefix: u64) -> LogRecord {
    let origin = NodeId::new(0).expect("a node");
    let component = RingId { seq: 1, representative: origin };
    let (position, payload) = (Position { component, prefix }, Bytes::from_static(b"request"));
    LogRecord::Message { position, origin, incarnation: 1, ticket: prefix, payload }
}

/// Generous: what is waited for takes milliseconds, and the machine may be busy.
fn heard(news: &Receiver<LogNews>) -> LogNews {
    news.recv_timeout(Duration::from_secs(60)).expect("more is to come")
}

/// A state can be written while the records that it stands behind still wait here.
#[test]
fn a_state_is_taken_in_behind_the_records_that_wait_for_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, news) = open(folder.path());
    log.append(record(1));
    // As after a batch that was refused.
    log.is_full = true;
    let view = RingId { seq: 1, representative: NodeId::new(0).expect("a node") };
    let place = Place { record: 1, view, prefix: 1 };
    log.save(GroupId(0), place, [Bytes::from_static(b"head"), Bytes::from_static(b"state")]);
    let written = news.recv().expect("it is written");
    assert!(matches!(written, LogNews::Written(Ok(_))));
    assert!(log.hear(written).expect("nothing is wrong").is_none());
    // The thread does what it is told in that order, and has not been told of the state.
    log.committer.truncate_before(Seq(1));
    let next = news.recv().expect("the thread answers");
    assert!(matches!(next, LogNews::Notice(Notice::Truncated(_))));
    log.is_full = false;
    log.flush();
    let mut saved = false;
    while !saved {
        let progress = log.hear(heard(&news)).expect("nothing is wrong");
        saved = matches!(progress, Some(Progress::Saved(GroupId(0), 1)));
    }
    log.stop();
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

/// What is told of a wait is what came first, and how long it has been.
#[test]
fn a_log_that_waits_says_so_since_when_it_does_and_no_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, _news) = open(folder.path());
    assert_eq!((log.status().waits, log.status().waits_ms), (None, None));
    let since = |log: &Log| log.waits.as_ref().map(|(_, since)| *since);
    let ends: [fn() -> LogNews; 4] = [
        || LogNews::Notice(Notice::Durable(Seq(0))),
        || LogNews::Notice(Notice::Truncated(Seq(1))),
        || LogNews::Notice(Notice::Trusted),
        || LogNews::Notice(Notice::Durable(Seq(0))),
    ];
    for end in ends {
        assert!(log.hear(LogNews::Notice(Notice::Full(full()))).expect("no failure").is_none());
        let began = since(&log).expect("it waits");
        assert!(log.hear(LogNews::Waits(full())).expect("no failure").is_none());
        assert!(log.hear(LogNews::Notice(Notice::Full(full()))).expect("no failure").is_none());
        assert_eq!(since(&log), Some(began), "the first counts");
        let status = log.status();
        assert!(status.waits.is_some_and(|said| said.contains("waits")));
        assert!(status.waits_ms.is_some());
        log.hear(end()).expect("no failure");
        assert_eq!((log.status().waits, log.status().waits_ms), (None, None));
    }
    log.stop();
}

/// Records that found no room are handed over when there is some, in their order, each once.
#[test]
fn what_waits_is_written_when_the_disk_takes_more_and_nothing_is_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, news) = open(folder.path());
    log.is_full = true;
    for number in 1..=9 {
        log.append(record(number));
        log.flush();
    }
    let bytes: usize = log.backlog.iter().map(Record::bytes).sum();
    assert_eq!((log.backlog.len(), log.backlog_bytes), (9, bytes), "it waits, and is counted");
    assert!(!log.has_room_again() && !log.is_overfull());
    log.hear(LogNews::Notice(Notice::Durable(Seq(0)))).expect("no failure");
    assert!(log.has_room_again() && log.backlog_bytes == 0 && !log.is_full);
    let mut durable = 0;
    while durable < 9 {
        let progress = log.hear(heard(&news)).expect("no failure");
        if let Some(Progress::Logged(record)) = progress {
            assert!(record > durable && record <= 9, "{record} after {durable}");
            durable = record;
        }
    }
    log.append(record(10));
    log.is_full = true;
    log.stop();
    let domain = Domain::load(&folder.path().join("quorba.toml")).expect("a domain");
    let me = domain.node_id("n1").expect("a node");
    let (log, boot) = Log::open(&domain, me, 2, folder.path(), |_| {}).expect("it opens");
    let found = boot.recovered.expect("it was closed").records;
    let prefix = |record: &LogRecord| match record {
        LogRecord::Message { position, .. } => position.prefix,
        other => panic!("{other:?}"),
    };
    assert_eq!(found.iter().map(prefix).collect::<Vec<_>>(), Vec::from_iter(1..=10));
    log.stop();
}

/// What a node keeps in memory for its disk is bounded: the data plane waits behind that.
#[test]
fn a_log_with_too_much_behind_it_is_overfull() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, _news) = open(folder.path());
    for (bytes, is_overfull) in
        [(0, false), (BACKLOG_BYTES_MAX, false), (BACKLOG_BYTES_MAX + 1, true)]
    {
        log.backlog_bytes = bytes;
        assert_eq!(log.is_overfull(), is_overfull, "{bytes}");
    }
    log.stop();
}

/// A disk that failed keeps no promise: the node ends.
#[test]
fn a_disk_that_failed_is_no_disk_that_is_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, _news) = open(folder.path());
    let broken = || io::Error::other("broken");
    for news in [
        LogNews::Notice(Notice::Failed(broken())),
        LogNews::Notice(Notice::Shortage(broken())),
        LogNews::Written(Err((GroupId(0), broken()))),
    ] {
        assert!(matches!(log.hear(news), Err(NodeError::Log { .. })));
    }
    log.stop();
}

/// Whoever reads the log finds all of it.
#[test]
fn a_log_that_is_read_is_not_compacted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, news) = open(folder.path());
    log.append(record(1));
    // It waits for a record that is not durable before the next flush.
    log.lookups.want((GroupId(0), 1), &log.path, &log.tell);
    log.compact(1);
    assert_eq!(log.backlog.len(), 1, "to compact is to flush first");
    log.flush();
    loop {
        match heard(&news) {
            LogNews::Notice(Notice::Truncated(_)) => panic!("it is being read"),
            looked @ LogNews::LookedUp(..) => {
                let progress = log.hear(looked).expect("no failure");
                assert!(matches!(progress, Some(Progress::LookedUp(_, Some(_)))));
                break;
            }
            other => _ = log.hear(other).expect("no failure"),
        }
    }
    log.compact(1);
    while !matches!(news.recv(), Ok(LogNews::Notice(Notice::Truncated(_)))) {}
    log.stop();
}

/// More than may be on its way to the disk: what is refused comes later, and once.
#[test]
fn what_the_thread_does_not_take_is_offered_again() {
    const PAYLOAD_BYTES: usize = 1 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, news) = open(folder.path());
    let large = |number| match record(number) {
        LogRecord::Message { position, origin, incarnation, ticket, .. } => {
            let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
            LogRecord::Message { position, origin, incarnation, ticket, payload }
        }
        other => other,
    };
    let most = (WAITING_BYTES_MAX / PAYLOAD_BYTES) as u64;
    (1..=most).for_each(|number| log.append(large(number)));
    log.flush();
    assert!(log.has_room_again(), "the first is taken, whatever its length");
    for number in most + 1..=most + 3 {
        log.append(large(number));
        log.flush();
    }
    let mut durable = 0;
    while durable < most + 3 {
        let progress = log.hear(heard(&news)).expect("no failure");
        if let Some(Progress::Logged(record)) = progress {
            durable = record;
        }
    }
    assert!(log.has_room_again() && log.backlog_bytes == 0);
    log.stop();
}
