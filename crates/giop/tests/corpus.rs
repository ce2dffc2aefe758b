//! What real ORBs sent is read, and written again as the same bytes.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Stream, messages, references, streams};
use quorba_giop::cdr::Reader;
use quorba_giop::ior::Ior;
use quorba_giop::{
    Body, CodeSets, Endian, ExceptionKind, LocateStatus, Message, MessageType, ReplyStatus,
    Rewrite, Target, Version, build, context, fragment,
};

const WHOLE: usize = usize::MAX;
/// A context that nobody sends: leaving it out changes nothing, but makes the header anew.
const NOBODYS_CONTEXT: [u32; 1] = [0xdead_beef];

fn all_messages() -> Vec<(String, Message)> {
    let named = |stream: Stream| {
        messages(&stream.bytes, WHOLE)
            .into_iter()
            .enumerate()
            .map(move |(index, message)| (format!("{} #{index}", stream.name), message))
    };
    streams().into_iter().flat_map(named).collect()
}

#[test]
fn streams_are_cut_into_the_same_messages_however_they_arrive() {
    for Stream { name, bytes } in streams() {
        let whole = messages(&bytes, WHOLE);
        assert!(!whole.is_empty(), "{name}");
        for piece in [1, 7, 1460] {
            assert_eq!(messages(&bytes, piece), whole, "{name} in pieces of {piece}");
        }
        if !name.contains("echo") {
            let joined: Vec<u8> =
                whole.iter().flat_map(|message| message.bytes().to_vec()).collect();
            assert_eq!(joined, bytes, "{name} has no fragments");
        }
    }
}

/// Both ORBs leave in padding what was in their buffers before, and we write zeros: any octet may
/// have become 0, if what is read out of the message is the same.
fn assert_same_but_padding(again: &Message, before: &Message, name: &str) {
    let differ = |(octet, old): (&u8, &u8)| octet != old;
    let pairs = || again.bytes().iter().zip(before.bytes());
    assert_eq!(again.bytes().len(), before.bytes().len(), "{name}");
    assert!(pairs().filter(|pair| differ(*pair)).all(|(octet, _)| *octet == 0), "{name}");
    let facts = |message: &Message| match message.parse() {
        Ok(Body::Request(request)) => {
            let contexts: Vec<_> =
                request.contexts().map(|(id, data)| (id, data.to_vec())).collect();
            let names =
                [request.object_key().map(<[u8]>::to_vec), Some(request.operation().to_vec())];
            let flags = u32::from(request.response_flags().octet());
            (request.request_id(), flags, contexts, names, request.body().to_vec())
        }
        Ok(Body::Reply(reply)) => {
            let contexts: Vec<_> = reply.contexts().map(|(id, data)| (id, data.to_vec())).collect();
            let status = reply.status().number();
            (reply.request_id(), status, contexts, [None, None], reply.body().to_vec())
        }
        Ok(Body::LocateRequest(request)) => {
            let Target::Key(key) = request.target() else { panic!("{name}: no key") };
            (request.request_id(), 0, Vec::new(), [Some(key.to_vec()), None], Vec::new())
        }
        _ => (0, 0, Vec::new(), [None, None], message.bytes().to_vec()),
    };
    assert_eq!(facts(again), facts(before), "{name}");
}

#[test]
fn what_orbs_send_as_contexts_can_be_read() {
    let mut seen = BTreeSet::new();
    for (name, message) in all_messages() {
        let Ok(Body::Request(request)) = message.parse() else { continue };
        for (id, data) in request.contexts() {
            seen.insert(id);
            assert_eq!(context::check(id, data), Ok(()), "{name}: context {id}");
        }
    }
    assert!(seen.contains(&context::CODE_SETS), "{seen:?}");
}

#[test]
fn every_message_is_written_as_it_was_read() {
    let anew = Rewrite { drop_contexts: &NOBODYS_CONTEXT, ..Rewrite::default() };
    for (name, message) in all_messages() {
        let (version, endian) = (message.version(), message.endian());
        let body = message.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = match &body {
            Body::Request(request) => {
                let untouched = request.rewrite(&Rewrite::default());
                assert_eq!(untouched.bytes(), message.bytes(), "{name}");
                let other = request.with_request_id(!request.request_id());
                assert_ne!(other.bytes(), message.bytes(), "{name}");
                request.rewrite(&anew)
            }
            Body::Reply(reply) => {
                let untouched = reply.rewrite(&Rewrite::default());
                assert_eq!(untouched.bytes(), message.bytes(), "{name}");
                reply.rewrite(&anew)
            }
            Body::LocateRequest(request) => {
                let Target::Key(key) = request.target() else { panic!("{name}: no key") };
                build::locate_request(version, endian, request.request_id(), key)
            }
            Body::LocateReply(reply) if reply.body().is_empty() => {
                build::locate_reply(version, endian, reply.request_id(), reply.status())
            }
            Body::CancelRequest { request_id } => {
                build::cancel_request(version, endian, *request_id)
            }
            Body::LocateReply(_) | Body::CloseConnection | Body::MessageError => message.clone(),
        };
        assert_same_but_padding(&again, &message, &name);
        assert_eq!(Message::from_bytes(message.bytes().clone()), Ok(message.clone()), "{name}");
    }
}

