//! A group as its node's log tells it, until the log has been gone through.
//!
//! What it is not: the table's part, which the ordinary messages do. Invariant: what is collected
//! is a sequence without gaps from some history of the group on to the table's.

use super::{Group, Here};
use crate::envelope::Envelope;
use crate::history::History;
use crate::ids::GroupId;
use crate::member::Arrived;
use crate::output::{Outbox, Output};
use crate::passive::{Base, CheckpointPiece, Source};
use crate::retention::Retention;
use crate::table::{DownReason, GroupTable, MemberState};
use crate::transfer;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;

/// Something that a member was delivered.
pub(crate) enum Past {
    /// A request; the group's history with it.
    Request(History, Arrived),
    /// A piece of the leader's checkpoint.
    Piece(Source, CheckpointPiece),
}

/// See the module's text.
pub(super) struct Replay {
    /// What the group had been delivered before.
    begin: History,
    past: Vec<Past>,
}

/// What is left of a member.
pub(crate) struct Outcome {
    /// Log and saved state are together everything that the group was delivered.
    pub(crate) is_whole: bool,
    /// What the group must be told.
    pub(crate) news: Vec<Bytes>,
}

impl Replay {
    fn from(begin: History) -> Self {
        Self { begin, past: Vec::new() }
    }

    pub(super) fn request(&mut self, history: History, arrived: Arrived) {
        self.past.push(Past::Request(history, arrived));
    }

    pub(super) fn piece(&mut self, source: Source, piece: CheckpointPiece) {
        self.past.push(Past::Piece(source, piece));
    }

    /// What a server can go on from, and what comes behind it: the newest state that fits, or a
    /// fresh server.
    fn split(mut self, states: &[(History, Bytes)]) -> Option<(Retention, Base, Vec<Past>)> {
        let behind = |history: History| {
            if history == self.begin {
                return Some(0);
            }
            let is_it = |past: &Past| matches!(past, Past::Request(at, _) if *at == history);
            self.past.iter().position(is_it).map(|at| at + 1)
        };
        let mut fitting: Vec<_> = states
            .iter()
            .filter_map(|(history, bytes)| {
                let behind = behind(*history)?;
                let (retention, state) = transfer::unpack(bytes.clone()).ok()?;
                let base = Base { index: history.count, state: Some(state), updates: Vec::new() };
                Some((behind, retention, base))
            })
            .collect();
        fitting.sort_by_key(|(behind, _, _)| *behind);
        if let Some((behind, retention, base)) = fitting.pop() {
            return Some((retention, base, self.past.split_off(behind)));
        }
        let is_all = self.begin == History::EMPTY;
        is_all.then(|| (Retention::default(), Base::default(), self.past))
    }
}

impl Group {
    /// Whether a reply needs a majority of disks.
    pub(crate) fn is_durable(&self) -> bool {
        self.config.durable
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
        self.replay = Some(Replay::from(self.table.history));
    }

    /// A component was established: this was the table then.
    pub(crate) fn replay_table(&mut self, mut table: GroupTable) {
        table.fit(&self.config);
        let goes_on = table.history == self.table.history;
        self.table = table;
        self.compare();
        if !goes_on {
            self.begin_replay();
        }
    }

    /// The group began anew in the middle of a component.
    pub(crate) fn replay_reset(&mut self) {
        self.begin_replay();
    }

    /// The log is over: its member goes on from there, if it can.
    pub(crate) fn end_replay(
        &mut self,
        states: &[(History, Bytes)],
        here: Here,
        out: &mut Outbox,
    ) -> Outcome {
        let replay = self.replay.take();
        let waits = !self.table.opened && self.takes_requests();
        self.open_at = waits.then(|| Instant::ZERO + self.config.open_after);
        let mut news = self.forgotten_joiners(here);
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
        let found = replay.split(states).filter(|_| !self.config.foreign);
        let Some((retention, base, past)) = found else {
            let reason = DownReason::NotStarted;
            let down = |attempt| Envelope::Down { group: self.id, attempt, reason }.encode();
            news.extend(attempt.map(down));
            return Outcome { is_whole: false, news };
        };
        let found = (retention, base, past);
        member.resume(attempt.filter(|_| is_in), self.table.history, found);
        member.vote_again(self.table.votes.joined(here.node));
        self.assign(out);
        Outcome { is_whole: true, news }
    }

    /// Members that wait for a state that this node's last boot was to give them.
    fn forgotten_joiners(&self, here: Here) -> Vec<Bytes> {
        let (group, reason) = (self.id, DownReason::DonorLost);
        let failed = |(joiner, state)| match state {
            MemberState::Joining { attempt, donor } if donor == here.node => {
                Some(Envelope::StateFailed { group, joiner, attempt, reason }.encode())
            }
            _ => None,
        };
        self.table.members().filter_map(failed).collect()
    }

    /// The state that the local member was given goes to disk: the log alone does not have it.
    pub(super) fn save_state(&mut self, out: &mut Outbox) {
        let (group, durable): (GroupId, bool) = (self.id, self.config.durable);
        let taken = self.member.as_mut().and_then(crate::member::Member::take_taken);
        let Some(state) = taken.filter(|_| durable) else { return };
        let (place, history) = self.joined_at;
        let parts = [crate::log::head(history), state];
        out.push_back(Output::Save { group, place, parts });
    }
}
