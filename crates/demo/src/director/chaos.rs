//! When to kill, and whom.
//!
//! What it is not: the killer. It is a plan, driven by the time since the load began and by
//! whether the group is whole, so that the same seed gives the same plan.
//!
//! Invariants: nothing is killed unless the group is whole (with a member missing, one more
//! failure could take the majority, which no promise covers); server processes and nodes
//! alternate, and where it is asked for, the end of all nodes comes third; two kills in a row never
//! meet the same host.

use std::time::Duration;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// The bank server of the node with this index.
    Server(usize),
    /// The node with this index.
    Node(usize),
    /// All nodes at once.
    Domain,
}

impl Victim {
    /// Index of the node whose host it is on, if it is on one.
    const fn host(self) -> Option<usize> {
        match self {
            Self::Server(index) | Self::Node(index) => Some(index),
            Self::Domain => None,
        }
    }
}

/// The plan of kills.
pub(super) struct Chaos {
    every: Duration,
    nodes: usize,
    /// All nodes at once are victims, too.
    domain: bool,
    due: Duration,
    last: Option<Victim>,
    choices: fastrand::Rng,
}

impl Chaos {
    /// A plan that kills every `every` among `nodes` nodes, first half of that after `start`.
    pub(super) fn new(
        every: Duration,
        (nodes, domain): (usize, bool),
        seed: u64,
        start: Duration,
    ) -> Self {
        assert!(nodes >= 2, "two kills in a row need two hosts");
        let choices = fastrand::Rng::with_seed(seed);
        Self { every, nodes, domain, due: start + every / 2, last: None, choices }
    }

    /// The victim that is due `since_start`, if one is.
    pub(super) fn poll(&mut self, since_start: Duration, whole: bool) -> Option<Victim> {
        if since_start < self.due || !whole {
            return None;
        }
        // A group that took long to become whole gets at least half of the interval in peace.
        self.due = (self.due + self.every).max(since_start + self.every / 2);
        let mut host = self.choices.usize(..self.nodes);
        if self.last.is_some_and(|last| last.host() == Some(host)) {
            host = (host + 1 + self.choices.usize(..self.nodes - 1)) % self.nodes;
        }
        let victim = match self.last {
            Some(Victim::Server(_)) => Victim::Node(host),
            Some(Victim::Node(_)) if self.domain => Victim::Domain,
            Some(Victim::Node(_) | Victim::Domain) | None => Victim::Server(host),
        };
        self.last = Some(victim);
        Some(victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(2);

    fn run(seed: u64, whole: impl Fn(Duration) -> bool) -> Vec<(Duration, Victim)> {
        run_of(Chaos::new(EVERY, (3, false), seed, Duration::ZERO), whole)
    }

    fn run_of(mut chaos: Chaos, whole: impl Fn(Duration) -> bool) -> Vec<(Duration, Victim)> {
        (0..1000)
            .map(|step| Duration::from_millis(step * 10))
            .filter_map(|now| chaos.poll(now, whole(now)).map(|victim| (now, victim)))
            .collect()
    }

    #[test]
    fn kinds_alternate_and_no_host_is_met_twice_in_a_row() {
        for seed in 0..100 {
            let kills = run(seed, |_| true);
            assert_eq!(kills.len(), 5);
            for pair in kills.windows(2) {
                let [(_, one), (_, two)] = pair else { unreachable!("windows of two") };
                assert_ne!(one.host(), two.host());
                assert_ne!(matches!(one, Victim::Node(_)), matches!(two, Victim::Node(_)));
            }
        }
    }

    #[test]
    fn every_host_gets_its_turn_and_the_seed_decides() {
        let hosts = |seed| -> Vec<usize> {
            run(seed, |_| true).iter().filter_map(|(_, victim)| victim.host()).collect()
        };
        let mut seen: Vec<usize> = (0..20).flat_map(hosts).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2]);
        assert_eq!(hosts(7), hosts(7));
    }

    #[test]
    fn the_whole_domain_has_its_turn_where_it_is_asked_for() {
        let kills = run_of(Chaos::new(EVERY, (3, true), 1, Duration::ZERO), |_| true);
        let all = |(_, victim): &&(Duration, Victim)| *victim == Victim::Domain;
        assert_eq!(kills.iter().filter(all).count(), kills.len() / 3);
        assert_eq!(kills[2].1, Victim::Domain);
    }

    #[test]
    fn a_group_that_is_not_whole_is_left_in_peace() {
        assert!(run(1, |_| false).is_empty());
        // Whole again 1.9 s after each kill: the kills come later, and not in a burst.
        let kills = run(1, |now| now > Duration::from_secs(4));
        assert_eq!(kills[0].0, Duration::from_millis(4010));
        assert!(kills[1].0 - kills[0].0 >= EVERY / 2);
    }
}
