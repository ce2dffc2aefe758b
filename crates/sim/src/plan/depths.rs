//! Domains whose clients say how many members must have their calls (Huang05 §3.4).

use super::Plan;
use crate::fault::Fault;
use crate::rng::Rng;
use quorba_engine::replica::{Concurrency, Replication, Style};

impl Plan {
    /// The plan of a seed with styles, in whose groups all members execute, and are counted when
    /// they have.
    pub(crate) fn draw_depths(seed: u64) -> Self {
        let mut plan = Self::draw_styles(seed);
        let mut rng = Rng::new(seed).fork(0xde97);
        // In a style in which not all execute, members count that hold a call.
        plan.faults.retain(|fault| *fault != Fault::StyleChange);
        for group in plan.groups.iter_mut().filter(|group| group.style != Style::Stateless) {
            if group.style.is_passive() {
                group.style = Style::SemiActive;
                group.updates = false;
            }
            if group.concurrency == Concurrency::PerObject {
                group.concurrency = Concurrency::Pipelined;
            }
            group.replication = rng.pick(&[
                Replication::Parallel,
                Replication::Parallel,
                Replication::Chain,
                Replication::Chain,
                Replication::Ordered,
            ]);
        }
        for client in &mut plan.clients {
            client.depths = rng.pick(&[0, 300, 1_000]);
        }
        plan
    }
}
