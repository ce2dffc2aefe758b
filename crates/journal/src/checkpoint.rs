//! Checkpoints of groups: written in a stream, sealed, read back, and only then taken in by the
//! log.
//!
//! What it is not: bound to the log's thread. A state of 1 GiB is written by whoever has it, while
//! the log goes on; never more than one block of it is in memory here.
//!
//! Invariant: a file has a checkpoint's name only after its content was synced, read back and
//! found right.

use crate::damage::{Cause, Damage};
use crate::disk::{Disk, DiskFile};
use crate::format::checkpoint::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, Blocks, CheckpointFault, CheckpointHeader, HEADER_BYTES,
    file_name, name_parts,
};
use crate::format::{Owner, Position, Seq};
use crate::nonce::Nonces;
use std::io;
use std::sync::Arc;

/// The directory, as far as checkpoints are concerned.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    disk: Arc<dyn Disk>,
    owner: Owner,
    nonces: Nonces,
}

/// A checkpoint that is there and right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The group.
    pub group: u64,
    /// The last record whose effect is in it: replay goes on with the next one.
    pub seq: Seq,
    /// The same as a place in the domain's order.
    pub position: Position,
    /// Octets of the state.
    pub bytes: u64,
}

impl Checkpoints {
    pub(crate) const fn new(disk: Arc<dyn Disk>, owner: Owner, nonces: Nonces) -> Self {
        Self { disk, owner, nonces }
    }

    /// Begins the checkpoint of a group after record `seq`.
    ///
    /// # Errors
    /// The disk's.
    pub fn begin(&self, group: u64, seq: Seq, position: Position) -> io::Result<Writer> {
        let nonce = self.nonces.next();
        let header = CheckpointHeader { owner: self.owner, group, seq, position, nonce };
        // A name of its own, so that a second attempt does not write into the first.
        let name = format!("{}.{nonce:016x}.next", file_name(group, seq));
        let file = self.disk.create(&name)?;
        file.write_at(0, &header.encode())?;
        let store = self.clone();
        let blocks = Blocks::new(nonce);
        let offset = HEADER_BYTES as u64;
        Ok(Writer { store, header, name, file, blocks, block: Vec::new(), offset })
    }

    /// Reads a checkpoint, block by block.
    ///
    /// # Errors
    /// [`Damage`]: it cannot be opened.
    pub fn read(&self, checkpoint: &Checkpoint) -> Result<Reader, Damage> {
        let name = file_name(checkpoint.group, checkpoint.seq);
        self.open(&name).map_err(|cause| Damage::of_file(&name, cause))
    }

    /// Reads the whole file and says what it is, or what is wrong with it.
    pub(crate) fn verify(&self, name: &str) -> Result<Checkpoint, Cause> {
        let mut reader = self.open(name)?;
        let CheckpointHeader { group, seq, position, .. } = reader.header;
        let named = name.strip_suffix(".next").and_then(|n| n.get(..file_name(group, seq).len()));
        if name_parts(named.unwrap_or(name)) != Some((group, seq)) {
            return Err(Cause::Checkpoint(CheckpointFault::Misplaced));
        }
        while reader.block()? {}
        Ok(Checkpoint { group, seq, position, bytes: reader.blocks.total() })
    }

    fn open(&self, name: &str) -> Result<Reader, Cause> {
        let unreadable = |error: io::Error| Cause::Unreadable(error.to_string());
        let file = self.disk.open(name).map_err(unreadable)?;
        let bytes = file.bytes().map_err(unreadable)?;
        if bytes < HEADER_BYTES as u64 {
            return Err(Cause::Checkpoint(CheckpointFault::Short));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header).map_err(unreadable)?;
        let header = CheckpointHeader::decode(&header, self.owner).map_err(Cause::Checkpoint)?;
        Ok(Reader {
            name: name.to_string(),
            header,
            file,
            bytes,
            offset: HEADER_BYTES as u64,
            blocks: Blocks::new(header.nonce),
            block: Vec::new(),
            over: false,
        })
    }
}

/// A checkpoint that is being written. Dropped without [`Writer::seal`], it leaves a file that the
/// next start removes.
#[derive(Debug)]
pub struct Writer {
    store: Checkpoints,
    header: CheckpointHeader,
    name: String,
    file: Arc<dyn DiskFile>,
    blocks: Blocks,
    block: Vec<u8>,
    offset: u64,
}

