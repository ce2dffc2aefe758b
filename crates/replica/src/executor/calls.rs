//! Calls that a server makes while it executes a request.
//!
//! What it is not: where they go. Invariants: the server has one request at a time, so a call
//! that it makes belongs to that one; while a call is open, the server waits for others, and is
//! not hung.

use super::{Call, Executor, Job, Outstanding};
use crate::history::History;
use quorba_base::{Instant, canary};

/// What the server has called in the request that it executes.
#[derive(Default)]
pub(super) struct Calls {
    made: u32,
    open: u32,
    /// The last request in which the server was told what came of a call.
    heard: Option<History>,
}

impl Calls {
    pub(super) fn is_any_open(&self) -> bool {
        self.open > 0
    }

    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// The server begins something, or has ended it without waiting for what it called. A request
    /// may begin again, and its calls with it.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { heard: self.heard, ..Self::default() };
    }
}

pub(super) fn request_of(call: &Outstanding) -> Option<History> {
    match &call.job {
        Job::Execute { call: Call::Request(_, history), .. } if !call.abandoned => Some(*history),
        _ => None,
    }
}

impl Executor {
    /// The server calls: in which request, and which of its calls this is. `None`: in none that
    /// counts.
    pub(crate) fn begin_call(&mut self) -> Option<(History, u32)> {
        if self.straggler.is_some() {
            // It is made in a request that was given up.
            return None;
        }
        if self.reentrant.is_running() && self.calls.is_any_open() {
            // The request waits, so it is the read that calls.
            return None;
        }
        let during = self.schedule.oldest().and_then(request_of)?;
        let is_first = self.calls.made == 0;
        if is_first || !canary!(CallsAreNotCounted) {
            self.calls.made = self.calls.made.saturating_add(1);
        }
        self.calls.open += 1;
        Some((during, self.calls.made))
    }

    /// A call of that request has ended: the server has its time again.
    pub(crate) fn end_call(&mut self, now: Instant, during: History) {
        self.calls.heard = self.calls.heard.max(Some(during));
        if self.schedule.oldest().and_then(request_of) != Some(during) {
            return;
        }
        self.calls.open = self.calls.open.saturating_sub(1);
        // Nobody can wait for a read any more.
        self.reentrant.abandon();
        let deadline = now + self.reply_within;
        if let Some(oldest) = self.schedule.oldest_mut() {
            oldest.deadline = Some(deadline);
        }
    }

    /// Whether the server executes that request, and it counts.
    pub(crate) fn is_at(&self, during: History) -> bool {
        self.schedule.oldest().and_then(request_of) == Some(during)
    }

    /// Whether the server was told what came of a call in a request behind that one.
    pub(crate) fn has_heard_behind(&self, known: History) -> bool {
        self.calls.heard.is_some_and(|heard| heard.count > known.count)
    }

    /// Whether the server was told what came of a call in that request, or in one behind it.
    pub(crate) fn has_heard_in(&self, during: History) -> bool {
        self.calls.heard.is_some_and(|heard| heard.count >= during.count)
    }

    /// The first request that the server has not answered, counted from the group's first.
    pub(crate) fn first_unanswered(&self) -> Option<u64> {
        self.schedule.first_request()
    }
}
