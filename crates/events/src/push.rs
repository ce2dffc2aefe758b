//! Events that come: from suppliers, and from timers.
//!
//! Invariants: an event is offered to every filter once, in the order of proxies; where the channel
//! does not lead nothing is kept, unless it is reliable; in a reliable channel no event is dropped:
//! its supplier is refused, or the consumer is disconnected.

use alloc::collections::{BTreeMap, BTreeSet, BinaryHeap};
use alloc::vec::Vec;

use quorba_corba::giop::{Completion, ExceptionKind, MinorCode, QUORBA_VMCID, SystemException};
use quorba_corba::raise_system;
use quorba_idl::rtec_event_comm::Event;

use crate::channel::{Channel, Running};
use crate::event::{self, Set, Shared};
use crate::filter::{Header, Passed};
use crate::index::Index;
use crate::outgoing::{Outgoing, Proposal, Reason, TooLarge};
use crate::registry::ConsumerForm;
use crate::schedule::Key;
use crate::settings::Settings;
use crate::shown;
use quorba_base::canary;
use quorba_base::policy::Full;

/// Minor code of TRANSIENT: a consumer has no room; the push may be repeated.
pub const NO_ROOM: u32 = QUORBA_VMCID | MinorCode::ConsumerFull.number();
/// Minor code of TRANSIENT: there is no event to pull yet; the call may be repeated.
pub const NOTHING_YET: u32 = QUORBA_VMCID | MinorCode::NothingYet.number();

/// How long nothing more is said of pushes that are too large: a minute, in 100 ns.
const TELL_AGAIN: u64 = 600_000_000;

/// Why events are not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There are too many at once, or one is too large.
    TooLarge,
    /// A consumer has no room: later.
    Full,
}

impl From<Refused> for SystemException {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooLarge => raise_system(ExceptionKind::ImpLimit),
            Refused::Full => {
                let (kind, completed) = (ExceptionKind::Transient, Completion::No);
                Self { kind, minor: NO_ROOM, completed }
            }
        }
    }
}

/// What a set of events that passes a filter goes through.
struct Gate<'c> {
    settings: &'c Settings,
    ready: &'c mut BTreeSet<(Key, u64)>,
    timers: &'c mut BTreeSet<(u64, u64)>,
    now: u64,
    next_arrival: &'c mut u64,
    queued: &'c mut u64,
    waiting: &'c mut usize,
    /// Consumers to disconnect, and why.
    slow: Vec<(u64, Reason)>,
}

impl Gate<'_> {
    /// Offers an event to a consumer.
    fn offer(&mut self, id: u64, one: &mut Running, timer: Option<usize>, event: &Shared) {
        let header = event::header(&event.event);
        match one.filter.offer(header, timer, event, self.now) {
            Some(Passed::One { rt_info }) => {
                self.queue(id, one, rt_info, Set::One(event.clone()));
            }
            Some(Passed::Many { rt_info, items }) => {
                self.queue(id, one, rt_info, Set::Many(items));
            }
            None if canary!(IgnoresFilters) => self.queue(id, one, 0, Set::One(event.clone())),
            None => self.hold(id, one),
        }
    }

    /// Its conjunctions may hold more now than they may. No supplier is told to come again: only
    /// events that are not there yet could make room.
    fn hold(&mut self, id: u64, one: &mut Running) {
        let held: usize = one.filter.held().map(|held| held.bytes).sum();
        if held <= self.settings.limits.held_bytes_max {
            return;
        }
        if self.settings.drops() {
            one.queue.counters.dropped += one.filter.held().count() as u64;
            one.filter.clear(self.now);
        } else {
            one.is_ending = true;
            self.slow.push((id, Reason::HoldsTooMuch));
        }
    }

    fn queue(&mut self, id: u64, one: &mut Running, rt_info: i32, set: Set) {
        let bytes = set.bytes();
        let is_reliable = self.settings.is_reliable;
        // Else room was made sure of before.
        let may_lack = !is_reliable && self.settings.full != Full::BackPressure;
        while may_lack && !one.queue.has_room(1, bytes, self.settings.queue) {
            let dropped = match self.settings.full {
                Full::DropOldest => {
                    let before = one.queue.bytes();
                    let dropped = one.queue.drop_oldest();
                    *self.waiting = self.waiting.saturating_sub(before - one.queue.bytes());
                    dropped
                }
                Full::DropNewest => false,
                _ => {
                    one.is_ending = true;
                    self.slow.push((id, Reason::TooSlow));
                    false
                }
            };
            if !dropped {
                one.queue.counters.dropped += set.events().len() as u64;
                return refresh(id, one, self.settings, self.ready, self.timers);
            }
        }
        let key = self.settings.schedule.key(rt_info, self.now, *self.next_arrival);
        *self.next_arrival += 1;
        *self.queued += 1;
        *self.waiting = self.waiting.saturating_add(bytes);
        one.queue.put(key, set, is_reliable);
        refresh(id, one, self.settings, self.ready, self.timers);
    }
}

