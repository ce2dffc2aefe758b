//! Random joins, leaves, deaths and messages over rings that break and merge: each seed draws its
//! own mix. `QUORBA_GROUPS_SEEDS=0..5000` for more.

mod stage;

use quorba_groups::{GroupNumber, ProcessNumber};
use stage::Stage;
use stage::harness::{Faults, ms, us};

fn act(stage: &mut Stage, live: &mut [Vec<(ProcessNumber, Vec<GroupNumber>)>]) {
    let count = stage.net.count as u64;
    let index = stage.net.rng.below(count) as usize;
    match stage.net.rng.below(100) {
        0..3 if stage.net.is_up(index) => {
            stage.net.crash(index);
            live[index].clear();
            if stage.net.rng.per_mille(500) {
                stage.net.report_lost(index);
            }
        }
        3..9 if !stage.net.is_up(index) => {
            stage.net.boot(index);
            stage.pump();
        }
        9..11 if stage.net.is_up(index) => {
            let until = stage.net.now + [ms(20), ms(80), ms(300)][stage.net.rng.below(3) as usize];
            stage.net.pause(index, until);
        }
        11..16 => {
            let side = stage.net.rng.next();
            stage.net.partition(side);
        }
        16..22 => stage.net.heal(),
        _ if !stage.net.is_up(index) || stage.net.is_paused(index) => {}
        22..40 => {
            if live[index].len() < 4 {
                let process = stage.process(index);
                live[index].push((process, Vec::new()));
            }
            let which = stage.net.rng.below(live[index].len() as u64) as usize;
            let group = format!("g{}", stage.net.rng.below(6));
            let process = live[index][which].0;
            if let Ok(number) = stage.join(index, process, &group) {
                live[index][which].1.push(number);
            }
        }
        choice if !live[index].is_empty() => {
            let which = stage.net.rng.below(live[index].len() as u64) as usize;
            let (process, groups) = live[index][which].clone();
            if choice < 43 {
                stage.gone(index, process);
                live[index].swap_remove(which);
            } else if let Some(group) =
                groups.get(stage.net.rng.below(groups.len().max(1) as u64) as usize)
            {
                if choice < 50 {
                    stage.leave(index, process, *group);
                    live[index][which].1.retain(|known| known != group);
                } else {
                    for _ in 0..=stage.net.rng.below(5) {
                        let _ = stage.send(index, process, *group);
                    }
                }
            }
        }
        _ => {}
    }
}

fn run(seed: u64) {
    let count = 1 + (seed % 5) as usize;
    let mut stage = Stage::new(count, seed);
    let mut live = vec![Vec::new(); count];
    let loss = [0, 0, 30, 100][stage.net.rng.below(4) as usize];
    stage.net.faults = Faults { loss, ..Faults::default() };
    for _ in 0..60 + stage.net.rng.below(100) {
        act(&mut stage, &mut live);
        let pause = [300, 3_000, 20_000, 150_000][stage.net.rng.below(4) as usize];
        let pause = stage.net.rng.below(pause);
        stage.run_for(us(pause));
    }
    stage.check_safety();
    stage.net.faults = Faults::default();
    stage.net.heal();
    for index in 0..count {
        if !stage.net.is_up(index) {
            stage.net.boot(index);
        }
    }
    stage.until_settled();
    stage.check_settled();
}

fn seeds(range: core::ops::Range<u64>) {
    for seed in range {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed} fails");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn seeds_0_to_150() {
    seeds(0..150);
}

#[test]
fn seeds_150_to_300() {
    seeds(150..300);
}

#[test]
#[ignore = "on demand: more seeds than the tests above"]
fn seeds_from_the_environment() {
    let range = std::env::var("QUORBA_GROUPS_SEEDS").expect("FIRST..END");
    let (from, to) = range.split_once("..").expect("like 0..5000");
    seeds(from.parse().expect("a number")..to.parse().expect("a number"));
}
