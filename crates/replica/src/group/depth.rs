//! Callers that wait until so many members have executed their requests (Huang05 §3.4).
//!
//! What it is not: replicated; only the node whose gateway has the request waits. Invariants: who
//! waits is told once, in the end: that so many have, or that so many are not in any more; a
//! member counts as long as it is in by the try under which it has executed the request.

use super::{Group, NodeContext};
use crate::output::{GatewayOutput, Outbox};
use crate::words::ids::RequestNumber;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::{NODES_MAX, NodeId};

/// Requests of this node's gateway, and how many members must have executed them.
#[derive(Default)]
pub(super) struct Depths(BTreeMap<RequestNumber, Awaited>);

/// One of them.
struct Awaited {
    depth: usize,
    /// The request, counted from the group's first, once it is delivered.
    at: Option<u64>,
}

impl Group {
    /// Its gateway submits a request that so many members must have executed.
    pub(crate) fn await_depth(&mut self, number: RequestNumber, depth: u32) {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let depths = self.depths.get_or_insert_default();
        depths.0.insert(number, Awaited { depth, at: None });
    }

    /// A request of some gateway was delivered. If it is this node's, perhaps not for the first
    /// time: then it takes what was delivered meanwhile, too.
    pub(super) fn note_depth(
        &mut self,
        from: (NodeId, u64),
        number: RequestNumber,
        here: NodeContext,
    ) {
        let is_own = from == (here.node, here.incarnation);
        let Some(depths) = self.depths.as_mut().filter(|_| is_own) else { return };
        if let Some(awaited) = depths.0.get_mut(&number) {
            awaited.at = Some(self.table.history.count);
        }
    }

    /// It was delivered while no member was in, and will be submitted again.
    pub(super) fn drop_depth(&mut self, number: RequestNumber) {
        if let Some(depths) = &mut self.depths {
            depths.0.remove(&number);
        }
    }

    /// What was submitted and not delivered never will be.
    pub(super) fn drop_undelivered_depths(&mut self) {
        if let Some(depths) = &mut self.depths {
            depths.0.retain(|_, awaited| awaited.at.is_some());
        }
    }

    /// Tells the gateway of those that so many members have executed, or never will.
    pub(super) fn mind_depths(&mut self, out: &mut Outbox) {
        let Some(mut depths) = self.depths.take() else { return };
        let mut through = [0; NODES_MAX];
        let members = if self.counts_executed() { self.how_far(&mut through) } else { &[] };
        let mut done = Vec::new();
        depths.0.retain(|number, awaited| {
            let Some(at) = awaited.at else { return true };
            // So many are as far as the last one of them.
            let last = members.get(awaited.depth.saturating_sub(1));
            let is_short = last.is_none();
            let is_done = last.is_none_or(|last| *last >= at);
            if is_done {
                done.push((*number, is_short));
            }
            !is_done
        });
        self.depths = Some(depths).filter(|depths| !depths.0.is_empty());
        for (number, is_short) in done {
            let group = self.id;
            out.push_back(GatewayOutput::Executed { group, number, is_short }.into());
        }
    }
}
