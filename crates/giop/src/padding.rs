//! Octets of a body that only align what follows, as far as they can be told from values without
//! the IDL: those behind texts.
//!
//! What it is not: certain. CDR aligns values (GIOP §15.3.1), some ORBs leave what is skipped as it
//! was in memory, and what a word stands for nobody knows here. A length, so many octets without a
//! control character, and a NUL at their end are taken for a text. Padding behind a boolean, a
//! character, a short number or a sequence of octets looks like a part of a number, so it is left
//! alone: who ignores padding has rather one difference too many than one too few.
//!
//! Invariants: what is found depends on no octet that is found, so that two bodies which differ in
//! padding behind texts only have equal [`cleared`] bodies; the time is linear in the length.

use crate::cdr::Reader;
use crate::version::Endian;
use alloc::vec::Vec;
use core::ops::Range;

/// Texts are followed by padding up to a multiple of this, before lengths and most numbers.
const WORD_BYTES: usize = 4;
/// The length of an empty text: its NUL.
const EMPTY: usize = 1;

/// The body of a message, which begins at `from`, with zeros where padding seems to be.
#[must_use]
pub fn cleared(message: &[u8], from: usize, endian: Endian) -> Vec<u8> {
    let mut body = message.get(from..).unwrap_or_default().to_vec();
    for padding in behind_texts(message, from, endian) {
        let padding = padding.start.saturating_sub(from)..padding.end.saturating_sub(from);
        body.get_mut(padding).unwrap_or_default().fill(0);
    }
    body
}

/// Whether something else than zeros stands where padding seems to be.
#[must_use]
pub fn is_uncleared(message: &[u8], from: usize, endian: Endian) -> bool {
    let mut found = behind_texts(message, from, endian).into_iter();
    found.any(|at| message.get(at).unwrap_or_default().iter().any(|octet| *octet != 0))
}

/// Where padding seems to be, from the start of the message, in its order.
fn behind_texts(message: &[u8], from: usize, endian: Endian) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let Some(mut at) = from.checked_next_multiple_of(WORD_BYTES) else { return found };
    // A text ends here.
    let mut is_behind_text = false;
    while let Some(length) = length(message, at, endian) {
        if length > EMPTY && is_text(message, at, length) {
            at = skip(message, at, length, &mut found);
            is_behind_text = true;
            continue;
        }
        // A one and a number that is a multiple of 256 look like an empty text; between texts they
        // are taken for one.
        match is_behind_text.then(|| empty_texts(message, at, endian)).flatten() {
            Some(behind) => {
                while at < behind {
                    at = skip(message, at, EMPTY, &mut found);
                }
            }
            None => {
                is_behind_text = false;
                at += WORD_BYTES;
            }
        }
    }
    found
}

/// What stands there as if it were a length.
fn length(message: &[u8], at: usize, endian: Endian) -> Option<usize> {
    usize::try_from(Reader::at(message, at, endian).read_u32("length").ok()?).ok()
}

/// Whether a text of this length, with its NUL, follows its length at `at`.
fn is_text(message: &[u8], at: usize, length: usize) -> bool {
    let begin = at + WORD_BYTES;
    let octets = begin.checked_add(length).and_then(|end| message.get(begin..end));
    let Some((0, text)) = octets.and_then(<[u8]>::split_last) else { return false };
    let is_character = |octet: &u8| !octet.is_ascii_control() || b"\t\n\r".contains(octet);
    text.iter().all(is_character)
}

/// Goes behind the text at `at` and its padding, and notes that.
fn skip(message: &[u8], at: usize, length: usize, found: &mut Vec<Range<usize>>) -> usize {
    let end = at + WORD_BYTES + length;
    let next = end.next_multiple_of(WORD_BYTES);
    let padding = end..next.min(message.len());
    if !padding.is_empty() {
        found.push(padding);
    }
    next
}

