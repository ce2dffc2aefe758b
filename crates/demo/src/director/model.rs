//! What the demo shows: plain values, filled by the director and drawn by [`super::picture`] or
//! printed by [`super::lines`].
//!
//! What it is not: state that anything decides by. The director could run without it.
//!
//! Invariant: no list grows without bound.

use std::collections::VecDeque;
use std::time::Duration;

use quorba_admin::status::MemberState;

use crate::load::{Counts, Latency, Slot};

/// Events that are kept for the picture.
const EVENTS_MAX: usize = 50;
/// Slots that are kept for the curves.
const SLOTS_MAX: usize = 240;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// Since the load began.
    pub(super) elapsed: Duration,
    /// How long the load is to run, if that is known.
    pub(super) run_for: Option<Duration>,
    pub(super) nodes: Vec<NodeModel>,
    /// Number of the ring's view, as the nodes that answer see it.
    pub(super) view: u64,
    /// Whether every member is in, everywhere.
    pub(super) whole: bool,
    pub(super) kills: u64,
    pub(super) counts: Counts,
    pub(super) latency: Latency,
    pub(super) longest_gap: Duration,
    /// The newest is last.
    pub(super) slots: VecDeque<Slot>,
    /// The newest is last.
    pub(super) events: VecDeque<Event>,
    /// The node that keys act on; none: whichever has its turn.
    pub(super) selected: Option<usize>,
    /// Whether kills happen by themselves.
    pub(super) chaos: bool,
    /// Whether keys and columns are explained.
    pub(super) shows_help: bool,
    /// Whether all nodes may be killed at once.
    pub(super) durable: bool,
}

/// One node, with its replica.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeModel {
    pub(super) name: String,
    pub(super) process: Process,
    /// The member as the others see it; none: nobody says.
    pub(super) member: Option<MemberState>,
    pub(super) executed: u64,
    pub(super) connections: u64,
    pub(super) server_restarts: u64,
    pub(super) gateway: String,
}

/// How a node's process stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Process {
    /// It was started and has not answered yet.
    #[default]
    Starting,
    /// It answers.
    Up,
    /// It runs and does not answer.
    Silent,
    /// It is stopped by SIGSTOP.
    Paused,
    /// It is not there.
    Down,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Since the load began.
    pub(super) at: Duration,
    pub(super) kind: EventKind,
    pub(super) text: String,
}

/// How an event is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// Something was broken on purpose.
    Fault,
    /// Something is well again.
    Repair,
    /// Something is wrong that nobody asked for.
    Alarm,
    /// Anything else.
    Note,
}

impl Model {
    pub(super) fn event(&mut self, kind: EventKind, text: impl Into<String>) -> &Event {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(Event { at: self.elapsed, kind, text: text.into() });
        self.events.back().expect("one was just put there")
    }

    pub(super) fn slot(&mut self, slot: Slot) {
        if self.slots.len() == SLOTS_MAX {
            self.slots.pop_front();
        }
        self.slots.push_back(slot);
    }
}

impl NodeModel {
    /// What the replica has executed. While it is not in, its server is new and has the state of
    /// nothing yet, which is no loss.
    pub(super) fn executed(&self) -> String {
        match self.member {
            Some(MemberState::In) => self.executed.to_string(),
            _ => "-".to_owned(),
        }
    }

    /// The replica's state in one word.
    pub(super) fn replica(&self) -> &'static str {
        match self.member {
            Some(state) => state.as_str(),
            None => "?",
        }
    }
}

impl Process {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Silent => "silent",
            Self::Paused => "paused",
            Self::Down => "killed",
        }
    }
}
