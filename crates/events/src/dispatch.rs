//! What goes out: pushes to consumers, pulls of suppliers, and all else that a channel wants done.
//!
//! Who drives a channel tells it the time, takes what is to be done, does it, and says how it
//! ended. Pushes come by a call of their own, so that threads of their own can make them.
//!
//! Invariants: one call is under way to a consumer at a time, so one that is slow keeps nobody else
//! waiting; no supplier is pulled while nobody has room for what it gives; where the channel does
//! not lead nothing goes out, but what was pulled for a reliable channel: no supplier gives that
//! again, so it is ordered whoever leads by then.

use quorba_corba::{Any, Object};
use quorba_idl::rtec_event_comm::Event;

use crate::channel::{Channel, Running};
use crate::event;
use crate::filter::Header;
use crate::observers::Observers;
use crate::outgoing::{Delivery, Outcome, Outgoing, Proposal, Reason};
use crate::pulled::Puller;
use crate::queue::{Counters, Queue};
use crate::registry::{ConsumerForm, SupplierForm};
use crate::settings::Settings;
use quorba_base::canary;
use quorba_base::policy::Full;

/// A supplier that is pulled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pulling {
    /// It is asked then.
    At(u64),
    /// It is being asked; the name of the attempt.
    Asked(u64),
    /// It gave an event that is to be ordered. It is not asked again before the group has
    /// acknowledged it, whoever leads.
    Given,
    /// Its end is to be ordered. It is not asked again before.
    Ending,
}

/// A consumer, for who wants to see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsumerStatus {
    /// The number of its proxy.
    pub id: u64,
    /// How it is served.
    pub form: ConsumerForm,
    /// Who it is; none if nobody is connected.
    pub peer: Option<Object>,
    /// Whether it gets nothing for now.
    pub is_suspended: bool,
    /// Sets that wait for it.
    pub waiting: usize,
    /// Octets that wait for it.
    pub waiting_bytes: usize,
    /// What has become of its events.
    pub counters: Counters,
}

/// Timers that fire at one time, at most.
pub(crate) const FIRED_MAX: usize = 64;
/// Times at which is looked for timers of a reliable channel are so far from each other, in 100 ns.
const LOOKS_APART: u64 = 100_000;

impl Channel {
    /// The time is `now`, in 100 ns of whatever clock; it does not go back. Timers fire.
    pub fn tick(&mut self, now: u64) {
        self.tick_within(now, &mut { FIRED_MAX });
    }

    /// The same, where no more timers fire than `left`. The others wait for the next time: who
    /// brings an event meanwhile does not wait for all of them.
    pub(crate) fn tick_within(&mut self, now: u64, left: &mut usize) {
        self.now = self.now.max(now);
        while let Some((at, id)) = self.retries.first().copied()
            && at <= self.now
        {
            self.retries.remove(&(at, id));
            if let Some(one) = self.running.get_mut(&id) {
                one.queue.retry_at = None;
            }
            self.refresh(id);
        }
        if self.leads || self.settings.is_reliable {
            self.fire_timers(left);
        }
    }

