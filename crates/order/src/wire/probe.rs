//! The probe: a numbered datagram, so that whoever gets some of them knows how many it missed.
//!
//! Layout: number (8); flags (1: the sender has seen signs of trouble itself); count of nodes (1);
//! per node its id (1), how many of its last 32 probes the sender missed (1; 255: not known yet),
//! the number of the last one that came (8), and for how long ago in µs (4).
//!
//! Invariants: no node stands in it twice; nobody misses more than all of 32.

use super::{InvalidDatagram, Reader, count};
use alloc::vec::Vec;
use bytes::{BufMut, BytesMut};
use quorba_base::{NODES_MAX, NodeId, NodeSet};

/// Of so many probes it is said how many were missed.
pub(crate) const PROBE_WINDOW: u8 = 32;
/// It is not known yet how many.
const UNKNOWN: u8 = u8::MAX;

/// How the sender of a probe hears one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reception {
    pub(crate) node: NodeId,
    /// Of the node's last [`PROBE_WINDOW`] probes, if that is known. One that comes much too late
    /// counts as missed.
    pub(crate) missed: Option<u8>,
    /// The number of its last probe that came ...
    pub(crate) last: u64,
    /// ... and how long ago that was.
    pub(crate) held_us: u32,
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) number: u64,
    pub(crate) troubled: bool,
    pub(crate) receptions: Vec<Reception>,
}

impl Probe {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, InvalidDatagram> {
        let number = reader.u64()?;
        let troubled = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(InvalidDatagram::Field("probe flags")),
        };
        let count = count(reader, NODES_MAX)?;
        let mut receptions = Vec::with_capacity(count);
        let mut nodes = NodeSet::EMPTY;
        for _ in 0..count {
            let (node, missed) = (reader.node()?, reader.u8()?);
            let (last, held_us) = (reader.u64()?, reader.u32()?);
            if nodes.contains(node) {
                return Err(InvalidDatagram::Node);
            }
            let missed = Some(missed).filter(|missed| *missed != UNKNOWN);
            if missed > Some(PROBE_WINDOW) {
                return Err(InvalidDatagram::Count(missed.map_or(0, u64::from)));
            }
            nodes.insert(node);
            receptions.push(Reception { node, missed, last, held_us });
        }
        Ok(Self { number, troubled, receptions })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u64(self.number);
        out.put_u8(u8::from(self.troubled));
        out.put_u8(u8::try_from(self.receptions.len()).expect("at most NODES_MAX"));
        for reception in &self.receptions {
            out.put_u8(reception.node.index());
            out.put_u8(reception.missed.unwrap_or(UNKNOWN));
            out.put_u64(reception.last);
            out.put_u32(reception.held_us);
        }
    }
}
