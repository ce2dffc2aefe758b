//! The messages that nodes send each other through the order, and their encoding.
//!
//! Invariant: the GIOP bytes of a request or reply stand last and are never copied on the way in.

use crate::command::Command;
use crate::hello::{Hello, Snapshot, put_view, take_view};
use crate::ids::{Attempt, CallKey, GatewayKey, GroupId, RequestKey, RequestNumber, ViewId};
use crate::nested::{NestedCall, put_call, take_call};
use crate::offer::Offer;
use crate::outside::OutsideReport;
use crate::passive::CheckpointPiece;
use crate::released::Released;
use crate::table::DownReason;
use crate::votes::Subject;
use crate::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{NodeId, canary};

/// The longest CodeSets context that is passed on, in bytes; it should have 12 (GIOP §13.10.2.6).
pub const CODE_SETS_BYTES_MAX: usize = 64;
/// What a request or reply is wrapped in, in bytes, is never more than this.
pub const ENVELOPE_BYTES_MAX: usize = 2048;

/// FT_REQUEST service context (FT-CORBA §23.2.8), as far as it matters for repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FtRequest {
    /// Unique per client ORB, opaque.
    pub client_id: Bytes,
    /// Unique per request of that client.
    pub retention_id: i32,
    /// Until when the client may repeat it, TimeT (100 ns since 1582-10-15).
    pub expiration: u64,
}

/// A client's request on its way to the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestEnvelope {
    /// Its target.
    pub group: GroupId,
    /// The gateway's count of requests to this group.
    pub number: RequestNumber,
    /// Requests of the gateway that are answered; their replies can go.
    pub released: Released,
    /// The gateway's wall clock when it took the request in, TimeT.
    pub stamp: u64,
    /// The client's own name for it.
    pub ft: Option<FtRequest>,
    /// It is a call of a replicated server; then its name counts, whatever the client says.
    pub nested: Option<NestedCall>,
    /// The CodeSets context of the client's connection, if it ever sent one.
    pub code_sets: Option<Bytes>,
    /// The whole GIOP message.
    pub giop: Bytes,
}

impl RequestEnvelope {
    /// The message to submit to the order.
    #[must_use]
    pub fn into_payload(self) -> Bytes {
        Envelope::Request(self).encode()
    }

    /// The request that an ordered message is; none if it is something else, or not readable.
    #[must_use]
    pub fn from_payload(payload: Bytes) -> Option<Self> {
        match Envelope::decode(payload) {
            Ok(Envelope::Request(request)) => Some(request),
            _ => None,
        }
    }

    /// The same call of a replicated server, now that its member is in by that try.
    #[must_use]
    pub fn by(mut self, attempt: Attempt) -> Option<Self> {
        let call = self.nested.as_mut()?;
        call.attempt = attempt;
        if canary!(HeldCallsAreNewCalls) {
            call.key.number += 1;
        }
        Some(self)
    }

    /// The identity under which repetitions are recognised.
    #[must_use]
    pub fn key(&self, origin: NodeId, incarnation: u64) -> RequestKey {
        let incarnation = if canary!(ReusesNamesAfterBoot) { 1 } else { incarnation };
        if let Some(call) = self.nested.as_ref().filter(|_| !canary!(CallsHaveNoName)) {
            return RequestKey::Nested(call.key);
        }
        match &self.ft {
            Some(_) if canary!(IgnoresClientNames) => {
                RequestKey::Gateway(GatewayKey { node: origin, incarnation, number: self.number })
            }
            Some(ft) => RequestKey::Client {
                client_id: ft.client_id.clone(),
                retention_id: ft.retention_id,
            },
            None => {
                RequestKey::Gateway(GatewayKey { node: origin, incarnation, number: self.number })
            }
        }
    }
}

