//! State on its way from a donor to a member that joins, in chunks over the link between their
//! nodes.
//!
//! What travels: the retention table at the capture point, then the server's state as
//! `get_state` gave it. The donor sends the first window unasked, as soon as it has the state; from
//! then on the joiner asks for what the way takes without a queue. Whatever is lost is asked for
//! again, and the transfer goes on where it stood.
//!
//! What it is not: the order; that has said who gives and takes what, and at which point.
//!
//! Invariants: no more than a window of a transfer is on its way at once; a state counts only if
//! its digest is that which the donor computed over what it gave.

mod incoming;
mod outgoing;
mod rate_limiter;
#[cfg(test)]
mod tests;
mod window;

use crate::retention::{Frozen, Retention};
use crate::wire::{InvalidEnvelope, Reader, Writer};
use bytes::Bytes;
use core::hash::Hasher as _;
pub(crate) use incoming::{ChunkOutcome, Incoming};
pub(crate) use outgoing::Outgoing;
use quorba_base::NodeId;
use twox_hash::XxHash3_64;

/// Chunks of a transfer that may be on their way at once: 1 MiB. Twice as many were tried: where a
/// link's lane is short, most of a window is dropped and fetched again by time (seeds 500821 and
/// 500408 of `domain`, 500544 of `styles`).
pub(crate) const WINDOW_CHUNKS: u64 = 16;
/// Into so many slices a rate is cut, if they are not too short.
const SLICES_PER_SECOND: u64 = 4_000;
/// The longest chunk, as it is before it is compressed.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 10;
/// The largest transfer: a state of 1 GiB, and the replies that clients may still ask for.
pub(crate) const TRANSFER_BYTES_MAX: u64 = (1 << 30) + (512 << 20);

/// How the group's transfers go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferRule {
    /// Bytes of a chunk before it is compressed; at most 64 KiB.
    pub chunk_bytes: usize,
    /// What a donor sends to one joiner at most, in bytes per second; `None`: what the link takes.
    pub bytes_per_second: Option<u64>,
}

impl Default for TransferRule {
    fn default() -> Self {
        Self { chunk_bytes: CHUNK_BYTES_MAX, bytes_per_second: None }
    }
}

impl TransferRule {
    /// What may be on its way at most, and is at first.
    fn window_bytes(self) -> u64 {
        self.chunk_bytes as u64 * WINDOW_CHUNKS
    }

    /// What is on its way at least.
    fn least_window_bytes(self) -> u64 {
        let chunk = self.chunk_bytes as u64;
        // With the shortest chunks a question takes as much time as what it asks for.
        (chunk / 8).max((chunk * 2).min(64))
    }

    /// The longest chunk to send at once: less if there is a rate, because whatever shares the link
    /// waits for the whole of a chunk.
    fn slice_bytes(self) -> u64 {
        let whole = self.chunk_bytes as u64;
        let slice = self.bytes_per_second.map_or(whole, |rate| rate / SLICES_PER_SECOND);
        slice.clamp(whole.div_ceil(8), whole)
    }
}

/// How far a transfer is, for status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferProgress {
    /// The other side.
    pub peer: NodeId,
    /// This node gives the state; otherwise it takes it.
    pub gives: bool,
    /// Bytes that the joiner has, as far as this node knows.
    pub done: u64,
    /// Bytes in all; `None` as long as they are not known.
    pub total: Option<u64>,
}

/// A part of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    /// Where it begins.
    pub(crate) offset: u64,
    /// Bytes of the whole transfer.
    pub(crate) total: u64,
    /// Bytes of the part.
    pub(crate) raw_bytes: u32,
    /// `bytes` are an LZ4 block.
    pub(crate) compressed: bool,
    /// Of the whole transfer; in its last part.
    pub(crate) digest: Option<u64>,
    /// The part.
    pub(crate) bytes: Bytes,
}

/// What a joiner wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fetch {
    /// It has everything in front of this.
    pub(crate) received: u64,
    /// What it wants begins here.
    pub(crate) offset: u64,
    /// So much of it.
    pub(crate) bytes: u64,
}

/// Everything that has passed, in a number: against mistakes and damaged memory, not against
/// somebody who wants to deceive.
struct Digest(XxHash3_64);

impl Digest {
    fn new() -> Self {
        Self(XxHash3_64::new())
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn value(&self) -> u64 {
        self.0.finish()
    }
}

/// What goes in front of the state: a retention table as it was at the join.
pub(crate) fn head(retention: &Retention, frozen: &Frozen) -> Bytes {
    let mut writer = Writer::default();
    retention.encode(frozen, &mut writer);
    writer.finish()
}

/// Takes both apart again.
pub(crate) fn unpack(bytes: Bytes) -> Result<(Retention, Bytes), InvalidEnvelope> {
    let mut reader = Reader::new(bytes);
    Ok((Retention::decode(&mut reader)?, reader.rest()))
}
