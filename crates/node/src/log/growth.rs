//! How long the log is, and when that is too long.
//!
//! What it is not: how it is compacted. Invariant: nodes with logs of the same length do not find
//! them too long at the same time, for every server gives its state then.

use quorba_base::NodeId;
use quorba_config::Domain;
use quorba_journal::Options;

/// Of the bound: so much later it is tried again.
const AGAIN: u64 = 8;

/// The smallest segment.
const SEGMENT_BYTES_MIN: u64 = 256 << 10;

/// How long segments are: a log is compacted by whole ones.
pub(super) fn segment_bytes(log_bytes: Option<u64>) -> u64 {
    let most = Options::SEGMENT_BYTES;
    log_bytes.map_or(most, |bytes| (bytes / 4).clamp(SEGMENT_BYTES_MIN, most))
}

/// See the module's text.
pub(super) struct Growth {
    /// `None`: it is never too long.
    bound: Option<u64>,
    /// Octets since the log was compacted last.
    bytes: u64,
    /// At so many the engine is told.
    due: u64,
    /// It was told, and could not.
    is_held: bool,
}

impl Growth {
    /// `found`: octets of the log at the start.
    pub(super) fn new(domain: &Domain, me: NodeId, found: u64) -> Self {
        let bound = domain.limits.log_bytes;
        let nodes = domain.nodes.len().max(1) as u64;
        let part = |bound: u64| bound / nodes * u64::from(me.index());
        let due = bound.map_or(u64::MAX, |bound| bound.saturating_add(part(bound)));
        // A log that was compacted in time has so much before the last place that it can begin at.
        let bytes = found.saturating_sub(bound.unwrap_or(0));
        Self { bound, bytes, due, is_held: false }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// It is too long, and stays so for now.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(super) fn is_due(&self) -> bool {
        self.bytes >= self.due
    }

    /// The engine was told, and begins to compact the log, or cannot.
    pub(super) fn told(&mut self, is_begun: bool) {
        let Some(bound) = self.bound else { return };
        self.is_held = !is_begun;
        if is_begun {
            (self.bytes, self.due) = (0, bound);
        } else {
            self.due = self.bytes.saturating_add(bound / AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_be_compacted_is_tried_again_a_little_later_and_a_new_one_after_all() {
        let mut growth = Growth { bound: Some(800), bytes: 0, due: 900, is_held: false };
        growth.add(899);
        assert!(!growth.is_due());
        growth.add(1);
        assert!(growth.is_due());
        growth.told(false);
        growth.add(99);
        assert!(growth.is_held() && !growth.is_due());
        growth.add(1);
        assert!(growth.is_due());
        growth.told(true);
        growth.add(799);
        assert!(!growth.is_held() && !growth.is_due());
        growth.add(1);
        assert!(growth.is_due());
    }
}
