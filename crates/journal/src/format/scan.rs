//! Goes through the records of one segment, and says of each that it is right, or exactly what is
//! wrong.
//!
//! What it is not: a judge. Whether the first wrong record is a torn tail or damage is decided by
//! [`super::tail`], with what the rest of the log says.
//!
//! Invariants: a record is right only if its number, segment, nonce and checksums are; after the
//! first wrong one the scan is over; nothing is copied, and nothing is allocated.

use super::record::{HEADER_BYTES, Header, HeaderFault, Record, decode_body, is_padding};
use super::segment::{self, SegmentHeader};
use super::{SECTOR_BYTES, Seq, is_blank};
use bytes::Bytes;
use core::fmt;
use quorba_base::canary;
use quorba_base::fields::le_u64_at;

/// A record that is right, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// All records up to this one were durable when it was written.
    pub durable: Seq,
    /// The number of its segment.
    pub segment: u32,
    /// Octets before it in the segment's file.
    pub offset: u64,
    /// What it says.
    pub record: Record,
}

/// The place where a right record was to be expected, and what is wrong there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// The number that the record should have.
    pub seq: Seq,
    /// The number of the segment.
    pub segment: u32,
    /// Octets before it in the segment's file.
    pub offset: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The file ends inside, or a part was never written: blank to the end of a sector or of the
    /// record.
    Torn,
    /// The header is whole and not what was written.
    HeaderChecksum,
    /// The header's checksum is right, its kind of record unknown.
    Kind(u8),
    /// The header's checksum is right, its length over the limit.
    Length(u32),
    /// The body is whole and not what was written.
    BodyChecksum,
    /// The checksums are right, the body is none of its kind.
    Body,
    /// Another record of this segment: a misdirected write.
    Sequence(Seq),
    /// A record of another segment: a misdirected write.
    Segment(u32),
    /// A record of an earlier use of this segment's number, or of its blocks.
    Stale,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn => f.write_str("a part was never written"),
            Self::HeaderChecksum => f.write_str("header changed since it was written (checksum)"),
            Self::Kind(kind) => write!(f, "unknown kind {kind}"),
            Self::Length(bytes) => write!(f, "a body of {bytes} octets, over the limit"),
            Self::BodyChecksum => f.write_str("body changed since it was written (checksum)"),
            Self::Body => f.write_str("body is none of its kind"),
            Self::Sequence(found) => write!(f, "record {found} is in its place"),
            Self::Segment(found) => write!(f, "a record of segment {found} is in its place"),
            Self::Stale => f.write_str("a record of an earlier log is in its place"),
        }
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Scan {
    header: SegmentHeader,
    bytes: Bytes,
    offset: usize,
    next: Seq,
    end: Option<Seq>,
    over: bool,
}

impl Scan {
    /// A scan of the segment with this header and these octets, the header's included. It ends
    /// before record `end`, with which the next segment begins, if there is one.
    #[must_use]
    pub const fn new(header: SegmentHeader, bytes: Bytes, end: Option<Seq>) -> Self {
        let next = header.first;
        Self { header, bytes, offset: segment::HEADER_BYTES, next, end, over: false }
    }

    /// The number that the next record must have.
    #[must_use]
    pub const fn expected(&self) -> Seq {
        self.next
    }

    /// Octets before the next record.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset as u64
    }

    /// The highest watermark that a record of this segment carries behind the point that the
    /// scan has reached. Whatever stands there was written by us: it bears the nonce.
    #[must_use]
    pub fn watermark_behind(&self) -> Option<Seq> {
        let mut watermark = None;
        let mut at = self.offset;
        while let Some(header) = self.bytes.get(at..).and_then(|b| b.first_chunk()) {
            if le_u64_at(header, 24) == self.header.nonce
                && let Ok(Header { stamp, .. }) = Header::decode(header)
                && stamp.segment == self.header.segment
            {
                watermark = watermark.max(Some(stamp.durable));
            }
            // Records begin at multiples of 8.
            at += 8;
        }
        watermark
    }

    fn invalid(&mut self, fault: Fault) -> Invalid {
        self.over = true;
        let segment = self.header.segment;
        Invalid { seq: self.next, segment, offset: self.offset as u64, fault }
    }

    /// What was there in place of a header.
    fn no_header(&self, fault: HeaderFault) -> Fault {
        match fault {
            HeaderFault::Kind(kind) => Fault::Kind(kind),
            HeaderFault::Length(bytes) => Fault::Length(bytes),
            HeaderFault::Checksum if self.is_unwritten(HEADER_BYTES) => Fault::Torn,
            HeaderFault::Checksum => Fault::HeaderChecksum,
        }
    }

    /// Whether a part of the next `len` octets was never written, as far as can be seen.
    fn is_unwritten(&self, len: usize) -> bool {
        let record = &self.bytes[self.offset..self.offset + len];
        if record.last() == Some(&0) {
            return true;
        }
        let first = (SECTOR_BYTES - self.offset % SECTOR_BYTES).min(len);
        let (head, rest) = record.split_at(first);
        is_blank(head) || rest.chunks(SECTOR_BYTES).any(is_blank)
    }

    fn misplaced(&self, header: &Header) -> Option<Fault> {
        let stamp = header.stamp;
        if stamp.segment != self.header.segment {
            Some(Fault::Segment(stamp.segment))
        } else if stamp.nonce != self.header.nonce {
            Some(Fault::Stale)
        } else if stamp.seq != self.next {
            Some(Fault::Sequence(stamp.seq))
        } else {
            None
        }
    }

    fn read(&mut self) -> Result<Entry, Fault> {
        let rest = &self.bytes[self.offset..];
        let header = rest.first_chunk::<HEADER_BYTES>().ok_or(Fault::Torn)?;
        let header = Header::decode(header).map_err(|fault| self.no_header(fault))?;
        if let Some(fault) = self.misplaced(&header) {
            return Err(fault);
        }
        let len = HEADER_BYTES + header.padded_bytes();
        let whole = rest.get(..len).ok_or(Fault::Torn)?;
        let body_end = HEADER_BYTES + header.body_bytes;
        let body = &whole[HEADER_BYTES..body_end];
        let is_right = crc32fast::hash(body) == header.body_crc || canary!(IgnoresRecordChecksum);
        if !is_right || !is_padding(&whole[body_end..]) {
            let torn = self.is_unwritten(len);
            return Err(if torn { Fault::Torn } else { Fault::BodyChecksum });
        }
        let body = self.bytes.slice(self.offset + HEADER_BYTES..self.offset + body_end);
        let record = decode_body(header.kind, &body).ok_or(Fault::Body)?;
        let offset = self.offset as u64;
        let (seq, durable) = (self.next, header.stamp.durable);
        self.offset += len;
        self.next = seq.next();
        Ok(Entry { seq, durable, segment: self.header.segment, offset, record })
    }

    fn is_at_end(&self) -> bool {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let begins_blank = rest.first_chunk::<HEADER_BYTES>().is_none_or(|h| is_blank(h));
        self.end == Some(self.next) || begins_blank && is_blank(rest)
    }
}

impl Iterator for Scan {
    type Item = Result<Entry, Invalid>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over || self.is_at_end() {
            self.over = true;
            return None;
        }
        Some(self.read().map_err(|fault| self.invalid(fault)))
    }
}
