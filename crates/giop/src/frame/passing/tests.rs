//! That what is too large is passed over to the byte, whatever pieces it comes in.

use super::*;
use crate::build::{self, RequestHead};
use crate::error::FrameError;
use crate::frame::FramerLimits;
use crate::message::Message;
use crate::request::ResponseFlags;
use alloc::vec::Vec;

const MESSAGE_BYTES_MAX: usize = 1000;

fn framer() -> Framer {
    Framer::new(FramerLimits {
        message_bytes_max: MESSAGE_BYTES_MAX,
        fragmented_requests_max: 4,
        buffered_bytes_max: 200 * MESSAGE_BYTES_MAX,
    })
}

fn request(version: Version, endian: Endian, id: u32, bytes: usize) -> Message {
    let contexts: &[(u32, &[u8])] = &[(9, b"nine"), (7, &[0; 300])];
    let head = RequestHead {
        version,
        endian,
        request_id: id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"store",
        contexts,
    };
    build::request(&head, |out| out.write_octets(&alloc::vec![7; bytes]))
}

/// What comes out of a framer into which `stream` comes in pieces of `piece` bytes.
fn read(stream: &[u8], piece: usize) -> (Vec<PassedOver>, Vec<Message>) {
    let (mut framer, mut passed, mut messages) = (framer(), Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        framer.push(piece);
        loop {
            match framer.next() {
                Ok(None) => break,
                Ok(Some(message)) => messages.push(message),
                Err(FrameError::TooLarge { .. }) => match framer.pass_over() {
                    PassedOver::NotYet => break,
                    PassedOver::Unreadable => return (passed, messages),
                    found => passed.push(found),
                },
                Err(error) => panic!("{error}"),
            }
            assert!(framer.buffered_bytes() <= 2 * MESSAGE_BYTES_MAX + piece.len());
        }
    }
    assert!(!framer.waiting_since_partial());
    (passed, messages)
}

fn fragments(message: &Message) -> Vec<u8> {
    crate::fragment(message, 200).concat()
}

#[test]
fn a_request_that_is_too_large_is_named_and_the_next_one_is_read() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for endian in [Endian::Big, Endian::Little] {
            let (long, next) = (request(version, endian, 5, 9000), request(version, endian, 6, 9));
            let named = [PassedOver::Request { version, endian, awaited: Some(5) }];
            let whole = [&long.bytes()[..], next.bytes()].concat();
            let split = [fragments(&long), next.bytes().to_vec()].concat();
            for stream in [whole, split] {
                for piece in [1, 13, 400, 100_000] {
                    let (passed, messages) = read(&stream, piece);
                    assert_eq!(passed, named, "{version} in pieces of {piece}");
                    assert!(messages == core::slice::from_ref(&next));
                }
            }
        }
    }
}

#[test]
fn fragments_of_giop_1_1_are_passed_over_up_to_the_last() {
    let (version, endian) = (Version::V1_1, Endian::Little);
    let long = request(version, endian, 5, 700);
    let mut first = long.bytes().to_vec();
    first[6] |= 2;
    let fragment = |more: u8| {
        let mut bytes = b"GIOP\x01\x01".to_vec();
        bytes.extend([1 | more, MessageType::Fragment.octet()]);
        bytes.extend(300u32.to_le_bytes());
        bytes.extend([7; 300]);
        bytes
    };
    let next = request(version, endian, 6, 9);
    let stream = [first, fragment(2), fragment(2), fragment(0), next.bytes().to_vec()].concat();
    for piece in [7, 100_000] {
        let (passed, messages) = read(&stream, piece);
        assert_eq!(passed, [PassedOver::Request { version, endian, awaited: Some(5) }]);
        assert!(messages == core::slice::from_ref(&next));
    }
}

#[test]
fn what_is_no_request_or_hides_its_id_cannot_be_passed_over() {
    for kind in [MessageType::LocateRequest, MessageType::Reply] {
        let mut bytes = b"GIOP\x01\x02\x01".to_vec();
        bytes.push(kind.octet());
        bytes.extend(5000u32.to_le_bytes());
        bytes.extend([0; 100]);
        let mut framer = framer();
        framer.push(&bytes);
        assert!(framer.next().is_err());
        assert_eq!(framer.pass_over(), PassedOver::Unreadable);
    }
    let mut bytes = b"GIOP\x01\x00\x01\x00".to_vec();
    bytes.extend(1_000_000u32.to_le_bytes());
    bytes.extend(u32::MAX.to_le_bytes());
    bytes.extend([0; ID_WITHIN]);
    let mut framer = framer();
    framer.push(&bytes);
    assert!(framer.next().is_err());
    assert_eq!(framer.pass_over(), PassedOver::Unreadable);
}
