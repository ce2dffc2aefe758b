//! State that the member gives to others, and takes from one.
//!
//! What it is not: what is in it. Invariant: a chunk or a question counts only for the try that it
//! names, and only from the node that is on the other side of it.

use super::{Consequence, Member, Server, Stage, Wanted};
use crate::messages::pieces::{Chunk, Fetch};
use crate::server::executor::{Job, Restore};
use crate::state::catch_up_log;
use crate::state::passive::Base;
use crate::state::retention::Frozen;
use crate::state::transfer::{
    self, ChunkOutcome, Incoming, Outgoing, TRANSFER_BYTES_MAX, TransferProgress,
};
use crate::table::{DownReason, Lacks};
use crate::words::history::History;
use crate::words::ids::Attempt;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId, canary};

/// Something for another member of the group.
pub(crate) enum Sent {
    Chunk(NodeId, Attempt, Chunk),
    Fetch(NodeId, Attempt, Fetch),
}

/// To free fewer is done before the next token comes.
const LONG_STATE_BYTES: usize = 4 << 20;

impl Member {
    /// What it lacks is with `donor`; `joined_at`: what the group has been delivered.
    pub(crate) fn must_receive(
        &mut self,
        attempt: Attempt,
        donor: NodeId,
        lacks: Lacks,
        joined_at: History,
    ) -> Option<Consequence> {
        if let Stage::Asked { attempt: asked, claim } = self.stage
            && asked == attempt
        {
            let is_given = !self.recovered || self.base.is_none();
            if lacks == Lacks::State && self.needs_fresh_server(claim)
                || lacks == Lacks::Requests && !is_given
            {
                return Some(Consequence::Lost(Some(attempt), DownReason::NotFresh));
            }
            let wanted = match (lacks, claim) {
                (Lacks::Requests, Some(behind)) => Wanted::Requests { behind },
                (Lacks::Updates, claim) => Wanted::Updates { claim },
                (Lacks::State | Lacks::Requests, _) => Wanted::State,
            };
            if matches!(wanted, Wanted::State) {
                self.statements.has_another_state();
                // What its server still executes counts no more; a call would be held for ever.
                self.executor.abandon();
            }
            self.log = crate::state::passive::RequestLog::default();
            if !matches!(wanted, Wanted::Updates { .. }) {
                (self.base, self.held_checkpoint) = (None, None);
            }
            self.recovered = false;
            self.disk_state = crate::table::disk_census::DiskState::NotLooked;
            match &wanted {
                Wanted::Requests { behind } => self.voting.catch_up(behind.count, joined_at.count),
                Wanted::State | Wanted::Updates { .. } => self.voting.begin_anew(joined_at.count),
            }
            let incoming = Box::new(Incoming::new(donor, self.transfer));
            let (buffer, bytes) = (alloc::collections::VecDeque::new(), 0);
            self.stage = Stage::Receiving { attempt, joined_at, wanted, incoming, buffer, bytes };
        }
        None
    }

    /// The state for a joiner is here.
    pub(super) fn give(
        &mut self,
        joiner: NodeId,
        attempt: Attempt,
        frozen: &Frozen,
        state: Bytes,
    ) -> Option<Consequence> {
        let head = transfer::head(&self.retention, frozen);
        if (head.len() + state.len()) as u64 > TRANSFER_BYTES_MAX {
            return Some(Consequence::TooMuch { joiner, attempt });
        }
        self.note_long(&state);
        self.outgoing.retain(|(node, _, _)| *node != joiner);
        self.outgoing.push((joiner, attempt, Outgoing::new(head, state, self.transfer)));
        None
    }

    /// The requests that a joiner lacks; nothing is asked of the server for them.
    pub(crate) fn give_requests(&mut self, joiner: NodeId, attempt: Attempt, missed: Bytes) {
        self.outgoing.retain(|(node, _, _)| *node != joiner);
        self.outgoing.push((joiner, attempt, Outgoing::requests(missed, self.transfer)));
    }

    fn outgoing_to(&mut self, joiner: NodeId) -> impl Iterator<Item = &mut Outgoing> {
        self.outgoing
            .iter_mut()
            .filter(move |(node, _, _)| *node == joiner)
            .map(|(_, _, outgoing)| outgoing)
    }

    /// A joiner asks for more.
    pub(crate) fn asked(&mut self, now: Instant, joiner: NodeId, attempt: Attempt, fetch: Fetch) {
        let is_it =
            |(node, a, _): &&mut (NodeId, Attempt, Outgoing)| *node == joiner && *a == attempt;
        if let Some((_, _, outgoing)) = self.outgoing.iter_mut().find(is_it) {
            outgoing.ask(now, fetch);
        }
    }

    /// A part of the state has come from a node.
    pub(crate) fn receive(
        &mut self,
        from: NodeId,
        attempt: Attempt,
        chunk: &Chunk,
    ) -> Option<Consequence> {
        let Stage::Receiving { attempt: mine, incoming, .. } = &mut self.stage else {
            return None;
        };
        let is_its = *mine == attempt && incoming.donor() == from;
        if !is_its && !canary!(TakesAnyChunk) {
            return None;
        }
        let attempt = *mine;
        match incoming.add(chunk) {
            ChunkOutcome::More => None,
            ChunkOutcome::Whole(whole) => self.received_all(whole),
            ChunkOutcome::Failed(reason) => Some(Consequence::Useless(attempt, reason)),
        }
    }

