//! Values in CDR (GIOP §15.3), as a connection has agreed to write them.
//!
//! What it is not: the layout of numbers, which is `giop::cdr`.
//!
//! Invariant: what an [`Encoder`] could not write is remembered, and its message is never sent.

use alloc::vec::Vec;

use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::ior::CODE_SET_UTF_8;
use quorba_giop::{
    CodeSets, Completion, Endian, ExceptionKind, MessageError, SystemException, Version,
};

use crate::limits::RESERVED_ITEMS_MAX;

/// How `char` and `string` are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CharSet {
    /// ISO 8859-1, which holds where nothing was agreed on.
    Latin1,
    /// UTF-8.
    Utf8,
}

/// How characters are written. Wide ones are UTF-16, in the form that the version has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coding {
    /// The message's version.
    pub version: Version,
    /// For narrow characters.
    pub chars: CharSet,
}

impl Coding {
    /// What holds without an agreement.
    #[must_use]
    pub const fn plain(version: Version) -> Self {
        Self { version, chars: CharSet::Latin1 }
    }

    /// What a client said. Code sets other than UTF-8 are read as ISO 8859-1: that keeps every
    /// octet.
    #[must_use]
    pub const fn agreed(version: Version, sets: CodeSets) -> Self {
        let utf8 = sets.char_data == CODE_SET_UTF_8;
        Self { version, chars: if utf8 { CharSet::Utf8 } else { CharSet::Latin1 } }
    }
}

/// Reads values.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    reader: Reader<'a>,
    coding: Coding,
}

impl<'a> Decoder<'a> {
    /// Reads on where `reader` stands.
    #[must_use]
    pub const fn new(reader: Reader<'a>, coding: Coding) -> Self {
        Self { reader, coding }
    }

    /// Numbers and octets are read from here.
    pub const fn reader(&mut self) -> &mut Reader<'a> {
        &mut self.reader
    }

    /// How characters are written.
    #[must_use]
    pub const fn coding(&self) -> Coding {
        self.coding
    }

    /// The byte order.
    #[must_use]
    pub const fn endian(&self) -> Endian {
        self.reader.endian()
    }

    /// Octets that are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.reader.remaining()
    }

    /// The next value.
    ///
    /// # Errors
    /// If it is not there, or none of its type.
    pub fn read<T: Cdr>(&mut self) -> Result<T, MessageError> {
        T::read(self)
    }
}

/// Writes values.
#[derive(Clone, Debug)]
pub struct Encoder {
    writer: Writer,
    coding: Coding,
    failed: Option<ExceptionKind>,
}

impl Encoder {
    /// Begins at a position that is aligned to 8.
    #[must_use]
    pub const fn new(endian: Endian, coding: Coding) -> Self {
        Self { writer: Writer::new(endian), coding, failed: None }
    }

    /// Goes on behind what was written.
    #[must_use]
    pub const fn at(writer: Writer, coding: Coding) -> Self {
        Self { writer, coding, failed: None }
    }

    /// What was written, whether or not all of it could be.
    #[must_use]
    pub fn into_writer(self) -> Writer {
        self.writer
    }

    /// Numbers and octets go here.
    pub const fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// How characters are written.
    #[must_use]
    pub const fn coding(&self) -> Coding {
        self.coding
    }

    /// The byte order.
    #[must_use]
    pub const fn endian(&self) -> Endian {
        self.writer.endian()
    }

    /// Octets written.
    #[must_use]
    pub fn position(&self) -> usize {
        self.writer.position()
    }

    /// Writes a value.
    pub fn write<T: Cdr>(&mut self, value: &T) {
        value.write(self);
    }

    /// Says that a value cannot be written; the first such counts.
    pub fn fail(&mut self, kind: ExceptionKind) {
        self.failed.get_or_insert(kind);
    }

    /// What was written.
    ///
    /// # Errors
    /// The exception to raise if something could not be written: DATA_CONVERSION for characters
    /// that the other side cannot read.
    pub fn finish(self, completed: Completion) -> Result<Vec<u8>, SystemException> {
        match self.failed {
            None => Ok(self.writer.finish()),
            Some(kind) => Err(SystemException { kind, minor: 0, completed }),
        }
    }
}

/// A type of IDL.
pub trait Cdr: Sized {
    /// The fewest octets that a value takes, padding left out.
    const BYTES_MIN: usize;

    /// Reads a value.
    ///
    /// # Errors
    /// If there is none.
    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError>;

    /// Writes it.
    fn write(&self, to: &mut Encoder);

    /// Reads the items of a sequence, after their count.
    ///
    /// # Errors
    /// If they are not all there.
    fn read_items(count: usize, from: &mut Decoder<'_>) -> Result<Vec<Self>, MessageError> {
        let mut items = Vec::with_capacity(count.min(RESERVED_ITEMS_MAX));
        for _ in 0..count {
            items.push(Self::read(from)?);
        }
        Ok(items)
    }

    /// Writes the items of a sequence, after their count.
    fn write_items(items: &[Self], to: &mut Encoder) {
        items.iter().for_each(|item| item.write(to));
    }
}

/// The items of a sequence of at most `bound`. Each takes an octet at least, of whatever type.
pub(crate) fn read_sequence<T: Cdr>(
    from: &mut Decoder<'_>,
    bound: usize,
) -> Result<Vec<T>, MessageError> {
    let item_bytes = T::BYTES_MIN.max(1);
    let count = from.reader().read_count(item_bytes, bound, "sequence")?;
    T::read_items(count, from)
}
