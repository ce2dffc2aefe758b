//! The durable log of a node: one append-only log for all groups, checkpoints of each, and a start
//! that believes what a disk remembers as a whole or not at all.
//!
//! What it is not: something that knows what a message or a group's state means; payloads and
//! states are octets. A protocol; it neither orders nor replicates.
//!
//! Invariants: what was reported durable is found by the next start, or the start says that it
//! cannot be trusted, and why; a wrong record is never given out. The layer [`format`](mod@format)
//! is pure and `no_std` (all that is left without the feature `std`); the layer above touches no
//! disk but through [`disk::Disk`], so that the simulator tears what ships.
//!
//! ```
//! use bytes::Bytes;
//! use quorba_base::{Instant, NodeId};
//! use quorba_journal::disk::SimulatedDisk; // or FileDisk::open(path)
//! use quorba_journal::{
//!     RingId, Journal, Opened, Options, Owner, Position, Record, Found, Seq,
//! };
//! use std::sync::Arc;
//!
//! let node = NodeId::new(0).ok_or("no node")?;
//! let owner = Owner { domain_digest: 0x2f1a, node };
//! let disk = Arc::new(SimulatedDisk::new(|| 4));
//!
//! // The first boot: appends, one commit, a checkpoint of group 3.
//! let Opened { mut journal, .. } = Journal::open(disk.clone(), Options::new(owner, 1, 0x5a17))?;
//! let position = Position { component: RingId { seq: 8, representative: node }, prefix: 1 };
//! let payload = Bytes::from_static(b"transfer 10");
//! let seq = journal.append(Record::Message {
//!     origin: node,
//!     incarnation: 1,
//!     ticket: 7,
//!     position,
//!     payload: payload.clone(),
//! })?;
//! let durable = journal.commit(Instant::from_nanos(0))?;
//! assert_eq!(durable, seq); // Now the reply may go.
//! let mut writer = journal.checkpoints().begin(3, seq, position)?;
//! writer.write(b"balance 10")?;
//! journal.adopt(&writer.seal()?)?;
//!
//! // The power goes off. The second boot finds both.
//! let disk = Arc::new(disk.crash());
//! let Opened { journal, recovered } = Journal::open(disk, Options::new(owner, 2, 0x77e1))?;
//! let Found::Clean(memory) = recovered else { return Err("an honest disk".into()) };
//! for entry in memory.records() {
//!     let entry = entry?;
//!     assert_eq!((entry.seq, entry.record.payload()), (Seq(1), &payload));
//! }
//! let checkpoint = &memory.checkpoints[0];
//! assert_eq!((checkpoint.group, checkpoint.seq), (3, Seq(1)));
//! let blocks = journal.checkpoints().read(checkpoint)?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(blocks.concat(), b"balance 10");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A node does not wait for the disk on its data plane: [`Committer`] has a thread for it.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
mod checkpoint;
#[cfg(feature = "std")]
mod committer;
#[cfg(feature = "std")]
mod damage;
#[cfg(feature = "std")]
pub mod disk;
pub mod format;
#[cfg(feature = "std")]
mod inspect;
#[cfg(feature = "std")]
mod journal;
#[cfg(feature = "std")]
mod meta;
#[cfg(feature = "std")]
mod nonce;

#[cfg(feature = "std")]
pub use checkpoint::{Checkpoint, Checkpoints, Reader, Sealed, Writer};
#[cfg(feature = "std")]
pub use committer::{Committer, Notice, Refused};
#[cfg(feature = "std")]
pub use damage::{Cause, Damage};
pub use format::record::{Record, Stored};
pub use format::scan::Entry;
pub use format::{Owner, Position, RingId, Seq};
#[cfg(feature = "std")]
pub use inspect::inspect;
#[cfg(feature = "std")]
pub use journal::{
    AdoptError, CommitError, Failures, Found, Journal, Memory, OpenError, Opened, Options, Records,
    TooLong, look_up,
};
