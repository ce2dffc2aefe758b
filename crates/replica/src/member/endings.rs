//! Requests that the member's server, or another member's, has not answered.
//!
//! What it is not: what follows from it, which is the group's ([`crate::table::endings`]).
//! Invariant: what the member says of a request is true when it says it, and it says it once.

use super::{Consequence, Member, Stage};
use crate::calls::reads::ReadId;
use crate::messages::envelope::ProcessEnd;
use crate::server::executor::{Capture, Job, ServerFigures, StateRefused, Waiting};
use crate::state::retention::Retention;
use crate::table::DownReason;
use crate::table::endings::{Endings, NoReply, REPLAYED, Report};
use crate::words::history::History;
use crate::words::ids::{Attempt, GatewayKey, RequestKey};
use crate::words::style::Duty;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;
use twox_hash::XxHash3_64;

/// So often the server is asked for the state that replies wait for.
const SHARES_MAX: u8 = 3;

/// A report of this member, or a digest of its state, for the order.
pub(crate) enum Word {
    Report(Attempt, (RequestKey, History), Report),
    Digest(Attempt, u64, Option<u64>),
}

/// What a server had, and what is remembered of its replies, while the next connection to it may be
/// one to another process.
pub(super) struct Left {
    history: History,
    retention: Retention,
    proof: Proof,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    Wanted,
    /// It was asked for a state that has this digest.
    Asked(u64),
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
    /// How many there were when the member was in last.
    heard: u64,
    /// Its server was given requests of a log that have no reply.
    has_replayed: bool,
    /// It has said that its server has caught up.
    caught_up: bool,
    /// The last request without a reply that the leader executed, if no checkpoint has it.
    unshared: Option<u64>,
    /// The checkpoint that is to have it.
    sharing: Option<u64>,
    /// How often the server did not give the state for it.
    not_given: u8,
    /// Replies that were made behind it, and who waits for them.
    withheld: VecDeque<(RequestKey, Vec<GatewayKey>, Option<Bytes>)>,
}

impl Statements {
    /// What was asked of a member that is not in any more does not count.
    pub(super) fn begin_anew(&mut self) {
        let Self { learnt, heard, has_replayed, .. } = *self;
        *self = Self { learnt, heard, has_replayed, ..Self::default() };
    }

    /// The server is given requests of a log that have no reply, or has replied to such requests
    /// where it executed everything again.
    pub(super) fn replayed(&mut self) {
        self.has_replayed = true;
        self.digests.push_back((REPLAYED, None));
    }

    /// The member is in with the state of its server: what it said when it was not does not count
    /// (seed 6000371 of the simulator's `styles`).
    pub(super) fn is_in_as_it_is(&mut self) {
        if self.has_replayed {
            self.digests.push_back((REPLAYED, None));
        }
    }

    /// The server is given another member's state.
    pub(super) fn has_another_state(&mut self) {
        self.has_replayed = false;
    }

    /// What the leader did with that request is nobody else's state.
    pub(super) fn is_alone_behind(&mut self, request: u64) {
        self.unshared = self.unshared.max(Some(request));
    }

    /// The checkpoint of this number is to have it.
    pub(super) fn shares_in(&mut self, number: u64) {
        self.sharing = Some(number);
        self.not_given = 0;
    }

    /// The server has not given the state for the checkpoint of this number. Whether it is asked
    /// once more at once, for replies wait for that.
    fn asks_again(&mut self, number: u64) -> bool {
        if self.sharing != Some(number) || self.unshared.is_none() {
            return false;
        }
        self.not_given += 1;
        self.not_given < SHARES_MAX
    }

    /// All have the leader's state behind that request.
    pub(super) fn shared(&mut self, up_to: u64) {
        self.unshared = self.unshared.filter(|request| *request > up_to);
    }

    /// A reply goes out later.
    pub(super) fn withhold(
        &mut self,
        key: RequestKey,
        waiters: Vec<GatewayKey>,
        reply: Option<Bytes>,
    ) {
        self.withheld.push_back((key, waiters, reply));
    }

    /// Somebody else waits for a reply, if it goes out later.
    pub(super) fn wait(&mut self, key: &RequestKey, gateway: GatewayKey) -> bool {
        let found = self.withheld.iter_mut().find(|(of, _, _)| of == key);
        found.map(|(_, waiters, _)| waiters.push(gateway)).is_some()
    }

    /// Whether what the leader did with a request is nobody else's state.
    pub(super) fn is_unshared(&self) -> bool {
        self.unshared.is_some()
    }
}

