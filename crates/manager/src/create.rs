//! The GenericFactory (FT-CORBA §23.3.11): groups created and deleted.
//!
//! Invariants: a creation that fails leaves no group and no object behind that could be taken
//! away; which locations are tried, and in which order, is a function of the request, the state
//! and the domain's answers.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::giop::ExceptionKind;
use quorba_corba::{Any, Object, Transport, raise_system};
use quorba_idl::ft;
use quorba_idl::quorba::GroupInfo;
use quorba_idl::quorba::domain::CreateGroupError;

use crate::criteria::{self, Wanted};
use crate::domain::Surroundings;
use crate::fault::Fault;
use crate::group::{Group, Member, Origin};
use crate::levels::over;
use crate::manager::{Manager, group_name};
use crate::property::{self, Key, Level, Value, Values, id_of, name};

/// Members of a group for which nobody has said how many.
const INITIAL_DEFAULT: u16 = 2;

/// Where a member can be created, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) location: String,
    /// The application's factory and its criteria; none: the node.
    pub(crate) factory: Option<(Object, ft::Criteria)>,
}

impl<D: Transport> Manager<D> {
    pub(crate) fn create_object(
        &mut self,
        type_id: String,
        criteria: &ft::Criteria,
    ) -> Result<(Object, Any), Fault> {
        if type_id.len() > self.limits.type_id_bytes_max {
            return Err(raise_system(ExceptionKind::ImpLimit).into());
        }
        let wanted = criteria::read(criteria)?;
        let creation = self.creation(&type_id, &wanted)?;
        let id = self.number()?;
        let group = Group {
            type_id,
            creation,
            dynamic: Values::new(),
            members: Vec::new(),
            version: 1,
            reference: Object::nil(),
        };
        if group.is_by_infrastructure() {
            self.create_with_members(id, group, &wanted)?;
        } else {
            self.change(id, group, false)?;
        }
        let reference = self.group(id)?.reference.clone();
        Ok((reference, Any::new(&id).unwrap_or_default()))
    }

    /// What counts for a new group.
    fn creation(&self, type_id: &str, wanted: &Wanted) -> Result<Values, Fault> {
        let own = match property::read(&wanted.properties, Level::Creation) {
            // `create_object` does not raise UnsupportedProperty.
            Err(Fault::UnsupportedProperty(it)) => return Err(Fault::InvalidProperty(it)),
            other => other?,
        };
        let creation = over(&self.values_of_type(type_id), &own);
        match property::conflict(&creation) {
            Some(wrong) => Err(Fault::InvalidProperty(wrong)),
            None => Ok(creation),
        }
    }

    fn create_with_members(
        &mut self,
        id: u64,
        mut group: Group,
        wanted: &Wanted,
    ) -> Result<(), Fault> {
        let around = self.surroundings()?;
        let mut candidates: VecDeque<Candidate> = self.candidates(&group, wanted, &around)?.into();
        // Several factories at one location make one member.
        let places =
            candidates.iter().map(|one| one.location.clone()).collect::<BTreeSet<_>>().len();
        let initial = group.number(Key::InitialNumberReplicas).unwrap_or_else(|| {
            // As many as there can be, where nobody has said it.
            let minimum = u16::try_from(group.minimum()).unwrap_or(u16::MAX);
            minimum.max(INITIAL_DEFAULT.min(u16::try_from(places).unwrap_or(u16::MAX)))
        });
        if places < usize::from(initial) {
            let val = Any::new(&initial).unwrap_or_default();
            let nam = name("org.omg.ft.InitialNumberReplicas");
            return Err(Fault::CannotMeetCriteria(Vec::from([ft::Property { nam, val }])));
        }
        let is_foreign = candidates.front().is_some_and(|one| one.factory.is_some());
        // A group is of servers that nodes start, or of others.
        candidates.retain(|one| one.factory.is_some() == is_foreign);
        if !is_foreign {
            // A server does not know by which reference it could say that it lives.
            if let Some(wrong) = property::monitoring(&group.creation)
                && group.is_pushed()
            {
                return Err(Fault::InvalidProperty(wrong));
            }
            return self.create_local(id, group, candidates, usize::from(initial));
        }
        let mut last = Fault::ObjectNotCreated;
        while group.members.len() < usize::from(initial) {
            let Some(candidate) = candidates.pop_front() else { break };
            if group.member(&candidate.location).is_some() {
                continue;
            }
            match self.make(&group.type_id, &wanted.rest, candidate) {
                Ok(member) => group.members.push(member),
                // Another location may do better.
                Err(fault) => last = fault,
            }
        }
        if group.members.len() < usize::from(initial) {
            if !canary!(LeavesObjects) {
                self.unmake(group.members);
            }
            return Err(last);
        }
        let members = group.members.clone();
        self.define(id, group, 0).map(drop).inspect_err(|_| self.unmake(members))
    }

