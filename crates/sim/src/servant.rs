//! The replicated service of the simulation: a log of references, spoken to in plain GIOP.
//!
//! `append` writes a reference at the end and answers with its place and the digest of the log up
//! to it; `peek` answers with the log's length and digest; `note` is an `append` that nobody
//! answers (a oneway). `last` answers with no more than the last reference of one kind. A reply
//! to the others thus pins the whole history that caused it, and two replies show
//! whether their histories agree.
//!
//! Invariants: deterministic; a log's digests are the function of its references alone.

use crate::registry::Registry;
use crate::rng::finish;
use bytes::Bytes;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Completion, Endian, ExceptionKind, Message, ReplyStatus, Request, ResponseFlags,
    SystemException, Version,
};

/// Object key of the log.
pub(crate) const LOG_KEY: &[u8] = b"log";
/// Object keys of the log's parts, where calls of different objects run side by side: what is
/// appended to each is in one order, and what of which comes first is nobody's business.
const PART_KEYS: [&[u8]; OBJECTS as usize] = [b"log-0", b"log-1", b"log-2", b"log-3"];
/// Object key of its FT::Checkpointable.
pub(crate) const STATE_KEY: &[u8] = b"log-state";

/// Names one logical call of a client, in all its repetitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Reference(pub(crate) u64);

/// Kinds of references; the last one of each is an object.
pub(crate) const OBJECTS: u64 = 4;

impl Reference {
    /// Its kind.
    pub(crate) fn object(self) -> u64 {
        self.0 % OBJECTS
    }
}

/// A position in a log: how many references, and what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// References up to here.
    pub(crate) length: u64,
    /// Of all of them, in their order.
    pub(crate) digest: u64,
}

impl Mark {
    const EMPTY: Self = Self { length: 0, digest: 0x71ed_270b };
}

/// The service's state.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log {
    references: Vec<Reference>,
    digests: Vec<u64>,
    /// How many the last state or update told of.
    told: usize,
    /// The naming service in which the objects are names, where the plan wants one.
    names: Option<Registry>,
}

/// A state that ends so has that of a naming service in it; no reference is this.
const WITH_NAMES: u64 = u64::MAX;

impl Log {
    /// With a naming service.
    pub(crate) fn with_names() -> Self {
        Self { names: Some(Registry::new()), ..Self::default() }
    }

    /// The state of its naming service.
    pub(crate) fn names_state(&self) -> Option<Vec<u8>> {
        self.names.as_ref().map(Registry::state)
    }

    /// A planted bug loses a name.
    pub(crate) fn lose_name(&mut self) {
        if let Some(names) = &mut self.names {
            names.lose_one();
        }
    }

    /// What an object was before what it is now; for a planted bug.
    pub(crate) fn before_last_of(&self, object: u64) -> Option<u64> {
        self.names.as_ref()?;
        let is_of = |r: &&Reference| r.object() == object && !r.is_heard();
        self.references.iter().rev().filter(is_of).nth(1).map(|reference| reference.0)
    }

    pub(crate) fn len(&self) -> u64 {
        self.references.len() as u64
    }

    pub(crate) fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The digest of the first `length` references.
    pub(crate) fn mark(&self, length: u64) -> Mark {
        match length.checked_sub(1) {
            None => Mark::EMPTY,
            Some(last) => Mark { length, digest: self.digests[last as usize] },
        }
    }

    pub(crate) fn end(&self) -> Mark {
        self.mark(self.len())
    }

    pub(crate) fn append(&mut self, reference: Reference) -> Mark {
        let digest = finish(self.end().digest.rotate_left(1) ^ reference.0);
        self.references.push(reference);
        self.digests.push(digest);
        if let Some(names) = self.names.as_mut().filter(|_| !reference.is_heard()) {
            names.bind(reference);
        }
        self.end()
    }

    /// The last reference of an object; 0 if there is none.
    fn last_of(&mut self, object: u64) -> u64 {
        if let Some(names) = &mut self.names {
            return names.resolve(object);
        }
        let is_of = |r: &&Reference| r.object() == object && !r.is_heard();
        let last = self.references.iter().rev().find(is_of);
        last.map_or(0, |reference| reference.0)
    }