/// Everything that travels through the order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Envelope {
    /// A client's request.
    Request(RequestEnvelope),
    /// The reply to a request of a gateway on another node.
    Reply {
        /// The group that executed it.
        group: GroupId,
        /// Whose request it was.
        to: GatewayKey,
        /// The whole GIOP message.
        giop: Bytes,
    },
    /// The sender's member wants to come in.
    Join {
        /// Of this group.
        group: GroupId,
        /// Which try.
        attempt: Attempt,
        /// What it has.
        offer: Offer,
    },
    /// The sender's member has the state and is replaying what came meanwhile.
    Joined {
        /// Of this group.
        group: GroupId,
        /// Which try.
        attempt: Attempt,
    },
    /// The sender's member is gone.
    Down {
        /// Of this group.
        group: GroupId,
        /// Which try.
        attempt: Attempt,
        /// Why.
        reason: DownReason,
    },
    /// The donor cannot give its state.
    StateFailed {
        /// Of this group.
        group: GroupId,
        /// For the member on this node.
        joiner: NodeId,
        /// And this try of it.
        attempt: Attempt,
        /// Why.
        reason: DownReason,
    },
    /// The wait for missing members is over.
    Open {
        /// Of this group.
        group: GroupId,
    },
    /// A piece of the leader's checkpoint.
    Checkpoint {
        /// Of this group.
        group: GroupId,
        /// The try that brought the leader in.
        attempt: Attempt,
        /// Which of its checkpoints.
        number: u64,
        /// The piece.
        piece: CheckpointPiece,
    },
    /// What the sender's member has replied.
    Votes {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in.
        attempt: Attempt,
        /// Windows, by their last request, and digests.
        votes: Vec<(Subject, u64)>,
    },
    /// The sender's reads that waited for it are to see all before it; see [`crate::reads`].
    ReadMark {
        /// Of this group.
        group: GroupId,
        /// The sender's count.
        number: u64,
    },
    /// The sender's member has too many replies to remember, or no longer has.
    Full {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in.
        attempt: Attempt,
        /// Which of the two.
        is_full: bool,
    },
    /// The sender's member will not execute again what its group was delivered up to here; see
    /// [`crate::nested`].
    Floor {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in.
        attempt: Attempt,
        /// The request, counted from the group's first.
        up_to: u64,
    },
    /// What came of a call to a server outside; see [`crate::outside`].
    Outside {
        /// That server.
        group: GroupId,
        /// The call.
        key: CallKey,
        /// So many tries of it were in doubt before this one.
        tries: u32,
        /// What came of it.
        report: OutsideReport,
    },
    /// An operator changes the group.
    Command {
        /// This group.
        group: GroupId,
        /// The sender's name for it.
        id: u64,
        /// The change.
        command: Command,
    },
    /// See [`Hello`].
    Hello(Hello),
    /// What stale nodes need to take part.
    Snapshot(Snapshot),
    /// The sender has written down that the view may become a primary component.
    Recorded {
        /// Which view.
        view: ViewId,
    },
}

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

