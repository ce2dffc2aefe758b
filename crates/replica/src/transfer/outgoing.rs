//! A transfer that this member gives.
//!
//! Invariants: only what was asked for is sent; the digest covers every byte once, in its order,
//! however often it is sent; more than the set rate is sent only for what the last moment lacked.

use super::rate_limiter::RateLimiter;
use super::{Chunk, Digest, Fetch, TransferRule};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;

/// A link that is faster is not worth the time that compression takes.
const FAST_BYTES_PER_SECOND: u64 = 100_000_000;
/// Chunks that show whether compression helps.
const TRIED_CHUNKS: u32 = 4;

/// See the module's text.
pub(crate) struct Outgoing {
    head: Bytes,
    state: Bytes,
    rule: TransferRule,
    /// What the joiner wants and has not been sent.
    next: u64,
    end: u64,
    /// What it has, as it said last.
    received: u64,
    digest: Digest,
    digested: u64,
    compression: Compression,
    rate_limiter: Option<RateLimiter>,
    /// The queue to the joiner's node is full.
    is_blocked: bool,
    /// What goes is known without the member's server.
    needs_no_server: bool,
}

#[derive(Clone, Copy)]
enum Compression {
    /// How fast the link is shows when the first window has arrived.
    Measuring {
        since: Option<Instant>,
    },
    /// Whether chunks shrink shows in the first ones.
    Trying {
        chunks: u32,
        raw: u64,
        packed: u64,
    },
    On,
    Off,
}

impl Outgoing {
    /// The first window is wanted from the beginning.
    pub(crate) fn new(head: Bytes, state: Bytes, rule: TransferRule) -> Self {
        let mut outgoing = Self {
            head,
            state,
            rule,
            next: 0,
            end: 0,
            received: 0,
            digest: Digest::new(),
            digested: 0,
            compression: Compression::Measuring { since: None },
            rate_limiter: rule.bytes_per_second.map(RateLimiter::new),
            is_blocked: false,
            needs_no_server: false,
        };
        outgoing.end = rule.window_bytes().min(outgoing.total());
        outgoing
    }

    /// Requests that the joiner lacks.
    pub(crate) fn requests(missed: Bytes, rule: TransferRule) -> Self {
        Self { needs_no_server: true, ..Self::new(missed, Bytes::new(), rule) }
    }

    pub(crate) fn needs_no_server(&self) -> bool {
        self.needs_no_server
    }

    pub(crate) fn total(&self) -> u64 {
        (self.head.len() + self.state.len()) as u64
    }

    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    pub(crate) const fn set_blocked(&mut self, is_blocked: bool) {
        self.is_blocked = is_blocked;
    }

    /// The joiner wants something. What cannot be meant is left out: it asks again.
    pub(crate) fn ask(&mut self, now: Instant, fetch: Fetch) {
        let Fetch { received, offset, bytes } = fetch;
        let goes_on = offset == self.end;
        if (offset > self.digested && !goes_on) || received > offset {
            return;
        }
        if !goes_on {
            (self.next, self.end) = (offset, offset);
        }
        let most = self.next.saturating_add(self.rule.window_bytes()).min(self.total());
        self.end = self.end.saturating_add(bytes).min(most).max(self.next);
        self.received = received;
        if let Compression::Measuring { since: Some(since) } = self.compression
            && received >= self.rule.window_bytes()
        {
            let micros = u64::try_from(now.since(since).as_micros()).unwrap_or(u64::MAX).max(1);
            let is_fast = received.saturating_mul(1_000_000) / micros >= FAST_BYTES_PER_SECOND;
            self.compression = if is_fast {
                Compression::Off
            } else {
                Compression::Trying { chunks: 0, raw: 0, packed: 0 }
            };
        }
    }

    /// When there is something to send.
    pub(crate) fn due(&self) -> Option<Instant> {
        let not_before = self.rate_limiter.as_ref().map_or(Instant::ZERO, RateLimiter::not_before);
        (self.next < self.end && !self.is_blocked).then_some(not_before)
    }

    /// The next chunk, if it is due.
    pub(crate) fn next_chunk(&mut self, now: Instant) -> Option<Chunk> {
        if self.due()? > now {
            return None;
        }
        let (offset, total) = (self.next, self.total());
        let end = (offset + self.slice_bytes()).min(self.end);
        let raw = self.slice(offset, end);
        if end > self.digested {
            let known = (self.digested - offset) as usize;
            self.digest.add(&raw[known..]);
            self.digested = end;
        }
        self.next = end;
        let packed = self.compress(now, &raw);
        let compressed = packed.is_some();
        let bytes = packed.map_or_else(|| raw.clone(), Bytes::from);
        if let Some(rate_limiter) = &mut self.rate_limiter {
            rate_limiter.sent(now, bytes.len() as u64);
        }
        let digest = (end == total).then(|| self.digest.value());
        Some(Chunk { offset, total, raw_bytes: raw.len() as u32, compressed, digest, bytes })
    }

    /// Of what is sent at once: never more than a quarter of the window, so that the joiner can ask
    /// for more before it has everything.
    fn slice_bytes(&self) -> u64 {
        let window = self.end.saturating_sub(self.received);
        self.rule.slice_bytes().min(self.rule.least_window_bytes().max(window / 2) / 2)
    }

    fn slice(&self, start: u64, end: u64) -> Bytes {
        let (start, end, head) = (start as usize, end as usize, self.head.len());
        if start >= head {
            self.state.slice(start - head..end - head)
        } else if end <= head {
            self.head.slice(start..end)
        } else {
            [&self.head[start..], &self.state[..end - head]].concat().into()
        }
    }

    /// The chunk as a block, if that is shorter.
    fn compress(&mut self, now: Instant, raw: &[u8]) -> Option<Vec<u8>> {
        match &mut self.compression {
            Compression::Measuring { since } => {
                since.get_or_insert(now);
                return None;
            }
            Compression::Off => return None,
            Compression::Trying { .. } | Compression::On => {}
        }
        let packed = lz4_flex::block::compress(raw);
        let length = packed.len();
        if let Compression::Trying { chunks, raw: before, packed: after } = &mut self.compression {
            (*chunks, *before, *after) =
                (*chunks + 1, *before + raw.len() as u64, *after + length as u64);
            if *chunks == TRIED_CHUNKS {
                let helps = *after * 10 <= *before * 9;
                self.compression = if helps { Compression::On } else { Compression::Off };
            }
        }
        (length < raw.len()).then_some(packed)
    }
}
