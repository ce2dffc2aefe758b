//! Malformed GIOP by name, for tests of anything that listens: what broken, foreign and malicious
//! clients send.
//!
//! [`cases`] gives the octets of one connection per case, and what a robust server may do about
//! them. In any case it stays alive, keeps its memory bounded and goes on serving others.
//!
//! What it is not: a generator. The cases are few, deliberate, and the same every time; fuzzing
//! finds what nobody thought of.
//!
//! Invariant: a name stays with its case, so that a failure can be spoken about.

mod context;
mod fragment;
mod header;
mod request;

use crate::cdr::Writer;
use crate::limits::HEADER_BYTES;
use crate::request::patch_u32;
use crate::version::{Endian, Version};
use alloc::vec::Vec;

/// The request id of the (first) request of a case.
pub const REQUEST_ID: u32 = 4242;
/// The object key of the requests: no server is expected to have it.
pub const OBJECT_KEY: &[u8] = b"hostile/no-such-object";
/// The operation of the requests.
pub const OPERATION: &[u8] = b"no_such_operation";

const REQUEST: u8 = 0;
const REPLY: u8 = 1;
const CANCEL_REQUEST: u8 = 2;
const LOCATE_REQUEST: u8 = 3;
const LOCATE_REPLY: u8 = 4;
const CLOSE_CONNECTION: u8 = 5;
const MESSAGE_ERROR: u8 = 6;
const FRAGMENT: u8 = 7;
const FLAG_MORE_FRAGMENTS: u8 = 2;

/// One malformed input.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is wrong with it.
    pub name: &'static str,
    /// All that the client sends; it then waits.
    pub bytes: Vec<u8>,
    /// What the server may do.
    pub may: Reactions,
}

/// A set of things that a server may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reactions(u8);

impl Reactions {
    /// Closes the connection, with or without CloseConnection.
    pub const CLOSES: Self = Self(1);
    /// Sends MessageError, and then closes or not.
    pub const MESSAGE_ERROR: Self = Self(2);
    /// Answers by Reply or LocateReply, mostly an exception: what is wrong does not make it
    /// unclear what was asked.
    pub const REPLIES: Self = Self(4);
    /// Says nothing, and waits for more.
    pub const IGNORES: Self = Self(8);

    /// What no robust server takes for a message.
    pub(crate) const REFUSES: Self = Self::CLOSES.or(Self::MESSAGE_ERROR);
    /// What is wrong, but can be understood.
    pub(crate) const TOLERATES: Self = Self::REFUSES.or(Self::REPLIES);
    /// What is not complete yet, or of no consequence.
    pub(crate) const WAITS: Self = Self::CLOSES.or(Self::IGNORES);
    pub(crate) const ANY: Self = Self::TOLERATES.or(Self::IGNORES);

    /// Both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are in the set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// All cases of a version and byte order.
#[must_use]
pub fn cases(version: Version, endian: Endian) -> Vec<Case> {
    let mut cases = Cases { maker: Maker { version, endian }, list: Vec::new() };
    header::add(&mut cases);
    header::add_types(&mut cases);
    request::add(&mut cases);
    request::add_operations(&mut cases);
    request::add_targets(&mut cases);
    request::add_locates(&mut cases);
    context::add(&mut cases);
    context::add_known(&mut cases);
    fragment::add(&mut cases);
    fragment::add_mixed(&mut cases);
    cases.list
}

/// Cases that are being collected.
struct Cases {
    maker: Maker,
    list: Vec<Case>,
}

impl Cases {
    fn add(&mut self, name: &'static str, may: Reactions, bytes: impl Into<Vec<u8>>) {
        self.list.push(Case { name, bytes: bytes.into(), may });
    }
}

/// Makes octets in a version and byte order.
#[derive(Clone, Copy)]
struct Maker {
    version: Version,
    endian: Endian,
}

/// A request in parts, each of which begins at a multiple of 4.
#[derive(Clone)]
struct Parts {
    contexts: Vec<u8>,
    request_id: u32,
    flags: u8,
    reserved: [u8; 3],
    target: Vec<u8>,
    operation: Vec<u8>,
    /// Before GIOP 1.2 only.
    principal: Vec<u8>,
    parameters: Vec<u8>,
}

impl Maker {
    fn part(self, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::new(self.endian);
        write(&mut writer);
        writer.finish()
    }

