//! The ObjectGroupManager (FT-CORBA §23.3.10): members, the primary, references.
//!
//! Invariant: the version of a group's reference rises with each change of its membership.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_corba::{Object, Transport};
use quorba_idl::ft;
use quorba_idl::quorba::domain::{MemberError, PromoteError};

use crate::create::Candidate;
use crate::criteria;
use crate::fault::Fault;
use crate::group::{Group, Member, Origin};
use crate::manager::{Manager, group_name};
use crate::property::{id_of, name};

impl<D: Transport> Manager<D> {
    pub(crate) fn create_member(
        &mut self,
        reference: &Object,
        location: &ft::Location,
        type_id: String,
        criteria: &ft::Criteria,
    ) -> Result<Object, Fault> {
        let id = self.group_of(reference)?;
        let no_factory = || Fault::NoFactory(location.clone(), type_id.clone());
        let at = id_of(location).ok_or_else(no_factory)?.to_string();
        if self.group(id)?.member(&at).is_some() {
            return Err(Fault::MemberAlreadyPresent);
        }
        let mut wanted = criteria::read(criteria)?;
        wanted.location = Some(at);
        let around = self.surroundings()?;
        let mut group = self.group(id)?.clone();
        let of_type = Group { type_id: type_id.clone(), ..group.clone() };
        let candidates = self.candidates(&of_type, &wanted, &around)?;
        let mut last = no_factory();
        for candidate in candidates {
            if !fits(&group, &candidate, &type_id) {
                continue;
            }
            match self.make(&type_id, &wanted.rest, candidate) {
                Ok(member) => {
                    group.members.push(member.clone());
                    let joined = self.join(id, group, &member.location);
                    return joined.inspect_err(|_| self.unmake(Vec::from([member])));
                }
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    pub(crate) fn add_member(
        &mut self,
        reference: &Object,
        location: &ft::Location,
        member: Object,
    ) -> Result<Object, Fault> {
        let id = self.group_of(reference)?;
        let at = id_of(location).ok_or(Fault::ObjectNotAdded)?.to_string();
        let mut group = self.group(id)?.clone();
        if group.member(&at).is_some() {
            return Err(Fault::MemberAlreadyPresent);
        }
        let is_reachable = !member.0.endpoints().is_empty();
        let mixes = group.members.iter().any(|member| member.origin == Origin::Local);
        let is_node = self.domain().nodes()?.iter().any(|node| node.name == at);
        if !is_reachable || mixes || !is_node {
            return Err(Fault::ObjectNotAdded);
        }
        group.members.push(Member { location: at, origin: Origin::Added(member) });
        self.renew(id, group, 0).map_err(|fault| match fault {
            Fault::ObjectNotCreated | Fault::NoFactory(..) => Fault::ObjectNotAdded,
            other => other,
        })
    }

    pub(crate) fn remove_member(
        &mut self,
        reference: &Object,
        location: &ft::Location,
    ) -> Result<Object, Fault> {
        let id = self.group_of(reference)?;
        let group = self.group(id)?;
        let at = id_of(location).ok_or(Fault::MemberNotFound)?;
        let index = group.members.iter().position(|member| member.location == at);
        let index = index.ok_or(Fault::MemberNotFound)?;
        let is_the_last = group.members.len() == 1 && group.is_by_infrastructure();
        let passing = |fault| match fault {
            // The IDL has no exception for it.
            Fault::ObjectNotCreated => Fault::passing(),
            other => other,
        };
        if is_the_last && self.hand_over(id, at).map_err(passing)? {
            return Ok(self.group(id)?.reference.clone());
        }
        let mut group = self.group(id)?.clone();
        let gone = group.members.remove(index);
        group.version += 1;
        let changed = match group.members.is_empty() {
            true => self.clear(id, group),
            false => self.change(id, group, false).map(drop),
        };
        changed.map_err(passing)?;
        self.unmake(Vec::from([gone]));
        // The member is removed, whatever comes of this; who is missing is looked for again.
        let _repaired = self.repair(id, Some(at));
        Ok(self.group(id)?.reference.clone())
    }

    pub(crate) fn set_primary(
        &mut self,
        reference: &Object,
        location: &ft::Location,
    ) -> Result<Object, Fault> {
        let id = self.group_of(reference)?;
        let mut group = self.group(id)?.clone();
        let at = id_of(location).filter(|at| group.member(at).is_some());
        let at = String::from(at.ok_or(Fault::MemberNotFound)?);
        if !group.is_passive() {
            return Err(Fault::BadReplicationStyle);
        }
        match self.domain().promote(&group_name(id), &at) {
            Ok(()) => {}
            Err(PromoteError::Refused(_) | PromoteError::NoSuchGroup(_)) => {
                return Err(Fault::PrimaryNotSet);
            }
            Err(PromoteError::System(exception)) => return Err(exception.into()),
        }
        group.version += 1;
        self.change(id, group, false).map_err(|_| Fault::PrimaryNotSet)?;
        Ok(self.group(id)?.reference.clone())
    }

    pub(crate) fn locations(&self, reference: &Object) -> Result<ft::Locations, Fault> {
        let group = self.group(self.group_of(reference)?)?;
        Ok(group.locations().map(name).collect())
    }

    pub(crate) fn groups_at(&self, location: &ft::Location) -> Vec<Object> {
        let Some(at) = id_of(location) else { return Vec::new() };
        let there = self.state.groups.values().filter(|group| group.member(at).is_some());
        there.map(|group| group.reference.clone()).collect()
    }

    pub(crate) fn current_reference(&self, reference: &Object) -> Result<Object, Fault> {
        Ok(self.group(self.group_of(reference)?)?.reference.clone())
    }

    pub(crate) fn member_reference(
        &mut self,
        reference: &Object,
        location: &ft::Location,
    ) -> Result<Object, Fault> {
        let group = self.group(self.group_of(reference)?)?;
        let at = id_of(location).ok_or(Fault::MemberNotFound)?;
        let member = group.member(at).ok_or(Fault::MemberNotFound)?;
        if let Some(object) = member.object() {
            return Ok(object.clone());
        }
        // A server that a node starts is reached through its node, as long as it is in.
        let (id, at) = (self.group_of(reference)?, String::from(at));
        match self.domain().member(&group_name(id), &at) {
            Ok(object) if !object.is_nil() => Ok(object),
            Ok(_) | Err(MemberError::NoSuchGroup(_)) => Err(Fault::passing()),
            Err(MemberError::System(exception)) => Err(exception.into()),
        }
    }

    /// Takes a new member in and waits for it.
    fn join(&mut self, id: u64, group: Group, location: &str) -> Result<Object, Fault> {
        let before = self.group(id)?.clone();
        let is_local = group.is_local();
        let reference = self.renew(id, group, self.limits.start_ms)?;
        let is_in = match self.info(id) {
            Ok(Some(info)) => info.members_in.iter().any(|node| node == location),
            Ok(None) => false,
            // It was taken in; its node cannot say how far it is.
            Err(_) => true,
        };
        if is_in || !is_local {
            return Ok(reference);
        }
        // It does not come: the group is what it was, under a version of its own.
        let version = self.group(id)?.version + 1;
        let group = Group { version, ..before };
        match group.members.is_empty() {
            true => self.clear(id, group)?,
            false => drop(self.change(id, group, false)?),
        }
        Err(Fault::ObjectNotCreated)
    }

    /// A group with another member: in the domain from now on, or changed there.
    pub(crate) fn renew(
        &mut self,
        id: u64,
        mut group: Group,
        wait_ms: u32,
    ) -> Result<Object, Fault> {
        group.version += 1;
        if self.group(id)?.members.is_empty() {
            if self.state.garbage.contains(&id) {
                // What is left of it has to go first.
                self.discard(id);
                if self.state.garbage.contains(&id) {
                    return Err(Fault::passing());
                }
            }
            if self.state.is_unsaved {
                // It must not be written down that it is to go.
                self.save()?;
            }
            self.define(id, group, wait_ms)?;
            // That it has no members is an earlier version of it.
            let _written = self.save().inspect_err(|_| self.state.is_unsaved = true);
        } else {
            self.change(id, group, wait_ms > 0)?;
        }
        Ok(self.group(id)?.reference.clone())
    }
}

/// Whether a member of that origin goes with those that the group has.
fn fits(group: &Group, candidate: &Candidate, type_id: &str) -> bool {
    let is_local = candidate.factory.is_none();
    let is_same_kind = group.members.is_empty() || group.is_local() == is_local;
    // The definition of a group says one program, which cannot push.
    is_same_kind && (!is_local || group.type_id == type_id && !group.is_pushed())
}
