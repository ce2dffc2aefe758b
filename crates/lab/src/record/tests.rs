//! Tests of what is put together from blocks; the reports' tests use the same blocks.

use super::*;
use crate::plan::Changes;

/// A plan of two configurations, three rounds and one setting.
pub(crate) fn plan() -> Plan {
    let changes = Changes {
        rounds: Some(3),
        settings: Some(vec![Setting::Free]),
        only: Some(vec!["one-node".to_owned()]),
        ..Changes::default()
    };
    Plan::find("baseline").and_then(|plan| plan.with(changes)).expect("a plan")
}

/// A block whose median is `p50_us` and whose every other figure follows from that.
pub(crate) fn block(configuration: &str, round: u32, p50_us: f64) -> Block {
    let latency = Percentiles {
        min_us: p50_us / 2.0,
        p10_us: p50_us * 0.75,
        p50_us,
        p90_us: p50_us * 1.5,
        p99_us: p50_us * 2.0,
        p999_us: p50_us * 3.0,
        max_us: p50_us * 10.0,
    };
    let process = |name: &str, user_us| ProcessShare {
        name: name.to_owned(),
        user_us,
        system_us: 1.0,
        sleeps: 1.0,
    };
    Block {
        configuration: configuration.to_owned(),
        setting: Setting::Free,
        round,
        calls: 100,
        latency,
        calls_per_s: 1e6 / p50_us,
        cpu_us: p50_us / 2.0,
        sleeps: 2.0,
        processes: vec![process("client", 4.0), process("server", 5.0)],
        elapsed_ms: 1_000.0,
        others_percent: 0.5,
        stolen_percent: 0.0,
        ring: None,
    }
}

/// Three rounds of `direct` and `one-node`.
pub(crate) fn run() -> Run {
    let medians = [("direct", [70.0, 80.0, 60.0]), ("one-node", [140.0, 120.0, 150.0])];
    let blocks = medians.into_iter().flat_map(|(name, of_rounds)| {
        (1..).zip(of_rounds).map(move |(round, p50_us)| block(name, round, p50_us))
    });
    let environment = Environment {
        cpu: Some("A <CPU>".to_owned()),
        build: "release",
        load_average: Some([0.1, 0.1, 0.1]),
        ..Environment::read()
    };
    Run::of(&plan(), "2026-01-02T03:04:05Z".to_owned(), environment, blocks.collect())
}

#[test]
fn rows_are_medians_of_rounds() {
    let run = run();
    let [direct, node] = &run.rows[..] else { panic!("{:?}", run.rows) };
    assert_eq!(
        (direct.configuration.as_str(), node.configuration.as_str()),
        ("direct", "one-node")
    );
    assert_eq!(direct.p50_us, Spread { median: 70.0, min: 60.0, max: 80.0 });
    assert_eq!(node.p99_us.median, 280.0);
    assert_eq!(direct.cpu_us_by_process["server"].median, 6.0);
    assert!(direct.rotation_us.is_none());
}

#[test]
fn comparisons_are_within_a_round() {
    let run = run();
    // 140/70, 120/80, 150/60: not the quotient of the medians.
    assert_eq!(run.rows[1].times_against, Spread { median: 2.0, min: 1.5, max: 2.5 });
    let [step] = &run.steps[..] else { panic!("{:?}", run.steps) };
    assert_eq!(step.p50_us, Spread { median: 70.0, min: 40.0, max: 90.0 });
    assert_eq!(step.cpu_us, Spread { median: 35.0, min: 20.0, max: 45.0 });
}

#[test]
fn a_round_that_is_missing_is_not_compared() {
    let mut blocks = run().blocks;
    blocks.retain(|block| block.configuration == "direct" || block.round == 3);
    let run = Run::of(&plan(), String::new(), run().environment, blocks);
    assert_eq!(run.rows[1].times_against, Spread { median: 2.5, min: 2.5, max: 2.5 });
    let blocks = vec![block("one-node", 1, 5.0)];
    let run = Run::of(&plan(), String::new(), run.environment, blocks);
    assert!(run.rows.is_empty() && run.steps.is_empty());
}

#[test]
fn disturbed_blocks_are_faults() {
    assert!(run().faults.is_empty());
    let mut blocks = run().blocks;
    blocks[0].others_percent = 40.0;
    // Within what clock ticks can tell in so short a time.
    blocks[2].elapsed_ms = 100.0;
    blocks[2].others_percent = 20.0;
    let ring = RingShare { view_changes: 1, ..RingShare::default() };
    blocks[1].ring = Some(ring);
    let run = Run::of(&plan(), String::new(), run().environment, blocks);
    assert_eq!(run.faults.len(), 2, "{:?}", run.faults);
    assert!(run.faults[0].contains("1 of 6"));
}
