//! Plans of domains with durable groups: what happens to disks, and who is there without memory.
//!
//! Invariant: like every plan a function of the seed.

use crate::disk::{DiskPlan, Hits};
use crate::fault::Fault;
use crate::plan::Plan;
use crate::rng::Rng;
use quorba_engine::replica::QuorumRule;

impl Plan {
    /// Some domains have durable groups, and lose all nodes at once.
    pub(super) fn with_disks(mut self, rng: &mut Rng) -> Self {
        if !rng.per_mille(400) || self.catastrophe || self.lies {
            return self;
        }
        self.disk = Some(DiskPlan::draw(rng));
        self.quorum.rule = QuorumRule::Majority;
        let is_mixed = rng.per_mille(300);
        for (index, group) in self.groups.iter_mut().enumerate() {
            group.durable = index == 0 || !is_mixed || rng.per_mille(500);
            group.durable &= group.may_be_durable();
            if group.durable {
                group.members = (1 << self.nodes) - 1;
                (group.foreign, group.fresh_after_loss) = (false, false);
            }
        }
        let all_at_once = [Fault::Blackout, Fault::MajorityCrash];
        self.faults.extend(all_at_once.into_iter().filter(|_| rng.per_mille(700)));
        self
    }

    /// In some domains parts of states change on their way, or requests in logs.
    pub(super) fn with_rot(mut self, rng: &mut Rng) -> Self {
        if rng.per_mille(80) {
            self.peers.bent = rng.pick(&[20, 200]);
        }
        if let Some(disk) = self.disk.as_mut().filter(|_| rng.per_mille(200)) {
            (disk.hits, disk.damage, disk.records_max) = (Hits::Requests, 700, u64::MAX);
            // The log only grows, and a start goes through all its segments.
            disk.segment_bytes = disk.segment_bytes.max(4_000);
            self.faults.retain(|fault| *fault != Fault::Blackout);
            self.faults.push(Fault::Blackout);
        }
        self
    }

    /// In some domains it is the states of members on disks that are damaged, and all nodes end.
    pub(super) fn with_spoilt_states(mut self, rng: &mut Rng) -> Self {
        let is_hit = |disk: &&mut DiskPlan| disk.hits == Hits::Anything && rng.per_mille(80);
        if let Some(disk) = self.disk.as_mut().filter(is_hit) {
            (disk.hits, disk.damage) = (Hits::Checkpoints, 500);
            for fault in [Fault::Blackout, Fault::Crash] {
                self.faults.retain(|other| *other != fault);
                self.faults.push(fault);
            }
        }
        self
    }

    /// In some domains with groups that are durable and others that are not, a node comes late, and
    /// finds more that have forgotten than remember.
    pub(super) fn with_latecomer(mut self, rng: &mut Rng) -> Self {
        let (nodes, groups) = (self.nodes, self.groups.len());
        let Some(disk) = self.disk.as_mut().filter(|_| nodes % 2 == 1 && nodes > 1) else {
            return self;
        };
        if groups < 2 || !rng.per_mille(300) {
            return self;
        }
        if rng.per_mille(700) {
            disk.sync_us.1 = disk.sync_us.1.max(100_000);
        }
        self.latecomer = Some(rng.index(nodes));
        for group in self.groups.iter_mut().skip(1) {
            group.durable = false;
            group.members = (1 << nodes) - 1;
            (group.start_ms, group.open_after_ms) = (group.start_ms.min(50), 100);
        }
        self
    }
}
