//! MinimumNumberReplicas (FT-CORBA §23.3.4): who has died or was removed is replaced, at another
//! location as far as there is one.
//!
//! Invariants: with MEMB_APP_CTRL nothing is done; a member that is in, or may come back by itself
//! at a node that is there, is not replaced unless it was reported; a report leaves no fewer
//! members than the minimum, nor none; who is the last one to know a state is removed when somebody
//! else has it, if anybody can be given it.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::Transport;

use crate::create::Candidate;
use crate::criteria::Wanted;
use crate::domain::Surroundings;
use crate::fault::Fault;
use crate::group::{Group, Member, Origin};
use crate::manager::{Manager, group_name};
use crate::trials::Trial;

/// Where a member was reported to have died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported<'r> {
    pub(crate) location: &'r str,
    /// It lives all the same if it is in by now.
    pub(crate) is_in: bool,
    /// It goes also if enough others are left: it will not come back by itself.
    pub(crate) leaves: bool,
}

/// What is known of a group that is looked after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repair<'r> {
    pub(crate) reported: Option<Reported<'r>>,
    /// A member was just taken away there.
    pub(crate) unwanted: Option<&'r str>,
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
    /// Looks after one group; whether something was done. Where a member was just taken away it is
    /// replaced only if there is no other place.
    pub(crate) fn repair(&mut self, id: u64, unwanted: Option<&str>) -> Result<bool, Fault> {
        if !self.group(id)?.is_by_infrastructure() {
            return Ok(false);
        }
        let around = self.surroundings()?;
        if self.group(id)?.members.is_empty() {
            return self.begin_anew(id, unwanted, &around);
        }
        let repair = Repair { reported: None, unwanted };
        self.repair_in(id, repair, &around)
    }

    /// Gives a group members again that has lost them all.
    fn begin_anew(
        &mut self,
        id: u64,
        unwanted: Option<&str>,
        around: &Surroundings,
    ) -> Result<bool, Fault> {
        let group = self.group(id)?.clone();
        let minimum = group.minimum().max(1);
        let came = self.make_some(id, &group, (minimum, unwanted), around);
        if came.is_empty() {
            return Ok(false);
        }
        let with = Group { members: came.clone(), ..group };
        if let Err(fault) = self.renew(id, with, 0) {
            self.unmake(came);
            return Err(fault);
        }
        self.await_them(id, came.iter().map(|one| one.location.as_str()), 0);
        Ok(true)
    }

    /// Has others take over from the last member, before that is removed: what only it knows would
    /// be lost. Whether they have, and it is removed; they may be at it still, which is passing.
    pub(crate) fn hand_over(&mut self, id: u64, from: &str) -> Result<bool, Fault> {
        let around = self.surroundings()?;
        let info = self.info(id)?;
        if !info.is_some_and(|info| info.members_in.iter().any(|node| node == from)) {
            // It has nothing to hand over.
            return Ok(false);
        }
        let group = self.group(id)?.clone();
        let minimum = group.minimum().max(1);
        let came = self.make_some(id, &group, (minimum, Some(from)), &around);
        if came.is_empty() {
            return Ok(false);
        }
        let members = group.members.iter().chain(&came).cloned().collect();
        let both = Group { members, version: group.version + 1, ..group.clone() };
        let info = match self.change(id, both, true) {
            Ok(info) => info,
            Err(fault) => {
                self.unmake(came);
                return Err(fault);
            }
        };
        let is_in = |one: &Member| {
            info.as_ref().is_some_and(|info| info.members_in.contains(&one.location))
        };
        let (there, late): (Vec<_>, Vec<_>) = came.into_iter().partition(is_in);
        let has_followers = !there.is_empty();
        let locations = |of: &[Member]| of.iter().map(|one| one.location.clone()).collect();
        let late_at: Vec<String> = locations(&late);
        if !has_followers {
            // A node of before this version does not know it.
            let coming = self.domain().coming(&group_name(id)).unwrap_or_default();
            if late_at.iter().any(|at| coming.contains(at)) {
                self.await_them(id, late_at.iter().map(String::as_str), 0);
                return Err(Fault::passing());
            }
        }
        let (members, gone) = match has_followers {
            true => (there, group.members.iter().cloned().chain(late.clone()).collect()),
            false => (group.members.clone(), late.clone()),
        };
        let version = self.group(id)?.version + 1;
        if let Err(fault) = self.change(id, Group { members, version, ..group }, false) {
            // They are members still.
            self.await_them(id, late_at.iter().map(String::as_str), 0);
            return Err(fault);
        }
        late.iter().for_each(|one| self.note_failed(id, &one.location));
        self.unmake(gone);
        Ok(has_followers)
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
            let is_empty = self.group(id).is_ok_and(|group| group.members.is_empty());
            if is_short && is_empty {
                done += u32::from(first(&mut failed, self.begin_anew(id, None, &around)));
            } else if is_short {
                let repaired = self.repair_in(id, Repair::default(), &around);
                done += u32::from(first(&mut failed, repaired));
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Looks after one group that has members.
    pub(crate) fn repair_in(
        &mut self,
        id: u64,
        Repair { reported, unwanted }: Repair<'_>,
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
        let missing = minimum.saturating_sub(alive);
        let came = self.make_some(id, &changed, (missing, unwanted), around);
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
        let awaited: Vec<(String, u32)> =
            gone.iter().filter_map(|one| self.awaited(id, &one.location)).collect();
        if let Err(fault) = self.change(id, changed, false) {
            self.unmake(came);
            return Err(fault);
        }
        for (location, failed) in awaited {
            // It ended before it was in.
            let trial = Trial::Failed(failed.saturating_add(1));
            self.state.trials.insert((id, location), trial);
        }
        self.await_them(id, came.iter().map(|one| one.location.as_str()), 0);
        // What they were made by may be there although they are not.
        self.unmake(gone.into_iter().filter(|one| one.origin != Origin::Local).collect());
        Ok(true)
    }

    /// So many more members, or as many as there can be; the unwanted place is the last one, but
    /// for those where servers did not come in.
    pub(crate) fn make_some(
        &mut self,
        id: u64,
        group: &Group,
        (missing, unwanted): (usize, Option<&str>),
        around: &Surroundings,
    ) -> Vec<Member> {
        let mut came = Vec::new();
        if missing == 0 {
            return came;
        }
        let wanted = Wanted::default();
        let is_local = group.is_local();
        let started = around.types.contains(&group.type_id);
        let of_node = |at: &String| Candidate { location: at.clone(), factory: None };
        let mut candidates = match is_local && !group.members.is_empty() {
            // Factories that were registered since do not go with its members.
            true => around.up.iter().filter(|_| started).map(of_node).collect(),
            false => self.candidates(group, &wanted, around).unwrap_or_default(),
        };
        // Without members it is as when it was created: the first one says of which kind it is.
        let is_foreign = match group.members.is_empty() {
            true => candidates.first().is_some_and(|one| one.factory.is_some()),
            false => !is_local,
        };
        candidates.retain(|one| {
            let is_fit = one.factory.is_some() || !group.is_pushed();
            is_fit && one.factory.is_some() == is_foreign && group.member(&one.location).is_none()
        });
        candidates.sort_by_key(|one| self.rank(id, &one.location, unwanted));
        for candidate in candidates {
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
