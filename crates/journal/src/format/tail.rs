//! The torn-tail rule: is the first wrong record of a log a write that was never reported durable,
//! or damage?
//!
//! The writer writes a batch of records with one write, waits for one sync, reports the batch
//! durable, and only then writes the next batch. Each record carries the *watermark*: the number
//! up to which everything was durable when it was written. So at any moment only the records of
//! one batch are on the way to the disk; a crash leaves any subset of its sectors, the others
//! blank or not there at all; everything before that batch is on the disk.
//!
//! Let `s` be the number that the first wrong record should have, and `w` the highest watermark
//! that is known from anywhere: the metadata, any right record (also one *behind* `s`), a
//! checkpoint (written only when its record is durable), the first number of a later segment
//! (whose header is written only when all before it is durable).
//!
//! - `s <= w`: **damage**. Record `s` was reported durable once, so it was whole on the disk.
//! - `s > w`, and a part of the record was *never written*: **torn tail**. The record belongs to
//!   the last batch as far as anything knows. A right record behind it proves nothing by itself:
//!   sectors of one batch reach the disk in any order. Only its watermark does, and that is in `w`.
//! - `s > w`, and the record is whole but not what was written: **damage**. A crash leaves sectors
//!   unwritten; it does not change those that were written.
//!
//! And a log that ends before `w`, or before the first number of a later segment, is damaged,
//! too, though no record is wrong.
//!
//! What is behind a torn tail is never looked at again, although it may be right: the next segment
//! says with which number it begins, and a scan of this one ends there.
//!
//! # What cannot be told
//! A disk that loses the **last** batch after it said that it was synced (or a sector of zeros
//! that was something else), together with a crash before the watermark was written anywhere,
//! looks like a torn tail. The next batch carries the watermark, and the metadata has it within a
//! second, so the window is the last batches of the second before a crash on a disk that lies. The
//! other nodes of the domain have what is lost so: a promise of theirs, not of one disk.

use super::Seq;
use super::scan::{Fault, Invalid};

/// What the first wrong record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Never reported durable: the log ends before it, and goes on from there.
    TornTail,
    /// It was durable, and is not any more: what this disk remembers must not be used.
    Damage,
}

/// The torn-tail rule. `watermark` is the highest that is known from anywhere.
#[must_use]
pub fn judge(invalid: &Invalid, watermark: Seq) -> Verdict {
    if invalid.seq > watermark && invalid.fault == Fault::Torn {
        Verdict::TornTail
    } else {
        Verdict::Damage
    }
}