    /// When to call [`Channel::tick`], if nothing else happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let first = |set: &alloc::collections::BTreeSet<(u64, u64)>| set.first().map(|(at, _)| *at);
        let timers = first(&self.timers).filter(|_| self.leads || self.settings.is_reliable);
        // Each look at a reliable channel is ordered; one is for all timers that are due by then.
        let apart = if self.settings.is_reliable { LOOKS_APART } else { 1 };
        let timers = timers.map(|at| at.div_ceil(apart).saturating_mul(apart));
        let retries = first(&self.retries).filter(|_| self.leads);
        let asks = first(&self.asks).filter(|_| self.leads).map(|at| {
            // Suppliers wait for room that no time brings; it is looked for now and then.
            let is_held = at <= self.now && self.is_pressed();
            if is_held { self.now.saturating_add(self.settings.pull_every) } else { at }
        });
        let updates = self.next_update_at().filter(|_| self.leads);
        [timers, retries, asks, updates].into_iter().flatten().filter(|at| *at < u64::MAX).min()
    }

    /// Whether it dispatches.
    #[must_use]
    pub const fn leads(&self) -> bool {
        self.leads
    }

    /// It dispatches from now on. What others have had under way begins anew.
    pub fn lead(&mut self) {
        if core::mem::replace(&mut self.leads, true) {
            return;
        }
        self.retries.clear();
        self.silent.clear();
        let all: alloc::vec::Vec<u64> = self.running.keys().copied().collect();
        for id in all {
            if let Some(one) = self.running.get_mut(&id) {
                one.queue.start_over();
                one.is_ending = false;
                if !self.settings.is_reliable {
                    one.filter.arm(self.now);
                }
            }
            self.refresh(id);
        }
        (self.consumers_changed, self.suppliers_changed) = (true, true);
        // What this replica has under way with a supplier goes on: its answer is not lost.
        let is_free = |it: &Pulling| matches!(it, Pulling::At(_) | Pulling::Ending);
        let free = self.pulling.iter().filter(|(_, it)| is_free(it));
        let suppliers: alloc::vec::Vec<u64> = free.map(|(id, _)| *id).collect();
        suppliers.into_iter().for_each(|id| self.ask_at(id, self.now));
    }

    /// It dispatches no more; what waits is forgotten, unless the channel is reliable.
    pub fn follow_another(&mut self) {
        self.leads = false;
        self.observers = Observers::default();
        self.outgoing.retain(|(_, it)| it.is_pulled() && !canary!(ForgetsWhatWasPulled));
        if !self.settings.is_reliable {
            let all: alloc::vec::Vec<u64> = self.running.keys().copied().collect();
            all.into_iter().for_each(|id| self.start(id));
        }
    }

    /// Whether there is a push that can be made now.
    #[must_use]
    pub fn has_push(&self) -> bool {
        self.leads && !self.ready.is_empty()
    }

    /// The most urgent push that can be made now.
    pub fn poll_push(&mut self) -> Option<Delivery> {
        if !self.leads {
            return None;
        }
        let (_, consumer) = self.ready.first().copied()?;
        let one = self.running.get_mut(&consumer)?;
        let to = one.peer.clone();
        let ticket = self.next_ticket;
        let events_max = if one.form == ConsumerForm::Push { 1 } else { self.settings.batch_max };
        let (number, events) = one.queue.take(ticket, events_max)?;
        self.next_ticket += 1;
        one.called_as = one.connection;
        let hops_taken = i32::from(one.is_gateway && self.settings.takes_hop);
        let (form, now, waits) = (one.form, self.now, self.settings.is_reliable);
        self.refresh(consumer);
        Some(Delivery { consumer, ticket, to, number, form, events, now, hops_taken, waits })
    }

    /// How a push ended.
    pub fn pushed(&mut self, consumer: u64, ticket: u64, outcome: Outcome) {
        let Some(one) = self.running.get_mut(&consumer) else { return };
        // Who has connected again since is there, and may only have been called too early.
        let is_before = outcome == Outcome::Gone && one.called_as != one.connection;
        let outcome = if is_before { Outcome::Failed } else { outcome };
        match outcome {
            Outcome::Failed if canary!(TakesFailedForTaken) => {
                self.pushed(consumer, ticket, Outcome::Taken);
            }
            Outcome::Taken => {
                let keeps = self.settings.is_reliable;
                let taken = self.with_queue(consumer, |queue| queue.taken(ticket, keeps));
                if let Some((number, came)) = taken.flatten()
                    && keeps
                {
                    self.propose(Proposal::Acknowledge { consumer, number, came });
                }
            }
            Outcome::Failed | Outcome::Unanswered | Outcome::Raised { .. } => {
                self.push_failed(consumer, ticket, outcome);
            }
            Outcome::Gone => {
                if one.queue.failed(ticket) {
                    if self.settings.is_reliable {
                        // It gets events until all replicas know, so that they are alike.
                        one.queue.retry_at = Some(u64::MAX);
                        self.retries.insert((u64::MAX, consumer));
                    } else {
                        one.is_ending = true;
                    }
                    let (connection, why) = (one.connection, Reason::Gone);
                    self.propose(Proposal::EndConsumer { consumer, connection, why });
                }
            }
        }
        self.refresh(consumer);
    }

    /// A push has failed. Where events are not kept it is made again only if the consumer surely
    /// has not taken it, so that no event comes twice.
    fn push_failed(&mut self, consumer: u64, ticket: u64, outcome: Outcome) {
        let is_reliable = self.settings.is_reliable;
        if !is_reliable && !outcome.is_undone() {
            let is_it = self.with_queue(consumer, |queue| queue.left_off(ticket));
            let Some(one) = self.running.get_mut(&consumer).filter(|_| is_it == Some(true)) else {
                return;
            };
            if outcome.why() == Reason::Raises {
                // It is there, and the next event may be another matter.
                one.queue.failing_since = None;
                return;
            }
        } else if !self.running.get_mut(&consumer).is_some_and(|one| one.queue.failed(ticket)) {
            return;
        }
        let Some(one) = self.running.get_mut(&consumer) else { return };
        let at = self.now.saturating_add(self.settings.retry_after);
        one.queue.retry_at = Some(at);
        self.retries.insert((at, consumer));
        let since = *one.queue.failing_since.get_or_insert(self.now);
        let after = self.settings.give_up_after;
        if after > 0 && self.now.saturating_sub(since) >= after {
            // If nobody hears it, it is said again as much later.
            one.queue.failing_since = Some(self.now);
            let (connection, why) = (one.connection, outcome.why());
            self.propose(Proposal::EndConsumer { consumer, connection, why });
        }
    }

    /// Whether [`Channel::poll`] may have something: `false` is certain.
    #[must_use]
    pub fn has_outgoing(&self) -> bool {
        let is_changed = self.consumers_changed || self.suppliers_changed;
        // Who keeps suppliers from being pulled is looked for where nobody may lose anything.
        let may_ask = || self.settings.full == Full::BackPressure || !self.is_pressed();
        let is_asking = self.asks.first().is_some_and(|(at, _)| *at <= self.now) && may_ask();
        let is_own = is_changed || is_asking || self.has_update();
        !self.outgoing.is_empty() || self.leads && is_own
    }

    /// What is to be done beside pushes.
    pub fn poll(&mut self) -> Option<Outgoing> {
        if !self.leads {
            // Nothing else is left.
            return self.outgoing.pop_front().map(|(_, outgoing)| outgoing);
        }
        if let Some((_, outgoing)) = self.outgoing.pop_front() {
            return Some(outgoing);
        }
        self.next_update().or_else(|| self.next_pull())
    }

    /// Carries out what was proposed, at its place in the order; at all replicas.
    pub fn carry_out(&mut self, proposal: Proposal) {
        match proposal {
            // Of who has connected again since nothing was said.
            Proposal::EndConsumer { consumer, connection, why } => {
                let there = self.registry.consumers.get(&consumer);
                if there.is_some_and(|one| one.connection == connection) {
                    let _ = self.end_consumer(consumer, why);
                }
            }
            Proposal::EndSupplier { supplier, connection, why } => {
                let there = self.registry.suppliers.get(&supplier);
                if there.is_some_and(|one| one.connection == connection) {
                    let _ = self.end_supplier(supplier, why);
                }
            }
            Proposal::EndObserver { observer } => self.end_observer(observer),
            Proposal::Acknowledge { consumer, number, came } => {
                self.taken(consumer, number, came);
            }
            Proposal::Pulled { supplier, data } => {
                // It may have disconnected since: what it gave before is an event all the same, but
                // not of a channel of the same name that was made later.
                if (self.registry.first_proxy..self.registry.next_proxy).contains(&supplier) {
                    let event = self.event_of(data);
                    let _ = self.push_pulled(event);
                }
                // A plain channel's is here only, and waits for nobody.
                if !self.settings.is_reliable || canary!(PullsBeforeHeld) {
                    self.settled(supplier);
                }
            }
        }
    }

    /// The group has answered that it has what was pulled of a supplier, so that no death of a
    /// replica loses it: the next one may be pulled. That it was carried out here is not enough:
    /// nobody else may have it yet.
    pub fn settled(&mut self, supplier: u64) {
        if self.pulling.get(&supplier) == Some(&Pulling::Given) {
            self.ask_at(supplier, self.now);
        }
    }

    /// A consumer has everything up to a number. Where nothing is kept for that this says nothing:
    /// numbers there are those of one leader, and may be of events that it was not given yet.
    pub fn acknowledge(&mut self, consumer: u64, number: u64) {
        if self.settings.is_reliable {
            self.with_queue(consumer, |queue| queue.acknowledge(number));
            self.refresh(consumer);
        }
    }

    /// The same of what the one that leads has seen a consumer take, which came then.
    pub(crate) fn taken(&mut self, consumer: u64, number: u64, came: u64) {
        if self.settings.is_reliable {
            self.with_queue(consumer, |queue| queue.acknowledge_taken(number, came));
            self.refresh(consumer);
        }
    }

    /// An event of the standard's interface as one of the channel.
    pub(crate) fn event_of(&self, data: Any) -> Event {
        let (event_type, source) = (self.settings.cos_type, self.settings.cos_source);
        let mut event = event::plain(Header { event_type, source }, 1, self.now);
        event.data.any_value = data;
        event
    }

    /// Begins to pull a supplier, if it is one that is pulled.
    pub(crate) fn start_pulling(&mut self, id: u64) {
        let form = self.registry.suppliers.get(&id).map(|one| one.form);
        if form == Some(SupplierForm::Pull) {
            self.stop_pulling(id);
            self.pulling.insert(id, Pulling::At(self.now));
            self.asks.insert((self.now, id));
        }
    }

    pub(crate) fn stop_pulling(&mut self, id: u64) {
        self.silent.remove(&id);
        if let Some(Pulling::At(at)) = self.pulling.remove(&id) {
            self.asks.remove(&(at, id));
        }
    }

    /// It is not asked until something is ordered.
    fn hold(&mut self, id: u64, until: Pulling) {
        if let Some(Pulling::At(at)) = self.pulling.insert(id, until) {
            self.asks.remove(&(at, id));
        }
    }

    fn ask_at(&mut self, id: u64, at: u64) {
        let Some(pulling) = self.pulling.get_mut(&id) else { return };
        if let Pulling::At(old) = core::mem::replace(pulling, Pulling::At(at)) {
            self.asks.remove(&(old, id));
        }
        self.asks.insert((at, id));
    }

    /// Whether suppliers are not pulled now: somebody has no room where nobody may lose anything;
    /// elsewhere nobody has, so that events would be pulled only to be dropped. Who does not want
    /// them does not count; if nobody wants them they stay where they are.
    fn is_pressed(&self) -> bool {
        if self.settings.full != Full::BackPressure {
            return !self.is_wanted(|one| self.has_room_for_pulled(&one.queue));
        }
        let is_full = |one: &Running| !one.queue.has_room(1, 1, self.settings.queue);
        self.is_crowded() || self.is_wanted(is_full) || !self.is_wanted(|_| true)
    }

    /// Whether a consumer of which this is so takes what suppliers give that are pulled.
    fn is_wanted(&self, is_so: impl Fn(&Running) -> bool) -> bool {
        let Settings { cos_type: event_type, cos_source: source, .. } = self.settings;
        let header = Header { event_type, source };
        let wants = |one: &Running| one.takes() && is_so(one) && one.filter.accepts(header, None);
        match self.index.named(event_type, self.running.len()) {
            None => self.running.values().any(wants),
            Some(mut named) => named.any(|id| self.running.get(&id).is_some_and(wants)),
        }
    }

    /// Whether a queue can be given an event as large as the last one that was pulled, and nothing
    /// of it is dropped.
    fn has_room_for_pulled(&self, queue: &Queue) -> bool {
        let (bytes, total) = (self.pulled_bytes.max(1), self.settings.total_bytes);
        let part = total / self.running.len().max(1);
        // As `trim` has it.
        let is_left_alone = self.waiting.saturating_add(bytes) <= total
            || queue.waiting_bytes().saturating_add(bytes) <= part;
        queue.has_room(1, bytes, self.settings.queue) && (is_left_alone || queue.len() == 0)
    }

    /// Suppliers are not pulled because of those that have no room: of these, who pulls may have
    /// ended without a word.
    fn note_pressing(&mut self) {
        if self.settings.full != Full::BackPressure {
            return;
        }
        let is_full = |one: &Running| !one.queue.has_room(1, 1, self.settings.queue);
        let full = self.running.iter().filter(|(_, one)| one.takes() && is_full(one));
        let mut full: alloc::vec::Vec<u64> = full.map(|(id, _)| *id).collect();
        if self.is_crowded() {
            let most = self.running.iter().max_by_key(|(_, one)| one.queue.waiting_bytes());
            full.extend(most.map(|(id, _)| *id));
        }
        full.into_iter().for_each(|id| self.note_holding(id));
    }

    fn next_pull(&mut self) -> Option<Outgoing> {
        let (at, supplier) = self.asks.first().copied()?;
        if at > self.now {
            return None;
        }
        if self.is_pressed() {
            self.note_pressing();
            return None;
        }
        self.asks.remove(&(at, supplier));
        let ticket = self.next_ticket;
        *self.pulling.get_mut(&supplier)? = Pulling::Asked(ticket);
        self.next_ticket += 1;
        let to = self.registry.suppliers.get(&supplier)?.peer.clone()?;
        Some(Outgoing::Pull { supplier, ticket, to })
    }

    /// What a supplier gave: an event, nothing, or no answer.
    pub fn pulled(&mut self, supplier: u64, ticket: u64, answer: Result<Option<Any>, Outcome>) {
        if self.pulling.get(&supplier) != Some(&Pulling::Asked(ticket)) {
            // The supplier was begun anew meanwhile, or has ended. Its event is one all the same.
            if let Ok(Some(data)) = answer
                && (self.has_made(ticket) || self.registry.suppliers.contains_key(&supplier))
            {
                self.given(supplier, data);
            }
            return;
        }
        if !matches!(answer, Err(outcome) if outcome != Outcome::Taken) {
            self.silent.remove(&supplier);
        }
        let wait = match answer {
            Ok(Some(data)) => {
                self.hold(supplier, Pulling::Given);
                return self.given(supplier, data);
            }
            Ok(None) | Err(Outcome::Taken) => self.settings.pull_every,
            Err(outcome) => {
                let since = *self.silent.entry(supplier).or_insert(self.now);
                let after = self.settings.give_up_after;
                let is_late = after > 0 && self.now.saturating_sub(since) >= after;
                if is_late || outcome == Outcome::Gone {
                    return self.end_pulling(supplier, outcome.why());
                }
                self.settings.retry_after
            }
        };
        self.ask_at(supplier, self.now.saturating_add(wait));
    }

    /// A supplier is not asked any more, and its end is to be ordered; if it has not ended yet.
    fn end_pulling(&mut self, supplier: u64, why: Reason) {
        let Some(there) = self.registry.suppliers.get(&supplier) else { return };
        let connection = there.connection;
        self.hold(supplier, Pulling::Ending);
        self.propose(Proposal::EndSupplier { supplier, connection, why });
    }

    /// A supplier gave an event.
    fn given(&mut self, supplier: u64, data: Any) {
        let bytes = event::size_of_any(&data);
        if bytes > self.settings.limits.event_bytes_max {
            // Who pushes is told by an exception; who is pulled hears of it by its end only.
            self.totals.refused += 1;
            return self.end_pulling(supplier, Reason::TooLarge);
        }
        self.pulled_bytes = bytes;
        let proposal = Proposal::Pulled { supplier, data };
        if self.settings.is_reliable {
            self.outgoing.push_back((0, Outgoing::Propose(proposal)));
        } else {
            self.carry_out(proposal);
        }
    }

    /// What was proposed cannot be ordered. It is not so, and who it was of is served on; what is
    /// decided anew may be ordered then.
    pub fn left_out(&mut self, proposal: &Proposal) {
        self.totals.left_out += 1;
        let again = self.now.saturating_add(self.settings.retry_after);
        match proposal {
            Proposal::EndConsumer { consumer, connection, .. } => {
                let Some(one) = self.running.get_mut(consumer) else { return };
                if one.connection != *connection {
                    return;
                }
                one.is_ending = false;
                if one.queue.retry_at.is_none_or(|at| at == u64::MAX) {
                    if let Some(old) = one.queue.retry_at.replace(again) {
                        self.retries.remove(&(old, *consumer));
                    }
                    self.retries.insert((again, *consumer));
                }
                self.refresh(*consumer);
            }
            Proposal::EndObserver { observer } => self.observe_on(*observer),
            Proposal::EndSupplier { supplier, .. } => self.ask_at(*supplier, again),
            Proposal::Pulled { supplier, .. } => {
                self.totals.refused += 1;
                self.ask_at(*supplier, again);
            }
            // The next one says it, too.
            Proposal::Acknowledge { .. } => {}
        }
    }

    /// Takes out an event for a consumer that pulls.
    pub(crate) fn pull(&mut self, id: u64) -> Option<Any> {
        let now = self.now;
        let is_told = self.settings.is_reliable && !canary!(GivesNothingAgain);
        let caller = self.caller.filter(|_| is_told);
        let to = caller.map(|caller| Puller { caller, now });
        let item = self.with_queue(id, |queue| queue.pull(to))??;
        item.set.events().first().map(|held| event::as_any(&held.event))
    }

    /// The queues of all consumers, by the numbers of their proxies.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (u64, &Queue)> {
        self.running.iter().map(|(id, one)| (*id, &one.queue))
    }

    /// All consumers.
    pub fn consumers(&self) -> impl Iterator<Item = ConsumerStatus> {
        self.registry.consumers.iter().map(|(id, consumer)| {
            let queue = self.running.get(id).map(|one| &one.queue);
            ConsumerStatus {
                id: *id,
                form: consumer.form,
                peer: consumer.peer.clone(),
                is_suspended: consumer.is_suspended,
                waiting: queue.map_or(0, Queue::len),
                waiting_bytes: queue.map_or(0, Queue::bytes),
                counters: queue.map_or_else(Counters::default, |queue| queue.counters),
            }
        })
    }
}
