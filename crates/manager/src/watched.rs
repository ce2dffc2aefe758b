//! Objects that are to be asked whether they are alive: FaultMonitoringStyle PULL, its
//! granularity, interval and timeout (FT-CORBA §23.3.2, §23.4).
//!
//! What it is not: who asks them; that is decided in `detect`. Servers that nodes start are among
//! them, by the names of their groups: their nodes say where they are, if their type says that they
//! can be asked.
//!
//! Invariants: with LOC one object stands for all of its location, with LOC_AND_TYPE for those of
//! its type there; one that a factory made or the application added does so before a server.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quorba_corba::{Home, Object, Transport};
use quorba_idl::ft;

use crate::detect::{Charge, Target};
use crate::group::{Group, Member};
use crate::manager::{Manager, group_name};
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

/// Who is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whom {
    /// An object that a factory made or the application added.
    Object(Object),
    /// The server that a node started for the group of that name.
    Server(String),
}

/// An object that is asked `is_alive` (FT::PullMonitorable).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// Its node.
    pub location: String,
    /// Of all types, unless one is said.
    pub type_id: Option<String>,
    /// Of all groups, unless one is said.
    pub group: Option<u64>,
    /// Whom to ask.
    pub whom: Whom,
    /// What the manager knows it by.
    pub name: Object,
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

impl Watched {
    pub(crate) fn target(&self) -> Target {
        let (location, type_id, group) = (self.location.clone(), self.type_id.clone(), self.group);
        Target { location, type_id, group }
    }
}

/// What a member that a node starts is known by; nobody can call it by that.
fn server_name(id: u64, location: &str) -> Object {
    let home = Home { addresses: Vec::from([(String::from(location), 1)]), prefix: Vec::new() };
    home.object("", group_name(id).as_bytes())
}

impl Member {
    /// What it is known by in reports.
    pub(crate) fn name(&self, id: u64) -> Object {
        self.object().cloned().unwrap_or_else(|| server_name(id, &self.location))
    }
}

impl<D: Transport> Manager<D> {
    /// Members that are asked, or say that they live, each with its group: objects before servers.
    pub(crate) fn monitored(&self) -> impl Iterator<Item = (u64, &Group, &Member)> {
        let all = || {
            let groups = self.state.groups.iter();
            let monitored = groups.filter(|(_, group)| group.is_pulled() || group.is_pushed());
            monitored.flat_map(|(id, group)| {
                group.members.iter().map(move |member| (*id, group, member))
            })
        };
        let is_object = |one: &(u64, &Group, &Member)| one.2.object().is_some();
        let servers = all().filter(move |one| !is_object(one) && one.1.is_pulled());
        all().filter(is_object).chain(servers)
    }

    /// Whom a detector has to ask. A server is asked by who is at its node.
    #[must_use]
    pub fn watched(&self, charge: &Charge) -> Vec<Watched> {
        let mut seen = BTreeSet::new();
        let mut watched = Vec::new();
        for (id, group, member) in self.monitored().filter(|(_, group, _)| group.is_pulled()) {
            let location = &member.location;
            let whom = match member.object() {
                Some(object) if charge.has(location) => Whom::Object(object.clone()),
                None if charge.node == *location => Whom::Server(group_name(id)),
                _ => continue,
            };
            let stands = group.stands_for(id);
            if seen.insert((location.clone(), stands.clone())) {
                let (interval, timeout) = group.times();
                let name = member.name(id);
                let is_reported = self.is_dead(location, &stands, &name);
                let ((type_id, group), location) = (stands, location.clone());
                watched.push(Watched {
                    location,
                    type_id,
                    group,
                    whom,
                    name,
                    interval,
                    timeout,
                    is_reported,
                });
            }
        }
        watched
    }
}
