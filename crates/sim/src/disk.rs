//! The disks of a domain with durable groups: the log that ships, on disks in virtual time that
//! fill up, fail, tear and rot.
//!
//! What it is not: the thread and the files of a node; what those do with the log is done here, at
//! the times that the plan says. Invariants: what was reported to be on disk survives every crash
//! of a disk that is not damaged; at no time more than a minority of disks is damaged, or
//! of a group's members taken out.

mod faults;

use crate::event::Event;
use crate::host::{Host, Input};
use crate::names::group_id;
use crate::rng::Rng;
use crate::world::{World, ms, node_id, us};
use bytes::Bytes;
use quorba_base::Instant;
use quorba_engine::replica::{GroupId, LogRecord, Place, Recovered};
use quorba_journal::disk::{Faults, SimulatedDisk};
use quorba_journal::{
    AdoptError, CommitError, Found, Journal, Opened, Options, Owner, Position, Sealed, Seq, look_up,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long until a disk that is full or failed is tried again, and how often one that failed is.
const RETRY_MS: u64 = 100;
const ATTEMPTS: u32 = 3;

/// How the disks of a domain are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskPlan {
    /// How long a group commit takes.
    pub(crate) sync_us: (u64, u64),
    /// Of a thousand crashes, those that leave a disk damaged.
    pub(crate) damage: u64,
    /// Whether disks fail, and say so.
    pub(crate) fails: bool,
    /// Of a thousand commits, those that find a full disk.
    pub(crate) full: u64,
    /// Octets of a segment.
    pub(crate) segment_bytes: u64,
    /// A log that has grown by so many records is to be compacted.
    pub(crate) records_max: u64,
    /// What damage is to.
    pub(crate) hits: Hits,
}

/// A log that is never compacted is, after so many records: there may be a segment for each, and a
/// run takes hours then. Not one whose requests are to be damaged.
const RECORDS_MAX: u64 = 5_000;

impl DiskPlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self {
            sync_us: rng.pick(&[(50, 200), (500, 5_000), (1_000, 30_000), (10, 400_000)]),
            damage: rng.pick(&[0, 0, 100, 400]),
            fails: rng.per_mille(300),
            full: rng.pick(&[0, 0, 0, 2, 20]),
            segment_bytes: rng.pick(&[500, 4_000, 20_000, 1 << 20]),
            records_max: rng.pick(&[20, 60, 200, 1_000, u64::MAX]),
            hits: Hits::Anything,
        }
    }
}

/// What damage is to, of what is at rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hits {
    Anything,
    /// Requests in the log.
    Requests,
    Checkpoints,
}

/// The log of one node.
#[derive(Default, Debug)]
pub(crate) struct LogDisk {
    /// That of the boot that is, or is to come; none before the first.
    disk: Option<SimulatedDisk>,
    /// None while the node is down.
    journal: Option<Journal>,
    /// The last record of earlier boots.
    begin: Seq,
    /// What the log has not been given, because a commit is under way.
    waiting: Vec<LogRecord>,
    is_committing: bool,
    /// How often the commit that is under way has failed.
    attempts: u32,
    /// States that are written, and wait for the log to come as far.
    sealed: Vec<Sealed>,
    /// Records since the log was compacted last, or was to be.
    grown: u64,
    /// Nothing of it may be used, until the node has rebuilt itself.
    pub(crate) is_doubtful: bool,
    /// It has, or may have, something else than what was written.
    is_damaged: bool,
    /// Groups of which it has had nothing since it was rebuilt: their members were taken out then.
    bare: BTreeSet<GroupId>,
    /// Groups of which it was given a state in this boot.
    saved: BTreeSet<GroupId>,
}

impl LogDisk {
    /// What this boot found is not all that there was, and nothing has replaced it.
    fn lacks_something(&self) -> bool {
        let lacking = |journal: &Journal| !journal.lacking().is_empty();
        let is_lacking = self.journal.as_ref().is_some_and(lacking);
        self.is_doubtful || is_lacking || !self.bare.is_empty()
    }

    fn durable(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.durable().0 - self.begin.0)
    }

    /// Everything that the log was given in this boot, on disk or not.
    fn handed_over(&self) -> Seq {
        let last = self.journal.as_ref().map_or(Seq::NONE, Journal::last);
        Seq(last.0 + self.waiting.len() as u64)
    }
}

fn owner(node: usize) -> Owner {
    Owner { domain_digest: 42, node: node_id(node) }
}

