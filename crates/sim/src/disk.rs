//! The disks of a domain with durable groups: what is on them, when it gets there, and what a
//! crash leaves.
//!
//! What it is not: the format, whose torn and damaged files are tested where it is; here a disk
//! gives back a beginning of what was written, or says that it is in doubt. Invariants: what was
//! reported to be on disk survives every crash of a disk that is not damaged; at no time more than
//! a minority of disks is damaged.

use crate::event::Event;
use crate::host::Input;
use crate::rng::Rng;
use crate::world::{World, us};
use bytes::Bytes;
use quorba_engine::replica::{GroupId, LogRecord, Place, Recovered};

/// How the disks of a domain are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskPlan {
    /// How long a group commit takes.
    pub(crate) sync_us: (u64, u64),
    /// Of a thousand crashes, those that leave a disk in doubt.
    pub(crate) damage: u64,
}

impl DiskPlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self {
            sync_us: rng.pick(&[(50, 200), (500, 5_000), (1_000, 30_000), (10, 400_000)]),
            damage: rng.pick(&[0, 0, 100, 400]),
        }
    }
}

/// The log of one node.
#[derive(Clone, Default, Debug)]
pub(crate) struct LogDisk {
    records: Vec<LogRecord>,
    /// Of these, those that no crash takes.
    synced: usize,
    /// Those of earlier boots.
    begin: usize,
    /// A commit is under way, of so many.
    committing: Option<usize>,
    states: Vec<(GroupId, Bytes)>,
    /// Nothing of it may be used, until the node has rebuilt itself.
    pub(crate) is_doubtful: bool,
}

impl LogDisk {
    /// What a new boot finds.
    pub(crate) fn recover(&mut self) -> Option<Recovered> {
        if self.is_doubtful {
            *self = Self { is_doubtful: true, ..Self::default() };
        }
        (self.begin, self.committing) = (self.records.len(), None);
        let (records, states) = (self.records.clone(), self.states.clone());
        (!records.is_empty()).then_some(Recovered { records, states })
    }
}

impl World {
    /// A node writes something down.
    pub(crate) fn log(&mut self, node: usize, record: LogRecord) {
        self.hosts[node].log.records.push(record);
        self.commit(node);
    }

    fn commit(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, plan.sync_us.1));
        let host = &mut self.hosts[node];
        let log = &mut host.log;
        if log.committing.is_none() && log.records.len() > log.synced {
            log.committing = Some(log.records.len());
            self.queue.push(self.now + wait, Event::Synced { node, boot: host.boot });
        }
    }

    /// A commit is done.
    pub(crate) fn synced(&mut self, node: usize, boot: u64) {
        let host = &mut self.hosts[node];
        if host.boot != boot || !host.is_up() {
            return;
        }
        let Some(records) = host.log.committing.take() else { return };
        host.log.synced = records;
        let news = Input::Logged((records - host.log.begin) as u64);
        self.commit(node);
        self.deliver(node, news);
    }

    /// A node wants a state kept.
    pub(crate) fn save(&mut self, node: usize, group: GroupId, place: Place, parts: &[Bytes; 2]) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, 3 * plan.sync_us.1));
        let boot = self.hosts[node].boot;
        let bytes: Bytes = parts.concat().into();
        let record = place.record;
        self.queue.push(self.now + wait, Event::Saved { node, boot, group, record, bytes });
    }

    /// A state is on disk; it counts when the log has come as far.
    pub(crate) fn saved(
        &mut self,
        (node, boot): (usize, u64),
        (group, record): (GroupId, u64),
        bytes: Bytes,
    ) {
        let host = &mut self.hosts[node];
        if host.boot != boot || !host.is_up() {
            return;
        }
        if ((host.log.synced - host.log.begin) as u64) < record {
            let again = self.now + us(1_000);
            self.queue.push(again, Event::Saved { node, boot, group, record, bytes });
            return;
        }
        host.log.states.push((group, bytes));
        self.deliver(node, Input::Saved(group, record));
    }

    /// A node reads its log while it runs.
    pub(crate) fn look_up(&mut self, node: usize, group: GroupId) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, 3 * plan.sync_us.1));
        let boot = self.hosts[node].boot;
        self.queue.push(self.now + wait, Event::LookedUp { node, boot, group });
    }

    /// It has read it.
    pub(crate) fn looked_up(&mut self, node: usize, boot: u64, group: GroupId) {
        let host = &self.hosts[node];
        if host.boot == boot && host.is_up() {
            let log = &host.log;
            let (records, states) = (log.records.clone(), log.states.clone());
            let found = (!log.is_doubtful).then_some(Recovered { records, states });
            self.deliver(node, Input::LookedUp(group, found));
        }
    }

    /// A node has written what the next boot needs.
    pub(crate) fn trust(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let wait = us(self.disk_rng.between(plan.sync_us.0, plan.sync_us.1));
        let boot = self.hosts[node].boot;
        self.queue.push(self.now + wait, Event::Trusted { node, boot });
    }

    /// The doubt is over.
    pub(crate) fn trusted(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot == boot && self.hosts[node].is_up() {
            self.hosts[node].log.is_doubtful = false;
            self.deliver(node, Input::Trusted);
        }
    }

    /// What a crash leaves of a log.
    pub(crate) fn tear(&mut self, node: usize) {
        let Some(plan) = self.plan.disk else { return };
        let log = &mut self.hosts[node].log;
        let unsynced = (log.records.len() - log.synced) as u64;
        let kept = log.synced + self.disk_rng.below(unsynced + 1) as usize;
        log.records.truncate(kept);
        log.synced = kept;
        let damaged = self.hosts.iter().filter(|host| host.log.is_doubtful).count();
        let may_be = damaged < (self.plan.nodes - 1) / 2 && !self.peace;
        if self.disk_rng.per_mille(plan.damage) && may_be {
            self.hosts[node].log.is_doubtful = true;
            self.say(|| format!("FAULT the disk of n{node} is damaged"));
        }
    }
}
