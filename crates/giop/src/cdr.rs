//! Common Data Representation (GIOP §15.3), both byte orders.
//!
//! Alignment counts from the start of the message or encapsulation, so position is a value here.
//! Invariant: a reader hands out only what is there; a writer pads with zeros.

use crate::error::{Fault, MessageError};
use crate::version::Endian;
use alloc::vec::Vec;

/// Reads values; `position` counts from where alignment begins.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    endian: Endian,
}

macro_rules! read_number {
    ($name:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        ///
        /// # Errors
        /// If it goes beyond the end.
        pub fn $name(&mut self, what: &'static str) -> Result<$type, MessageError> {
            let raw = self.array::<{ size_of::<$type>() }>(what)?;
            Ok(match self.endian {
                Endian::Big => <$type>::from_be_bytes(raw),
                Endian::Little => <$type>::from_le_bytes(raw),
            })
        }
    };
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    #[must_use]
    pub const fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self { bytes, position: 0, endian }
    }

    /// Reads `bytes` from `position`; alignment counts from the start of `bytes`.
    #[must_use]
    pub const fn at(bytes: &'a [u8], position: usize, endian: Endian) -> Self {
        Self { bytes, position, endian }
    }

    /// A reader of an encapsulation (GIOP §15.3.3): the first octet says the byte order.
    ///
    /// # Errors
    /// If there is no first octet, or it is neither 0 nor 1.
    pub fn encapsulation(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Self::new(bytes, Endian::Big);
        match reader.read_u8("byte order")? {
            octet @ (0 | 1) => Ok(Self { endian: Endian::from_bit(octet), ..reader }),
            _ => Err(MessageError { what: "byte order", offset: 0, fault: Fault::Value }),
        }
    }

    /// Where the next value is looked for, before alignment.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The byte order.
    #[must_use]
    pub const fn endian(&self) -> Endian {
        self.endian
    }

    /// Bytes that are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// Skips padding up to a multiple of `alignment` (1, 2, 4 or 8).
    pub const fn align(&mut self, alignment: usize) {
        self.position = self.position.next_multiple_of(alignment);
    }

    const fn error(&self, what: &'static str, fault: Fault) -> MessageError {
        MessageError { what, offset: self.position, fault }
    }

    /// That what was read last is no value of its kind.
    #[must_use]
    pub const fn wrong(&self, what: &'static str) -> MessageError {
        self.error(what, Fault::Value)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If they go beyond the end.
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], MessageError> {
        let short = self.error(what, Fault::Short);
        let end = self.position.checked_add(count).ok_or(short)?;
        let slice = self.bytes.get(self.position..end).ok_or(short)?;
        self.position = end;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], MessageError> {
        self.align(N);
        let short = self.error(what, Fault::Short);
        self.take(N, what)?.try_into().map_err(|_| short)
    }

    read_number!(read_u8, u8, "An octet.");
    read_number!(read_u16, u16, "An unsigned short.");
    read_number!(read_u32, u32, "An unsigned long.");
    read_number!(read_u64, u64, "An unsigned long long.");
    read_number!(read_i16, i16, "A short.");
    read_number!(read_i32, i32, "A long.");
    read_number!(read_i64, i64, "A long long.");
    read_number!(read_f32, f32, "A float.");
    read_number!(read_f64, f64, "A double.");

    /// A boolean.
    ///
    /// # Errors
    /// If it is neither 0 nor 1, or goes beyond the end.
    pub fn read_bool(&mut self, what: &'static str) -> Result<bool, MessageError> {
        let invalid = self.error(what, Fault::Value);
        match self.read_u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(invalid),
        }
    }

    /// A `sequence<octet>`.
    ///
    /// # Errors
    /// If it is longer than `limit` or goes beyond the end.
    pub fn read_octets(
        &mut self,
        limit: usize,
        what: &'static str,
    ) -> Result<&'a [u8], MessageError> {
        let length = self.read_u32(what)? as usize;
        if length > limit {
            return Err(self.error(what, Fault::OverLimit));
        }
        self.take(length, what)
    }

    /// A string without its terminating zero; its bytes are in the connection's code set.
    ///
    /// # Errors
    /// If it is longer than `limit`, goes beyond the end or has no terminating zero. A length of
    /// 0, which some ORBs send for the empty string, is taken.
    pub fn read_string(
        &mut self,
        limit: usize,
        what: &'static str,
    ) -> Result<&'a [u8], MessageError> {
        let unterminated = self.error(what, Fault::Unterminated);
        match self.read_octets(limit.saturating_add(1), what)? {
            [] => Ok(&[]),
            [text @ .., 0] => Ok(text),
            _ => Err(unterminated),
        }
    }

    /// A count of items of at least `item_bytes` each, refused if they cannot all be there.
    ///
    /// # Errors
    /// If it is over `limit` or more than what is left can hold.
    pub fn read_count(
        &mut self,
        item_bytes: usize,
        limit: usize,
        what: &'static str,
    ) -> Result<usize, MessageError> {
        let count = self.read_u32(what)? as usize;
        if count > limit {
            return Err(self.error(what, Fault::OverLimit));
        }
        match count.checked_mul(item_bytes) {
            Some(bytes) if bytes <= self.remaining() => Ok(count),
            _ => Err(self.error(what, Fault::Short)),
        }
    }
}

