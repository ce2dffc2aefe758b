//! The fixed little-endian encoding of what nodes tell each other through the order.
//!
//! What it is not: CDR. Nodes of one domain run one version, and a fixed byte order leaves no
//! conversion to get wrong. Invariant: a decoder reads no byte that is not there and believes no
//! count before it has compared it with what is left.

use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use quorba_base::NodeId;

/// An ordered message that this version cannot read: a bug or another version at its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidEnvelope {
    /// What was being read.
    pub what: &'static str,
    /// Where, in bytes from the start of the message.
    pub offset: usize,
}

impl fmt::Display for InvalidEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ordered message: cannot read {} at byte {}", self.what, self.offset)
    }
}

impl core::error::Error for InvalidEnvelope {}

/// What stands for one of `all` in a message: its place there.
///
/// # Panics
/// If `all` lacks it.
pub(crate) fn code_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    let place = all.iter().position(|other| other == one);
    place.and_then(|place| u8::try_from(place).ok()).expect("all are in it, and they are few")
}

/// The one of `all` that a code stands for, if there is one.
pub(crate) fn of_code<T: Copy>(all: &[T], code: u8) -> Option<T> {
    all.get(usize::from(code)).copied()
}

/// Appends fields to a message.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Makes room for so many bytes more.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn octets16(&mut self, value: &[u8; 16]) {
        self.0.extend_from_slice(value);
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn node(&mut self, node: NodeId) {
        self.u8(node.index());
    }

    /// Length as u32, then the bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("payloads are capped far below 4 GiB");
        self.u32(length);
        self.0.extend_from_slice(bytes);
    }

    /// The bytes without a length: only as the last field.
    pub(crate) fn rest(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.0)
    }
}

/// Parts what is kept for long, such as replies, from a state behind it, which is needed only until
/// a server has it or the next one is there. It gets memory of its own, unless it is longer.
pub(crate) fn memory_groups(mut whole: Bytes, head_bytes: usize) -> (Bytes, Bytes) {
    let head = whole.split_to(head_bytes);
    let head = if head.len() < whole.len() { Bytes::copy_from_slice(&head) } else { head };
    (head, whole)
}

/// Reads fields off a message; slices share its buffer.
pub(crate) struct Reader {
    bytes: Bytes,
    offset: usize,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, offset: 0 }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&[u8], InvalidEnvelope> {
        let error = InvalidEnvelope { what, offset: self.offset };
        let end = self.offset.checked_add(count).ok_or(error)?;
        let slice = self.bytes.get(self.offset..end).ok_or(error)?;
        self.offset = end;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], InvalidEnvelope> {
        let slice = self.take(N, what)?;
        Ok(slice.try_into().expect("take gives N bytes"))
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, InvalidEnvelope> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, InvalidEnvelope> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, InvalidEnvelope> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn octets16(&mut self, what: &'static str) -> Result<[u8; 16], InvalidEnvelope> {
        self.array(what)
    }

    pub(crate) fn i32(&mut self, what: &'static str) -> Result<i32, InvalidEnvelope> {
        Ok(i32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, InvalidEnvelope> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error(what)),
        }
    }

    pub(crate) fn node(&mut self, what: &'static str) -> Result<NodeId, InvalidEnvelope> {
        let index = self.u8(what)?;
        NodeId::new(index).ok_or(InvalidEnvelope { what, offset: self.offset })
    }

    /// A slice whose length stands before it.
    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<Bytes, InvalidEnvelope> {
        let length = self.u32(what)? as usize;
        let start = self.offset;
        self.take(length, what)?;
        Ok(self.bytes.slice(start..start + length))
    }

    /// A count of items of at least `item_bytes` each, refused if they cannot all be there.
    pub(crate) fn count(
        &mut self,
        item_bytes: usize,
        what: &'static str,
    ) -> Result<usize, InvalidEnvelope> {
        let count = self.u32(what)? as usize;
        let left = self.bytes.len() - self.offset;
        if count.checked_mul(item_bytes).is_some_and(|bytes| bytes <= left) {
            Ok(count)
        } else {
            Err(self.error(what))
        }
    }

    /// How much was taken.
    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> Bytes {
        let rest = self.bytes.slice(self.offset..);
        self.offset = self.bytes.len();
        rest
    }

    /// Fails if something is left: a longer message is of another version.
    pub(crate) fn end(&self) -> Result<(), InvalidEnvelope> {
        if self.offset == self.bytes.len() { Ok(()) } else { Err(self.error("the end")) }
    }

    pub(crate) fn error(&self, what: &'static str) -> InvalidEnvelope {
        InvalidEnvelope { what, offset: self.offset }
    }
}
