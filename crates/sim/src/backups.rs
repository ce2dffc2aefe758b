//! Operators who take backups of groups and put them back, while everything else goes on.
//!
//! What it is not: the groups' own opinion of what is in a backup. Invariants: a backup has what
//! was acknowledged before it was asked for, and nothing that the group is not to have; from a
//! restore on the group has what the backup had,
//! at every member. What was acknowledged between the two is thrown away, as the operator wants
//! it.

use crate::event::Event;
use crate::fault::Fault;
use crate::host::Input;
use crate::ledger::{Call, Outcome};
use crate::names::group_id;
use crate::rng::Rng;
use crate::servant::{Log, Mark, Reference, Wish};
use crate::world::{World, ms, node_id, us};
use quorba_base::Instant;
use quorba_engine::replica::{Backup, BackupRefused, Command, Concurrency};
use std::collections::{BTreeMap, BTreeSet};

/// Backups that are kept of each group.
const KEPT_MAX: usize = 4;

/// See the module's text.
pub(crate) struct Backups {
    rng: Rng,
    asked: u64,
    /// When each was asked for.
    times: BTreeMap<u64, Instant>,
    kept: BTreeMap<usize, Vec<Backup>>,
    /// Of each: its group, when it was asked for, and what is in it.
    marks: Vec<(usize, Instant, Mark)>,
    /// What was given back to each group at each node.
    given: BTreeMap<(usize, usize), Vec<Backup>>,
    pub(crate) taken: u64,
    pub(crate) restores: u64,
    /// By group: the last restore.
    restored: BTreeMap<usize, Restored>,
}

/// A restore that nodes have carried out.
struct Restored {
    command: Command,
    /// Its operator was told that it is done: whatever comes, it is not lost.
    is_confirmed: bool,
    /// When the last of them did.
    at: Instant,
    /// What the group had then. Where objects have orders of their own, backups of one history may
    /// have them woven in several ways: one of these.
    had: Vec<Vec<Reference>>,
    /// No more than half of them may have done so alone, cut off or when they stood still, and be
    /// overruled, unless their operator has been told that it is done.
    nodes: BTreeSet<usize>,
}

impl Backups {
    pub(crate) fn new(rng: Rng) -> Self {
        Self {
            rng,
            asked: 0,
            times: BTreeMap::new(),
            kept: BTreeMap::new(),
            marks: Vec::new(),
            given: BTreeMap::new(),
            taken: 0,
            restores: 0,
            restored: BTreeMap::new(),
        }
    }
}

impl World {
    /// The operator comes back in a while.
    pub(crate) fn plan_operator(&mut self) {
        let wait = ms(self.backups.rng.between(5, 600));
        self.queue.push(self.now + wait, Event::Operator);
    }

    /// The operator takes a backup somewhere, or gives one back.
    pub(crate) fn operator_comes(&mut self) {
        if self.peace {
            return;
        }
        let group = self.backups.rng.index(self.plan.groups.len());
        let node = self.backups.rng.index(self.plan.nodes);
        let gives = self.backups.rng.per_mille(200);
        let which = self.backups.rng.index(KEPT_MAX);
        let kept = self.backups.kept.get(&group);
        let backup = kept.and_then(|kept| kept.get(which)).filter(|_| gives).cloned();
        self.backups.asked += 1;
        let id = self.backups.asked;
        let id_of = group_id(group);
        match backup {
            Some(backup) => {
                self.say(|| format!("OPERATOR at n{node}: restore g{group} ({id})"));
                self.backups.given.entry((group, node)).or_default().push(backup.clone());
                self.deliver(node, Input::Restore(id_of, id, backup));
            }
            None => {
                self.say(|| format!("OPERATOR at n{node}: backup of g{group} ({id})"));
                self.backups.times.insert(id, self.now);
                self.deliver(node, Input::Backup(id_of, id));
            }
        }
        self.plan_operator();
    }

