//! Calls to a server's FT::Checkpointable or FT::Updateable (FT-CORBA §23.5).

use bytes::Bytes;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::limits::HEADER_BYTES;
use quorba_giop::{Body, Endian, Message, ReplyStatus, ResponseFlags, Version};

/// Where a message says how long it is (GIOP §15.4.1): the last field of its header.
const SIZE_AT: usize = HEADER_BYTES - 4;
/// A state that is longer is not copied into its message.
const COPIED_BYTES_MAX: usize = 1 << 20;

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
///
/// A large state stands by itself behind the message's beginning, so that it is not copied.
pub(crate) fn set(
    request_id: u32,
    object_key: &[u8],
    update: bool,
    state: &Bytes,
) -> (Bytes, Option<Bytes>) {
    let operation: &[u8] = if update { b"set_update" } else { b"set_state" };
    let head = head(request_id, object_key, operation);
    if state.len() <= COPIED_BYTES_MAX {
        let message = build::request(&head, |cdr| cdr.write_octets(state));
        return (message.bytes().clone(), None);
    }
    let length = u32::try_from(state.len()).expect("states are capped far below 4 GiB");
    let begin = build::request(&head, |cdr| cdr.write_u32(length));
    let mut begin = begin.bytes().to_vec();
    let size = (begin.len() - HEADER_BYTES) as u32 + length;
    begin[SIZE_AT..HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
    (begin.into(), Some(state.clone()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_state_makes_the_same_message_in_two_pieces() {
        for length in [COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1, 3 * COPIED_BYTES_MAX + 5] {
            let state: Bytes =
                (0..length).map(|at| at as u8).collect::<alloc::vec::Vec<u8>>().into();
            let (begin, rest) = set(7, b"state object", false, &state);
            assert_eq!(rest.is_some(), length > COPIED_BYTES_MAX);
            let pieces = [begin, rest.unwrap_or_default()].concat();
            let head = head(7, b"state object", b"set_state");
            let whole = build::request(&head, |cdr| cdr.write_octets(&state));
            assert!(pieces == whole.bytes()[..], "{length}");
        }
    }
}
