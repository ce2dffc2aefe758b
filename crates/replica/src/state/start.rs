//! What a server can go on from, and what a member was delivered behind it.
//!
//! What it is not: where that is found, which is a log or a log snapshot.

use crate::calls::arrived::Arrived;
use crate::messages::pieces::CheckpointPiece;
use crate::state::passive::{Base, Logged, Source};
use crate::state::retention::Retention;
use crate::words::history::History;
use alloc::vec::Vec;

/// Something that a member was delivered.
pub(crate) enum LoggedDelivery {
    /// A request.
    Request(Arrived),
    /// A piece of the leader's checkpoint.
    Piece(Source, CheckpointPiece),
}

/// What a server can go on from.
pub(crate) struct Start {
    /// Requests of the group until then.
    pub(crate) delivered: History,
    pub(crate) retention: Retention,
    pub(crate) base: Base,
    /// Requests that are not in the base.
    pub(crate) requests: Vec<Logged>,
}
