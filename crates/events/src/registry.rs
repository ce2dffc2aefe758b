//! The subscriptions: which proxies there are, who is connected to each, and what it wants. This,
//! and nothing else of a channel that is not reliable, is what replicas have alike.
//!
//! Invariants: it changes by [`Change`]s only; the same changes make the same registry, to the
//! octet; each change that took effect has the next sequence number.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorba_corba::Object;

use crate::filter::Entry;

/// How a consumer is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConsumerForm {
    /// CosEvent, push.
    Push,
    /// CosEvent, pull.
    Pull,
    /// TAO's, with a proxy.
    Rtec,
    /// TAO's, by the facade.
    Facade,
    /// By the facade, and with numbers.
    Numbered,
}

/// How a supplier brings events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SupplierForm {
    /// CosEvent, push.
    Push,
    /// CosEvent, pull.
    Pull,
    /// TAO's, with a proxy.
    Rtec,
    /// TAO's, by the facade.
    Facade,
}

impl ConsumerForm {
    pub(crate) const ALL: [Self; 5] =
        [Self::Push, Self::Pull, Self::Rtec, Self::Facade, Self::Numbered];

    pub(crate) const fn by_facade(self) -> bool {
        matches!(self, Self::Facade | Self::Numbered)
    }
}

impl SupplierForm {
    pub(crate) const ALL: [Self; 4] = [Self::Push, Self::Pull, Self::Rtec, Self::Facade];
}

/// What a consumer wants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) entries: Vec<Entry>,
    pub(crate) is_gateway: bool,
}

/// One kind of event that a supplier has; of TAO's `Publication` what means something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Published {
    pub(crate) event_type: i32,
    pub(crate) source: i32,
    pub(crate) rt_info: i32,
}

/// What a supplier has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Offered {
    pub(crate) publications: Vec<Published>,
    pub(crate) is_gateway: bool,
}

/// A proxy that a consumer has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Consumer {
    pub(crate) form: ConsumerForm,
    /// Who is connected; perhaps nobody that could be called.
    pub(crate) peer: Option<Object>,
    pub(crate) wanted: Wanted,
    pub(crate) is_suspended: bool,
    /// The number of the change by which it was connected last; 0: by none, or by one that was
    /// before these were kept. Who says something of a connection names it, so that it is not
    /// taken for said of the next one.
    pub(crate) connection: u64,
}

/// A proxy that a supplier has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Supplier {
    pub(crate) form: SupplierForm,
    pub(crate) peer: Option<Object>,
    pub(crate) offered: Offered,
    /// See [`Consumer::connection`].
    pub(crate) connection: u64,
}

/// What the next proxy and the next observer are called. Of a service these do not go back, so that
/// a number is nobody else's when its channel has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    pub(crate) proxy: u64,
    pub(crate) observer: u32,
}

impl Numbers {
    pub(crate) const FIRST: Self = Self { proxy: 1, observer: 1 };

    /// Those that come behind both.
    pub(crate) fn behind(self, other: Self) -> Self {
        Self { proxy: self.proxy.max(other.proxy), observer: self.observer.max(other.observer) }
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registry {
    /// Changes so far.
    pub(crate) sequence: u64,
    /// Smaller numbers are not of this channel.
    pub(crate) first_proxy: u64,
    pub(crate) next_proxy: u64,
    pub(crate) next_observer: u32,
    pub(crate) consumers: BTreeMap<u64, Consumer>,
    pub(crate) suppliers: BTreeMap<u64, Supplier>,
    pub(crate) observers: BTreeMap<u32, Object>,
    pub(crate) is_destroyed: bool,
    /// Octets that count for all of it; see `room.rs`.
    pub(crate) bytes: usize,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            sequence: 0,
            first_proxy: 1,
            next_proxy: 1,
            next_observer: 1,
            consumers: BTreeMap::new(),
            suppliers: BTreeMap::new(),
            observers: BTreeMap::new(),
            is_destroyed: false,
            bytes: 0,
        }
    }
}