    /// A node has a backup for its operator, or none.
    pub(crate) fn backed_up(
        &mut self,
        (node, group): (usize, usize),
        id: u64,
        result: Result<Backup, BackupRefused>,
    ) {
        let backup = match result {
            Ok(backup) => backup,
            Err(refused) => return self.say(|| format!("n{node} has no backup {id}: {refused}")),
        };
        self.say(|| {
            let (count, bytes) = (backup.history.count, backup.state.len());
            format!("n{node} has backup {id} of g{group}: {count} requests, {bytes} bytes")
        });
        self.backups.taken += 1;
        let asked = self.backups.times.remove(&id).unwrap_or(self.now);
        let Some(log) = Log::from_bytes(&backup.state) else {
            return self.checks.violate("backup", self.now, format!("{id} is no state"));
        };
        // What was lost for a reason that counts is not missed.
        let loss = self.checks.groups[group].lost_at;
        if loss.is_none_or(|at| at < asked) {
            let is_before = |call: &Call| match call.outcome {
                Outcome::Acknowledged { at, .. } => at < asked,
                _ => false,
            };
            let missing = self.ledger.calls.iter().find(|(reference, call)| {
                let counts = call.group == group && call.wish == Wish::Append && is_before(call);
                let counts = counts && self.checks.groups[group].counts(call);
                counts && !log.references().contains(reference)
            });
            if let Some((reference, _)) = missing {
                let text = format!("{id} of g{group} lacks {:x}", reference.0);
                self.checks.violate("backup", self.now, text);
            }
        }
        self.backups.marks.push((group, asked, log.end()));
        let kept = self.backups.kept.entry(group).or_default();
        kept.insert(0, backup);
        kept.truncate(KEPT_MAX);
    }

    /// A node has carried out an operator's command: with a restore the group's past is another.
    pub(crate) fn note_restore(&mut self, at_node: usize, group: usize, command: Command) {
        let Command::Restore { node, digest, .. } = command else { return };
        self.checks.lost(self.now, group);
        self.checks.groups[group].dead = false;
        self.backups.restores += 1;
        let before = self.backups.restored.remove(&group);
        let mut restored = before.filter(|last| last.command == command).unwrap_or_else(|| {
            let given = self.backups.given.get(&(group, usize::from(node.index())));
            let given = given.into_iter().flatten().filter(|one| one.history.digest == digest);
            let had = given
                .filter_map(|backup| Some(Log::from_bytes(&backup.state)?.references().to_vec()))
                .collect();
            let nodes = BTreeSet::new();
            Restored { command, is_confirmed: false, at: self.now, had, nodes }
        });
        restored.at = self.now;
        restored.nodes.insert(at_node);
        self.backups.restored.insert(group, restored);
    }

    /// The operator at `by` is told that a group was restored.
    pub(crate) fn restore_confirmed(&mut self, by: usize, group: usize) {
        // One is under way at a node at a time. If another one's came meanwhile, that one counts.
        if let Some(restored) = self.backups.restored.get_mut(&group)
            && matches!(restored.command, Command::Restore { node, .. } if node == node_id(by))
        {
            restored.is_confirmed = true;
        }
        let may_be = self.plan.groups[group].durable && self.plan.faults.contains(&Fault::Blackout);
        if may_be && self.backups.rng.per_mille(300) {
            let wait = us(self.backups.rng.below(3_000));
            self.queue.push(self.now + wait, Event::Blackout);
        }
    }

    /// A group has lost all its members. If it is durable it goes on from disks, and none of them
    /// may have what it was given back a moment ago, unless an operator was told that they have.
    pub(crate) fn note_total_loss(&mut self, group: usize) {
        let restored = self.backups.restored.get(&group);
        if self.plan.groups[group].durable && restored.is_some_and(|last| !last.is_confirmed) {
            self.backups.restored.remove(&group);
        }
    }

