//! The fields that binary messages and files are made of: big-endian numbers, LEB128, node ids and
//! ring ids off the front of octets; little-endian numbers at a place of a file's header.
//!
//! What it is not: a format, nor CDR, whose numbers are aligned and of either byte order; nor what
//! nodes order, which shares its buffer and tells what it could not read (`quorba-replica`).
//!
//! Invariants: a reader reads no octet that is not there; what is written is read as equal.

use crate::{NodeId, NodeSet, RingId};
use bytes::BufMut;

/// Octets that are no such fields. The same octets never will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They end before a field does.
    Short,
    /// They go on behind the last field.
    Trailing,
    /// A number in LEB128 that is too large, or has no end.
    Varint,
    /// A number that no node can have.
    Node,
}

/// Takes fields off the front of octets.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Begins at the first of them.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    /// What was not taken.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` octets.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next octets, so many.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(head)
    }

    /// An octet.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take::<1>()?[0])
    }

    /// Two octets, big-endian.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    /// Four octets, big-endian.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    /// Eight octets, big-endian.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// A number in LEB128, at most ten octets.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::Varint`] if it has more than 64 bits, or no end.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        self.leb128(u64::BITS)
    }

    /// A number in LEB128, at most five octets.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::Varint`] if it has more than 32 bits, or no end.
    #[inline]
    pub fn varint32(&mut self) -> Result<u32, Malformed> {
        Ok(self.leb128(u32::BITS)? as u32)
    }

    fn leb128(&mut self, bits: u32) -> Result<u64, Malformed> {
        let max = u64::MAX >> (u64::BITS - bits);
        let mut value = 0_u64;
        for shift in (0..bits).step_by(7) {
            let octet = self.u8()?;
            let part = u64::from(octet & 0x7f);
            if part > max >> shift {
                return Err(Malformed::Varint);
            }
            value |= part << shift;
            if octet & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::Varint)
    }

    /// A node, one octet.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Node`].
    #[inline]
    pub fn node(&mut self) -> Result<NodeId, Malformed> {
        NodeId::new(self.u8()?).ok_or(Malformed::Node)
    }

    /// A set of nodes, eight octets.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    #[inline]
    pub fn node_set(&mut self) -> Result<NodeSet, Malformed> {
        Ok(NodeSet::from_bits(self.u64()?))
    }

    /// What [`put_ring`] writes.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Node`].
    #[inline]
    pub fn ring(&mut self) -> Result<RingId, Malformed> {
        Ok(RingId { seq: self.u64()?, representative: self.node()? })
    }

    /// Says that there is nothing more.
    ///
    /// # Errors
    /// [`Malformed::Trailing`].
    #[inline]
    pub const fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// Octets of a ring id.
pub const RING_BYTES: usize = 9;

/// Appends a ring id: its number, big-endian, and its representative.
#[inline]
pub fn put_ring(out: &mut impl BufMut, ring: RingId) {
    out.put_u64(ring.seq);
    out.put_u8(ring.representative.index());
}

/// Appends a number in LEB128.
#[inline]
pub fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// The little-endian number at that place.
///
/// # Panics
/// If it is not there: the caller has compared lengths.
#[must_use]
#[inline]
pub fn le_u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(octets[at..at + 4].try_into().expect("four octets"))
}

/// The little-endian number at that place.
///
/// # Panics
/// If it is not there: the caller has compared lengths.
#[must_use]
#[inline]
pub fn le_u64_at(octets: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(octets[at..at + 8].try_into().expect("eight octets"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    #[test]
    fn numbers_are_read_as_they_were_written_and_no_further() {
        for value in [0, 1, 0x7f, 0x80, 300, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let mut out = BytesMut::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.varint(), reader.end()), (Ok(value), Ok(())));
            let narrow = u32::try_from(value).map_err(|_| Malformed::Varint);
            assert_eq!(Reader::new(&out).varint32(), narrow);
            assert_eq!(Reader::new(&out[..out.len() - 1]).varint(), Err(Malformed::Short));
        }
        assert_eq!(Reader::new(&[0xff; 10]).varint(), Err(Malformed::Varint), "over 64 bits");
        assert_eq!(Reader::new(&[0x80; 11]).varint(), Err(Malformed::Varint), "no end");
        assert_eq!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).varint32(), {
            Err(Malformed::Varint)
        });
        assert_eq!(Reader::new(&[0xff; 4]).u64(), Err(Malformed::Short));
    }

    #[test]
    fn a_ring_is_read_as_it_was_written() {
        let ring = RingId { seq: 7 << 40, representative: NodeId::new(63).expect("a node") };
        let mut out = BytesMut::new();
        put_ring(&mut out, ring);
        assert_eq!((out.len(), Reader::new(&out).ring()), (RING_BYTES, Ok(ring)));
        assert_eq!(Reader::new(&[64]).node(), Err(Malformed::Node));
        assert_eq!(Reader::new(&[0; 10]).end(), Err(Malformed::Trailing));
    }
}
