//! Reports of faults that were taken in: which are known, which objects are reported not to be
//! alive, and what the fault notifier has to be told of these.
//!
//! What it is not: who tells the notifier. The process of the replica that is first in does, and
//! says what it has told ([`Manager::for_notifier`]).
//!
//! Invariants: what several tell of one event is handled once; of an object that is not alive the
//! notifier is told once, until the object answers again or has gone; that waits in the state of
//! all replicas until somebody says that it was told.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::{Object, Transport};

use crate::group::{keep_object, kept_object, kept_text};
use crate::manager::Manager;
use crate::pushed::identity;
use crate::watched::Stands;

/// Repetitions are known for so many reports.
const INCIDENTS_MAX: usize = 2_048;
/// So much waits for the notifier; the oldest goes first.
const WAITING_MAX: usize = 1_000;

/// An object that is not alive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unanswered {
    /// Its node.
    pub location: String,
    /// It stands for objects of this type, or of all.
    pub type_id: Option<String>,
    /// It stands for the member of this group, or of all.
    pub group: Option<u64>,
    /// The same in repetitions of the report, and in no other.
    pub incident: String,
}

/// See the module's text.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Reports {
    /// What was handled, the oldest first.
    incidents: VecDeque<String>,
    /// Who is reported: where, for whom it stands, and the object.
    dead: BTreeMap<(String, Stands), Object>,
    waiting: VecDeque<Unanswered>,
}

impl Reports {
    pub(crate) fn knows(&self, incident: &str) -> bool {
        !incident.is_empty() && self.incidents.iter().any(|known| known == incident)
    }

    pub(crate) fn note(&mut self, incident: String) {
        if incident.is_empty() || self.knows(&incident) {
            return;
        }
        if self.incidents.len() >= INCIDENTS_MAX {
            self.incidents.pop_front();
        }
        self.incidents.push_back(incident);
    }

    /// The notifier was told these, or never will be.
    pub(crate) fn told(&mut self, incidents: &[String]) {
        self.waiting.retain(|one| !incidents.contains(&one.incident));
    }

    pub(crate) fn is_dead(&self, location: &str, stands: &Stands, object: &Object) -> bool {
        self.dead.get(&(String::from(location), stands.clone())) == Some(object)
    }

    pub(crate) fn keep(&self, out: &mut Writer) {
        out.write_count(self.incidents.len());
        self.incidents.iter().for_each(|incident| out.write_octets(incident.as_bytes()));
        out.write_count(self.dead.len());
        for ((location, (type_id, group)), object) in &self.dead {
            out.write_octets(location.as_bytes());
            keep_stands((type_id.as_deref(), *group), out);
            keep_object(object, out);
        }
        out.write_count(self.waiting.len());
        for one in &self.waiting {
            out.write_octets(one.location.as_bytes());
            keep_stands((one.type_id.as_deref(), one.group), out);
            out.write_octets(one.incident.as_bytes());
        }
    }

    pub(crate) fn kept(from: &mut Reader<'_>) -> Result<Self, MessageError> {
        let mut reports = Self::default();
        for _ in 0..from.read_count(4, usize::MAX, "incidents")? {
            reports.incidents.push_back(kept_text(from, "incident")?);
        }
        for _ in 0..from.read_count(6, usize::MAX, "dead")? {
            let key = (kept_text(from, "location")?, kept_stands(from)?);
            if reports.dead.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(from.wrong("dead"));
            }
            reports.dead.insert(key, kept_object(from)?);
        }
        for _ in 0..from.read_count(10, usize::MAX, "waiting")? {
            let location = kept_text(from, "location")?;
            let (type_id, group) = kept_stands(from)?;
            let incident = kept_text(from, "incident")?;
            reports.waiting.push_back(Unanswered { location, type_id, group, incident });
        }
        Ok(reports)
    }
}

fn keep_stands((type_id, group): (Option<&str>, Option<u64>), out: &mut Writer) {
    out.write_bool(type_id.is_some());
    if let Some(type_id) = type_id {
        out.write_octets(type_id.as_bytes());
    }
    out.write_bool(group.is_some());
    if let Some(group) = group {
        out.write_u64(group);
    }
}

fn kept_stands(from: &mut Reader<'_>) -> Result<Stands, MessageError> {
    let type_id = if from.read_bool("has type")? { Some(kept_text(from, "type")?) } else { None };
    let group = if from.read_bool("has group")? { Some(from.read_u64("group")?) } else { None };
    Ok((type_id, group))
}

impl<D: Transport> Manager<D> {
    /// What the notifier has to be told, the oldest first and so many at most.
    #[must_use]
    pub fn for_notifier(&self, how_many: usize) -> Vec<Unanswered> {
        self.state.reports.waiting.iter().take(how_many).cloned().collect()
    }

    /// Whether the object that stands for others at a location is reported not to be alive.
    pub(crate) fn is_dead(&self, location: &str, stands: &Stands, object: &Object) -> bool {
        self.state.reports.is_dead(location, stands, object)
    }

    /// The object whose liveness is looked at for others at a location.
    fn asked_for(&self, location: &str, stands: &Stands) -> Option<Object> {
        let mut members = self.monitored();
        let found = members.find(|(id, group, member)| {
            member.location == location && group.stands_for(*id) == *stands
        });
        found.map(|(id, _, member)| member.name(id))
    }

    /// An object is said not to be alive. Only what has a name of its own is for the notifier: the
    /// rest comes from there.
    pub(crate) fn note_unanswered(&mut self, one: Unanswered) {
        let stands = (one.type_id.clone(), one.group);
        let Some(object) = self.asked_for(&one.location, &stands) else { return };
        if self.is_dead(&one.location, &stands, &object) {
            return;
        }
        let reports = &mut self.state.reports;
        reports.dead.insert((one.location.clone(), stands), object);
        if one.incident.is_empty() {
            return;
        }
        reports.waiting.push_back(one);
        if reports.waiting.len() > WAITING_MAX {
            reports.waiting.pop_front();
        }
    }

    /// An object has said that it lives.
    pub(crate) fn note_alive(&mut self, object: &Object) {
        let dead = &mut self.state.reports.dead;
        if dead.is_empty() {
            return;
        }
        let alive = identity(object);
        dead.retain(|_, one| identity(one) != alive);
    }

    /// Who has gone is not waited for.
    pub(crate) fn forget_gone(&mut self) {
        if self.state.reports.dead.is_empty() {
            return;
        }
        let mut dead = core::mem::take(&mut self.state.reports.dead);
        dead.retain(|(location, stands), object| {
            self.asked_for(location, stands).as_ref() == Some(&*object)
        });
        self.state.reports.dead = dead;
    }
}
