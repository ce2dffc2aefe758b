//! Faults that lie in wait for a moment of the membership protocol: those moments are so short
//! that a fault at a random time hardly ever hits one.
//!
//! What it is not: what the fault does. Invariant: an ambush lets a random number of moments pass
//! before it springs, and then waits for the next one.

use crate::fault::Fault;
use crate::rng::Rng;
use crate::world::node_id;
use quorba_engine::order::{Snapshot, StateName};

/// What a fault waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// A node is in this state.
    In(StateName),
    /// A node has installed a ring, and another member recovers still.
    HalfInstalled,
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ambush {
    pub(crate) fault: Fault,
    moment: Moment,
    /// Moments that it lets pass.
    passes: u64,
}

impl Ambush {
    /// Lays one, if `fault` is of that kind.
    pub(crate) fn lay(fault: Fault, rng: &mut Rng) -> Option<Self> {
        let moment = fault.moment()?;
        let most = if moment == Moment::HalfInstalled { 3 } else { 24 };
        Some(Self { fault, moment, passes: rng.below(most) })
    }

    /// Whether it is the moment, now that `node` has handled an input or, if `installs`, while it
    /// tells of a new ring, before it passes the token on; and for which nodes, a bit each.
    pub(crate) fn prey(
        &self,
        node: usize,
        installs: bool,
        nodes: &[Option<Snapshot>],
    ) -> Option<u64> {
        let own = nodes[node].as_ref()?;
        match self.moment {
            Moment::In(state) => (!installs && own.state == state).then_some(1 << node),
            Moment::HalfInstalled => {
                let is_member = |n| own.members.contains(node_id(n));
                let looks = || nodes.iter().enumerate().filter_map(|(n, s)| Some((n, s.as_ref()?)));
                let recovers = looks().any(|(n, other)| {
                    is_member(n) && other.state == StateName::Recovery && other.ring != own.ring
                });
                let in_ring = looks().filter(|(_, other)| other.ring == own.ring);
                (installs && recovers).then(|| in_ring.map(|(n, _)| 1 << n).sum())
            }
        }
    }

    /// The moment has come: whether it springs.
    pub(crate) fn springs(&mut self, rng: &mut Rng) -> bool {
        if self.passes > 0 {
            self.passes -= 1;
            return false;
        }
        self.passes = rng.below(if self.moment == Moment::HalfInstalled { 6 } else { 40 });
        true
    }
}