    /// What was appended to one object, in its order.
    pub(crate) fn part(&self, object: u64) -> impl Iterator<Item = &Reference> {
        self.references.iter().filter(move |reference| reference.object() == object)
    }

    /// A planted bug forgets the last reference.
    pub(crate) fn forget_last(&mut self) {
        self.references.pop();
        self.digests.pop();
    }

    fn to_bytes(&self, from: usize) -> Vec<u8> {
        let from = from.min(self.references.len());
        self.references[from..].iter().flat_map(|reference| reference.0.to_be_bytes()).collect()
    }

    /// The whole state: references, and behind them that of the naming service, if there is one.
    fn state(&self) -> Vec<u8> {
        let mut state = self.to_bytes(0);
        if let Some(names) = self.names_state() {
            state.extend_from_slice(&names);
            state.resize(state.len().next_multiple_of(8), 0);
            state.extend_from_slice(&(names.len() as u64).to_be_bytes());
            state.extend_from_slice(&WITH_NAMES.to_be_bytes());
        }
        state
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if !bytes.len().is_multiple_of(8) {
            return None;
        }
        if let Some((rest, mark)) = bytes.split_last_chunk()
            && u64::from_be_bytes(*mark) == WITH_NAMES
        {
            let (rest, length) = rest.split_last_chunk()?;
            let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
            let begin = rest.len().checked_sub(length.checked_next_multiple_of(8)?)?;
            let (references, names) = rest.split_at(begin);
            let names = Some(Registry::from_state(names.get(..length)?)?);
            return Some(Self { names, ..Self::from_bytes(references)? });
        }
        let mut log = Self::default();
        for chunk in bytes.chunks_exact(8) {
            log.append(Reference(u64::from_be_bytes(chunk.try_into().expect("eight bytes"))));
        }
        Some(log)
    }
}

/// What a request asks of the service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Write a reference.
    Append(Reference),
    /// Look.
    Peek,
    /// Look at the last reference of this one's object.
    Last(Reference),
    /// `get_state`.
    GetState,
    /// `set_state`.
    SetState(Vec<u8>),
    /// `get_update`.
    GetUpdate,
    /// `set_update`.
    SetUpdate(Vec<u8>),
    /// Something else.
    Unknown,
}

