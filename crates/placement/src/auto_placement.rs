//! When a leader moves by itself.
//!
//! What it is not: the one who moves it; what it says is ordered like an operator's command.
//!
//! Invariants: nothing is said but at the leader's own node; a gain counts only if it was there in
//! each look of the watch; who has led for less than five watches stays, so that the lead moves at
//! most once in that time, whoever has it.

use quorba_base::{Duration, Instant, NodeId};

use crate::Prediction;

/// What another leader must save of a call's time at least, in percent.
pub const GAIN_PERCENT_MIN: u64 = 20;
/// How long a leader stays at least, in watches.
const WATCHES_AT_LEAST: u32 = 5;

/// What was seen at a look.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Who leads.
    pub leader: Option<NodeId>,
    /// Calls since the look before.
    pub calls: u64,
    /// What a call costs with each leader, as [`crate::predict`] says.
    pub predictions: &'a [Prediction],
}

/// See the module's text; one per group, at each of its nodes.
#[derive(Clone, Debug)]
pub struct AutoPlacement {
    here: NodeId,
    /// How long another must be better.
    watch: Duration,
    /// Since when this node leads.
    leads_since: Option<Instant>,
    /// Who would be better, and since when.
    better: Option<(NodeId, Instant)>,
}

impl AutoPlacement {
    /// At the node `here`; `watch`: how long another leader must be better.
    #[must_use]
    pub const fn new(here: NodeId, watch: Duration) -> Self {
        Self { here, watch, leads_since: None, better: None }
    }

    /// Takes a look; the node that should lead now, if another should.
    pub fn look(&mut self, now: Instant, seen: &Seen<'_>) -> Option<NodeId> {
        if seen.leader != Some(self.here) {
            (self.leads_since, self.better) = (None, None);
            return None;
        }
        let leads_since = *self.leads_since.get_or_insert(now);
        let Some(better) = self.better(seen) else {
            self.better = None;
            return None;
        };
        let since = match self.better {
            Some((node, since)) if node == better => since,
            _ => now,
        };
        self.better = Some((better, since));
        let stays = self.watch * WATCHES_AT_LEAST;
        let long_enough = now.since(since) >= self.watch && now.since(leads_since) >= stays;
        if !long_enough {
            return None;
        }
        // If the command is refused, it is said again after as long a watch.
        self.better = None;
        Some(better)
    }

    fn better(&self, seen: &Seen<'_>) -> Option<NodeId> {
        let best = seen.predictions.first().filter(|_| seen.calls > 0)?;
        let here = seen.predictions.iter().find(|one| one.leader == self.here)?;
        (here.gain_percent(best) > GAIN_PERCENT_MIN).then_some(best.leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCH: Duration = Duration::from_secs(60);

    fn node(n: u8) -> NodeId {
        NodeId::new(n).expect("a node")
    }

    fn costs(n: u8, us: u64) -> Prediction {
        let latency = Duration::from_micros(us);
        Prediction { leader: node(n), latency, parts: [Duration::ZERO; 6] }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Looks each 10 s from `from` on; when it first said something, and what.
    fn first(
        auto_placement: &mut AutoPlacement,
        from: u64,
        seen: &Seen<'_>,
    ) -> Option<(u64, NodeId)> {
        (from..from + 1_000).step_by(10).find_map(|s| Some((s, auto_placement.look(at(s), seen)?)))
    }

    #[test]
    fn a_leader_moves_when_another_was_better_for_a_minute_and_not_within_five() {
        let predictions = [costs(2, 70), costs(1, 100)];
        let seen = Seen { leader: Some(node(1)), calls: 5, predictions: &predictions };
        assert_eq!(first(&mut AutoPlacement::new(node(1), WATCH), 0, &seen), Some((300, node(2))));
        // Better only since a moment ago: the minute runs from then.
        let mut auto_placement = AutoPlacement::new(node(1), WATCH);
        let even = [costs(1, 100), costs(2, 100)];
        for s in (0..400).step_by(10) {
            assert_eq!(auto_placement.look(at(s), &Seen { predictions: &even, ..seen }), None);
        }
        assert_eq!(first(&mut auto_placement, 400, &seen), Some((460, node(2))));
    }

    #[test]
    fn small_gains_no_calls_and_other_leaders_move_nothing() {
        let predictions = [costs(2, 80), costs(1, 100)];
        let seen = Seen { leader: Some(node(1)), calls: 5, predictions: &predictions };
        assert_eq!(
            first(&mut AutoPlacement::new(node(1), WATCH), 0, &seen),
            None,
            "20 % is not more than 20 %"
        );
        let predictions = [costs(2, 10), costs(1, 100)];
        let seen = Seen { predictions: &predictions, ..seen };
        assert_eq!(
            first(&mut AutoPlacement::new(node(1), WATCH), 0, &Seen { calls: 0, ..seen }),
            None
        );
        assert_eq!(first(&mut AutoPlacement::new(node(3), WATCH), 0, &seen), None);
        let nobody = Seen { leader: None, ..seen };
        assert_eq!(first(&mut AutoPlacement::new(node(1), WATCH), 0, &nobody), None);
    }
}
