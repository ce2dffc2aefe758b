//! Virtual TCP: byte streams between clients, gateways and servers.
//!
//! What it is not: it has no congestion and loses nothing; a stream is in order until it ends or
//! breaks. Invariant: what arrives is a prefix of what was sent, in any pieces.

use bytes::Bytes;
use quorba_base::Instant;
use quorba_engine::ExternalId;
use quorba_engine::replica::{ChannelId, GroupId};
use std::collections::VecDeque;

/// Names a stream for the whole run; a gateway sees it as its connection's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StreamId(pub(crate) u64);

/// Who connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// A client by its index.
    Client(usize),
    /// Somebody who only sends rubbish.
    Stranger,
    /// A server that calls another group, at its own node.
    Server { server: usize, group: GroupId },
    /// A node to a server outside.
    ExternalCalls { node: usize, boot: u64, connection: ExternalId },
    /// A node to its server.
    Node { node: usize, boot: u64, group: GroupId, channel: ChannelId },
}

/// Who was connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    /// A group's gateway; `boot` is that of the node which accepted.
    Gateway { node: usize, boot: Option<u64>, group: GroupId },
    /// A server by its index.
    Server(usize),
    /// A server outside.
    Outsider(usize),
}

/// One end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Caller,
    Callee,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Caller => Self::Callee,
            Self::Callee => Self::Caller,
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Caller => 0,
            Self::Callee => 1,
        }
    }
}

/// What travels.
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    /// To the callee: may I?
    Open,
    /// To the caller: yes.
    Accepted,
    /// To the caller: nobody listens.
    Refused,
    /// Some bytes.
    Bytes(Bytes),
    /// No more bytes will come.
    End,
    /// The stream is broken.
    Reset,
}

impl Segment {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Bytes(_) => "bytes",
            Self::End => "end",
            Self::Reset => "reset",
        }
    }
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) caller: Caller,
    pub(crate) callee: Callee,
    /// When the last thing sent to each side arrives.
    arrives: [Instant; 2],
    /// The side does not want to hear any more.
    deaf: [bool; 2],
    /// The caller has ended within a message, and says no more, though it may not know it yet.
    pub(crate) is_over: bool,
    /// Bytes come in small pieces.
    pub(crate) chopped: bool,
    /// The gateway does not read now; what has come meanwhile.
    pub(crate) paused: bool,
    /// It is about to read on.
    pub(crate) resuming: bool,
    pub(crate) held: VecDeque<Segment>,
}

impl Stream {
    pub(crate) fn new(caller: Caller, callee: Callee, chopped: bool) -> Self {
        Self {
            caller,
            callee,
            arrives: [Instant::ZERO; 2],
            deaf: [false; 2],
            is_over: false,
            chopped,
            paused: false,
            resuming: false,
            held: VecDeque::new(),
        }
    }

    /// When something sent to `side` now, which would take until `at`, arrives: behind the rest.
    pub(crate) fn in_order(&mut self, side: Side, at: Instant) -> Instant {
        let slot = &mut self.arrives[side.index()];
        *slot = at.max(Instant::from_nanos(slot.as_nanos() + 1));
        *slot
    }

    pub(crate) fn hear_no_more(&mut self, side: Side) {
        self.deaf[side.index()] = true;
    }

    pub(crate) fn is_deaf(&self, side: Side) -> bool {
        self.deaf[side.index()]
    }
}
