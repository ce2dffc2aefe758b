//! Members that took the place of others, and whose servers are not in yet: who does not come in in
//! time is given up, and another location is tried.
//!
//! What it is not: a clock. The process beside the replica that is first waits ([`crate::Lookout`])
//! and tells the manager of who is late; the manager asks the domain, and decides.
//!
//! Invariants: who is in, or is being given a state, is not given up; a location where a server did
//! not come in is tried again only when no other one is left, each time after a longer wait; what
//! is known of a group's locations is forgotten when a newcomer is in.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quorba_corba::Transport;
use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};

use crate::fault::Fault;
use crate::group::{Group, Origin, kept_text};
use crate::manager::{Manager, group_name};

/// A newcomer's wait is doubled so often at most.
const DOUBLED_MAX: u32 = 4;

/// What is known of a location at which a group has, or had, a newcomer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trial {
    /// Its server is to come in; so many before it did not.
    Awaited(u32),
    /// Its server did not come in, as the one of that number.
    Failed(u32),
}

/// By group and location.
pub(crate) type Trials = BTreeMap<(u64, String), Trial>;

/// A member whose server is to come in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Newcomer {
    /// Its group.
    pub group: u64,
    /// Its node.
    pub location: String,
    /// How many before it did not come in.
    pub failed: u32,
}

impl Newcomer {
    /// How long it may take, if the first one may take so long.
    #[must_use]
    pub fn patience(&self, first: Duration) -> Duration {
        first.saturating_mul(1 << self.failed.min(DOUBLED_MAX))
    }
}

/// Which of several locations is tried first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rank {
    Untried,
    /// A member was just taken away there.
    Unwanted,
    Failed(u32),
}

pub(crate) fn keep(trials: &Trials, out: &mut Writer) {
    out.write_count(trials.len());
    for ((group, location), trial) in trials {
        let (is_awaited, number) = match trial {
            Trial::Awaited(number) => (true, number),
            Trial::Failed(number) => (false, number),
        };
        out.write_u64(*group);
        out.write_octets(location.as_bytes());
        out.write_bool(is_awaited);
        out.write_u32(*number);
    }
}

pub(crate) fn kept(from: &mut Reader<'_>) -> Result<Trials, MessageError> {
    let mut trials = Trials::new();
    for _ in 0..from.read_count(17, usize::MAX, "trials")? {
        let key = (from.read_u64("group")?, kept_text(from, "location")?);
        let is_awaited = from.read_bool("awaited")?;
        let number = from.read_u32("number")?;
        if trials.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(from.wrong("trials"));
        }
        let trial = if is_awaited { Trial::Awaited(number) } else { Trial::Failed(number) };
        trials.insert(key, trial);
    }
    Ok(trials)
}

impl<D: Transport> Manager<D> {
    /// Who is to come in.
    pub fn newcomers(&self) -> impl Iterator<Item = Newcomer> {
        self.state.trials.iter().filter_map(|((group, location), trial)| match trial {
            Trial::Awaited(failed) => {
                Some(Newcomer { group: *group, location: location.clone(), failed: *failed })
            }
            Trial::Failed(_) => None,
        })
    }

    pub(crate) fn rank(&self, id: u64, location: &str, unwanted: Option<&str>) -> Rank {
        match self.state.trials.get(&(id, String::from(location))) {
            Some(Trial::Failed(number) | Trial::Awaited(number)) => Rank::Failed(*number),
            None if unwanted == Some(location) => Rank::Unwanted,
            None => Rank::Untried,
        }
    }

    /// These members have come to a group, after so many that did not come in.
    pub(crate) fn await_them<'m>(
        &mut self,
        id: u64,
        came: impl Iterator<Item = &'m str>,
        failed: u32,
    ) {
        for location in came {
            self.state.trials.insert((id, String::from(location)), Trial::Awaited(failed));
        }
    }

    /// A location, and how many did not come in before its newcomer, if that is awaited.
    pub(crate) fn awaited(&self, id: u64, location: &str) -> Option<(String, u32)> {
        let key = (id, String::from(location));
        match self.state.trials.get(&key) {
            Some(Trial::Awaited(failed)) => Some((key.1, *failed)),
            _ => None,
        }
    }

    /// At this location a server of the group did not come in.
    pub(crate) fn note_failed(&mut self, id: u64, location: &str) {
        let key = (id, String::from(location));
        let number = match self.state.trials.get(&key) {
            Some(Trial::Awaited(number) | Trial::Failed(number)) => number.saturating_add(1),
            None => 1,
        };
        self.state.trials.insert(key, Trial::Failed(number));
    }

    /// Nobody waits for who is no member any more.
    pub(crate) fn forget_trials(&mut self) {
        let groups = &self.state.groups;
        self.state.trials.retain(|(id, location), trial| {
            let group = groups.get(id);
            let is_member = || group.is_some_and(|group| group.member(location).is_some());
            group.is_some() && (matches!(trial, Trial::Failed(_)) || is_member())
        });
    }

    /// The server of a newcomer has not come in as long as somebody has waited; what was done.
    pub(crate) fn overdue(&mut self, id: u64, location: &str) -> Result<u32, Fault> {
        let key = (id, String::from(location));
        let Some(Trial::Awaited(failed)) = self.state.trials.get(&key).copied() else {
            return Ok(0);
        };
        let Some(info) = self.info(id)? else { return Ok(0) };
        if info.members_in.contains(&key.1) {
            // Others of it may still be on their way.
            self.state.trials.retain(|one, trial| {
                one.0 != id || *one != key && matches!(trial, Trial::Awaited(_))
            });
            return Ok(0);
        }
        // A node of before this version does not know it: nobody is given up then.
        if self.domain().coming(&group_name(id))?.contains(&key.1) {
            return Ok(0);
        }
        let around = self.surroundings()?;
        let group = self.group(id)?.clone();
        let failed = failed.saturating_add(1);
        let mut came = self.make_some(id, &group, (1, None), &around);
        let Some(other) = came.pop() else {
            // It stays, as there is nobody else; it is waited for longer.
            self.state.trials.insert(key, Trial::Awaited(failed));
            return Ok(0);
        };
        let (gone, mut members): (Vec<_>, Vec<_>) =
            group.members.iter().cloned().partition(|member| member.location == location);
        members.push(other.clone());
        let changed = Group { members, version: group.version + 1, ..group };
        if let Err(fault) = self.change(id, changed, false) {
            self.unmake(Vec::from([other]));
            // It stays, and is waited for longer.
            self.state.trials.insert(key, Trial::Awaited(failed));
            return Err(fault);
        }
        self.state.trials.insert(key, Trial::Failed(failed));
        self.await_them(id, core::iter::once(other.location.as_str()), failed);
        self.unmake(gone.into_iter().filter(|one| one.origin != Origin::Local).collect());
        Ok(1)
    }
}