impl Member {
    /// How requests have ended, as the group knows it.
    pub(crate) fn learn(&mut self, endings: &Endings) {
        if matches!(self.stage, Stage::Serving { .. }) {
            self.statements.heard = endings.count();
        }
        if core::mem::replace(&mut self.statements.learnt, endings.count()) != endings.count() {
            self.executor.learn(endings.ends(), endings.skipped());
        }
        self.executor.suspect(endings.handed_over());
    }

    /// Ends of requests that the group told the member of. What its disk has, no server has done in
    /// another way.
    pub(super) fn ends_heard(&self) -> u64 {
        if self.recovered { u64::MAX } else { self.statements.heard }
    }

    /// The leader executed a request that has ended without a reply. What its server did is the
    /// group's state, whatever another one would do: its state is taken before it goes on.
    pub(crate) fn leader_had_no_reply(&mut self, at: History) {
        self.statements.unshared = Some(at.count);
        let leads = self.duty == Duty::Lead && matches!(self.stage, Stage::Serving { .. });
        if leads && self.executes_now() && self.checkpoints.audience {
            if self.executor.has_begun(at) {
                let number = self.share_state(self.executor.begun(at));
                self.statements.shares_in(number);
            } else {
                // None of them begins it.
                self.statements.unshared = None;
            }
        } else {
            self.want_checkpoint();
        }
    }

    /// The server has not given the state that was to be in the checkpoint of this number. Replies
    /// wait for it, so the server is asked again at once: it may have been the connection.
    pub(super) fn shares_once_more(&mut self, number: u64, up_to: History) {
        if self.duty == Duty::Lead
            && self.checkpoints.audience
            && self.statements.asks_again(number)
        {
            let number = self.share_state(self.executor.begun(up_to));
            self.statements.sharing = Some(number);
        }
    }

    /// Whether a reply to that request of the group must wait until the others have the state that
    /// it was made in: whoever follows this leader would do otherwise with what had no reply.
    pub(super) fn withholds(&self, count: u64) -> bool {
        let c = &self.checkpoints;
        let is_on_its_way = |number: u64| {
            c.asked.contains(&number) || c.sending.iter().any(|sending| sending.number == number)
        };
        self.duty == Duty::Lead
            && c.audience
            && self.statements.unshared.is_some_and(|request| count > request)
            && self.statements.sharing.is_some_and(is_on_its_way)
    }

    /// A reply that goes out now, and to whom.
    pub(crate) fn next_withheld(&mut self) -> Option<(Vec<GatewayKey>, Option<Bytes>)> {
        if self.statements.withheld.is_empty() || self.withholds(u64::MAX) {
            return None;
        }
        let (_, waiters, reply) = self.statements.withheld.pop_front()?;
        Some((waiters, reply))
    }

    /// Whether the member's state may be another one than that of the member that leads from here
    /// on, or led until now: it has led, or executes what only the leader has executed so far.
    pub(crate) fn may_differ_as(&self, duty: Duty) -> bool {
        let serves = matches!(self.stage, Stage::Serving { .. });
        let is_another = match self.duty {
            Duty::Lead => !duty.executes(),
            Duty::StandBy | Duty::Keep => duty == Duty::Execute,
            Duty::Execute => false,
        };
        serves && is_another && self.statements.is_unshared()
    }

    /// What the server has of that counts for the group; see [`crate::server::executor::Executor`].
    pub(crate) fn server_figures(&self) -> ServerFigures {
        self.executor.figures()
    }

    /// `others`: some are in, but for this one; `stateless`: there is no state to have.
    pub(crate) fn mind_others(&mut self, others: bool, stateless: bool) {
        self.nobody_else = !others;
        // A leader that was relieved is to be given the state of the next one.
        // For who keeps no server it is kept instead (seed 81082 of the simulator's `calls`).
        let has_state_of_next = self.executor.awaits_state() || self.base.is_some();
        let serves = matches!(self.stage, Stage::Serving { .. })
            && (self.duty.executes() || !has_state_of_next);
        // Who says what its server has executed may be in at that word, and be all that the group
        // has (seed 80640 of the simulator's `calls`).
        let asks = match self.stage {
            Stage::Ready { claim: Some(_), .. } => self.calls_others,
            Stage::Asked { claim: Some(_), .. } => true,
            _ => false,
        };
        let takes_part = serves || asks;
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

    /// The state that the server has not given, if it was asked last, and that it has not taken.
    pub(crate) fn states_refused(&self) -> [Option<&StateRefused>; 2] {
        self.executor.states_refused()
    }

    /// Whether calls that need not be executed here are better executed elsewhere.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.executor.is_late(now)
    }