/// Appends values.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    endian: Endian,
}

macro_rules! write_number {
    ($name:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        pub fn $name(&mut self, value: $type) {
            self.align(size_of::<$type>());
            match self.endian {
                Endian::Big => self.bytes.extend_from_slice(&value.to_be_bytes()),
                Endian::Little => self.bytes.extend_from_slice(&value.to_le_bytes()),
            }
        }
    };
}

impl Writer {
    /// An empty message or a part that begins at an aligned position.
    #[must_use]
    pub const fn new(endian: Endian) -> Self {
        Self { bytes: Vec::new(), endian }
    }

    /// An encapsulation: its byte order is written.
    #[must_use]
    pub fn encapsulation(endian: Endian) -> Self {
        let mut writer = Self::new(endian);
        writer.write_u8(endian.bit());
        writer
    }

    /// The byte order.
    #[must_use]
    pub const fn endian(&self) -> Endian {
        self.endian
    }

    /// Bytes written.
    #[must_use]
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Pads with zeros up to a multiple of `alignment`.
    pub fn align(&mut self, alignment: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
    }

    write_number!(write_u8, u8, "An octet.");
    write_number!(write_u16, u16, "An unsigned short.");
    write_number!(write_u32, u32, "An unsigned long.");
    write_number!(write_u64, u64, "An unsigned long long.");
    write_number!(write_i16, i16, "A short.");
    write_number!(write_i32, i32, "A long.");
    write_number!(write_i64, i64, "A long long.");
    write_number!(write_f32, f32, "A float.");
    write_number!(write_f64, f64, "A double.");

    /// A boolean.
    pub fn write_bool(&mut self, value: bool) {
        self.write_u8(u8::from(value));
    }

    /// Bytes without a length.
    pub fn write_raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A length or count. Values that do not fit, which no message can hold, become the largest.
    pub fn write_count(&mut self, count: usize) {
        self.write_u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// A `sequence<octet>`.
    pub fn write_octets(&mut self, bytes: &[u8]) {
        self.write_count(bytes.len());
        self.write_raw(bytes);
    }

    /// A string, given without its terminating zero.
    pub fn write_string(&mut self, text: &[u8]) {
        self.write_count(text.len().saturating_add(1));
        self.write_raw(text);
        self.write_u8(0);
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_align_to_their_size_in_both_orders() {
        for endian in [Endian::Big, Endian::Little] {
            let mut writer = Writer::new(endian);
            writer.write_u8(7);
            writer.write_u16(0x1234);
            writer.write_u64(0x0102_0304_0506_0708);
            writer.write_string(b"ab");
            writer.write_i32(-5);
            writer.write_f64(1.5);
            let bytes = writer.finish();
            assert_eq!(bytes.len(), 40);
            let mut reader = Reader::new(&bytes, endian);
            assert_eq!(reader.read_u8("a"), Ok(7));
            assert_eq!(reader.read_u16("b"), Ok(0x1234));
            assert_eq!(reader.read_u64("c"), Ok(0x0102_0304_0506_0708));
            assert_eq!(reader.read_string(9, "d"), Ok(b"ab".as_slice()));
            assert_eq!(reader.read_i32("e"), Ok(-5));
            assert_eq!(reader.read_f64("f"), Ok(1.5));
            assert_eq!(reader.remaining(), 0);
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_not_believed() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 1];
        let mut reader = Reader::new(&bytes, Endian::Big);
        assert_eq!(reader.read_octets(usize::MAX, "x").unwrap_err().fault, Fault::Short);
        let mut reader = Reader::new(&bytes, Endian::Big);
        assert_eq!(reader.read_octets(100, "x").unwrap_err().fault, Fault::OverLimit);
        let mut reader = Reader::new(&bytes, Endian::Big);
        assert_eq!(reader.read_count(8, usize::MAX, "x").unwrap_err().fault, Fault::Short);
    }
}
