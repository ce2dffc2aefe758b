//! Small logs, exhaustively: cut at every octet, every subset of sectors, every crash point, bits
//! of every octet.

mod harness;

use harness::{Model, Trust, chance, owner, record};
use quorba_base::Duration;
use quorba_journal::disk::{Faults, SimulatedDisk, Survival};
use quorba_journal::{Cause, Found, Journal, Opened, Options, Stored};
use std::sync::Arc;

const SEGMENT: &str = "log-0000000001.seg";

/// Two batches that are durable, and a third that is written and not synced.
fn three_batches(sizes: &[usize]) -> Model {
    let disk = SimulatedDisk::new(chance(1));
    let mut model = Model::new(disk.clone(), 1 << 20);
    model.open(Trust::Whole).unwrap();
    for _ in 0..2 {
        for bytes in [5, 40] {
            model.append(bytes);
        }
        model.commit().unwrap();
    }
    for bytes in sizes {
        model.append(*bytes);
    }
    // The write is the commit's first operation that changes something, the sync its second.
    disk.set_faults(Faults { power_fails_after: Some(1), ..Faults::default() });
    model.commit().unwrap_err();
    assert_eq!(model.durable, 4);
    model
}

/// The same log after a crash, to be opened.
fn after(model: &Model, disk: SimulatedDisk) -> Model {
    let mut next = Model::new(disk, 1 << 20);
    next.appended.clone_from(&model.appended);
    next.durable = model.durable;
    // The model's first boot was number 1.
    let _ = next.options();
    next
}

fn restarted(model: &Model) -> SimulatedDisk {
    model.disk.fork(chance(2)).crash_keeping(|_, _| Survival::Whole)
}

fn opens_and_goes_on(mut model: Model, trust: Trust) -> u64 {
    model.open(trust).unwrap();
    let last = model.durable;
    model.append(33);
    model.commit().unwrap();
    model.crash();
    model.open(trust).unwrap();
    last
}

#[test]
fn every_cut_of_the_last_batch_is_a_torn_tail() {
    let model = three_batches(&[0, 3, 700, 20]);
    let content = restarted(&model).content(SEGMENT).unwrap();
    let whole = content.len();
    let start = durable_bytes(&model);
    let mut seen = std::collections::BTreeSet::new();
    for cut in start..=whole {
        // The file ends there.
        let disk = restarted(&model);
        disk.damage(SEGMENT, Some(content[..cut].to_vec()));
        let last = opens_and_goes_on(after(&model, disk), Trust::Whole);
        // The rest reads as zeros.
        let mut blank = content.clone();
        blank[cut..].fill(0);
        let disk = restarted(&model);
        disk.damage(SEGMENT, Some(blank));
        assert_eq!(opens_and_goes_on(after(&model, disk), Trust::Whole), last);
        seen.insert(last);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [4, 5, 6, 7, 8]);
}

/// Octets of the segment that are durable, in a log of `three_batches`.
fn durable_bytes(model: &Model) -> usize {
    let disk = model.disk.fork(chance(3)).crash_keeping(|_, _| Survival::Lost);
    disk.content(SEGMENT).unwrap().len()
}

#[test]
fn every_subset_of_the_last_batchs_sectors_is_a_torn_tail() {
    let model = three_batches(&[300, 700, 0, 1_000, 1_200, 90]);
    let sectors = model.disk.unsynced(SEGMENT);
    assert!(sectors.len() >= 7, "{sectors:?}");
    for subset in 0u32..1 << sectors.len() {
        let disk = model.disk.fork(chance(4)).crash_keeping(|_, sector| {
            let index = sectors.iter().position(|one| *one == sector).unwrap();
            if subset >> index & 1 == 1 { Survival::Whole } else { Survival::Lost }
        });
        opens_and_goes_on(after(&model, disk), Trust::Whole);
    }
}

