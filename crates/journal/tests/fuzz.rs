//! The fuzzer's targets for a short while, with inputs from a generator of its own.

mod harness;
mod targets;

use harness::chance;

#[test]
fn no_octets_of_a_disk_harm_a_decoder() {
    let mut next = chance(0xf022);
    for (_, run) in targets::TARGETS {
        for _ in 0..40_000 {
            let len = (next() % 200) as usize;
            let small = next().is_multiple_of(2);
            let input: Vec<u8> = (0..len)
                .map(|_| {
                    let octet = next().to_le_bytes()[0];
                    if small { octet % 8 } else { octet }
                })
                .collect();
            run(&input);
        }
    }
}
