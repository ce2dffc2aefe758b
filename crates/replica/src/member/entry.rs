//! How a member comes in, is cut off, and asks again.
//!
//! What it is not: how it is given what it lacks, which is `transfers`. Invariant: it claims only
//! what its server has surely executed, or is surely about to.

use super::{Asks, Consequence, Member, Server, Stage, ask_again_after};
use crate::state::passive::Base;
use crate::state::retention::Retention;
use crate::table::DownReason;
use crate::words::history::History;
use crate::words::ids::Attempt;
use crate::words::style::Duty;
use quorba_base::{Duration, Instant, canary};

/// The member's tries to come in.
#[derive(Default)]
pub(super) struct Tries {
    /// Those that came to nothing, in a row.
    failed: u32,
    /// Those of them in which its server was too slow with what it was to execute again.
    slow: u32,
}

impl Member {
    /// It is in, or has all that it needs for that.
    pub(super) fn has_come_in(&mut self) {
        self.tries = Tries::default();
        self.executor.set_patience(0);
    }

    /// Its server has taken what it was slow with.
    pub(super) fn is_slow_no_more(&mut self) {
        self.tries.slow = 0;
        self.executor.set_patience(0);
    }

    /// Its server was too slow: the next one has more time.
    pub(super) fn was_too_slow(&mut self) {
        self.tries.slow = self.tries.slow.saturating_add(1);
        self.executor.set_patience(self.tries.slow);
    }

    /// Asks to join if there is a server and it is time; the caller submits what is returned.
    /// `agreed`: see [`crate::table::endings::Agreed`].
    pub(crate) fn ask(&mut self, now: Instant, agreed: Option<(History, u64)>) -> Option<Asks> {
        match self.stage {
            Stage::Ready { claim, not_before } if not_before <= now => {
                if self.needs_its_server() || self.backups.is_restoring() {
                    return None;
                }
                if self.asks_for_proof(agreed) {
                    return None;
                }
                // A call of an earlier try may still run: then nobody can say what was executed.
                let is_known = !self.executor.has_abandoned() || canary!(ClaimsWhileBusy);
                // Where there is a log nobody is given requests, and what was recovered from one
                // may lie in front of a server that has executed nothing of it (seed 196 of the
                // simulator's `groups`: the last durable group was deleted meanwhile).
                let is_given = self.logged || !self.recovered || self.base.is_none();
                let claim = claim.filter(|_| is_known && is_given);
                let held_checkpoint = self.held_checkpoint.filter(|_| is_known);
                let says = claim.is_some() || held_checkpoint.is_some();
                let is_slow = self.is_slow_at().is_some_and(|at| at <= now);
                if says && !self.may_ask() && !is_slow && !canary!(ClaimsWhileBusy) {
                    // What was delivered before is being finished.
                    return None;
                }
                self.next_attempt = Attempt(self.next_attempt.0 + 1);
                let attempt = self.next_attempt;
                self.stage = Stage::Asked { attempt, claim };
                let (ends, is_through) = (self.ends_heard(), self.is_through());
                Some(Asks {
                    attempt,
                    claim,
                    ends,
                    is_through,
                    held_checkpoint,
                    disk_state: self.disk_state,
                })
            }
            _ => None,
        }
    }

    /// Whether it may say what its server has executed. That counts as executed which it was given,
    /// whatever becomes of the member; but a server that calls others may need the member to be in
    /// to come to an end.
    pub(super) fn may_ask(&self) -> bool {
        self.calls_others || self.executor.is_idle()
    }

    /// When it asks although its server is still at something: nobody else is in, so that it is the
    /// group's state whatever comes of that, and it may never end.
    pub(super) fn is_slow_at(&self) -> Option<Instant> {
        let at_once = self.executor.is_stalled().then_some(Instant::ZERO);
        at_once.or(self.executor.due_at()).filter(|_| self.nobody_else)
    }

    /// Whether its server has nothing left to do of what the group was delivered.
    fn is_through(&self) -> bool {
        self.executor.is_idle() && self.log.is_empty() && self.base.is_none()
    }

