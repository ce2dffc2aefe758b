//! Round trips: what is built is read, what is read is rewritten, in all versions and orders.

use super::*;
use crate::cdr::Reader;
use crate::{Body, Completion, ExceptionKind, Framer, FramerLimits, MinorCode, Rewrite, fragment};
use alloc::vec;
use alloc::vec::Vec;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
const ENDIANS: [Endian; 2] = [Endian::Big, Endian::Little];

fn each(mut check: impl FnMut(Version, Endian)) {
    for version in VERSIONS {
        for endian in ENDIANS {
            check(version, endian);
        }
    }
}

fn call(version: Version, endian: Endian, operation: &[u8]) -> Message {
    let head = RequestHead {
        version,
        endian,
        request_id: 7,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"bank",
        operation,
        contexts: &[(99, &[1, 2, 3])],
    };
    request(&head, |cdr| {
        cdr.write_u8(9);
        cdr.write_u64(0x0102_0304_0506_0708);
        cdr.write_string(b"text");
    })
}

fn check_parameters(message: &Message) {
    let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
    let mut reader = Reader::at(message.bytes(), request.body_offset(), message.endian());
    assert_eq!(reader.read_u8("a"), Ok(9));
    assert_eq!(reader.read_u64("b"), Ok(0x0102_0304_0506_0708));
    assert_eq!(reader.read_string(9, "c"), Ok(b"text".as_slice()));
    assert_eq!(reader.remaining(), 0);
}

fn framer() -> Framer {
    Framer::new(FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 4,
        buffered_bytes_max: 2 << 20,
    })
}

#[test]
fn a_request_is_read_as_it_was_built() {
    each(|version, endian| {
        let message = call(version, endian, b"deposit");
        let checked = Message::from_bytes(message.bytes().clone()).unwrap();
        assert_eq!(checked, message);
        let Ok(Body::Request(request)) = checked.parse() else { panic!("no request") };
        assert_eq!(request.request_id(), 7);
        assert_eq!(request.operation(), b"deposit");
        assert_eq!(request.object_key(), Some(b"bank".as_slice()));
        assert!(request.response_expected());
        assert_eq!(request.contexts().collect::<Vec<_>>(), [(99, [1, 2, 3].as_slice())]);
        check_parameters(&checked);
    });
}

#[test]
fn rewriting_keeps_the_parameters_and_their_alignment() {
    each(|version, endian| {
        for length in 1..=9 {
            let operation = &b"operation"[..length];
            let message = call(version, endian, operation);
            let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
            for key in [b"".as_slice(), b"k", b"longer key", b"a key of 16 octets"] {
                for add in [[].as_slice(), &[(5, b"xy".as_slice())]] {
                    let rewritten = request.rewrite(&Rewrite {
                        request_id: Some(0x0a0b_0c0d),
                        response_flags: Some(ResponseFlags::None),
                        object_key: Some(key),
                        drop_contexts: &[99],
                        add_contexts: add,
                    });
                    let checked = Message::from_bytes(rewritten.bytes().clone()).unwrap();
                    check_parameters(&checked);
                    let Ok(Body::Request(again)) = checked.parse() else { panic!("no request") };
                    assert_eq!(again.request_id(), 0x0a0b_0c0d);
                    assert_eq!(again.object_key(), Some(key));
                    assert_eq!(again.operation(), operation);
                    assert!(!again.response_expected());
                    assert!(again.contexts().all(|(id, _)| id != 99));
                    assert!(add.iter().all(|c| again.contexts().any(|context| context == *c)));
                }
            }
        }
    });
}

#[test]
fn a_new_request_id_changes_four_bytes_only() {
    each(|version, endian| {
        let message = call(version, endian, b"deposit");
        let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
        let other = request.with_request_id(0xffff_fff8);
        assert_eq!(other.bytes().len(), message.bytes().len());
        let differing = other.bytes().iter().zip(message.bytes()).filter(|(a, b)| a != b);
        assert_eq!(differing.count(), 4);
        let Ok(Body::Request(back)) = other.parse() else { panic!("no request") };
        assert_eq!(back.with_request_id(7), message);
    });
}

#[test]
fn replies_and_exceptions_are_read_as_they_were_built() {
    each(|version, endian| {
        let exception =
            SystemException::ours(ExceptionKind::Transient, MinorCode::NoPrimary, Completion::No);
        let message = system_exception(version, endian, 3, &exception);
        let Ok(Body::Reply(read)) = message.parse() else { panic!("no reply") };
        assert_eq!(read.request_id(), 3);
        assert_eq!(read.system_exception(), Some(Ok(exception)));
        let moved = read.with_request_id(4);
        let Ok(Body::Reply(read)) = moved.parse() else { panic!("no reply") };
        assert_eq!((read.request_id(), read.system_exception()), (4, Some(Ok(exception))));
        let padded =
            read.rewrite(&Rewrite { add_contexts: &[(1, b"12345")], ..Rewrite::default() });
        let Ok(Body::Reply(read)) = padded.parse() else { panic!("no reply") };
        assert_eq!(read.system_exception(), Some(Ok(exception)));
    });
}

#[test]
fn messages_without_a_body_are_read() {
    each(|version, endian| {
        let close = close_connection(version);
        assert!(matches!(close.parse(), Ok(Body::CloseConnection)));
        assert!(matches!(message_error(version).parse(), Ok(Body::MessageError)));
        let cancel = cancel_request(version, endian, 5);
        assert!(matches!(cancel.parse(), Ok(Body::CancelRequest { request_id: 5 })));
        let here = locate_reply(version, endian, 6, LocateStatus::ObjectHere);
        let Ok(Body::LocateReply(found)) = here.parse() else { panic!("no reply") };
        assert_eq!((found.request_id(), found.status()), (6, LocateStatus::ObjectHere));
        let question = locate_request(version, endian, 8, b"key");
        assert!(matches!(question.parse(), Ok(Body::LocateRequest(q)) if q.request_id() == 8));
        let void = reply(version, endian, 1, ReplyStatus::NoException, |_| {});
        let Ok(Body::Reply(void)) = void.parse() else { panic!("no reply") };
        assert!(void.body().is_empty());
    });
}

