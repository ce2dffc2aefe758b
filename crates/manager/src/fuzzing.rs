//! What is fuzzed: criteria and properties of any octets, and states of any octets.
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise panics.

use quorba_corba::giop::cdr::Reader;
use quorba_corba::giop::{Endian, Version};
use quorba_corba::{Coding, Decoder};
use quorba_idl::ft::Properties;

use crate::criteria;
use crate::property::{self, Flavour, Level, ORDER};

/// Criteria of any octets are refused, or read; what is read as properties is the same after it
/// was said in either form and read again, and after it was written into a state.
///
/// # Panics
/// If it is not.
pub fn criteria(input: &[u8]) {
    let [order, input @ ..] = input else { return };
    let reader = Reader::new(input, Endian::from_bit(order & 1));
    let mut from = Decoder::new(reader, Coding::plain(Version::V1_2));
    let Ok(criteria) = from.read::<Properties>() else { return };
    let properties = match criteria::read(&criteria) {
        Ok(wanted) => wanted.properties,
        Err(_) => criteria,
    };
    for level in [Level::Default, Level::Type, Level::Creation, Level::Dynamic] {
        let Ok(values) = property::read(&properties, level) else { continue };
        for flavour in [Flavour::Omg, Flavour::Tao] {
            let said = property::said(&values, flavour);
            assert_eq!(property::read(&said, level).as_ref(), Ok(&values));
        }
        let mut state = quorba_corba::giop::cdr::Writer::new(ORDER);
        property::keep(&values, &mut state);
        let octets = state.finish();
        assert_eq!(property::kept(&mut Reader::new(&octets, ORDER)).as_ref(), Ok(&values));
    }
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
