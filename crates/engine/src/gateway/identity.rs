//! What a client's name of a request (FT_REQUEST) stands for, as its gateway sees it, and what else
//! a client's contexts ask for.
//!
//! Invariant: it depends on the message, and on who its client is, alone: the same request is
//! bound alike at every gateway.

use super::Rules;
use crate::access::ClientPeer;
use crate::pending::Depth;
use bytes::Bytes;
use quorba_giop::{Endian, FtRequest as FtContext, Request, TransactionDepth, context};
use quorba_replica::{Bound, FtRequest};
use ring::digest::{Context, SHA256};

/// The request's name, if its client gave it one.
pub(super) fn ft_request(
    request: &Request<'_>,
    endian: Endian,
    peer: &ClientPeer,
) -> Option<FtRequest> {
    let (_, data) = request.contexts().find(|(id, _)| *id == context::FT_REQUEST)?;
    // One that cannot be read was refused before.
    let context = FtContext::decode(data).ok()?;
    Some(FtRequest {
        client_id: Bytes::from(context.client_id),
        retention_id: context.retention_id,
        expiration: context.expiration_time,
        bound: bound(request, endian, peer),
    })
}

/// How many members must have it before its caller goes on, as the client says (Huang05 §3.4), or
/// as many as the group wants.
pub(super) fn transaction_depth(request: &Request<'_>, rules: &Rules) -> Depth {
    if !rules.reads.has_depth(request.operation()) {
        return Depth::default();
    }
    let mut contexts = request.contexts();
    let found = contexts.find(|(id, _)| *id == context::FT_TRANSACTION_DEPTH);
    let asked = found.and_then(|(_, data)| TransactionDepth::decode(data));
    match asked {
        Some(TransactionDepth(members)) => Depth { members, is_asked: true },
        None => Depth { members: rules.depth, is_asked: false },
    }
}

fn bound(request: &Request<'_>, endian: Endian, peer: &ClientPeer) -> Bound {
    let object_key = request.object_key().unwrap_or_default();
    let length = (object_key.len() as u64).to_be_bytes();
    let endian = [u8::from(endian == Endian::Little)];
    Bound {
        subject: peer.subject(),
        call: digest([&length, object_key, request.operation()]),
        body: digest([&endian, request.body()]),
    }
}

/// The first half of a SHA-256 of the parts, one after the other.
fn digest<const N: usize>(parts: [&[u8]; N]) -> [u8; 16] {
    let mut hash = Context::new(&SHA256);
    parts.into_iter().for_each(|part| hash.update(part));
    let mut half = [0; 16];
    half.copy_from_slice(&hash.finish().as_ref()[..16]);
    half
}
