//! Calls that a server makes while it executes a request.
//!
//! What it is not: where they go. Invariants: the server has one request at a time, so a call that
//! it makes belongs to that one; while a call is open, the server waits for others, and is not hung.

use super::{Call, Executor, Job, Outstanding};
use crate::history::History;
use quorba_base::{Instant, canary};

/// What the server has called in the request that it executes.
#[derive(Default)]
pub(super) struct Calls {
    /// The request, and how many calls it has made.
    made: Option<(History, u32)>,
    open: u32,
}

impl Calls {
    pub(super) fn is_any_open(&self) -> bool {
        self.open > 0
    }

    /// The server has answered without waiting for them.
    pub(super) fn none_open(&mut self) {
        self.open = 0;
    }
}

fn request_of(call: &Outstanding) -> Option<History> {
    match &call.job {
        Job::Execute { call: Call::Request(_, history), .. } if !call.abandoned => Some(*history),
        _ => None,
    }
}

impl Executor {
    /// The server calls: in which request, and which of its calls this is. `None`: in none that
    /// counts.
    pub(crate) fn begin_call(&mut self) -> Option<(History, u32)> {
        let during = self.schedule.oldest().and_then(request_of)?;
        let number = match self.calls.made {
            Some((_, number)) if canary!(CallsAreNotCounted) => number,
            Some((of, number)) if of == during => number.saturating_add(1),
            _ => {
                self.calls.open = 0;
                1
            }
        };
        self.calls.made = Some((during, number));
        self.calls.open += 1;
        Some((during, number))
    }

    /// A call of that request has ended: the server has its time again.
    pub(crate) fn end_call(&mut self, now: Instant, during: History) {
        if !matches!(self.calls.made, Some((of, _)) if of == during) {
            return;
        }
        self.calls.open = self.calls.open.saturating_sub(1);
        let deadline = now + self.reply_within;
        if let Some(oldest) = self.schedule.oldest_mut() {
            oldest.deadline = Some(deadline);
        }
    }

    /// The first request that the server has not answered, counted from the group's first.
    pub(crate) fn first_unanswered(&self) -> Option<u64> {
        self.schedule.first_request()
    }
}
