//! One client connection: its framer, what it negotiated, what it waits for.

use crate::access::ClientPeer;
use crate::config::GatewayLimits;
use alloc::collections::BTreeMap;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{Endian, Framer, FramerLimits, Version};
use quorba_replica::{GroupId, RequestNumber};

/// Fragmented requests that one connection may have begun at once (GIOP §15.4.9).
const FRAGMENTED_REQUESTS_MAX: usize = 16;

/// See the module's text.
pub(crate) struct Connection {
    pub(crate) group: GroupId,
    /// The group whose server calls over it; `None`: it is a client's.
    pub(crate) caller: Option<GroupId>,
    pub(crate) peer: ClientPeer,
    pub(crate) framer: Framer,
    /// The last CodeSets context that came; it holds for all later requests (GIOP §13.10.2.6).
    pub(crate) code_sets: Option<Bytes>,
    /// Unanswered requests by the client's request id.
    pub(crate) pending: BTreeMap<u32, RequestNumber>,
    pub(crate) paused: bool,
    /// The address used up its rate: read on at this time.
    pub(crate) throttled_until: Option<Instant>,
    /// The version of the last message, in which we speak.
    pub(crate) version: Version,
    /// The byte order of the last message.
    pub(crate) endian: Endian,
    pub(crate) last_heard: Instant,
    /// When the message that is incomplete began, and how many bytes had come then.
    partial: Option<(Instant, u64)>,
    received_bytes: u64,
}

impl Connection {
    pub(crate) fn new(
        now: Instant,
        group: GroupId,
        peer: ClientPeer,
        limits: &GatewayLimits,
    ) -> Self {
        let framer = Framer::new(FramerLimits {
            message_bytes_max: limits.message_bytes,
            fragmented_requests_max: FRAGMENTED_REQUESTS_MAX,
            buffered_bytes_max: limits.message_bytes.saturating_add(1 << 20),
        });
        Self {
            group,
            caller: None,
            peer,
            framer,
            code_sets: None,
            pending: BTreeMap::new(),
            paused: false,
            throttled_until: None,
            version: Version::V1_2,
            endian: Endian::Little,
            last_heard: now,
            partial: None,
            received_bytes: 0,
        }
    }

    /// Bytes came.
    pub(crate) fn heard(&mut self, now: Instant, count: usize) {
        self.last_heard = now;
        self.received_bytes += count as u64;
    }

    /// All complete messages have been taken out: note whether one is under way.
    pub(crate) fn note_partial(&mut self, now: Instant, completed: bool) {
        if !self.framer.waiting_since_partial() {
            self.partial = None;
        } else if completed || self.partial.is_none() {
            self.partial = Some((now, self.received_bytes));
        }
    }

    /// Whether an unfinished message goes on slower than is allowed.
    pub(crate) fn is_too_slow(&self, now: Instant, limits: &GatewayLimits) -> bool {
        let Some((since, received)) = self.partial else { return false };
        let waited = now.since(since);
        if waited < limits.header || self.paused {
            return false;
        }
        let bytes = self.received_bytes - received;
        bytes < limits.body_bytes_per_second_min.saturating_mul(waited.as_secs())
    }

    /// Whether nothing came and nothing is awaited for `idle`.
    pub(crate) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        self.caller.is_none() && self.pending.is_empty() && now.since(self.last_heard) >= idle
    }

    pub(crate) fn has_partial(&self) -> bool {
        self.partial.is_some()
    }
}