    fn header(self, kind: u8, flags: u8, size: u32) -> Vec<u8> {
        self.part(|writer| {
            let Version { major, minor } = self.version;
            writer.write_raw(b"GIOP");
            writer.write_raw(&[major, minor, flags | self.endian.bit(), kind]);
            writer.write_u32(size);
        })
    }

    /// A message whose size is right.
    fn message(self, kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut bytes = self.header(kind, flags, size);
        bytes.extend_from_slice(body);
        bytes
    }

    fn number(self, number: u32) -> Vec<u8> {
        self.part(|writer| writer.write_u32(number))
    }

    /// An object key as the target of a request.
    fn key(self, key: &[u8]) -> Vec<u8> {
        self.part(|writer| {
            if self.version >= Version::V1_2 {
                writer.write_u16(0);
            }
            writer.write_octets(key);
        })
    }

    fn string(self, text: &[u8]) -> Vec<u8> {
        self.part(|writer| writer.write_string(text))
    }

    fn contexts(self, contexts: &[(u32, &[u8])]) -> Vec<u8> {
        self.part(|writer| {
            writer.write_count(contexts.len());
            for (id, data) in contexts {
                writer.write_u32(*id);
                writer.write_octets(data);
            }
        })
    }

    /// A request with which nothing is wrong.
    fn parts(self) -> Parts {
        let new = self.version >= Version::V1_2;
        Parts {
            contexts: self.contexts(&[]),
            request_id: REQUEST_ID,
            flags: if new { 3 } else { 1 },
            reserved: [0; 3],
            target: self.key(OBJECT_KEY),
            operation: self.string(OPERATION),
            principal: self.number(0),
            parameters: Vec::new(),
        }
    }

    /// What is between a request's message header and its end.
    fn body(self, parts: &Parts) -> Vec<u8> {
        let mut writer = Writer::new(self.endian);
        let new = self.version >= Version::V1_2;
        let mut aligned = |part: &[u8]| {
            writer.align(4);
            writer.write_raw(part);
        };
        if !new {
            aligned(&parts.contexts);
        }
        aligned(&self.number(parts.request_id));
        aligned(&[parts.flags]);
        if self.version >= Version::V1_1 {
            writer.write_raw(&parts.reserved);
        }
        let mut aligned = |part: &[u8]| {
            writer.align(4);
            writer.write_raw(part);
        };
        aligned(&parts.target);
        aligned(&parts.operation);
        aligned(if new { &parts.contexts } else { &parts.principal });
        if new && !parts.parameters.is_empty() {
            // Alignment counts from the message header, whose 12 octets are not in here.
            while !writer.position().saturating_add(HEADER_BYTES).is_multiple_of(8) {
                writer.write_u8(0);
            }
        }
        writer.write_raw(&parts.parameters);
        writer.finish()
    }

    fn request(self, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        let mut parts = self.parts();
        change(&mut parts);
        self.message(REQUEST, 0, &self.body(&parts))
    }

    /// A right request of which only the first octets of the body are there, and the size says so.
    fn cut_request(self, body_bytes: usize) -> Vec<u8> {
        let body = self.body(&self.parts());
        self.message(REQUEST, 0, body.get(..body_bytes).unwrap_or(&body))
    }

    /// Changes the size in a message's header.
    fn with_size(self, mut message: Vec<u8>, change: impl FnOnce(u32) -> u32) -> Vec<u8> {
        let size = message.len().saturating_sub(HEADER_BYTES);
        let size = change(u32::try_from(size).unwrap_or(u32::MAX));
        patch_u32(&mut message, 8, size, self.endian);
        message
    }
}
