//! What the manager asks of the domain, and how it finds its groups again.
//!
//! Invariant: what is remembered of no group stands in the manager's own definition, of a group in
//! the group's; numbers of groups are reserved there before they are given out.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Transport, raise_system};
use quorba_idl::quorba::domain::{ChangeGroupError, GroupError};
use quorba_idl::quorba::{GroupInfo, Setting};

use crate::fault::Fault;
use crate::group::{Group, hex, of_hex, quoted};
use crate::manager::{Manager, group_name};

/// Groups that the domain is asked for at a time.
const PAGE: u32 = 16;
/// Numbers that are reserved at a time.
const RESERVED: u64 = 1_000;
/// The longest note that a manager writes of what is of no group, in octets.
const OWN_NOTE_BYTES_MAX: usize = 30 << 10;

/// Which nodes there are, and what they can start.
pub(crate) struct Surroundings {
    /// Nodes that are in the ring, in the order of the domain.
    pub(crate) up: Vec<String>,
    /// Types that nodes start.
    pub(crate) types: BTreeSet<String>,
}

impl<D: Transport> Manager<D> {
    pub(crate) fn surroundings(&mut self) -> Result<Surroundings, SystemException> {
        let nodes = self.domain().nodes()?;
        let up = nodes.into_iter().filter(|node| node.is_up).map(|node| node.name).collect();
        Ok(Surroundings { up, types: self.domain().types()?.into_iter().collect() })
    }

    pub(crate) fn info(&mut self, id: u64) -> Result<Option<GroupInfo>, SystemException> {
        match self.domain().group(&group_name(id)) {
            Ok(info) => Ok(Some(info)),
            Err(GroupError::NoSuchGroup(_)) => Ok(None),
            Err(GroupError::System(exception)) => Err(exception),
        }
    }

    /// Makes the group what `changed` says, here and in the domain.
    pub(crate) fn change(
        &mut self,
        id: u64,
        mut changed: Group,
        waits: bool,
    ) -> Result<Option<GroupInfo>, Fault> {
        if changed.members.is_empty() {
            changed.reference = self.empty_reference(id, &changed);
            let is_new = self.state.groups.insert(id, changed).is_none();
            self.save()?;
            if is_new && self.state.is_unsaved {
                // Nobody has been told of it, and the end of all nodes would be its end.
                let is_too_much = self.own_note().len() > OWN_NOTE_BYTES_MAX;
                self.state.groups.remove(&id);
                return Err(match is_too_much {
                    true => raise_system(ExceptionKind::NoResources).into(),
                    false => Fault::passing(),
                });
            }
            return Ok(None);
        }
        let settings = changed.settings(id);
        self.check_room(&settings)?;
        let wait_ms = if waits { self.limits.start_ms } else { 0 };
        match self.domain().change_group(&group_name(id), &settings, &wait_ms) {
            Ok(info) => {
                changed.reference = info.reference.clone();
                self.state.groups.insert(id, changed);
                Ok(Some(info))
            }
            Err(ChangeGroupError::Refused(refused)) if refused.may_be_repeated => {
                Err(Fault::passing())
            }
            Err(ChangeGroupError::Refused(_) | ChangeGroupError::NoSuchGroup(_)) => {
                Err(Fault::ObjectNotCreated)
            }
            Err(ChangeGroupError::System(exception)) => Err(exception.into()),
        }
    }

    /// Whether a definition has room for what would be written into it.
    pub(crate) fn check_room(&self, settings: &[Setting]) -> Result<(), Fault> {
        let octets: usize = settings.iter().map(|setting| setting.value.len()).sum();
        if octets > 2 * self.limits.note_bytes_max {
            return Err(raise_system(ExceptionKind::ImpLimit).into());
        }
        Ok(())
    }

    /// Ends a group of the domain; if that cannot be done now, it is when the manager looks again.
    pub(crate) fn discard(&mut self, id: u64) {
        if self.domain().delete_group(&group_name(id)).is_ok() {
            self.state.garbage.remove(&id);
        } else {
            self.state.garbage.insert(id);
        }
    }

    /// A number that no group has had.
    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        if self.state.groups.len() >= self.limits.groups_max {
            return Err(raise_system(ExceptionKind::NoResources).into());
        }
        let id = self.state.next_group;
        self.state.next_group += 1;
        if id >= self.state.reserved {
            self.state.reserved = id + RESERVED;
            self.save()?;
        }
        Ok(id)
    }

    fn own_note(&self) -> Vec<u8> {
        crate::state::write_own(&self.state)
    }

    /// Writes down what is of no group. What cannot be written now is with the next change.
    pub(crate) fn save(&mut self) -> Result<(), Fault> {
        let note = self.own_note();
        let own = self.own_group.clone();
        if note.len() > OWN_NOTE_BYTES_MAX || own.is_empty() {
            self.state.is_unsaved = !own.is_empty();
            return Ok(());
        }
        let settings = Vec::from([Setting { name: "note".into(), value: quoted(&hex(&note)) }]);
        self.state.is_unsaved = self.domain().change_group(&own, &settings, &0).is_err();
        Ok(())
    }

    /// Finds what a manager before this one has written down.
    pub(crate) fn remember(&mut self) -> Result<(), SystemException> {
        if !self.state.domain_id.is_empty() {
            return Ok(());
        }
        let domain_id = self.domain().id()?;
        if domain_id.is_empty() {
            return Err(raise_system(ExceptionKind::Transient));
        }
        let own = self.own_group.clone();
        if let Ok(info) = self.domain().group(&own)
            && let Some(octets) = of_hex(&info.note)
        {
            crate::state::read_own(&octets, &mut self.state);
        }
        let mut after = String::new();
        loop {
            let page = self.domain().noted_groups(&after, &PAGE)?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.name);
            for info in page {
                let id = info.name.strip_prefix("object-").and_then(|id| id.parse().ok());
                let (Some(id), Some(mut group)) = (id, Group::of_note(&info.note)) else {
                    continue;
                };
                group.reference = info.reference;
                self.state.next_group = self.state.next_group.max(id + 1);
                self.state.groups.insert(id, group);
            }
        }
        self.state.next_group = self.state.next_group.max(self.state.reserved);
        self.state.domain_id = domain_id;
        Ok(())
    }
}
