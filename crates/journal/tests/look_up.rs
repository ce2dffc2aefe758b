//! The log as the node that writes it sees it.

mod harness;

use harness::{Model, Trust, chance, owner};
use quorba_journal::disk::{Disk, SimulatedDisk};
use quorba_journal::{Seq, look_up};
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
        let found = look_up(disk(&model), owner(), model.journal().last()).unwrap();
        let seqs: Vec<u64> = found.records().map(|entry| entry.unwrap().seq.0).collect();
        assert_eq!(seqs, (1..=12 * boot).collect::<Vec<u64>>());
        model.crash();
        model.open(Trust::Whole).unwrap();
    }
    model.append(100);
    let found = look_up(disk(&model), owner(), Seq(36)).unwrap();
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
    assert!(look_up(disk(&model), other, last).is_err(), "another domain's");
    let beyond = look_up(disk(&model), owner(), Seq(last.0 + 1)).unwrap();
    assert!(beyond.records().any(|entry| entry.is_err()), "a durable record is missing");
}
