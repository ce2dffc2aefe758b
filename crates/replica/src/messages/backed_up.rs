//! A backup, and why there is none: what an operator gets.
//!
//! What it is not: how it is made; that is `backup`.

use crate::messages::command::CommandRefused;
use crate::words::history::History;
use bytes::Bytes;
use quorba_base::policy::Style;

/// A group's state at one place in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backup {
    /// What the group had been delivered: all of it is in the state.
    pub history: History,
    /// The group's ordered clock, in units of 100 ns since the group began.
    pub time: u64,
    /// What servers were told the time is, TimeT.
    pub wall: u64,
    /// How the members shared the work.
    pub style: Style,
    /// Requests that may be repeated, in it with their replies.
    pub requests: u64,
    /// These.
    pub replies: Bytes,
    /// As the server gave it.
    pub state: Bytes,
}

/// Why there is no backup, or no restore. Nothing has changed but for [`Self::Unknown`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupRefused {
    /// The group as a whole cannot, now or ever.
    Group(CommandRefused),
    /// This node has no member.
    NoMember,
    /// Another one is under way at this node.
    Busy,
    /// The member here is about to come in.
    Joining,
    /// The member here does not execute requests, or its server does not run.
    NotExecuting,
    /// The member's server ended, or its node was cut off, before the state was there.
    Interrupted,
    /// The server raised an exception, or its state is larger than `state_bytes`.
    NoState,
    /// State and replies are together more than is passed on.
    TooLarge,
    /// What was given back is not what a member gave.
    Damaged,
    /// The view changed before a majority was known to hold it.
    Unknown,
}
