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
use crate::state::transfer::{self, ChunkOutcome, Incoming, TRANSFER_BYTES_MAX, TransferProgress};
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

/// The states that came from other members.
#[derive(Default)]
pub(super) struct ReceivedStates {
    /// The one that came last, as it came, until it is on disk.
    last: Option<Bytes>,
    /// States that are long, and in use.
    long: Vec<Bytes>,
    /// What the member was given last, and how many bytes that was.
    joined_with: Option<(Lacks, u64)>,
}

impl ReceivedStates {
    /// This one goes to the disk, or none does.
    pub(super) fn keep(&mut self, whole: Option<Bytes>) {
        self.last = whole;
    }

    fn note_long(&mut self, state: &Bytes) {
        if state.len() >= LONG_STATE_BYTES {
            self.long.push(state.clone());
        }
    }
}

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
                (Lacks::State | Lacks::Requests, claim) => {
                    Wanted::State { claim: claim.filter(|_| self.wants_fresh_servers) }
                }
            };
            if matches!(wanted, Wanted::State { .. }) {
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
                Wanted::State { .. } | Wanted::Updates { .. } => {
                    self.voting.begin_anew(joined_at.count);
                }
            }
            let incoming = Box::new(Incoming::new(donor, self.giving.rule()));
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
        self.states.note_long(&state);
        self.giving.send(joiner, attempt, (head, state));
        None
    }

    /// The requests that a joiner lacks; nothing is asked of the server for them.
    pub(crate) fn give_requests(&mut self, joiner: NodeId, attempt: Attempt, missed: Bytes) {
        self.giving.send_requests(joiner, attempt, missed);
    }

    /// A joiner asks for more.
    pub(crate) fn asked(&mut self, now: Instant, joiner: NodeId, attempt: Attempt, fetch: Fetch) {
        if let Some(outgoing) = self.giving.outgoing(joiner, attempt) {
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
        self.states.joined_with = Some((wanted.lacks(), whole.len() as u64));
        self.states.note_long(&whole);
        if let Wanted::Updates { .. } = wanted {
            return Some(self.updated((attempt, joined_at), whole, buffer));
        }
        if let Wanted::Requests { behind: claim } = wanted {
            let Ok(missed) = catch_up_log::decode(whole, claim, joined_at) else {
                self.stage = Stage::Ready { claim: None, not_before: Instant::ZERO };
                return Some(Consequence::Lost(Some(attempt), DownReason::StateDamaged));
            };
            (self.delivered, self.seen) = (claim, claim);
            self.replays.goes_on_at(claim.count);
            self.stage = Stage::Serving { attempt };
            // What its server still executes may be late, and of what was told of that the others
            // know nothing any more (seed 70113 of the simulator's `calls`).
            self.executor.tell_anew();
            self.voting.vote_late();
            for arrived in missed {
                // Somebody else has answered it.
                let _ = self.admit(arrived);
            }
            self.retention.forget_waiters();
            return Some(self.go_on_with(attempt, buffer));
        }
        self.states.keep(Some(whole.clone()));
        let Ok((retention, state)) = transfer::unpack(whole) else {
            self.states.keep(None);
            self.stage = Stage::Ready { claim: None, not_before: Instant::ZERO };
            return Some(Consequence::Lost(Some(attempt), DownReason::StateDamaged));
        };
        (self.delivered, self.seen) = (joined_at, joined_at);
        if self.replays.is_wanted() {
            self.stage = Stage::Restoring { attempt, retention, buffer, bytes };
            return match self.replay(state, joined_at.count) {
                Ok(()) => self.all_replayed(),
                Err(reason) => Some(Consequence::Lost(Some(attempt), reason)),
            };
        }
        if self.by_application {
            return Some(self.catch_up(attempt, retention, buffer));
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
        self.giving.set_blocked(node, is_blocked);
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
        self.giving.due().into_iter().chain(asks).min()
    }

    /// Something to send, if it is due.
    pub(crate) fn next_sent(&mut self, now: Instant) -> Option<Sent> {
        if let Stage::Receiving { attempt, incoming, .. } = &mut self.stage
            && let Some(fetch) = incoming.ask(now)
        {
            return Some(Sent::Fetch(incoming.donor(), *attempt, fetch));
        }
        let (joiner, attempt, chunk) = self.giving.next_chunk(now)?;
        Some(Sent::Chunk(joiner, attempt, chunk))
    }

    /// The state that came last, once.
    pub(crate) fn take_taken(&mut self) -> Option<Bytes> {
        self.states.last.take()
    }

    /// States that are long, and in use, each once.
    pub(crate) fn long_states(&mut self) -> impl Iterator<Item = Bytes> + '_ {
        self.states.long.drain(..)
    }

    /// What it was given last, and how many bytes that was.
    pub(crate) fn joined_with(&self) -> Option<(Lacks, u64)> {
        self.states.joined_with
    }

    /// How far transfers are.
    pub(crate) fn transfers(&self) -> Vec<TransferProgress> {
        let taken = match &self.stage {
            Stage::Receiving { incoming, .. } => Some(TransferProgress {
                peer: incoming.donor(),
                gives: false,
                done: incoming.received(),
                total: incoming.total(),
            }),
            _ => None,
        };
        self.giving.progress().chain(taken).collect()
    }
}
