//! How many octets subscriptions take, and how many they may.
//!
//! What counts for a subscription is no less than what it takes in a state, with what its filter
//! remembers, but for events. In memory it takes up to five times as much, measured: large filters
//! two to three times, small ones and conjunctions in conjunctions, each of which has room reserved
//! for all that the inner ones hold, nearly five times.
//!
//! What it is not: a bound on events; queues have theirs.
//!
//! Invariants: what counts follows from the subscriptions, so replicas count and refuse alike; who
//! is refused changes nothing; what is there stays, whatever the bound, and may become smaller.

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Object, raise_system};

use crate::channel::Channel;
use crate::registry::{Before, Change, Consumer, Offered, Registry, Supplier, Wanted};
use crate::service::EventService;
use crate::state::object_bytes;

/// Octets that count for a proxy, connected or not, and for an observer, beside what they have.
const EACH_BYTES: usize = 256;
/// For an entry of a filter: in a state it takes 24, and 16 what a timer remembers.
const ENTRY_BYTES: usize = 40;
/// For something that a supplier has.
const PUBLISHED_BYTES: usize = 12;
/// For a channel, beside its name and its settings.
const CHANNEL_BYTES: usize = 256;

fn of_consumer(peer: Option<&Object>, wanted: &Wanted) -> usize {
    EACH_BYTES + peer.map_or(0, object_bytes) + ENTRY_BYTES * wanted.entries.len()
}

fn of_supplier(peer: Option<&Object>, offered: &Offered) -> usize {
    EACH_BYTES + peer.map_or(0, object_bytes) + PUBLISHED_BYTES * offered.publications.len()
}

fn of_observer(observer: &Object) -> usize {
    EACH_BYTES + object_bytes(observer)
}

impl Consumer {
    fn bytes(&self) -> usize {
        of_consumer(self.peer.as_ref(), &self.wanted)
    }
}

impl Supplier {
    fn bytes(&self) -> usize {
        of_supplier(self.peer.as_ref(), &self.offered)
    }
}

impl Change {
    /// Octets that it takes while it is kept.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::ConnectConsumer { peer, wanted, .. } => of_consumer(Some(peer), wanted),
            Self::ConnectSupplier { peer, offered, .. } => of_supplier(Some(peer), offered),
            Self::Observe { observer } => of_observer(observer),
            _ => EACH_BYTES,
        }
    }
}

impl Before {
    /// The same of what was there before.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Consumer(_, consumer) => consumer.bytes(),
            Self::Supplier(_, supplier) => supplier.bytes(),
            Self::Observer(_, observer) => of_observer(observer),
            Self::All(all) => all.bytes,
        }
    }
}

impl Registry {
    /// Counts anew what all of it takes.
    pub(crate) fn count_bytes(&mut self) {
        let consumers: usize = self.consumers.values().map(Consumer::bytes).sum();
        let suppliers: usize = self.suppliers.values().map(Supplier::bytes).sum();
        let observers: usize = self.observers.values().map(of_observer).sum();
        self.bytes = consumers + suppliers + observers;
    }

    /// What it takes once a change is carried out.
    pub(crate) fn bytes_after(&self, change: &Change) -> usize {
        let consumer = |id| self.consumers.get(id).map_or(0, Consumer::bytes);
        let supplier = |id| self.suppliers.get(id).map_or(0, Supplier::bytes);
        let (less, more) = match change {
            Change::NewConsumer { .. } | Change::NewSupplier { .. } => (0, EACH_BYTES),
            Change::ConnectConsumer { id, .. } => (consumer(id), change.bytes()),
            Change::ConnectSupplier { id, .. } => (supplier(id), change.bytes()),
            Change::Suspend { .. } => (0, 0),
            Change::EndConsumer { id } => (consumer(id), 0),
            Change::EndSupplier { id } => (supplier(id), 0),
            Change::Observe { .. } => (0, change.bytes()),
            Change::Unobserve { handle } => (self.observers.get(handle).map_or(0, of_observer), 0),
            Change::Destroy => (self.bytes, 0),
        };
        self.bytes.saturating_sub(less).saturating_add(more)
    }
}

impl Channel {
    /// Octets that count for its subscriptions.
    #[must_use]
    pub const fn subscription_bytes(&self) -> usize {
        self.registry.bytes
    }

    /// Whether there is room for what a change adds to the subscriptions.
    pub(crate) fn check_bytes(&self, change: &Change) -> Result<(), SystemException> {
        let (now, after) = (self.registry.bytes, self.registry.bytes_after(change));
        let is_beyond = after > now && after > self.settings.limits.subscription_bytes_max;
        if is_beyond { Err(raise_system(ExceptionKind::NoResources)) } else { Ok(()) }
    }
}

/// What counts for a channel with that line of settings, beside its subscriptions.
fn of_channel(name: &str, line_bytes: usize) -> usize {
    CHANNEL_BYTES + name.len() + line_bytes
}

impl EventService {
    /// Octets that count for all channels but one.
    fn others_bytes(&self, name: &str) -> u64 {
        let others = self.channels.iter().filter(|(other, _)| *other != name);
        let bytes = others.map(|(other, held)| {
            of_channel(other, held.line_bytes()) + held.channel.subscription_bytes()
        });
        bytes.map(|bytes| bytes as u64).sum()
    }

    /// How many the subscriptions of a channel may take now.
    pub(crate) fn room_of(&self, name: &str) -> usize {
        let Some(held) = self.channels.get(name) else { return 0 };
        let others = self.others_bytes(name) + of_channel(name, held.line_bytes()) as u64;
        let left = self.bounds().subscription_bytes().saturating_sub(others);
        let most = left.min(self.bounds().subscription_bytes_of_one());
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Whether there is room for one more channel that clients make.
    pub(crate) fn has_room_for_channel(&self, name: &str, line: &str) -> bool {
        let all = self.others_bytes(name) + of_channel(name, line.len()) as u64;
        all <= self.bounds().subscription_bytes()
    }
}
