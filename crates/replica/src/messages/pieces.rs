//! Parts of states, as they travel: chunks of a transfer, and pieces of a checkpoint.
//!
//! What it is not: how they are cut and joined; that is `transfer` and `passive`.

use bytes::Bytes;

/// A part of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    /// Where it begins.
    pub(crate) offset: u64,
    /// Bytes of the whole transfer.
    pub(crate) total: u64,
    /// Bytes of the part.
    pub(crate) raw_bytes: u32,
    /// `bytes` are an LZ4 block.
    pub(crate) compressed: bool,
    /// Of the whole transfer; in its last part.
    pub(crate) digest: Option<u64>,
    /// The part.
    pub(crate) bytes: Bytes,
}

/// What a joiner wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fetch {
    /// It has everything in front of this.
    pub(crate) received: u64,
    /// What it wants begins here.
    pub(crate) offset: u64,
    /// So much of it.
    pub(crate) bytes: u64,
}

/// A piece of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CheckpointPiece {
    /// Where it begins.
    pub(crate) offset: u64,
    /// Bytes in all.
    pub(crate) total: u64,
    pub(crate) bytes: Bytes,
}
