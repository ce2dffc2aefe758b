//! Names of things that messages carry: groups, requests, calls, attempts to join, views.
//!
//! Invariant: every id is ordered, so that maps of them iterate alike on every node.

use crate::words::binding::{Binding, put_bound, take_bound};
use crate::words::history::{History, digest_of, put_history, take_history};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use bytes::Bytes;
use quorba_base::NodeId;
pub use quorba_base::{GroupId, RingId};

/// Counts the requests of one gateway (one boot of one node) to one group, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestNumber(pub u64);

/// One try of a node to bring its member into the group; counts up from the node's
/// incarnation, so that no two boots share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attempt(pub u64);

impl Attempt {
    /// No member comes in by this one: the first of a boot is behind its incarnation.
    pub(crate) const NONE: Self = Self(0);
}

/// A connection to the local server; requests of one code-set negotiation share a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// A gateway's own name for a request: unique for ever, because the incarnation is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GatewayKey {
    /// The node whose gateway took the request in.
    pub node: NodeId,
    /// The boot of that node.
    pub incarnation: u64,
    /// The gateway's count.
    pub number: RequestNumber,
}

/// A call that a server makes while it executes a request of its group. Every member that executes
/// the request makes the call under the same name, in whichever boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallKey {
    /// The group whose server calls.
    pub caller: GroupId,
    /// What that group was delivered, up to the request: unique for ever, unlike its count.
    pub during: History,
    /// Counts the calls made in this request, from 1.
    pub number: u32,
}

/// The identity by which repetitions of a request are recognised.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequestKey {
    /// The client did not name the request: only its gateway repeats it.
    Gateway(GatewayKey),
    /// FT_REQUEST (FT-CORBA §23.2.8): the client may repeat it at any gateway.
    Client {
        /// Unique per client ORB, opaque.
        client_id: Bytes,
        /// Unique per request of that client.
        retention_id: i32,
        /// What the name stands for. It tells no two names apart.
        binding: Binding,
    },
    /// A member of another group makes the call, and so do the others of that group.
    Nested(CallKey),
}

impl RequestKey {
    /// Whether a request with this identity that is known may be answered, and spoken of, as one
    /// that came as `other`, which is equal.
    #[must_use]
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Client { binding: own, .. }, Self::Client { binding, .. }) => {
                own.is_repeated_by(binding)
            }
            _ => true,
        }
    }

    /// A number for whoever made the call, equal at all members and never 0: the client, if it
    /// names its calls; the group whose server calls; else the gateway, in one boot of its node.
    #[must_use]
    pub fn caller(&self) -> u64 {
        let caller = match self {
            Self::Gateway(GatewayKey { node, incarnation, .. }) => {
                History::EMPTY.extended(*node, *incarnation, 0).digest
            }
            Self::Client { client_id, .. } => digest_of(client_id),
            Self::Nested(call) => digest_of(&call.caller.0.to_be_bytes()),
        };
        caller.max(1)
    }

    /// The same, sharing no message's octets.
    #[must_use]
    pub fn detached(&self) -> Self {
        match self {
            Self::Client { client_id, retention_id, binding } => Self::Client {
                client_id: Bytes::copy_from_slice(client_id),
                retention_id: *retention_id,
                binding: binding.clone(),
            },
            Self::Gateway(_) | Self::Nested(_) => self.clone(),
        }
    }
}

pub(crate) fn put_view(writer: &mut Writer, view: RingId) {
    writer.u64(view.seq);
    writer.node(view.representative);
}

pub(crate) fn take_view(reader: &mut Reader) -> Result<RingId, InvalidEnvelope> {
    Ok(RingId { seq: reader.u64("view")?, representative: reader.node("representative")? })
}

pub(crate) fn put_call(writer: &mut Writer, key: &CallKey) {
    writer.u64(key.caller.0);
    put_history(writer, key.during);
    writer.u32(key.number);
}

pub(crate) fn take_call(reader: &mut Reader) -> Result<CallKey, InvalidEnvelope> {
    let caller = GroupId(reader.u64("caller")?);
    let during = take_history(reader)?;
    Ok(CallKey { caller, during, number: reader.u32("call number")? })
}

pub(crate) fn put_key(writer: &mut Writer, key: &RequestKey, expiry: u64) {
    match key {
        RequestKey::Gateway(key) => {
            writer.u8(0);
            writer.node(key.node);
            writer.u64(key.incarnation);
            writer.u64(key.number.0);
        }
        RequestKey::Client { client_id, retention_id, binding } => {
            writer.u8(1);
            writer.bytes(client_id);
            writer.i32(*retention_id);
            writer.u64(expiry);
            put_bound(writer, binding);
        }
        RequestKey::Nested(key) => {
            writer.u8(2);
            put_call(writer, key);
        }
    }
}

pub(crate) fn take_key(reader: &mut Reader) -> Result<(RequestKey, Option<u64>), InvalidEnvelope> {
    let invalid = reader.error("key kind");
    match reader.u8("key kind")? {
        0 => {
            let node = reader.node("gateway")?;
            let incarnation = reader.u64("incarnation")?;
            let number = RequestNumber(reader.u64("number")?);
            Ok((RequestKey::Gateway(GatewayKey { node, incarnation, number }), None))
        }
        1 => {
            let client_id = reader.bytes("client id")?;
            let retention_id = reader.i32("retention id")?;
            let expiry = reader.u64("expiry")?;
            let binding = take_bound(reader)?.into();
            Ok((RequestKey::Client { client_id, retention_id, binding }, Some(expiry)))
        }
        2 => Ok((RequestKey::Nested(take_call(reader)?), None)),
        _ => Err(invalid),
    }
}
