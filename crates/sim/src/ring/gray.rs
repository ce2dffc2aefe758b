//! Networks of which a part is poor for a while and nothing else happens: then it can be said what
//! must come of it, while it lasts and not only in peace.
//!
//! Invariants: the network is good, and all are in one ring, before a spell begins; a spell lasts
//! for the same time whatever comes of it.

use super::world::{Event, RingWorld};
use crate::rng::Rng;
use crate::world::{ms, node_id};
use quorba_base::{Duration, Instant, NodeSet};
use quorba_engine::order::{LeaveReason, StateName, View, ViewKind};

/// All have been in one ring for so long before something becomes poor.
const GOOD_FOR: Duration = Duration::from_millis(700);
/// So long something is poor, and longer if others end meanwhile.
const POOR_FOR: Duration = Duration::from_millis(6_000);
const NEEDED_FOR: Duration = Duration::from_millis(8_000);
/// From then on the others are in a ring without a poor node, for half of the time at least.
const WITHOUT_AFTER: Duration = Duration::from_millis(2_000);
/// It may be tried for the last time shortly before its links are good, and must be taken in then.
const BACK_WITHIN: Duration = Duration::from_millis(18_000);
/// What was measured before links were good may count for so long: the last 32 probes, and what
/// others said within half a second.
const MEASURED_FOR: Duration = Duration::from_millis(1_000);
/// A poor node is left out before others end, and is needed then.
const NEEDED_AFTER: Duration = Duration::from_millis(2_500);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is poor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spell {
    /// One node loses much, or is far away: the others go on without it.
    Node,
    /// One direction of one link: who does not hear goes, if that disturbs anybody.
    Direction,
    /// All links alike: nobody goes.
    Everything,
    /// One node, and of the others so many end that they are no majority without it.
    Needed,
}

impl Spell {
    fn lasts(self) -> Duration {
        if self == Self::Needed { NEEDED_FOR } else { POOR_FOR }
    }
}

/// Where one run stands.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The network has been good since then; all have been in one ring since then.
    Good {
        since: Instant,
        whole: Option<Instant>,
    },
    Poor {
        spell: Spell,
        node: usize,
        since: Instant,
        ended: bool,
        looks: u32,
        met: u32,
    },
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Gray {
    rng: Rng,
    stage: Stage,
}

impl Gray {
    pub(super) const fn new(rng: Rng, now: Instant) -> Self {
        Self { rng, stage: Stage::Good { since: now, whole: None } }
    }
}

impl RingWorld {
    /// What the network is like is looked at, and changed when it is time.
    pub(super) fn weather(&mut self) {
        let Some(mut gray) = self.gray.take().filter(|_| !self.peace) else { return };
        gray.stage = match gray.stage {
            Stage::Good { since, whole } => self.while_good(&mut gray.rng, since, whole),
            Stage::Poor { spell, since, .. } if self.now.since(since) >= spell.lasts() => {
                self.end_spell(gray.stage)
            }
            stage @ Stage::Poor { .. } => self.while_poor(stage),
        };
        self.gray = Some(gray);
        self.queue.push(self.now + LOOK_EVERY, Event::Weather);
    }

    fn while_good(&mut self, rng: &mut Rng, since: Instant, whole: Option<Instant>) -> Stage {
        let now = self.now;
        let whole = whole.or(Some(now)).filter(|_| self.are_in(NodeSet::first(self.plan.nodes)));
        if whole.is_none() && now.since(since) > BACK_WITHIN {
            let seconds = BACK_WITHIN.as_secs();
            self.violate("liveness", format!("links are good for {seconds} s: no ring of all"));
        }
        if whole.is_none_or(|whole| now.since(whole) < GOOD_FOR) {
            return Stage::Good { since, whole };
        }
        let spell = rng.pick(&[
            Spell::Node,
            Spell::Node,
            Spell::Direction,
            Spell::Everything,
            Spell::Needed,
        ]);
        let node = rng.index(self.plan.nodes);
        let loss = rng.between(400, 800);
        let other = (node + 1 + rng.index(self.plan.nodes - 1)) % self.plan.nodes;
        let network = &mut self.network;
        let text = match (spell, rng.below(4)) {
            (Spell::Node, 0) => network.make_lossy(node, loss, loss),
            (Spell::Node, 1) => network.make_lossy(node, loss, 0),
            (Spell::Node, 2) => network.make_lossy(node, 0, loss),
            (Spell::Node, _) => network.make_distant(node, 100_000),
            (Spell::Direction, _) => network.make_deaf(other, node, loss),
            // With less, chance alone makes the links of one node worse for a while.
            (Spell::Everything, _) => network.make_all_lossy(rng.between(330, 450)),
            (Spell::Needed, _) => network.make_lossy(node, 300, 300),
        };
        self.say(|| format!("FAULT {spell:?}: {text}"));
        Stage::Poor { spell, node, since: now, ended: false, looks: 0, met: 0 }
    }

