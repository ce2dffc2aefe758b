//! Random schedules of faults: each seed draws its own mix.

use super::{Faults, Net, Rng, check, ms, us};
use quorba_order::Guarantee;

/// What a schedule may contain.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub nodes: usize,
    pub steps: u64,
    pub accelerated: bool,
    pub encrypt: bool,
    pub datagram: usize,
    pub loss: u64,
    pub duplicate: u64,
    pub slow: u64,
    pub crashes: bool,
    pub pauses: bool,
    pub partitions: bool,
    pub one_way: bool,
    pub safe: u64,
    pub big: u64,
    pub burst: u64,
}

impl Mix {
    pub fn draw(rng: &mut Rng) -> Self {
        let mut flag = |chance| rng.per_mille(chance);
        let (accelerated, encrypt) = (flag(400), flag(150));
        let (crashes, pauses) = (flag(500), flag(300));
        let (partitions, one_way) = (flag(500), flag(250));
        let (lossy, dup, slow) = (flag(500), flag(300), flag(400));
        Self {
            nodes: 1 + rng.below(6) as usize,
            steps: 30 + rng.below(60),
            accelerated,
            encrypt,
            datagram: [1400, 1400, 9000, 65_000][rng.below(4) as usize],
            loss: if lossy { rng.below(150) } else { 0 },
            duplicate: if dup { rng.below(200) } else { 0 },
            slow: if slow { rng.below(100) } else { 0 },
            crashes,
            pauses,
            partitions,
            one_way,
            safe: [0, 100, 500, 1000][rng.below(4) as usize],
            big: [0, 0, 20, 100][rng.below(4) as usize],
            burst: [1, 3, 30, 300][rng.below(4) as usize],
        }
    }
}

fn act(net: &mut Net, mix: &Mix) {
    let index = net.rng.below(net.count as u64) as usize;
    match net.rng.below(100) {
        0..4 if mix.crashes && net.is_up(index) => {
            net.crash(index);
            if net.rng.per_mille(500) {
                net.report_lost(index);
            }
        }
        4..10 if mix.crashes && !net.is_up(index) => net.boot(index),
        10..13 if mix.pauses && net.is_up(index) => {
            let pause = [ms(20), ms(80), ms(200), ms(700)][net.rng.below(4) as usize];
            let until = net.now + pause;
            net.pause(index, until);
        }
        13..16 if mix.partitions => {
            let side = net.rng.next();
            net.partition(side);
        }
        16..20 if mix.partitions || mix.one_way => net.heal(),
        20..22 if mix.one_way && net.count > 1 => {
            let other = (index + 1 + net.rng.below(net.count as u64 - 1) as usize) % net.count;
            net.cut[index][other] = true;
            if net.rng.per_mille(500) {
                net.cut[other][index] = true;
            }
        }
        _ => {
            if !net.is_up(index) {
                return;
            }
            for _ in 0..1 + net.rng.below(mix.burst) {
                let bytes = if net.rng.per_mille(mix.big) {
                    net.rng.below(60_000)
                } else {
                    net.rng.below(600)
                };
                let safe = net.rng.per_mille(mix.safe);
                let guarantee = if safe { Guarantee::Safe } else { Guarantee::Agreed };
                net.submit(index, bytes as usize, guarantee);
            }
            if !net.is_paused(index) {
                net.drain(index);
            }
        }
    }
}

/// One whole run: faults, then peace; everything must hold in both.
pub fn run(seed: u64) -> Net {
    let mut rng = Rng(seed ^ 0x5eed);
    let mix = Mix::draw(&mut rng);
    run_mix(seed, mix)
}

pub fn run_mix(seed: u64, mix: Mix) -> Net {
    let mut net = Net::with_config(mix.nodes, seed, move |_, config| {
        config.accelerated = mix.accelerated;
        config.encrypt = mix.encrypt;
        config.datagram_bytes_max = mix.datagram;
    });
    net.faults =
        Faults { loss: mix.loss, duplicate: mix.duplicate, slow: mix.slow, ..Faults::default() };
    for _ in 0..mix.steps {
        act(&mut net, &mix);
        let pause = [200, 2_000, 20_000, 100_000][net.rng.below(4) as usize];
        let pause = net.rng.below(pause);
        net.run_for(us(pause));
    }
    net.faults = Faults::default();
    net.heal();
    for index in 0..net.count {
        if !net.is_up(index) {
            net.boot(index);
        }
    }
    let whole = net.run_till(ms(15_000), |net| {
        let awake = (0..net.count).all(|index| !net.is_paused(index));
        awake && net.is_whole() && net.is_drained()
    });
    if !whole {
        for index in 0..net.count {
            eprintln!("{index}: {:#?}", net.snapshot(index));
        }
        check::safety(&net);
        panic!("not one settled ring after 15 s of peace: {mix:?}");
    }
    // Long enough for the last acknowledgements to go round.
    net.run_for(ms(200));
    check::settled(&net);
    net
}