#[test]
fn parameters_stay_the_same_and_aligned_when_the_header_changes() {
    let add = [(context::FT_REQUEST, [0; 21].as_slice())];
    let rewrites = [
        Rewrite { object_key: Some(b"another key"), ..Rewrite::default() },
        Rewrite { add_contexts: &add, ..Rewrite::default() },
        Rewrite { drop_contexts: &[context::CODE_SETS], ..Rewrite::default() },
    ];
    for (name, message) in all_messages() {
        for rewrite in &rewrites {
            let (changed, before, after) = match message.parse().expect("read before") {
                Body::Request(request) => {
                    let changed = request.rewrite(rewrite);
                    let Ok(Body::Request(again)) = changed.parse() else { panic!("{name}") };
                    assert_eq!(again.body(), request.body(), "{name}");
                    assert_eq!(again.operation(), request.operation(), "{name}");
                    let key = rewrite.object_key.or(request.object_key());
                    assert_eq!(again.object_key(), key, "{name}");
                    (changed.clone(), request.body_offset(), again.body_offset())
                }
                Body::Reply(reply) => {
                    let changed = reply.rewrite(rewrite);
                    let Ok(Body::Reply(again)) = changed.parse() else { panic!("{name}") };
                    assert_eq!(again.body(), reply.body(), "{name}");
                    (changed.clone(), reply.body_offset(), again.body_offset())
                }
                _ => continue,
            };
            // Without parameters their offset is the end, wherever that is.
            if after < changed.bytes().len() {
                assert_eq!(before % 8, after % 8, "{name}");
            }
        }
    }
}

#[test]
fn what_came_in_fragments_is_what_was_sent_whole() {
    let echoed = |version: &str, side: &str| -> Vec<Vec<u8>> {
        let name = format!("omniorb-echo-{version}-1.{side}.giop");
        let stream = streams().into_iter().find(|stream| stream.name == name).expect("recorded");
        let bodies = messages(&stream.bytes, WHOLE).into_iter().filter_map(|message| match message
            .parse()
            .expect("well-formed")
        {
            Body::Request(request) if request.operation() == b"echo" => {
                Some(request.body().to_vec())
            }
            Body::Reply(reply) => Some(reply.body().to_vec()),
            _ => None,
        });
        bodies.collect()
    };
    for side in ["client", "server"] {
        let whole = echoed("1.0", side);
        assert_eq!(whole.iter().map(Vec::len).collect::<Vec<_>>(), [12_004, 12_004]);
        assert_eq!(echoed("1.1", side), whole, "{side}");
        assert_eq!(echoed("1.2", side), whole, "{side}");
    }
}

#[test]
fn what_is_fragmented_here_is_joined_to_the_same() {
    for (name, message) in all_messages() {
        for bytes_max in [32, 100, 4096] {
            let pieces = fragment(&message, bytes_max);
            let stream: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            let joined = messages(&stream, WHOLE);
            assert_eq!(joined, std::slice::from_ref(&message), "{name} by {bytes_max}");
        }
    }
}

#[test]
fn references_are_written_as_they_were_read() {
    let mut seen = 0;
    for (name, text) in references() {
        let ior: Ior = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let little = text.trim().starts_with("IOR:01");
        let endian = if little { Endian::Little } else { Endian::Big };
        assert_eq!(ior.stringify(endian), text.trim(), "{name}");
        assert!(!ior.endpoints().is_empty(), "{name} has an address");
        seen += 1;
    }
    for (name, message) in all_messages() {
        let offset = match message.parse().expect("read before") {
            Body::LocateReply(reply) if reply.status() == LocateStatus::ObjectForward => {
                message.bytes().len() - reply.body().len()
            }
            Body::Reply(reply) if reply.status() == ReplyStatus::LocationForward => {
                reply.body_offset()
            }
            _ => continue,
        };
        let mut reader = Reader::at(message.bytes(), offset, message.endian());
        let ior = Ior::read(&mut reader).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reader.remaining(), 0, "{name}");
        assert!(!ior.endpoints().is_empty(), "{name} has an address");
        seen += 1;
    }
    assert!(seen >= 7, "only {seen} references");
}

#[test]
fn the_corpus_has_what_it_is_there_for() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, message) in all_messages() {
        let (version, endian) = (message.version(), message.endian());
        let mut count = |what: &str| {
            *counts.entry(format!("{what} {version} {endian:?}")).or_default() += 1;
        };
        count(&format!("{:?}", message.message_type()));
        match message.parse().expect("read before") {
            Body::Request(request) => {
                if !request.response_expected() {
                    count("oneway");
                }
                for (_, data) in request.contexts().filter(|(id, _)| *id == context::CODE_SETS) {
                    CodeSets::decode(data).unwrap_or_else(|error| panic!("{name}: {error}"));
                    count("code sets");
                }
            }
            Body::Reply(reply) => {
                count(&format!("{:?}", reply.status()));
                if let Some(exception) = reply.system_exception() {
                    let exception = exception.unwrap_or_else(|error| panic!("{name}: {error}"));
                    count(&format!("{:?}", exception.kind));
                }
            }
            _ => {}
        }
    }
    let both = [Endian::Big, Endian::Little];
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for endian in both {
            let calls = [MessageType::Request, MessageType::Reply];
            let locates = [MessageType::LocateRequest, MessageType::LocateReply];
            for kind in calls.iter().chain(&locates) {
                // Only omniORB asks where an object is, and only JacORB is big-endian.
                if *kind == MessageType::LocateRequest && endian == Endian::Big {
                    continue;
                }
                let key = format!("{kind:?} {version} {endian:?}");
                assert!(counts.contains_key(&key), "no {key} in {counts:#?}");
            }
            let not_exist = ExceptionKind::ObjectNotExist;
            for what in [format!("{not_exist:?}"), "oneway".into(), "NoException".into()] {
                let key = format!("{what} {version} {endian:?}");
                assert!(counts.contains_key(&key), "no {key} in {counts:#?}");
            }
        }
    }
    for what in ["BadOperation 1.2 Little", "UserException 1.2 Little", "code sets 1.2 Big"] {
        assert!(counts.contains_key(what), "no {what} in {counts:#?}");
    }
}
