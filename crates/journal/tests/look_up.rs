//! The log as the node that writes it sees it.

mod harness;

use harness::{Model, Trust, chance, owner};
use quorba_journal::disk::{Disk, Faults, SimulatedDisk};
use quorba_journal::{Seq, look_up};
use std::collections::BTreeSet;
use std::sync::Arc;

fn model() -> Model {
    let mut model = Model::new(SimulatedDisk::new(chance(1)), 1_000);
    model.open(Trust::Whole).unwrap();
    model
}

fn disk(model: &Model) -> Arc<dyn Disk> {
    Arc::new(model.disk.clone())
}

#[test]
fn everything_durable_is_found_over_segments_and_boots_while_more_is_written() {
    let mut model = model();
    for boot in 1..=3 {
        for _ in 0..12 {
            model.append(100);
        }
        model.commit().unwrap();
        let found =
            look_up(disk(&model), owner(), model.journal().last(), BTreeSet::new()).unwrap();
        let seqs: Vec<u64> = found.records().map(|entry| entry.unwrap().seq.0).collect();
        assert_eq!(seqs, (1..=12 * boot).collect::<Vec<u64>>());
        model.crash();
        model.open(Trust::Whole).unwrap();
    }
    model.append(100);
    let found = look_up(disk(&model), owner(), Seq(36), BTreeSet::new()).unwrap();
    assert_eq!(found.records().count(), 36, "what is not durable yet is not judged");
}

#[test]
fn damage_is_told() {
    let mut model = model();
    for _ in 0..12 {
        model.append(100);
    }
    model.commit().unwrap();
    let last = model.journal().last();
    let other = quorba_journal::Owner { domain_digest: 1, ..owner() };
    assert!(look_up(disk(&model), other, last, BTreeSet::new()).is_err(), "another domain's");
    let beyond = look_up(disk(&model), owner(), Seq(last.0 + 1), BTreeSet::new()).unwrap();
    assert!(beyond.records().any(|entry| entry.is_err()), "a durable record is missing");
}

#[test]
fn a_segment_that_a_failure_left_behind_is_not_taken_for_the_beginning() {
    // Found by the simulator's `styles` 601032: it had its name, but the log never used it.
    for seed in 0..100 {
        let mut model = Model::new(SimulatedDisk::new(chance(seed)), 1_000);
        model.open(Trust::Whole).unwrap();
        for round in 1..=6 {
            let sync_error = if round % 2 == 0 { 400 } else { 0 };
            model.disk.set_faults(Faults { sync_error, ..Faults::default() });
            for _ in 0..10 {
                model.append(150);
                let _ = model.commit();
            }
            model.disk.set_faults(Faults::default());
            model.commit().unwrap();
            assert!(model.checkpoint(0, 100));
            let last = model.journal().durable();
            let first = model.journal().truncate_before(last).unwrap();
            let found = look_up(disk(&model), owner(), last, BTreeSet::new()).unwrap();
            let seqs: Result<Vec<u64>, _> =
                found.records().map(|entry| entry.map(|entry| entry.seq.0)).collect();
            assert_eq!(seqs.unwrap(), (first.0..=last.0).collect::<Vec<u64>>(), "seed {seed}");
        }
    }
}
