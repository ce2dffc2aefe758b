//! A read that the member's server executes while it waits; see [`crate::reentrant`].
//!
//! Invariant: it is asked at the spot that the read names, under the try that the group knows.

use super::{Member, Stage};
use crate::executor::Position;
use crate::ids::Attempt;
use crate::output::ServerCommand;
use crate::outside::{OutsideFailure, OutsideReport};
use crate::reentrant::{Question, ReadAttempt, Served};
use alloc::vec::Vec;
use quorba_base::{Instant, canary};

impl Member {
    /// Has the server asked as soon as it stands where it must. `Some`: it will not come
    /// there, or does not answer such reads.
    pub(crate) fn serve_reentrant(
        &mut self,
        now: Instant,
        attempt: Attempt,
        question: &Question,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Served> {
        let serves =
            matches!(self.stage, Stage::Serving { attempt: serving } if serving == attempt);
        let read_attempt = question.read_attempt;
        if !serves || !self.has_server() || self.executor.is_asked_reentrant(read_attempt) {
            return None;
        }
        let count = question.spot.during.count;
        let position = match self.executor.position(question.spot) {
            Position::Before if canary!(BesideBeforeItsTurn) => Position::There,
            // It has executed the request, and made fewer calls in it than another one.
            Position::Before if self.executor.is_idle() && self.seen.count >= count => {
                Position::Behind
            }
            position => position,
        };
        match position {
            Position::Before => None,
            Position::There => self.executor.ask_reentrant(now, question, out),
            Position::Behind => {
                let report = OutsideReport::Failed(OutsideFailure::Doubt);
                Some(Served { read_attempt, report })
            }
        }
    }

    /// Nobody waits for what the server is asked beside, unless it is that.
    pub(crate) fn keep_reentrant(&mut self, read_attempt: Option<ReadAttempt>) {
        self.executor.keep_reentrant(read_attempt);
    }

    /// The server had its time.
    pub(crate) fn reentrant_overdue(
        &mut self,
        now: Instant,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Served> {
        self.executor.reentrant_overdue(now, out)
    }
}