    /// What does not fit to the last restore, if its group has acknowledged anything since, and has
    /// not lost anything.
    pub(crate) fn restored_wrongly(&self, group: usize) -> Option<String> {
        let Restored { had, .. } = self.restore_that_counts(group)?;
        let snapshots = self.snapshots();
        let serving = self.serving(&snapshots, group);
        let begins_with = |log: &Log| had.iter().any(|had| log.references().starts_with(had));
        let wrong = serving.iter().find(|member| !begins_with(member.log))?;
        let (node, has, had) = (wrong.node, wrong.log.len(), had.first().map_or(0, Vec::len));
        Some(format!("g{group} at n{node} has {has}, and not the {had} of its backup in front"))
    }

    /// A backup that has something else than the group in front: what a node alone had ordered, and
    /// no majority held.
    pub(crate) fn backed_up_wrongly(&self, group: usize) -> Option<String> {
        let (plan, facts) = (&self.plan.groups[group], &self.checks.groups[group]);
        let in_parts = plan.concurrency == Concurrency::PerObject;
        // What is executed again behind what had no reply may be something else, and what only the
        // memory of a majority had may be gone with all nodes.
        if in_parts || plan.odd.is_some() || plan.durable || facts.dead || facts.stuck {
            return None;
        }
        let snapshots = self.snapshots();
        let serving = self.serving(&snapshots, group);
        let counts = |(of, asked, _): &&(usize, Instant, Mark)| {
            *of == group && facts.lost_at.is_none_or(|lost| lost < *asked)
        };
        self.backups.marks.iter().filter(counts).find_map(|(_, asked, mark)| {
            let has_it = |log: &Log| log.len() >= mark.length && log.mark(mark.length) == *mark;
            let wrong = serving.iter().find(|member| !has_it(member.log))?;
            let (node, has, had) = (wrong.node, wrong.log.len(), mark.length);
            Some(format!("g{group} at n{node} has {has}, but not the {had} of {asked:?} in front"))
        })
    }

