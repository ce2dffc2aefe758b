//! One file of a simulated disk: what is read, what is on the platter, and which sectors differ.
//!
//! Invariant: outside of the dirty sectors, and up to the shorter length, both are equal, but for
//! what a fault did.

use super::fault::Survival;
use crate::format::SECTOR_BYTES;
use std::collections::BTreeSet;
use std::fmt;

/// See the module's text.
#[derive(Clone, Default)]
pub(super) struct Image {
    /// What a read gives: the operating system's cache over the platter.
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// Octets from which a read fails, for ever.
    pub(super) unreadable: BTreeSet<usize>,
}

impl fmt::Debug for Image {
    /// The lengths, not the content: a message of a failed test has to stay readable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("seen_bytes", &self.seen.len())
            .field("durable_bytes", &self.durable.len())
            .field("dirty", &self.dirty)
            .field("unreadable", &self.unreadable)
            .finish()
    }
}

impl Image {
    pub(super) fn of(content: Vec<u8>) -> Self {
        Self { seen: content.clone(), durable: content, ..Self::default() }
    }

    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if end > self.seen.len() {
            self.set_bytes(end);
        }
        self.seen[offset..end].copy_from_slice(data);
        if !data.is_empty() {
            self.dirty.extend(offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
        }
    }

    pub(super) fn set_bytes(&mut self, bytes: usize) {
        // What is cut off and comes back reads as zeros. What is new does so in any case.
        self.dirty.extend(bytes / SECTOR_BYTES..self.seen.len().div_ceil(SECTOR_BYTES));
        self.seen.resize(bytes, 0);
    }

    pub(super) fn is_readable(&self, offset: usize, len: usize) -> bool {
        self.unreadable.range(offset..offset + len).next().is_none()
    }

    /// The runs of sectors that a sync writes: first sector and how many.
    pub(super) fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for &sector in &self.dirty {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == sector => *count += 1,
                _ => runs.push((sector, 1)),
            }
        }
        runs
    }

    pub(super) fn dirty(&self) -> Vec<usize> {
        self.dirty.iter().copied().collect()
    }

    /// What a run holds, to be written at another place.
    pub(super) fn run(&self, (first, count): (usize, usize)) -> Vec<u8> {
        let end = ((first + count) * SECTOR_BYTES).min(self.seen.len());
        self.seen.get(first * SECTOR_BYTES..end).unwrap_or_default().to_vec()
    }

    /// A stray write: on the platter, and not where anybody meant it to be.
    pub(super) fn stray(&mut self, offset: usize, data: &[u8]) {
        let room = self.durable.len().saturating_sub(offset).min(data.len());
        if room > 0 {
            self.durable[offset..offset + room].copy_from_slice(&data[..room]);
        }
    }

    /// The platter gets those dirty sectors that `survival` says, and none is dirty any more. The
    /// length is the whole one, or as much as the sectors need.
    pub(super) fn settle(
        &mut self,
        whole_length: bool,
        mut survival: impl FnMut(usize) -> Survival,
    ) {
        if self.dirty.is_empty() && self.seen.len() == self.durable.len() {
            return;
        }
        let before = self.durable.len();
        let mut end = if whole_length { self.seen.len() } else { before.min(self.seen.len()) };
        self.durable.resize(before.max(self.seen.len()), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let from = sector * SECTOR_BYTES;
            let whole = SECTOR_BYTES.min(self.seen.len().saturating_sub(from));
            let kept = match survival(sector) {
                Survival::Lost => 0,
                Survival::Whole => whole,
                Survival::Prefix(octets) => octets.min(whole),
            };
            if kept > 0 {
                self.durable[from..from + kept].copy_from_slice(&self.seen[from..from + kept]);
                end = end.max(from + kept);
            }
        }
        self.durable.truncate(end);
    }

    /// What is read after the power was off.
    pub(super) fn restart(&mut self) {
        self.dirty.clear();
        self.seen.clone_from(&self.durable);
    }
}
