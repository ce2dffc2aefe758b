//! Requests that the member's server, or another member's, has not answered.
//!
//! What it is not: what follows from it, which is the group's ([`crate::endings`]). Invariant: what
//! the member says of a request is true when it says it, and it says it once.

use super::{Consequence, Member, Stage};
use crate::endings::{Endings, NoReply, Report};
use crate::envelope::ProcessEnd;
use crate::executor::{Capture, Job, ServerFigures, Waiting};
use crate::history::History;
use crate::ids::{Attempt, RequestKey};
use crate::reads::ReadId;
use crate::table::DownReason;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;
use twox_hash::XxHash3_64;

/// A report of this member, or a digest of its state, for the order.
pub(crate) enum Word {
    Report(Attempt, (RequestKey, History), Report),
    Digest(Attempt, u64, Option<u64>),
}

/// What the member was asked of requests, and what it says.
#[derive(Default)]
pub(super) struct Statements {
    /// Requests that it has been asked about; what it said of them, if it could.
    asked: BTreeMap<RequestKey, (History, Option<Report>)>,
    /// To be ordered.
    reports: VecDeque<((RequestKey, History), Report)>,
    digests: VecDeque<(u64, Option<u64>)>,
    /// Which ends of requests the executor knows of.
    learnt: u64,
    /// It has said that its server has caught up.
    caught_up: bool,
}

impl Statements {
    /// What was asked of a member that is not in any more does not count.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { learnt: self.learnt, ..Self::default() };
    }
}

impl Member {
    /// How requests have ended, as the group knows it.
    pub(crate) fn learn(&mut self, endings: &Endings) {
        if core::mem::replace(&mut self.statements.learnt, endings.count()) != endings.count() {
            self.executor.learn(endings.ends(), endings.skipped());
        }
    }

    /// What the server has of that counts for the group; see [`crate::executor::Executor`].
    pub(crate) fn server_figures(&self) -> ServerFigures {
        self.executor.figures()
    }

    /// `others`: some are in, but for this one; `stateless`: there is no state to have.
    pub(crate) fn mind_others(&mut self, others: bool, stateless: bool) {
        let takes_part = matches!(self.stage, Stage::Serving { .. });
        self.executor.set_place(others && !takes_part, stateless);
    }

    /// The request that the server is at, and since when.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        matches!(self.stage, Stage::Serving { .. }).then(|| self.executor.waiting())?
    }

    /// The request with this number, if the server has it or it waits for it.
    pub(crate) fn find(&self, number: u64) -> Option<History> {
        matches!(self.stage, Stage::Serving { .. }).then(|| self.executor.find(number))?
    }

    /// Why the server has not given its state, if it was asked last, and how often in a row.
    pub(crate) fn capture_refused(&self) -> Option<(u32, &str)> {
        self.executor.capture_refused()
    }

    /// Whether calls that need not be executed here are better executed elsewhere.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.executor.is_late(now)
    }

    /// The group wants to know of these requests whether the server has replied; those that are
    /// `held` must not begin before that is decided.
    pub(crate) fn inquire(&mut self, asked: &[(RequestKey, History, bool)]) {
        if asked.is_empty() && self.statements.asked.is_empty() {
            return;
        }
        let held = asked.iter().filter(|(_, _, held)| *held).map(|(_, at, _)| *at).collect();
        self.executor.hold(held);
        let is_asked = |key: &RequestKey| asked.iter().any(|(of, _, _)| of == key);
        self.statements.asked.retain(|key, _| is_asked(key));
        if !matches!(self.stage, Stage::Serving { .. }) || !self.executes_now() {
            return;
        }
        for (key, at, held) in asked {
            let (of, said) = self.statements.asked.entry(key.clone()).or_insert((*at, None));
            if of != at {
                (*of, *said) = (*at, None);
            }
            if !held {
                self.executor.let_through(*at);
            }
            let report = if !self.executor.has(*at) {
                (at.count <= self.seen.count).then_some(Report::Replied)
            } else if *held && !self.executor.has_begun(*at) {
                Some(Report::NotStarted)
            } else {
                None
            };
            if let Some(report) = report.filter(|report| *said != Some(*report)) {
                *said = Some(report);
                self.statements.reports.push_back(((key.clone(), *at), report));
            }
        }
    }

    /// Another member goes ahead, and is through all up to that request; `None`: nobody does.
    pub(crate) fn follow(&mut self, through: Option<u64>) {
        self.executor.follow(through);
    }

    /// All requests up to this one are executed here, by the server that the group knows.
    pub(crate) fn through(&self) -> Option<u64> {
        let serves = matches!(self.stage, Stage::Serving { .. }) && self.executes_now();
        serves.then(|| self.executor.through(self.seen.count))
    }

    /// Others have answered a request that the server is at.
    pub(crate) fn answered_elsewhere(&mut self, now: Instant, at: History) {
        self.executor.answered_elsewhere(now, at);
    }

    /// Nobody else has, or they have gone.
    pub(crate) fn forgive(&mut self) {
        self.executor.forgive();
    }

    /// The group takes the member for one that is late, or not.
    pub(crate) fn mind_lateness(&mut self, is_late: bool) {
        let has_caught_up = self.executor.calls() == 0 || !self.executor.has_told_late();
        if !is_late || !has_caught_up {
            self.statements.caught_up = false;
        } else if !core::mem::replace(&mut self.statements.caught_up, true) {
            // It is about no request.
            let none = RequestKey::Client {
                client_id: Bytes::new(),
                retention_id: 0,
                binding: crate::Binding::default(),
            };
            self.statements.reports.push_back(((none, self.seen), Report::CaughtUp));
        }
    }

    /// Something to be ordered.
    pub(crate) fn next_word(&mut self) -> Option<Word> {
        let attempt = self.attempt()?;
        if let Some((request, report)) = self.statements.reports.pop_front() {
            return Some(Word::Report(attempt, request, report));
        }
        let (number, digest) = self.statements.digests.pop_front()?;
        Some(Word::Digest(attempt, number, digest))
    }

    /// The server has not replied to a request, and lives.
    pub(super) fn has_no_reply(
        &mut self,
        request: (RequestKey, History),
        how: NoReply,
    ) -> Option<Consequence> {
        if !matches!(self.stage, Stage::Serving { .. }) {
            // It takes no part, so nobody can tell whether the others did the same.
            return self.server_lost(DownReason::ConnectionLost);
        }
        self.statements.reports.push_back((request, Report::NoReply(how)));
        None
    }

    /// The server has had a request for long.
    pub(super) fn has_told_late(&mut self, request: (RequestKey, History), report: Report) {
        if matches!(self.stage, Stage::Serving { .. }) {
            self.statements.reports.push_back((request, report));
        }
    }

    /// The members' states are compared here: behind all that was delivered.
    pub(crate) fn compare_states(&mut self, number: u64) {
        if self.executes_now() && matches!(self.stage, Stage::Serving { .. }) {
            self.executor.push(Job::Capture(Capture::Compare { number }));
        } else {
            self.statements.digests.push_back((number, None));
        }
    }

    pub(super) fn compared(&mut self, number: u64, state: Option<&Bytes>) {
        let digest = state.map(|state| XxHash3_64::oneshot(state));
        self.statements.digests.push_back((number, digest));
    }

    /// The server's process has ended: what it was at.
    pub(crate) fn process_end(&self) -> (ProcessEnd, Vec<ReadId>) {
        if matches!(self.stage, Stage::Serving { .. }) {
            self.executor.process_end(self.seen.count)
        } else {
            Default::default()
        }
    }
}