    /// The node fell behind, or the order was lost: whatever the group believed of it is void.
    /// `history` is what had been delivered to the member when that happened.
    pub(crate) fn detach(&mut self, history: History) {
        if self.keeps_recovered(history) {
            return;
        }
        let has_all = self.log.is_empty() && self.base.is_none();
        let claim = match &self.stage {
            Stage::NoServer => return,
            // Whichever is started is fresh.
            _ if self.server != Server::Up => Some(History::EMPTY),
            Stage::Ready { claim, .. } | Stage::Asked { claim, .. } | Stage::Out { claim } => {
                *claim
            }
            Stage::Serving { .. } => Some(history).filter(|_| has_all),
            Stage::Receiving { wanted, .. } => wanted.claim(),
            Stage::Restoring { .. } => None,
        };
        // Whether others saw the same that its server did, it will not hear.
        let is_alone = self.duty == Duty::Lead && self.statements.is_unshared();
        // Unless they are none, and it says so when it is in again.
        let is_known = (self.nobody_else || !self.executor.is_stalled()) && !is_alone;
        let claim = claim.filter(|_| is_known);
        let held_checkpoint = self.held_checkpoint().filter(|_| is_known);
        if (claim.is_some() || held_checkpoint.is_some()) && !canary!(ClaimsWhileBusy) {
            // It was delivered to all alike: once the server has finished it, what it has executed
            // is known, and perhaps all that the group has. What it calls is held until the member
            // is in again.
            self.executor.finish_requests();
            if !canary!(AbandonedCallCounts) {
                self.retention.forget_waiters();
            }
        } else {
            self.executor.abandon();
            self.wants_proof_again();
        }
        self.forget_but_votes(held_checkpoint, claim);
        self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
    }

    /// As [`Self::forget_but`]; but who comes back with what its server has executed is to vote on
    /// what it replied, which others may have decided meanwhile.
    fn forget_but_votes(&mut self, held_checkpoint: Option<History>, claim: Option<History>) {
        let is_of_use = claim.is_some() && self.server == Server::Up;
        let voting = is_of_use.then(|| core::mem::take(&mut self.voting));
        self.forget_but(held_checkpoint);
        if let Some(voting) = voting {
            self.voting = voting;
            self.voting.forget_waiters();
        }
    }

    /// The group does without it, and knows: whatever its server has executed gets old. Returns
    /// whether there is a server to be replaced.
    pub(crate) fn withdraw(&mut self) -> bool {
        self.executor.reset();
        self.left = None;
        let has_server = self.server != Server::Absent;
        if has_server {
            (self.server, self.stage) = (Server::Starting, Stage::NoServer);
        } else {
            self.stage = Stage::Out { claim: Some(History::EMPTY) };
        }
        self.forget();
        has_server
    }

    /// It asked although it is removed: what its disk kept for it gets old.
    pub(crate) fn kept_out(&mut self, attempt: Attempt) {
        if self.is_asking(attempt) {
            self.executor.abandon();
            self.forget();
            self.stage = Stage::Out { claim: None };
        }
    }

    /// Back to asking, after a state transfer that came to nothing.
    pub(crate) fn start_over(&mut self, now: Instant, reason: DownReason) {
        if !matches!(
            self.stage,
            Stage::Receiving { .. } | Stage::Restoring { .. } | Stage::Serving { .. }
        ) {
            return;
        }
        let wait = match reason {
            DownReason::DonorLost
            | DownReason::RequestsTooLong
            | DownReason::UpdatesUnknown
            | DownReason::Restored => Duration::ZERO,
            _ => {
                self.tries.failed = self.tries.failed.saturating_add(1);
                ask_again_after(self.tries.failed)
            }
        };
        let claim = match &self.stage {
            // Its server has seen nothing new.
            Stage::Receiving { wanted, .. } if reason != DownReason::RequestsTooLong => {
                wanted.claim()
            }
            _ => None,
        };
        let is_joining = matches!(self.stage, Stage::Receiving { .. });
        let is_of_use = is_joining && reason != DownReason::UpdatesUnknown;
        let held_checkpoint = self.held_checkpoint().filter(|_| is_of_use);
        if claim.is_none() && held_checkpoint.is_none() {
            self.executor.abandon();
        }
        self.forget_but_votes(held_checkpoint, claim);
        let claim = claim.or((self.server != Server::Up).then_some(History::EMPTY));
        self.stage = Stage::Ready { claim, not_before: now + wait };
    }