#[test]
fn a_stream_is_cut_into_its_messages_however_it_arrives() {
    each(|version, endian| {
        let messages = [call(version, endian, b"a"), close_connection(version)];
        let stream: Vec<u8> = messages.iter().flat_map(|m| m.bytes().to_vec()).collect();
        for step in [1, 5, 12, 13, stream.len()] {
            let mut framer = framer();
            let mut read = Vec::new();
            for part in stream.chunks(step) {
                framer.push(part);
                while let Some(message) = framer.next().unwrap() {
                    read.push(message);
                }
            }
            assert_eq!(read, messages);
            assert_eq!(framer.buffered_bytes(), 0);
            assert!(!framer.waiting_since_partial());
        }
    });
}

#[test]
fn fragments_join_to_the_message_that_was_cut() {
    for endian in ENDIANS {
        let head = RequestHead {
            version: Version::V1_2,
            endian,
            request_id: 7,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"k",
            operation: b"op",
            contexts: &[],
        };
        let body: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        let message = request(&head, |cdr| cdr.write_octets(&body));
        for bytes_max in [1, 32, 40, 100, 999, 2000] {
            let mut framer = framer();
            let pieces = fragment(&message, bytes_max);
            assert!(pieces.iter().all(|piece| piece.len() <= bytes_max.max(32)));
            for piece in &pieces {
                assert_eq!(framer.next(), Ok(None));
                framer.push(piece);
            }
            assert_eq!(framer.next(), Ok(Some(message.clone())));
            assert_eq!(framer.buffered_bytes(), 0);
        }
    }
}

#[test]
fn fragments_of_two_requests_may_be_interleaved_and_one_be_cancelled() {
    let build = |id: u32| {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Big,
            request_id: id,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"k",
            operation: b"op",
            contexts: &[],
        };
        request(&head, |cdr| cdr.write_octets(&[id as u8; 100]))
    };
    let (one, two, three) = (build(1), build(2), build(3));
    let mut framer = framer();
    let pieces = [&one, &two, &three].map(|message| fragment(message, 64));
    for index in 0..pieces[0].len() {
        framer.push(&pieces[0][index]);
        framer.push(&pieces[2][index]);
        if index == 0 {
            framer.push(&pieces[1][0]);
            framer.push(cancel_request(Version::V1_2, Endian::Big, 2).bytes());
        } else {
            framer.push(&pieces[1][index]);
        }
    }
    let mut read = Vec::new();
    while let Some(message) = framer.next().unwrap() {
        read.push(message);
    }
    assert!(matches!(read[0].parse(), Ok(Body::CancelRequest { request_id: 2 })));
    assert_eq!(read[1..], [one, three]);
    assert_eq!(framer.buffered_bytes(), 0);
}

#[test]
fn fragments_of_giop_1_1_have_no_id() {
    let message = call(Version::V1_1, Endian::Little, b"op");
    let bytes = message.bytes();
    let mut first = bytes[..40].to_vec();
    first[6] |= 2;
    first[8..12].copy_from_slice(&28u32.to_le_bytes());
    let mut second = b"GIOP\x01\x01\x01\x07".to_vec();
    second.extend_from_slice(&(bytes.len() as u32 - 40).to_le_bytes());
    second.extend_from_slice(&bytes[40..]);
    let mut framer = framer();
    framer.push(&first);
    assert_eq!(framer.next(), Ok(None));
    framer.push(&second);
    assert_eq!(framer.next(), Ok(Some(message)));
}

#[test]
fn what_is_not_giop_or_too_large_ends_the_stream() {
    use crate::FrameError;
    let refused = |bytes: &[u8]| {
        let mut framer = framer();
        framer.push(bytes);
        framer.next().unwrap_err()
    };
    assert_eq!(refused(b"HTTP"), FrameError::Magic);
    assert_eq!(refused(b"GX"), FrameError::Magic);
    let with = |minor: u8, flags: u8, kind: u8, size: u32| {
        let mut header = vec![b'G', b'I', b'O', b'P', 1, minor, flags, kind];
        header.extend_from_slice(&size.to_be_bytes());
        header
    };
    assert_eq!(refused(&with(3, 0, 0, 0)), FrameError::Version { major: 1, minor: 3 });
    assert_eq!(refused(&with(0, 2, 0, 0)), FrameError::Flags(2));
    assert_eq!(refused(&with(0, 0, 7, 0)), FrameError::MessageType(7));
    assert!(refused(&with(2, 0, 0, u32::MAX)).is_too_large());
    assert_eq!(refused(&with(2, 2, 5, 0)), FrameError::UnexpectedFragment);
    assert_eq!(refused(&with(1, 0, 7, 0)), FrameError::UnexpectedFragment);
    assert_eq!(refused(&with(2, 2, 0, 0)), FrameError::Short);
}

#[test]
fn every_truncation_is_an_error_and_no_panic() {
    each(|version, endian| {
        let message = call(version, endian, b"deposit");
        for length in 0..message.bytes().len() {
            let mut bytes = message.bytes()[..length].to_vec();
            if length >= 12 {
                patch_u32(&mut bytes, 8, length as u32 - 12, endian);
            }
            if let Ok(message) = Message::from_bytes(bytes.into()) {
                let _ = message.parse();
            }
        }
    });
}
