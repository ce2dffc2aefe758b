//! A checkpoint file: a header of 72 octets, blocks of at most 1 MiB, and an end block.
//!
//! ```text
//! header  0 "QBCHKPNT"  8 version u16  10 node u8  11 representative u8  12 zeros
//!        16 domain digest u64  24 sequence number u64  32 component u64  40 prefix u64
//!        48 nonce u64  56 group u64  64 CRC of octets 0 to 63 u32  68 "QEND"
//! block   0 "QBLK" or, the last, "QFIN"  4 octets u32  8 index u32  12 CRC u32  16 data
//! ```
//! A block's checksum is over the nonce, its index, its length and its data; the end block's data
//! is the sum of the lengths, as u64. Nothing follows it.
//!
//! Invariants: a file that was not written to its end is never valid; blocks of two checkpoints
//! cannot be mixed; no length is believed above [`BLOCK_BYTES_MAX`].

use super::{Owner, Position, RingId, Seq, VERSION};
use alloc::format;
use alloc::string::String;
use core::fmt;
use quorba_base::NodeId;
use quorba_base::fields::{le_u32_at, le_u64_at};

/// Octets of a checkpoint's header.
pub const HEADER_BYTES: usize = 72;

/// Octets of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 16;

/// The most data in a block.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

const MAGIC: [u8; 8] = *b"QBCHKPNT";
const END: [u8; 4] = *b"QEND";
const BLOCK: [u8; 4] = *b"QBLK";
const FINAL: [u8; 4] = *b"QFIN";
const FINAL_BYTES: usize = 8;

/// The header of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointHeader {
    /// Whose it is.
    pub owner: Owner,
    /// The group, by its id.
    pub group: u64,
    /// The last record whose effect is in it.
    pub seq: Seq,
    /// The same as a place in the domain's order.
    pub position: Position,
    /// Drawn anew for each file.
    pub nonce: u64,
}

/// What is wrong with a checkpoint file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckpointFault {
    /// It ends before its end block does.
    Short,
    /// The header is not what was written, or not of this version.
    Header,
    /// It is of another domain or node.
    Owner(Owner),
    /// It is another checkpoint than its name says.
    Misplaced,
    /// What stands at a block's beginning is none, or the wrong one.
    Block(u32),
    /// A block's data is not what was written.
    Checksum(u32),
    /// The sum of the lengths is another one.
    Total,
    /// Something follows the end.
    Long,
}

impl fmt::Display for CheckpointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("ends too early"),
            Self::Header => f.write_str("header changed since it was written, or never was one"),
            Self::Owner(owner) => write!(f, "belongs to {owner}"),
            Self::Misplaced => f.write_str("is another checkpoint than its name says"),
            Self::Block(index) => write!(f, "block {index} is not in its place"),
            Self::Checksum(index) => write!(f, "block {index} changed since it was written"),
            Self::Total => f.write_str("has not the length that its end says"),
            Self::Long => f.write_str("goes on behind its end"),
        }
    }
}

impl CheckpointHeader {
    /// The header as it stands in the file.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let Position { component, prefix } = self.position;
        header[..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_le_bytes());
        header[10] = self.owner.node.index();
        header[11] = component.representative.index();
        let (domain, seq) = (self.owner.domain_digest, self.seq.0);
        let numbers = [domain, seq, component.seq, prefix, self.nonce, self.group];
        for (place, number) in header[16..64].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&header[..64]);
        header[64..68].copy_from_slice(&crc.to_le_bytes());
        header[68..].copy_from_slice(&END);
        header
    }

    /// Reads the header of a checkpoint of `owner`.
    ///
    /// # Errors
    /// [`CheckpointFault`]: what it is instead.
    pub fn decode(header: &[u8; HEADER_BYTES], owner: Owner) -> Result<Self, CheckpointFault> {
        let sealed = header[68..] == END && crc32fast::hash(&header[..64]) == le_u32_at(header, 64);
        if header[..8] != MAGIC || !sealed || header[8..10] != VERSION.to_le_bytes() {
            return Err(CheckpointFault::Header);
        }
        let node = |octet: u8| NodeId::new(octet).ok_or(CheckpointFault::Header);
        let found = Owner { domain_digest: le_u64_at(header, 16), node: node(header[10])? };
        if found != owner {
            return Err(CheckpointFault::Owner(found));
        }
        let representative = node(header[11])?;
        let component = RingId { seq: le_u64_at(header, 32), representative };
        Ok(Self {
            owner,
            group: le_u64_at(header, 56),
            seq: Seq(le_u64_at(header, 24)),
            position: Position { component, prefix: le_u64_at(header, 40) },
            nonce: le_u64_at(header, 48),
        })
    }
}

