//! Objects that say by themselves that they live, and of which others say that they do not:
//! FaultMonitoringStyle PUSH (FT-CORBA §23.3.2, §23.4).
//!
//! The standard leaves open how an object says that it lives; here it calls `Quorba::PushMonitor`
//! with its own reference, for that is all that an object knows which a factory has made.
//!
//! What it is not: who waits for them; that is decided in `detect`. Servers that nodes start are
//! not among them: their nodes see when they end or do not answer.
//!
//! Invariants: what was heard is no part of the state, and no answer depends on it; a report by
//! somebody else than a node is passed on to who can look at the object, and ends nobody itself.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quorba_corba::giop::SystemException;
use quorba_corba::{Object, Transport};
use quorba_idl::{ft, quorba};

use crate::detect::{Charge, Target};
use crate::group::Group;
use crate::manager::Manager;
use crate::property::Key;
use crate::watched::Stands;

/// What an object is known by: host, port and key of its first address.
type Identity = (String, u16, Vec<u8>);

/// By object: the groups that it is in, and where.
type Index = BTreeMap<Identity, BTreeSet<(String, u64)>>;

/// What is of this replica alone.
#[derive(Default)]
pub(crate) struct Heard {
    /// Made again after each change.
    pub(crate) index: Option<Index>,
    /// Which members have said that they live, since somebody has asked.
    alive: BTreeSet<(String, u64)>,
    /// Of whom somebody else than a node has said that they do not.
    pub(crate) accused: BTreeSet<(String, u64)>,
}

impl Heard {
    /// Whether some object has said that it lives.
    pub(crate) fn has_heard(&self) -> bool {
        !self.alive.is_empty()
    }
}

/// An object that is to say that it lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pushing {
    /// Its node.
    pub location: String,
    /// Of all types, unless one is said.
    pub type_id: Option<String>,
    /// Of all groups, unless one is said.
    pub group: Option<u64>,
    /// The object of a member, to be asked if somebody says that it is not alive.
    pub object: Object,
    /// For how long it may be silent; for ever if nobody has set the interval and the timeout.
    pub silence: Option<Duration>,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// It is reported not to be alive, and nobody has heard it since.
    pub is_reported: bool,
    /// It has said that it lives, since this was asked last.
    pub is_heard: bool,
    /// Somebody else than a node has said that it does not, since this was asked last.
    pub is_accused: bool,
}

pub(crate) fn identity(object: &Object) -> Option<Identity> {
    let first = object.0.endpoints().into_iter().next()?;
    Some((first.host.to_ascii_lowercase(), first.port, first.object_key.to_vec()))
}

impl Pushing {
    pub(crate) fn target(&self) -> Target {
        let (location, type_id, group) = (self.location.clone(), self.type_id.clone(), self.group);
        Target { location, type_id, group }
    }
}

impl Group {
    pub(crate) fn is_pushed(&self) -> bool {
        self.number(Key::FaultMonitoringStyle) == Some(ft::PUSH)
    }
}

impl<D: Transport> Manager<D> {
    /// Who is to say to a detector that it lives; what was heard is said once.
    pub fn pushing(&mut self, charge: &Charge) -> Vec<Pushing> {
        let mut found: BTreeMap<(String, Stands), Pushing> = BTreeMap::new();
        let heard = &mut self.heard;
        let groups = self.state.groups.iter().filter(|(_, group)| group.is_pushed());
        let members =
            groups.flat_map(|(id, group)| group.members.iter().map(move |one| (id, group, one)));
        for (id, group, member) in members {
            let location = &member.location;
            let Some(object) = member.object().filter(|_| charge.has(location)) else { continue };
            let at = (location.clone(), *id);
            let (is_heard, is_accused) = (heard.alive.remove(&at), heard.accused.remove(&at));
            let stands = group.stands_for(*id);
            let is_reported = self.state.reports.is_dead(location, &stands, object);
            let (interval, timeout) = group.times();
            let silence = group.has_times().then(|| interval.saturating_add(timeout));
            match found.entry((location.clone(), stands)) {
                Entry::Occupied(entry) => {
                    let one = entry.into_mut();
                    // The shortest silence that one of the groups allows counts.
                    one.silence = one.silence.into_iter().chain(silence).min();
                    one.is_heard |= is_heard;
                    one.is_accused |= is_accused;
                }
                Entry::Vacant(entry) => {
                    let (location, (type_id, group)) = entry.key().clone();
                    let object = object.clone();
                    entry.insert(Pushing {
                        location,
                        type_id,
                        group,
                        object,
                        silence,
                        timeout,
                        is_reported,
                        is_heard,
                        is_accused,
                    });
                }
            }
        }
        // For others, and those at other locations, nobody waits here.
        heard.alive.clear();
        heard.accused.clear();
        found.into_values().collect()
    }

    fn index(&mut self) -> &Index {
        let groups = &self.state.groups;
        self.heard.index.get_or_insert_with(|| {
            let mut index = Index::new();
            for (id, group) in groups.iter().filter(|(_, group)| group.is_pushed()) {
                for member in &group.members {
                    if let Some(identity) = member.object().and_then(identity) {
                        index.entry(identity).or_default().insert((member.location.clone(), *id));
                    }
                }
            }
            index
        })
    }
}

pub(crate) struct PushView<'m, D>(pub(crate) &'m mut Manager<D>);

impl<D: Transport> quorba::PushMonitor for PushView<'_, D> {
    fn alive(&mut self, member: Object) -> Result<bool, SystemException> {
        let Some(identity) = identity(&member) else { return Ok(false) };
        self.0.note_alive(&member);
        let found = self.0.index().get(&identity).cloned().unwrap_or_default();
        let is_member = !found.is_empty();
        if self.0.heard.alive.len() < self.0.limits.groups_max {
            self.0.heard.alive.extend(found);
        }
        Ok(is_member)
    }
}
