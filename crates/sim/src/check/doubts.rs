//! When members of a group may differ, and operators are told so: from the end of a request that
//! some of them may have executed, until their states are compared or the others are brought back.
//!
//! What it is not: leave to lose anything. A reply that is given meanwhile may tell of the history
//! of a member that differs; its call must be in the history that is kept all the same.
//!
//! Invariant: a group is in doubt only behind a request without a reply.

use crate::world::World;
use quorba_base::Instant;
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::PrimaryStatus;

#[derive(Clone, Copy, Debug)]
struct Doubt {
    group: usize,
    from: Instant,
    until: Option<Instant>,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Doubts(Vec<Doubt>);

impl Doubts {
    /// A request has ended without a reply.
    pub(super) fn begin(&mut self, group: usize, now: Instant) {
        if !self.0.iter().any(|doubt| doubt.group == group && doubt.until.is_none()) {
            self.0.push(Doubt { group, from: now, until: None });
        }
    }

    /// Whether a call that was open at a time when members might differ.
    pub(super) fn is_touched(&self, group: usize, invoked: Instant, answered: Instant) -> bool {
        let of_group = self.0.iter().filter(|doubt| doubt.group == group);
        let mut ends = of_group.map(|doubt| (doubt.from, doubt.until));
        ends.any(|(from, until)| from <= answered && until.is_none_or(|until| invoked <= until))
    }
}

impl World {
    /// Looks whether the nodes still say that members may differ.
    pub(super) fn note_doubts(&mut self, snapshots: &[Option<NodeSnapshot>]) {
        let now = self.now;
        for doubt in self.checks.doubts.0.iter_mut().filter(|doubt| doubt.until.is_none()) {
            let mut present = snapshots
                .iter()
                .flatten()
                .filter(|snapshot| snapshot.primary == PrimaryStatus::Primary)
                .map(|snapshot| &snapshot.groups[doubt.group])
                .peekable();
            if present.peek().is_some() && present.all(|group| group.endings.doubt.is_none()) {
                doubt.until = Some(now);
            }
        }
    }
}
