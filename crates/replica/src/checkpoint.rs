//! Calls to a server's FT::Checkpointable or FT::Updateable (FT-CORBA §23.5).

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

/// `State get_state() raises (NoStateAvailable)`, or
/// `State get_update() raises (NoUpdateAvailable)`.
pub(crate) fn get(request_id: u32, object_key: &[u8], update: bool) -> Bytes {
    let operation: &[u8] = if update { b"get_update" } else { b"get_state" };
    build::request(&head(request_id, object_key, operation), |_| {}).bytes().clone()
}

/// `void set_state(in State s) raises (InvalidState)`, or
/// `void set_update(in State s) raises (InvalidUpdate)`.
pub(crate) fn set(request_id: u32, object_key: &[u8], update: bool, state: &[u8]) -> Bytes {
    let operation: &[u8] = if update { b"set_update" } else { b"set_state" };
    let write = |cdr: &mut quorba_giop::cdr::Writer| cdr.write_octets(state);
    build::request(&head(request_id, object_key, operation), write).bytes().clone()
}

/// The state in the reply to `get_state`, if the server gave one.
pub(crate) fn state_of(reply: &Message) -> Option<Bytes> {
    let Ok(Body::Reply(view)) = reply.parse() else { return None };
    if view.status() != ReplyStatus::NoException {
        return None;
    }
    let state = view.reader().read_octets(usize::MAX, "state").ok()?;
    // A state may be large: it is shared with the message that it came in.
    Some(reply.bytes().slice_ref(state))
}

/// Whether the server took the state.
pub(crate) fn accepted(reply: &Message) -> bool {
    matches!(reply.parse(), Ok(Body::Reply(view)) if view.status() == ReplyStatus::NoException)
}