    /// These requests must not begin before something is decided.
    pub(crate) fn hold(&mut self, held: BTreeSet<RequestKey>) {
        self.executor.hold(held);
    }

    /// The group wants to know of these requests whether the server has replied, and of which of
    /// them it must not begin before that is decided.
    pub(crate) fn inquire(&mut self, asked: &[(RequestKey, History, bool)]) {
        if asked.is_empty() && self.statements.asked.is_empty() {
            return;
        }
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
            let (has, has_begun) = self.executor.has(key);
            let report = if !has {
                (at.count <= self.seen.count).then_some(Report::Replied)
            } else if *held && !has_begun {
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
    /// With the try that brought its member in.
    pub(crate) fn through(&self) -> Option<(Attempt, u64)> {
        let Stage::Serving { attempt } = self.stage else { return None };
        self.executes_now().then(|| (attempt, self.executor.through(self.seen.count)))
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

    /// The connections to the server have ended: it may be the one that it was, if it shows that it
    /// has what it had.
    pub(super) fn leaves(&mut self, reason: DownReason) {
        let had = match &self.stage {
            Stage::NoServer => return,
            Stage::Ready { claim: None, .. } => {
                // The question is lost.
                self.wants_proof_again();
                return;
            }
            Stage::Ready { claim, .. } | Stage::Asked { claim, .. } | Stage::Out { claim } => {
                *claim
            }
            Stage::Serving { .. } => Some(self.seen).filter(|_| self.server_has_all()),
            Stage::Receiving { .. } | Stage::Restoring { .. } => None,
        };
        let is_quiet = self.executor.is_idle() && !self.executor.is_stalled();
        let may_stay = reason == DownReason::ConnectionLost && self.is_foreign && is_quiet;
        self.left = had.filter(|_| may_stay).map(|history| {
            let mut retention = core::mem::take(&mut self.retention);
            retention.forget_waiters();
            Box::new(Left { history, retention, proof: Proof::Wanted })
        });
    }

    fn server_has_all(&self) -> bool {
        let has_seen_all = self.executes_now() && self.seen == self.delivered;
        has_seen_all && self.log.is_empty() && self.base.is_none() && self.replays.is_over()
    }

    /// Nobody hears the answer of the server that was asked.
    pub(super) fn wants_proof_again(&mut self) {
        if let Some(left) = &mut self.left {
            left.proof = Proof::Wanted;
        }
    }

    /// The server is asked whether it has the state that the members agreed on last, if that is
    /// the one that it had. Whether its answer is waited for.
    pub(super) fn asks_for_proof(&mut self, agreed: Option<(History, u64)>) -> bool {
        let Some(left) = &mut self.left else { return false };
        if let Proof::Asked(_) = left.proof {
            return true;
        }
        match agreed.filter(|(at, _)| *at == left.history) {
            Some((_, digest)) => {
                left.proof = Proof::Asked(digest);
                self.executor.push(Job::Capture(Capture::Proof));
                true
            }
            None => {
                self.left = None;
                false
            }
        }
    }

    /// Whether the server's word is waited for.
    pub(super) fn waits_for_proof(&self) -> bool {
        self.left.as_ref().is_some_and(|left| matches!(left.proof, Proof::Asked(_)))
    }

    /// The server has given its state, or has not: if it is the one that it had, it goes on there.
    pub(super) fn proves(&mut self, state: Option<&Bytes>) {
        let Some(left) = self.left.take_if(|left| left.proof != Proof::Wanted) else { return };
        let digest = state.map(|state| XxHash3_64::oneshot(state));
        let has_it = digest.is_some_and(|digest| left.proof == Proof::Asked(digest));
        if let Stage::Ready { claim, .. } = &mut self.stage
            && has_it
        {
            *claim = Some(left.history);
            self.retention.replace_by(left.retention);
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
        let has_claim = matches!(
            self.stage,
            Stage::Ready { claim: Some(_), .. } | Stage::Asked { claim: Some(_), .. }
        );
        if has_claim && self.nobody_else {
            // It asks at once, and says so when it is in.
            return None;
        }
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
            // The server's next update goes on from the state that it gives now.
            self.keep_chain_at_state();
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
