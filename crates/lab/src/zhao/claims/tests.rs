//! Claims on figures that are like the paper's, and on figures that are not.

use super::*;
use crate::zhao::{NodeFigures, Repeats};

fn shape(at_us: f64, width_us: f64) -> Option<Shape> {
    Some(Shape {
        count: 100,
        mean_us: at_us,
        p10_us: at_us - width_us / 2.0,
        p50_us: at_us,
        p90_us: at_us + width_us / 2.0,
        peaks: vec![Peak { at_us, per_us: 0.1 }],
    })
}

/// A scenario with the given median, its width, rotations and messages per call.
fn figures(scenario: Scenario, p50_us: f64, width_us: f64, per_call: (f64, f64)) -> Figures {
    let mut rotation = shape(470.0, 60.0);
    if let (Scenario::A, Some(shape)) = (scenario, &mut rotation) {
        shape.peaks = [740.0, 205.0].map(|at_us| Peak { at_us, per_us: 0.1 }).to_vec();
    }
    let node = |number: usize| NodeFigures {
        rotation: rotation.clone(),
        send_delay: shape(if number == 1 { 180.0 } else { 15.0 }, 10.0),
        server: shape(80.0, 10.0).filter(|_| number > 0),
        client: shape(90.0, 10.0).filter(|_| number == 0),
    };
    Figures {
        setting: Setting::Free,
        repeats: Repeats { scenario, ring: RingKind::Paper },
        latency: shape(p50_us, width_us).expect("samples"),
        idle_rotation: shape(205.0, 5.0),
        rotations_per_call: per_call.0,
        messages_per_call: per_call.1,
        nodes: (0..NODES).map(node).collect(),
    }
}

fn like_the_paper() -> Vec<Figures> {
    vec![
        figures(Scenario::A, 953.0, 30.0, (2.1, 2.0)),
        figures(Scenario::B, 741.0, 30.0, (1.25, 2.0)),
        figures(Scenario::C, 979.0, 30.0, (2.1, 2.0)),
        figures(Scenario::D, 1_227.0, 50.0, (1.1, 4.0)),
        figures(Scenario::E, 865.0, 250.0, (5.0, 4.0)),
    ]
}

#[test]
fn the_papers_own_figures_agree_with_it() {
    let claims = claims(&like_the_paper());
    assert_eq!(claims.len(), 11);
    for claim in &claims {
        assert!(claim.agrees, "{claim:?}");
    }
}

#[test]
fn what_differs_is_said_with_its_reason() {
    let mut all = like_the_paper();
    all[0].latency = shape(500.0, 300.0).expect("samples");
    all[3].messages_per_call = 2.0;
    for one in &mut all {
        one.nodes.iter_mut().for_each(|node| node.server = shape(400.0, 250.0));
    }
    let claims = claims(&all);
    let differs = |word: &str| {
        let of = claims.iter().find(|claim| claim.paper.contains(word)).expect("a claim");
        assert!(!of.agrees, "{of:?}");
        of
    };
    let best = differs("lowest latency");
    assert!(best.ours.contains("node 1") && best.why.contains("chance"), "{best:?}");
    assert!(differs("within 100 µs").why.contains("share the cores"));
    differs("about one rotation higher");
    differs("narrow");
    differs("duplicate");
}

#[test]
fn scenarios_that_were_not_run_are_not_spoken_of() {
    let some = vec![figures(Scenario::B, 741.0, 30.0, (1.25, 2.0))];
    let claims = claims(&some);
    assert!(claims.iter().all(|claim| !claim.paper.contains("active replication")), "{claims:?}");
    assert!(super::claims(&[]).is_empty());
}
