//! The messages that one node sends to another, over the link between them, and their encoding.
//!
//! What it is not: ordered. A message says for itself what it belongs to, and one that belongs to
//! nothing any more is left out. Invariant: the bulk stands last and is not copied on the way in.

use crate::messages::catalog::{put_position, take_position};
use crate::messages::pieces::{Chunk, Fetch};
use crate::words::ids::{Attempt, GatewayKey, GroupId, RequestNumber, RingId, put_view, take_view};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;
pub use quorba_base::Lane;
use quorba_base::Position;

/// The longest message.
pub const PEER_MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Everything that travels from one node to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PeerMessage {
    /// The sender's member wants more of the state that the receiver's member gives it.
    Fetch {
        /// Of this group.
        group: GroupId,
        /// For this try.
        attempt: Attempt,
        /// What it wants.
        fetch: Fetch,
    },
    /// A part of the state that the receiver's member takes.
    Chunk {
        /// Of this group.
        group: GroupId,
        /// For this try.
        attempt: Attempt,
        /// The part.
        chunk: Chunk,
    },
    /// The sender has so many messages of the component on disk, and all before it.
    Logged {
        /// The component's view.
        view: RingId,
        /// Messages applied in it.
        prefix: u64,
        /// Of these groups the log lacks what was applied up to that place, or all (`u64::MAX`).
        gaps: Vec<(GroupId, u64)>,
    },
    /// A read, or a call to a stateless group, of the sender's gateway for the receiver's member.
    Call {
        /// Of this group.
        group: GroupId,
        /// The gateway's name for it.
        number: RequestNumber,
        /// The group is stateless, as far as the sender knows.
        stateless: bool,
        /// What the client's connection has negotiated.
        code_sets: Option<Bytes>,
        /// The whole GIOP message.
        giop: Bytes,
    },
    /// What came of it.
    Answer {
        /// Of this group.
        group: GroupId,
        /// Whose call it was.
        to: GatewayKey,
        /// The whole GIOP message; `None`: nothing, ask somebody else.
        giop: Option<Bytes>,
        /// Because the process of the server that had it has ended.
        ended: bool,
    },
    /// The sender's member is through all requests up to this one.
    Through {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in.
        attempt: Attempt,
        /// The request, counted from the group's first.
        up_to: u64,
    },
    /// The sender's member has more in front of it than it should, and is through all requests up
    /// to this one; or it has caught up.
    Progress {
        /// Of this group.
        group: GroupId,
        /// The request, counted from the group's first.
        up_to: u64,
        /// Nothing is in front of it any more.
        caught_up: bool,
    },
    /// The sender has the catalog on disk as it was at that place of the order.
    CatalogSaved {
        /// Where it was changed last.
        version: Position,
    },
    /// The sender may have lost answers: whoever waits for one of it asks somebody else.
    AnswersLost {
        /// Of this group.
        group: GroupId,
    },
}

const FETCH: u8 = 1;
const CHUNK: u8 = 2;
const LOGGED: u8 = 3;
const CALL: u8 = 4;
const ANSWER: u8 = 5;
const ANSWERS_LOST: u8 = 6;
const THROUGH: u8 = 7;
const PROGRESS: u8 = 8;
const CATALOG_SAVED: u8 = 9;
const COMPRESSED: u8 = 1;
const DIGEST: u8 = 2;

impl PeerMessage {
    /// Which group's it is.
    /// `None`: it is about the node.
    pub(crate) const fn group(&self) -> Option<GroupId> {
        match self {
            Self::Logged { .. } | Self::CatalogSaved { .. } => None,
            Self::Fetch { group, .. }
            | Self::Chunk { group, .. }
            | Self::Call { group, .. }
            | Self::Answer { group, .. }
            | Self::Through { group, .. }
            | Self::Progress { group, .. }
            | Self::AnswersLost { group } => Some(*group),
        }
    }

    /// In which lane it goes.
    pub(crate) const fn lane(&self) -> Lane {
        match self {
            Self::Fetch { .. }
            | Self::Logged { .. }
            | Self::CatalogSaved { .. }
            | Self::Call { .. }
            | Self::Answer { .. }
            | Self::Through { .. }
            | Self::Progress { .. }
            | Self::AnswersLost { .. } => Lane::Control,
            Self::Chunk { .. } => Lane::Bulk,
        }
    }

