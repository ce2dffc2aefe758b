//! The analyzer (FT-CORBA §23.4.6): of several reports of one fault, one.
//!
//! Nodes tell of a view each for itself, one earlier and another later. The number of the view in
//! which a node went or came says what is news and what is late.
//!
//! Invariants: what it holds back was told before, is part of what was, or is over; a location of
//! which it was told that it is back can be reported again.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};

use quorba_base::canary;

use crate::event::Report;

/// Repetitions are known for so many reports.
const INCIDENTS_MAX: usize = 4096;
/// Locations that are known to be dead, or to be back.
const LOCATIONS_MAX: usize = 1024;
/// Between the name of a node and the number of a view.
const VIEW: &str = " view ";

/// What an incident says of a node: its name, and in which view it went or came.
pub(crate) fn node_and_view(incident: &str) -> (&str, Option<u64>) {
    match incident.rsplit_once(VIEW) {
        Some((node, view)) => (node, view.parse().ok()),
        None => (incident, None),
    }
}

/// What was told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Analyzer {
    /// The oldest first.
    pub(crate) incidents: VecDeque<String>,
    /// In which view they went; 0: nobody has said it.
    pub(crate) dead: BTreeMap<String, u64>,
    /// In which view they came last.
    pub(crate) back: BTreeMap<String, u64>,
}

impl Analyzer {
    /// Whether a report says something new. One of an object that was asked is never of a node.
    pub(crate) fn is_news(&mut self, report: &Report, is_of_object: bool) -> bool {
        if !report.incident.is_empty() {
            if self.incidents.contains(&report.incident) {
                return false;
            }
            if self.incidents.len() >= INCIDENTS_MAX {
                self.incidents.pop_front();
            }
            self.incidents.push_back(report.incident.clone());
        }
        let is_all = report.type_id.is_none() && report.group.is_none();
        // Only nodes say when it is back.
        let is_node = is_all && !report.incident.is_empty() && !is_of_object;
        let (_, view) = node_and_view(&report.incident);
        let view = view.filter(|_| is_node);
        if canary!(ReportsObjectsOfTheDead) && !is_all {
            return true;
        }
        if let Some(dead) = self.dead.get_mut(&report.location) {
            *dead = (*dead).max(view.unwrap_or(0));
            return false;
        }
        let back = self.back.get(&report.location);
        if view.is_some_and(|view| back.is_some_and(|back| view <= *back)) {
            return false;
        }
        if is_node && self.dead.len() < LOCATIONS_MAX {
            self.dead.insert(report.location.clone(), view.unwrap_or(0));
        }
        true
    }

    /// A location has come back in a view.
    pub(crate) fn is_up(&mut self, location: &str, view: u64) {
        if self.dead.get(location).is_some_and(|dead| *dead > view) {
            return;
        }
        self.dead.remove(location);
        let is_view = view < u64::MAX;
        if is_view && (self.back.len() < LOCATIONS_MAX || self.back.contains_key(location)) {
            let back = self.back.entry(location.to_string()).or_default();
            *back = (*back).max(view);
        }
    }
}
