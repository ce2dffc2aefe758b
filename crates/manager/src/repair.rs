//! MinimumNumberReplicas (FT-CORBA §23.3.4): who has died is replaced at another location.
//!
//! Invariants: with MEMB_APP_CTRL nothing is done; a member that is in, or may come back by itself
//! at a node that is there, is not replaced unless it was reported; a report leaves no fewer
//! members than the minimum, nor none.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::Transport;

use crate::create::Candidate;
use crate::criteria::Wanted;
use crate::domain::Surroundings;
use crate::fault::Fault;
use crate::group::{Group, Member, Origin};
use crate::manager::Manager;

/// Where a member was reported to have died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported<'r> {
    pub(crate) location: &'r str,
    /// It lives all the same if it is in by now.
    pub(crate) is_in: bool,
    /// It goes also if enough others are left: it will not come back by itself.
    pub(crate) leaves: bool,
}

/// Whether something was done. One group that cannot be looked after keeps no other one waiting;
/// what can pass is told rather than what cannot.
pub(crate) fn first(failed: &mut Option<Fault>, result: Result<bool, Fault>) -> bool {
    result.unwrap_or_else(|fault| {
        if failed.is_none() || fault == Fault::passing() {
            *failed = Some(fault);
        }
        false
    })
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
        let (mut done, mut failed) = (0, None);
        for id in garbage {
            self.discard(id);
            done += u32::from(!self.state.garbage.contains(&id));
        }
        let doubtful: Vec<u64> = self.state.doubtful.iter().copied().collect();
        for id in doubtful {
            done += u32::from(first(&mut failed, self.settle(id)));
        }
        if self.state.is_unsaved {
            first(&mut failed, self.save().map(|()| false));
        }
        let around = self.surroundings()?;
        let ids: Vec<u64> = self.state.groups.keys().copied().collect();
        for id in ids {
            let is_short = self.group(id).is_ok_and(|group| {
                group.is_by_infrastructure()
                    && (group.members.len() < group.minimum()
                        || group.locations().any(|at| !around.up.iter().any(|up| up == at)))
            });
            if is_short {
                done += u32::from(first(&mut failed, self.repair_in(id, None, &around)));
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Looks after one group, of which a member may have been reported to have died.
    pub(crate) fn repair_in(
        &mut self,
        id: u64,
        reported: Option<Reported<'_>>,
        around: &Surroundings,
    ) -> Result<bool, Fault> {
        let group = self.group(id)?;
        let is_ours = group.is_by_infrastructure() || canary!(RepairsForApplications);
        if !is_ours || group.members.is_empty() {
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
        let minimum = changed.minimum().max(1);
        let came = self.make_some(&changed, minimum.saturating_sub(alive), around);
        let leaves = |at: &String| reported.is_some_and(|one| one.leaves && one.location == at);
        // Who is reported goes first.
        let (first, rest): (Vec<_>, Vec<_>) = dead.into_iter().partition(leaves);
        let is_enough = alive + came.len() >= minimum || canary!(TakesOutTheLast);
        let how_many = came.len().max(if is_enough { first.len() } else { 0 });
        let goes: Vec<String> = first.into_iter().chain(rest).take(how_many).collect();
        if came.is_empty() && goes.is_empty() {
            return Ok(false);
        }
        let (gone, stay): (Vec<_>, Vec<_>) =
            changed.members.into_iter().partition(|member| goes.contains(&member.location));
        changed.members = stay;
        changed.members.extend(came.iter().cloned());
        changed.version += u32::from(!canary!(RepairsUnversioned));
        if let Err(fault) = self.change(id, changed, false) {
            self.unmake(came);
            return Err(fault);
        }
        // What they were made by may be there although they are not.
        self.unmake(gone.into_iter().filter(|one| one.origin != Origin::Local).collect());
        Ok(true)
    }

    /// So many more members, or as many as there can be.
    fn make_some(&mut self, group: &Group, missing: usize, around: &Surroundings) -> Vec<Member> {
        let mut came = Vec::new();
        if missing == 0 {
            return came;
        }
        let wanted = Wanted::default();
        let is_local = group.is_local();
        let started = around.types.contains(&group.type_id);
        let of_node = |at: &String| Candidate { location: at.clone(), factory: None };
        let candidates = match is_local {
            // Factories that were registered since do not go with its members.
            true => around.up.iter().filter(|_| started).map(of_node).collect(),
            false => self.candidates(group, &wanted, around).unwrap_or_default(),
        };
        let spare = candidates
            .into_iter()
            .filter(|one| one.factory.is_none() == is_local)
            .filter(|one| group.member(&one.location).is_none());
        for candidate in spare {
            if came.len() == missing {
                break;
            }
            if came.iter().any(|one: &Member| one.location == candidate.location) {
                continue;
            }
            if let Ok(member) = self.make(&group.type_id, &wanted.rest, candidate) {
                came.push(member);
            }
        }
        came
    }
}