impl Envelope {
    /// The encoded message.
    #[must_use]
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::with_capacity(96 + self.bulk_bytes());
        match self {
            Self::Request(request) => put_request(&mut w, request),
            Self::Reply { group, to, giop } => put_reply(&mut w, *group, *to, giop),
            Self::Join { group, attempt, offer } => {
                head(&mut w, JOIN, *group);
                w.u64(attempt.0);
                offer.encode(&mut w);
            }
            Self::Joined { group, attempt } => put_numbers(&mut w, JOINED, *group, [attempt.0]),
            Self::Down { group, attempt, reason } => {
                head(&mut w, DOWN, *group);
                w.u64(attempt.0);
                w.u8(reason.code());
            }
            Self::StateFailed { group, joiner, attempt, reason } => {
                head(&mut w, STATE_FAILED, *group);
                w.node(*joiner);
                w.u64(attempt.0);
                w.u8(reason.code());
            }
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

    /// Bytes of the part whose size varies most.
    fn bulk_bytes(&self) -> usize {
        match self {
            Self::Request(request) => {
                let ft = request.ft.as_ref().map_or(0, |ft| ft.client_id.len());
                request.giop.len() + request.code_sets.as_ref().map_or(0, Bytes::len) + ft
            }
            Self::Reply { giop, .. } => giop.len(),
            Self::Outside { report: OutsideReport::Reply(giop), .. } => giop.len(),
            Self::Checkpoint { piece, .. } => piece.bytes.len(),
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
        if kind == HELLO {
            return Ok(Self::Hello(Hello::decode(&mut r)?));
        }
        if kind == SNAPSHOT {
            return Ok(Self::Snapshot(Snapshot::decode(&mut r)?));
        }
        if kind == RECORDED {
            return Ok(Self::Recorded { view: take_view(&mut r)? });
        }
        let group = GroupId(r.u16("group")?);
        let envelope = match kind {
            REQUEST => Self::Request(take_request(&mut r, group)?),
            REPLY => {
                let node = r.node("gateway")?;
                let incarnation = r.u64("incarnation")?;
                let number = RequestNumber(r.u64("number")?);
                let to = GatewayKey { node, incarnation, number };
                Self::Reply { group, to, giop: r.rest() }
            }
            JOIN => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Join { group, attempt, offer: Offer::decode(&mut r)? }
            }
            JOINED => Self::Joined { group, attempt: Attempt(r.u64("attempt")?) },
            DOWN => {
                let attempt = Attempt(r.u64("attempt")?);
                Self::Down { group, attempt, reason: take_reason(&mut r)? }
            }
            STATE_FAILED => {
                let joiner = r.node("joiner")?;
                let attempt = Attempt(r.u64("attempt")?);
                Self::StateFailed { group, joiner, attempt, reason: take_reason(&mut r)? }
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
    w.u16(group.0);
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

fn put_request(w: &mut Writer, request: &RequestEnvelope) {
    head(w, REQUEST, request.group);
    w.u64(request.number.0);
    request.released.encode(w);
    w.u64(request.stamp);
    let (ft, code_sets) = (request.ft.is_some(), request.code_sets.is_some());
    let nested = request.nested.is_some();
    w.u8(u8::from(ft) | u8::from(code_sets) << 1 | u8::from(nested) << 2);
    if let Some(ft) = &request.ft {
        w.bytes(&ft.client_id);
        w.i32(ft.retention_id);
        w.u64(ft.expiration);
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
        Some(FtRequest { client_id, retention_id, expiration: r.u64("expiration")? })
    } else {
        None
    };
    let code_sets = if flags & 2 != 0 { Some(r.bytes("code sets")?) } else { None };
    let nested = if flags & 4 != 0 { Some(NestedCall::decode(r)?) } else { None };
    let giop = r.rest();
    Ok(RequestEnvelope { group, number, released, stamp, ft, nested, code_sets, giop })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::{Lineage, Record};
    use crate::history::History;
    use crate::ids::{CallKey, ViewId};
    use crate::remains::Remains;
    use crate::style::Style;
    use alloc::vec;

    fn request_sample(group: GroupId) -> RequestEnvelope {
        RequestEnvelope {
            group,
            number: RequestNumber(5),
            released: Released { below: RequestNumber(4), also: vec![RequestNumber(9)] },
            stamp: 99,
            ft: Some(FtRequest {
                client_id: Bytes::from_static(b"client"),
                retention_id: -1,
                expiration: 77,
            }),
            nested: None,
            code_sets: Some(Bytes::from_static(&[0, 1, 2, 3])),
            giop: Bytes::from_static(b"GIOP..."),
        }
    }

    fn samples() -> alloc::vec::Vec<Envelope> {
        let node = NodeId::new(2).unwrap();
        let group = GroupId(7);
        let attempt = Attempt(3);
        let remains = Remains::NotLooked;
        let view = ViewId { seq: 12, representative: node };
        let request = request_sample(group);
        let key = CallKey { caller: GroupId(1), during: History::EMPTY, number: 3 };
        let nested = Some(NestedCall { key, attempt, digest: 12 });
        let to = GatewayKey { node, incarnation: 1, number: RequestNumber(5) };
        let plain = RequestEnvelope { ft: None, code_sets: None, ..request.clone() };
        let nested = RequestEnvelope { nested, ..request.clone() };
        let empty = Some(History::EMPTY);
        let fresh = Offer { claim: empty, kept: None, ahead_of: None, told: 0, remains };
        let unknown =
            Offer { claim: None, kept: empty, ahead_of: empty, told: 9, remains: Remains::Nothing };
        vec![
            Envelope::Request(request),
            Envelope::Request(plain),
            Envelope::Request(nested),
            Envelope::Floor { group, attempt, up_to: 9 },
            Envelope::Outside { group, key, tries: 1, report: OutsideReport::NotBegun },
            Envelope::Outside {
                group,
                key,
                tries: 0,
                report: OutsideReport::Reply(Bytes::from_static(b"reply")),
            },
            Envelope::Reply { group, to, giop: Bytes::from_static(b"reply") },
            Envelope::Join { group, attempt, offer: fresh },
            Envelope::Join { group, attempt, offer: unknown },
            Envelope::Joined { group, attempt },
            Envelope::Down { group, attempt, reason: DownReason::ServerHung },
            Envelope::StateFailed {
                group,
                joiner: node,
                attempt,
                reason: DownReason::StateTooLarge,
            },
            Envelope::Open { group },
            Envelope::Full { group, attempt: Attempt(3), is_full: true },
            Envelope::ReadMark { group, number: 6 },
            Envelope::Checkpoint {
                group,
                attempt,
                number: 4,
                piece: CheckpointPiece { offset: 1, total: 9, bytes: Bytes::from_static(b"xyz") },
            },
            Envelope::Votes {
                group,
                attempt,
                votes: vec![(Subject::decode(1), 2), (Subject::decode(4), 4)],
            },
            Envelope::Hello(Hello {
                view,
                record: Record {
                    formed: Some(Lineage { view, members: vec![(node, 3)] }),
                    base: Some(view),
                    attempts: vec![Lineage { view, members: vec![(node, 4)] }],
                },
                since: 2,
                lineage: Some(Lineage { view, members: vec![(node, 4)] }),
                prefix: 3,
                branch: 2,
            }),
            Envelope::Recorded { view },
        ]
    }

    fn commands() -> impl Iterator<Item = Envelope> {
        let (node, group, attempt) = (NodeId::new(2).unwrap(), GroupId(7), Attempt(4));
        let component = ViewId { seq: 3, representative: node };
        let commands = [
            Command::Promote(node),
            Command::SetStyle(Style::WarmPassive),
            Command::Backup(node),
            Command::Restore { node, attempt, component, wall: 5, digest: 6 },
        ];
        commands.into_iter().map(move |command| Envelope::Command { group, id: 7, command })
    }

    #[test]
    fn decodes_what_it_encoded() {
        for envelope in samples().into_iter().chain(commands()) {
            assert_eq!(Envelope::decode(envelope.encode()), Ok(envelope));
        }
    }

    #[test]
    fn no_request_or_reply_is_wrapped_in_more_than_the_limit() {
        let group = GroupId(u16::MAX);
        let number = RequestNumber(u64::MAX);
        let giop = Bytes::from_static(b"GIOP...");
        let client_id = Bytes::from(vec![b'c'; quorba_giop::limits::CLIENT_ID_BYTES_MAX]);
        let request = RequestEnvelope {
            group,
            number,
            released: Released { below: number, also: vec![number; Released::ALSO_MAX] },
            stamp: u64::MAX,
            ft: Some(FtRequest { client_id, retention_id: -1, expiration: u64::MAX }),
            nested: Some(NestedCall {
                key: CallKey { caller: group, during: History::EMPTY, number: 1 },
                attempt: Attempt(u64::MAX),
                digest: u64::MAX,
            }),
            code_sets: Some(Bytes::from(vec![0; CODE_SETS_BYTES_MAX])),
            giop: giop.clone(),
        };
        let to = GatewayKey { node: NodeId::new(2).unwrap(), incarnation: u64::MAX, number };
        let reply = Envelope::Reply { group, to, giop: giop.clone() };
        for payload in [request.into_payload(), reply.encode()] {
            let wrapping = payload.len() - giop.len();
            assert!(wrapping <= ENVELOPE_BYTES_MAX, "{wrapping}");
        }
    }

    #[test]
    fn every_truncation_of_a_control_message_is_an_error_and_no_panic() {
        for envelope in samples().into_iter().chain(commands()) {
            let whole = envelope.encode();
            for length in 0..whole.len() {
                // A shorter body is legal where the body stands last; the rest must fail cleanly.
                let _ = Envelope::decode(whole.slice(..length));
            }
        }
        assert!(Envelope::decode(Bytes::new()).is_err());
        assert!(Envelope::decode(Bytes::from_static(&[99, 0, 0])).is_err());
    }
}
