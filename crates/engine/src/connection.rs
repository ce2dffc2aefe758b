//! One client connection: its framer, what it negotiated, what it waits for, what it leaves unread.

use crate::access::ClientPeer;
use crate::config::GatewayLimits;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{Endian, Framer, FramerLimits, Version};
use quorba_replica::{GroupId, RequestNumber};

/// Fragmented requests that one connection may have begun at once (GIOP §15.4.9).
const FRAGMENTED_REQUESTS_MAX: usize = 16;

/// See the module's text.
pub(crate) struct Connection {
    /// Whose port it came to; [`crate::SHARED_PORT`]: each request says to which group it goes.
    pub(crate) group: GroupId,
    /// Groups that it has called, as far as others have to know.
    pub(crate) called: BTreeSet<GroupId>,
    /// The group whose server calls over it; `None`: it is a client's.
    pub(crate) caller: Option<GroupId>,
    pub(crate) peer: ClientPeer,
    pub(crate) framer: Framer,
    /// The last CodeSets context that came; it holds for all later requests (GIOP §13.10.2.6).
    pub(crate) code_sets: Option<Bytes>,
    /// Unanswered requests by the client's request id.
    pub(crate) pending: BTreeMap<u32, (GroupId, RequestNumber)>,
    /// Requests that came on it and are not over, whether or not it waits for them.
    pub(crate) calls: usize,
    /// Requests that are not ordered as long as it leaves its replies.
    pub(crate) aside: Vec<(GroupId, RequestNumber)>,
    /// The object whose call that waits was answered last on it.
    pub(crate) pulled_last: Option<Bytes>,
    /// Bytes of its framer that its address is charged for.
    pub(crate) unread: usize,
    /// Bytes that it has not taken, as far as the driver said; since when it has taken none.
    pub(crate) unsent: usize,
    pub(crate) unsent_since: Instant,
    /// There are too many: its first request is answered so.
    pub(crate) turned_away: bool,
    /// Nothing more comes from it, but it may wait for replies.
    pub(crate) half_closed: bool,
    pub(crate) paused: bool,
    /// The address used up its rate: read on at this time.
    pub(crate) throttled_until: Option<Instant>,
    /// The version of the last message, in which we speak.
    pub(crate) version: Version,
    /// The byte order of the last message.
    pub(crate) endian: Endian,
    pub(crate) last_heard: Instant,
    pub(crate) opened: Instant,
    /// Since when a message is incomplete, or since when it was looked at last, and how many bytes
    /// had come then.
    partial: Option<(Instant, u64)>,
    received_bytes: u64,
}

/// What [`Connection::holdings`] gives.
#[cfg(test)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionHoldings {
    pub(crate) group: GroupId,
    pub(crate) caller: Option<GroupId>,
    pub(crate) address: core::net::IpAddr,
    pub(crate) buffered_bytes: usize,
    pub(crate) pending: BTreeMap<u32, (GroupId, RequestNumber)>,
    pub(crate) calls: usize,
    pub(crate) aside: Vec<(GroupId, RequestNumber)>,
    pub(crate) unread: usize,
    pub(crate) unsent: usize,
    pub(crate) turned_away: bool,
    pub(crate) half_closed: bool,
    pub(crate) paused: bool,
    pub(crate) throttled_until: Option<Instant>,
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
            called: BTreeSet::new(),
            caller: None,
            peer,
            framer,
            code_sets: None,
            pending: BTreeMap::new(),
            calls: 0,
            aside: Vec::new(),
            pulled_last: None,
            unread: 0,
            unsent: 0,
            unsent_since: now,
            turned_away: false,
            half_closed: false,
            paused: false,
            throttled_until: None,
            version: Version::V1_2,
            endian: Endian::Little,
            last_heard: now,
            opened: now,
            partial: None,
            received_bytes: 0,
        }
    }

    /// What it has here: open calls, set aside, unread and unsent bytes.
    #[cfg(test)]
    pub(crate) fn holdings(&self) -> ConnectionHoldings {
        let Self {
            group,
            caller,
            peer,
            framer,
            pending,
            calls,
            aside,
            unread,
            unsent,
            turned_away,
            half_closed,
            paused,
            throttled_until,
            // Only whom it has called.
            called: _,
            // What was agreed, or said, and when.
            code_sets: _,
            pulled_last: _,
            unsent_since: _,
            version: _,
            endian: _,
            last_heard: _,
            opened: _,
            partial: _,
            received_bytes: _,
        } = self;
        ConnectionHoldings {
            group: *group,
            caller: *caller,
            address: peer.address,
            buffered_bytes: framer.buffered_bytes(),
            pending: pending.clone(),
            calls: *calls,
            aside: aside.clone(),
            unread: *unread,
            unsent: *unsent,
            turned_away: *turned_away,
            half_closed: *half_closed,
            paused: *paused,
            throttled_until: *throttled_until,
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

    /// Whether an unfinished message goes on slower than is allowed, since this was asked last for
    /// long enough: what came before that excuses nothing. The time in which the connection is not
    /// read does not count.
    pub(crate) fn is_too_slow(&mut self, now: Instant, limits: &GatewayLimits) -> bool {
        let Some((since, received)) = self.partial else { return false };
        let waited = now.since(since);
        if self.paused {
            self.partial = Some((now, self.received_bytes));
            return false;
        }
        if waited < limits.header {
            return false;
        }
        self.partial = Some((now, self.received_bytes));
        let bytes = self.received_bytes - received;
        let wanted = u128::from(limits.body_bytes_per_second_min) * waited.as_millis() / 1000;
        u128::from(bytes) < wanted
    }

    /// The driver says how much is unsent.
    pub(crate) fn note_unsent(&mut self, now: Instant, bytes: usize) {
        if bytes < self.unsent || self.unsent == 0 {
            self.unsent_since = now;
        }
        self.unsent = bytes;
    }

    /// Whether it has taken nothing of what it is sent for so long.
    pub(crate) fn takes_nothing(&self, now: Instant, within: Duration) -> bool {
        self.unsent > 0 && now.since(self.unsent_since) >= within
    }

    /// Whether nothing came and nothing is awaited for `idle`.
    pub(crate) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let is_quiet = self.pending.is_empty() && self.unsent == 0 && self.caller.is_none();
        is_quiet && now.since(self.last_heard) >= idle
    }

    pub(crate) fn has_partial(&self) -> bool {
        self.partial.is_some()
    }
}
