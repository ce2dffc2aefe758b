//! A channel: what it consists of, and how its subscriptions change.
//!
//! Invariants: subscriptions change by [`Channel::change`] only; who runs (`running`, `pulling`)
//! follows from the subscriptions; what is called outside is an [`Outgoing`], and only where the
//! channel leads.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Home, Object, raise_system};
use quorba_idl::cos_event_channel_admin as cos;
use quorba_idl::rtec_event_channel_admin::{self as rtec, ConsumerQOS, SupplierQOS};
use quorba_idl::{ft_rtec_event_channel_admin as ft_rtec, quorba_events};

use crate::dispatch::Pulling;
use crate::ends::Ends;
use crate::event::Shared;
use crate::filter::{BadFilter, Entry, Filter, designator};
use crate::index::Index;
use crate::keys::{self, Place};
use crate::observers::Observers;
use crate::outgoing::{Goodbye, Outgoing, Reason};
use crate::queue::Queue;
use crate::registry::{
    Before, Change, ConsumerForm, NoSuchThing, Offered, Registry, SupplierForm, Wanted,
};
use crate::schedule::Key;
use crate::settings::{Contradiction, Settings};
use crate::state::object_bytes;

/// What serves one connected consumer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Running {
    pub(crate) filter: Filter<Shared>,
    pub(crate) queue: Queue,
    pub(crate) peer: Arc<Object>,
    pub(crate) form: ConsumerForm,
    pub(crate) is_gateway: bool,
    pub(crate) is_suspended: bool,
    /// It was asked to be ended.
    pub(crate) is_ending: bool,
    /// The number of its connection.
    pub(crate) connection: u64,
    /// The same of when what is under way to it was begun.
    pub(crate) called_as: u64,
    /// Its place among those that can be served.
    pub(crate) ready: Option<Key>,
    /// Its place among those with timers.
    pub(crate) due: Option<u64>,
}

impl Running {
    pub(crate) const fn takes(&self) -> bool {
        !self.is_suspended && !self.is_ending
    }
}

/// What a channel has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Events that came.
    pub pushed: u64,
    /// Pushes that were refused because a consumer has no room or because they were too large, and
    /// events of suppliers that are pulled that were too large.
    pub refused: u64,
    /// What was proposed and could not be ordered.
    pub left_out: u64,
    /// Sets of events that were put into queues.
    pub queued: u64,
    /// Events that consumers were given that have gone since.
    pub delivered: u64,
    /// Events of theirs that were dropped.
    pub dropped: u64,
}

/// An event channel. See the crate's text.
pub struct Channel {
    pub(crate) base: String,
    pub(crate) home: Home,
    pub(crate) settings: Settings,
    pub(crate) registry: Registry,
    /// The last changes, each with what was there before.
    pub(crate) log: VecDeque<(u64, Change, Before)>,
    /// Octets that count for these.
    pub(crate) log_bytes: usize,
    pub(crate) now: u64,
    /// Whose call is executed, if the order tells it.
    pub(crate) caller: Option<u64>,
    pub(crate) leads: bool,
    pub(crate) running: BTreeMap<u64, Running>,
    pub(crate) index: Index,
    pub(crate) pulling: BTreeMap<u64, Pulling>,
    /// Suppliers that are pulled and give no answer, and since when.
    pub(crate) silent: BTreeMap<u64, u64>,
    /// Octets of what was pulled last.
    pub(crate) pulled_bytes: usize,
    /// When each supplier that is pulled is asked.
    pub(crate) asks: BTreeSet<(u64, u64)>,
    pub(crate) ready: BTreeSet<(Key, u64)>,
    pub(crate) retries: BTreeSet<(u64, u64)>,
    pub(crate) timers: BTreeSet<(u64, u64)>,
    /// With the number of the change that they are of.
    pub(crate) outgoing: VecDeque<(u64, Outgoing)>,
    /// Octets that wait for all consumers together: the sum of what is in their queues.
    pub(crate) waiting: usize,
    pub(crate) next_arrival: u64,
    pub(crate) next_ticket: u64,
    /// Attempts with smaller names are of an earlier channel, or state.
    first_ticket: u64,
    pub(crate) observers: Observers,
    pub(crate) consumers_changed: bool,
    pub(crate) suppliers_changed: bool,
    pub(crate) totals: Totals,
    /// Before nothing more is said of pushes that are too large.
    pub(crate) told_too_large: u64,
    /// Proxies that have ended.
    pub(crate) ended: u64,
    /// Clients that were not told the end of their connection, because too much was to be done.
    pub(crate) unsaid: u64,
    /// Those that the channel has ended itself.
    pub(crate) ends: Ends,
}