/// A change of subscriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    NewConsumer { form: ConsumerForm },
    NewSupplier { form: SupplierForm },
    ConnectConsumer { id: u64, peer: Object, wanted: Wanted },
    ConnectSupplier { id: u64, peer: Object, offered: Offered },
    Suspend { id: u64, is_suspended: bool },
    EndConsumer { id: u64 },
    EndSupplier { id: u64 },
    Observe { observer: Object },
    Unobserve { handle: u32 },
    Destroy,
}

/// A change that means nothing here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoSuchThing;

/// What was there before a change, as far as it is no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    Nothing,
    Consumer(u64, Consumer),
    Supplier(u64, Supplier),
    Observer(u32, Object),
    All(alloc::boxed::Box<Registry>),
}

impl Registry {
    /// Carries out a change.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<Before, NoSuchThing> {
        if self.is_destroyed {
            return Err(NoSuchThing);
        }
        let bytes = self.bytes_after(change);
        let before = self.carry_out(change)?;
        self.bytes = bytes;
        self.sequence += 1;
        Ok(before)
    }

    fn carry_out(&mut self, change: &Change) -> Result<Before, NoSuchThing> {
        Ok(match change {
            Change::NewConsumer { form } => {
                let consumer = Consumer {
                    form: *form,
                    peer: None,
                    wanted: Wanted::default(),
                    is_suspended: false,
                    connection: 0,
                };
                self.consumers.insert(self.next_proxy, consumer);
                self.next_proxy += 1;
                Before::Nothing
            }
            Change::NewSupplier { form } => {
                let offered = Offered::default();
                let supplier = Supplier { form: *form, peer: None, offered, connection: 0 };
                self.suppliers.insert(self.next_proxy, supplier);
                self.next_proxy += 1;
                Before::Nothing
            }
            Change::ConnectConsumer { id, peer, wanted } => {
                let there = self.consumers.get_mut(id).ok_or(NoSuchThing)?;
                let before = Before::Consumer(*id, there.clone());
                (there.peer, there.wanted) = (Some(peer.clone()), wanted.clone());
                there.connection = self.sequence + 1;
                before
            }
            Change::ConnectSupplier { id, peer, offered } => {
                let there = self.suppliers.get_mut(id).ok_or(NoSuchThing)?;
                let before = Before::Supplier(*id, there.clone());
                (there.peer, there.offered) = (Some(peer.clone()), offered.clone());
                there.connection = self.sequence + 1;
                before
            }
            Change::Suspend { id, is_suspended } => {
                let there = self.consumers.get_mut(id).ok_or(NoSuchThing)?;
                let before = Before::Consumer(*id, there.clone());
                there.is_suspended = *is_suspended;
                before
            }
            Change::EndConsumer { id } => {
                Before::Consumer(*id, self.consumers.remove(id).ok_or(NoSuchThing)?)
            }
            Change::EndSupplier { id } => {
                Before::Supplier(*id, self.suppliers.remove(id).ok_or(NoSuchThing)?)
            }
            Change::Observe { observer } => {
                let handle = self.next_observer;
                self.next_observer = handle.checked_add(1).ok_or(NoSuchThing)?;
                self.observers.insert(handle, observer.clone());
                Before::Nothing
            }
            Change::Unobserve { handle } => {
                Before::Observer(*handle, self.observers.remove(handle).ok_or(NoSuchThing)?)
            }
            Change::Destroy => {
                let &mut Self { sequence, first_proxy, next_proxy, next_observer, .. } = self;
                let is_destroyed = true;
                let numbers = Self { first_proxy, next_proxy, next_observer, ..Self::default() };
                let empty = Self { sequence, ..numbers };
                let before = core::mem::replace(self, Self { is_destroyed, ..empty });
                Before::All(alloc::boxed::Box::new(before))
            }
        })
    }

    /// The next numbers.
    pub(crate) const fn numbers(&self) -> Numbers {
        Numbers { proxy: self.next_proxy, observer: self.next_observer }
    }

    /// The next numbers are these, which must not have been given yet.
    pub(crate) const fn number_from(&mut self, numbers: Numbers) {
        (self.next_proxy, self.next_observer) = (numbers.proxy, numbers.observer);
    }

    /// How many proxies there are.
    pub(crate) fn proxies(&self) -> usize {
        self.consumers.len() + self.suppliers.len()
    }
}
