//! Seeded histories with crashes and faults: what is recovered is always a part of
//! what was appended, from its beginning, with everything that was reported durable; or it is in
//! doubt.

mod harness;

use harness::{Model, Trust, chance};
use quorba_journal::disk::{Disk, Faults, SimulatedDisk};
use quorba_journal::{CommitError, OpenError};

/// The faults of one kind of disk, drawn per seed.
type Draw = fn(&mut dyn FnMut() -> u64) -> Faults;

fn run(seed: u64, draw: Draw, trust: Trust) -> Model {
    let mut next = chance(seed);
    let disk = SimulatedDisk::new(chance(seed ^ 0xd15c));
    let segment_bytes = [600, 3_000, 20_000][(next() % 3) as usize];
    let mut model = Model::new(disk, segment_bytes);
    for _ in 0..4 {
        let faults = draw(&mut next);
        model.disk.set_faults(Faults { capacity_bytes: None, ..faults });
        match model.open(trust) {
            Ok(()) => {
                // The capacity is what is left for the work.
                let used = model.disk.used_bytes();
                let capacity_bytes = faults.capacity_bytes.map(|left| used + left);
                let faults = Faults { capacity_bytes, ..faults };
                model.disk.set_faults(faults);
                work(&mut model, &mut next);
            }
            Err(OpenError::Disk { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        model.disk.set_faults(Faults {
            power_fails_after: None,
            capacity_bytes: None,
            ..draw(&mut next)
        });
        model.crash();
    }
    model.disk.set_faults(Faults::default());
    model.open(trust).unwrap();
    model.append(10);
    model.commit().unwrap();
    model
}

fn work(model: &mut Model, next: &mut impl FnMut() -> u64) {
    for _ in 0..next() % 12 {
        match next() % 16 {
            0 => {
                model.checkpoint(next() % 2, (next() % 3_000) as usize);
            }
            1 => {
                let seq = model.journal().durable();
                let _ = model.journal().truncate_before(seq);
            }
            2 if model.journal().is_doubtful() => {
                let _ = model.journal().trust();
            }
            3 => model.now = model.now + quorba_base::Duration::from_secs(2),
            _ => {
                for _ in 0..1 + next() % 6 {
                    let bytes = [0, 1, 7, 60, 500, 2_000][(next() % 6) as usize];
                    model.append(bytes);
                }
                match model.commit() {
                    Ok(()) => {
                        let last = model.journal().last().0;
                        assert_eq!(model.durable, last);
                    }
                    Err(CommitError::Full(_) | CommitError::Failed(_)) => {}
                }
            }
        }
    }
}

/// Runs the seeds `JOURNAL_SEEDS` (such as `5000` or `600..700`), or a few hundred.
fn runs(what: &str, draw: Draw, trust: Trust) -> (u64, u64) {
    let seeds = std::env::var("JOURNAL_SEEDS").unwrap_or_else(|_| "300".to_string());
    let (from, to) = seeds.split_once("..").unwrap_or(("0", &seeds));
    let (mut doubts, mut unnoticed) = (0, 0);
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        let outcome = std::panic::catch_unwind(|| run(seed, draw, trust));
        let Ok(model) = outcome else { panic!("{what}: seed {seed}") };
        doubts += model.doubts;
        unnoticed += model.unnoticed;
    }
    (doubts, unnoticed)
}

fn power(next: &mut dyn FnMut() -> u64) -> Faults {
    let lost_sector = [0, 1, 100, 900, 1000][(next() % 5) as usize];
    Faults { power_fails_after: Some(next() % 150), lost_sector, ..Faults::default() }
}

#[test]
fn a_crash_at_any_operation_loses_nothing_durable() {
    runs("power", power, Trust::Whole);
}

#[test]
fn torn_sectors_are_torn_tails() {
    fn torn(next: &mut dyn FnMut() -> u64) -> Faults {
        Faults { torn_sector: (next() % 1000) as u32, ..power(next) }
    }
    runs("torn", torn, Trust::WholeOrDoubt);
}

#[test]
fn failed_writes_and_syncs_lose_nothing_durable() {
    fn failing(next: &mut dyn FnMut() -> u64) -> Faults {
        Faults {
            short_write: (next() % 100) as u32,
            write_error: (next() % 100) as u32,
            sync_error: (next() % 100) as u32,
            ..power(next)
        }
    }
    runs("failing", failing, Trust::Whole);
}

#[test]
fn a_full_disk_loses_nothing() {
    fn full(next: &mut dyn FnMut() -> u64) -> Faults {
        let capacity_bytes = Some(next() % 20_000);
        Faults { capacity_bytes, ..power(next) }
    }
    runs("full", full, Trust::Whole);
}

#[test]
fn bit_rot_is_doubt_or_harms_nothing() {
    fn rot(next: &mut dyn FnMut() -> u64) -> Faults {
        Faults { bit_rot: (next() % 300) as u32, ..power(next) }
    }
    let (doubts, _) = runs("rot", rot, Trust::WholeOrDoubt);
    assert!(doubts > 0, "the fault occurs");
}

#[test]
fn a_lying_disk_never_gives_a_wrong_record() {
    fn lying(next: &mut dyn FnMut() -> u64) -> Faults {
        Faults {
            sync_lie: (next() % 100) as u32,
            misdirected: (next() % 100) as u32,
            lost: (next() % 100) as u32,
            bit_rot: (next() % 100) as u32,
            read_error: (next() % 3) as u32,
            ..power(next)
        }
    }
    let (doubts, unnoticed) = runs("lying", lying, Trust::Right);
    assert!(doubts > unnoticed, "{doubts} doubts, {unnoticed} unnoticed");
}

#[test]
fn the_same_seed_gives_the_same_disk_to_the_octet() {
    fn all(next: &mut dyn FnMut() -> u64) -> Faults {
        let chance = (next() % 50) as u32;
        let (misdirected, sync_error, short_write) = (chance, chance, chance);
        Faults { misdirected, sync_error, short_write, torn_sector: 100, ..power(next) }
    }
    for seed in 0..20 {
        let contents = || {
            let disk = run(seed, all, Trust::Right).disk;
            let names = disk.list().unwrap();
            names.into_iter().map(|name| (disk.content(&name), name)).collect::<Vec<_>>()
        };
        assert!(contents() == contents(), "seed {seed}");
    }
}