/// Why a connection is not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectFault {
    AlreadyConnected,
    Filter(BadFilter),
    System(ExceptionKind),
}

impl ConnectFault {
    pub(crate) const fn system(self) -> SystemException {
        match self {
            Self::System(kind) => raise_system(kind),
            Self::AlreadyConnected => raise_system(ExceptionKind::BadInvOrder),
            Self::Filter(_) => raise_system(ExceptionKind::BadParam),
        }
    }
}

pub(crate) const fn gone(_: NoSuchThing) -> SystemException {
    raise_system(ExceptionKind::ObjectNotExist)
}

impl Channel {
    /// A channel whose objects' keys begin with `base`, and that is reached at `home`. It leads.
    ///
    /// # Errors
    /// If the settings contradict each other.
    pub fn new(base: &str, home: &Home, settings: Settings) -> Result<Self, Contradiction> {
        settings.check()?;
        Ok(Self {
            base: String::from(base),
            home: home.clone(),
            settings,
            registry: Registry::default(),
            log: VecDeque::new(),
            log_bytes: 0,
            now: 0,
            caller: None,
            leads: true,
            running: BTreeMap::new(),
            index: Index::default(),
            pulling: BTreeMap::new(),
            silent: BTreeMap::new(),
            pulled_bytes: 0,
            asks: BTreeSet::new(),
            ready: BTreeSet::new(),
            retries: BTreeSet::new(),
            timers: BTreeSet::new(),
            outgoing: VecDeque::new(),
            waiting: 0,
            next_arrival: 0,
            next_ticket: 1,
            first_ticket: 1,
            observers: Observers::default(),
            consumers_changed: false,
            suppliers_changed: false,
            totals: Totals::default(),
            told_too_large: 0,
            ended: 0,
            unsaid: 0,
            ends: Ends::default(),
        })
    }

    /// The reference to the channel in the standard's form.
    #[must_use]
    pub fn cos_reference(&self) -> Object {
        self.object(cos::EVENT_CHANNEL.id(), Place::Channel)
    }

    /// In TAO's form.
    #[must_use]
    pub fn rtec_reference(&self) -> Object {
        self.object(rtec::EVENT_CHANNEL.id(), Place::Rtec)
    }

    /// To the facade.
    #[must_use]
    pub fn facade_reference(&self) -> Object {
        self.object(ft_rtec::EVENT_CHANNEL.id(), Place::Facade)
    }

    /// To the object for consumers that want numbers.
    #[must_use]
    pub fn numbered_reference(&self) -> Object {
        self.object(quorba_events::NUMBERED_CHANNEL.id(), Place::Numbered)
    }

    pub(crate) fn object(&self, type_id: &str, place: Place) -> Object {
        let is_proxy = matches!(place, Place::Consumer(_) | Place::Supplier(_));
        let base = self.settings.proxies.as_ref().filter(|_| is_proxy).unwrap_or(&self.base);
        self.home.object(type_id, keys::key(base, place).as_bytes())
    }

    /// What it has done.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Changes a subscription, and what follows from it.
    pub(crate) fn change(&mut self, change: Change) -> Result<(), NoSuchThing> {
        let before = self.registry.apply(&change)?;
        self.follow(&change);
        self.remember(change, before);
        Ok(())
    }

    /// Keeps a change for replicas that miss it, as far as there is room.
    fn remember(&mut self, change: Change, before: Before) {
        let limits = &self.settings.limits;
        if limits.updates_max == 0 {
            return;
        }
        self.log_bytes += change.bytes() + before.bytes();
        self.log.push_back((self.registry.sequence, change, before));
        while self.log.len() > limits.updates_max || self.log_bytes > limits.updates_bytes_max {
            let Some((_, change, before)) = self.log.pop_front() else { return };
            self.log_bytes = self.log_bytes.saturating_sub(change.bytes() + before.bytes());
        }
    }

