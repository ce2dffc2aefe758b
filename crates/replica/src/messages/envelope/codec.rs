//! How the messages of the order are encoded.
//!
//! Invariant: the GIOP bytes of a request or reply stand last and are never copied on the way in.

use super::{Envelope, FtRequest, ProcessEnd, RequestEnvelope};
use crate::calls::nested::NestedCall;
use crate::calls::outside::OutsideReport;
use crate::messages::catalog::{CatalogChange, take_operation};
use crate::messages::command::Command;
use crate::messages::hello::{Hello, Snapshot};
use crate::messages::pieces::CheckpointPiece;
use crate::table::DownReason;
use crate::table::endings::{Report, put_named, take_named};
use crate::table::offer::Offer;
use crate::table::votes::Subject;
use crate::words::binding::{put_bound, take_bound};
use crate::words::ids::{
    Attempt, GatewayKey, GroupId, RequestNumber, put_call, put_view, take_call, take_view,
};
use crate::words::released::Released;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;

/// Room for what is not of any size.
const HEAD_BYTES: usize = 96;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const JOIN: u8 = 3;
const JOINED: u8 = 4;
const DOWN: u8 = 5;
const STATE_FAILED: u8 = 7;
const OPEN: u8 = 8;
const HELLO: u8 = 9;
const SNAPSHOT: u8 = 10;
const RECORDED: u8 = 11;
const CHECKPOINT: u8 = 12;
const COMMAND: u8 = 13;
const VOTES: u8 = 14;
const READ_MARK: u8 = 15;
const FULL: u8 = 16;
const FLOOR: u8 = 17;
const OUTSIDE: u8 = 18;
const ENDING: u8 = 19;
const STATE_DIGEST: u8 = 20;
const RELEASED: u8 = 24;
const DEFINE: u8 = 25;
const CATALOG: u8 = 26;

