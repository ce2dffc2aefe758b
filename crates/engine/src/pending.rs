//! One request that this gateway took in and has not answered: what it asks, how far it is, and
//! what is known of what became of it.
//!
//! What it is not: who else is there, which is [`crate::book`]'s. Invariants: what is asked is kept
//! as it was read, and the message for the order, of which it is a part, is made once; only what a
//! local server calls under a name can go to a server outside; a read has no message for the order.

use crate::fair::Source;
use crate::gateway::Wait;
use crate::output::ConnectionId;
use crate::window::Entered;
use alloc::boxed::Box;
use bytes::Bytes;
use quorba_base::Instant;
use quorba_giop::{Endian, Version};
use quorba_order::Ticket;
use quorba_replica::{Ack, Attempt, CallKey, RequestEnd, RequestEnvelope};

/// Where a reply goes, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) connection: ConnectionId,
    pub(crate) request_id: u32,
    pub(crate) version: Version,
    pub(crate) endian: Endian,
    /// Its reference to the group is older than the group's.
    pub(crate) is_outdated: bool,
}

/// Who waits for a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiter {
    /// Nobody ever did: it is a oneway.
    Nobody,
    /// A client, or a local server.
    Client(Client),
    /// Nobody any more: the client has cancelled it, or went away.
    Gone,
}

/// What kind of request it is, and with that the ways that it may go.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A read that has not become a request to be ordered.
    Read,
    /// A request of a client, or what an ORB asks by itself.
    Request(Message),
    /// A call of a local server.
    Nested(Message, Named),
}

/// The message for the order, kept so that it can be submitted again.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) payload: Bytes,
    /// It does not wait any longer for somebody to take it: the order decides what becomes of it.
    pub(crate) insists: bool,
    /// In a group without an order: it was given back, and what did not go one way goes the other.
    pub(crate) order_next: bool,
}

/// What a call of a local server has besides.
#[derive(Debug)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) key: CallKey,
    /// It is one to a server outside, which this node makes as soon as it is safe: so many tries
    /// were in doubt.
    pub(crate) is_external: Option<u32>,
}

/// How far a request is, and whether promise 1 holds for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It has not been submitted since the last view change. A read may be with the replica.
    Unsubmitted,
    /// Submitted as this message; not safe yet.
    Submitted(Ticket),
    /// The order has it, as safely as the group asks.
    Safe,
    /// A member of a group without an order has it, or a server outside, past the order.
    Called,
    /// Nothing about it must become safe any more: what came of it was told when it was.
    Settled,
}

/// Whether a majority has it on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disks {
    /// Its group asks for no disk.
    NotAsked,
    /// Not yet, as far as is known.
    Awaited,
    /// Yes.
    Reached,
}

/// How many members must have it before its caller goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Depth {
    /// So many; 0 and 1: whoever replies.
    pub(crate) members: u32,
    /// Its client says so, and knows what it is told if there are not so many.
    pub(crate) is_asked: bool,
}

/// Whether so many members have executed it as its caller wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Executed {
    /// Nobody asks for that.
    NotAsked,
    /// Not yet, as far as is known.
    Awaited,
    /// Yes; or it is known that they will not.
    Known,
}

/// What is known of what became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nothing.
    Open,
    /// A server has replied this.
    Reply(Bytes),
    /// It has ended without a reply of a server. How was decided behind it in the order, so that
    /// this must be safe, too, before anybody is told.
    Ended {
        /// How it has ended.
        how: Ending,
        /// What was ordered since is awaited.
        awaited: bool,
    },
}

/// How a request has ended without a reply of a server.
#[derive(Debug)]
pub(crate) enum Ending {
    /// This reply says so.
    Reply(Bytes),
    /// No member was in to reply.
    Silent(RequestEnd),
}

/// One request.
#[derive(Debug)]
pub(crate) struct Pending {
    /// What is asked, as it goes, or would go, through the order.
    pub(crate) request: RequestEnvelope,
    pub(crate) kind: Kind,
    pub(crate) waiter: Waiter,
    /// Whose it is, whatever becomes of its client. Nothing is charged for local servers.
    pub(crate) source: Source,
    /// The connection on which it came.
    pub(crate) connection: ConnectionId,
    /// Bytes that its address is charged for it.
    pub(crate) charged: usize,
    /// It is in the order, or behind it.
    pub(crate) entered: Option<Entered>,
    pub(crate) stage: Stage,
    pub(crate) depth: Depth,
    /// What that means for its last submission.
    pub(crate) demand: Option<Ack>,
    /// Fewer members were in then than that, and it may have been executed before.
    pub(crate) is_short: bool,
    pub(crate) disks: Disks,
    pub(crate) executed: Executed,
    /// Submissions that may have been executed.
    pub(crate) submissions: u32,
    /// Server processes that have ended while they executed it past the order.
    pub(crate) process_ends: u8,
    pub(crate) outcome: Outcome,
    pub(crate) deadline: Instant,
    /// Until when it may wait for somebody to take it.
    pub(crate) wait_until: Instant,
    /// It is a call that waits until there is something to answer.
    pub(crate) wait: Option<Box<Wait>>,
}

impl Waiter {
    /// Whoever is to be answered.
    pub(crate) const fn client(&self) -> Option<Client> {
        match *self {
            Self::Client(client) => Some(client),
            Self::Nobody | Self::Gone => None,
        }
    }
}

