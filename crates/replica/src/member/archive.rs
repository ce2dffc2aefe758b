//! Servers that have no state to give: a member that joins executes everything again.
//!
//! What it is not: the way of the requests to the joiner; they go like a state. Invariant: only a
//! fresh server is given an archive, and the member is in when it has executed all of it.

use super::{Consequence, Member, Recipient, Server, Stage};
use crate::server::executor::{Call, Job};
use crate::state::archive::{Archive, Archived};
use crate::table::DownReason;
use crate::words::history::History;
use crate::words::ids::Attempt;
use bytes::Bytes;
use quorba_base::NodeId;

/// What the server has seen, if joiners execute that again instead of taking a state.
pub(super) struct Replays {
    archive: Option<Archive>,
    /// Requests that this member's server is still to execute again.
    remaining: usize,
}

impl Replays {
    /// `bytes_max`: of the requests that are kept; `None` if joiners take a state.
    pub(super) fn new(bytes_max: Option<usize>) -> Self {
        Self { archive: bytes_max.map(Archive::new), remaining: 0 }
    }

    /// Whether joiners execute everything again.
    pub(super) const fn is_wanted(&self) -> bool {
        self.archive.is_some()
    }

    /// Nothing is left that this member's server is still to execute again.
    pub(super) const fn is_over(&self) -> bool {
        self.remaining == 0
    }

    /// The server has executed nothing.
    pub(super) fn begin_anew(&mut self) {
        if let Some(archive) = &mut self.archive {
            archive.begin_anew();
        }
    }

    /// The server has seen so many requests.
    pub(super) fn goes_on_at(&mut self, index: u64) {
        if let Some(archive) = &mut self.archive {
            archive.goes_on_at(index);
        }
    }

    /// The archive that grows with each request that is delivered.
    pub(super) const fn archive(&mut self) -> Option<&mut Archive> {
        self.archive.as_mut()
    }
}

impl Member {
    /// The joiner gets all requests. What was delivered before is in them, executed or not, so
    /// nothing has to be waited for.
    pub(super) fn give_archive(&mut self, joiner: NodeId, attempt: Attempt) -> Option<Consequence> {
        let Some(requests) = self.replays.archive.as_ref().and_then(Archive::encode) else {
            return Some(Consequence::CannotReplay { joiner, attempt });
        };
        let frozen = self.freeze();
        self.give_when_settled(Recipient::Joiner(joiner, attempt, frozen), requests)
    }

    /// A request was given up: who joins does not execute it.
    pub(crate) fn gives_up(&mut self, at: History) {
        if let Some(archive) = self.replays.archive() {
            archive.leave_out(at.count);
        }
    }

    /// There is no way to bring it up to date.
    pub(crate) fn shut_out(&mut self) {
        if matches!(self.stage, Stage::Receiving { .. } | Stage::Restoring { .. }) {
            self.executor.abandon();
            self.stage = Stage::Out { claim: None };
        }
    }

    /// A replay is for a server that runs, and so is what comes without a state; it has nothing to
    /// ask for before.
    pub(super) fn needs_its_server(&self) -> bool {
        (self.replays.is_wanted() || self.by_application) && self.server != Server::Up
    }

    /// Whether the server has seen something and would see it again, or would go on with a gap
    /// that nobody could tell.
    pub(super) fn needs_fresh_server(&self, claim: Option<History>) -> bool {
        self.wants_fresh_servers && claim != Some(History::EMPTY)
    }

    /// All requests are here; `index` is the number of the last one. Gives them to the server.
    pub(super) fn replay(&mut self, bytes: Bytes, index: u64) -> Result<(), DownReason> {
        let archive = self.replays.archive.as_mut().expect("the group recovers so");
        *archive = archive.decode(bytes, index).map_err(|_| DownReason::StateDamaged)?;
        // A bound that differs from the donor's.
        let requests = archive.requests().ok_or(DownReason::TooMuchToReplay)?;
        self.replays.remaining = requests.len();
        for Archived { key, moment, giop, code_sets, .. } in requests {
            let (call, moment) = (Call::Again(key.clone()), Some(*moment));
            let (giop, code_sets) = (giop.clone(), code_sets.clone());
            self.executor.push(Job::Execute { call, moment, giop, code_sets, awaited: false });
        }
        Ok(())
    }

    /// One of them was executed. The donor may have given its archive before it had the reply.
    pub(super) fn replayed(&mut self, key: &crate::words::ids::RequestKey, reply: Option<Bytes>) {
        self.replays.remaining = self.replays.remaining.saturating_sub(1);
        if let Stage::Restoring { retention, .. } = &mut self.stage {
            retention.fill_in(key, reply);
        }
    }

    /// Goes on when all of them are executed.
    pub(super) fn all_replayed(&mut self) -> Option<Consequence> {
        let Stage::Restoring { attempt, .. } = self.stage else { return None };
        if !self.replays.is_wanted() || !self.replays.is_over() {
            return None;
        }
        if self.executor.has_replied_to_ended() {
            self.statements.replayed();
        }
        self.restored(attempt, true)
    }
}
