//! This node's processes: what they asked for, and what of it has no place in the order yet.
//!
//! Invariants: operations take effect in the order in which they were asked for, each once, even
//! if the ring breaks in between: those that were ordered where they do not count are ordered
//! again, after everything that is still on its way (go-back-N); a number of a group is used
//! while a process wants it, and never again for another group.

use crate::ids::{GroupName, GroupNumber, ProcessNumber};
use crate::output::Refused;
use crate::wire::{Action, Operation};
use crate::{GROUPS_PER_NODE_MAX, MEMBERSHIPS_PER_NODE_MAX, PROCESSES_PER_NODE_MAX};
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;

/// Where a process stands in a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    Joining,
    Member,
    Leaving,
}

#[derive(Debug, Default)]
struct Process {
    gone: bool,
    wishes: BTreeMap<GroupNumber, Wish>,
}

#[derive(Debug)]
struct Named {
    name: GroupName,
    users: usize,
}

/// The processes of this node.
#[derive(Debug, Default)]
pub(crate) struct Local {
    processes: BTreeMap<ProcessNumber, Process>,
    numbers: BTreeMap<GroupNumber, Named>,
    names: BTreeMap<GroupName, GroupNumber>,
    memberships: usize,
    next_process: u32,
    next_group: u32,
    next_operation: u64,
    /// Not yet applied, in order, with their numbers.
    pending: VecDeque<(u64, Bytes)>,
    /// Operations given to the ring that it has not delivered.
    in_flight: usize,
}

impl Local {
    pub(crate) fn add(&mut self) -> Result<ProcessNumber, Refused> {
        if self.processes.len() >= PROCESSES_PER_NODE_MAX {
            return Err(Refused::TooManyProcesses);
        }
        let number = ProcessNumber(self.next_process);
        self.next_process = self.next_process.checked_add(1).ok_or(Refused::TooManyProcesses)?;
        self.processes.insert(number, Process::default());
        Ok(number)
    }

    pub(crate) fn is_there(&self, process: ProcessNumber) -> bool {
        self.processes.get(&process).is_some_and(|process| !process.gone)
    }

    fn process(&mut self, process: ProcessNumber) -> Result<&mut Process, Refused> {
        self.processes.get_mut(&process).filter(|p| !p.gone).ok_or(Refused::NoProcess)
    }

    pub(crate) fn join(
        &mut self,
        process: ProcessNumber,
        name: &GroupName,
    ) -> Result<(GroupNumber, Bytes), Refused> {
        let known = self.names.get(name).copied();
        let wishes = &self.process(process)?.wishes;
        match known.and_then(|group| wishes.get(&group)) {
            Some(Wish::Leaving) => return Err(Refused::Leaving),
            Some(_) => return Err(Refused::AlreadyMember),
            None => {}
        }
        if self.memberships >= MEMBERSHIPS_PER_NODE_MAX {
            return Err(Refused::TooManyMemberships);
        }
        let group = match known {
            Some(group) => group,
            None if self.numbers.len() >= GROUPS_PER_NODE_MAX => {
                return Err(Refused::TooManyGroups);
            }
            None => {
                let group = GroupNumber(self.next_group);
                self.next_group = self.next_group.checked_add(1).ok_or(Refused::TooManyGroups)?;
                self.names.insert(name.clone(), group);
                self.numbers.insert(group, Named { name: name.clone(), users: 0 });
                group
            }
        };
        self.numbers.get_mut(&group).expect("known, or made just now").users += 1;
        self.memberships += 1;
        self.process(process)?.wishes.insert(group, Wish::Joining);
        let name = name.clone();
        Ok((group, self.submit(Action::Join { process, group, name })))
    }

    pub(crate) fn leave(
        &mut self,
        process: ProcessNumber,
        group: GroupNumber,
    ) -> Result<Bytes, Refused> {
        let wish = self.process(process)?.wishes.get_mut(&group).ok_or(Refused::NotMember)?;
        if core::mem::replace(wish, Wish::Leaving) == Wish::Leaving {
            return Err(Refused::Leaving);
        }
        Ok(self.submit(Action::Leave { process, group }))
    }

    /// The process is not there any more; gives what is to be ordered, if it was in a group.
    pub(crate) fn gone(&mut self, process: ProcessNumber) -> Option<Bytes> {
        let known = self.process(process).ok()?;
        known.gone = true;
        if known.wishes.is_empty() {
            self.processes.remove(&process);
            return None;
        }
        Some(self.submit(Action::Gone { process }))
    }

    /// Whether `process` may send to `group`.
    pub(crate) fn may_send(
        &self,
        process: ProcessNumber,
        group: GroupNumber,
    ) -> Result<(), Refused> {
        let process = self.processes.get(&process).filter(|p| !p.gone).ok_or(Refused::NoProcess)?;
        match process.wishes.get(&group) {
            Some(Wish::Member) => Ok(()),
            Some(Wish::Leaving) => Err(Refused::Leaving),
            Some(Wish::Joining) | None => Err(Refused::NotMember),
        }
    }

    fn submit(&mut self, action: Action) -> Bytes {
        self.next_operation += 1;
        let payload = Operation { id: self.next_operation, action }.encode();
        self.pending.push_back((self.next_operation, payload.clone()));
        self.in_flight += 1;
        payload
    }

    /// The ring has delivered an operation of mine, whether it counts or not.
    pub(crate) fn delivered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// An operation of mine took effect.
    pub(crate) fn applied(&mut self, operation: &Operation) {
        if self.pending.front().is_some_and(|(id, _)| *id == operation.id) {
            self.pending.pop_front();
        }
        match &operation.action {
            Action::Join { process, group, .. } => {
                let wishes = self.processes.get_mut(process).map(|p| &mut p.wishes);
                if let Some(wish) = wishes.and_then(|wishes| wishes.get_mut(group))
                    && *wish == Wish::Joining
                {
                    *wish = Wish::Member;
                }
            }
            Action::Leave { process, group } => {
                let known = self.processes.get_mut(process);
                if known.is_some_and(|p| p.wishes.remove(group).is_some()) {
                    self.release(*group);
                }
            }
            Action::Gone { process } => {
                let wishes = self.processes.remove(process).map(|p| p.wishes);
                for group in wishes.into_iter().flat_map(BTreeMap::into_keys) {
                    self.release(group);
                }
            }
        }
    }

    fn release(&mut self, group: GroupNumber) {
        self.memberships -= 1;
        let Some(named) = self.numbers.get_mut(&group) else { return };
        named.users -= 1;
        if named.users == 0
            && let Some(named) = self.numbers.remove(&group)
        {
            self.names.remove(&named.name);
        }
    }

    /// What must be ordered again: everything pending, if nothing of it is on its way any more.
    pub(crate) fn again(&mut self) -> impl Iterator<Item = Bytes> + '_ {
        let count = if self.in_flight == 0 { self.pending.len() } else { 0 };
        self.in_flight += count;
        self.pending.iter().take(count).map(|(_, payload)| payload.clone())
    }

    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }
}
