//! Streams and messages.

use bytes::Bytes;
use quorba_giop::{
    Body, FrameError, Framer, FramerLimits, Message, MessageType, Rewrite, context, describe,
    fragment as cut,
};

/// Far more than a description may have, and it is meant for people.
const DESCRIPTION_BYTES_MAX: usize = 64 << 10;

fn framer_for(input: &[u8]) -> Framer {
    Framer::new(FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 4,
        buffered_bytes_max: input.len().max(1) * 2,
    })
}

fn messages(input: &[u8], piece: usize) -> (Vec<Message>, Option<FrameError>) {
    let mut framer = framer_for(input);
    let mut messages = Vec::new();
    for piece in input.chunks(piece.max(1)) {
        framer.push(piece);
        loop {
            assert!(framer.buffered_bytes() <= input.len(), "more is held than came");
            match framer.next() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// However a stream is cut into pieces, the same messages come out, and each of them is whole.
pub(super) fn framer(input: &[u8]) {
    let whole = messages(input, input.len());
    let pieces = messages(input, 1 + input.len() % 17);
    assert_eq!(whole.0, pieces.0);
    assert_eq!(whole.1.is_some(), pieces.1.is_some());
    for message in &whole.0 {
        assert_eq!(Message::from_bytes(message.bytes().clone()).as_ref(), Ok(message));
        let _ = message.parse();
    }
}

pub(super) fn decode_stream(input: &[u8]) {
    let mut framer = framer_for(input);
    for piece in input.chunks(4096) {
        framer.push(piece);
        while let Ok(Some(message)) = framer.next() {
            let _ = message.parse();
        }
    }
}

/// The input as a message: its header is repaired, or hardly any input would be one.
fn repaired(input: &[u8]) -> Option<Message> {
    let mut bytes = input.to_vec();
    let size = u32::try_from(bytes.len().checked_sub(12)?).ok()?;
    bytes[..4].copy_from_slice(b"GIOP");
    bytes[4] = 1;
    bytes[5] %= 3;
    bytes[6] &= 1;
    bytes[7] %= 7;
    let size = if bytes[6] == 0 { size.to_be_bytes() } else { size.to_le_bytes() };
    bytes[8..12].copy_from_slice(&size);
    Some(Message::from_bytes(Bytes::from(bytes)).expect("a repaired header is one"))
}

/// Everything that can be asked of a message stays within it.
pub(super) fn message(input: &[u8]) {
    let _ = Message::from_bytes(Bytes::copy_from_slice(input));
    let Some(message) = repaired(input) else { return };
    let length = message.bytes().len();
    match message.parse() {
        Ok(Body::Request(request)) => {
            assert!(request.body_offset() <= length);
            assert_eq!(request.body().len(), length - request.body_offset());
            let key = request.object_key().map_or(0, <[u8]>::len);
            let contexts: usize = request.contexts().map(|(_, data)| data.len() + 8).sum();
            assert!(key + contexts + request.operation().len() <= length);
            let other = request.with_request_id(77);
            let Ok(Body::Request(other)) = other.parse() else { panic!("still a request") };
            assert_eq!(other.request_id(), 77);
            assert_eq!(other.body(), request.body());
        }
        Ok(Body::Reply(reply)) => {
            assert!(reply.body_offset() <= length);
            let _ = reply.system_exception();
            let other = reply.with_request_id(77);
            let Ok(Body::Reply(other)) = other.parse() else { panic!("still a reply") };
            assert_eq!((other.request_id(), other.body()), (77, reply.body()));
        }
        Ok(Body::LocateReply(reply)) => assert!(reply.body().len() < length),
        Ok(_) => {}
        Err(error) => assert!(error.offset <= length + 8, "{error}"),
    }
}

pub(super) fn decode_message(input: &[u8]) {
    let Some(message) = repaired(input) else { return };
    match message.parse() {
        Ok(Body::Request(request)) => {
            let _ = (request.object_key(), request.contexts().count());
        }
        Ok(Body::Reply(reply)) => {
            let _ = (reply.system_exception(), reply.contexts().count());
        }
        _ => {}
    }
}

/// A header that is made anew says what was asked for, and the parameters stay as they were.
pub(super) fn rewrite(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    let Some(message) = repaired(input) else { return };
    let data = &input[..input.len().min(usize::from(*choice))];
    let add = [(0x5151, data)];
    let rewrite = Rewrite {
        request_id: Some(9),
        object_key: (choice & 1 != 0).then_some(data),
        drop_contexts: if choice & 2 != 0 { &[context::CODE_SETS] } else { &[] },
        add_contexts: if choice & 4 != 0 { &add } else { &[] },
        ..Rewrite::default()
    };
    match message.parse() {
        Ok(Body::Request(request)) => {
            let changed = request.rewrite(&rewrite);
            // One context more than allowed may have been added.
            let Ok(Body::Request(again)) = changed.parse() else {
                assert!(request.contexts().count() >= 255, "{changed:?}");
                return;
            };
            assert_eq!(again.body(), request.body());
            assert_eq!(again.operation(), request.operation());
            assert_eq!(again.request_id(), 9);
            if rewrite.object_key.is_some() {
                assert_eq!(again.object_key(), rewrite.object_key);
            }
            if !again.body().is_empty() {
                assert_eq!(again.body_offset() % 8, request.body_offset() % 8);
            }
        }
        Ok(Body::Reply(reply)) => {
            let changed = reply.rewrite(&rewrite);
            let Ok(Body::Reply(again)) = changed.parse() else {
                assert!(reply.contexts().count() >= 255, "{changed:?}");
                return;
            };
            assert_eq!((again.body(), again.status()), (reply.body(), reply.status()));
            if !again.body().is_empty() {
                assert_eq!(again.body_offset() % 8, reply.body_offset() % 8);
            }
        }
        _ => {}
    }
}

/// What is cut into fragments is joined to the same again.
pub(super) fn fragment(input: &[u8]) {
    let Some((size, input)) = input.split_first() else { return };
    let Some(message) = repaired(input) else { return };
    // A message of GIOP 1.2 without a request id cannot be joined; nobody sends such fragments.
    let pieces = cut(&message, usize::from(*size) * 8);
    let stream: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: stream.len() * 2,
    });
    framer.push(&stream);
    assert_eq!(framer.next(), Ok(Some(message.clone())), "{:?}", message.message_type());
    assert_eq!(framer.buffered_bytes(), 0);
    assert_ne!(message.message_type(), MessageType::Fragment);
}

/// Any octets are described, in so much text, and none of it can steer a terminal.
pub(super) fn describe(input: &[u8]) {
    for text in [
        describe::bytes(input),
        repaired(input).as_ref().map_or_else(String::new, describe::message),
    ] {
        assert!(text.len() <= DESCRIPTION_BYTES_MAX);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}

pub(super) fn decode_description(input: &[u8]) {
    if let Some(message) = repaired(input) {
        assert!(!describe::message(&message).is_empty());
    }
}