    /// The encoded message.
    pub(crate) fn encode(&self) -> Bytes {
        match self {
            Self::Fetch { group, attempt, fetch } => {
                let mut w = head(FETCH, *group, attempt.0, 24);
                w.u64(fetch.received);
                w.u64(fetch.offset);
                w.u64(fetch.bytes);
                w.finish()
            }
            Self::Chunk { group, attempt, chunk } => chunk_bytes(*group, *attempt, chunk),
            Self::Logged { view, prefix, gaps } => {
                let mut w = Writer::with_capacity(22 + 16 * gaps.len());
                w.u8(LOGGED);
                put_view(&mut w, *view);
                w.u64(*prefix);
                w.u32(gaps.len() as u32);
                for (group, up_to) in gaps {
                    w.u64(group.0);
                    w.u64(*up_to);
                }
                w.finish()
            }
            Self::CatalogSaved { version } => {
                let mut w = Writer::with_capacity(18);
                w.u8(CATALOG_SAVED);
                put_position(&mut w, *version);
                w.finish()
            }
            Self::Call { group, number, stateless, code_sets, giop } => {
                let code_sets_bytes = code_sets.as_ref().map_or(0, Bytes::len);
                let mut w = head(CALL, *group, number.0, 8 + code_sets_bytes + giop.len());
                w.u8(u8::from(*stateless));
                w.u8(u8::from(code_sets.is_some()));
                if let Some(code_sets) = code_sets {
                    w.bytes(code_sets);
                }
                w.rest(giop);
                w.finish()
            }
            Self::Answer { group, to, giop, ended } => {
                let giop_bytes = giop.as_ref().map_or(0, Bytes::len);
                let mut w = head(ANSWER, *group, to.number.0, 11 + giop_bytes);
                w.node(to.node);
                w.u64(to.incarnation);
                w.u8(u8::from(*ended));
                w.u8(u8::from(giop.is_some()));
                if let Some(giop) = giop {
                    w.rest(giop);
                }
                w.finish()
            }
            Self::Through { group, attempt, up_to } => {
                let mut w = head(THROUGH, *group, *up_to, 8);
                w.u64(attempt.0);
                w.finish()
            }
            Self::Progress { group, up_to, caught_up } => {
                let mut w = head(PROGRESS, *group, *up_to, 1);
                w.u8(u8::from(*caught_up));
                w.finish()
            }
            Self::AnswersLost { group } => head(ANSWERS_LOST, *group, 0, 0).finish(),
        }
    }

    /// Reads a message; `bytes` are shared, not copied.
    ///
    /// # Errors
    /// If the sender is of another version: the message is left out.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self, InvalidEnvelope> {
        let mut r = Reader::new(bytes);
        let kind = r.u8("kind")?;
        if kind == LOGGED {
            let (view, prefix) = (take_view(&mut r)?, r.u64("prefix")?);
            let mut gaps = Vec::new();
            for _ in 0..r.count(16, "gaps")? {
                gaps.push((GroupId(r.u64("gap's group")?), r.u64("gap's end")?));
            }
            let message = Self::Logged { view, prefix, gaps };
            r.end()?;
            return Ok(message);
        }
        if kind == CATALOG_SAVED {
            let version = take_position(&mut r)?;
            r.end()?;
            return Ok(Self::CatalogSaved { version });
        }
        let group = GroupId(r.u64("group")?);
        // Each kind has a name for what it is about here.
        let name = r.u64("name")?;
        let attempt = Attempt(name);
        let message = match kind {
            FETCH => {
                let (received, offset) = (r.u64("received")?, r.u64("offset")?);
                let fetch = Fetch { received, offset, bytes: r.u64("bytes")? };
                Self::Fetch { group, attempt, fetch }
            }
            CHUNK => {
                let (offset, total) = (r.u64("offset")?, r.u64("total")?);
                let raw_bytes = r.u32("raw bytes")?;
                let flags = r.u8("flags")?;
                if flags > (COMPRESSED | DIGEST) {
                    return Err(r.error("flags"));
                }
                let digest = if flags & DIGEST != 0 { Some(r.u64("digest")?) } else { None };
                let compressed = flags & COMPRESSED != 0;
                let bytes = r.rest();
                let chunk = Chunk { offset, total, raw_bytes, compressed, digest, bytes };
                Self::Chunk { group, attempt, chunk }
            }
            CALL => {
                let stateless = r.bool("stateless flag")?;
                let known = r.bool("code sets flag")?;
                let code_sets = if known { Some(r.bytes("code sets")?) } else { None };
                let (number, giop) = (RequestNumber(name), r.rest());
                Self::Call { group, number, stateless, code_sets, giop }
            }
            ANSWER => {
                let node = r.node("gateway")?;
                let incarnation = r.u64("incarnation")?;
                let to = GatewayKey { node, incarnation, number: RequestNumber(name) };
                let ended = r.bool("end flag")?;
                let giop = if r.bool("reply flag")? { Some(r.rest()) } else { None };
                Self::Answer { group, to, giop, ended }
            }
            THROUGH => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Through { group, attempt, up_to: name }
            }
            PROGRESS => {
                let caught_up = r.bool("caught up flag")?;
                Self::Progress { group, up_to: name, caught_up }
            }
            ANSWERS_LOST => Self::AnswersLost { group },
            _ => return Err(InvalidEnvelope { what: "kind", offset: 0 }),
        };
        r.end()?;
        Ok(message)
    }
}

