//! Staggered execution: a member does not begin what the first one has not come through.
//!
//! Replicas do the same, so what ends the process of one would end all at the same moment. With
//! `execution = "staggered"` one member goes ahead and says how far it is; the others follow. What
//! ends its process has then cost one member, and the next one ahead.
//!
//! What it is not: a promise. It delays, and only for a while: if nothing is heard of a request for
//! some multiple of what one usually takes, it is begun all the same. Invariant: whether and when
//! the gate opens changes nothing of what is executed, nor in which order.

use super::{Call, Executor, Job};
use crate::words::history::History;
use alloc::collections::BTreeSet;
use quorba_base::Instant;

/// See the module's text.
#[derive(Default)]
pub(super) struct Gate {
    /// Somebody else goes ahead, and is through all up to this request.
    through: Option<u64>,
    /// Requests that need not be waited for.
    open: BTreeSet<History>,
    /// What waits at the gate, and since when.
    waiting: Option<(History, Instant)>,
}

impl Gate {
    pub(super) fn holds(&self, job: &Job) -> bool {
        let (Some(through), Some(at)) = (self.through, place(job)) else { return false };
        at.count > through && !self.open.contains(&at)
    }
}

fn place(job: &Job) -> Option<History> {
    match job {
        Job::Execute { call: Call::Request(_, at), .. } => Some(*at),
        _ => None,
    }
}

impl Executor {
    /// Another member goes ahead, and is through all up to that request, counted from the group's
    /// first; `None`: nobody is waited for.
    pub(crate) fn follow(&mut self, through: Option<u64>) {
        self.gate.through = match (self.gate.through, through) {
            (Some(known), Some(through)) => Some(known.max(through)),
            (_, through) => through,
        };
        if through.is_none() {
            self.gate = Gate::default();
        }
    }

    /// This request need not be waited for: others are asked what became of it.
    pub(crate) fn let_through(&mut self, at: History) {
        if self.gate.through.is_some() {
            self.gate.open.insert(at);
        }
    }

    /// All requests up to this one are executed, counted from the group's first, if calls keep
    /// their order. `seen`: those that were given to the executor.
    pub(crate) fn through(&self, seen: u64) -> u64 {
        self.first_unanswered().map_or(seen, |first| first.saturating_sub(1)).min(seen)
    }

    /// The same, however calls keep their order.
    pub(crate) fn done_up_to(&self, seen: u64) -> u64 {
        let first = self.schedule.histories().map(|history| history.count).min();
        first.map_or(seen, |first| first.saturating_sub(1)).min(seen)
    }

    /// When what waits at the gate has waited long enough; not while nothing may start, for then it
    /// waits for something else as well, which has a time of its own.
    pub(super) fn gate_at(&self) -> Option<Instant> {
        let (_, since) = self.gate.waiting.filter(|_| !self.starts_nothing())?;
        Some(since + self.patience(true))
    }

    /// Notes what waits at the gate, and lets through what has waited long enough.
    pub(super) fn mind_gate(&mut self, now: Instant) {
        let Some(through) = self.gate.through else { return };
        self.gate.open.retain(|at| at.count > through);
        if self.gate_at().is_some_and(|at| at <= now)
            && let Some((at, _)) = self.gate.waiting.take()
        {
            self.gate.open.insert(at);
        }
    }

    /// What is at the head of the queue waits, if it does.
    pub(super) fn note_waiting(&mut self, now: Instant) {
        if self.gate.through.is_none() {
            return;
        }
        let next = self.schedule.next().filter(|job| self.gate.holds(job)).and_then(place);
        self.gate.waiting = match (next, self.gate.waiting) {
            (Some(at), Some((of, since))) if at == of => Some((at, since)),
            (Some(at), _) => Some((at, now)),
            (None, _) => None,
        };
    }
}