    /// Whether it takes part by that try, with a server that nobody has given up.
    pub(crate) fn is_in_by(&self, attempt: Attempt) -> bool {
        self.attempt() == Some(attempt) && self.server == Server::Up
    }

    /// It has asked to come in, and waits for what becomes of that.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.stage, Stage::Asked { .. })
    }

    /// An `Out` member tries again: somebody is there now who has the state.
    pub(crate) fn reconsider(&mut self) {
        if let Stage::Out { claim } = self.stage {
            self.stage = Stage::Ready { claim, not_before: Instant::ZERO };
        }
    }

    /// An operator says that the server of a member that is out has all that the group has.
    pub(crate) fn adopt(&mut self, history: History) {
        if let Stage::Out { .. } = self.stage {
            self.stage = Stage::Ready { claim: Some(history), not_before: Instant::ZERO };
        }
    }

    /// No member is left that could have the group's state. Its server waits for nothing any more.
    pub(crate) fn is_out_in_vain(&mut self) {
        if let Stage::Out { claim } = &mut self.stage
            && self.calls_others
            && !self.executor.is_idle()
        {
            *claim = None;
            self.executor.abandon();
        }
    }

    /// Nobody has more than a server that has executed something else than all that the group was
    /// delivered. If a node started it, another process begins, so that the application knows; one
    /// that somebody else runs goes on, and what was remembered of its calls may be half of it.
    pub(crate) fn has_gap(&mut self, attempt: Attempt, history: History) -> Option<Consequence> {
        let Stage::Asked { claim, .. } = self.stage else { return None };
        let has_gap = claim.is_none_or(|claim| claim != history && claim.count > 0);
        if !self.by_application || !self.is_asking(attempt) || !has_gap {
            return None;
        }
        if self.wants_fresh_servers {
            return Some(Consequence::Lost(Some(attempt), DownReason::NotFresh));
        }
        self.retention.replace_by(Retention::default());
        None
    }

    /// The group lets it in as it is; what was delivered so far is `history`.
    pub(crate) fn admitted(&mut self, attempt: Attempt, history: History) {
        if self.is_asking(attempt) {
            let index = history.count;
            self.stage = Stage::Serving { attempt };
            self.executor.tell_anew();
            self.statements.is_in_as_it_is();
            self.held_checkpoint = None;
            self.delivered = history;
            if !self.recovered {
                // Of what its disk has its server was given nothing yet.
                self.seen = history;
            }
            // What is executed of a log has been voted on as the log wanted.
            if self.recovered {
                self.voting.begin_anew(index);
            } else {
                self.voting.catch_up(index, index);
                self.voting.vote_late();
            }
            self.replays.goes_on_at(index);
            if !self.recovered {
                // It kept one for updates, perhaps, which it was not given.
                self.base = None;
            }
            if index == 0 && (self.server != Server::Up || self.duty == Duty::Keep) {
                self.base = Some(Base::FRESH);
            }
            self.go_on();
        }
    }

    /// `may_change`: somebody may come who has the state.
    pub(crate) fn refused(&mut self, attempt: Attempt, may_change: bool) {
        if let Stage::Asked { attempt: asked, claim } = self.stage
            && asked == attempt
        {
            if self.calls_others && !may_change {
                // Its server would wait for ever.
                self.executor.abandon();
            }
            let claim = claim.filter(|_| !self.executor.has_abandoned());
            self.stage = Stage::Out { claim };
        }
    }

    fn is_asking(&self, attempt: Attempt) -> bool {
        matches!(self.stage, Stage::Asked { attempt: asked, .. } if asked == attempt)
    }
}
