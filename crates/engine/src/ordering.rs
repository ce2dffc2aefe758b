//! Who makes the order: the ring inside of this node, or somebody outside.
//!
//! Invariant: the node above sees the same outputs from both.

use crate::outside::Outside;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorba_base::{Instant, NodeId};
use quorba_order::{
    DomainKey, Full, Guarantee, InvalidKeys, Output, PAYLOAD_BYTES_MAX, Progress, Ring, Snapshot,
    Ticket,
};

pub(crate) enum Order {
    Totem(Box<Ring>),
    Outside(Box<Outside>),
}

impl Order {
    /// The longest payload that it carries.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        match self {
            Self::Totem(_) => PAYLOAD_BYTES_MAX,
            Self::Outside(outside) => outside.payload_bytes_max(),
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Output> {
        match self {
            Self::Totem(ring) => ring.poll(),
            Self::Outside(outside) => outside.poll(),
        }
    }

    pub(crate) fn poll_submission(&mut self) -> Option<(Ticket, Bytes)> {
        match self {
            Self::Totem(_) => None,
            Self::Outside(outside) => outside.poll_submission(),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Totem(ring) => ring.poll_timeout().map(|(at, _)| at),
            Self::Outside(_) => None,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Self::Totem(ring) = self {
            ring.handle_timeout(now);
        }
    }

    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: BytesMut) {
        if let Self::Totem(ring) = self {
            ring.handle_datagram(now, datagram);
        }
    }

    /// # Panics
    /// If the order is made inside: nobody else may speak for the ring.
    pub(crate) fn handle_ordered(&mut self, output: Output) {
        match self {
            Self::Totem(_) => panic!("the ring makes its own order"),
            Self::Outside(outside) => outside.handle_ordered(output),
        }
    }

    pub(crate) fn handle_peer_lost(&mut self, now: Instant, node: NodeId) {
        if let Self::Totem(ring) = self {
            ring.handle_peer_lost(now, node);
        }
    }

    pub(crate) fn leave(&mut self, now: Instant) {
        if let Self::Totem(ring) = self {
            ring.leave(now);
        }
    }

    /// An outside order has a protection of its own, and no use for keys of ours.
    pub(crate) fn set_domain_keys(
        &mut self,
        now: Instant,
        keys: Vec<DomainKey>,
    ) -> Result<(), InvalidKeys> {
        match self {
            Self::Totem(ring) => ring.set_domain_keys(now, keys),
            Self::Outside(_) => Ok(()),
        }
    }

    /// An outside order has agreed delivery only; who asks for more is refused by the driver.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        payload: Bytes,
        guarantee: Guarantee,
    ) -> Result<Ticket, Full> {
        match self {
            Self::Totem(ring) => ring.submit(now, payload, guarantee),
            Self::Outside(outside) => outside.submit(payload),
        }
    }

    /// Somebody waits until all have what was submitted just now. An outside order says so anyway.
    pub(crate) fn await_stable(&mut self, ticket: Ticket) {
        if let Self::Totem(ring) = self {
            ring.await_stable(ticket);
        }
    }

    /// Takes a message back; whether that was in time. An outside order gives nothing back.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> bool {
        match self {
            Self::Totem(ring) => ring.withdraw(ticket),
            Self::Outside(_) => false,
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        match self {
            Self::Totem(ring) => ring.progress(),
            Self::Outside(outside) => outside.progress(),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        match self {
            Self::Totem(ring) => ring.snapshot(),
            Self::Outside(outside) => outside.snapshot(),
        }
    }
}
