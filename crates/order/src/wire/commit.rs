//! The commit token (Amir95, membership): goes round the proposed ring twice, first to collect
//! where each member stands in its old ring, then to tell all of them.
//!
//! Layout: ring (9), hop (1), rotation estimate in µs (4), member set (8); the old rings that
//! members come from: count (1), per ring varint number, representative (1), the highest `high` and
//! the union of all obligations as varints; the lowest incarnation (8); then per member one byte: 0
//! not yet filled in, 1 no old ring, 2 + i the i-th old ring; if filled the varint distance of its
//! incarnation to the lowest; with an old ring the varint distances of its `high` to the ring's
//! highest, and of its `aru` and `delivered` to its `high`. So a member costs some ten bytes, and
//! 64 members fit a datagram of 1,400 (`the_commit_token_of_64_nodes_fits_a_frame`).
//!
//! Invariants: `delivered <= high` and `aru <= high`.

use super::{InvalidDatagram, Reader, back_from, count, put_ring, put_varint};
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
    /// Members whose messages it must deliver, because others may have, in a recovery that failed
    /// for it. What one says counts for all that come from the same ring.
    pub(crate) obligation: NodeSet,
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
        let members = reader.node_set()?;
        if !members.contains(ring.representative) {
            return Err(InvalidDatagram::Field("representative"));
        }
        let count = count(reader, members.len())?;
        let mut origins = Vec::with_capacity(count);
        for _ in 0..count {
            let ring = RingId { seq: reader.varint()?, representative: reader.node()? };
            let (high, obligation) = (reader.varint()?, NodeSet::from_bits(reader.varint()?));
            origins.push(Origin { ring, high, obligation });
        }
        let first_boot = reader.u64()?;
        let mut states = Vec::with_capacity(members.len());
        for _ in members {
            states.push(decode_state(reader, &origins, first_boot)?);
        }
        Ok(Self { ring, hop, rotation_us, members, states })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.states.len(), self.members.len());
        put_ring(out, self.ring);
        out.put_u8(self.hop);
        out.put_u32(self.rotation_us);
        out.put_u64(self.members.bits());
        let mut origins: Vec<Origin> = Vec::new();
        for old in self.states.iter().flatten().filter_map(|state| state.old) {
            match origins.iter_mut().find(|origin| origin.ring == old.ring) {
                Some(origin) => {
                    origin.high = origin.high.max(old.high);
                    origin.obligation = origin.obligation.union(old.obligation);
                }
                None => {
                    let OldState { ring, high, obligation, .. } = old;
                    origins.push(Origin { ring, high, obligation });
                }
            }
        }
        out.put_u8(u8::try_from(origins.len()).expect("at most one per member"));
        for origin in &origins {
            put_varint(out, origin.ring.seq);
            out.put_u8(origin.ring.representative.index());
            put_varint(out, origin.high);
            put_varint(out, origin.obligation.bits());
        }
        let boots = self.states.iter().flatten().map(|state| state.incarnation);
        let first_boot = boots.min().unwrap_or(0);
        out.put_u64(first_boot);
        for state in &self.states {
            encode_state(out, state.as_ref(), &origins, first_boot);
        }
    }
}

/// An old ring that members come from.
struct Origin {
    ring: RingId,
    /// The highest that any of them has received.
    high: u64,
    /// What any of them is bound to.
    obligation: NodeSet,
}

/// Kinds of a member's entry; those above name an old ring.
const EMPTY: u8 = 0;
const NO_OLD_RING: u8 = 1;
const FIRST_OLD_RING: u8 = 2;

fn decode_state(
    reader: &mut Reader<'_>,
    origins: &[Origin],
    first_boot: u64,
) -> Result<Option<MemberState>, InvalidDatagram> {
    let kind = reader.u8()?;
    if kind == EMPTY {
        return Ok(None);
    }
    let more = reader.varint()?;
    let incarnation = first_boot.checked_add(more).ok_or(InvalidDatagram::Count(more))?;
    if kind == NO_OLD_RING {
        return Ok(Some(MemberState { incarnation, old: None }));
    }
    let origin = origins.get(usize::from(kind - FIRST_OLD_RING));
    let origin = origin.ok_or(InvalidDatagram::Field("member state"))?;
    let high = back_from(origin.high, reader.varint()?)?;
    let aru = back_from(high, reader.varint()?)?;
    let delivered = back_from(high, reader.varint()?)?;
    let (ring, obligation) = (origin.ring, origin.obligation);
    let old = OldState { ring, delivered, aru, high, obligation };
    Ok(Some(MemberState { incarnation, old: Some(old) }))
}

fn encode_state(
    out: &mut BytesMut,
    state: Option<&MemberState>,
    origins: &[Origin],
    first_boot: u64,
) {
    let Some(state) = state else {
        out.put_u8(EMPTY);
        return;
    };
    let place = |ring: RingId| origins.iter().position(|origin| origin.ring == ring);
    let place = state.old.and_then(|old| place(old.ring));
    out.put_u8(place.map_or(NO_OLD_RING, |place| FIRST_OLD_RING + place as u8));
    put_varint(out, state.incarnation - first_boot);
    if let (Some(old), Some(place)) = (&state.old, place) {
        put_varint(out, origins[place].high - old.high);
        put_varint(out, old.high - old.aru);
        put_varint(out, old.high - old.delivered);
    }
}
