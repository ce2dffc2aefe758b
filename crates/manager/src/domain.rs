//! What the manager asks of the domain, and how it finds its groups again.
//!
//! Invariant: what is remembered of no group stands in the manager's own definition, of a group in
//! the group's; numbers of groups are reserved there before they are given out.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Transport, raise_system};
use quorba_idl::quorba::domain::{ChangeGroupError, DeleteGroupError, GroupError};
use quorba_idl::quorba::{GroupInfo, Setting};

use crate::fault::Fault;
use crate::group::{Group, hex, of_hex, quoted};
use crate::manager::{Manager, State, group_name};

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
        if canary!(AsksByHearsay) && self.heard.has_heard() {
            return Ok(Surroundings { up, types: BTreeSet::new() });
        }
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
            let before = self.state.groups.insert(id, changed);
            // What is acknowledged outlives the end of all nodes.
            if let Err(fault) = self.save() {
                match before {
                    Some(before) => drop(self.state.groups.insert(id, before)),
                    None => drop(self.state.groups.remove(&id)),
                }
                return Err(fault);
            }
            return Ok(None);
        }
        let version = changed.version;
        let settings = changed.settings(id);
        self.check_room(&settings)?;
        let wait_ms = if waits { self.limits.start_ms } else { 0 };
        match self.domain().change_group(&group_name(id), &settings, &wait_ms) {
            Ok(info) => {
                changed.reference = info.reference.clone();
                self.state.groups.insert(id, changed);
                self.state.doubtful.remove(&id);
                Ok(Some(info))
            }
            Err(ChangeGroupError::Refused(refused)) if refused.may_be_repeated => {
                Err(Fault::passing())
            }
            Err(ChangeGroupError::Refused(_) | ChangeGroupError::NoSuchGroup(_)) => {
                Err(Fault::ObjectNotCreated)
            }
            Err(ChangeGroupError::System(exception)) => {
                self.doubt(id, version);
                Err(exception.into())
            }
        }
    }

    /// The group may have become this version of itself: the next one is another.
    fn doubt(&mut self, id: u64, version: u32) {
        if let Some(group) = self.state.groups.get_mut(&id) {
            group.version = group.version.max(version);
            self.state.doubtful.insert(id);
        }
    }

    /// Has the domain define again what may be something else there.
    pub(crate) fn settle(&mut self, id: u64) -> Result<bool, Fault> {
        match self.group(id).cloned() {
            Ok(group) if !group.members.is_empty() => {
                let version = group.version + 1;
                self.change(id, Group { version, ..group }, false)?;
            }
            // What there is of it in the domain is to go.
            _ => drop(self.state.doubtful.remove(&id)),
        }
        Ok(true)
    }

    /// Makes the group one without members: first here, and then in the domain.
    pub(crate) fn clear(&mut self, id: u64, group: Group) -> Result<(), Fault> {
        let is_new = self.state.garbage.insert(id);
        if let Err(fault) = self.change(id, group, false) {
            if is_new {
                self.state.garbage.remove(&id);
            }
            return Err(fault);
        }
        self.discard(id);
        Ok(())
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
    /// Whether it surely is still there.
    pub(crate) fn discard(&mut self, id: u64) -> bool {
        match self.domain().delete_group(&group_name(id)) {
            Ok(_) => {
                // It may be written down that it is to go.
                self.state.is_unsaved |= self.state.garbage.remove(&id);
                self.state.doubtful.remove(&id);
                false
            }
            Err(error) => {
                self.state.garbage.insert(id);
                matches!(error, DeleteGroupError::Refused(_))
            }
        }
    }

    /// A number that no group has had.
    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        if self.state.groups.len() >= self.limits.groups_max {
            return Err(raise_system(ExceptionKind::NoResources).into());
        }
        let id = self.state.next_group;
        if id >= self.state.reserved {
            let before = self.state.reserved;
            self.state.reserved = id + RESERVED;
            self.save().inspect_err(|_| self.state.reserved = before)?;
        }
        self.state.next_group = id + 1;
        Ok(id)
    }

    fn own_note(&self) -> Vec<u8> {
        crate::state::write_own(&self.state)
    }

    /// Writes down what is of no group; what it says cannot be said to be done before.
    pub(crate) fn save(&mut self) -> Result<(), Fault> {
        let note = self.own_note();
        let own = self.own_group.clone();
        if own.is_empty() {
            return Ok(());
        }
        if note.len() > OWN_NOTE_BYTES_MAX {
            return Err(raise_system(ExceptionKind::NoResources).into());
        }
        let settings = Vec::from([Setting { name: "note".into(), value: quoted(&hex(&note)) }]);
        match self.domain().change_group(&own, &settings, &0) {
            Ok(_) => {
                self.state.is_unsaved = false;
                Ok(())
            }
            Err(ChangeGroupError::System(exception)) => {
                // It may be written all the same.
                self.state.is_unsaved = true;
                Err(exception.into())
            }
            Err(_) if canary!(AcknowledgesUnsaved) => Ok(()),
            Err(_) => Err(Fault::passing()),
        }
    }

    /// Changes what is of no group, and writes it down; what cannot be written is not changed.
    pub(crate) fn set_common(&mut self, change: impl FnOnce(&mut State)) -> Result<(), Fault> {
        let State { defaults, types, notifier, registry, .. } = &self.state;
        let before = (defaults.clone(), types.clone(), notifier.clone(), registry.clone());
        change(&mut self.state);
        self.save().inspect_err(|_| {
            let State { defaults, types, notifier, registry, .. } = &mut self.state;
            (*defaults, *types, *notifier, *registry) = before;
        })
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
        match self.domain().group(&own) {
            Ok(info) => {
                if let Some(octets) = of_hex(&info.note) {
                    crate::state::read_own(&octets, &mut self.state);
                }
            }
            Err(GroupError::NoSuchGroup(_)) => {}
            Err(GroupError::System(exception)) => return Err(exception),
        }
        let mut after = String::new();
        loop {
            let page = self.domain().noted_groups(&after, &PAGE)?;
            let Some(last) = page.last() else { break };
            if canary!(RemembersOnePage) && !after.is_empty() {
                break;
            }
            after.clone_from(&last.name);
            for info in page {
                let id = info.name.strip_prefix("object-").and_then(|id| id.parse().ok());
                let (Some(id), Some(mut group)) = (id, Group::of_note(&info.note)) else {
                    continue;
                };
                self.state.next_group = self.state.next_group.max(id + 1);
                let is_newer = |known: &Group| known.version >= group.version;
                if self.state.groups.get(&id).is_some_and(is_newer) {
                    // It has lost its members since.
                    self.state.garbage.insert(id);
                }
                if !self.state.garbage.contains(&id) {
                    group.reference = info.reference;
                    self.state.groups.insert(id, group);
                }
            }
        }
        if !canary!(ForgetsReserved) {
            self.state.next_group = self.state.next_group.max(self.state.reserved);
        }
        self.state.domain_id = domain_id;
        Ok(())
    }
}
