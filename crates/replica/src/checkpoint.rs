//! Calls to a server's FT::Checkpointable (FT-CORBA §23.5): `get_state` and `set_state`.

use bytes::Bytes;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Body, Endian, Message, ReplyStatus, ResponseFlags, Version};

fn head<'a>(request_id: u32, object_key: &'a [u8], operation: &'a [u8]) -> RequestHead<'a> {
    RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key,
        operation,
        contexts: &[],
    }
}

/// `State get_state() raises (NoStateAvailable)`
pub(crate) fn get_state(request_id: u32, object_key: &[u8]) -> Bytes {
    build::request(&head(request_id, object_key, b"get_state"), |_| {}).bytes().clone()
}

/// `void set_state(in State s) raises (InvalidState)`
pub(crate) fn set_state(request_id: u32, object_key: &[u8], state: &[u8]) -> Bytes {
    let write = |cdr: &mut quorba_giop::cdr::Writer| cdr.write_octets(state);
    build::request(&head(request_id, object_key, b"set_state"), write).bytes().clone()
}

/// The state in the reply to `get_state`, if the server gave one.
pub(crate) fn state_of(reply: &Message) -> Option<Bytes> {
    let Ok(Body::Reply(view)) = reply.parse() else { return None };
    if view.status() != ReplyStatus::NoException {
        return None;
    }
    let state = view.reader().read_octets(usize::MAX, "state").ok()?;
    Some(Bytes::copy_from_slice(state))
}

/// Whether the server took the state.
pub(crate) fn accepted(reply: &Message) -> bool {
    matches!(reply.parse(), Ok(Body::Reply(view)) if view.status() == ReplyStatus::NoException)
}
