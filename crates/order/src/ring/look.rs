//! The ring's snapshot.
//!
//! Invariant: looking changes nothing.

use super::{Ring, State};
use crate::circuit::Place;
use crate::snapshot::{Progress, Protection, Snapshot, StateName};
use quorba_base::{Duration, NodeSet};

impl Ring {
    /// How far the ring has come; cheap enough to ask after every event.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            token_visits: self.core.counters.token_visits,
            visit_packets: self.core.visit_packets,
            rotations: self.core.counters.rotations,
            rotation_last: self.core.rotation_last,
            submitted: self.core.queue.submitted(),
            numbered: self.core.queue.numbered(),
            rests_here: self.rests_here(),
        }
    }

    fn rests_here(&self) -> bool {
        match &self.state {
            Some(State::Operational(state)) => matches!(state.circuit.place, Place::Resting { .. }),
            _ => false,
        }
    }

    /// A look at everything, for people.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let state = match self.state.as_ref().expect("a ring is always in a state") {
            State::Gather(_) => StateName::Gather,
            State::Commit(_) => StateName::Commit,
            State::Recovery(_) => StateName::Recovery,
            State::Operational(_) => StateName::Operational,
        };
        let circuit = self.installed_circuit();
        let forming = match &self.state {
            Some(State::Recovery(recovery)) => recovery.circuit.log.len(),
            _ => 0,
        };
        let operational = state == StateName::Operational;
        Snapshot {
            state,
            reason: self.reason,
            protection: if core.config.encrypt {
                Protection::Sealed
            } else {
                Protection::NoneAtAll
            },
            sealing_key: core.config.encrypt.then(|| core.sealer.key_id()),
            newest_key: core.newest_key(),
            ring: circuit.map(|c| c.ring),
            members: circuit.map_or(NodeSet::EMPTY, |c| c.members),
            has_token: self.rests_here(),
            rest_owner: circuit.filter(|_| operational).map(|c| c.rest_owner),
            rotation: circuit.map_or(Duration::ZERO, |c| c.rotation()),
            exchange: core.exchange.time(),
            token_loss: circuit.map_or(Duration::ZERO, |c| c.token_loss(core)),
            packets: circuit
                .map_or([0; 4], |c| [c.log.high(), c.log.aru(), c.delivered, c.all_received()]),
            log_packets: circuit.map_or(0, |c| c.log.len()) + forming,
            queue_messages: core.queue.messages(),
            queue_bytes: core.queue.bytes(),
            in_flight: core.queue.in_flight(),
            partial_bytes: circuit.map_or(0, |c| c.partials.bytes()),
            misfits: circuit.map_or(0, |c| c.partials.misfits()),
            unheld: circuit.and_then(|c| c.promises.unheld()),
            left_out: core.left_out(circuit.map_or(NodeSet::EMPTY, |c| c.members)),
            told_out: core.told_out,
            patience: core.patience,
            counters: core.counters,
        }
    }
}