#[test]
fn a_crash_at_every_operation_loses_nothing_durable() {
    for operations in 0..400 {
        let disk = SimulatedDisk::new(chance(operations));
        let mut model = Model::new(disk.clone(), 900);
        disk.set_faults(Faults { power_fails_after: Some(operations), ..Faults::default() });
        if model.open(Trust::Whole).is_ok() {
            for step in 0..12 {
                model.append(100 + step * 30);
                let _ = model.commit();
                if step % 5 == 4 && model.checkpoint(1, 3_000) {
                    let durable = model.journal().durable();
                    let _ = model.journal().truncate_before(durable);
                }
            }
        }
        model.crash();
        model.open(Trust::Whole).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_any_octet_below_the_watermark_is_damage_and_named() {
    let mut model = three_batches(&[10]);
    model.disk = restarted(&model);
    let content = model.disk.content(SEGMENT).unwrap();
    // Records 1 and 2 are below the watermark that records 3 and 4 carry.
    let [first, second] = [64, 64 + record(1, 1, 5).bytes()];
    let third = second + record(1, 2, 40).bytes();
    for at in 64..third {
        for bit in [at % 8, (at + 5) % 8] {
            let mut damaged = content.clone();
            damaged[at] ^= 1 << bit;
            let disk = restarted(&model);
            disk.damage(SEGMENT, Some(damaged));
            let Opened { recovered, .. } =
                Journal::open(Arc::new(disk), Options::new(owner(), 9, 9)).unwrap();
            let Found::Doubtful { damage } = recovered else { panic!("octet {at} bit {bit}") };
            assert_eq!(damage.file, SEGMENT);
            let expected = if at < second { (1, first) } else { (2, second) };
            assert_eq!(damage.seq.unwrap().0, expected.0);
            assert_eq!(damage.offset.unwrap(), expected.1 as u64);
            assert!(matches!(damage.cause, Cause::Record { .. }), "{damage}");
        }
    }
}

/// Six batches of one record each, all reported durable; the metadata do not know it yet.
fn six_durable(bytes: usize) -> Model {
    let mut model = Model::new(SimulatedDisk::new(chance(1)), 1 << 20);
    model.pace = Duration::ZERO;
    model.open(Trust::Whole).unwrap();
    for _ in 0..6 {
        model.append(bytes);
        model.commit().unwrap();
    }
    model
}

#[test]
fn a_flipped_bit_in_any_octet_of_a_durable_segment_is_doubt() {
    let model = six_durable(30);
    let content = model.disk.content(SEGMENT).unwrap();
    // Also in the last record, whose watermark is nowhere: it is whole, and not what was written.
    for at in 0..content.len() {
        for bit in [at % 8, (at + 5) % 8] {
            let mut damaged = content.clone();
            damaged[at] ^= 1 << bit;
            let disk = restarted(&model);
            disk.damage(SEGMENT, Some(damaged));
            let mut after = after(&model, disk);
            after.open(Trust::WholeOrDoubt).unwrap();
            assert!(after.doubts == 1, "octet {at} bit {bit}");
        }
    }
}

#[test]
fn flipped_bits_and_blank_sectors_of_the_metadata_are_doubt_or_harm_nothing() {
    let model = six_durable(30);
    let content = model.disk.content("meta.redb").unwrap();
    let written: Vec<usize> = (0..content.len()).filter(|at| content[*at] != 0).collect();
    let mut next = chance(5);
    for _ in 0..400 {
        let mut damaged = content.clone();
        let at = written[next() as usize % written.len()];
        if next().is_multiple_of(4) {
            damaged[at / 512 * 512..][..512].fill(0);
        } else {
            damaged[at] ^= 1 << (next() % 8);
        }
        let disk = restarted(&model);
        disk.damage("meta.redb", Some(damaged));
        after(&model, disk).open(Trust::WholeOrDoubt).unwrap();
    }
}

#[test]
fn every_blank_sector_below_the_watermark_is_damage() {
    let model = six_durable(400);
    let content = model.disk.content(SEGMENT).unwrap();
    // The last record of all is the only one whose watermark is nowhere.
    let last = content.len() - record(1, 6, 400).bytes();
    for sector in 0..last / 512 {
        let mut damaged = content.clone();
        damaged[sector * 512..(sector + 1) * 512].fill(0);
        let disk = restarted(&model);
        disk.damage(SEGMENT, Some(damaged));
        let mut after = after(&model, disk);
        after.open(Trust::WholeOrDoubt).unwrap();
        assert_eq!(after.doubts, 1, "sector {sector}");
    }
}
