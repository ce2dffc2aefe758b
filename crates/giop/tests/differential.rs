//! The same octets read by another codec, zerodds-corba-giop, which was written independently:
//! where both take a message, both have to understand the same.
//!
//! But for the body of a LocateReply: the other one aligns it to 8 in GIOP 1.2, JacORB does not,
//! and omniORB reads it as JacORB writes it (`omniorb-to-jacorb-bank-1.2` in the corpus).

mod common;

use bytes::Bytes;
use common::{messages, streams};
use quorba_giop::{Body, Message, Target};
use zerodds_corba_giop::{Message as Theirs, TargetAddress, decode_message};

/// Messages up to this size are also compared with each of their octets changed.
const CHANGED_BYTES_MAX: usize = 200;

/// What is compared: id, status or flags, key, operation, contexts, body.
type Facts = (u32, u32, Vec<u8>, Vec<u8>, Vec<(u32, Vec<u8>)>, Vec<u8>);

fn ours(bytes: &[u8]) -> Option<Facts> {
    let message = Message::from_bytes(Bytes::copy_from_slice(bytes)).ok()?;
    let owned = |contexts: quorba_giop::Contexts<'_>| {
        contexts.map(|(id, data)| (id, data.to_vec())).collect::<Vec<_>>()
    };
    Some(match message.parse().ok()? {
        Body::Request(request) => {
            let Target::Key(key) = request.target() else { return None };
            (
                request.request_id(),
                request.response_flags().octet().into(),
                key.to_vec(),
                request.operation().to_vec(),
                owned(request.contexts()),
                request.body().to_vec(),
            )
        }
        Body::Reply(reply) => {
            let status = reply.status().number();
            let (contexts, body) = (owned(reply.contexts()), reply.body().to_vec());
            (reply.request_id(), status, Vec::new(), Vec::new(), contexts, body)
        }
        Body::CancelRequest { request_id } => only(request_id, 0, Vec::new()),
        Body::LocateRequest(request) => {
            let Target::Key(key) = request.target() else { return None };
            only(request.request_id(), 0, key.to_vec())
        }
        Body::LocateReply(reply) => only(reply.request_id(), reply.status().number(), Vec::new()),
        Body::CloseConnection | Body::MessageError => only(0, 0, Vec::new()),
    })
}

fn theirs(bytes: &[u8]) -> Option<Facts> {
    let (message, rest) = decode_message(bytes).ok()?;
    if !rest.is_empty() {
        return None;
    }
    let owned = |contexts: zerodds_corba_giop::ServiceContextList| {
        contexts.0.into_iter().map(|context| (context.context_id, context.context_data)).collect()
    };
    Some(match message {
        Theirs::Request(request) => {
            let TargetAddress::Key(key) = request.target else { return None };
            let (flags, operation) = (request.response_flags.0, request.operation.into_bytes());
            let contexts = owned(request.service_context);
            (request.request_id, flags.into(), key, operation, contexts, request.body)
        }
        Theirs::Reply(reply) => {
            let (status, contexts) = (reply.reply_status.as_u32(), owned(reply.service_context));
            (reply.request_id, status, Vec::new(), Vec::new(), contexts, reply.body)
        }
        Theirs::CancelRequest(cancel) => only(cancel.request_id, 0, Vec::new()),
        Theirs::LocateRequest(request) => {
            let TargetAddress::Key(key) = request.target else { return None };
            only(request.request_id, 0, key)
        }
        Theirs::LocateReply(reply) => {
            only(reply.request_id, reply.locate_status.as_u32(), Vec::new())
        }
        Theirs::CloseConnection(_) | Theirs::MessageError(_) => only(0, 0, Vec::new()),
        Theirs::Fragment(_) => return None,
    })
}

fn only(request_id: u32, status: u32, key: Vec<u8>) -> Facts {
    (request_id, status, key, Vec::new(), Vec::new(), Vec::new())
}

#[test]
fn another_codec_understands_the_same() {
    let mut compared = 0;
    for stream in streams() {
        for message in messages(&stream.bytes, usize::MAX) {
            let bytes = message.bytes();
            let facts = ours(bytes).expect("a recorded message");
            assert_eq!(theirs(bytes), Some(facts), "{}: {bytes:?}", stream.name);
            if bytes.len() > CHANGED_BYTES_MAX {
                continue;
            }
            let mut changed = bytes.to_vec();
            for offset in 4..changed.len() {
                for flip in [0x01, 0x80, 0xff] {
                    changed[offset] ^= flip;
                    if let (Some(ours), Some(theirs)) = (ours(&changed), theirs(&changed)) {
                        assert_eq!(ours, theirs, "{}, byte {offset}: {changed:?}", stream.name);
                        compared += 1;
                    }
                    changed[offset] ^= flip;
                }
            }
        }
    }
    assert!(compared > 10_000, "only {compared} changed messages were taken by both");
}
