//! A group as its node's log tells it, until the log has been gone through.
//!
//! What it is not: the table's part, which the ordinary messages do. Invariant: what is collected
//! is a sequence without gaps from some history of the group on to the table's.

use super::{Group, NodeContext};
use crate::calls::arrived::Arrived;
use crate::messages::envelope::{Envelope, ProcessEnd};
use crate::messages::pieces::CheckpointPiece;
use crate::output::{LogOutput, Outbox};
use crate::state::log_snapshot::LogSnapshot;
use crate::state::passive::{Base, Source};
use crate::state::retention::Retention;
use crate::state::start::{LoggedDelivery, Start};
use crate::table::disk_census::{DiskState, RecoveryPoint};
use crate::table::{DownReason, GroupTable, MemberState};
use crate::words::history::History;
use crate::words::ids::{GroupId, RingId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;
use quorba_base::policy::Ack;

/// See the module's text.
pub(super) struct Replay {
    /// What the group had been delivered before.
    begin: History,
    past: Vec<LoggedDelivery>,
    /// Stretches of the log that ended where the group went on without this node, or from another
    /// member's disk: what they have may be all that is left.
    former: Vec<Stretch>,
}

/// A part of the log, up to `end`, where the group had this history.
struct Stretch {
    begin: History,
    past: Vec<LoggedDelivery>,
    end: End,
    history: History,
    /// What time it was for servers there, TimeT.
    told: u64,
}

/// A place in the log: a component, and messages applied in it.
type End = (RingId, u64);

/// How much had come when the group had this history.
fn position(past: &[LoggedDelivery], history: History) -> Option<usize> {
    let is_it = |past: &LoggedDelivery| match past {
        LoggedDelivery::Request(at) => at.history == history,
        LoggedDelivery::Piece(..) => false,
    };
    past.iter().position(is_it).map(|at| at + 1)
}

impl Start {
    fn fresh() -> Self {
        let (delivered, retention) = (History::EMPTY, Retention::default());
        Self { delivered, retention, base: Base::FRESH, requests: Vec::new() }
    }
}

/// What a server can go on from, and what comes behind it.
type Found = (Start, Vec<LoggedDelivery>);

/// What is left of a member.
pub(crate) struct Outcome {
    /// Log and saved state are together everything that the group was delivered.
    pub(crate) is_whole: bool,
    /// What the group must be told.
    pub(crate) news: Vec<Bytes>,
}

impl Replay {
    fn from(begin: History) -> Self {
        Self { begin, past: Vec::new(), former: Vec::new() }
    }

    /// The group goes on from `next`, and not from `history`, which it had up to `end`.
    fn turn(&mut self, end: Option<End>, (history, told): (History, u64), next: History) {
        let (begin, past) = (self.begin, core::mem::take(&mut self.past));
        if let Some(end) = end {
            self.former.push(Stretch { begin, past, end, history, told });
        }
        self.begin = next;
        self.find_beginning();
    }

    /// An earlier stretch may have come by where this one begins, which goes on from there then,
    /// because equal histories are the same requests. What came behind that place stays a stretch
    /// that begins there: a log snapshot may be in it.
    fn find_beginning(&mut self) {
        loop {
            let former = self.former.iter().enumerate();
            let longer = former.filter(|(_, stretch)| stretch.begin.count < self.begin.count);
            let came_by =
                longer.filter_map(|(index, stretch)| Some((index, stretch.upto(self.begin)?)));
            let longest = came_by.min_by_key(|(index, _)| self.former[*index].begin.count);
            let Some((index, upto)) = longest else { return };
            let stretch = &mut self.former[index];
            let behind = stretch.past.split_off(upto);
            let mut past = core::mem::replace(&mut stretch.past, behind);
            self.begin = core::mem::replace(&mut stretch.begin, self.begin);
            past.append(&mut self.past);
            self.past = past;
            if stretch.past.is_empty() {
                self.former.remove(index);
            }
        }
    }

    pub(super) fn request(&mut self, arrived: Arrived) {
        self.past.push(LoggedDelivery::Request(arrived));
    }

    pub(super) fn piece(&mut self, source: Source, piece: CheckpointPiece) {
        self.past.push(LoggedDelivery::Piece(source, piece));
    }

    /// The newest stretch that is whole: how far it reaches, and what is found there. `end`: how
    /// far the log does, where the group has `history`, and what time it is.
    fn newest(
        self,
        log_snapshots: &mut Vec<LogSnapshot>,
        end: Option<End>,
        (history, told): (History, u64),
    ) -> Option<(RecoveryPoint, Found)> {
        let Self { begin, past, former } = self;
        let last = end.map(|end| Stretch { begin, past, end, history, told });
        last.into_iter().chain(former.into_iter().rev()).find_map(|stretch| {
            let Stretch { end: (view, prefix), history, told, .. } = stretch;
            let point = RecoveryPoint { view, prefix, history, told, is_intact: true };
            Some((point, stretch.split(log_snapshots)?))
        })
    }
}

impl Stretch {
    /// How much of it had come when the group had this history behind its beginning, and was
    /// delivered another request: checkpoints until then may have the replies of that time.
    fn upto(&self, history: History) -> Option<usize> {
        if history == self.history {
            return Some(self.past.len());
        }
        let behind = position(&self.past, history)?;
        let is_request = |past: &LoggedDelivery| matches!(past, LoggedDelivery::Request(_));
        let next = self.past[behind..].iter().position(is_request);
        Some(next.map_or(self.past.len(), |next| behind + next))
    }

    /// What a server can go on from, and what comes behind it: the newest log snapshot that fits,
    /// or a fresh server.
    fn split(mut self, log_snapshots: &mut Vec<LogSnapshot>) -> Option<Found> {
        let behind = |history: History| {
            if history == self.begin { Some(0) } else { position(&self.past, history) }
        };
        let fitting = log_snapshots.iter().enumerate();
        let fitting =
            fitting.filter_map(|(at, log_snapshot)| Some((behind(log_snapshot.history)?, at)));
        if let Some((behind, at)) = fitting.max()
            && let Ok(start) = log_snapshots.swap_remove(at).unpack()
        {
            return Some((start, self.past.split_off(behind)));
        }
        let is_all = self.begin == History::EMPTY;
        is_all.then(|| (Start::fresh(), self.past))
    }
}

impl Group {
    /// Whether a reply needs a majority of disks.
    pub(crate) fn is_durable(&self) -> bool {
        self.config.durable
    }

    /// Whether a reply needs a majority that holds its request, be it in memory.
    pub(crate) fn awaits_holders(&self) -> bool {
        self.config.ack != Ack::Agreed
    }

    /// Whether nothing but its members' memory is promised to have its state.
    pub(crate) fn lives_in_memory(&self) -> bool {
        crate::words::style::lives_in_memory(
            self.config.durable,
            self.config.style,
            self.config.state_object.is_some(),
        )
    }

    /// All that are configured.
    pub(crate) fn members(&self) -> quorba_base::NodeSet {
        self.config.members
    }

    /// Whether a request that is delivered now is executed.
    pub(crate) fn takes_requests(&self) -> bool {
        !self.table.in_set().is_empty()
    }

    /// Whether the log of this node is of no use to the group without its member's state.
    pub(crate) fn needs_state_on_disk(&self) -> bool {
        self.config.durable && self.member.is_some()
    }

    /// The log is about to be gone through.
    pub(crate) fn begin_replay(&mut self) {
        self.replay = Some(Box::new(Replay::from(self.table.history)));
    }

    /// A component was established: this was the table then. `end`: how far the log was before.
    pub(crate) fn replay_table(&mut self, mut table: GroupTable, end: Option<End>) {
        table.fit(&self.config);
        let (before, next) = (self.table.position(), table.history);
        self.table = table;
        match end {
            Some(_) => self.compare(),
            // What a log snapshot has not executed is voted on as well.
            None => self.compare_behind(0),
        }
        if let Some(replay) = self.replay.as_mut().filter(|_| before.0 != next) {
            replay.turn(end, before, next);
        }
    }

    /// The group, which stood there, went on from something else in the middle of a
    /// component: what a member's disk has, or nothing.
    pub(crate) fn replay_turn(&mut self, before: (History, u64), end: Option<End>) {
        let next = self.table.history;
        if let Some(replay) = self.replay.as_mut().filter(|_| before.0 != next) {
            replay.turn(end, before, next);
        }
    }

    /// The log is over: its member goes on from there, if it can. Beside it are these log
    /// snapshots, and one is lacking or not.
    pub(crate) fn end_replay(
        &mut self,
        (mut log_snapshots, is_lacking): (Vec<LogSnapshot>, bool),
        end: Option<End>,
        here: NodeContext,
        out: &mut Outbox,
    ) -> Outcome {
        let replay = self.replay.take();
        // Nobody looks up for this boot what the last one wanted.
        self.log_looks.outdate();
        let waits = !self.table.opened && self.takes_requests();
        self.open_at = waits.then(|| Instant::ZERO + self.config.open_after);
        let mut news = self.forgotten_joiners(here);
        // Who is in a stateless group has a server: calls that are ordered for a member without one
        // come back, and are ordered again.
        // Whether servers whose states are the application's are to execute it again, it knows.
        let is_to_go_on = !self.is_stateless() && !self.config.by_application;
        let (Some(replay), Some(member)) = (replay, &mut self.member) else {
            return Outcome { is_whole: true, news };
        };
        let attempt = match self.table.state(here.node) {
            Some(
                MemberState::In { attempt }
                | MemberState::Joining { attempt, .. }
                | MemberState::Out { attempt, .. },
            ) => Some(attempt),
            _ => None,
        };
        let is_in = matches!(self.table.state(here.node), Some(MemberState::In { .. }));
        // A server that somebody else runs may have lived on, and seen any of it.
        let found = replay.newest(&mut log_snapshots, end, self.table.position());
        let found = found.filter(|_| !self.config.foreign);
        let history = self.table.history;
        let is_whole = found.as_ref().is_some_and(|(point, _)| point.history == history);
        // A log that ended, with the last durable group, has nothing of what came then.
        let is_whole = is_whole && is_to_go_on && self.config.logged;
        if !is_whole {
            let reason = DownReason::NotStarted;
            let down = |attempt| {
                Envelope::Down { group: self.id, attempt, reason, ended: ProcessEnd::default() }
                    .encode()
            };
            news.extend(attempt.map(down));
        }
        let Some((point, found)) = found.filter(|_| is_whole || self.config.durable) else {
            return Outcome { is_whole: false, news };
        };
        member.resume(attempt.filter(|_| is_in && is_whole), point.history, found);
        // Before its server is given any of it.
        member.learn(&self.table.endings);
        if self.config.durable {
            // What was relied on may be in a stretch that went on from the log snapshot that is
            // lacking.
            let is_intact = is_whole || !is_lacking;
            member.set_disk_state(DiskState::UpTo(RecoveryPoint { is_intact, ..point }));
        }
        member.vote_again(self.table.votes.joined(here.node));
        self.assign(out);
        Outcome { is_whole, news }
    }

    /// Members that wait for a state that this node's last boot was to give them.
    fn forgotten_joiners(&self, here: NodeContext) -> Vec<Bytes> {
        let (group, reason) = (self.id, DownReason::DonorLost);
        let failed = |(joiner, state)| match state {
            MemberState::Joining { attempt, donor, .. } if donor == here.node => {
                Some(Envelope::StateFailed { group, joiner, attempt, reason }.encode())
            }
            _ => None,
        };
        self.table.members().filter_map(failed).collect()
    }

    /// The state that the local member was given goes to disk: the log alone does not have it.
    pub(super) fn save_state(&mut self, out: &mut Outbox) {
        let (group, durable): (GroupId, bool) = (self.id, self.config.durable);
        let taken = self.member.as_deref_mut().and_then(crate::member::Member::take_taken);
        let Some(state) = taken.filter(|_| durable) else { return };
        let (place, history) = self.joined_at;
        let parts = [crate::state::log_snapshot::head_of_given(history), state];
        self.log_snapshots.saved(place.record);
        out.push_back(LogOutput::Save { group, place, parts }.into());
    }
}