/// Puts a consumer where it belongs among those that can be served, and those with timers.
fn refresh(
    id: u64,
    one: &mut Running,
    settings: &Settings,
    ready: &mut BTreeSet<(Key, u64)>,
    timers: &mut BTreeSet<(u64, u64)>,
) {
    let is_served = one.takes() && one.form != ConsumerForm::Pull;
    let key = if is_served { one.queue.ready() } else { None };
    if key != one.ready {
        if let Some(old) = core::mem::replace(&mut one.ready, key) {
            ready.remove(&(old, id));
        }
        ready.extend(key.map(|key| (key, id)));
    }
    // Where nothing is dropped a timer waits for room, too.
    let fires = one.takes() && (settings.drops() || has_room_for_timer(one, settings));
    let due = if fires { one.filter.due() } else { None };
    if due != one.due {
        if let Some(old) = core::mem::replace(&mut one.due, due) {
            timers.remove(&(old, id));
        }
        timers.extend(due.map(|due| (due, id)));
    }
}

/// Octets that the event of a timer takes at most.
const TIMER_BYTES: usize = 128;

fn has_room_for_timer(one: &Running, settings: &Settings) -> bool {
    one.queue.has_room(1, TIMER_BYTES, settings.queue)
}

/// What can be done with events for which there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comes {
    /// Their supplier can be told to come again.
    Again,
    /// It cannot: who has no room is disconnected.
    Once,
    /// There was room when they were asked for.
    Behind,
}

impl Channel {
    pub(crate) fn refresh(&mut self, id: u64) {
        if let Some(one) = self.running.get_mut(&id) {
            refresh(id, one, &self.settings, &mut self.ready, &mut self.timers);
        }
    }

    /// Takes events, all or none of them.
    ///
    /// # Errors
    /// Why none is taken.
    pub fn push(&mut self, events: Vec<Event>) -> Result<(), Refused> {
        self.intake(events, Comes::Again, None)
    }

    /// The same of a supplier that cannot be told to come again: who has no room is disconnected.
    ///
    /// # Errors
    /// If they are too large.
    pub fn push_oneway(&mut self, events: Vec<Event>) -> Result<(), Refused> {
        self.intake(events, Comes::Once, None)
    }

    /// The same of a supplier that is known.
    pub(crate) fn push_of(
        &mut self,
        supplier: u64,
        events: Vec<Event>,
        is_oneway: bool,
    ) -> Result<(), Refused> {
        self.intake(events, if is_oneway { Comes::Once } else { Comes::Again }, Some(supplier))
    }

    /// The same of a supplier that was pulled. Under back-pressure it was pulled when all consumers
    /// had room; if others have taken that since, it is put behind them all the same: one event of
    /// each such supplier at most, for the next one is not pulled before there is room.
    pub(crate) fn push_pulled(&mut self, event: Event) -> Result<(), Refused> {
        let may_wait = self.settings.full == Full::BackPressure;
        self.intake(alloc::vec![event], if may_wait { Comes::Behind } else { Comes::Once }, None)
    }

    fn intake(
        &mut self,
        events: Vec<Event>,
        comes: Comes,
        supplier: Option<u64>,
    ) -> Result<(), Refused> {
        let limits = &self.settings.limits;
        let is_large = events.iter().any(|one| event::size(one) > limits.event_bytes_max);
        if is_large || events.len() > limits.events_max {
            self.totals.refused += 1;
            self.tell_too_large(supplier, &events);
            return Err(Refused::TooLarge);
        }
        if !self.leads && !self.settings.is_reliable {
            return Ok(());
        }
        let (may_refuse, has_room) = (comes == Comes::Again, comes == Comes::Behind);
        if !has_room {
            self.make_room(may_refuse)?;
        }
        let now = self.now;
        let received = |mut event: Event| {
            event.header.ec_recv_time = now;
            event::shared(event)
        };
        let events: Vec<Shared> = events.into_iter().map(received).collect();
        let must_fit = self.settings.is_reliable || self.settings.full == Full::BackPressure;
        if must_fit && !has_room {
            let slow = self.without_room(&events);
            if !slow.is_empty() && may_refuse && self.settings.full == Full::BackPressure {
                slow.into_iter().for_each(|id| self.note_holding(id));
                self.totals.refused += 1;
                return Err(Refused::Full);
            }
            self.give_up(slow.into_iter().map(|id| (id, Reason::TooSlow)).collect());
        }
        self.totals.pushed += events.len() as u64;
        let slow = self.distribute(&events);
        self.give_up(slow);
        self.trim();
        Ok(())
    }