impl Message {
    pub(crate) const fn new(payload: Bytes) -> Self {
        Self { payload, insists: false, order_next: false }
    }
}

impl Disks {
    /// What a request waits for at first, if its group is `durable` or not.
    pub(crate) const fn of(durable: bool) -> Self {
        if durable { Self::Awaited } else { Self::NotAsked }
    }

    /// A majority has it on disk.
    pub(crate) fn reach(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Reached;
        }
    }
}

impl Outcome {
    /// What is to be sent to whoever waits, if it is a reply.
    pub(crate) const fn reply(&self) -> Option<&Bytes> {
        match self {
            Self::Reply(giop) | Self::Ended { how: Ending::Reply(giop), .. } => Some(giop),
            Self::Open | Self::Ended { how: Ending::Silent(_), .. } => None,
        }
    }

    /// The same of one that is needed no more.
    pub(crate) fn into_reply(self) -> Option<Bytes> {
        match self {
            Self::Reply(giop) | Self::Ended { how: Ending::Reply(giop), .. } => Some(giop),
            Self::Open | Self::Ended { how: Ending::Silent(_), .. } => None,
        }
    }

    /// A reply came through the order; `tells_end`: it says how the request has ended. Of several
    /// the first counts; gives whether it is that.
    pub(crate) fn take(&mut self, giop: Bytes, tells_end: bool) -> bool {
        let end = |giop| Self::Ended { how: Ending::Reply(giop), awaited: false };
        let (now, is_first) = match core::mem::replace(self, Self::Open) {
            Self::Open if tells_end => (end(giop), true),
            Self::Open => (Self::Reply(giop), true),
            Self::Reply(first) if tells_end => (end(first), false),
            known => (known, false),
        };
        *self = now;
        is_first
    }

    /// It is known how the request has ended, and what was ordered since is awaited.
    pub(crate) const fn awaits_end(&self) -> bool {
        matches!(self, Self::Ended { awaited: true, .. })
    }
}

impl Pending {
    /// The message for the order; a read has none.
    pub(crate) const fn message(&self) -> Option<&Message> {
        match &self.kind {
            Kind::Read => None,
            Kind::Request(message) | Kind::Nested(message, _) => Some(message),
        }
    }

    pub(crate) const fn message_mut(&mut self) -> Option<&mut Message> {
        match &mut self.kind {
            Kind::Read => None,
            Kind::Request(message) | Kind::Nested(message, _) => Some(message),
        }
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.message().map_or(self.request.giop.len(), |message| message.payload.len())
    }

    pub(crate) const fn is_read(&self) -> bool {
        matches!(self.kind, Kind::Read)
    }

    pub(crate) const fn is_nested(&self) -> bool {
        matches!(self.kind, Kind::Nested(..))
    }

    pub(crate) const fn is_oneway(&self) -> bool {
        matches!(self.waiter, Waiter::Nobody)
    }

    /// The name under which a local server calls.
    pub(crate) const fn key(&self) -> Option<CallKey> {
        match &self.kind {
            Kind::Nested(_, Named { key, .. }) => Some(*key),
            Kind::Read | Kind::Request(_) => None,
        }
    }

    /// What is to be done about the call at a server outside, which is not to be done again.
    pub(crate) fn take_external(&mut self) -> Option<(CallKey, u32)> {
        match &mut self.kind {
            Kind::Nested(_, named) => Some((named.key, named.is_external.take()?)),
            Kind::Read | Kind::Request(_) => None,
        }
    }

    /// The call is one of the same local server, whose member is in by that try now.
    pub(crate) fn by(&mut self, attempt: Attempt) {
        if let Kind::Nested(message, _) = &mut self.kind
            && let Some(mut request) = self.request.clone().by(attempt)
        {
            message.payload = request.payload();
            self.request = request;
        }
    }

    /// Whether it is ordered even if nobody is there to take it, from now on.
    pub(crate) const fn insist(&mut self, does: bool) {
        if let Some(message) = self.message_mut() {
            message.insists = does;
        }
    }

    /// Whether promise 1 holds for it, but for disks.
    pub(crate) const fn is_safe(&self) -> bool {
        matches!(self.stage, Stage::Safe | Stage::Called | Stage::Settled)
    }

    /// Whether all disks have it that must.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.stage == Stage::Settled || self.disks != Disks::Awaited
    }

    /// Whether a reply of a server may leave, as far as that depends on members that have executed
    /// it.
    pub(crate) fn is_deep(&self) -> bool {
        self.executed != Executed::Awaited || !matches!(self.outcome, Outcome::Reply(_))
    }

    /// It is to be submitted once more, and must be as safe as the first time.
    pub(crate) fn begin_again(&mut self) {
        self.stage = Stage::Unsubmitted;
        // Whoever submits it asks for it again.
        self.executed = Executed::NotAsked;
        if self.disks == Disks::Reached {
            self.disks = Disks::Awaited;
        }
    }

    /// It waits for no turn, and is ordered in the end even if nobody is there to take it.
    pub(crate) const fn goes_with_calls(&self) -> bool {
        self.is_nested() || matches!(self.outcome, Outcome::Ended { .. })
    }

    /// Whether the group may have executed it.
    pub(crate) const fn may_be_executed(&self) -> bool {
        self.submissions > 0
    }
}
