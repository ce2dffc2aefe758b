//! A log in words, for whoever wants to see what is in it.
//!
//! What it is not: a check that changes or repairs anything; it only reads, also beside a node
//! that writes.
//!
//! Invariant: it says as much as can be read, however damaged the rest is.

use crate::checkpoint::Checkpoints;
use crate::disk::{Disk, read_whole};
use crate::format::checkpoint;
use crate::format::record::Record;
use crate::format::scan::{Entry, Scan};
use crate::format::segment::{self, SegmentFault, SegmentHeader};
use crate::format::{Owner, RingId, Seq};
use crate::journal::Files;
use crate::meta::{self, Contents, Metadata};
use crate::nonce::Nonces;
use bytes::Bytes;
use quorba_base::NodeId;
use std::io;
use std::sync::Arc;

/// Describes a log, line by line. `describe` gives the words for a record's payload, or nothing if
/// the record is to be left out: only the caller knows which group a payload is for.
///
/// # Errors
/// The disk's, if its files cannot be listed. A file that cannot be read is a line.
pub fn inspect(
    disk: &Arc<dyn Disk>,
    mut describe: impl FnMut(&Entry) -> Option<String>,
    mut line: impl FnMut(String),
) -> io::Result<()> {
    let files = Files::of(disk.list()?);
    let metadata = match meta::look(&**disk)? {
        Contents::Whole(metadata) => {
            describe_metadata(&metadata, &mut line);
            Some(metadata)
        }
        Contents::Nothing => {
            line(format!("{}: missing", meta::FILE));
            None
        }
        Contents::Damaged(text) => {
            line(format!("{}: DAMAGED: {text}", meta::FILE));
            None
        }
    };
    let mut owner = metadata.map(|metadata| metadata.owner);
    let mut headers = Vec::new();
    for number in &files.segments {
        match header(&**disk, *number, &mut owner) {
            Ok((header, content)) => headers.push((header, content.len())),
            Err(text) => line(format!("{}: {text}", segment::file_name(*number))),
        }
    }
    for (index, (header, bytes)) in headers.iter().enumerate() {
        let end = headers.get(index + 1).map(|(next, _)| next.first);
        let name = segment::file_name(header.segment);
        line(format!("{name}: records from {}, {bytes} octets", header.first));
        match read(&**disk, &name) {
            Ok(content) => records(*header, content, end, &mut describe, &mut line),
            Err(text) => line(format!("  {text}")),
        }
    }
    // Whose checkpoints they are matters only if they are somebody else's.
    let node = NodeId::new(0).expect("a node");
    let owner = owner.unwrap_or(Owner { domain_digest: 0, node });
    let store = Checkpoints::new(Arc::clone(disk), owner, Nonces::new(0));
    for (group, seqs) in &files.checkpoints {
        for seq in seqs {
            let name = checkpoint::file_name(*group, *seq);
            line(match store.verify(&name) {
                Ok(found) => format!(
                    "{name}: group {group} after record {seq} ({}), {} octets",
                    found.position, found.bytes
                ),
                Err(cause) => format!("{name}: DAMAGED: {cause}"),
            });
        }
    }
    Ok(())
}

fn describe_metadata(metadata: &Metadata, line: &mut impl FnMut(String)) {
    let Metadata { owner, incarnation, watermark, doubts, torn_tails, .. } = metadata;
    line(format!(
        "{}: {owner}, boot {incarnation}, durable up to record {watermark} at least; \
         {torn_tails} torn tails, {doubts} times damaged",
        meta::FILE
    ));
    if let Some(doubt) = &metadata.doubt {
        line(format!("DOUBTFUL, not rebuilt yet: {doubt}"));
    }
}

fn read(disk: &dyn Disk, name: &str) -> Result<Vec<u8>, String> {
    let file = disk.open(name).map_err(|error| format!("cannot be opened: {error}"))?;
    read_whole(&*file)
        .map_err(|(offset, error)| format!("cannot be read at offset {offset}: {error}"))
}

/// The header of a segment; without metadata the first one says whose log it is.
fn header(
    disk: &dyn Disk,
    number: u32,
    owner: &mut Option<Owner>,
) -> Result<(SegmentHeader, Vec<u8>), String> {
    let content = read(disk, &segment::file_name(number))?;
    let node = NodeId::new(0).expect("a node");
    let expected = owner.unwrap_or(Owner { domain_digest: 0, node });
    let header = match SegmentHeader::decode(&content, expected, number) {
        Err(SegmentFault::Owner(found)) if owner.is_none() => {
            SegmentHeader::decode(&content, found, number)
        }
        decoded => decoded,
    };
    let header = header.map_err(|fault| format!("DAMAGED: {fault}"))?;
    *owner = Some(header.owner);
    Ok((header, content))
}

fn records(
    header: SegmentHeader,
    content: Vec<u8>,
    end: Option<Seq>,
    describe: &mut impl FnMut(&Entry) -> Option<String>,
    line: &mut impl FnMut(String),
) {
    for record in Scan::new(header, Bytes::from(content), end) {
        match record {
            Ok(entry) => {
                if let Some(text) = describe(&entry) {
                    line(format!("  {} {text}", describe_entry(&entry)));
                }
            }
            Err(invalid) => line(format!(
                "  offset {}, record {}: {}",
                invalid.offset, invalid.seq, invalid.fault
            )),
        }
    }
}

fn describe_entry(entry: &Entry) -> String {
    let Entry { seq, durable, offset, record, .. } = entry;
    let bytes = record.payload().len();
    let what = match record {
        Record::Message { origin, incarnation, ticket, position, .. } => {
            format!("at {position} message {ticket} of {origin}, boot {incarnation}")
        }
        Record::Component { component: RingId { seq, representative }, .. } => {
            format!("component {seq}{representative}")
        }
    };
    format!("{seq} {what}, {bytes} octets (offset {offset}, durable {durable})")
}