    fn received_all(&mut self, whole: Bytes) -> Option<Consequence> {
        let stage = core::mem::replace(&mut self.stage, Stage::NoServer);
        let Stage::Receiving { attempt, joined_at, wanted, buffer, bytes, .. } = stage else {
            unreachable!("the caller matched");
        };
        self.joined_with = Some((wanted.lacks(), whole.len() as u64));
        self.note_long(&whole);
        if let Wanted::Updates { .. } = wanted {
            return Some(self.updated((attempt, joined_at), whole, buffer));
        }
        if let Wanted::Requests { behind: claim } = wanted {
            let Ok(missed) = catch_up_log::decode(whole, claim, joined_at) else {
                self.stage = Stage::Ready { claim: None, not_before: Instant::ZERO };
                return Some(Consequence::Lost(Some(attempt), DownReason::StateDamaged));
            };
            (self.delivered, self.seen) = (claim, claim);
            if let Some(archive) = &mut self.archive {
                archive.goes_on_at(claim.count);
            }
            self.stage = Stage::Serving { attempt };
            self.voting.vote_late();
            for arrived in missed {
                // Somebody else has answered it.
                let _ = self.admit(arrived);
            }
            self.retention.forget_waiters();
            return Some(self.go_on_with(attempt, buffer));
        }
        self.taken = Some(whole.clone());
        let Ok((retention, state)) = transfer::unpack(whole) else {
            self.taken = None;
            self.stage = Stage::Ready { claim: None, not_before: Instant::ZERO };
            return Some(Consequence::Lost(Some(attempt), DownReason::StateDamaged));
        };
        (self.delivered, self.seen) = (joined_at, joined_at);
        if self.archive.is_some() {
            self.stage = Stage::Restoring { attempt, retention, buffer, bytes };
            return match self.replay(state, joined_at.count) {
                Ok(()) => self.all_replayed(),
                Err(reason) => Some(Consequence::Lost(Some(attempt), reason)),
            };
        }
        if self.server == Server::Up {
            self.stage = Stage::Restoring { attempt, retention, buffer, bytes };
            self.executor.push(Job::Restore { state, purpose: Restore::Join { attempt } });
            return None;
        }
        self.base = Some(Base { at: joined_at, state: Some(state), updates: Vec::new() });
        Some(self.catch_up(attempt, retention, buffer))
    }

    /// The queue to a node is full, or has room again.
    pub(crate) fn set_blocked(&mut self, node: NodeId, is_blocked: bool) {
        self.outgoing_to(node).for_each(|outgoing| outgoing.set_blocked(is_blocked));
    }

    /// Messages pass to and from a node again.
    pub(crate) fn link_is_up(&mut self, node: NodeId) {
        if let Stage::Receiving { incoming, .. } = &mut self.stage
            && incoming.donor() == node
        {
            incoming.link_is_up();
        }
    }

    /// When [`Self::next_sent`] has something.
    pub(super) fn transfer_at(&self) -> Option<Instant> {
        let asks = match &self.stage {
            Stage::Receiving { incoming, .. } => incoming.ask_at(),
            _ => None,
        };
        self.outgoing.iter().filter_map(|(_, _, outgoing)| outgoing.due()).chain(asks).min()
    }

    /// Something to send, if it is due.
    pub(crate) fn next_sent(&mut self, now: Instant) -> Option<Sent> {
        if let Stage::Receiving { attempt, incoming, .. } = &mut self.stage
            && let Some(fetch) = incoming.ask(now)
        {
            return Some(Sent::Fetch(incoming.donor(), *attempt, fetch));
        }
        self.outgoing.iter_mut().find_map(|(joiner, attempt, outgoing)| {
            outgoing.next_chunk(now).map(|chunk| Sent::Chunk(*joiner, *attempt, chunk))
        })
    }

    fn note_long(&mut self, state: &Bytes) {
        if state.len() >= LONG_STATE_BYTES {
            self.long_states.push(state.clone());
        }
    }

    /// States that are long, and in use, each once.
    pub(crate) fn long_states(&mut self) -> impl Iterator<Item = Bytes> + '_ {
        self.long_states.drain(..)
    }

    /// What it was given last, and how many bytes that was.
    pub(crate) fn joined_with(&self) -> Option<(Lacks, u64)> {
        self.joined_with
    }

    /// How far transfers are.
    pub(crate) fn transfers(&self) -> Vec<TransferProgress> {
        let given = self.outgoing.iter().map(|(joiner, _, outgoing)| TransferProgress {
            peer: *joiner,
            gives: true,
            done: outgoing.received(),
            total: Some(outgoing.total()),
        });
        let taken = match &self.stage {
            Stage::Receiving { incoming, .. } => Some(TransferProgress {
                peer: incoming.donor(),
                gives: false,
                done: incoming.received(),
                total: incoming.total(),
            }),
            _ => None,
        };
        given.chain(taken).collect()
    }
}