impl World {
    /// What a new boot finds; `Err` if the disk cannot even be opened.
    pub(crate) fn open_log(&mut self, node: usize) -> Result<Option<Recovered>, ()> {
        let Some(plan) = self.plan.disk else { return Ok(None) };
        let incarnation = self.hosts[node].disk.incarnation;
        let seed = self.disk_rng.next();
        let mut chances = self.disk_rng.fork(node as u64);
        let log = &mut self.hosts[node].log;
        let disk = log.disk.get_or_insert_with(|| SimulatedDisk::new(move || chances.next()));
        let options = Options {
            segment_bytes: plan.segment_bytes,
            ..Options::new(owner(node), incarnation, seed)
        };
        let opened = Journal::open(Arc::new(disk.clone()), options);
        let Ok(Opened { journal, recovered }) = opened else {
            return Err(());
        };
        (log.begin, log.grown) = (journal.last(), 0);
        log.saved.clear();
        let (found, damage) = match recovered {
            Found::Fresh => (None, None),
            Found::Clean(memory) => (memory.read(&journal.checkpoints()).ok(), None),
            Found::Doubtful { damage } => (None, Some(damage)),
        };
        log.is_doubtful = damage.is_some();
        log.journal = Some(journal);
        log.is_damaged = log.lacks_something();
        if let Some(damage) = damage {
            self.say(|| format!("n{node} {damage}"));
        }
        Ok(found)
    }

    /// A node writes something down.
    pub(crate) fn log(&mut self, node: usize, record: LogRecord) {
        let Some(plan) = self.plan.disk else { return };
        if matches!(record, LogRecord::Component { .. }) {
            self.sync_catalog(node);
        }
        let host = &mut self.hosts[node];
        host.log.waiting.push(record);
        host.log.grown += 1;
        let is_kept = plan.hits == Hits::Requests;
        let records_max = if is_kept { u64::MAX } else { RECORDS_MAX };
        if host.log.grown == plan.records_max.min(records_max) {
            let boot = host.boot;
            self.queue.push(self.now, Event::Compact { node, boot });
        }
        self.commit(node);
    }

    /// The log is to be made shorter.
    pub(crate) fn compact(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot == boot && self.hosts[node].is_up() {
            self.hosts[node].log.grown = 0;
            self.deliver(node, Input::Compact);
        }
    }

    /// What stands before a record is not needed any more.
    pub(crate) fn compacted(&mut self, node: usize, record: u64) {
        let log = &mut self.hosts[node].log;
        let seq = Seq(log.begin.0 + record);
        let Some(journal) = &mut log.journal else { return };
        match journal.truncate_before(seq) {
            Ok(first) => self.say(|| format!("n{node}'s log begins with record {first}")),
            Err(_) => self.disk_failed(node),
        }
    }