fn head(kind: u8, group: GroupId, name: u64, more_bytes: usize) -> Writer {
    let mut w = Writer::with_capacity(17 + more_bytes);
    w.u8(kind);
    w.u64(group.0);
    w.u64(name);
    w
}

fn chunk_bytes(group: GroupId, attempt: Attempt, chunk: &Chunk) -> Bytes {
    let mut w = head(CHUNK, group, attempt.0, 32 + chunk.bytes.len());
    w.u64(chunk.offset);
    w.u64(chunk.total);
    w.u32(chunk.raw_bytes);
    let compressed = if chunk.compressed { COMPRESSED } else { 0 };
    w.u8(compressed | if chunk.digest.is_some() { DIGEST } else { 0 });
    if let Some(digest) = chunk.digest {
        w.u64(digest);
    }
    w.rest(&chunk.bytes);
    w.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::rules::CHUNK_BYTES_MAX;
    use alloc::vec;
    use alloc::vec::Vec;

    fn samples() -> Vec<PeerMessage> {
        let (group, attempt) = (GroupId(7), Attempt(3));
        let fetch = Fetch { received: 1, offset: 2, bytes: 3 };
        let (number, giop) = (RequestNumber(8), Bytes::from_static(b"GIOP..."));
        let call = |stateless, code_sets| PeerMessage::Call {
            group,
            number,
            stateless,
            code_sets,
            giop: Bytes::from_static(b"GIOP..."),
        };
        let to = GatewayKey { node: quorba_base::NodeId::new(2).unwrap(), incarnation: 5, number };
        let chunk = |compressed, digest| Chunk {
            offset: 1,
            total: 9,
            raw_bytes: 3,
            compressed,
            digest,
            bytes: Bytes::from_static(b"xyz"),
        };
        vec![
            PeerMessage::Fetch { group, attempt, fetch },
            PeerMessage::Logged {
                view: RingId { seq: 4, representative: quorba_base::NodeId::new(1).unwrap() },
                prefix: 9,
                gaps: vec![(group, 7)],
            },
            PeerMessage::Chunk { group, attempt, chunk: chunk(false, None) },
            PeerMessage::Chunk { group, attempt, chunk: chunk(true, Some(77)) },
            call(false, None),
            call(true, Some(giop.clone())),
            PeerMessage::Answer { group, to, giop: Some(giop), ended: false },
            PeerMessage::Answer { group, to, giop: None, ended: true },
            PeerMessage::Through { group, attempt: Attempt(9), up_to: 77 },
            PeerMessage::Progress { group, up_to: 78, caught_up: true },
            PeerMessage::AnswersLost { group },
        ]
    }

    #[test]
    fn decodes_what_it_encoded() {
        for message in samples() {
            assert_eq!(PeerMessage::decode(message.encode()), Ok(message));
        }
    }

    #[test]
    fn whatever_comes_is_an_error_and_no_panic() {
        for message in samples() {
            let whole = message.encode();
            for length in 0..whole.len() {
                let _ = PeerMessage::decode(whole.slice(..length));
            }
        }
        assert!(PeerMessage::decode(Bytes::from_static(&[9; 40])).is_err());
    }

    #[test]
    fn the_longest_chunk_fits_a_message() {
        let bytes = Bytes::from(vec![0; CHUNK_BYTES_MAX]);
        let raw_bytes = CHUNK_BYTES_MAX as u32;
        let (offset, total, digest) = (u64::MAX, u64::MAX, Some(u64::MAX));
        let chunk = Chunk { offset, total, raw_bytes, compressed: false, digest, bytes };
        let (group, attempt) = (GroupId(u64::MAX), Attempt(u64::MAX));
        let message = PeerMessage::Chunk { group, attempt, chunk };
        assert!(message.encode().len() <= PEER_MESSAGE_BYTES_MAX);
    }
}
