//! The member as it is at one place of the order, for its node's disk.
//!
//! What it is not: the place; the replica has one for all groups. Invariants: a log snapshot has
//! what the group had been delivered at its place and nothing behind it; no reply is in it that is
//! still being voted on.

use super::{Member, Server, Stage};
use crate::server::executor::{Capture, Job};
use crate::state::log_snapshot;
use crate::state::passive::{Base, Logged};
use crate::state::retention::Frozen;
use crate::words::history::History;
use crate::words::ids::Attempt;
use crate::words::place::Place;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;

/// A log snapshot that is being made.
pub(super) struct PendingSnapshot {
    place: Place,
    history: History,
    /// The requests that are in the state.
    at: History,
    frozen: Frozen,
    updates: Vec<Bytes>,
    requests: Vec<Logged>,
    state: State,
}

/// The state of its server.
enum State {
    /// It was asked for.
    Asked,
    /// `None`: that of a fresh one.
    Known(Option<Bytes>),
}

impl Member {
    /// Whether [`Self::begin_log_snapshot`] can be called. `attempt`: the group knows it as one
    /// that is in.
    pub(crate) fn can_be_captured(&self, attempt: Attempt) -> bool {
        let is_in = matches!(self.stage, Stage::Serving { attempt: a } if a == attempt);
        is_in && !self.replays.is_wanted() && (self.base.is_some() || self.server == Server::Up)
    }

    /// Begins a log snapshot of the member as it is now, in place of one that was not finished.
    pub(crate) fn begin_log_snapshot(&mut self, place: Place, history: History) {
        let mut frozen = self.retention.freeze();
        frozen.forget_replies(|key| self.voting.is_held(key));
        let (at, updates, state) = match &self.base {
            Some(Base { at, state, updates }) => {
                (*at, updates.clone(), State::Known(state.clone()))
            }
            None => (self.seen, Vec::new(), State::Asked),
        };
        if matches!(state, State::Asked) {
            let record = place.record;
            self.executor.push(Job::Capture(Capture::LogSnapshot { record }));
        }
        let requests = if canary!(ImagesLackRequests) { Vec::new() } else { self.log.copies() };
        let pending = PendingSnapshot { place, history, at, frozen, updates, requests, state };
        self.snapshot = Some(Box::new(pending));
    }

    /// Whether its server is being asked for its state for a log snapshot.
    pub(super) fn is_snapshotting(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|pending| matches!(pending.state, State::Asked))
    }

    /// The record of the log snapshot that is being made.
    pub(crate) fn pending_snapshot_record(&self) -> Option<u64> {
        self.snapshot.as_ref().map(|pending| pending.place.record)
    }

    /// The server gave its state, or could not.
    pub(super) fn log_snapshot_taken(&mut self, record: u64, state: Option<Bytes>) {
        // Updates of the server go on from this one now.
        self.checkpoints.chain.break_off();
        let Some(pending) = self.snapshot.as_mut().filter(|s| s.place.record == record) else {
            return;
        };
        match state {
            Some(state) => pending.state = State::Known(Some(state)),
            None => self.snapshot = None,
        }
    }

    /// The log snapshot, once it is complete.
    pub(crate) fn take_log_snapshot(&mut self) -> Option<(Place, [Bytes; 2])> {
        let voting = &self.voting;
        let is_complete = |pending: &mut Box<PendingSnapshot>| {
            matches!(pending.state, State::Known(_)) && voting.is_over(pending.history.count)
        };
        let pending = self.snapshot.take_if(is_complete)?;
        let PendingSnapshot { place, history, at, frozen, updates, requests, state } = *pending;
        let State::Known(state) = state else { unreachable!("looked at above") };
        let mut head = log_snapshot::head(history, (at, state.is_some()), &updates, &requests);
        self.retention.encode(&frozen, &mut head);
        Some((place, [head.finish(), state.unwrap_or_default()]))
    }
}