    fn commit(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, plan.sync_us.1));
        let host = &mut self.hosts[node];
        let log = &mut host.log;
        let Some(journal) = log.journal.as_mut().filter(|_| !log.is_committing) else { return };
        if log.waiting.is_empty() {
            return;
        }
        for record in log.waiting.drain(..) {
            journal.append(record).expect("the order carries less than the log");
        }
        (log.is_committing, log.attempts) = (true, 0);
        self.queue.push(self.now + wait, Event::Synced { node, boot: host.boot });
        self.hurt_disk(node);
    }

    /// The disk may fail from now on, or be full for a while.
    fn hurt_disk(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let log = &self.hosts[node].log;
        let Some(disk) = log.disk.clone().filter(|_| !self.peace) else { return };
        if self.disk_rng.per_mille(plan.full) {
            let capacity_bytes = Some(disk.used_bytes() + self.disk_rng.below(3_000));
            disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
            let wait = ms(self.disk_rng.between(10, 3_000));
            let boot = self.hosts[node].boot;
            self.queue.push(self.now + wait, Event::DiskRepaired { node, boot });
            self.say(|| format!("FAULT the disk of n{node} is full"));
        } else if plan.fails && self.disk_rng.per_mille(50) {
            let faults = faults::honest(&mut self.disk_rng);
            disk.set_faults(faults);
            let wait = ms(self.disk_rng.between(10, 1_000));
            let boot = self.hosts[node].boot;
            self.queue.push(self.now + wait, Event::DiskRepaired { node, boot });
            self.say(|| format!("FAULT the disk of n{node} fails now and then"));
        }
    }

    /// A disk works again, or has space.
    pub(crate) fn disk_repaired(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot == boot {
            self.repair_disk(node);
        }
    }

    pub(crate) fn repair_disk(&mut self, node: usize) {
        if let Some(disk) = &self.hosts[node].log.disk {
            disk.set_faults(Faults::default());
        }
    }

    /// A commit is done, or was tried.
    pub(crate) fn synced(&mut self, node: usize, boot: u64) {
        let now = self.now;
        let host = &mut self.hosts[node];
        if host.boot != boot || !host.is_up() {
            return;
        }
        let log = &mut host.log;
        let Some(journal) = log.journal.as_mut().filter(|_| log.is_committing) else { return };
        let before = journal.durable();
        let result = journal.commit(Instant::from_nanos(now.as_nanos()));
        let has_grown = journal.durable() > before;
        match result {
            Ok(_) => log.is_committing = false,
            Err(CommitError::Full(_)) => {}
            Err(CommitError::Failed(_)) => log.attempts += 1,
        }
        if log.attempts >= ATTEMPTS {
            return self.disk_failed(node);
        }
        if log.is_committing {
            self.queue.push(now + ms(RETRY_MS), Event::Synced { node, boot });
        }
        let news = Input::Logged(log.durable());
        if !self.adopt(node) {
            return self.disk_failed(node);
        }
        self.commit(node);
        if has_grown {
            self.deliver(node, news);
        }
    }

    /// The node gives up, as it must; somebody sees to the disk.
    fn disk_failed(&mut self, node: usize) {
        self.say(|| format!("n{node} ends: its disk failed"));
        let forgetful = |(index, host): &(usize, &Host)| host.amnesic || *index == node;
        let forgetful = self.hosts.iter().enumerate().filter(forgetful).count();
        if forgetful > (self.plan.nodes - 1) / 2 {
            self.lose_what_is_not_durable();
        }
        self.crash(node, false);
        self.repair_disk(node);
        self.plan_restart(node);
    }

    /// A node wants a state kept.
    pub(crate) fn save(&mut self, node: usize, group: GroupId, place: Place, parts: &[Bytes; 2]) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, 3 * plan.sync_us.1));
        let boot = self.hosts[node].boot;
        let bytes: Bytes = parts.concat().into();
        self.queue.push(self.now + wait, Event::Saved { node, boot, group, place, bytes });
    }

    /// A state is on disk; it counts when the log has come as far.
    pub(crate) fn saved(
        &mut self,
        (node, boot): (usize, u64),
        (group, place): (GroupId, Place),
        bytes: &Bytes,
    ) {
        let host = &mut self.hosts[node];
        if host.boot != boot || !host.is_up() {
            return;
        }
        let log = &mut host.log;
        let Some(journal) = &log.journal else { return };
        let seq = Seq(log.begin.0 + place.record);
        let position = Position { component: place.view, prefix: place.prefix };
        let write = || {
            let mut writer = journal.checkpoints().begin(group.0, seq, position)?;
            writer.write(bytes)?;
            writer.seal()
        };
        match write() {
            Ok(sealed) => log.sealed.push(sealed),
            Err(_) => return self.disk_failed(node),
        }
        if !self.adopt(node) {
            self.disk_failed(node);
        }
    }

    /// Has the log take in the states that it has come as far as. False if the disk failed.
    fn adopt(&mut self, node: usize) -> bool {
        let log = &mut self.hosts[node].log;
        let Some(journal) = &mut log.journal else { return true };
        let (mut left, mut news) = (Vec::new(), Vec::new());
        for sealed in std::mem::take(&mut log.sealed) {
            match journal.adopt(&sealed) {
                Ok(()) => {
                    let of = sealed.checkpoint();
                    let group = GroupId(of.group);
                    log.bare.remove(&group);
                    log.saved.insert(group);
                    news.push(Input::Saved(group, of.seq.0 - log.begin.0));
                }
                Err(AdoptError::NotDurable(_)) => left.push(sealed),
                Err(AdoptError::Disk(_)) => return false,
            }
        }
        log.sealed = left;
        log.is_damaged &= log.lacks_something();
        for input in news {
            self.deliver(node, input);
        }
        true
    }

    /// A node reads its log while it runs.
    pub(crate) fn look_up(&mut self, node: usize, look: (GroupId, u64)) {
        let up_to = self.hosts[node].log.handed_over();
        self.plan_look_up(node, look, up_to);
    }

    fn plan_look_up(&mut self, node: usize, look: (GroupId, u64), up_to: Seq) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, 3 * plan.sync_us.1));
        let boot = self.hosts[node].boot;
        self.queue.push(self.now + wait, Event::LooksUp { node, boot, look, up_to });
    }

    /// It reads it, if the log has come as far, and is told what is there now when more may be.
    pub(crate) fn looks_up(&mut self, node: usize, boot: u64, look: (GroupId, u64), up_to: Seq) {
        let Some(plan) = self.plan.disk else { return };
        let host = &self.hosts[node];
        if host.boot != boot || !host.is_up() {
            return;
        }
        let log = &host.log;
        let (Some(journal), Some(disk)) = (&log.journal, &log.disk) else { return };
        if !log.is_doubtful && journal.durable() < up_to {
            return self.plan_look_up(node, look, up_to);
        }
        let found = look_up(
            Arc::new(disk.clone()),
            owner(node),
            journal.durable(),
            journal.lacking().clone(),
        );
        let found = found.ok();
        let found = found.filter(|_| !log.is_doubtful);
        let found = found.and_then(|memory| memory.read(&journal.checkpoints()).ok()).map(Box::new);
        let event = Event::LookedUp { node, boot, look, found };
        self.queue.push(self.now + us(plan.sync_us.1), event);
    }

    /// It has read it.
    pub(crate) fn looked_up(
        &mut self,
        node: usize,
        boot: u64,
        look: (GroupId, u64),
        found: Option<Box<Recovered>>,
    ) {
        if self.hosts[node].boot == boot && self.hosts[node].is_up() {
            self.deliver(node, Input::LookedUp(look, found.map(|found| *found)));
        }
    }

    /// A node has written what the next boot needs.
    pub(crate) fn trust(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, plan.sync_us.1));
        let host = &mut self.hosts[node];
        let boot = host.boot;
        self.queue.push(self.now + wait, Event::Trusted { node, boot });
        // It has waited for the states of those groups only that its members take part in.
        let groups = self.plan.groups.iter().enumerate().filter(|(_, group)| group.durable);
        let groups = groups.filter(|(group, _)| !self.membership.stays(*group, node));
        let groups = groups.map(|(group, _)| group_id(group));
        host.log.bare.extend(groups.filter(|group| !host.log.saved.contains(group)));
    }

    /// The doubt is over.
    pub(crate) fn trusted(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || !self.hosts[node].is_up() {
            return;
        }
        let log = &mut self.hosts[node].log;
        let Some(journal) = &mut log.journal else { return };
        if journal.trust().is_err() {
            return self.disk_failed(node);
        }
        log.is_doubtful = false;
        log.is_damaged = log.lacks_something();
        self.deliver(node, Input::Trusted);
    }

    /// Disks that are damaged, if that of `node` is, too.
    pub(crate) fn damaged_disks(&self, node: usize) -> usize {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter(|(index, host)| *index == node || host.log.is_damaged).count()
    }

    /// Whether no group has more than a minority on disks that are damaged, and in members that
    /// operators took out, if that of `node` is one of them: neither has a word when disks are all
    /// that is left.
    pub(crate) fn few_disks_are_missing(&self, node: usize) -> bool {
        let is_damaged = |index: usize| index == node || self.hosts[index].log.is_damaged;
        let missing = self.damaged_disks(node) + self.membership.going_max(is_damaged);
        missing <= (self.plan.nodes - 1) / 2
    }

    /// What a crash leaves of a log.
    pub(crate) fn tear(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let log = &mut self.hosts[node].log;
        let Some(disk) = log.disk.take() else { return };
        if let Some(mut journal) = log.journal.take().filter(|_| log.is_committing) {
            // It came so far.
            let power_fails_after = Some(self.disk_rng.below(8));
            disk.set_faults(Faults { power_fails_after, ..Faults::default() });
            let _ = journal.commit(Instant::from_nanos(self.now.as_nanos()));
        }
        disk.set_faults(Faults::default());
        let disk = disk.crash();
        log.disk = Some(disk.clone());
        (log.is_committing, log.attempts) = (false, 0);
        log.waiting.clear();
        log.sealed.clear();
        let may_be = self.few_disks_are_missing(node) && !self.peace;
        if self.disk_rng.per_mille(plan.damage)
            && may_be
            && let Some(what) = match plan.hits {
                Hits::Anything => LogDisk::spoil(&disk, "", &mut self.disk_rng),
                Hits::Requests => LogDisk::rot(&disk, &mut self.disk_rng),
                Hits::Checkpoints => LogDisk::spoil(&disk, ".ckpt", &mut self.disk_rng),
            }
        {
            self.hosts[node].log.is_damaged = true;
            self.say(|| format!("FAULT the disk of n{node} is damaged: {what}"));
        }
    }
}
