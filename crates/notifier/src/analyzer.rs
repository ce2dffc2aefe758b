//! The analyzer (FT-CORBA §23.4.6): of several reports of one fault, one.
//!
//! Invariants: what it holds back was told before, or is part of what was; a location of which it
//! was told that it is back can be reported again.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;

use crate::event::Report;

/// Repetitions are known for so many reports.
const INCIDENTS_MAX: usize = 4096;
/// Locations that are known to be dead.
const LOCATIONS_MAX: usize = 1024;

/// What was told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Analyzer {
    /// The oldest first.
    pub(crate) incidents: VecDeque<String>,
    pub(crate) dead: BTreeSet<String>,
}

impl Analyzer {
    /// Whether a report says something new.
    pub(crate) fn is_news(&mut self, report: &Report) -> bool {
        if !report.incident.is_empty() {
            if self.incidents.contains(&report.incident) {
                return false;
            }
            if self.incidents.len() >= INCIDENTS_MAX {
                self.incidents.pop_front();
            }
            self.incidents.push_back(report.incident.clone());
        }
        if self.dead.contains(&report.location) {
            return false;
        }
        if report.type_id.is_none() && report.group.is_none() && self.dead.len() < LOCATIONS_MAX {
            self.dead.insert(report.location.clone());
        }
        true
    }

    /// A location is back.
    pub(crate) fn is_up(&mut self, location: &str) {
        self.dead.remove(location);
    }
}
