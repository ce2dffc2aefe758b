//! The commit state: the commit token goes round twice, and all know where each member stands
//! (Amir95, membership).
//!
//! Invariants: a commit token changes something only if its hop is above every hop seen or sent;
//! between filling in its entry and leaving the state this node takes in nothing of its old ring,
//! so that the entry stays true.

use crate::circuit::Circuit;
use crate::gather::{Attempt, Gather};
use crate::ids::RingId;
use crate::output::{Destination, TimerKind};
use crate::shared::Core;
use crate::wire::{CommitToken, MemberState, OldState, Packet};
use alloc::boxed::Box;
use quorba_base::{Duration, Instant, NodeId, NodeSet};

/// First pause before the commit token is sent again.
const RESEND_PAUSE: Duration = Duration::from_millis(8);
/// The commit token is lost after this many consensus times.
const LOSS_CONSENSUS: u32 = 3;

/// A commit token that was passed on, until there is a sign that it arrived.
#[derive(Debug)]
pub(crate) struct CommitResend {
    at: Instant,
    pause: Duration,
    to: NodeId,
    token: CommitToken,
}

impl CommitResend {
    /// Passes `token` on to the successor of this node.
    pub(crate) fn pass(core: &mut Core, old: Option<&Circuit>, mut token: CommitToken) -> Self {
        token.hop += 1;
        let to = token.members.successor(core.me()).expect("a commit token has members");
        core.transmit(Destination::Node(to), &Packet::Commit(token.clone()));
        let known = old.map_or(Duration::ZERO, Circuit::round_trip);
        let pause = core.patient(RESEND_PAUSE).max(known);
        Self { at: core.now + pause, pause, to, token }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        if self.at <= core.now {
            self.pause *= 2;
            self.at = core.now + self.pause;
            core.transmit(Destination::Node(self.to), &Packet::Commit(self.token.clone()));
        }
    }

    pub(crate) const fn at(&self) -> Instant {
        self.at
    }

    pub(crate) const fn hop(&self) -> u8 {
        self.token.hop
    }
}

/// Confirming a membership.
pub(crate) struct Commit {
    pub(crate) old: Option<Box<Circuit>>,
    pub(crate) attempt: Attempt,
    pub(crate) ring: RingId,
    resend: CommitResend,
    started: Instant,
    deadline: Instant,
}

impl Commit {
    /// The representative's commit token for the agreed membership, its own entry filled in.
    pub(crate) fn mint(core: &mut Core, old: Option<&Circuit>, attempt: &Attempt) -> CommitToken {
        let members = attempt.proc.difference(attempt.fail);
        let ring = core.mint_ring();
        let states = alloc::vec![None; members.len()];
        let mut token = CommitToken { ring, hop: 0, rotation_us: 0, members, states };
        token.fill(core.me(), own_state(core, old));
        token
    }

    /// Enters the state with `token`, in which this node's entry is filled in.
    pub(crate) fn enter(
        core: &mut Core,
        old: Option<Box<Circuit>>,
        attempt: Attempt,
        token: CommitToken,
    ) -> Self {
        let ring = token.ring;
        core.use_ring(ring.seq);
        let resend = CommitResend::pass(core, old.as_deref(), token);
        let wait = Gather::consensus(core, old.as_deref()) * LOSS_CONSENSUS;
        Self { old, attempt, ring, resend, started: core.now, deadline: core.now + wait }
    }

    /// Whether `token` is the second visit of the one this node has passed on. The representative
    /// notes how long the round took.
    pub(crate) fn accepts(&self, core: &Core, token: &mut CommitToken) -> bool {
        let again = token.ring == self.ring && token.hop > self.resend.hop() && token.is_full();
        if again && self.ring.representative == core.me() {
            let micros = core.now.since(self.started).as_micros();
            token.rotation_us = u32::try_from(micros).unwrap_or(u32::MAX);
        }
        again
    }

    /// Whether it has lasted for longer than it takes if nothing fails.
    pub(crate) fn is_slow(&self, core: &Core) -> bool {
        core.now >= self.started + core.config.timing.consensus
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) -> bool {
        self.resend.on_timeout(core);
        self.deadline <= core.now
    }

    pub(crate) fn next_timeout(&self) -> (Instant, TimerKind) {
        let resend = (self.resend.at(), TimerKind::CommitResend);
        resend.min((self.deadline, TimerKind::CommitLoss))
    }
}

/// Where this node stands in the ring that it comes from.
pub(crate) fn own_state(core: &Core, old: Option<&Circuit>) -> MemberState {
    let old = old.map(|old| OldState {
        ring: old.ring,
        delivered: old.delivered,
        aru: old.log.aru(),
        high: old.log.high(),
        // It counts itself anyway.
        obligation: old.obligation.difference(NodeSet::EMPTY.with(core.me())),
    });
    MemberState { incarnation: core.boot.incarnation, old }
}
