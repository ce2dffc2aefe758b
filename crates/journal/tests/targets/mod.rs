//! What is fuzzed: for each decoder of what a disk holds, a function that takes any octets and
//! asserts what has to hold for them. Shared by the fuzzer (`fuzz/`) and the smoke test beside it.
//!
//! Checksums keep chance away from what is behind them, so part of the input *writes* a file, and
//! the rest changes octets of it.

#![allow(dead_code, reason = "the fuzzer runs one by its name, the smoke test all")]

use bytes::Bytes;
use quorba_base::NodeId;
use quorba_journal::format::checkpoint::{
    BLOCK_HEADER_BYTES, Blocks, CheckpointHeader, HEADER_BYTES,
};
use quorba_journal::format::record::{Record, Stamp, Stored};
use quorba_journal::format::scan::{Fault, Scan};
use quorba_journal::format::segment::SegmentHeader;
use quorba_journal::format::tail::{Verdict, judge};
use quorba_journal::format::{Owner, Position, RingId, Seq};

/// A target's name, and what it does with an input.
type Target = (&'static str, fn(&[u8]));

pub(crate) const TARGETS: [Target; 2] = [("segment", segment), ("checkpoint", checkpoint)];

/// Runs the target of a name; for the fuzzer's binaries.
pub(crate) fn run(name: &str, input: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(one, _)| *one == name).expect("a target");
    run(input);
}

fn owner() -> Owner {
    Owner { domain_digest: 5, node: NodeId::new(1).expect("a node") }
}

fn header() -> SegmentHeader {
    SegmentHeader { owner: owner(), segment: 3, nonce: 0x5eed, first: Seq(10) }
}

fn record(number: u64, payload: &[u8]) -> Record {
    let node = owner().node;
    let component = RingId { seq: number, representative: node };
    let payload = Bytes::copy_from_slice(payload);
    if number.is_multiple_of(3) {
        return Record::Component { component, payload };
    }
    let position = Position { component, prefix: number };
    Record::Message { origin: node, incarnation: 1, ticket: number, position, payload }
}

/// The first octet says how many records; then each has a length and its payload. What is left
/// over changes octets: three for the place, one for the value.
fn written(input: &[u8]) -> (Vec<Record>, Vec<u8>, &[u8]) {
    let header = header();
    let mut file = header.encode().to_vec();
    let mut records = Vec::new();
    let (count, mut rest) = input.split_first().map_or((0, input), |(c, rest)| (c % 8, rest));
    for number in 0..u64::from(count) {
        let Some((len, more)) = rest.split_first() else { break };
        let (payload, more) = more.split_at(usize::from(*len).min(more.len()));
        rest = more;
        let record = record(number, payload);
        let seq = Seq(header.first.0 + number);
        let stamp = Stamp { segment: 3, nonce: header.nonce, seq, durable: Seq(9 + number / 2) };
        record.encode(&stamp, &mut file);
        records.push(record);
    }
    (records, file, rest)
}

fn change(file: &mut Vec<u8>, how: &[u8]) {
    for change in how.chunks_exact(4) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        let len = file.len();
        match change[3] {
            0 => file.truncate(at % (len + 1)),
            1 => file.extend_from_slice(&change[..3]),
            value if len > 0 => file[at % len] ^= value,
            _ => {}
        }
    }
}

fn segment(input: &[u8]) {
    // As it is, without a right header, and behind one.
    let _ = SegmentHeader::decode(input, owner(), 3);
    let mut file = header().encode().to_vec();
    file.extend_from_slice(input);
    scan(None, file);
    let (records, mut file, how) = written(input);
    scan(Some(&records), file.clone());
    change(&mut file, how);
    scan(None, file);
}

/// If `records` were written and not changed, they are found.
fn scan(records: Option<&[Record]>, file: Vec<u8>) {
    let file = Bytes::from(file);
    let mut scan = Scan::new(header(), file.clone(), None);
    let mut again = Scan::new(header(), file.clone(), None);
    let mut found = Vec::new();
    for item in &mut scan {
        assert_eq!(Some(&item), again.next().as_ref(), "it repeats itself");
        let next = Seq(header().first.0 + found.len() as u64);
        match item {
            Ok(entry) => {
                assert_eq!(entry.seq, next);
                let (nonce, durable) = (header().nonce, entry.durable);
                let mut written = Vec::new();
                let stamp = Stamp { segment: 3, nonce, seq: next, durable };
                entry.record.encode(&stamp, &mut written);
                let at = usize::try_from(entry.offset).expect("in the file");
                assert_eq!(file[at..at + written.len()], written, "it is what was written");
                found.push(entry.record);
            }
            Err(invalid) => {
                assert_eq!(invalid.seq, next);
                assert!(invalid.offset <= file.len() as u64);
                assert!(!invalid.fault.to_string().is_empty());
                assert_eq!(judge(&invalid, invalid.seq), Verdict::Damage);
                let torn = judge(&invalid, next.before()) == Verdict::TornTail;
                assert_eq!(torn, invalid.fault == Fault::Torn);
            }
        }
    }
    assert!(scan.next().is_none() && again.next().is_none());
    let _ = scan.watermark_behind();
    assert!(records.is_none_or(|records| records == found));
}

fn checkpoint(input: &[u8]) {
    blocks(input);
    let node = owner().node;
    let position = Position { component: RingId { seq: 1, representative: node }, prefix: 2 };
    let header =
        CheckpointHeader { owner: owner(), group: 4, seq: Seq(8), position, nonce: 0x5eed };
    let mut file = header.encode().to_vec();
    let mut blocks_written = Blocks::new(header.nonce);
    let (state, how) = input.split_at(input.len() / 2);
    for part in state.chunks(40) {
        file.extend(blocks_written.write(part));
        file.extend_from_slice(part);
    }
    file.extend(blocks_written.finish());
    assert_eq!(blocks(&file).as_deref(), Some(state));
    change(&mut file, how);
    assert!(blocks(&file).is_none_or(|state| state.len() < file.len()));
}

/// The state that a file holds, if it is a right one.
fn blocks(file: &[u8]) -> Option<Vec<u8>> {
    let start: &[u8; HEADER_BYTES] = file.first_chunk()?;
    let header = CheckpointHeader::decode(start, owner()).ok()?;
    let mut blocks = Blocks::new(header.nonce);
    let mut rest = &file[HEADER_BYTES..];
    let mut state = Vec::new();
    loop {
        let start: &[u8; BLOCK_HEADER_BYTES] = rest.first_chunk()?;
        let promise = blocks.expect(start).ok()?;
        let data = rest[BLOCK_HEADER_BYTES..].get(..promise.bytes)?;
        blocks.check(&promise, data).ok()?;
        rest = &rest[BLOCK_HEADER_BYTES + data.len()..];
        if promise.is_final {
            return rest.is_empty().then_some(state);
        }
        state.extend_from_slice(data);
    }
}
