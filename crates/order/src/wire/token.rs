//! The regular token (Amir95, ordering).
//!
//! Where the paper has one all-received-up-to field and the id of who lowered it, this token has
//! one such number per member: a minimum over it is true at once, not only after two rotations,
//! and each sender learns which nodes have its messages.
//!
//! Layout: ring (9), hop (8), seq (8), member set (8), per member the varint `seq - aru`; count of
//! requests (1), per request varint `seq - first` and varint length - 1; sent, backlog (4 each);
//! wanted, recovering, pending sets (8 each); flags (1); rest owner (1); hops to go (1);
//! rest budget, rotation estimate in µs (4 each); id of a domain key (3), who has it (8).
//!
//! Invariants: `hop` grows with every pass, so a repeated token is recognised and changes nothing;
//! no aru is above `seq`.

use super::{InvalidDatagram, Reader, back_from, count, put_ring, put_varint};
use crate::ids::RingId;
use crate::seal::KeyId;
use alloc::vec::Vec;
use bytes::{BufMut, BytesMut};
use quorba_base::{NodeId, NodeSet};

/// The most ranges of missing packets on one token.
pub(crate) const REQUESTS_MAX: usize = 48;
/// The most packets that one range may name.
pub(crate) const RANGE_PACKETS_MAX: u64 = 1024;

/// Packets that some node lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GapRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The regular token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) ring: RingId,
    /// Passes so far.
    pub(crate) hop: u64,
    /// The highest packet number given out.
    pub(crate) seq: u64,
    pub(crate) members: NodeSet,
    /// What each member has received without a gap, in ascending order of members.
    pub(crate) arus: Vec<u64>,
    /// Packets to repeat.
    pub(crate) requests: Vec<GapRange>,
    /// Packets sent in the last rotation, repetitions included (flow control).
    pub(crate) sent: u32,
    /// Packets waiting at all members (flow control).
    pub(crate) backlog: u32,
    /// Members that asked for the token.
    pub(crate) wanted: NodeSet,
    /// Members that may still have to repeat packets of their old rings (recovery).
    pub(crate) recovering: NodeSet,
    /// Some member has been seen to have all recovered packets: the new ring is in force.
    pub(crate) complete: bool,
    /// Safe messages wait at some member for what this token knows.
    pub(crate) safe_pending: NodeSet,
    /// Who keeps the token while nobody wants it: the last sender.
    pub(crate) rest_owner: NodeId,
    /// Passes in ring order before it may rest again.
    pub(crate) hops_to_go: u8,
    /// How long it may still rest before it must go round.
    pub(crate) rest_budget_us: u32,
    /// Smoothed time of a rotation.
    pub(crate) rotation_us: u32,
    /// The newest domain key that a member has ...
    pub(crate) key: KeyId,
    /// ... and the members that have it as their newest, too.
    pub(crate) keyed: NodeSet,
}

impl Token {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, InvalidDatagram> {
        let (ring, hop, seq) = (reader.ring()?, reader.u64()?, reader.u64()?);
        let members = reader.node_set()?;
        if members.is_empty() {
            return Err(InvalidDatagram::Field("members"));
        }
        let mut arus = Vec::with_capacity(members.len());
        for _ in members {
            arus.push(back_from(seq, reader.varint()?)?);
        }
        let requests = Self::decode_requests(reader, seq)?;
        let (sent, backlog) = (reader.u32()?, reader.u32()?);
        let (wanted, recovering, safe_pending) =
            (reader.node_set()?, reader.node_set()?, reader.node_set()?);
        let complete = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(InvalidDatagram::Field("token flags")),
        };
        let rest_owner = reader.node()?;
        let all = wanted.union(recovering).union(safe_pending).with(rest_owner);
        if !all.is_subset(members) {
            return Err(InvalidDatagram::Node);
        }
        Ok(Self {
            ring,
            hop,
            seq,
            members,
            arus,
            requests,
            sent,
            backlog,
            wanted,
            recovering,
            complete,
            safe_pending,
            rest_owner,
            hops_to_go: reader.u8()?,
            rest_budget_us: reader.u32()?,
            rotation_us: reader.u32()?,
            key: KeyId(reader.take()?),
            keyed: reader.node_set()?,
        })
    }

    fn decode_requests(
        reader: &mut Reader<'_>,
        seq: u64,
    ) -> Result<Vec<GapRange>, InvalidDatagram> {
        let count = count(reader, REQUESTS_MAX)?;
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            let first = back_from(seq, reader.varint()?)?;
            let more = reader.varint()?;
            if more >= RANGE_PACKETS_MAX {
                return Err(InvalidDatagram::Count(more));
            }
            let last = first.checked_add(more).filter(|last| *last <= seq && first > 0);
            requests.push(GapRange { first, last: last.ok_or(InvalidDatagram::Field("request"))? });
        }
        Ok(requests)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.arus.len(), self.members.len());
        put_ring(out, self.ring);
        out.put_u64(self.hop);
        out.put_u64(self.seq);
        out.put_u64(self.members.bits());
        for aru in &self.arus {
            put_varint(out, self.seq - aru);
        }
        out.put_u8(u8::try_from(self.requests.len()).expect("at most REQUESTS_MAX"));
        for range in &self.requests {
            put_varint(out, self.seq - range.first);
            put_varint(out, range.last - range.first);
        }
        out.put_u32(self.sent);
        out.put_u32(self.backlog);
        out.put_u64(self.wanted.bits());
        out.put_u64(self.recovering.bits());
        out.put_u64(self.safe_pending.bits());
        out.put_u8(u8::from(self.complete));
        out.put_u8(self.rest_owner.index());
        out.put_u8(self.hops_to_go);
        out.put_u32(self.rest_budget_us);
        out.put_u32(self.rotation_us);
        out.put_slice(&self.key.0);
        out.put_u64(self.keyed.bits());
    }
}