    fn follow(&mut self, change: &Change) {
        match change {
            Change::NewConsumer { .. } | Change::NewSupplier { .. } => {}
            Change::Observe { .. } => {
                (self.consumers_changed, self.suppliers_changed) = (true, true);
            }
            Change::Unobserve { .. } => {}
            Change::ConnectConsumer { id, .. } => self.connect_again(*id),
            Change::EndConsumer { id } => {
                self.ended += 1;
                self.stop(*id);
            }
            Change::Suspend { id, is_suspended } => {
                if let Some(running) = self.running.get_mut(id) {
                    running.is_suspended = *is_suspended;
                }
                self.refresh(*id);
            }
            Change::ConnectSupplier { id, .. } => {
                self.suppliers_changed = true;
                self.start_pulling(*id);
            }
            Change::EndSupplier { id } => {
                self.suppliers_changed = true;
                self.ended += 1;
                self.stop_pulling(*id);
            }
            Change::Destroy => {
                self.ended += 1;
                let all: alloc::vec::Vec<u64> = self.running.keys().copied().collect();
                all.into_iter().for_each(|id| self.stop(id));
                self.pulling.clear();
                self.silent.clear();
                self.asks.clear();
            }
        }
    }

    /// Changes what waits for a consumer, and counts what waits for all then.
    pub(crate) fn with_queue<R>(
        &mut self,
        id: u64,
        change: impl FnOnce(&mut Queue) -> R,
    ) -> Option<R> {
        let queue = &mut self.running.get_mut(&id)?.queue;
        let before = queue.bytes();
        let result = change(queue);
        self.waiting = self.waiting.saturating_sub(before).saturating_add(queue.bytes());
        Some(result)
    }

    /// Begins to serve a consumer, as its subscription says, with nothing that waits.
    pub(crate) fn start(&mut self, id: u64) {
        self.stop(id);
        let Some(running) = self.subscribed(id) else { return };
        self.index.insert(id, running.filter.types());
        self.running.insert(id, running);
        self.refresh(id);
    }

    /// One that is to serve a consumer; none if nobody is connected.
    fn subscribed(&self, id: u64) -> Option<Running> {
        let consumer = self.registry.consumers.get(&id)?;
        let everything = [Entry { event_type: designator::NULL, source: 0, period: 0, rt_info: 0 }];
        let is_cos = matches!(consumer.form, ConsumerForm::Push | ConsumerForm::Pull);
        let entries = if is_cos { &everything[..] } else { &consumer.wanted.entries };
        let mut filter = Filter::compile(entries, self.settings.limits.filter.of_kept()).ok()?;
        let peer = consumer.peer.as_ref()?;
        filter.arm(self.now);
        Some(Running {
            filter,
            queue: Queue::default(),
            peer: Arc::new(peer.clone()),
            form: consumer.form,
            is_gateway: consumer.wanted.is_gateway,
            is_suspended: consumer.is_suspended,
            is_ending: false,
            connection: consumer.connection,
            called_as: 0,
            ready: None,
            due: None,
        })
    }

    /// Serves a consumer that has connected. If it was connected before, what waits for it stays,
    /// and is given to who has connected now; what its conjunctions held does not.
    fn connect_again(&mut self, id: u64) {
        let new = self.subscribed(id);
        let (Some(new), Some(old)) = (new, self.running.get_mut(&id)) else {
            return self.start(id);
        };
        self.consumers_changed = true;
        self.index.remove(id, old.filter.types());
        self.index.insert(id, new.filter.types());
        if let Some(at) = old.queue.retry_at {
            self.retries.remove(&(at, id));
        }
        let is_other = old.peer != new.peer;
        old.queue.counters.dropped += old.filter.held().count() as u64;
        (old.peer, old.filter, old.is_gateway) = (new.peer, new.filter, new.is_gateway);
        (old.is_ending, old.connection) = (false, new.connection);
        let keeps = self.settings.is_reliable;
        self.with_queue(id, |queue| queue.connect_again(is_other, keeps));
        self.refresh(id);
    }

    /// Ends to serve a consumer; what waits for it is gone.
    pub(crate) fn stop(&mut self, id: u64) {
        self.consumers_changed = true;
        let Some(running) = self.running.remove(&id) else { return };
        self.totals.delivered += running.queue.counters.delivered;
        self.totals.dropped += running.queue.counters.dropped;
        self.waiting = self.waiting.saturating_sub(running.queue.bytes());
        self.index.remove(id, running.filter.types());
        if let Some(key) = running.ready {
            self.ready.remove(&(key, id));
        }
        if let Some(due) = running.due {
            self.timers.remove(&(due, id));
        }
        if let Some(at) = running.queue.retry_at {
            self.retries.remove(&(at, id));
        }
    }

