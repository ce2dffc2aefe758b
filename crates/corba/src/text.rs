//! Strings, narrow and wide.
//!
//! Invariants: a string has no zero in it; what cannot be written in the connection's code set is
//! reported (DATA_CONVERSION), and never replaced.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

use quorba_giop::{ExceptionKind, Fault, MessageError, Version};

use crate::codec::{Cdr, CharSet, Decoder, Encoder};
use crate::typecode::{TypeCode, Typed};

impl Cdr for String {
    // The length; its terminating zero is not always sent.
    const BYTES_MIN: usize = 4;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        let offset = from.reader().position();
        let chars = from.coding().chars;
        let octets = from.reader().read_string(usize::MAX - 1, "string")?;
        let fault = MessageError { what: "string", offset, fault: Fault::Value };
        if octets.contains(&0) {
            return Err(fault);
        }
        match chars {
            CharSet::Latin1 => Ok(octets.iter().map(|octet| char::from(*octet)).collect()),
            CharSet::Utf8 => core::str::from_utf8(octets).map(Self::from).map_err(|_| fault),
        }
    }

    fn write(&self, to: &mut Encoder) {
        write_str(self, to);
    }
}

fn write_str(text: &str, to: &mut Encoder) {
    if text.contains('\0') {
        return to.fail(ExceptionKind::BadParam);
    }
    if to.coding().chars == CharSet::Utf8 || text.is_ascii() {
        return to.writer().write_string(text.as_bytes());
    }
    match text.chars().map(|char| u8::try_from(char).ok()).collect::<Option<Vec<u8>>>() {
        Some(octets) => to.writer().write_string(&octets),
        None => to.fail(ExceptionKind::DataConversion),
    }
}

impl Typed for String {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::string(0)
    }
}

/// A `string<N>`: at most N characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct BoundedString<const N: usize>(String);

impl<const N: usize> BoundedString<N> {
    /// The text, if it is not too long.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        (text.chars().count() <= N).then_some(Self(text))
    }
}

impl<const N: usize> Deref for BoundedString<N> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> Cdr for BoundedString<N> {
    const BYTES_MIN: usize = 4;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        let offset = from.reader().position();
        let fault = MessageError { what: "string", offset, fault: Fault::OverLimit };
        Self::new(from.read()?).ok_or(fault)
    }

    fn write(&self, to: &mut Encoder) {
        self.0.write(to);
    }
}

impl<const N: usize> Typed for BoundedString<N> {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::string(u32::try_from(N).unwrap_or(u32::MAX))
    }
}

/// A `wstring`: units of UTF-16, which need not make up characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct WString(pub Vec<u16>);

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl core::fmt::Display for WString {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&String::from_utf16_lossy(&self.0))
    }
}

impl Cdr for WString {
    const BYTES_MIN: usize = 4;

    /// Before GIOP 1.2: a count of characters, a zero among them, each in the message's byte
    /// order. Since: a count of octets, no zero, UTF-16 that is big-endian without a mark
    /// (GIOP §15.3.2.7).
    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        let offset = from.reader().position();
        let unterminated = MessageError { what: "wstring", offset, fault: Fault::Unterminated };
        if from.coding().version < Version::V1_2 {
            let mut units: Vec<u16> = from.read()?;
            return match units.pop() {
                None | Some(0) => Ok(Self(units)),
                Some(_) => Err(unterminated),
            };
        }
        let octets = from.reader().read_octets(usize::MAX, "wstring")?;
        let (octets, little) = match octets {
            [0xfe, 0xff, rest @ ..] => (rest, false),
            [0xff, 0xfe, rest @ ..] => (rest, true),
            rest => (rest, false),
        };
        let (pairs, rest) = octets.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(MessageError { what: "wstring", offset, fault: Fault::Value });
        }
        let unit = |pair: &[u8; 2]| match little {
            true => u16::from_le_bytes(*pair),
            false => u16::from_be_bytes(*pair),
        };
        Ok(Self(pairs.iter().map(unit).collect()))
    }

    fn write(&self, to: &mut Encoder) {
        if to.coding().version < Version::V1_2 {
            to.writer().write_count(self.0.len() + 1);
            self.0.iter().for_each(|unit| to.writer().write_u16(*unit));
            return to.writer().write_u16(0);
        }
        // What looks like a mark but is text needs one before it.
        let marked = matches!(self.0.first(), Some(0xfeff | 0xfffe));
        to.writer().write_count(2 * (self.0.len() + usize::from(marked)));
        if marked {
            to.writer().write_raw(&[0xfe, 0xff]);
        }
        self.0.iter().for_each(|unit| to.writer().write_raw(&unit.to_be_bytes()));
    }
}

impl Typed for WString {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::wstring(0)
    }
}
