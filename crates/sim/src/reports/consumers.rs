//! Consumers of reports: what becomes of them, and what they were given.
//!
//! What they are not: objects that are called by octets; reports come as the courier has them.

use super::fault::Want;
use super::plan::Kind;
use std::collections::BTreeSet;

/// How far a consumer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It comes later.
    Absent,
    /// It has asked, and heard nothing yet.
    Joining,
    /// It is connected, by that number.
    In(u64),
    /// It has asked to be disconnected.
    Leaving,
    /// It is not connected any more.
    Left,
}

/// One consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) kind: Kind,
    /// When that becomes of it.
    pub(crate) fate_us: u64,
    pub(crate) want: Want,
    pub(crate) stage: Stage,
    /// What it was given, in that order.
    pub(crate) got: Vec<String>,
    /// It cannot be reached until then.
    pub(crate) away_until_us: u64,
    /// Since when the member that led has heard of nothing that it took.
    pub(crate) failing_us: Option<u64>,
    /// Calls of it that were made, for their names, and whether one is under way.
    pub(crate) calls: u64,
    pub(crate) is_calling: bool,
}

impl Consumer {
    pub(crate) fn new(kind: Kind, fate_us: u64, want: Want) -> Self {
        Self {
            kind,
            fate_us,
            want,
            stage: Stage::Absent,
            got: Vec::new(),
            away_until_us: 0,
            failing_us: None,
            calls: 0,
            is_calling: false,
        }
    }
}

/// The replication manager, as far as the notifier tells it of faults.
#[derive(Default, Debug)]
pub(crate) struct Manager {
    pub(crate) got: Vec<String>,
    pub(crate) away_until_us: u64,
}

/// Pushes whose taking was told to who made them: the member, its process and its state, the
/// connection, and what it was.
#[derive(Default, Debug)]
pub(crate) struct Taken(BTreeSet<(Life, u64, String)>);

/// A process of a member, with one state.
pub(crate) type Life = (usize, u64, u64);

impl Taken {
    pub(crate) fn note(&mut self, life: Life, connection: u64, what: String) {
        self.0.insert((life, connection, what));
    }

    pub(crate) fn has(&self, life: Life, connection: u64, what: &str) -> bool {
        self.0.contains(&(life, connection, what.to_owned()))
    }
}
