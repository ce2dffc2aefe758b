//! What waits because the disk takes no more, and what stands behind it.

use super::*;
use bytes::Bytes;
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
    (opened.expect("it opens").expect("it is durable").0, news)
}

fn record(prefix: u64) -> LogRecord {
    let origin = NodeId::new(0).expect("a node");
    let view = ViewId { seq: 1, representative: origin };
    let payload = Bytes::from_static(b"request");
    LogRecord::Message { view, prefix, origin, incarnation: 1, ticket: prefix, payload }
}

/// A state can be written while the records that it stands behind still wait here.
#[test]
fn a_state_is_taken_in_behind_the_records_that_wait_for_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, news) = open(folder.path());
    log.append(record(1));
    // As after a batch that was refused.
    log.is_full = true;
    let view = ViewId { seq: 1, representative: NodeId::new(0).expect("a node") };
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
        let progress = log.hear(news.recv().expect("more is to come")).expect("nothing is wrong");
        saved = matches!(progress, Some(Progress::Saved(GroupId(0), 1)));
    }
    log.stop();
}