    fn while_poor(&mut self, stage: Stage) -> Stage {
        let Stage::Poor { spell, node, since, mut ended, mut looks, mut met } = stage else {
            return stage;
        };
        let time = self.now.since(since);
        let others = NodeSet::first(self.plan.nodes).difference(NodeSet::EMPTY.with(node_id(node)));
        match spell {
            Spell::Node | Spell::Direction if time >= WITHOUT_AFTER => {
                let all = NodeSet::first(self.plan.nodes);
                let is_repaired = spell == Spell::Direction && self.are_in(all);
                (looks, met) = (looks + 1, met + u32::from(is_repaired || self.are_in(others)));
            }
            Spell::Needed if time >= NEEDED_AFTER && !ended => {
                ended = true;
                let majority = self.plan.nodes / 2 + 1;
                for other in others.iter().skip(majority - 1) {
                    self.crash(usize::from(other.index()), false);
                }
            }
            Spell::Needed if ended => {
                let up = (0..self.plan.nodes).filter(|node| self.is_up(*node)).map(node_id);
                met += u32::from(self.are_in(up.collect()));
            }
            _ => {}
        }
        Stage::Poor { spell, node, since, ended, looks, met }
    }

    fn end_spell(&mut self, stage: Stage) -> Stage {
        if let Stage::Poor { spell, node, looks, met, .. } = stage {
            if spell == Spell::Needed && met == 0 {
                self.violate("liveness", format!("n{node} is poor, but no majority is without it"));
            }
            if met * 2 < looks {
                let text = format!("n{node} is poor: others were in a ring {met} of {looks} times");
                self.violate("liveness", text);
            }
        }
        self.network.heal();
        self.say(|| "the network is good".to_owned());
        self.end_absences();
        Stage::Good { since: self.now, whole: None }
    }

    /// Whoever was ended in a spell starts again.
    pub(super) fn end_absences(&mut self) {
        for node in 0..self.plan.nodes {
            if self.plan.spells && !self.is_up(node) {
                self.plan_boot(node, ms(1));
            }
        }
    }

    /// Whether all of `members` are in one ring of just these.
    fn are_in(&self, members: NodeSet) -> bool {
        let mut ring = None;
        members.iter().all(|node| {
            self.snapshot(usize::from(node.index())).is_some_and(|snapshot| {
                snapshot.state == StateName::Operational
                    && snapshot.members == members
                    && *ring.get_or_insert(snapshot.ring) == snapshot.ring
            })
        })
    }

    /// Whether it is right who is left out for poor links in `view`.
    pub(super) fn judge_left_out(&mut self, at: usize, view: &View) {
        let installs = view.kind == ViewKind::Regular;
        let Some(stage) = self.gray.as_ref().filter(|_| installs).map(|gray| gray.stage) else {
            return;
        };
        for (left, _) in view.left.iter().filter(|(_, why)| *why == LeaveReason::PoorLinks) {
            let is_right = match stage {
                // What was measured a moment ago may still come into force.
                Stage::Good { since, .. } => self.now.since(since) < MEASURED_FOR,
                Stage::Poor { spell: Spell::Everything, .. } => false,
                Stage::Poor { node, .. } => *left == node_id(node),
            };
            if !is_right {
                let text = format!("n{at} leaves {left} out for its links, in {stage:?}");
                self.violate("poor links", text);
            }
        }
    }
}
