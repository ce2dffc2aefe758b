//! The fuzzer's targets over calls that make sense and mutations of them, the same ones every time.

#[path = "../../giop/tests/dice/mod.rs"]
mod dice;

use dice::Dice;
use quorba_naming::fuzzing;

const RUNS: usize = 10_000;

/// A call: operation, object and byte order, arguments.
fn call(operation: u8, place: u8, arguments: &[u8]) -> Vec<u8> {
    let length = u8::try_from(arguments.len()).expect("short");
    [&[operation, place, length], arguments].concat()
}

/// A name of components of one letter, and a reference to nothing behind it, big-endian.
fn name(letters: &[u8]) -> Vec<u8> {
    let mut name = u32::try_from(letters.len()).expect("short").to_be_bytes().to_vec();
    for letter in letters {
        name.extend([0, 0, 0, 2, *letter, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
    name.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    name
}

#[test]
fn mutated_calls_and_states_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0001);
    let letters = b"abc";
    for _ in 0..RUNS {
        let mut input = Vec::new();
        for _ in 0..1 + dice.roll(40) {
            let depth = 1 + dice.roll(3);
            let path: Vec<u8> = (0..depth).map(|_| letters[dice.roll(3)]).collect();
            let any = u8::try_from(dice.roll(20)).expect("few");
            // Binding and listing, more often than the others.
            let operation = [any, any, 0, 9][dice.roll(4)];
            let place = [0, 0, 0, 8, 10, 26, 12, 28][dice.roll(8)];
            let how_many = u8::try_from(dice.roll(3)).expect("few");
            // `list` and `next_n` have a number.
            let is_number = matches!(operation, 9 | 15) || dice.roll(9) == 0;
            let arguments = if is_number { vec![0, 0, 0, how_many] } else { name(&path) };
            input.extend(call(operation, place, &arguments));
        }
        if dice.roll(2) == 0 {
            let at = dice.roll(input.len());
            input[at] ^= 1 << dice.roll(8);
        }
        let checked = std::panic::catch_unwind(|| fuzzing::calls(&input));
        assert!(checked.is_ok(), "calls {input:02x?}");
        fuzzing::state(&input);
    }
}
