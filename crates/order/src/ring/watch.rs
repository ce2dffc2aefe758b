//! What follows from poor links: who has them is left out of the ring, and kept out.
//!
//! Invariant: nobody is left out but in a gather, like any other that is left out.

use super::{Ring, State};
use crate::output::{Destination, GatherReason, LeaveReason};
use crate::wire::{Dead, Packet};
use quorba_base::NodeSet;

impl Ring {
    /// Sends the probe that is due, if one is, and acts on what the measurements say.
    pub(super) fn watch_links(&mut self) {
        let core = &mut self.core;
        let Some(probe) = core.links.probe(core.now) else { return };
        core.transmit(Destination::Each, &Packet::Probe(probe));
        let members = self.members();
        let core = &mut self.core;
        let (now, me, majority) = (core.now, core.me(), core.majority());
        if let Some(out) = core.links.judge(now, me, members, majority) {
            self.leave_out(out, members);
        }
    }

    fn leave_out(&mut self, out: NodeSet, members: NodeSet) {
        for node in out.difference(members) {
            self.core.hold_off(node, LeaveReason::PoorLinks);
        }
        let inside = out.intersection(members);
        let Some(first) = inside.lowest() else { return };
        self.core.patience = 0;
        if !matches!(self.state, Some(State::Gather(_))) {
            let left = self.gather_of(GatherReason::PoorLinks(first), NodeSet::EMPTY);
            self.gather(left);
        }
        for node in inside {
            let incarnation = self.core.sessions.incarnation(node).unwrap_or(0);
            let dead = Dead { node, incarnation, cause: LeaveReason::PoorLinks };
            if let Some(State::Gather(gather)) = &mut self.state {
                let gathered = gather.on_dead(&mut self.core, dead);
                self.after_gather(gathered);
            }
        }
    }
}