    /// A group of servers that nodes start. Who does not come in is replaced.
    fn create_local(
        &mut self,
        id: u64,
        mut group: Group,
        mut candidates: VecDeque<Candidate>,
        initial: usize,
    ) -> Result<(), Fault> {
        let local = |one: Candidate| Member { location: one.location, origin: Origin::Local };
        let mut seen = BTreeSet::new();
        candidates.retain(|one| seen.insert(one.location.clone()));
        group.members = candidates.drain(..initial.min(candidates.len())).map(local).collect();
        let minimum = group.minimum().min(initial);
        let mut info = self.define(id, group, self.limits.start_ms)?;
        loop {
            let mut changed = self.group(id)?.clone();
            let is_in = |member: &Member| info.members_in.contains(&member.location);
            let missing: Vec<usize> = changed
                .members
                .iter()
                .enumerate()
                .filter(|(_, member)| !is_in(member))
                .map(|(index, _)| index)
                .collect();
            if missing.is_empty() {
                return Ok(());
            }
            if candidates.is_empty() {
                if changed.members.len() - missing.len() >= minimum.max(1) {
                    return Ok(());
                }
                return Err(self.forget(id, Fault::ObjectNotCreated));
            }
            for index in missing {
                let (Some(place), Some(other)) =
                    (changed.members.get_mut(index), candidates.pop_front())
                else {
                    break;
                };
                *place = local(other);
            }
            changed.version += 1;
            info = match self.change(id, changed, true) {
                Ok(Some(info)) => info,
                Ok(None) => return Ok(()),
                // Nobody is told of the group: it must not be there.
                Err(fault) => return Err(self.forget(id, fault)),
            };
        }
    }

    /// Ends a group that is not to be, for this reason.
    fn forget(&mut self, id: u64, fault: Fault) -> Fault {
        self.state.groups.remove(&id);
        if !canary!(LeavesGroups) {
            self.discard(id);
        }
        fault
    }

    /// Has the domain create a group.
    pub(crate) fn define(
        &mut self,
        id: u64,
        mut group: Group,
        wait_ms: u32,
    ) -> Result<GroupInfo, Fault> {
        let settings = group.settings(id);
        self.check_room(&settings)?;
        let created =
            self.domain().create_group(&group_name(id), &group.type_id, &settings, &wait_ms);
        match created {
            Ok(info) => {
                group.reference = info.reference.clone();
                self.state.groups.insert(id, group);
                Ok(info)
            }
            Err(CreateGroupError::NoSuchType(_)) => {
                Err(Fault::NoFactory(ft::Location::new(), group.type_id))
            }
            Err(CreateGroupError::Refused(refused)) if refused.may_be_repeated => {
                self.discard(id);
                Err(Fault::passing())
            }
            Err(CreateGroupError::Refused(refused)) => Err(group.refused_for(&refused.why)),
            Err(CreateGroupError::System(exception)) => {
                if let Some(known) = self.state.groups.get_mut(&id) {
                    // It may have been there as that version.
                    known.version = known.version.max(group.version);
                }
                self.discard(id);
                Err(exception.into())
            }
        }
    }

