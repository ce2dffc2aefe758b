//! Join and Hello: what nodes say that are not, or not yet, in one ring.
//!
//! A greeting is the head of both: domain digest (8), ring (1 + 9 if any), count of echoes (1) and
//! per echo node (1) and session (12). A Join goes on with proc and fail sets (8 each), the
//! highest ring number (8), and a count (1) of boots that are over: node (1), incarnation (8) and
//! cause (1: process lost, 2: failed to receive, 3: departed, 4: poor links) each. A Join whose
//! sender is in its own fail set is a farewell.
//!
//! Invariant: an echo is no claim of membership, it only proves to the one who is echoed that the
//! sender lives now.

use super::{InvalidDatagram, Reader, count, put_ring};
use crate::ids::RingId;
use crate::output::LeaveReason;
use crate::seal::SessionId;
use alloc::vec::Vec;
use bytes::{BufMut, BytesMut};
use quorba_base::{NODES_MAX, NodeId, NodeSet};

/// Who I am and whom I hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) domain_digest: u64,
    /// The ring that the sender has installed last.
    pub(crate) ring: Option<RingId>,
    /// Of each node heard, its session: proof that I heard this very boot.
    pub(crate) echoes: Vec<(NodeId, SessionId)>,
}

impl Greeting {
    /// Whether the sender echoes `session` of `node`.
    pub(crate) fn echoes(&self, node: NodeId, session: &SessionId) -> bool {
        self.echoes.iter().any(|(heard, echo)| *heard == node && echo == session)
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, InvalidDatagram> {
        let domain_digest = reader.u64()?;
        let ring = match reader.u8()? {
            0 => None,
            1 => Some(reader.ring()?),
            _ => return Err(InvalidDatagram::Field("ring flag")),
        };
        let count = count(reader, NODES_MAX)?;
        let mut echoes = Vec::with_capacity(count);
        for _ in 0..count {
            echoes.push((reader.node()?, reader.take()?));
        }
        Ok(Self { domain_digest, ring, echoes })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u64(self.domain_digest);
        out.put_u8(u8::from(self.ring.is_some()));
        if let Some(ring) = self.ring {
            put_ring(out, ring);
        }
        out.put_u8(u8::try_from(self.echoes.len()).expect("at most NODES_MAX"));
        for (node, session) in &self.echoes {
            out.put_u8(node.index());
            out.put_slice(session);
        }
    }
}

/// A proposal of membership (Amir95, membership).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) greeting: Greeting,
    /// Nodes that the sender considers.
    pub(crate) proc: NodeSet,
    /// Those of them that it excludes.
    pub(crate) fail: NodeSet,
    /// The highest ring number that the sender has seen in a commit token or ring.
    pub(crate) ring_seq: u64,
    /// Boots that are known to be over: no conflict of opinion, evidence.
    pub(crate) dead: Vec<Dead>,
}

/// A boot that is over, or is to be left out by evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
    pub(crate) cause: LeaveReason,
}

const DEAD_CAUSES: [LeaveReason; 4] = [
    LeaveReason::ProcessLost,
    LeaveReason::FailedToReceive,
    LeaveReason::Departed,
    LeaveReason::PoorLinks,
];

impl Join {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, InvalidDatagram> {
        let greeting = Greeting::decode(reader)?;
        let (proc, fail) = (reader.node_set()?, reader.node_set()?);
        if !fail.is_subset(proc) {
            return Err(InvalidDatagram::Field("fail set"));
        }
        let ring_seq = reader.u64()?;
        let count = count(reader, NODES_MAX)?;
        let mut dead = Vec::with_capacity(count);
        for _ in 0..count {
            let (node, incarnation) = (reader.node()?, reader.u64()?);
            let cause = DEAD_CAUSES.get(usize::from(reader.u8()?).wrapping_sub(1)).copied();
            let cause = cause.ok_or(InvalidDatagram::Field("cause"))?;
            dead.push(Dead { node, incarnation, cause });
        }
        Ok(Self { greeting, proc, fail, ring_seq, dead })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        self.greeting.encode(out);
        out.put_u64(self.proc.bits());
        out.put_u64(self.fail.bits());
        out.put_u64(self.ring_seq);
        out.put_u8(u8::try_from(self.dead.len()).expect("at most NODES_MAX"));
        for dead in &self.dead {
            out.put_u8(dead.node.index());
            out.put_u64(dead.incarnation);
            let code = DEAD_CAUSES.iter().position(|cause| *cause == dead.cause);
            out.put_u8(code.map_or(1, |code| code as u8 + 1));
        }
    }
}
