//! The log as it is now, for the node that goes on writing it.
//!
//! What it is not: a recovery. It changes nothing, and judges nothing that is not durable yet.
//! Invariant: what is found is everything up to a record that is durable, or damage.

use super::replay::Memory;
use super::survey::{Files, read_header};
use crate::checkpoint::Checkpoints;
use crate::damage::{Cause, Damage};
use crate::disk::Disk;
use crate::format::segment::{self, SegmentFault};
use crate::format::{Owner, Seq, checkpoint};
use crate::nonce::Nonces;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the log on `disk` has up to `last`, which is durable, beside the journal that writes it.
/// It must not be truncated meanwhile. `lacking`: of which groups [`Journal::lacking`] knows
/// already that something is.
///
/// [`Journal::lacking`]: crate::Journal::lacking
///
/// # Errors
/// What is damaged, or cannot be read; the files of the log if they cannot be listed.
pub fn look_up(
    disk: Arc<dyn Disk>,
    owner: Owner,
    last: Seq,
    mut lacking: BTreeSet<u64>,
) -> Result<Memory, Damage> {
    let names = disk.list().map_err(|error| Damage::unreadable(".", (0, error)))?;
    let files = Files::of(names);
    let mut headers = Vec::new();
    for number in &files.segments {
        match read_header(&*disk, owner, *number)? {
            Ok(header) if header.first <= last => headers.push(header),
            // It is just being begun, or nothing was ever in it.
            Ok(_) | Err(SegmentFault::Torn) => {}
            Err(fault) => {
                return Err(Damage::of_file(&segment::file_name(*number), Cause::Segment(fault)));
            }
        }
    }
    let store = Checkpoints::new(Arc::clone(&disk), owner, Nonces::new(0));
    let (mut checkpoints, mut spoilt) = (Vec::new(), Vec::new());
    for (group, seqs) in &files.checkpoints {
        for seq in seqs.iter().rev().filter(|seq| **seq <= last) {
            let name = checkpoint::file_name(*group, *seq);
            match store.verify(&name) {
                Ok(found) => {
                    checkpoints.push(found);
                    break;
                }
                Err(cause) => {
                    lacking.insert(*group);
                    spoilt.push(Damage::of_file(&name, cause));
                }
            }
        }
    }
    let first = headers.first().map_or(last.next(), |header| header.first);
    Ok(Memory { checkpoints, spoilt, lacking, first, last, torn: None, disk, headers })
}