    /// Says that a push was too large, to whoever reads the log: who pushes by a oneway hears
    /// nothing. Not more often than once a minute, with the number of all.
    fn tell_too_large(&mut self, supplier: Option<u64>, events: &[Event]) {
        let is_due = self.now >= self.told_too_large;
        let Some(supplier) = supplier.filter(|_| self.leads && is_due) else { return };
        self.told_too_large = self.now.saturating_add(TELL_AGAIN);
        let peer = self.registry.suppliers.get(&supplier).and_then(|one| one.peer.as_ref());
        let told = TooLarge {
            supplier,
            place: shown::place(peer, supplier),
            events: events.len(),
            bytes: events.iter().map(event::size).max().unwrap_or(0),
            limits: (self.settings.limits.events_max, self.settings.limits.event_bytes_max),
            refused: self.totals.refused,
        };
        self.outgoing.push_back((0, Outgoing::TooLarge(told)));
    }

    /// Whether more waits for all consumers together than may.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.waiting > self.settings.total_bytes
    }

    /// Octets that wait for all consumers together.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// Makes room if more waits for all consumers together than may, at the cost of those for which
    /// most waits. Where events are dropped, [`Channel::trim`] does it when they have come.
    fn make_room(&mut self, may_refuse: bool) -> Result<(), Refused> {
        while !self.settings.drops() && self.is_crowded() {
            // What is under way to those that are ending goes with them: nobody else pays for it.
            let staying = || self.running.iter().filter(|(_, one)| !one.is_ending);
            let waiting: usize = staying().map(|(_, one)| one.queue.bytes()).sum();
            let most = staying().max_by_key(|(_, one)| one.queue.waiting_bytes());
            let Some(id) = most.map(|(id, _)| *id).filter(|_| waiting > self.settings.total_bytes)
            else {
                return Ok(());
            };
            if self.settings.full == Full::BackPressure && may_refuse {
                self.note_holding(id);
                self.totals.refused += 1;
                return Err(Refused::Full);
            }
            if !self.settings.is_reliable {
                self.with_queue(id, |queue| while queue.drop_oldest() {});
            }
            self.give_up(alloc::vec![(id, Reason::TooSlow)]);
        }
        Ok(())
    }

    /// Drops what waits for those for which most waits, until no more waits for all together than
    /// may. Nobody else loses anything: who has no more than its part of the bound, or one set, is
    /// left alone. What is under way is not dropped, so no more than that may stay beyond.
    fn trim(&mut self) {
        if !self.settings.drops() || !self.is_crowded() {
            return;
        }
        let part = self.settings.total_bytes / self.running.len().max(1);
        let all = self.running.iter().map(|(id, one)| (one.queue.waiting_bytes(), *id));
        let mut fullest: BinaryHeap<(usize, u64)> =
            all.filter(|(bytes, _)| *bytes > part).collect();
        while self.is_crowded()
            && let Some((_, id)) = fullest.pop()
        {
            let is_newest = self.settings.full == Full::DropNewest;
            let left = self.with_queue(id, |queue| {
                let may_drop = queue.len() > 1;
                let is_dropped =
                    may_drop && if is_newest { queue.drop_newest() } else { queue.drop_oldest() };
                is_dropped.then(|| queue.waiting_bytes())
            });
            match left.flatten() {
                Some(bytes) if bytes > part => fullest.push((bytes, id)),
                _ => {}
            }
            self.refresh(id);
        }
    }

    /// The consumers that have no room for what they accept of these events.
    fn without_room(&self, events: &[Shared]) -> Vec<u64> {
        let all_bytes: usize = events.iter().map(|event| event.bytes).sum();
        let limits = self.settings.queue;
        let lacks = |one: &Running| {
            if !one.takes() || one.queue.has_room(events.len(), all_bytes, limits) {
                return false;
            }
            let accepted = events.iter().filter(|held| {
                let header = event::header(&held.event);
                !is_kept_from(one, held) && one.filter.accepts(header, None)
            });
            let (sets, bytes) =
                accepted.fold((0, 0), |(sets, bytes), held| (sets + 1, bytes + held.bytes));
            sets > 0 && !one.queue.has_room(sets, bytes, limits)
        };
        self.running.iter().filter(|(_, one)| lacks(one)).map(|(id, _)| *id).collect()
    }

    fn gate(&mut self) -> (Gate<'_>, &mut BTreeMap<u64, Running>, &Index) {
        let gate = Gate {
            settings: &self.settings,
            ready: &mut self.ready,
            timers: &mut self.timers,
            now: self.now,
            next_arrival: &mut self.next_arrival,
            queued: &mut self.totals.queued,
            waiting: &mut self.waiting,
            slow: Vec::new(),
        };
        (gate, &mut self.running, &self.index)
    }

    /// Offers events to all; who is to be disconnected, and why.
    fn distribute(&mut self, events: &[Shared]) -> Vec<(u64, Reason)> {
        let (mut gate, running, index) = self.gate();
        let mut offer = |id: u64, one: &mut Running, event: &Shared| {
            if one.takes() && !is_kept_from(one, event) {
                gate.offer(id, one, None, event);
            }
        };
        for event in events {
            let named = index.named(event.event.header.r#type, running.len());
            match named.filter(|_| !canary!(IgnoresFilters)) {
                None => running.iter_mut().for_each(|(id, one)| offer(*id, one, event)),
                Some(named) => {
                    for id in named {
                        if let Some(one) = running.get_mut(&id) {
                            offer(id, one, event);
                        }
                    }
                }
            }
        }
        gate.slow
    }

    /// Disconnects consumers: at once where all replicas know it at the same
    /// place, else when that is ordered.
    fn give_up(&mut self, slow: Vec<(u64, Reason)>) {
        for (consumer, why) in slow {
            if self.settings.is_reliable {
                let _ = self.end_consumer(consumer, why);
                continue;
            }
            let Some(one) = self.running.get_mut(&consumer) else { continue };
            one.is_ending = true;
            let connection = one.connection;
            self.refresh(consumer);
            self.propose(Proposal::EndConsumer { consumer, connection, why });
        }
    }

    /// Suppliers are told to come again because of what waits for a consumer. Whether one that is
    /// pushed to is there, pushes find out; one that pulls may have ended without a word, and is
    /// given up like those.
    pub(crate) fn note_holding(&mut self, consumer: u64) {
        let (now, after) = (self.now, self.settings.give_up_after);
        let Some(one) = self.running.get_mut(&consumer) else { return };
        if one.form != ConsumerForm::Pull {
            return;
        }
        let since = *one.queue.holding_since.get_or_insert(now);
        if after > 0 && now.saturating_sub(since) >= after {
            // If nobody hears it, it is said again as much later.
            one.queue.holding_since = Some(now);
            let (connection, why) = (one.connection, Reason::TooSlow);
            self.propose(Proposal::EndConsumer { consumer, connection, why });
        }
    }

    pub(crate) fn propose(&mut self, proposal: Proposal) {
        // Where it does not lead, another one says it.
        if self.leads {
            self.outgoing.push_back((0, Outgoing::Propose(proposal)));
        }
    }

    /// Fires the timers that are due, those first that have been for longest, and no more than
    /// `left`. A consumer without room misses its timers where events are dropped; else they wait
    /// for room.
    pub(crate) fn fire_timers(&mut self, left: &mut usize) {
        let mut slow = Vec::new();
        while let Some((due, id)) = self.timers.first().copied()
            && due <= self.now
            && *left > 0
        {
            *left -= 1;
            let (mut gate, running, _) = self.gate();
            let Some(one) = running.get_mut(&id) else {
                self.timers.remove(&(due, id));
                continue;
            };
            let has_room = has_room_for_timer(one, gate.settings);
            let fires = has_room || gate.settings.drops();
            if let Some((number, event_type)) = fires.then(|| one.filter.fire(gate.now)).flatten() {
                let header = Header { event_type, source: 0 };
                let event = event::shared(event::plain(header, 1, gate.now));
                if has_room {
                    gate.offer(id, one, Some(number), &event);
                } else {
                    one.queue.counters.dropped += 1;
                }
            }
            slow.append(&mut gate.slow);
            refresh(id, one, gate.settings, gate.ready, gate.timers);
        }
        self.give_up(slow);
        self.trim();
    }
}

/// Whether a consumer is a gateway that an event has no hop left for.
fn is_kept_from(one: &Running, event: &Shared) -> bool {
    one.is_gateway && event.event.header.ttl <= 0
}
