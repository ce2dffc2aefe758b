//! Where a group's leader should be: the cost model of a token ring (Zhao, Moser, Melliar-Smith
//! 2002, §2.5), for a token that circulates and for one that rests where it was used last.
//!
//! [`predict`] says what a call costs with each possible leader, and of which parts that is made;
//! [`AutoPlacement`] decides when a leader should move by itself.
//!
//! What it is not: a measurement, or a promise. It knows what the ring and the leader's place
//! add; what is the same wherever the leader is (sockets, ORBs) is not in it, so differences
//! mean more than sums.
//!
//! Invariants: pure; the same load gives the same prediction everywhere; parts add up to the
//! latency.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod auto_placement;
mod model;

use alloc::vec::Vec;
use quorba_base::policy::ReplyPath;
use quorba_base::{Duration, NodeId};

pub use auto_placement::{AutoPlacement, GAIN_PERCENT_MIN, Seen};
pub use model::predict;

/// What the token does when nobody needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// It goes round, as in the paper.
    Circulates,
    /// It stays where it was used last; another node asks for it and is handed it directly.
    Rests,
}

/// The ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The nodes in the order in which the token visits them.
    pub order: Vec<NodeId>,
    /// Time from one node to the next of a token that no message holds up; where it rests, that of
    /// any datagram.
    pub hop: Duration,
    /// What the token does.
    pub token: Token,
    /// How replies go.
    pub reply: ReplyPath,
}

/// The clients of one gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The gateway's node.
    pub gateway: NodeId,
    /// Calls in some time, the same for all gateways.
    pub calls: u64,
    /// From a reply to the client's next request, its own work and what it waits: times that are
    /// equally likely.
    pub think: Vec<Duration>,
}

/// What a call costs beside the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// From the delivery of a request to its server's reply: times that are equally likely.
    pub server: Vec<Duration>,
    /// For how long a request holds up the token on its way round.
    pub request: Duration,
    /// The same for a reply that is ordered.
    pub reply: Duration,
}

/// A part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The gateway waits for the token.
    TokenForRequest,
    /// The request is on its way.
    Request,
    /// The leader's server works.
    Server,
    /// The server is done before a majority has said that it holds the request.
    Majority,
    /// The leader waits for the token.
    TokenForReply,
    /// The reply is on its way.
    Reply,
}

impl Part {
    /// Every part, in the order of a call.
    pub const ALL: [Self; 6] = [
        Self::TokenForRequest,
        Self::Request,
        Self::Server,
        Self::Majority,
        Self::TokenForReply,
        Self::Reply,
    ];

    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::TokenForRequest => "the gateway waits for the token",
            Self::Request => "the request is on its way",
            Self::Server => "the server works",
            Self::Majority => "a majority has to hold the request",
            Self::TokenForReply => "the leader waits for the token",
            Self::Reply => "the reply is on its way",
        }
    }

    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenForRequest => "token_for_request",
            Self::Request => "request",
            Self::Server => "server",
            Self::Majority => "majority",
            Self::TokenForReply => "token_for_reply",
            Self::Reply => "reply",
        }
    }
}

/// What a call costs with a certain leader: the mean over all clients' calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The leader's node.
    pub leader: NodeId,
    /// The sum of the parts.
    pub latency: Duration,
    /// Each part of [`Part::ALL`], in that order.
    pub parts: [Duration; 6],
}

impl Prediction {
    /// The share of a call's time that `other` would save, in percent; 0 if it saves none.
    #[must_use]
    pub fn gain_percent(&self, other: &Self) -> u64 {
        let (here, there) = (self.latency.as_nanos(), other.latency.as_nanos());
        if here == 0 || there >= here {
            return 0;
        }
        u64::try_from((here - there) * 100 / here).unwrap_or(100)
    }
}
