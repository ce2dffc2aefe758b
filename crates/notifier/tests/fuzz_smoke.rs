//! The fuzzer's targets over constraints and states that make sense and mutations of them, the same
//! ones every time.

#[path = "../../giop/tests/dice/mod.rs"]
mod dice;

use dice::Dice;
use quorba_corba::{Home, Local};
use quorba_idl::ft::FaultNotifierStub;
use quorba_notifier::event::Report;
use quorba_notifier::{Limits, NOTIFIER_KEY, Notifier, fuzzing};

const RUNS: usize = 20_000;
const WORDS: [&str; 24] = [
    "$ObjectGroupId",
    "$Location[0].id",
    "$",
    ".header",
    "[0]",
    "(TypeId)",
    "'n1'",
    "7",
    "3.5",
    "TRUE",
    "FALSE",
    "and",
    "or",
    "not",
    "exist",
    "in",
    "==",
    "<",
    "~",
    "+",
    "/",
    "-",
    "(",
    ")",
];

#[test]
fn mutated_constraints_keep_the_promises() {
    let mut dice = Dice(0x00A1_1CE5_0000_0031);
    for _ in 0..RUNS {
        let words: Vec<&str> = (0..dice.roll(12)).map(|_| WORDS[dice.roll(WORDS.len())]).collect();
        let mut input = words.join([" ", ""][dice.roll(2)]).into_bytes();
        if !input.is_empty() && dice.roll(4) == 0 {
            let at = dice.roll(input.len());
            input[at] ^= 1 << dice.roll(8);
        }
        fuzzing::constraint(&input);
    }
}

#[test]
fn mutated_states_keep_the_promises() {
    let home = Home { addresses: vec![("n1".to_owned(), 2811)], prefix: Vec::new() };
    let consumer = home.object("IDL:C:1.0", b"consumer");
    let mut notifier = Notifier::new(home, "d", Limits::default());
    let mut local = Local::new(&mut notifier, NOTIFIER_KEY.as_bytes());
    let mut it = FaultNotifierStub(&mut local);
    let id = it.connect_sequence_fault_consumer(&consumer).expect("connected");
    it.replace_constraint(&id, &Vec::new(), &"$ObjectGroupId == 1".to_owned()).expect("set");
    for number in 1..=3 {
        let report = Report {
            domain_id: "d".to_owned(),
            location: "n1".to_owned(),
            type_id: Some("IDL:T:1.0".to_owned()),
            group: Some(number),
            incident: number.to_string(),
        };
        it.push_structured_fault(&report.to_event()).expect("taken");
    }
    let state = notifier.state();
    fuzzing::state(&state);
    let mut dice = Dice(0x00A1_1CE5_0000_0032);
    for _ in 0..RUNS {
        let mut state = state.clone();
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(state.len());
            state[at] ^= 1 << dice.roll(8);
        }
        fuzzing::state(&state);
    }
}
