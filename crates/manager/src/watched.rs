//! Objects that are to be asked whether they are alive: FaultMonitoringStyle PULL, its
//! granularity, interval and timeout (FT-CORBA §23.3.2, §23.4).
//!
//! What it is not: who asks them; that has a clock. Servers that nodes start are not among them:
//! their nodes see when they end or do not answer.
//!
//! Invariant: with LOC one object stands for all of its location, with LOC_AND_TYPE for those of
//! its type there.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quorba_corba::{Object, Transport};
use quorba_idl::ft;

use crate::group::Group;
use crate::manager::Manager;
use crate::property::{Key, Value};

/// In a report: the object was asked, and is not alive although its process may be.
pub const UNANSWERED: &str = "QuorbaUnanswered";
/// In the header of a report: a node tells it, and others that tell the same are known by it.
pub const INCIDENT: &str = "QuorbaIncident";
/// How often an object is asked, and how long it may take, where nobody has said it.
const TIMES_DEFAULT: Duration = Duration::from_secs(1);
/// Nanoseconds of what times are counted in (TimeBase::TimeT).
const TICK_NS: u64 = 100;

/// What an object stands for: all types or one, all groups or one.
pub(crate) type Stands = (Option<String>, Option<u64>);

/// An object that is asked `is_alive` (FT::PullMonitorable).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// Of all types, unless one is said.
    pub type_id: Option<String>,
    /// Of all groups, unless one is said.
    pub group: Option<u64>,
    /// Whom to ask.
    pub object: Object,
    /// How often.
    pub interval: Duration,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// It is reported not to be alive, and nobody has said since that it is.
    pub is_reported: bool,
}

impl Group {
    pub(crate) fn is_pulled(&self) -> bool {
        self.number(Key::FaultMonitoringStyle) == Some(ft::PULL)
    }

    pub(crate) fn granularity(&self) -> u16 {
        self.number(Key::FaultMonitoringGranularity).unwrap_or(ft::MEMB)
    }

    /// What one of its objects stands for at its location.
    pub(crate) fn stands_for(&self, id: u64) -> Stands {
        match self.granularity() {
            ft::LOC => (None, None),
            ft::LOC_AND_TYPE => (Some(self.type_id.clone()), None),
            _ => (Some(self.type_id.clone()), Some(id)),
        }
    }

    /// Whether somebody has said its times.
    pub(crate) fn has_times(&self) -> bool {
        self.properties().contains_key(&Key::IntervalAndTimeout)
    }

    /// How often its members are asked, and how long they may take.
    pub(crate) fn times(&self) -> (Duration, Duration) {
        match self.properties().get(&Key::IntervalAndTimeout) {
            Some(Value::Times { interval, timeout }) => {
                let of = |ticks: &u64| Duration::from_nanos(ticks.saturating_mul(TICK_NS));
                (of(interval), of(timeout))
            }
            _ => (TIMES_DEFAULT, TIMES_DEFAULT),
        }
    }
}

impl<D: Transport> Manager<D> {
    /// Whom a detector at `location` has to ask.
    #[must_use]
    pub fn watched(&self, location: &str) -> Vec<Watched> {
        let mut seen = BTreeSet::new();
        let mut watched = Vec::new();
        for (id, group) in self.state.groups.iter().filter(|(_, group)| group.is_pulled()) {
            let Some(object) = group.member(location).and_then(|member| member.object()) else {
                continue;
            };
            let stands = group.stands_for(*id);
            if seen.insert(stands.clone()) {
                let (interval, timeout) = group.times();
                let is_reported = self.is_dead(location, &stands, object);
                let ((type_id, group), object) = (stands, object.clone());
                watched.push(Watched { type_id, group, object, interval, timeout, is_reported });
            }
        }
        watched
    }
}