/// Where empty texts end that begin at `at`, if a longer one follows.
fn empty_texts(message: &[u8], mut at: usize, endian: Endian) -> Option<usize> {
    let begin = at;
    loop {
        let length = length(message, at, endian)?;
        if length != EMPTY || !is_text(message, at, EMPTY) {
            return (at > begin && length > EMPTY && is_text(message, at, length)).then_some(at);
        }
        at += 2 * WORD_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::Writer;
    use alloc::vec;

    const ENDIANS: [Endian; 2] = [Endian::Big, Endian::Little];

    enum Value {
        Text(&'static str),
        Long(u32),
        Bool(bool),
        Float(f32),
        Octets(&'static [u8]),
    }
    use Value::{Bool, Float, Long, Octets, Text};

    /// As an ORB writes it that leaves `fill` where nothing is written.
    fn body(values: &[Value], fill: u8, endian: Endian) -> Vec<u8> {
        let mut out = Writer::new(endian);
        for value in values {
            if !matches!(value, Bool(_)) {
                while !out.position().is_multiple_of(WORD_BYTES) {
                    out.write_raw(&[fill]);
                }
            }
            match value {
                Text(text) => out.write_string(text.as_bytes()),
                Long(number) => out.write_u32(*number),
                Float(number) => out.write_u32(number.to_bits()),
                Bool(truth) => out.write_bool(*truth),
                Octets(octets) => out.write_octets(octets),
            }
        }
        out.finish()
    }

    fn is_alike(one: &[Value], other: &[Value]) -> bool {
        let of = |values, fill, endian| cleared(&body(values, fill, endian), 0, endian);
        let alike = ENDIANS.map(|endian| of(one, 0xcd, endian) == of(other, 0x00, endian));
        assert_eq!(alike[0], alike[1], "whatever the byte order");
        alike[0]
    }

    #[test]
    fn what_stands_behind_texts_does_not_count() {
        assert!(is_alike(&[Text("a"), Long(7)], &[Text("a"), Long(7)]));
        assert!(is_alike(
            &[Long(3), Text("sys/tg/1"), Text("b"), Long(0)],
            &[Long(3), Text("sys/tg/1"), Text("b"), Long(0)]
        ));
        let config = || [Text("unit"), Text(""), Text(""), Text("No unit"), Long(1)];
        assert!(is_alike(&config(), &config()));
        let read = body(&[Text("a"), Long(7)], 0xcd, Endian::Little);
        assert!(is_uncleared(&read, 0, Endian::Little));
        assert!(!is_uncleared(&body(&[Text("a"), Long(7)], 0, Endian::Big), 0, Endian::Big));
    }

    #[test]
    fn values_count() {
        let differ = |one: &[Value], other: &[Value]| assert!(!is_alike(one, other));
        differ(&[Text("a"), Long(7)], &[Text("a"), Long(8)]);
        differ(&[Text("a"), Long(7)], &[Text("b"), Long(7)]);
        differ(&[Text("alice"), Long(7)], &[Text("alfce"), Long(7)]);
        differ(&[Long(1), Float(1.0)], &[Long(1), Float(2.0)]);
        differ(&[Text("x"), Long(1), Float(1.0)], &[Text("x"), Long(1), Float(2.0)]);
        differ(&[Long(1), Long(256)], &[Long(1), Long(512)]);
        differ(&[Bool(true), Long(1)], &[Bool(false), Long(1)]);
        differ(&[Octets(b"abc\0"), Long(1)], &[Octets(b"abd\0"), Long(1)]);
        differ(&[Text("a")], &[Text("a"), Long(0)]);
    }

    #[test]
    fn what_cannot_be_told_from_a_value_counts() {
        assert!(!is_alike(&[Bool(true), Long(7)], &[Bool(true), Long(7)]));
        assert!(!is_alike(&[Octets(&[1]), Long(7)], &[Octets(&[1]), Long(7)]));
        assert!(!is_alike(&[Text(""), Long(7)], &[Text(""), Long(7)]));
    }

    #[test]
    fn a_body_behind_a_header_is_aligned_from_the_start_of_the_message() {
        let endian = Endian::Little;
        let message =
            |fill| [vec![b'x'; 20], body(&[Text("a"), Text("bc"), Long(1)], fill, endian)].concat();
        assert_eq!(cleared(&message(9), 20, endian), cleared(&message(0), 20, endian));
        assert_eq!(cleared(&message(9), 20, endian).len(), message(9).len() - 20);
        assert_eq!(cleared(&message(9), 999, endian), vec![0; 0]);
        assert_eq!(cleared(&[], usize::MAX, endian), vec![0; 0]);
    }

    /// Clearing twice changes nothing more, so what is found does not depend on what is cleared.
    #[test]
    fn any_octets_are_cleared_once_and_for_all() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (state >> 56) as u8
        };
        for _ in 0..20_000 {
            let length = usize::from(next()) % 64;
            let draw = |next: &mut dyn FnMut() -> u8| [0, 0, 1, 2, 3, 5, b'a', next()];
            let mut octets = Vec::new();
            while octets.len() < length {
                let choice = usize::from(next() % 8);
                octets.push(draw(&mut next)[choice]);
            }
            let from = usize::from(next() % 9);
            for endian in ENDIANS {
                let once = cleared(&octets, from, endian);
                let mut whole = octets.clone();
                whole.truncate(from);
                whole.extend(&once);
                assert_eq!(cleared(&whole, from, endian), once);
                assert!(!is_uncleared(&whole, from, endian));
                for padding in behind_texts(&octets, from, endian) {
                    whole[padding].fill_with(&mut next);
                }
                assert_eq!(cleared(&whole, from, endian), once);
            }
        }
    }
}
