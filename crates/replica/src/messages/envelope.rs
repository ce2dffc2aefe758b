//! The messages that nodes send each other through the order.
//!
//! What it is not: their encoding, which is `codec`, or what they do to a group.

mod codec;
#[cfg(test)]
mod tests;

use crate::calls::nested::NestedCall;
use crate::calls::outside::OutsideReport;
use crate::messages::catalog::CatalogChange;
use crate::messages::command::Command;
use crate::messages::hello::{Hello, Snapshot};
use crate::messages::pieces::CheckpointPiece;
use crate::table::DownReason;
use crate::table::endings::Report;
use crate::table::offer::Offer;
use crate::table::votes::Subject;
use crate::words::binding::Bound;
use crate::words::history::History;
use crate::words::ids::{Attempt, CallKey, GatewayKey, GroupId, RequestKey, RequestNumber, RingId};
use crate::words::released::Released;
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
    /// What is asked under that name, and by whom.
    pub bound: Bound,
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
    /// A server's process has ended at it before it was ordered.
    pub ended_process: bool,
    /// The CodeSets context of the client's connection, if it ever sent one.
    pub code_sets: Option<Bytes>,
    /// The whole GIOP message.
    pub giop: Bytes,
}

/// The message to submit when a gateway has no request to say this with.
#[must_use]
pub fn released_payload(group: GroupId, released: Released) -> Bytes {
    Envelope::Released { group, released }.encode()
}

impl RequestEnvelope {
    /// The message to submit to the order. What is asked is a part of it from now on: both together
    /// take no more room than the message alone.
    #[must_use]
    pub fn payload(&mut self) -> Bytes {
        let payload = codec::encode_request(self);
        self.giop = payload.slice(payload.len() - self.giop.len()..);
        payload
    }

    /// The same of one that is not needed any more.
    #[must_use]
    pub fn into_payload(self) -> Bytes {
        codec::encode_request(&self)
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
                binding: ft.bound.into(),
            },
            None => {
                RequestKey::Gateway(GatewayKey { node: origin, incarnation, number: self.number })
            }
        }
    }
}

/// What a server was at when its process ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ProcessEnd {
    /// Requests that it had and had not answered.
    pub(crate) at: Vec<(RequestKey, History)>,
    /// It had answered all up to this one, counted from the group's first.
    pub(crate) answered: u64,
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
        /// What its server was at, if it was seen to end.
        ended: ProcessEnd,
    },
    /// What the sender's member says of a request that some server did not answer.
    Ending {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in, or is about to.
        attempt: Attempt,
        /// The request, and what the group was delivered with it.
        request: (RequestKey, History),
        /// What it says.
        report: Report,
    },
    /// The digest of the sender's state, behind a request that had no reply.
    StateDigest {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in.
        attempt: Attempt,
        /// Which comparison.
        number: u64,
        /// `None`: it could not be had.
        digest: Option<u64>,
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
    /// The sender's reads that waited for it are to see all before it; see [`crate::calls::reads`].
    ReadMark {
        /// Of this group.
        group: GroupId,
        /// The sender's count.
        number: u64,
    },
    /// The sender's gateway will not ask again for these.
    Released {
        /// Of this group.
        group: GroupId,
        /// Which.
        released: Released,
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
    /// [`crate::calls::nested`].
    Floor {
        /// Of this group.
        group: GroupId,
        /// The try that brought the member in.
        attempt: Attempt,
        /// The request, counted from the group's first.
        up_to: u64,
    },
    /// What came of a call to a server outside; see [`crate::calls::outside`].
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
    /// An operator changes which groups there are, or what one is.
    Define {
        /// The sender's name for it.
        id: u64,
        /// The operator's.
        operation: Bytes,
        /// The change.
        change: CatalogChange,
    },
    /// A part of the catalog that a view is to go on from.
    Catalog {
        /// Which view.
        view: RingId,
        /// Which part of how many.
        part: (u32, u32),
        /// The part.
        bytes: Bytes,
    },
    /// See [`Hello`].
    Hello(Hello),
    /// What stale nodes need to take part.
    Snapshot(Snapshot),
    /// The sender has written down that the view may become a primary component.
    Recorded {
        /// Which view.
        view: RingId,
    },
}
