//! What is fuzzed: constraints of any octets, and states of any octets.
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise panics.

use alloc::string::ToString;

use crate::constraint;
use crate::evaluate;
use crate::event::Report;

/// A constraint of any octets is refused, or answered for a report, the same twice.
///
/// # Panics
/// If it is not.
pub fn constraint(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let Some(tree) = constraint::read(text) else { return };
    let report = Report {
        domain_id: "d".to_string(),
        location: "n1".to_string(),
        type_id: Some("IDL:T:1.0".to_string()),
        group: Some(7),
        incident: "i".to_string(),
    };
    let event = report.to_event();
    assert_eq!(evaluate::matches(&tree, &event), evaluate::matches(&tree, &event));
    assert_eq!(constraint::read(text), Some(tree), "read alike");
}

/// A state of any octets is refused, or read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn state(input: &[u8]) {
    let Ok(state) = crate::state::read(input) else { return };
    let octets = crate::state::write(&state);
    let again = crate::state::read(&octets);
    assert!(again.as_ref() == Ok(&state), "a state of one is one for others");
    assert_eq!(crate::state::write(&state), octets);
}
