//! The commit token (Amir95, membership): goes round the proposed ring twice, first to collect
//! where each member stands in its old ring, then to tell all of them.
//!
//! Layout: ring (9), hop (1), rotation estimate in µs (4), member set (8), then per member one
//! byte: 0 not yet filled in, 1 no old ring, 2 with old ring; if filled incarnation (8), and for 2
//! the old ring (varint, 1), varint `delivered`, varint `aru`, varint `high - aru`.
//!
//! Invariants: `delivered <= high` and `aru <= high`.

use super::{InvalidDatagram, Reader, put_ring, put_varint};
use crate::ids::RingId;
use alloc::vec::Vec;
use bytes::{BufMut, BytesMut};
use quorba_base::{NodeId, NodeSet};

/// Where a member stands in the ring that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldState {
    pub(crate) ring: RingId,
    /// Delivered to its application so far.
    pub(crate) delivered: u64,
    /// Received without a gap.
    pub(crate) aru: u64,
    /// Highest received.
    pub(crate) high: u64,
}

/// One member's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberState {
    pub(crate) incarnation: u64,
    pub(crate) old: Option<OldState>,
}

/// The commit token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitToken {
    /// The ring that it forms.
    pub(crate) ring: RingId,
    /// Passes so far; below the number of members it collects, then it tells.
    pub(crate) hop: u8,
    pub(crate) rotation_us: u32,
    pub(crate) members: NodeSet,
    /// In ascending order of members.
    pub(crate) states: Vec<Option<MemberState>>,
}

impl CommitToken {
    /// `node`'s entry, if it is a member and filled in.
    pub(crate) fn state_of(&self, node: NodeId) -> Option<&MemberState> {
        let index = self.members.iter().position(|member| member == node)?;
        self.states.get(index)?.as_ref()
    }

    /// Fills in `node`'s entry.
    pub(crate) fn fill(&mut self, node: NodeId, state: MemberState) {
        let index = self.members.iter().position(|member| member == node);
        self.states[index.expect("a commit token is only filled in by members")] = Some(state);
    }

    /// Whether every member has filled in its entry.
    pub(crate) fn is_full(&self) -> bool {
        self.states.iter().all(Option::is_some)
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, InvalidDatagram> {
        let (ring, hop, rotation_us) = (reader.ring()?, reader.u8()?, reader.u32()?);
        let members = reader.set()?;
        if !members.contains(ring.representative) {
            return Err(InvalidDatagram::Field("representative"));
        }
        let mut states = Vec::with_capacity(members.len());
        for _ in members {
            states.push(decode_state(reader)?);
        }
        Ok(Self { ring, hop, rotation_us, members, states })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.states.len(), self.members.len());
        put_ring(out, self.ring);
        out.put_u8(self.hop);
        out.put_u32(self.rotation_us);
        out.put_u64(self.members.bits());
        for state in &self.states {
            encode_state(out, state.as_ref());
        }
    }
}

fn decode_state(reader: &mut Reader<'_>) -> Result<Option<MemberState>, InvalidDatagram> {
    let filled = reader.u8()?;
    if filled == 0 {
        return Ok(None);
    }
    let incarnation = reader.u64()?;
    let old = match filled {
        1 => None,
        2 => {
            let ring = RingId { seq: reader.varint()?, representative: reader.node()? };
            let (delivered, aru) = (reader.varint()?, reader.varint()?);
            let more = reader.varint()?;
            let high = aru.checked_add(more).ok_or(InvalidDatagram::Count(more))?;
            if delivered > high {
                return Err(InvalidDatagram::Field("delivered"));
            }
            Some(OldState { ring, delivered, aru, high })
        }
        _ => return Err(InvalidDatagram::Field("member state")),
    };
    Ok(Some(MemberState { incarnation, old }))
}

fn encode_state(out: &mut BytesMut, state: Option<&MemberState>) {
    let Some(state) = state else {
        out.put_u8(0);
        return;
    };
    out.put_u8(if state.old.is_some() { 2 } else { 1 });
    out.put_u64(state.incarnation);
    if let Some(old) = &state.old {
        put_varint(out, old.ring.seq);
        out.put_u8(old.ring.representative.index());
        put_varint(out, old.delivered);
        put_varint(out, old.aru);
        put_varint(out, old.high - old.aru);
    }
}
