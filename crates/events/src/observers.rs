//! Observers of TAO's interface: who is told what consumers want and what suppliers have.
//!
//! What it is not: replicated; who is an observer stands among the subscriptions. Invariants: one
//! update at most is under way to an observer; what changes meanwhile is told by the next one, so
//! the newest is told last; one that cannot be told for long is proposed to be removed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use quorba_corba::Transport;
use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, ObserverStub, SupplierQOS};

use crate::channel::Channel;
use crate::outgoing::{Outcome, Outgoing, Proposal};
use crate::shown;

/// What an observer is told.
#[derive(Clone, PartialEq, Debug)]
pub enum Update {
    /// What consumers want.
    Consumers(Arc<ConsumerQOS>),
    /// What suppliers have.
    Suppliers(Arc<SupplierQOS>),
}

impl Update {
    /// Makes the call.
    pub fn send(&self, to: &mut impl Transport) -> Outcome {
        let mut observer = ObserverStub(to);
        let told = match self {
            Self::Consumers(qos) => observer.update_consumer(qos),
            Self::Suppliers(qos) => observer.update_supplier(qos),
        };
        told.map_or_else(|raised| Outcome::of(&raised), |()| Outcome::Taken)
    }
}

/// What is owed to one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Observer {
    consumers: bool,
    suppliers: bool,
    /// The update that is under way: its name, and whether it is of consumers.
    under_way: Option<(u64, bool)>,
    /// It is told nothing before.
    not_before: u64,
    failing_since: Option<u64>,
    /// Its end is to be ordered.
    is_ending: bool,
}

impl Observer {
    const fn waits(&self) -> bool {
        (self.consumers || self.suppliers) && self.under_way.is_none() && !self.is_ending
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Observers {
    all: BTreeMap<u32, Observer>,
    wanted: Option<Arc<ConsumerQOS>>,
    offered: Option<Arc<SupplierQOS>>,
}

impl Channel {
    /// Whether an observer can be told something now.
    pub(crate) fn has_update(&self) -> bool {
        self.observers.all.values().any(|one| one.waits() && one.not_before <= self.now)
    }

    /// When the next one is told again that could not be told.
    pub(crate) fn next_update_at(&self) -> Option<u64> {
        let waiting = self.observers.all.values().filter(|one| one.waits());
        waiting.map(|one| one.not_before).filter(|at| *at > self.now).min()
    }

    /// Notes what has changed since.
    fn note_changes(&mut self) {
        let consumers = core::mem::take(&mut self.consumers_changed);
        let suppliers = core::mem::take(&mut self.suppliers_changed);
        if !consumers && !suppliers {
            return;
        }
        let Observers { all, wanted, offered } = &mut self.observers;
        all.retain(|handle, _| self.registry.observers.contains_key(handle));
        if consumers {
            *wanted = None;
        }
        if suppliers {
            *offered = None;
        }
        for handle in self.registry.observers.keys() {
            let one = all.entry(*handle).or_default();
            one.consumers |= consumers;
            one.suppliers |= suppliers;
        }
    }

    /// The next update to be made.
    pub(crate) fn next_update(&mut self) -> Option<Outgoing> {
        self.note_changes();
        let (now, known) = (self.now, &self.registry.observers);
        let mut all = self.observers.all.iter_mut();
        let (observer, to, one) = all.find_map(|(handle, one)| {
            let is_due = one.waits() && one.not_before <= now;
            let to = known.get(handle).filter(|_| is_due)?;
            Some((*handle, to.clone(), one))
        })?;
        let of_consumers = core::mem::take(&mut one.consumers);
        if !of_consumers {
            one.suppliers = false;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        one.under_way = Some((ticket, of_consumers));
        let update = if of_consumers {
            let known = self.observers.wanted.take().unwrap_or_else(|| self.all_wanted());
            Update::Consumers(Arc::clone(self.observers.wanted.insert(known)))
        } else {
            let known = self.observers.offered.take().unwrap_or_else(|| self.all_offered());
            Update::Suppliers(Arc::clone(self.observers.offered.insert(known)))
        };
        Some(Outgoing::Update { observer, ticket, to, update })
    }

    /// How an update ended.
    pub fn observed(&mut self, observer: u32, ticket: u64, outcome: Outcome) {
        let (now, settings) = (self.now, &self.settings);
        let Some(one) = self.observers.all.get_mut(&observer) else { return };
        let Some((_, of_consumers)) = one.under_way.take_if(|(known, _)| *known == ticket) else {
            return;
        };
        if outcome == Outcome::Taken {
            one.failing_since = None;
            return;
        }
        one.consumers |= of_consumers;
        one.suppliers |= !of_consumers;
        one.not_before = now.saturating_add(settings.retry_after);
        let since = *one.failing_since.get_or_insert(now);
        let after = settings.give_up_after;
        let is_late = after > 0 && now.saturating_sub(since) >= after;
        if is_late || outcome == Outcome::Gone {
            one.is_ending = true;
            self.propose(Proposal::EndObserver { observer });
        }
    }

    /// The end of an observer cannot be ordered: it is told on.
    pub(crate) fn observe_on(&mut self, observer: u32) {
        let again = self.now.saturating_add(self.settings.retry_after);
        if let Some(one) = self.observers.all.get_mut(&observer) {
            (one.is_ending, one.not_before) = (false, again);
        }
    }

    /// An observer that cannot be told is one no more.
    pub(crate) fn end_observer(&mut self, observer: u32) {
        let place = shown::place(self.registry.observers.get(&observer), observer.into());
        let change = crate::registry::Change::Unobserve { handle: observer };
        if self.change(change).is_ok() && self.leads {
            let told = Outgoing::ObserverEnded { observer, place };
            self.outgoing.push_back((self.registry.sequence, told));
        }
    }
}
