//! Where processes run, and whether cores may sleep: the settings of a measurement.
//!
//! On a machine whose idle cores halt, waking one can cost more than everything that is being
//! measured, so a latency without its setting says nothing.
//!
//! Invariants: whoever is started between [`Placement::enter`] and its drop inherits the
//! setting; after the drop the calling thread may run where it could before.

use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::peer::Peer;

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// The scheduler chooses.
    Free,
    /// Every process runs on one core, the same for all.
    Pinned,
    /// The scheduler chooses, and an idle-priority spinner on every core keeps it from halting.
    Awake,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 3] = [Self::Free, Self::Pinned, Self::Awake];

    /// The word in plans and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pinned => "pinned",
            Self::Awake => "awake",
        }
    }

    /// What it means, for a report.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Free => "the scheduler places every process; idle cores halt",
            Self::Pinned => "every process on one and the same core",
            Self::Awake => "the scheduler places every process; no core ever halts",
        }
    }

    /// The setting of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.as_str() == name)
    }
}

/// A setting that is in force.
pub(crate) struct Placement {
    /// Where this thread may run otherwise.
    before: CpuSet,
    /// Ended when dropped.
    spinners: Vec<Peer>,
}

impl Placement {
    /// Puts the setting in force for what this thread starts. `program` is asked for spinners.
    pub(crate) fn enter(setting: Setting, program: &Path) -> Result<Self, LabError> {
        let doing = "ask where this process may run";
        let before =
            sched_getaffinity(None).map_err(|error| LabError::system(doing)(error.into()))?;
        let mut placement = Self { before, spinners: Vec::new() };
        match setting {
            Setting::Free => {}
            Setting::Pinned => {
                // The first core often serves the interrupts.
                let core = cores_of(&before).last().copied().expect("a thread runs somewhere");
                stay_on(core)?;
            }
            Setting::Awake => {
                for core in cores_of(&before) {
                    placement.spinners.push(Peer::start_spinner(program, core)?);
                }
            }
        }
        Ok(placement)
    }

    /// Process ids of the spinners.
    pub(crate) fn spinners(&self) -> impl Iterator<Item = u32> {
        self.spinners.iter().map(Peer::pid)
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        // It may do what it could do before; if not, the next block would tell.
        let _restored = sched_setaffinity(None, &self.before);
    }
}

/// Cores on which this thread may run.
pub(crate) fn cores() -> Vec<usize> {
    sched_getaffinity(None).map(|set| cores_of(&set)).unwrap_or_default()
}

/// Cores of the machine that are switched on.
pub(crate) fn cores_online() -> usize {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    text.lines().filter(is_core).count().max(1)
}

/// This thread, and what it starts, runs on this core and no other.
pub(crate) fn stay_on(core: usize) -> Result<(), LabError> {
    let mut one = CpuSet::new();
    one.set(core);
    let doing = format!("run on core {core} alone");
    sched_setaffinity(None, &one).map_err(|error| LabError::system(doing)(error.into()))
}

fn cores_of(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_is_one_core_and_ends() {
        let before = cores();
        assert!(!before.is_empty());
        let program = Path::new("nobody starts this");
        let placement = Placement::enter(Setting::Pinned, program).expect("a setting");
        assert_eq!(cores(), [*before.last().expect("a core")]);
        drop(placement);
        assert_eq!(cores(), before);
    }

    #[test]
    fn names_are_found() {
        for setting in Setting::ALL {
            assert_eq!(Setting::find(setting.as_str()), Some(setting));
        }
        assert_eq!(Setting::find("asleep"), None);
    }
}