impl Envelope {
    /// The encoded message.
    #[must_use]
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::with_capacity(HEAD_BYTES + self.bulk_bytes());
        match self {
            Self::Request(request) => put_request(&mut w, request),
            Self::Reply { group, to, giop } => put_reply(&mut w, *group, *to, giop),
            Self::Join { .. }
            | Self::Joined { .. }
            | Self::Down { .. }
            | Self::Ending { .. }
            | Self::StateDigest { .. }
            | Self::StateFailed { .. } => self.encode_of_member(&mut w),
            Self::Open { group } => head(&mut w, OPEN, *group),
            Self::Checkpoint { group, attempt, number, piece } => {
                head(&mut w, CHECKPOINT, *group);
                w.u64(attempt.0);
                w.u64(*number);
                w.u64(piece.offset);
                w.u64(piece.total);
                w.rest(&piece.bytes);
            }
            Self::Votes { group, attempt, votes } => put_votes(&mut w, *group, *attempt, votes),
            Self::ReadMark { group, number } => put_numbers(&mut w, READ_MARK, *group, [*number]),
            Self::Released { group, released } => {
                head(&mut w, RELEASED, *group);
                released.encode(&mut w);
            }
            Self::Floor { group, attempt, up_to } => {
                put_numbers(&mut w, FLOOR, *group, [attempt.0, *up_to]);
            }
            Self::Outside { group, key, tries, report } => {
                head(&mut w, OUTSIDE, *group);
                put_call(&mut w, key);
                w.u32(*tries);
                report.encode(&mut w);
            }
            Self::Full { group, attempt, is_full } => {
                head(&mut w, FULL, *group);
                w.u64(attempt.0);
                w.u8(u8::from(*is_full));
            }
            Self::Command { group, id, command } => {
                head(&mut w, COMMAND, *group);
                w.u64(*id);
                command.encode(&mut w);
            }
            Self::Define { .. } | Self::Catalog { .. } => self.encode_of_catalog(&mut w),
            Self::Hello(hello) => {
                w.u8(HELLO);
                hello.encode(&mut w);
            }
            Self::Snapshot(snapshot) => {
                w.u8(SNAPSHOT);
                snapshot.encode(&mut w);
            }
            Self::Recorded { view } => {
                w.u8(RECORDED);
                put_view(&mut w, *view);
            }
        }
        w.finish()
    }

    /// A change of the catalog, or a part of it.
    fn encode_of_catalog(&self, w: &mut Writer) {
        match self {
            Self::Define { id, operation, change } => {
                w.u8(DEFINE);
                w.u64(*id);
                w.bytes(operation);
                change.encode(w);
            }
            Self::Catalog { view, part: (part, parts), bytes } => {
                w.u8(CATALOG);
                put_view(w, *view);
                w.u32(*part);
                w.u32(*parts);
                w.rest(bytes);
            }
            _ => unreachable!("the caller matched"),
        }
    }

    /// What a member says of itself, its server or its donor.
    fn encode_of_member(&self, w: &mut Writer) {
        match self {
            Self::Join { group, attempt, offer } => {
                head(w, JOIN, *group);
                w.u64(attempt.0);
                offer.encode(w);
            }
            Self::Joined { group, attempt } => put_numbers(w, JOINED, *group, [attempt.0]),
            Self::Down { group, attempt, reason, ended } => {
                head(w, DOWN, *group);
                w.u64(attempt.0);
                w.u8(reason.code());
                ended.encode(w);
            }
            Self::Ending { group, attempt, request: (key, at), report } => {
                head(w, ENDING, *group);
                w.u64(attempt.0);
                put_named(w, (key, *at));
                report.encode(w);
            }
            Self::StateDigest { group, attempt, number, digest } => {
                let (some, digest) = (u64::from(digest.is_some()), digest.unwrap_or_default());
                put_numbers(w, STATE_DIGEST, *group, [attempt.0, *number, some, digest]);
            }
            Self::StateFailed { group, joiner, attempt, reason } => {
                head(w, STATE_FAILED, *group);
                w.node(*joiner);
                w.u64(attempt.0);
                w.u8(reason.code());
            }
            _ => unreachable!("the caller matched"),
        }
    }

    /// Bytes of the part whose size varies most.
    fn bulk_bytes(&self) -> usize {
        match self {
            Self::Request(request) => bulk_of_request(request),
            Self::Reply { giop, .. } => giop.len(),
            Self::Outside { report: OutsideReport::Reply(giop), .. } => giop.len(),
            Self::Checkpoint { piece, .. } => piece.bytes.len(),
            Self::Catalog { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// Reads a message; `payload` is shared, not copied.
    ///
    /// # Errors
    /// If the origin is of another version: the message is then skipped by every node alike.
    pub(crate) fn decode(payload: Bytes) -> Result<Self, InvalidEnvelope> {
        let mut r = Reader::new(payload);
        let kind = r.u8("kind")?;
        match kind {
            HELLO => return Ok(Self::Hello(Hello::decode(&mut r)?)),
            SNAPSHOT => return Ok(Self::Snapshot(Snapshot::decode(&mut r)?)),
            RECORDED => return Ok(Self::Recorded { view: take_view(&mut r)? }),
            DEFINE | CATALOG => return Self::decode_of_catalog(kind, &mut r),
            _ => {}
        }
        let group = GroupId(r.u64("group")?);
        let envelope = match kind {
            REQUEST => Self::Request(take_request(&mut r, group)?),
            REPLY => {
                let node = r.node("gateway")?;
                let incarnation = r.u64("incarnation")?;
                let number = RequestNumber(r.u64("number")?);
                let to = GatewayKey { node, incarnation, number };
                Self::Reply { group, to, giop: r.rest() }
            }
            JOIN | JOINED | DOWN | ENDING | STATE_DIGEST | STATE_FAILED => {
                Self::decode_of_member(kind, group, &mut r)?
            }
            OPEN => Self::Open { group },
            CHECKPOINT => Self::Checkpoint {
                group,
                attempt: Attempt(r.u64("attempt")?),
                number: r.u64("checkpoint number")?,
                piece: take_piece(&mut r)?,
            },
            VOTES => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Votes { group, attempt, votes: take_votes(&mut r)? }
            }
            READ_MARK => Self::ReadMark { group, number: r.u64("mark")? },
            RELEASED => Self::Released { group, released: Released::decode(&mut r)? },
            FULL => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Full { group, attempt, is_full: r.bool("full flag")? }
            }
            FLOOR => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Floor { group, attempt, up_to: r.u64("floor")? }
            }
            OUTSIDE => {
                let key = take_call(&mut r)?;
                let tries = r.u32("tries")?;
                Self::Outside { group, key, tries, report: OutsideReport::decode(&mut r)? }
            }
            COMMAND => {
                let id = r.u64("command id")?;
                Self::Command { group, id, command: Command::decode(&mut r)? }
            }
            _ => return Err(InvalidEnvelope { what: "kind", offset: 0 }),
        };
        r.end()?;
        Ok(envelope)
    }

    fn decode_of_catalog(kind: u8, r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        if kind == DEFINE {
            let (id, operation) = (r.u64("id")?, take_operation(r)?);
            let change = CatalogChange::decode(r)?;
            r.end()?;
            return Ok(Self::Define { id, operation, change });
        }
        let view = take_view(r)?;
        let part = (r.u32("part")?, r.u32("parts")?);
        Ok(Self::Catalog { view, part, bytes: r.rest() })
    }

    fn decode_of_member(kind: u8, group: GroupId, r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        Ok(match kind {
            JOIN => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Join { group, attempt, offer: Offer::decode(r)? }
            }
            JOINED => Self::Joined { group, attempt: Attempt(r.u64("attempt")?) },
            DOWN => {
                let attempt = Attempt(r.u64("attempt")?);
                let reason = take_reason(r)?;
                Self::Down { group, attempt, reason, ended: ProcessEnd::decode(r)? }
            }
            ENDING => {
                let attempt = Attempt(r.u64("attempt")?);
                let request = take_named(r)?;
                Self::Ending { group, attempt, request, report: Report::decode(r)? }
            }
            STATE_DIGEST => {
                let attempt = Attempt(r.u64("attempt")?);
                let (number, some) = (r.u64("comparison")?, r.u64("digest flag")? != 0);
                let digest = Some(r.u64("digest")?).filter(|_| some);
                Self::StateDigest { group, attempt, number, digest }
            }
            STATE_FAILED => {
                let joiner = r.node("joiner")?;
                let attempt = Attempt(r.u64("attempt")?);
                Self::StateFailed { group, joiner, attempt, reason: take_reason(r)? }
            }
            _ => return Err(InvalidEnvelope { what: "kind", offset: 0 }),
        })
    }
}