/// What a block's header promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Octets of data that follow.
    pub bytes: usize,
    /// Whether it is the end block.
    pub is_final: bool,
    crc: u32,
}

/// The sequence of blocks, for the writer and for the reader.
#[derive(Clone, Debug)]
pub struct Blocks {
    nonce: u64,
    index: u32,
    total: u64,
}

impl Blocks {
    /// The blocks of the checkpoint with this nonce.
    #[must_use]
    pub const fn new(nonce: u64) -> Self {
        Self { nonce, index: 0, total: 0 }
    }

    /// Octets of data in the blocks so far.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The header to be written before `data`.
    ///
    /// # Panics
    /// If the data is longer than [`BLOCK_BYTES_MAX`].
    pub fn write(&mut self, data: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
        assert!(data.len() <= BLOCK_BYTES_MAX, "a block over its limit");
        let header = self.header(BLOCK, data);
        self.advance(data.len());
        header
    }

    /// The end block.
    #[must_use]
    pub fn finish(self) -> [u8; BLOCK_HEADER_BYTES + FINAL_BYTES] {
        let data = self.total.to_le_bytes();
        let mut block = [0; BLOCK_HEADER_BYTES + FINAL_BYTES];
        block[..BLOCK_HEADER_BYTES].copy_from_slice(&self.header(FINAL, &data));
        block[BLOCK_HEADER_BYTES..].copy_from_slice(&data);
        block
    }

    /// Reads a block's header.
    ///
    /// # Errors
    /// [`CheckpointFault::Block`]: it is not the next one.
    pub fn expect(&self, header: &[u8; BLOCK_HEADER_BYTES]) -> Result<Promise, CheckpointFault> {
        let bytes = le_u32_at(header, 4) as usize;
        let is_final = header[..4] == FINAL;
        let sound = if is_final {
            bytes == FINAL_BYTES
        } else {
            header[..4] == BLOCK && bytes <= BLOCK_BYTES_MAX
        };
        if !sound || le_u32_at(header, 8) != self.index {
            return Err(CheckpointFault::Block(self.index));
        }
        Ok(Promise { bytes, is_final, crc: le_u32_at(header, 12) })
    }

    /// Checks the data that was promised.
    ///
    /// # Errors
    /// [`CheckpointFault::Checksum`] or [`CheckpointFault::Total`].
    pub fn check(&mut self, promise: &Promise, data: &[u8]) -> Result<(), CheckpointFault> {
        if self.crc(data) != promise.crc || data.len() != promise.bytes {
            return Err(CheckpointFault::Checksum(self.index));
        }
        if !promise.is_final {
            self.advance(data.len());
        } else if data != self.total.to_le_bytes() {
            return Err(CheckpointFault::Total);
        }
        Ok(())
    }

    fn advance(&mut self, bytes: usize) {
        self.index = self.index.wrapping_add(1);
        self.total += bytes as u64;
    }

    fn header(&self, mark: [u8; 4], data: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
        let bytes = u32::try_from(data.len()).expect("bounded by the block's limit");
        let mut header = [0; BLOCK_HEADER_BYTES];
        header[..4].copy_from_slice(&mark);
        header[4..8].copy_from_slice(&bytes.to_le_bytes());
        header[8..12].copy_from_slice(&self.index.to_le_bytes());
        header[12..].copy_from_slice(&self.crc(data).to_le_bytes());
        header
    }

    fn crc(&self, data: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.nonce.to_le_bytes());
        hasher.update(&self.index.to_le_bytes());
        hasher.update(&(data.len() as u64).to_le_bytes());
        hasher.update(data);
        hasher.finalize()
    }
}

/// The name of a checkpoint's file.
#[must_use]
pub fn file_name(group: u64, seq: Seq) -> String {
    format!("checkpoint-{group:020}-{:020}.ckpt", seq.0)
}

/// Group and record of the checkpoint that a file of this name holds.
#[must_use]
pub fn name_parts(name: &str) -> Option<(u64, Seq)> {
    let (group, seq) = name.strip_prefix("checkpoint-")?.strip_suffix(".ckpt")?.split_once('-')?;
    let (group, seq) = (group.parse().ok()?, Seq(seq.parse().ok()?));
    (name == file_name(group, seq)).then_some((group, seq))
}