    /// The last restore, if all members must have what it gave the group.
    fn restore_that_counts(&self, group: usize) -> Option<&Restored> {
        let restored = self.backups.restored.get(&group)?;
        let Restored { is_confirmed, at, nodes, .. } = restored;
        // Before it is confirmed it need not be on disks when all nodes end.
        let by_few = 2 * nodes.len() <= self.plan.nodes;
        if !is_confirmed && (by_few || self.plan.groups[group].durable) {
            return None;
        }
        let facts = &self.checks.groups[group];
        if facts.lost_at != Some(*at) || facts.dead || facts.stuck {
            return None;
        }
        let counts = |call: &Call| {
            call.group == group
                && facts.counts(call)
                && matches!(call.outcome, Outcome::Acknowledged { .. })
        };
        self.ledger.calls.values().any(counts).then_some(restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::forged::{played, refused_in, rewrite};
    use crate::plan::Plan;
    use quorba_base::Duration;
    use quorba_engine::replica::Style;

    /// A run at peace whose first group was restored, and its servers.
    fn restored(durable: bool) -> (World, Vec<usize>) {
        let fits = |plan: &Plan| {
            let group = &plan.groups[0];
            group.style == Style::Active
                && group.concurrency == Concurrency::Sequential
                && !group.fresh_after_loss
                && group.durable == durable
        };
        let is_rich = |world: &World| {
            let restored = world.restore_that_counts(0);
            restored.is_some_and(|restored| restored.had.iter().all(|had| had.len() >= 3))
        };
        let plans = (1..).map(|seed| (seed, Plan::draw_backups(seed)));
        let worlds = plans.filter(|(_, plan)| fits(plan)).map(|(seed, plan)| played(seed, plan));
        let world = worlds.take(200).find(is_rich).expect("some seed gives such a run");
        let snapshots = world.snapshots();
        let servers = world.serving(&snapshots, 0).iter().map(|member| member.server).collect();
        (world, servers)
    }

    /// The last of what the backup had is gone.
    fn lacks_one(world: &mut World, servers: &[usize]) {
        let last = of(world).had[0].len() - 1;
        rewrite(world, servers, |log| {
            let _ = log.remove(last);
        });
    }

    #[test]
    fn a_group_that_goes_on_without_what_its_backup_had_is_refused() {
        for durable in [false, true] {
            let (world, servers) = restored(durable);
            refused_in(world, "restore", |world| lacks_one(world, &servers));
            let (world, servers) = restored(durable);
            refused_in(world, "restore", |world| lacks_one(world, &servers[..1]));
        }
        let (world, servers) = restored(false);
        refused_in(world, "restore", |world| rewrite(world, &servers, |log| log.swap(0, 1)));
    }

    #[test]
    fn a_backup_of_what_the_group_never_had_is_refused() {
        let backed_up = |seed| played(seed, Plan::draw_backups(seed));
        let is_rich = |world: &World| {
            let lost = world.checks.groups[0].lost_at;
            let plan = &world.plan.groups[0];
            let counts = plan.odd.is_none() && !plan.durable && lost.is_none();
            let marks = &world.backups.marks;
            counts
                && plan.concurrency != Concurrency::PerObject
                && marks.iter().any(|(of, _, mark)| *of == 0 && mark.length >= 2)
                && world.serving(&world.snapshots(), 0).len() > 1
        };
        let world = (1..200).map(backed_up).find(is_rich).expect("some seed gives such a run");
        let servers: Vec<_> = {
            let snapshots = world.snapshots();
            world.serving(&snapshots, 0).iter().map(|member| member.server).collect()
        };
        assert_eq!(world.backed_up_wrongly(0), None);
        refused_in(world, "backup", |world| rewrite(world, &servers, |log| log.swap(0, 1)));
    }

    fn of(world: &mut World) -> &mut Restored {
        world.backups.restored.get_mut(&0).expect("it was restored")
    }

    type Excuse = fn(&mut World);

    #[test]
    fn what_excuses_a_restore_that_is_gone_is_accepted() {
        let untold: Excuse = |world| of(world).is_confirmed = false;
        // Nor has more than a minority seen it.
        let unseen: Excuse = |world| {
            let restored = of(world);
            (restored.is_confirmed, restored.nodes) = (false, BTreeSet::from([0]));
        };
        let lost: Excuse = |world| {
            let at = world.checks.groups[0].lost_at.expect("by the restore");
            world.checks.groups[0].lost_at = Some(at + Duration::from_nanos(1));
        };
        let unused: Excuse = |world| {
            let at = world.now;
            world.checks.groups[0].lost_at = Some(at);
            of(world).at = at;
        };
        let ended: Excuse = |world| {
            of(world).is_confirmed = false;
            world.note_total_loss(0);
            assert!(!world.backups.restored.contains_key(&0));
        };
        let excuses = [(false, unseen), (true, untold), (true, ended)];
        let excuses = excuses.into_iter().chain([false, true].map(|durable| (durable, lost)));
        for (durable, excuse) in excuses.chain([(false, unused)]) {
            let (mut world, servers) = restored(durable);
            lacks_one(&mut world, &servers);
            assert!(world.restored_wrongly(0).is_some());
            excuse(&mut world);
            assert_eq!(world.restored_wrongly(0), None);
        }
        // What an operator was told of is not lost with all nodes.
        let (mut world, servers) = restored(true);
        lacks_one(&mut world, &servers);
        (of(&mut world).nodes, world.now) = (BTreeSet::from([0]), world.now + ms(1));
        world.note_total_loss(0);
        assert!(world.restored_wrongly(0).is_some());
        // Nor need he be told, if most have seen it and nothing need be on disks.
        let (mut world, servers) = restored(false);
        untold(&mut world);
        lacks_one(&mut world, &servers);
        assert!(world.restored_wrongly(0).is_some());
    }
}
