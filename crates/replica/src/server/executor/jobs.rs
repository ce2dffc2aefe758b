//! What an executor is given to do with its server, and what came of it.
//!
//! What it is not: the doing, or in which order. Invariant: a job says for itself whose it is.

use crate::calls::reads::ReadId;
use crate::table::endings::{NoReply, Report};
use crate::table::moment::Moment;
use crate::words::history::History;
use crate::words::ids::{Attempt, RequestKey};
use crate::words::reply_summary::ReplySummary;
use bytes::Bytes;
use quorba_base::NodeId;

/// Whose call it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// A request that was delivered, and what the group was delivered with it.
    Request(RequestKey, History),
    /// One that others have executed before this member joined.
    Again(RequestKey),
    /// One that changes nothing.
    Read(ReadId),
}

/// Something for the server to do.
pub(crate) enum Job {
    /// A client's call. `moment`: none for one that has no place in the order; `awaited`: somebody
    /// waits for what this very server answers.
    Execute {
        call: Call,
        moment: Option<Moment>,
        giop: Bytes,
        code_sets: Option<Bytes>,
        awaited: bool,
    },
    /// `get_state` or `get_update`.
    Capture(Capture),
    /// `set_state` or `set_update`.
    Restore { state: Bytes, purpose: Restore },
}

impl Job {
    /// What the server's own state does not depend on.
    pub(super) fn is_for_others(&self) -> bool {
        matches!(self, Self::Capture(_) | Self::Execute { call: Call::Read(_), .. })
    }
}

/// What a state is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    /// A member that joins.
    Join { joiner: NodeId, attempt: Attempt },
    /// An operator, who keeps it.
    Backup {
        /// Which one of this member.
        number: u64,
    },
    /// The checkpoint of this number, with the requests until there; `update`: only what has
    /// changed; `joiner`: it is also for a member that comes back.
    Checkpoint { number: u64, up_to: History, update: bool, joiner: Option<Returning> },
    /// What the node's log can go on from behind this record.
    LogSnapshot { record: u64 },
    /// The comparison of this number, with the other members.
    Compare { number: u64 },
    /// The member itself: whether it is the one that it was.
    Proof,
}

/// A member that joins with the state of an earlier checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Returning {
    pub(crate) joiner: NodeId,
    pub(crate) attempt: Attempt,
    /// The place of that checkpoint.
    pub(crate) from: History,
}

/// Why a state is given to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Restore {
    /// The member joins.
    Join { attempt: Attempt },
    /// It stands by, or takes over without having had a server.
    Base,
    /// The same, with what has changed.
    Update,
}

/// What came of it.
pub(crate) enum Outcome {
    /// The reply and what it says in short, `None` for a oneway.
    Executed { call: Call, reply: Option<Bytes>, reply_summary: Option<ReplySummary> },
    /// The state, or `None` if the server raised an exception.
    Captured { purpose: Capture, state: Option<Bytes> },
    /// Whether the server took the state.
    Restored { purpose: Restore, accepted: bool },
    /// What came of a read beside the request in which the server waits.
    Reentrant(crate::calls::reentrant::Served),
    /// The server has not replied to a request, and lives; it waits for how that ends.
    NoReply { key: RequestKey, at: History, how: NoReply },
    /// It has not replied to a read. `reply`: what its client is told if nobody else is asked.
    ReadEnded { id: ReadId, reply: Option<Bytes> },
    /// It has a request for long, or has replied to one that others did not reply to.
    Late { key: RequestKey, at: History, report: Report },
    /// It has one that others have answered for longer than it may.
    Overdue,
}

impl Outcome {
    /// A call has ended with a reply that nobody has read yet.
    pub(super) fn executed(call: Call, reply: Option<Bytes>) -> Self {
        let reply_summary = reply.as_ref().and_then(ReplySummary::of);
        Self::Executed { call, reply, reply_summary }
    }
}

impl Job {
    /// What a client's connection has negotiated; the state's own calls negotiate nothing.
    pub(super) fn code_sets(&self) -> Option<&Bytes> {
        match self {
            Self::Execute { code_sets, .. } => code_sets.as_ref(),
            Self::Capture(_) | Self::Restore { .. } => None,
        }
    }

    /// Whether it is the request with which the group was delivered this.
    pub(crate) fn is_request(&self, history: History) -> bool {
        matches!(self, Self::Execute { call: Call::Request(_, of), .. } if *of == history)
    }

    /// Whether it is the request with that name.
    pub(super) fn is_named(&self, key: &RequestKey) -> bool {
        matches!(self, Self::Execute { call: Call::Request(of, _), .. } if of == key)
    }

    /// Which request it is, counted from the group's first.
    pub(super) fn request(&self) -> Option<u64> {
        match self {
            Self::Execute { call: Call::Request(_, history), .. } => Some(history.count),
            _ => None,
        }
    }

    /// How much of it is sent.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Execute { giop, .. } => giop.len(),
            Self::Capture(_) => 0,
            Self::Restore { state, .. } => state.len(),
        }
    }
}
