//! The figures of each scenario: what comes of its samples.
//!
//! Invariant: a figure belongs to one setting; rounds of it are put together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{NODES, Repeats, RingKind, Scenario, Shape, Trace};
use crate::placement::Setting;

/// All samples of a run, by setting and by what they repeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(BTreeMap<(Setting, Repeats), Repetition>);

/// The samples of one scenario over all rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repetition {
    /// The time of each call as the client saw it, in nanoseconds.
    pub(crate) latencies_ns: Vec<u64>,
    pub(crate) trace: Trace,
}

impl Samples {
    pub(crate) fn add(
        &mut self,
        setting: Setting,
        repeats: Repeats,
        latencies_ns: &[u64],
        trace: Trace,
    ) {
        let repetition = self.0.entry((setting, repeats)).or_default();
        repetition.latencies_ns.extend(latencies_ns);
        repetition.trace.add(trace);
    }

    pub(crate) fn of(
        &self,
        setting: Setting,
        scenario: Scenario,
        ring: RingKind,
    ) -> Option<&Repetition> {
        self.0.get(&(setting, Repeats { scenario, ring }))
    }

    pub(crate) fn figures(&self) -> Vec<Figures> {
        let of = |((setting, repeats), one): (&(Setting, Repeats), &Repetition)| {
            Figures::of(*setting, *repeats, one)
        };
        self.0.iter().filter_map(of).collect()
    }
}

/// One scenario on one kind of ring in one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The setting.
    pub setting: Setting,
    /// Scenario and ring.
    #[serde(flatten)]
    pub repeats: Repeats,
    /// End-to-end latency as the client saw it.
    pub latency: Shape,
    /// Token rotations before the first call, at all nodes.
    pub idle_rotation: Option<Shape>,
    /// Token rotations at the client's node, per call.
    pub rotations_per_call: f64,
    /// Ordered messages per call: the request, and replies.
    pub messages_per_call: f64,
    /// From the client's node along the ring.
    pub nodes: Vec<NodeFigures>,
}

/// One node; what it has no samples of is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeFigures {
    /// Token rotations during the calls.
    pub rotation: Option<Shape>,
    /// How long its messages waited for the token.
    pub send_delay: Option<Shape>,
    /// How long its server took.
    pub server: Option<Shape>,
    /// How long the client took from a reply to its next request, thinking included.
    pub client: Option<Shape>,
}

impl Figures {
    #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 samples")]
    fn of(setting: Setting, repeats: Repeats, samples: &Repetition) -> Option<Self> {
        let Repetition { latencies_ns, trace } = samples;
        let idle_ns: Vec<u64> =
            trace.nodes.iter().flat_map(|node| &node.idle_rotations).copied().collect();
        let calls = latencies_ns.len() as f64;
        let messages: usize = trace.nodes.iter().map(|node| node.send_delays.len()).sum();
        let nodes = trace.nodes.iter().map(|node| NodeFigures {
            rotation: Shape::of(&node.rotations),
            send_delay: Shape::of(&node.send_delays),
            server: Shape::of(&node.servers),
            client: Shape::of(&node.clients),
        });
        Some(Self {
            setting,
            repeats,
            latency: Shape::of(latencies_ns)?,
            idle_rotation: Shape::of(&idle_ns),
            rotations_per_call: trace.nodes[0].rotations.len() as f64 / calls,
            messages_per_call: messages as f64 / calls,
            nodes: nodes.collect(),
        })
    }

    /// The primary's node in the semi-active scenarios.
    #[must_use]
    pub fn primary(&self) -> Option<&NodeFigures> {
        self.nodes.get(self.repeats.scenario.primary()?)
    }
}

/// What the semi-active scenarios predict for a primary's place, from three measured times: the
/// waits of request and reply for a token that takes `passing_us` from node to node and is held
/// up by nothing (§2.4).
#[must_use]
pub(crate) fn expected_waits_us(
    place: usize,
    passing_us: f64,
    server_us: f64,
    client_us: f64,
) -> f64 {
    let rotation_us = passing_us * super::count(NODES);
    let wait = |hops: usize, after_us: f64| {
        (passing_us * super::count(hops) - after_us).rem_euclid(rotation_us)
    };
    wait(place, server_us) + wait(NODES - place, client_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zhao::NodeTrace;

    #[test]
    fn figures_come_of_all_rounds() {
        let repeats = Repeats { scenario: Scenario::B, ring: RingKind::Paper };
        let mut trace = Trace::default();
        trace.nodes[0] = NodeTrace {
            idle_rotations: vec![40_000; 3],
            rotations: vec![50_000; 6],
            send_delays: vec![10_000; 4],
            servers: Vec::new(),
            clients: vec![20_000; 3],
        };
        trace.nodes[2].send_delays = vec![30_000; 4];
        trace.nodes[2].servers = vec![60_000; 4];
        let mut samples = Samples::default();
        for _ in 0..2 {
            samples.add(Setting::Free, repeats, &[200_000; 4], trace.clone());
        }
        let [figures] = &samples.figures()[..] else { panic!("one scenario") };
        assert_eq!((figures.latency.count, figures.latency.p50_us), (8, 200.0));
        assert_eq!((figures.rotations_per_call, figures.messages_per_call), (1.5, 2.0));
        let primary = figures.primary().expect("it has a primary");
        assert_eq!(primary.server.as_ref().map(|shape| shape.count), Some(8));
        assert!(primary.rotation.is_none() && figures.nodes[0].server.is_none());
        assert_eq!(figures.idle_rotation.as_ref().map(Shape::peak_us), Some(40.5));
    }

    #[test]
    fn the_papers_times_make_its_best_place_the_best() {
        // 51 µs from node to node; server and client both take a bit less than two passings.
        let waits = [1, 2, 3].map(|place| expected_waits_us(place, 51.0, 80.0, 90.0));
        assert!(waits[1] < waits[0] && waits[1] < waits[2], "{waits:?}");
        assert!((waits[0] - waits[1] - 204.0).abs() < 1e-9, "one rotation less: {waits:?}");
        // A server that takes nothing is best next to the client's node.
        let waits = [1, 2, 3].map(|place| expected_waits_us(place, 51.0, 1.0, 90.0));
        assert!(waits[0] <= waits[1] && waits[0] <= waits[2], "{waits:?}");
    }
}
