//! Cuts a large message into fragments, for peers that do not take it whole (GIOP §15.4.9).

use crate::cdr::Writer;
use crate::limits::HEADER_BYTES;
use crate::message::{Message, MessageType};
use crate::request::patch_u32;
use crate::version::{Endian, Version};
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use core::ops::Range;

const FLAG_MORE_FRAGMENTS: u8 = 2;
/// A fragment's header and some content.
const PIECE_BYTES_MIN: usize = 32;
/// Where the request id of a message of GIOP 1.2 stands, of a Fragment too.
const ID: Range<usize> = HEADER_BYTES..HEADER_BYTES + 4;

/// The message in pieces of at most `bytes_max` bytes each (at least 32), or whole if it fits, is
/// of GIOP 1.0 or 1.1, or of a type that has no fragments. GIOP 1.1 has fragments too, but no ORB
/// that was looked at reads them well, and none needs them.
#[must_use]
pub fn fragment(message: &Message, bytes_max: usize) -> Vec<Bytes> {
    let bytes = message.bytes();
    let bytes_max = bytes_max.max(PIECE_BYTES_MIN);
    let may = has_fragments(message.message_type());
    // All pieces but the last are multiples of 8 long.
    let piece = bytes_max & !7;
    let id = bytes.get(ID);
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

/// The same of a message whose end may stand by itself, uncopied: what to send, in this order,
/// with every fragment's header in front of what it holds. All of them lie in one buffer.
#[must_use]
pub fn fragment_uncopied(begin: Bytes, rest: Option<Bytes>, bytes_max: usize) -> Vec<Bytes> {
    let total = begin.len().saturating_add(rest.as_ref().map_or(0, Bytes::len));
    let piece = bytes_max.max(PIECE_BYTES_MIN) & !7;
    let whole = |rest: Option<Bytes>| core::iter::once(begin.clone()).chain(rest).collect();
    let (Some(header), Some(id)) = (begin.first_chunk::<HEADER_BYTES>(), begin.get(ID)) else {
        return whole(rest);
    };
    let [b'G', b'I', b'O', b'P', major, minor, flags, kind, ..] = *header else {
        return whole(rest);
    };
    let version = Version { major, minor };
    let may = MessageType::from_octet(kind, version).is_some_and(has_fragments);
    if version < Version::V1_2 || !may {
        return whole(rest);
    }
    if total <= bytes_max.max(PIECE_BYTES_MIN) {
        return whole(rest);
    }
    let room = piece.saturating_sub(ID.end);
    let count = total.saturating_sub(piece).div_ceil(room);
    let mut headers = BytesMut::with_capacity(ID.end.saturating_mul(count.saturating_add(1)));
    let mut out = Vec::with_capacity(count.saturating_add(1).saturating_mul(2));
    let mut parts = Parts { first: begin.slice(HEADER_BYTES..), second: rest.unwrap_or_default() };
    for index in 0..=count {
        let is_first = index == 0;
        let header_bytes = if is_first { HEADER_BYTES } else { ID.end };
        let content = parts.left().min(piece.saturating_sub(header_bytes));
        let kind = if is_first { kind } else { MessageType::Fragment.octet() };
        let more = if index < count { FLAG_MORE_FRAGMENTS } else { 0 };
        headers.put_slice(b"GIOP");
        headers.put_slice(&[major, minor, flags | more, kind]);
        let size = header_bytes.saturating_sub(HEADER_BYTES).saturating_add(content);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        match Endian::from_bit(flags) {
            Endian::Big => headers.put_u32(size),
            Endian::Little => headers.put_u32_le(size),
        }
        if !is_first {
            headers.put_slice(id);
        }
        out.push(headers.split().freeze());
        parts.take(content, &mut out);
    }
    out
}

const fn has_fragments(kind: MessageType) -> bool {
    matches!(
        kind,
        MessageType::Request
            | MessageType::Reply
            | MessageType::LocateRequest
            | MessageType::LocateReply
    )
}

/// What is still to be sent of a message.
struct Parts {
    first: Bytes,
    second: Bytes,
}

impl Parts {
    fn left(&self) -> usize {
        self.first.len().saturating_add(self.second.len())
    }

    fn take(&mut self, count: usize, out: &mut Vec<Bytes>) {
        let of_first = count.min(self.first.len());
        let of_second = count.saturating_sub(of_first).min(self.second.len());
        for (part, count) in [(&mut self.first, of_first), (&mut self.second, of_second)] {
            if count > 0 {
                out.push(part.split_to(count));
            }
        }
    }
}

fn seal(piece: &mut [u8], message: &Message) {
    let size = piece.len().saturating_sub(HEADER_BYTES);
    patch_u32(piece, 8, u32::try_from(size).unwrap_or(u32::MAX), message.endian());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{self, RequestHead};
    use crate::frame::{Framer, FramerLimits};
    use crate::request::ResponseFlags;

    fn request(version: Version, endian: Endian, body_bytes: usize) -> Message {
        let head = RequestHead {
            version,
            endian,
            request_id: 0x0102_0304,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"key",
            operation: b"op",
            contexts: &[],
        };
        build::request(&head, |cdr| (0..body_bytes).for_each(|at| cdr.write_u8(at as u8)))
    }

    fn joined(pieces: &[Bytes]) -> Message {
        let mut framer = Framer::new(FramerLimits {
            message_bytes_max: 1 << 20,
            fragmented_requests_max: 1,
            buffered_bytes_max: 1 << 20,
        });
        pieces.iter().for_each(|piece| framer.push(piece));
        let message = framer.next().expect("well-formed").expect("whole");
        assert!(!framer.waiting_since_partial());
        message
    }

    #[test]
    fn a_message_in_two_parts_is_sent_in_the_same_fragments_as_a_whole_one() {
        for endian in [Endian::Big, Endian::Little] {
            for body_bytes in [0, 20, 21, 60, 64, 65, 128, 129, 1000] {
                let message = request(Version::V1_2, endian, body_bytes);
                let bytes = message.bytes();
                let expected = fragment(&message, 64).concat();
                for split in [HEADER_BYTES + 4, 48.min(bytes.len()), 64.min(bytes.len())] {
                    let (begin, rest) = (bytes.slice(..split), bytes.slice(split..));
                    let pieces = fragment_uncopied(begin, Some(rest), 64);
                    assert!(pieces.concat() == expected, "{body_bytes} bytes in two at {split}");
                    assert!(joined(&pieces) == message);
                }
                let pieces = fragment_uncopied(bytes.clone(), None, 64);
                assert!(pieces.concat() == expected, "{body_bytes} bytes in one");
            }
        }
    }

    #[test]
    fn every_fragment_but_the_last_is_a_multiple_of_8_long_and_nothing_is_copied() {
        let message = request(Version::V1_2, Endian::Little, 1003);
        let bytes = message.bytes();
        let whole = bytes.as_ptr_range();
        let pieces = fragment_uncopied(bytes.slice(..50), Some(bytes.slice(50..)), 100);
        let mut stream = &pieces.concat()[..];
        let mut lengths = Vec::new();
        while let Some(header) = stream.first_chunk::<HEADER_BYTES>() {
            let size = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
            let length = HEADER_BYTES + size as usize;
            assert_eq!(header[6] & FLAG_MORE_FRAGMENTS != 0, length < stream.len());
            lengths.push(length);
            stream = &stream[length..];
        }
        let last = lengths.pop().expect("fragments");
        assert!(lengths.iter().all(|length| *length == 96) && last <= 96, "{lengths:?} {last}");
        for piece in pieces.iter().filter(|piece| piece.len() > ID.end) {
            assert!(whole.contains(&piece.as_ptr()));
        }
    }

    #[test]
    fn what_has_no_fragments_stays_whole() {
        for version in [Version::V1_0, Version::V1_1] {
            let bytes = request(version, Endian::Little, 1000).into_bytes();
            let (begin, rest) = (bytes.slice(..500), bytes.slice(500..));
            let pieces = fragment_uncopied(begin.clone(), Some(rest.clone()), 64);
            assert_eq!(pieces, [begin, rest]);
        }
        let small = request(Version::V1_2, Endian::Little, 8).into_bytes();
        assert_eq!(fragment_uncopied(small.clone(), None, small.len()), [small]);
    }
}
