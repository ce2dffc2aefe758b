//! MinimumNumberReplicas (FT-CORBA §23.3.4): who has died is replaced at another location.
//!
//! Invariants: with MEMB_APP_CTRL nothing is done; a member that is in, or may come back by itself
//! at a node that is there, is not replaced unless it was reported.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::Transport;

use crate::create::Candidate;
use crate::criteria::Wanted;
use crate::domain::Surroundings;
use crate::fault::Fault;
use crate::group::Origin;
use crate::manager::Manager;

/// Where a member was reported to have died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported<'r> {
    pub(crate) location: &'r str,
    /// It lives all the same if it is in by now.
    pub(crate) is_in: bool,
}

impl<D: Transport> Manager<D> {
    /// Looks after one group; whether something was done.
    pub(crate) fn repair(&mut self, id: u64) -> Result<bool, Fault> {
        let group = self.group(id)?;
        if !group.is_by_infrastructure() || group.members.is_empty() {
            return Ok(false);
        }
        let around = self.surroundings()?;
        self.repair_in(id, None, &around)
    }

    /// Looks after everything; what was done.
    pub(crate) fn look(&mut self) -> Result<u32, Fault> {
        let garbage: Vec<u64> = self.state.garbage.iter().copied().collect();
        let mut done = 0;
        for id in garbage {
            self.discard(id);
            done += u32::from(!self.state.garbage.contains(&id));
        }
        if self.state.is_unsaved {
            self.save()?;
        }
        let around = self.surroundings()?;
        let ids: Vec<u64> = self.state.groups.keys().copied().collect();
        for id in ids {
            let is_short = self.group(id).is_ok_and(|group| {
                group.is_by_infrastructure()
                    && (group.members.len() < group.minimum()
                        || group.locations().any(|at| !around.up.iter().any(|up| up == at)))
            });
            if is_short && self.repair_in(id, None, &around)? {
                done += 1;
            }
        }
        Ok(done)
    }

    /// Looks after one group, of which a member may have been reported to have died.
    pub(crate) fn repair_in(
        &mut self,
        id: u64,
        reported: Option<Reported<'_>>,
        around: &Surroundings,
    ) -> Result<bool, Fault> {
        let group = self.group(id)?;
        if !group.is_by_infrastructure() || group.members.is_empty() {
            return Ok(false);
        }
        let Some(info) = self.info(id)? else { return Ok(false) };
        let mut changed = self.group(id)?.clone();
        let is_dead = |location: &str| {
            let is_in = info.members_in.iter().any(|node| node == location);
            let is_up = around.up.iter().any(|node| node == location);
            let of_it = reported.filter(|reported| reported.location == location);
            !is_up || of_it.is_some_and(|reported| !(is_in && reported.is_in))
        };
        let dead: Vec<String> =
            changed.locations().filter(|at| is_dead(at)).map(String::from).collect();
        let alive = changed.members.len() - dead.len();
        let missing = changed.minimum().saturating_sub(alive);
        if missing == 0 {
            return Ok(false);
        }
        let is_local = changed.is_local();
        let wanted = Wanted::default();
        let Ok(candidates) = self.candidates(&changed, &wanted, around) else { return Ok(false) };
        let spare: Vec<Candidate> = candidates
            .into_iter()
            .filter(|one| one.factory.is_none() == is_local)
            .filter(|one| changed.member(&one.location).is_none())
            .collect();
        let mut came = Vec::new();
        for candidate in spare {
            if came.len() == missing {
                break;
            }
            if let Ok(member) = self.make(&changed.type_id, &wanted.rest, candidate) {
                came.push(member);
            }
        }
        if came.is_empty() {
            return Ok(false);
        }
        let goes: Vec<String> = dead.into_iter().take(came.len()).collect();
        let (gone, stay): (Vec<_>, Vec<_>) =
            changed.members.into_iter().partition(|member| goes.contains(&member.location));
        changed.members = stay;
        changed.members.extend(came.iter().cloned());
        changed.version += 1;
        if let Err(fault) = self.change(id, changed, false) {
            self.unmake(came);
            return Err(fault);
        }
        // What they were made by may be there although they are not.
        self.unmake(gone.into_iter().filter(|one| one.origin != Origin::Local).collect());
        Ok(true)
    }
}
