//! Cuts a large message into fragments, for peers that do not take it whole (GIOP §15.4.9).

use crate::cdr::Writer;
use crate::limits::HEADER_BYTES;
use crate::message::{Message, MessageType};
use crate::request::patch_u32;
use crate::version::Version;
use alloc::vec::Vec;
use bytes::Bytes;

const FLAG_MORE_FRAGMENTS: u8 = 2;
/// A fragment's header and some content.
const PIECE_BYTES_MIN: usize = 32;

/// The message in pieces of at most `bytes_max` bytes each (at least 32), or whole if it fits, is
/// of GIOP 1.0 or 1.1, or of a type that has no fragments. GIOP 1.1 has fragments too, but no ORB
/// that was looked at reads them well, and none needs them.
#[must_use]
pub fn fragment(message: &Message, bytes_max: usize) -> Vec<Bytes> {
    let bytes = message.bytes();
    let bytes_max = bytes_max.max(PIECE_BYTES_MIN);
    let may = matches!(
        message.message_type(),
        MessageType::Request
            | MessageType::Reply
            | MessageType::LocateRequest
            | MessageType::LocateReply
    );
    // All pieces but the last are multiples of 8 long.
    let piece = bytes_max & !7;
    let id = bytes.get(HEADER_BYTES..HEADER_BYTES + 4);
    let (Some(id), true) = (id, may && message.version() >= Version::V1_2) else {
        return [bytes.clone()].into();
    };
    if bytes.len() <= bytes_max {
        return [bytes.clone()].into();
    }
    let mut pieces = Vec::new();
    let mut first = bytes.get(..piece).unwrap_or(bytes).to_vec();
    if let Some(flags) = first.get_mut(6) {
        *flags |= FLAG_MORE_FRAGMENTS;
    }
    seal(&mut first, message);
    pieces.push(Bytes::from(first));
    let room = piece.saturating_sub(HEADER_BYTES + 4);
    let rest = bytes.get(piece..).unwrap_or(&[]);
    let count = rest.len().div_ceil(room);
    for (index, chunk) in rest.chunks(room).enumerate() {
        let more = if index + 1 < count { FLAG_MORE_FRAGMENTS } else { 0 };
        let Version { major, minor } = message.version();
        let mut writer = Writer::new(message.endian());
        writer.write_raw(b"GIOP");
        let flags = message.endian().bit() | more;
        writer.write_raw(&[major, minor, flags, MessageType::Fragment.octet(), 0, 0, 0, 0]);
        writer.write_raw(id);
        writer.write_raw(chunk);
        let mut fragment = writer.finish();
        seal(&mut fragment, message);
        pieces.push(Bytes::from(fragment));
    }
    pieces
}

fn seal(piece: &mut [u8], message: &Message) {
    let size = piece.len().saturating_sub(HEADER_BYTES);
    patch_u32(piece, 8, u32::try_from(size).unwrap_or(u32::MAX), message.endian());
}