impl Writer {
    /// Writes the next part of the state.
    ///
    /// # Errors
    /// The disk's; the checkpoint must be given up then.
    pub fn write(&mut self, mut part: &[u8]) -> io::Result<()> {
        while !part.is_empty() {
            let (now, later) = part.split_at(part.len().min(BLOCK_BYTES_MAX - self.block.len()));
            self.block.extend_from_slice(now);
            part = later;
            if self.block.len() == BLOCK_BYTES_MAX {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.file.write_at(self.offset, &self.blocks.write(&self.block))?;
        self.file.write_at(self.offset + BLOCK_HEADER_BYTES as u64, &self.block)?;
        self.offset += (BLOCK_HEADER_BYTES + self.block.len()) as u64;
        self.block.clear();
        Ok(())
    }

    /// Gives the checkpoint up: what is there of it takes no room any more.
    pub fn abandon(self) {
        // The next start removes what cannot be removed now.
        let _ = self.store.disk.delete(&self.name);
    }

    /// Ends the state, waits until it is durable, and reads it back.
    ///
    /// # Errors
    /// The disk's, or what was read is not what was written; the file is removed.
    pub fn seal(mut self) -> io::Result<Sealed> {
        let sealed = self.finish();
        if sealed.is_err() {
            // The next start removes what cannot be removed now.
            let _ = self.store.disk.delete(&self.name);
        }
        sealed
    }

    fn finish(&mut self) -> io::Result<Sealed> {
        self.flush()?;
        self.file.write_at(self.offset, &self.blocks.clone().finish())?;
        self.file.sync()?;
        let checkpoint =
            self.store.verify(&self.name).map_err(|cause| io::Error::other(cause.to_string()))?;
        let whole = checkpoint.bytes == self.blocks.total() && checkpoint.seq == self.header.seq;
        assert!(whole, "the blocks add up");
        Ok(Sealed { name: self.name.clone(), checkpoint })
    }
}

/// A checkpoint that is durable and right, and not yet the log's; see
/// [`Journal::adopt`](crate::Journal::adopt).
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "the log must adopt it"]
pub struct Sealed {
    pub(crate) name: String,
    pub(crate) checkpoint: Checkpoint,
}

impl Sealed {
    /// What it is.
    #[must_use]
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }
}

/// Gives the blocks of a checkpoint, each checked before it is given.
#[derive(Debug)]
pub struct Reader {
    name: String,
    header: CheckpointHeader,
    file: Arc<dyn DiskFile>,
    bytes: u64,
    offset: u64,
    blocks: Blocks,
    block: Vec<u8>,
    over: bool,
}

impl Reader {
    /// Reads the next block. False at the end.
    fn block(&mut self) -> Result<bool, Cause> {
        let unreadable = |error: io::Error| Cause::Unreadable(error.to_string());
        let wrong = Cause::Checkpoint;
        let left = self.bytes - self.offset;
        if left < BLOCK_HEADER_BYTES as u64 {
            return Err(wrong(CheckpointFault::Short));
        }
        let mut header = [0; BLOCK_HEADER_BYTES];
        self.file.read_at(self.offset, &mut header).map_err(unreadable)?;
        let promise = self.blocks.expect(&header).map_err(wrong)?;
        self.offset += BLOCK_HEADER_BYTES as u64;
        if self.bytes - self.offset < promise.bytes as u64 {
            return Err(wrong(CheckpointFault::Short));
        }
        self.block.resize(promise.bytes, 0);
        self.file.read_at(self.offset, &mut self.block).map_err(unreadable)?;
        self.blocks.check(&promise, &self.block).map_err(wrong)?;
        self.offset += promise.bytes as u64;
        if promise.is_final && self.offset != self.bytes {
            return Err(wrong(CheckpointFault::Long));
        }
        Ok(!promise.is_final)
    }
}

impl Iterator for Reader {
    type Item = Result<Vec<u8>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        match self.block() {
            Ok(true) => Some(Ok(std::mem::take(&mut self.block))),
            Ok(false) => {
                self.over = true;
                None
            }
            Err(cause) => {
                self.over = true;
                Some(Err(Damage::of_file(&self.name, cause)))
            }
        }
    }
}
