//! What replicas of a channel hand each other: all subscriptions, or one change after the other
//! (Huang and Gill §3.3).
//!
//! Replicas that execute the same calls need neither; a replica that joins takes the whole, and one
//! that is told changes only takes these. Changes are numbered: one that was missed shows.
//!
//! Invariants: a state that cannot be read whole changes nothing; a change is taken once, at its
//! number.

use alloc::vec::Vec;

use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};

use crate::channel::Channel;
use crate::observers::Observers;
use crate::registry::{Before, Change, Registry};
use crate::{held, state};

/// What a replica lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Updates {
    /// These changes, in this order; none if nothing.
    Changes(Vec<Vec<u8>>),
    /// So much that it is the whole.
    Whole(Vec<u8>),
}

/// Why a change is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateFault {
    /// It is none, or not one for this channel.
    Invalid,
    /// Others are missing before it: those behind this number.
    Gap {
        /// The number of the last change that was taken.
        current: u64,
    },
}

impl Channel {
    /// How often subscriptions have changed.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.registry.sequence
    }

    /// What replicas have alike, as octets: subscriptions; in a reliable channel events, too.
    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        let mut out = Writer::new(state::ORDER);
        state::write(&self.registry, &mut out);
        out.write_bool(self.settings.is_reliable);
        if self.settings.is_reliable {
            held::write(self, &mut out);
        }
        out.finish()
    }

    /// Takes over what another one handed out by [`Channel::state`].
    ///
    /// # Errors
    /// If it is no such state; then nothing changes.
    pub fn take_over(&mut self, octets: &[u8]) -> Result<(), MessageError> {
        let mut from = Reader::new(octets, state::ORDER);
        let version = state::read_head(&mut from)?;
        let registry = state::read(&mut from, &self.settings.limits, version)?;
        let has_events = from.read_bool("reliable")?;
        if has_events != self.settings.is_reliable {
            return Err(from.wrong("reliable"));
        }
        let form = held::Form { settings: &self.settings, version };
        let held = if has_events { Some(held::read(&mut from, &registry, form)?) } else { None };
        if from.remaining() > 0 {
            return Err(from.wrong("end"));
        }
        self.log.clear();
        self.log_bytes = 0;
        self.replace(registry);
        if let Some(held) = held {
            held::restore(self, held);
        }
        Ok(())
    }

    /// Puts another registry in the place of this one. Who is connected as before is served on.
    fn replace(&mut self, registry: Registry) {
        let old = core::mem::replace(&mut self.registry, registry);
        let gone: Vec<u64> = self.running.keys().copied().collect();
        for id in gone {
            if self.registry.consumers.get(&id) != old.consumers.get(&id) {
                self.stop(id);
            }
        }
        let all: Vec<u64> = self.registry.consumers.keys().copied().collect();
        for id in all {
            if !self.running.contains_key(&id) {
                self.start(id);
            }
        }
        self.ended += 1;
        self.pulling.clear();
        self.silent.clear();
        self.observers = Observers::default();
        self.asks.clear();
        let suppliers: Vec<u64> = self.registry.suppliers.keys().copied().collect();
        suppliers.into_iter().for_each(|id| self.start_pulling(id));
        (self.consumers_changed, self.suppliers_changed) = (true, true);
    }

    /// What one lacks that has taken all changes up to a number.
    #[must_use]
    pub fn updates_since(&self, number: u64) -> Updates {
        let first = self.log.front().map_or(self.registry.sequence + 1, |(first, ..)| *first);
        if number > self.registry.sequence || number + 1 < first {
            return Updates::Whole(self.state());
        }
        let missing = self.log.iter().filter(|(sequence, ..)| *sequence > number);
        Updates::Changes(
            missing.map(|(sequence, change, _)| state::write_update(*sequence, change)).collect(),
        )
    }

    /// Takes what another replica has told: a change, or the whole.
    ///
    /// # Errors
    /// Why not; then nothing changes.
    pub fn take_update(&mut self, octets: &[u8]) -> Result<(), UpdateFault> {
        if state::is_whole(octets) {
            return self.take_over(octets).map_err(|_| UpdateFault::Invalid);
        }
        let read = state::read_update(octets, &self.settings.limits);
        let (sequence, change) = read.map_err(|_| UpdateFault::Invalid)?;
        let current = self.registry.sequence;
        if sequence <= current {
            return Ok(());
        }
        if sequence != current + 1 {
            return Err(UpdateFault::Gap { current });
        }
        if !self.has_room_for(&change) {
            return Err(UpdateFault::Invalid);
        }
        self.change(change).map_err(|_| UpdateFault::Invalid)
    }

    fn has_room_for(&self, change: &Change) -> bool {
        let limits = &self.settings.limits;
        if self.check_bytes(change).is_err() {
            return false;
        }
        match change {
            Change::NewConsumer { .. } | Change::NewSupplier { .. } => {
                self.registry.proxies() < limits.proxies_max
            }
            Change::Observe { .. } => self.registry.observers.len() < limits.observers_max,
            _ => true,
        }
    }

    /// Undoes all changes behind a number, because too few replicas have them (§3.4); what was to
    /// be called because of them is not. Whether it could be done: changes that are too long ago
    /// are not known any more.
    pub fn roll_back(&mut self, number: u64) -> bool {
        let count = self.registry.sequence.saturating_sub(number);
        if usize::try_from(count).is_ok_and(|count| count > self.log.len()) {
            return false;
        }
        let mut registry = self.registry.clone();
        while registry.sequence > number {
            let Some((_, change, before)) = self.log.pop_back() else { break };
            self.log_bytes = self.log_bytes.saturating_sub(change.bytes() + before.bytes());
            undo(&mut registry, &change, before);
        }
        registry.count_bytes();
        self.outgoing.retain(|(sequence, _)| *sequence <= number);
        self.replace(registry);
        true
    }
}

fn undo(registry: &mut Registry, change: &Change, before: Before) {
    registry.sequence -= 1;
    match (change, before) {
        (Change::NewConsumer { .. }, _) => {
            registry.next_proxy -= 1;
            registry.consumers.remove(&registry.next_proxy);
        }
        (Change::NewSupplier { .. }, _) => {
            registry.next_proxy -= 1;
            registry.suppliers.remove(&registry.next_proxy);
        }
        (Change::Observe { .. }, _) => {
            registry.next_observer -= 1;
            registry.observers.remove(&registry.next_observer);
        }
        (_, Before::Consumer(id, consumer)) => {
            registry.consumers.insert(id, consumer);
        }
        (_, Before::Supplier(id, supplier)) => {
            registry.suppliers.insert(id, supplier);
        }
        (_, Before::Observer(handle, observer)) => {
            registry.observers.insert(handle, observer);
        }
        (_, Before::All(all)) => *registry = *all,
        (_, Before::Nothing) => {}
    }
}
