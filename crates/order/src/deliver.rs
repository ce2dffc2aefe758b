//! From numbered packets to delivered messages, in one ring.
//!
//! Invariants: packets are delivered in the order of their numbers, each at most once; a safe one
//! only when every member is known to have it, or in a transitional configuration; nothing is
//! released before it is delivered here and received by all.

use crate::circuit::Circuit;
use crate::ids::{Guarantee, Position};
use crate::log::Held;
use crate::output::{Delivery, Output};
use crate::shared::Core;
use crate::wire::Chunks;
use quorba_base::{NodeSet, canary};

impl Circuit {
    /// Delivers what can be delivered, says what is held and stable, and releases what all have.
    /// Gives whether a safe message was delivered.
    pub(crate) fn settle(&mut self, core: &mut Core) -> bool {
        let all = self.all_received();
        let mut safe = false;
        if canary!(DeliversAcrossGap) && self.delivered + 1 < self.log.high() {
            self.delivered += u64::from(self.log.packet(self.delivered + 1).is_none());
        }
        while self.delivered < self.log.aru() {
            let seq = self.delivered + 1;
            let held = self.log.packet(seq).expect("packets up to aru are held").clone();
            if held.guarantee == Guarantee::Safe && !canary!(SafeIsOnlyAgreed) {
                if seq > all {
                    break;
                }
                safe = true;
            }
            self.deliver_packet(core, seq, held, false);
            self.delivered = seq;
        }
        let stable = if canary!(ForgetsUnstable) { self.log.aru() } else { all };
        self.log.release(stable.min(self.delivered));
        self.keep_promises(core, all);
        safe
    }

    fn keep_promises(&mut self, core: &mut Core, all: u64) {
        if self.promises.is_empty() {
            return;
        }
        if self.promises.has_unheld()
            && let Some(seq) = self.received_by(
                core.holders_min(self.members) - usize::from(canary!(HeldWithoutMajority)),
            )
            && let Some(ticket) = self.promises.majority_has(seq)
        {
            core.outputs.push_back(Output::Held(ticket));
        }
        if let Some(ticket) = self.promises.all_have(all) {
            core.stable_awaited = core.stable_awaited.filter(|awaited| *awaited > ticket);
            core.outputs.push_back(Output::Stable(ticket));
        }
    }

    fn deliver_packet(&mut self, core: &mut Core, seq: u64, held: Held, behind_gap: bool) {
        if held.inner.is_some() {
            return; // Recovery has taken it to the ring that it belongs to.
        }
        let (origin, incarnation) = (held.origin, self.incarnation(held.origin));
        let chunks = Chunks::new(&held.body).expect("bodies are checked when decoded");
        for (index, chunk) in (0_u64..).zip(chunks) {
            let chunk = chunk.expect("bodies are checked when decoded");
            let ticket = chunk.ticket;
            let payload = if origin == core.me() {
                chunk.last.then(|| core.queue.deliver(ticket))
            } else {
                self.partials.take(origin, chunk, &held.body)
            };
            let Some(payload) = payload else { continue };
            let position = Position { ring: self.ring, seq: (seq << 16) + index };
            core.counters.delivered += 1;
            let delivery = Delivery { position, origin, incarnation, ticket, payload, behind_gap };
            core.outputs.push_back(Output::Deliver(delivery));
        }
    }

    /// End of the ring, part one (Amir95, recovery): delivers up to the first
    /// gap, or the first safe message that nobody of those who move together has delivered.
    pub(crate) fn deliver_regular_rest(&mut self, core: &mut Core, delivered_by_some: u64) {
        while let Some(held) = self.log.packet(self.delivered + 1).cloned() {
            let seq = self.delivered + 1;
            let is_known = seq <= delivered_by_some || canary!(SafeRestIsRegular);
            if held.guarantee == Guarantee::Safe && !is_known {
                break;
            }
            self.deliver_packet(core, seq, held, false);
            self.delivered = seq;
        }
    }

    /// Part two, in the transitional configuration: delivers the rest. Behind a gap only what came
    /// from `bound`, for what others sent there may depend on what is missing.
    pub(crate) fn deliver_transitional(&mut self, core: &mut Core, bound: NodeSet) {
        let aru = self.log.aru();
        for seq in self.delivered + 1..=self.log.high() {
            let behind_gap = seq > aru;
            if let Some(held) = self.log.packet(seq).cloned()
                && (!behind_gap || bound.contains(held.origin) || canary!(DeliversBehindGapFromAll))
            {
                self.deliver_packet(core, seq, held, behind_gap);
            }
            self.delivered = seq;
        }
    }
}
