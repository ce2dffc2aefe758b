//! The log takes a checkpoint in, and gives up what nothing needs any more.
//!
//! Invariants: a checkpoint is taken in only when its record is durable, so that a checkpoint that
//! is there proves that the log reached that far; the newest two of a group are kept; the log
//! reaches back to the record of the older of the two; the metadata forget a file before the disk
//! does.

use super::Journal;
use crate::checkpoint::Sealed;
use crate::format::Seq;
use crate::format::checkpoint::file_name;
use crate::format::segment;
use std::io;

/// A checkpoint was not taken in. Its file is there still, and can be offered again.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Commit first: its record is not durable.
    #[error("record {0} is not durable yet")]
    NotDurable(Seq),
    /// The disk's.
    #[error("the disk failed: {0}")]
    Disk(#[from] io::Error),
}

/// Checkpoints of a group that are kept: the newest, and one to fall back to.
const KEPT: usize = 2;

impl Journal {
    /// Takes a checkpoint in; the oldest of its group goes if there are more than two. One that is
    /// older than the newest is removed.
    ///
    /// # Errors
    /// [`AdoptError`].
    pub fn adopt(&mut self, sealed: &Sealed) -> Result<(), AdoptError> {
        let Sealed { name, checkpoint } = sealed;
        let (group, seq) = (checkpoint.group, checkpoint.seq);
        if seq > self.durable {
            return Err(AdoptError::NotDurable(seq));
        }
        let newest = self.kept(group).last().copied();
        if newest > Some(seq) {
            self.disk.delete(name)?;
            return Ok(());
        }
        let own = file_name(group, seq);
        match self.disk.rename(name, &own) {
            // An earlier attempt came as far as this.
            Err(error) if error.kind() == io::ErrorKind::NotFound => drop(self.disk.open(&own)?),
            renamed => renamed?,
        }
        self.disk.sync_dir()?;
        self.metadata.checkpoints.insert((group, seq), checkpoint.bytes);
        self.metadata.lacking.remove(&group);
        let kept = self.kept(group);
        let gone = &kept[..kept.len().saturating_sub(KEPT)];
        for seq in gone {
            self.metadata.checkpoints.remove(&(group, *seq));
        }
        self.metadata.watermark = self.durable;
        self.meta.store(&self.metadata)?;
        for seq in gone {
            self.disk.delete(&file_name(group, *seq))?;
        }
        Ok(())
    }

    /// Forgets a group that the domain does not have any more: its checkpoints go.
    ///
    /// # Errors
    /// The disk's; what is left over goes at the next start.
    pub fn forget(&mut self, group: u64) -> io::Result<()> {
        let gone = self.kept(group);
        self.metadata.checkpoints.retain(|(of, _), _| *of != group);
        self.metadata.lacking.remove(&group);
        self.meta.store(&self.metadata)?;
        for seq in gone {
            self.disk.delete(&file_name(group, seq))?;
        }
        Ok(())
    }

    /// Gives up the segments whose records are all before `seq`, but for those that the older of a
    /// group's two checkpoints needs: its own record is kept, too, because it may be the one that
    /// says where all groups stand. Returns the number of the first record that is left.
    ///
    /// # Errors
    /// The disk's; what is left over goes at the next start.
    pub fn truncate_before(&mut self, seq: Seq) -> io::Result<Seq> {
        let needed = self.oldest_kept().map_or(seq, |oldest| seq.min(oldest));
        let firsts: Vec<_> =
            self.metadata.segments.iter().map(|(number, (first, _))| (*number, *first)).collect();
        // A segment ends where the next one begins. The last one is being written.
        let gone: Vec<u32> = firsts
            .windows(2)
            .take_while(|pair| pair[1].1 <= needed)
            .map(|pair| pair[0].0)
            .collect();
        if let Some(last_gone) = gone.last().copied() {
            let before = self.metadata.segments.clone();
            self.metadata.segments.retain(|number, _| !gone.contains(number));
            self.metadata.watermark = self.durable;
            if let Err(error) = self.meta.store(&self.metadata) {
                // So that the next attempt finds what is left to do.
                self.metadata.segments = before;
                return Err(error);
            }
            // With those that failed when they were begun, of which the metadata never heard: they
            // would be taken for the beginning of the log by who reads it now.
            for name in self.disk.list()? {
                if segment::number_of(&name).is_some_and(|number| number <= last_gone) {
                    self.disk.delete(&name)?;
                }
            }
        }
        let first = self.metadata.segments.values().next();
        Ok(first.map_or(self.durable.next(), |(first, _)| *first))
    }

    /// Ends the doubt: the node has rebuilt its groups from the others, and every group's state is
    /// in a checkpoint or will be rebuilt again. The files that were set aside are removed.
    ///
    /// # Errors
    /// The disk's; call it again.
    pub fn trust(&mut self) -> io::Result<()> {
        self.metadata.doubt = None;
        self.metadata.watermark = self.durable;
        self.meta.store(&self.metadata)?;
        for name in self.disk.list()? {
            if name.starts_with(super::open::ASIDE) {
                self.disk.delete(&name)?;
            }
        }
        self.disk.sync_dir()
    }

    /// The group's checkpoints, oldest first.
    fn kept(&self, group: u64) -> Vec<Seq> {
        let all = (group, Seq::NONE)..=(group, Seq(u64::MAX));
        self.metadata.checkpoints.range(all).map(|((_, seq), _)| *seq).collect()
    }

    fn oldest_kept(&self) -> Option<Seq> {
        self.metadata.checkpoints.keys().map(|(_, seq)| *seq).min()
    }
}