    /// Other settings hold from now on. Where events were not kept before, or are not from now on,
    /// queues begin anew.
    pub(crate) fn change_settings(&mut self, settings: Settings) {
        let begins_anew = settings.is_reliable != self.settings.is_reliable;
        self.settings = settings;
        let all: alloc::vec::Vec<u64> = self.running.keys().copied().collect();
        for id in all {
            if begins_anew {
                self.start(id);
            }
            // There may be room for a timer now.
            self.refresh(id);
        }
    }

    /// A new proxy for a consumer.
    pub(crate) fn obtain_consumer(&mut self, form: ConsumerForm) -> Result<u64, SystemException> {
        self.check_room(&Change::NewConsumer { form })?;
        let id = self.registry.next_proxy;
        self.change(Change::NewConsumer { form }).map_err(gone)?;
        Ok(id)
    }

    /// A new proxy for a supplier.
    pub(crate) fn obtain_supplier(&mut self, form: SupplierForm) -> Result<u64, SystemException> {
        self.check_room(&Change::NewSupplier { form })?;
        let id = self.registry.next_proxy;
        self.change(Change::NewSupplier { form }).map_err(gone)?;
        Ok(id)
    }

    fn check_room(&self, change: &Change) -> Result<(), SystemException> {
        let is_full = self.registry.proxies() >= self.settings.limits.proxies_max;
        if is_full {
            Err(raise_system(ExceptionKind::NoResources))
        } else {
            self.check_bytes(change)
        }
    }

    pub(crate) fn check_reference(&self, object: &Object) -> Result<(), ConnectFault> {
        let is_long = object_bytes(object) > self.settings.limits.reference_bytes_max;
        if is_long { Err(ConnectFault::System(ExceptionKind::ImpLimit)) } else { Ok(()) }
    }

    /// Connects a consumer to its proxy. As in TAO and omniEvents, who is nobody hears so first.
    pub(crate) fn connect_consumer(
        &mut self,
        id: u64,
        peer: Object,
        wanted: Wanted,
    ) -> Result<(), ConnectFault> {
        self.check_reference(&peer)?;
        let missing = ConnectFault::System(ExceptionKind::ObjectNotExist);
        let there = self.registry.consumers.get(&id).ok_or(missing)?;
        if there.form != ConsumerForm::Pull && peer.is_nil() {
            return Err(ConnectFault::System(ExceptionKind::BadParam));
        }
        // The standard's interface has no such thing.
        let may_reconnect = self.settings.may_reconnect && there.form == ConsumerForm::Rtec;
        if there.peer.is_some() && !may_reconnect {
            return Err(ConnectFault::AlreadyConnected);
        }
        let filter = Filter::<()>::compile(&wanted.entries, self.settings.limits.filter);
        self.check_timers(id, filter.map_err(ConnectFault::Filter)?.timers())?;
        let change = Change::ConnectConsumer { id, peer, wanted };
        self.check_bytes(&change).map_err(|raised| ConnectFault::System(raised.kind))?;
        self.change(change).map_err(|_| missing)
    }

    /// Whether there may be so many timers of a consumer beside those of the others.
    fn check_timers(&self, id: u64, timers: usize) -> Result<(), ConnectFault> {
        let old = self.running.get(&id).map_or(0, |one| one.filter.timers());
        if timers <= old {
            return Ok(());
        }
        let all: usize = self.running.values().map(|one| one.filter.timers()).sum();
        let is_beyond = all - old + timers > self.settings.limits.timers_max;
        if is_beyond { Err(ConnectFault::System(ExceptionKind::NoResources)) } else { Ok(()) }
    }

    /// The names of its attempts begin with this one.
    pub(crate) const fn number_attempts_from(&mut self, ticket: u64) {
        (self.first_ticket, self.next_ticket) = (ticket, ticket);
    }

    /// Whether an attempt is its own.
    pub(crate) const fn has_made(&self, ticket: u64) -> bool {
        ticket >= self.first_ticket
    }