impl ProcessEnd {
    fn encode(&self, w: &mut Writer) {
        w.u32(self.at.len() as u32);
        self.at.iter().for_each(|(key, at)| put_named(w, (key, *at)));
        w.u64(self.answered);
    }

    fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut at = Vec::new();
        for _ in 0..r.count(30, "requests of a process")? {
            at.push(take_named(r)?);
        }
        Ok(Self { at, answered: r.u64("answered")? })
    }
}

fn take_piece(r: &mut Reader) -> Result<CheckpointPiece, InvalidEnvelope> {
    Ok(CheckpointPiece { offset: r.u64("offset")?, total: r.u64("total")?, bytes: r.rest() })
}

fn take_votes(r: &mut Reader) -> Result<Vec<(Subject, u64)>, InvalidEnvelope> {
    let mut votes = Vec::new();
    for _ in 0..r.count(16, "votes")? {
        votes.push((Subject::decode(r.u64("window")?), r.u64("vote")?));
    }
    Ok(votes)
}

fn take_reason(r: &mut Reader) -> Result<DownReason, InvalidEnvelope> {
    let invalid = r.error("reason");
    DownReason::from_code(r.u8("reason")?).ok_or(invalid)
}

fn head(w: &mut Writer, kind: u8, group: GroupId) {
    w.u8(kind);
    w.u64(group.0);
}

fn put_numbers<const N: usize>(w: &mut Writer, kind: u8, group: GroupId, numbers: [u64; N]) {
    head(w, kind, group);
    numbers.into_iter().for_each(|number| w.u64(number));
}

fn put_votes(w: &mut Writer, group: GroupId, attempt: Attempt, votes: &[(Subject, u64)]) {
    head(w, VOTES, group);
    w.u64(attempt.0);
    w.u32(votes.len() as u32);
    for (window, digest) in votes {
        w.u64(window.encode());
        w.u64(*digest);
    }
}

fn put_reply(w: &mut Writer, group: GroupId, to: GatewayKey, giop: &Bytes) {
    head(w, REPLY, group);
    w.node(to.node);
    w.u64(to.incarnation);
    w.u64(to.number.0);
    w.rest(giop);
}

/// The message that a request is in the order.
pub(super) fn encode_request(request: &RequestEnvelope) -> Bytes {
    let mut w = Writer::with_capacity(HEAD_BYTES + bulk_of_request(request));
    put_request(&mut w, request);
    w.finish()
}

fn bulk_of_request(request: &RequestEnvelope) -> usize {
    let ft = request.ft.as_ref().map_or(0, |ft| ft.client_id.len());
    request.giop.len() + request.code_sets.as_ref().map_or(0, Bytes::len) + ft
}

fn put_request(w: &mut Writer, request: &RequestEnvelope) {
    head(w, REQUEST, request.group);
    w.u64(request.number.0);
    request.released.encode(w);
    w.u64(request.stamp);
    let (ft, code_sets) = (request.ft.is_some(), request.code_sets.is_some());
    let nested = request.nested.is_some();
    let ended = u8::from(request.ended_process);
    w.u8(u8::from(ft) | u8::from(code_sets) << 1 | u8::from(nested) << 2 | ended << 3);
    if let Some(ft) = &request.ft {
        w.bytes(&ft.client_id);
        w.i32(ft.retention_id);
        w.u64(ft.expiration);
        put_bound(w, &ft.bound);
    }
    if let Some(code_sets) = &request.code_sets {
        w.bytes(code_sets);
    }
    if let Some(call) = &request.nested {
        call.encode(w);
    }
    w.rest(&request.giop);
}

fn take_request(r: &mut Reader, group: GroupId) -> Result<RequestEnvelope, InvalidEnvelope> {
    let number = RequestNumber(r.u64("number")?);
    let released = Released::decode(r)?;
    let stamp = r.u64("stamp")?;
    let flags = r.u8("flags")?;
    let ft = if flags & 1 != 0 {
        let client_id = r.bytes("client id")?;
        let retention_id = r.i32("retention id")?;
        let expiration = r.u64("expiration")?;
        Some(FtRequest { client_id, retention_id, expiration, bound: take_bound(r)? })
    } else {
        None
    };
    let code_sets = if flags & 2 != 0 { Some(r.bytes("code sets")?) } else { None };
    let nested = if flags & 4 != 0 { Some(NestedCall::decode(r)?) } else { None };
    let ended_process = flags & 8 != 0;
    let giop = r.rest();
    Ok(RequestEnvelope {
        group,
        number,
        released,
        stamp,
        ft,
        nested,
        ended_process,
        code_sets,
        giop,
    })
}
