//! Faults that lie in wait for a moment of the membership protocol, or of a call: those moments are
//! so short that a fault at a random time hardly ever hits one.
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
    /// A node installs a ring.
    Installs,
    /// A client is about to be heard.
    Called,
    /// A server outside is about to be heard.
    Answered,
}

impl Moment {
    /// It comes seldom.
    const fn is_rare(self) -> bool {
        matches!(self, Self::HalfInstalled | Self::Installs | Self::Answered)
    }
}

/// When an ambush may look whether its moment has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occasion {
    /// A node has handled an input.
    Handled,
    /// It tells of a new ring, before it passes the token on.
    Installs,
    /// It will hear a client next.
    Called,
    /// It will hear a server outside next.
    Answered,
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ambush {
    fault: Fault,
    moment: Moment,
    /// Moments that it lets pass.
    passes: u64,
}

impl Ambush {
    /// Lays one, if `fault` is of that kind.
    pub(crate) fn lay(fault: Fault, rng: &mut Rng) -> Option<Self> {
        let moment = fault.moment()?;
        let most = if moment.is_rare() { 3 } else { 24 };
        Some(Self { fault, moment, passes: rng.below(most) })
    }

    /// Lets the fault of `ambush` happen if it is the moment, at this occasion of `node`; gives it
    /// with the nodes that it is for, a bit each. `look` is called only for those that matter.
    pub(crate) fn strike(
        ambush: &mut Option<Self>,
        rng: &mut Rng,
        (node, occasion): (usize, Occasion),
        nodes: usize,
        look: impl Fn(usize) -> Option<Snapshot>,
    ) -> Option<(Fault, u64)> {
        let ambush = ambush.as_mut()?;
        let prey = match (ambush.moment, occasion) {
            (Moment::In(state), Occasion::Handled) if look(node)?.state == state => 1 << node,
            (Moment::HalfInstalled, Occasion::Installs) => {
                half_installed(&look(node)?, nodes, look)?
            }
            (Moment::Installs, Occasion::Installs)
            | (Moment::Called, Occasion::Called)
            | (Moment::Answered, Occasion::Answered) => 1 << node,
            _ => return None,
        };
        ambush.springs(rng).then_some((ambush.fault, prey))
    }

    /// The moment has come: whether it springs.
    fn springs(&mut self, rng: &mut Rng) -> bool {
        if self.passes > 0 {
            self.passes -= 1;
            return false;
        }
        self.passes = rng.below(if self.moment.is_rare() { 6 } else { 40 });
        true
    }
}

/// Those who are in the ring of `own`, if another of its members recovers still.
fn half_installed(
    own: &Snapshot,
    nodes: usize,
    look: impl Fn(usize) -> Option<Snapshot>,
) -> Option<u64> {
    let all: Vec<_> = (0..nodes).filter_map(|node| Some((node, look(node)?))).collect();
    let recovers = all.iter().any(|(node, other)| {
        own.members.contains(node_id(*node))
            && other.state == StateName::Recovery
            && other.ring != own.ring
    });
    let in_ring = all.iter().filter(|(_, other)| other.ring == own.ring);
    recovers.then(|| in_ring.map(|(node, _)| 1 << node).sum())
}