impl Operation {
    pub(crate) fn of(request: &Request<'_>, endian: Endian) -> Self {
        let mut reader =
            quorba_giop::cdr::Reader::at(request.message_bytes(), request.body_offset(), endian);
        let key = request.object_key().map(|key| match PART_KEYS.contains(&key) {
            true => LOG_KEY,
            false => key,
        });
        match (key, request.operation()) {
            (Some(LOG_KEY), b"append" | b"note") => match reader.read_u64("reference") {
                Ok(reference) => Self::Append(Reference(reference)),
                Err(_) => Self::Unknown,
            },
            (Some(LOG_KEY), b"peek") => Self::Peek,
            (Some(LOG_KEY), b"last") => match reader.read_u64("reference") {
                Ok(reference) => Self::Last(Reference(reference)),
                Err(_) => Self::Unknown,
            },
            (Some(STATE_KEY), b"get_state") => Self::GetState,
            (Some(STATE_KEY), b"get_update") => Self::GetUpdate,
            (Some(STATE_KEY), b"set_update") => match reader.read_octets(usize::MAX, "update") {
                Ok(update) => Self::SetUpdate(update.to_vec()),
                Err(_) => Self::Unknown,
            },
            (Some(STATE_KEY), b"set_state") => match reader.read_octets(usize::MAX, "state") {
                Ok(state) => Self::SetState(state.to_vec()),
                Err(_) => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }

    /// Whether it moves state.
    pub(crate) const fn is_state(&self) -> bool {
        matches!(self, Self::GetState | Self::SetState(_) | Self::GetUpdate | Self::SetUpdate(_))
    }

    /// Executes it and gives the reply under `request_id`.
    pub(crate) fn execute(
        self,
        log: &mut Log,
        version: Version,
        endian: Endian,
        request_id: u32,
    ) -> Bytes {
        let good = ReplyStatus::NoException;
        let mark = match self {
            Self::Append(reference) => log.append(reference),
            Self::Peek => log.end(),
            Self::Last(reference) => {
                let value = log.last_of(reference.object());
                return build::reply(version, endian, request_id, good, |cdr| {
                    cdr.write_u64(value);
                })
                .bytes()
                .clone();
            }
            Self::GetState | Self::GetUpdate => {
                let is_update = self == Self::GetUpdate;
                let state = if is_update { log.to_bytes(log.told) } else { log.state() };
                log.told = log.references.len();
                return build::reply(version, endian, request_id, good, |cdr| {
                    cdr.write_octets(&state);
                })
                .bytes()
                .clone();
            }
            Self::SetUpdate(update) => match Log::from_bytes(&update) {
                Some(new) => {
                    new.references.into_iter().for_each(|reference| {
                        log.append(reference);
                    });
                    let reply = build::reply(version, endian, request_id, good, |_| {});
                    return reply.bytes().clone();
                }
                None => return bad_param(version, endian, request_id),
            },
            Self::SetState(state) => match Log::from_bytes(&state) {
                Some(new) if new.names.is_some() == log.names.is_some() => {
                    *log = new;
                    let reply = build::reply(version, endian, request_id, good, |_| {});
                    return reply.bytes().clone();
                }
                _ => return bad_param(version, endian, request_id),
            },
            Self::Unknown => return bad_param(version, endian, request_id),
        };
        build::reply(version, endian, request_id, good, |cdr| {
            cdr.write_u64(mark.length);
            cdr.write_u64(mark.digest);
        })
        .bytes()
        .clone()
    }
}

pub(crate) fn bad_param(version: Version, endian: Endian, request_id: u32) -> Bytes {
    let exception =
        SystemException { kind: ExceptionKind::BadParam, minor: 0, completed: Completion::No };
    build::system_exception(version, endian, request_id, &exception).bytes().clone()
}

/// What a client wants to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// `append`.
    Append,
    /// `peek`.
    Peek,
    /// `last`.
    Last,
    /// `note`.
    Note,
}

/// How a client writes its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dialect {
    pub(crate) version: Version,
    pub(crate) endian: Endian,
}

/// A client's request. `padding` bytes make it as large as one likes.
pub(crate) fn request(
    dialect: Dialect,
    request_id: u32,
    wish: Wish,
    reference: Reference,
    padding: usize,
    contexts: &[(u32, &[u8])],
    in_parts: bool,
) -> Message {
    let operation: &[u8] = match wish {
        Wish::Append => b"append",
        Wish::Peek => b"peek",
        Wish::Last => b"last",
        Wish::Note => b"note",
    };
    let response_flags =
        if wish == Wish::Note { ResponseFlags::None } else { ResponseFlags::WithTarget };
    let head = RequestHead {
        version: dialect.version,
        endian: dialect.endian,
        request_id,
        response_flags,
        object_key: if in_parts { PART_KEYS[reference.object() as usize] } else { LOG_KEY },
        operation,
        contexts,
    };
    build::request(&head, |cdr| {
        cdr.write_u64(reference.0);
        cdr.write_octets(&vec![reference.0 as u8; padding]);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_histories_apart_and_survives_a_transfer() {
        let mut log = Log::default();
        let first = log.append(Reference(7));
        let second = log.append(Reference(8));
        let mut other = Log::default();
        other.append(Reference(8));
        assert_ne!(other.append(Reference(7)), second);
        let copy = Log::from_bytes(&log.to_bytes(0)).expect("whole references");
        assert_eq!((copy.mark(1), copy.end()), (first, second));
        assert!(Log::from_bytes(&[0; 9]).is_none());
    }

    #[test]
    fn names_are_part_of_the_state() {
        let mut log = Log::with_names();
        for reference in 1..20 {
            log.append(Reference(reference));
        }
        let mut copy = Log::from_bytes(&log.state()).expect("a state");
        assert_eq!(copy.end(), log.end());
        assert_eq!(copy.names_state(), log.names_state());
        assert_eq!((copy.last_of(3), copy.before_last_of(3)), (19, Some(15)));
        copy.lose_name();
        assert_ne!(copy.names_state(), log.names_state());
    }
}
