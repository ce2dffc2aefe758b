//! What a server's reply says, in short: read once, for all who want to know.
//!
//! What it is not: the reply. Invariant: it is of the very bytes that it travels with.

use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::{Body, Endian, Message, Reply, ReplyStatus, padding};

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReplySummary {
    /// How the call ended.
    pub(crate) status: ReplyStatus,
    body_offset: usize,
}

impl ReplySummary {
    /// Of a reply that was read already.
    pub(crate) fn read(reply: &Reply<'_>) -> Self {
        Self { status: reply.status(), body_offset: reply.body_offset() }
    }

    /// Of a whole message; none if it is no reply.
    pub(crate) fn of(reply: &Bytes) -> Option<Self> {
        match Message::from_bytes(reply.clone()).ok()?.parse() {
            Ok(Body::Reply(reply)) => Some(Self::read(&reply)),
            _ => None,
        }
    }

    /// Where the results begin in the reply that it is of.
    pub(crate) const fn body_offset(self) -> usize {
        self.body_offset
    }

    /// The results, with zeros where padding seems to be.
    pub(crate) fn cleared_body(self, reply: &Bytes) -> Vec<u8> {
        padding::cleared(reply, self.body_offset, endian_of(reply))
    }

    /// The results in the reply that it is of.
    pub(crate) fn body(self, reply: &Bytes) -> &[u8] {
        reply.get(self.body_offset..).unwrap_or_default()
    }
}

/// The byte order of a message (GIOP §15.4.1).
pub(crate) fn endian_of(giop: &[u8]) -> Endian {
    Endian::from_bit(giop.get(6).copied().unwrap_or_default())
}
