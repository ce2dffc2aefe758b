//! A transfer that this member takes.
//!
//! Invariants: bytes are added in their order and once; memory is taken for what the donor
//! announces only after that was compared with the limit; a transfer that has failed takes nothing
//! more.

use super::window::{Lost, Window};
use super::{CHUNK_BYTES_MAX, Chunk, Digest, Fetch, TRANSFER_BYTES_MAX, TransferRule};
use crate::table::DownReason;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId, canary};

/// Without any progress the joiner asks again: nothing is lost on a link that lives, so that this
/// is seldom needed; and after twice as long again, because the donor's server may take its time.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(16);

/// See the module's text.
pub(crate) struct Incoming {
    donor: NodeId,
    window: Window,
    bytes: Vec<u8>,
    total: Option<u64>,
    digest: Digest,
    /// The donor will send what is in front of this.
    asked_to: u64,
    /// Wait for that at most so long.
    patience: Duration,
    ask_again_at: Option<Instant>,
    /// Something was missing since the last progress.
    has_gap: bool,
    failed: bool,
}

/// What came of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChunkOutcome {
    /// It is added, or of no use.
    More,
    /// It was the last.
    Whole(Bytes),
    /// The transfer is of no use.
    Failed(DownReason),
}

impl Incoming {
    pub(crate) fn new(donor: NodeId, rule: TransferRule) -> Self {
        Self {
            donor,
            window: Window::new(rule),
            bytes: Vec::new(),
            total: None,
            digest: Digest::new(),
            asked_to: rule.window_bytes(),
            patience: ASK_AGAIN,
            ask_again_at: None,
            has_gap: false,
            failed: false,
        }
    }

    pub(crate) const fn donor(&self) -> NodeId {
        self.donor
    }

    pub(crate) fn received(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) const fn total(&self) -> Option<u64> {
        self.total
    }

    /// A part has come.
    pub(crate) fn add(&mut self, chunk: &Chunk) -> ChunkOutcome {
        if self.failed {
            return ChunkOutcome::More;
        }
        let taken = self.try_add(chunk);
        self.failed = matches!(taken, ChunkOutcome::Failed(_));
        taken
    }

    fn try_add(&mut self, chunk: &Chunk) -> ChunkOutcome {
        if let Some(failed) = self.look_at_total(chunk.total) {
            return ChunkOutcome::Failed(failed);
        }
        let received = self.received();
        if chunk.offset != received {
            if chunk.offset > received && !self.has_gap {
                self.has_gap = true;
                self.ask_again_at = Some(Instant::ZERO);
            }
            return ChunkOutcome::More;
        }
        let raw_bytes = chunk.raw_bytes as usize;
        let end = received + raw_bytes as u64;
        let fits = end <= chunk.total && raw_bytes <= CHUNK_BYTES_MAX;
        if !fits || !self.unpack(chunk, raw_bytes) {
            return ChunkOutcome::Failed(DownReason::StateDamaged);
        }
        self.digest.add(&self.bytes[received as usize..]);
        (self.has_gap, self.patience, self.ask_again_at) = (false, ASK_AGAIN, None);
        if end < chunk.total {
            // Its donor has no more: waiting for that would have no end.
            let is_last = chunk.digest.is_some();
            return if is_last {
                ChunkOutcome::Failed(DownReason::StateDamaged)
            } else {
                ChunkOutcome::More
            };
        }
        let is_right = chunk.digest == Some(self.digest.value()) || canary!(IgnoresStateDigest);
        if !is_right && !canary!(TakesAnyChunk) {
            return ChunkOutcome::Failed(DownReason::StateDamaged);
        }
        ChunkOutcome::Whole(Bytes::from(core::mem::take(&mut self.bytes)))
    }

    /// Takes memory at the first part; all others must be of the same whole.
    fn look_at_total(&mut self, total: u64) -> Option<DownReason> {
        match self.total {
            Some(known) if known == total || canary!(TakesAnyChunk) => None,
            Some(_) => Some(DownReason::StateDamaged),
            None if total > TRANSFER_BYTES_MAX => Some(DownReason::StateTooLarge),
            None => {
                self.total = Some(total);
                let room = self.bytes.try_reserve_exact(total as usize);
                room.is_err().then_some(DownReason::StateTooLarge)
            }
        }
    }

    /// Puts a part behind the others; false if it is not what it says.
    fn unpack(&mut self, chunk: &Chunk, raw_bytes: usize) -> bool {
        if !chunk.compressed {
            self.bytes.extend_from_slice(&chunk.bytes);
            return chunk.bytes.len() == raw_bytes;
        }
        let start = self.bytes.len();
        self.bytes.resize(start + raw_bytes, 0);
        let unpacked = lz4_flex::block::decompress_into(&chunk.bytes, &mut self.bytes[start..]);
        unpacked.is_ok_and(|count| count == raw_bytes)
    }

    /// The link to the donor is there again: what was on its way is lost.
    pub(crate) const fn link_is_up(&mut self) {
        (self.has_gap, self.ask_again_at) = (false, Some(Instant::ZERO));
    }

    /// When [`Self::ask`] wants to be called.
    pub(crate) fn ask_at(&self) -> Option<Instant> {
        if self.failed { None } else { Some(self.ask_again_at.unwrap_or(Instant::ZERO)) }
    }

    /// What the donor should be asked for now.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Fetch> {
        if self.failed {
            return None;
        }
        let received = self.received();
        self.window.came(now, received, self.asked_to);
        let Some(again_at) = self.ask_again_at else {
            self.ask_again_at = Some(now + self.patience);
            return self.go_on(now, received);
        };
        if again_at > now {
            return self.go_on(now, received);
        }
        let lost = match again_at {
            Instant::ZERO if self.has_gap => Lost::Partly,
            Instant::ZERO => Lost::Otherwise,
            _ if self.total.is_none() => Lost::Otherwise,
            _ => Lost::Wholly,
        };
        if again_at > Instant::ZERO {
            self.patience = (self.patience * 2).min(ASK_AGAIN_MAX);
        }
        self.ask_again_at = Some(now + self.patience);
        self.window.begin_again(now, received, lost);
        let bytes = self.window.bytes();
        self.asked_to = received + bytes;
        Some(Fetch { received, offset: received, bytes })
    }

    /// Asks for more as soon as a part of the window has come.
    fn go_on(&mut self, now: Instant, received: u64) -> Option<Fetch> {
        let offset = self.asked_to;
        let bytes = (received + self.window.bytes()).saturating_sub(offset);
        let wants = bytes >= self.window.question_bytes();
        if !wants || self.total.is_none_or(|total| offset >= total) {
            return None;
        }
        self.window.asked(now, offset);
        self.asked_to = offset + bytes;
        Some(Fetch { received, offset, bytes })
    }
}
