//! A member that goes on from its node's log.
//!
//! What it is not: the log. Invariant: such a member is one whose server is still to be given
//! everything, so it has a base and a log, and nothing is answered for what it executes of it:
//! who asked is gone, or asks again.

use super::{Member, Server, Stage};
use crate::state::start::{LoggedDelivery, Start};
use crate::table::disk_census::DiskState;
use crate::words::history::History;
use crate::words::ids::Attempt;
use crate::words::style::Duty;
use alloc::boxed::Box;
use alloc::vec::Vec;

use quorba_base::Instant;

impl Member {
    /// Takes over what the group was delivered, `history` of it in all. `attempt`: the group knows
    /// the member as one that is in.
    pub(crate) fn resume(
        &mut self,
        attempt: Option<Attempt>,
        history: History,
        (start, past): (Start, Vec<LoggedDelivery>),
    ) {
        let Start { delivered, retention, base, requests } = start;
        (self.delivered, self.seen) = (delivered, base.at);
        self.replays.begin_anew();
        self.replays.goes_on_at(base.at.count);
        self.retention.replace_by(retention);
        (self.base, self.recovered) = (Some(base), true);
        // Whoever leads, what it found out counts, rather than what would come of it now.
        self.duty = Duty::Keep;
        self.stage = Stage::Serving { attempt: attempt.unwrap_or(self.next_attempt) };
        for request in requests {
            self.log.push(request);
        }
        for past in past {
            match past {
                LoggedDelivery::Request(arrived) => drop(self.admit(arrived)),
                LoggedDelivery::Piece(source, piece) => self.take_checkpoint(source, &piece, None),
            }
        }
        self.retention.forget_waiters();
        self.log.spare();
        if attempt.is_none() {
            self.stage = Stage::Ready { claim: Some(history), not_before: Instant::ZERO };
        }
    }

    /// What is executed again is voted on again, as far as the group asks this member, which joined
    /// behind `joined`, and but for windows of which a part is in the base: the last votes may not
    /// have got their place, and nobody else may be left to cast any.
    pub(crate) fn vote_again(&mut self, joined: u64) {
        let index = self.base.as_ref().map_or(0, |base| base.at.count);
        self.voting.resume(index.max(joined));
        for index in self.log.requests() {
            self.voting.admitted(index);
        }
    }

    /// The node fell behind before the server was given anything: what was recovered is still what
    /// it was, and may be all that is left of it.
    pub(super) fn keeps_recovered(&mut self, history: History) -> bool {
        if !self.recovered || self.base.is_none() {
            return false;
        }
        let claim = match &self.stage {
            Stage::Serving { .. } => Some(history),
            Stage::Ready { claim, .. } | Stage::Asked { claim, .. } | Stage::Out { claim } => {
                *claim
            }
            Stage::NoServer | Stage::Receiving { .. } | Stage::Restoring { .. } => return false,
        };
        self.giving.forget_all();
        self.log.take_captures();
        self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
        true
    }

    /// What the disk has is known now.
    pub(crate) fn set_disk_state(&mut self, disk_state: DiskState) {
        self.disk_state = disk_state;
    }

    /// The group was delivered more than what was found there.
    pub(crate) fn outdate_disk_state(&mut self) {
        self.disk_state = DiskState::NotLooked;
    }

    pub(crate) fn has_not_looked(&self) -> bool {
        self.disk_state == DiskState::NotLooked
    }

    pub(crate) fn is_out(&self) -> bool {
        matches!(self.stage, Stage::Out { .. })
    }

    /// The group goes on from this member, though it was out. False if it has nothing any more.
    pub(crate) fn revived(&mut self, attempt: Attempt, history: History) -> bool {
        let Stage::Out { claim } = self.stage else { return false };
        if !self.recovered || self.next_attempt != attempt {
            return false;
        }
        self.stage = Stage::Asked { attempt, claim };
        self.admitted(attempt, history);
        true
    }

    /// What the disk had is for this member, whose group has nobody else: `found` is one as after a
    /// start. True if its server is to be a new one.
    pub(crate) fn take_over(&mut self, found: Option<Box<Self>>) -> bool {
        let Stage::Out { claim } = self.stage else { return false };
        let found = found.filter(|found| found.recovered && found.base.is_some());
        let Some(found) = found else {
            self.disk_state = DiskState::Nothing;
            self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
            return false;
        };
        let (found, is_idle) = (*found, self.executor.is_idle());
        let is_fresh = claim == Some(History::EMPTY) && is_idle;
        self.forget();
        self.retention.replace_by(found.retention);
        (self.log, self.base) = (found.log, found.base);
        (self.delivered, self.seen) = (found.delivered, found.seen);
        (self.recovered, self.disk_state) = (true, found.disk_state);
        let claim = match found.disk_state {
            DiskState::UpTo(point) => Some(point.history),
            DiskState::NotLooked | DiskState::Nothing => None,
        };
        self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
        if self.server != Server::Up || is_fresh {
            return false;
        }
        self.server = Server::Starting;
        self.executor.reset();
        true
    }
}