    /// Connects a supplier to its proxy.
    pub(crate) fn connect_supplier(
        &mut self,
        id: u64,
        peer: Object,
        offered: Offered,
    ) -> Result<(), ConnectFault> {
        self.check_reference(&peer)?;
        let missing = ConnectFault::System(ExceptionKind::ObjectNotExist);
        let there = self.registry.suppliers.get(&id).ok_or(missing)?;
        if there.form == SupplierForm::Pull && peer.is_nil() {
            return Err(ConnectFault::System(ExceptionKind::BadParam));
        }
        let may_reconnect = self.settings.may_reconnect && there.form == SupplierForm::Rtec;
        if there.peer.is_some() && !may_reconnect {
            return Err(ConnectFault::AlreadyConnected);
        }
        if offered.publications.len() > self.settings.limits.publications_max {
            return Err(ConnectFault::System(ExceptionKind::ImpLimit));
        }
        let change = Change::ConnectSupplier { id, peer, offered };
        self.check_bytes(&change).map_err(|raised| ConnectFault::System(raised.kind))?;
        self.change(change).map_err(|_| missing)
    }

    /// Ends a consumer's proxy, and tells it if it is to be told.
    pub(crate) fn end_consumer(&mut self, id: u64, why: Reason) -> Result<(), NoSuchThing> {
        let there = self.registry.consumers.get(&id).ok_or(NoSuchThing)?;
        let goodbye = Goodbye::of_consumer(there.form);
        let peer = there.peer.clone();
        self.change(Change::EndConsumer { id })?;
        self.has_ended(id, true, peer.as_ref(), why);
        let is_cos = matches!(goodbye, Goodbye::CosPushConsumer | Goodbye::CosPullConsumer);
        if why != Reason::Asked || is_cos || self.settings.calls_back {
            self.say_goodbye(peer, goodbye, why);
        }
        Ok(())
    }

    /// Ends a supplier's proxy, and tells it if it is to be told.
    pub(crate) fn end_supplier(&mut self, id: u64, why: Reason) -> Result<(), NoSuchThing> {
        let there = self.registry.suppliers.get(&id).ok_or(NoSuchThing)?;
        let goodbye = Goodbye::of_supplier(there.form);
        let peer = there.peer.clone();
        self.change(Change::EndSupplier { id })?;
        self.has_ended(id, false, peer.as_ref(), why);
        let is_cos = matches!(goodbye, Goodbye::CosPushSupplier | Goodbye::CosPullSupplier);
        if why != Reason::Asked || is_cos || self.settings.calls_back {
            self.say_goodbye(peer, goodbye, why);
        }
        Ok(())
    }

    /// Ends the channel, and tells everybody.
    pub(crate) fn destroy(&mut self) -> Result<(), NoSuchThing> {
        let consumers = self.registry.consumers.values();
        let consumers = consumers.map(|one| (one.peer.clone(), Goodbye::of_consumer(one.form)));
        let suppliers = self.registry.suppliers.values();
        let suppliers = suppliers.map(|one| (one.peer.clone(), Goodbye::of_supplier(one.form)));
        let all: alloc::vec::Vec<_> = consumers.chain(suppliers).collect();
        self.change(Change::Destroy)?;
        all.into_iter().for_each(|(to, call)| self.say_goodbye(to, call, Reason::Destroyed));
        Ok(())
    }

    fn say_goodbye(&mut self, to: Option<Object>, call: Goodbye, why: Reason) {
        if let Some(to) = to.filter(|to| !to.is_nil())
            && self.leads
            && why != Reason::Gone
        {
            if self.outgoing.len() >= self.settings.limits.proxies_max {
                // Nobody takes what is to be done, and clients come and go all the same.
                self.unsaid += 1;
                return;
            }
            let outgoing = Outgoing::Disconnect { to, call };
            self.outgoing.push_back((self.registry.sequence, outgoing));
        }
    }

    /// What consumers want, for observers: all that is asked for, and not by gateways.
    pub(crate) fn all_wanted(&self) -> Arc<ConsumerQOS> {
        crate::qos::all_wanted(self.running.values(), self.settings.limits.observed_max)
    }

    /// What suppliers have, for observers.
    pub(crate) fn all_offered(&self) -> Arc<SupplierQOS> {
        let suppliers = self.registry.suppliers.values();
        let Settings { cos_type, cos_source, .. } = self.settings;
        let count_max = self.settings.limits.observed_max;
        crate::qos::all_offered(suppliers, (cos_type, cos_source), count_max)
    }
}
