//! What is fuzzed: values with their types, and requests to objects.
//!
//! Invariant: each function takes any octets, and asserts what has to hold for them.

use quorba_giop::cdr::Reader;
use quorba_giop::{Completion, Endian, Fault, Version};

use crate::any::Any;
use crate::codec::{Cdr, CharSet, Coding, Decoder, Encoder};

/// Reads an `any` in the way that the first octet says.
fn read(input: &[u8]) -> Option<(Any, usize, Endian, Coding)> {
    let (first, rest) = input.split_first()?;
    let endian = Endian::from_bit(first & 1);
    let chars = if first & 2 == 0 { CharSet::Latin1 } else { CharSet::Utf8 };
    let version = match first >> 2 & 3 {
        0 => Version::V1_0,
        1 => Version::V1_1,
        _ => Version::V1_2,
    };
    let coding = Coding { version, chars };
    let at = usize::from(first >> 4 & 7);
    let any = Any::read(&mut Decoder::new(Reader::at(rest, at, endian), coding)).ok()?;
    Some((any, at, endian, coding))
}

fn written(any: &Any, at: usize, endian: Endian, coding: Coding) -> Option<alloc::vec::Vec<u8>> {
    let mut to = Encoder::new(endian, coding);
    (0..at).for_each(|_| to.write(&0_u8));
    to.write(any);
    to.finish(Completion::No).ok()
}

/// An `any` that can be read is passed on as it came, reads as the same wherever it is written,
/// and is written from there as from here.
///
/// # Panics
/// If that does not hold.
pub fn any(input: &[u8]) {
    let Some((any, at, endian, coding)) = read(input) else { return };
    let type_code = any.type_code();
    let _ = (type_code.id(), type_code.is_equivalent(type_code));
    let octets = written(&any, at, endian, coding).expect("written as it came");
    let decoder = |octets| Decoder::new(Reader::at(octets, at, endian), coding);
    let again = Any::read(&mut decoder(&octets)).expect("read as it came");
    assert_eq!(written(&again, at, endian, coding).as_ref(), Some(&octets));
    let wide = Coding { version: Version::V1_2, chars: CharSet::Utf8 };
    for endian in [Endian::Big, Endian::Little] {
        let octets = written(&any, 0, endian, wide).expect("UTF-8 has every character");
        let again = Any::read(&mut Decoder::new(Reader::new(&octets, endian), wide));
        // Steps are counted by octets, and another alignment or version may take fewer of them.
        if again.as_ref().is_err_and(|error| error.fault == Fault::OverLimit) {
            continue;
        }
        let again = again.expect("read elsewhere");
        assert_eq!(written(&again, 0, endian, wide).as_ref(), Some(&octets));
    }
    let mut state = quorba_giop::cdr::Writer::new(Endian::Big);
    any.keep(&mut state);
    let state = state.finish();
    assert_eq!(Any::kept(&mut Reader::new(&state, Endian::Big)), Ok(any));
    let _ = Any::kept(&mut Reader::new(input, Endian::Big));
}

/// Only reads it, so that what that costs can be measured; whether it is one.
#[must_use]
pub fn decode_any(input: &[u8]) -> bool {
    read(input).is_some()
}
