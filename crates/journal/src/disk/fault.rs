//! Which faults a simulated disk has, and how often.
//!
//! What it is not: a source of chance; numbers are drawn by the generator that the caller gave.

use std::fmt;

/// Chances in a thousand, unless said otherwise. None by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// A write stores only its beginning, and fails.
    pub short_write: u32,
    /// A write fails and stores nothing.
    pub write_error: u32,
    /// A sync fails; each sector that it should have written is on the disk or lost, and a later
    /// sync does not write it.
    pub sync_error: u32,
    /// A sync succeeds, and has written nothing yet.
    pub sync_lie: u32,
    /// A run of sectors goes to another place, while its own place stays as it was.
    pub misdirected: u32,
    /// A run of sectors goes nowhere.
    pub lost: u32,
    /// A read fails.
    pub read_error: u32,
    /// At a crash, a sector that was not synced is written only up to some octet.
    pub torn_sector: u32,
    /// At a crash, a sector that was not synced is lost. Half of them if 0.
    pub lost_sector: u32,
    /// At a crash, a bit of a file flips.
    pub bit_rot: u32,
    /// The most octets that all files hold together.
    pub capacity_bytes: Option<u64>,
    /// After so many operations that change something, nothing works until the crash.
    pub power_fails_after: Option<u64>,
}

/// What a crash leaves of a sector that was written and not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// What was there before.
    Lost,
    /// What was written.
    Whole,
    /// So many octets of what was written, then what was there before.
    Prefix(usize),
}

/// The caller's generator.
pub(super) struct Chance(pub(super) Box<dyn FnMut() -> u64 + Send>);

impl Chance {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        (self.0)() % bound.max(1)
    }

    /// Draws only for a fault that can occur, so that a disk without faults draws nothing.
    pub(super) fn per_mille(&mut self, chance: u32) -> bool {
        chance > 0 && self.below(1000) < u64::from(chance)
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}