    /// Where a group's members can be created: at the factories that its properties name, else at
    /// those that are registered for its type, else at the nodes that start it.
    pub(crate) fn candidates(
        &self,
        group: &Group,
        wanted: &Wanted,
        around: &Surroundings,
    ) -> Result<Vec<Candidate>, Fault> {
        let named = match group.properties().get(&Key::Factories) {
            Some(Value::Factories(infos)) if !infos.is_empty() => infos.clone(),
            _ => self.registered(&group.type_id),
        };
        let is_here = around.types.contains(&group.type_id);
        let of_node = |location: &String| Candidate { location: location.clone(), factory: None };
        let mut candidates: Vec<Candidate> = if named.is_empty() {
            around.up.iter().filter(|_| is_here).map(of_node).collect()
        } else {
            let candidate = |info: &ft::FactoryInfo| {
                let location = String::from(id_of(&info.the_location)?);
                let factory = (info.the_factory.clone(), info.the_criteria.clone());
                let is_node = info.the_factory.is_nil();
                let can = around.up.contains(&location) && (!is_node || is_here);
                can.then_some(Candidate { location, factory: (!is_node).then_some(factory) })
            };
            named.iter().filter_map(candidate).collect()
        };
        candidates.retain(|one| wanted.location.as_ref().is_none_or(|at| *at == one.location));
        if candidates.is_empty() {
            let location = wanted.location.as_deref().map(name).unwrap_or_default();
            return Err(Fault::NoFactory(location, group.type_id.clone()));
        }
        if !wanted.rest.is_empty() && candidates.iter().all(|one| one.factory.is_none()) {
            return Err(Fault::CannotMeetCriteria(wanted.rest.clone()));
        }
        Ok(candidates)
    }

    /// Has a member created.
    pub(crate) fn make(
        &mut self,
        type_id: &str,
        rest: &ft::Criteria,
        candidate: Candidate,
    ) -> Result<Member, Fault> {
        let Candidate { location, factory } = candidate;
        let Some((factory, of_factory)) = factory else {
            return Ok(Member { location, origin: Origin::Local });
        };
        let criteria = criteria::for_factory(rest, &of_factory, &location);
        let type_id = String::from(type_id);
        let made = self.domain().create_by_factory(&factory, &type_id, &criteria);
        let (object, creation_id) = made.map_err(Fault::from)?;
        if object.is_nil() {
            return Err(Fault::ObjectNotCreated);
        }
        Ok(Member { location, origin: Origin::Made { factory, creation_id, object } })
    }

    /// Has objects of factories deleted, as far as these can be reached.
    pub(crate) fn unmake(&mut self, members: Vec<Member>) {
        for member in members {
            if let Origin::Made { factory, creation_id, .. } = member.origin {
                // Whoever runs the factory sees what is left there.
                let _gone = self.domain().delete_by_factory(&factory, &creation_id);
            }
        }
    }

    pub(crate) fn delete_object(&mut self, creation_id: &Any) -> Result<(), Fault> {
        let id = creation_id.get::<u64>().ok_or(Fault::ObjectNotFound)?;
        let group = self.state.groups.remove(&id).ok_or(Fault::ObjectNotFound)?;
        let is_garbage = self.state.garbage.contains(&id);
        if group.members.is_empty() {
            return self.save().inspect_err(|_| drop(self.state.groups.insert(id, group)));
        }
        let is_there = self.discard(id);
        // Where it is not gone it is written down that it is to go.
        let is_noted = is_garbage || !self.state.garbage.contains(&id) || self.save().is_ok();
        if is_there && !is_noted {
            self.state.garbage.remove(&id);
            self.state.groups.insert(id, group);
            return Err(Fault::passing());
        }
        self.unmake(group.members);
        if is_noted { Ok(()) } else { Err(Fault::passing()) }
    }
}
