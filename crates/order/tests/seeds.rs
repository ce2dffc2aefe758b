//! Hundreds of random schedules, each a function of its seed.

mod harness;

use harness::scenario;

fn seeds(range: core::ops::Range<u64>) {
    for seed in range {
        println!("seed {seed}");
        scenario::run(seed);
    }
}

#[test]
fn seeds_0_to_100() {
    seeds(0..100);
}

#[test]
fn seeds_100_to_200() {
    seeds(100..200);
}

/// More, on demand: `QUORBA_ORDER_SEEDS=5000..6000 cargo test -p quorba-order --test seeds
/// -- --ignored`.
#[test]
#[ignore = "on demand: more seeds than the tests above"]
fn seeds_from_the_environment() {
    let text = std::env::var("QUORBA_ORDER_SEEDS").expect("FIRST..END");
    let (first, end) = text.split_once("..").expect("FIRST..END");
    seeds(first.parse().expect("a number")..end.parse().expect("a number"));
}
