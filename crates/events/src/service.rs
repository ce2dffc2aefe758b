//! Any number of channels as one service: by name, with what each one is like.
//!
//! Channels come and go by calls only, so replicas that are given the same calls have the same
//! ones. Until the member that leads has said which channels the domain file has, callers of
//! channels that are not there are told to come again.
//!
//! What it is not: the driver. Who leads, times and outcomes are told.
//!
//! Invariants: a channel's keys begin with `Events/` and its name; where it is not reliable, its
//! proxies and its facade are known by keys that begin with `Unordered/`, too, and proxies are told
//! with these; a channel of the domain file ends only with it; in a reliable channel the time is
//! the ordered one, in the others it is the driver's, which a channel is told when it is changed,
//! or is due; numbers of proxies, observers and attempts come once in the life of a service,
//! whatever becomes of their channels; what channels have to do stands in an agenda, so a channel
//! is changed by [`EventService::with_channel`] and its like only.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorba_base::channel::{
    Bounds, ChannelRule, LINE_BYTES_MAX, ORDERED_PREFIX as PREFIX, QUESTION_OPERATION,
    UNORDERED_OPERATIONS, UNORDERED_PREFIX,
};
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Call, Home, Interface, Object, Objects, raise_system};
use quorba_idl::quorba_events::{self, Filed};
use quorba_idl::{cos_event_channel_admin as cos, ft};

use crate::agenda::{Agenda, Noted};
use crate::channel::Channel;
use crate::dispatch::FIRED_MAX;
use crate::keys::{Place, place_behind};
use crate::outgoing::{Delivery, Outcome, Outgoing};
use crate::registry::Numbers;
use crate::settings::{Limits, Settings};

/// The key of the object that knows all channels.
pub const SERVICE_KEY: &str = "EventService";
/// The key of the object that hands out the state.
pub const STATE_KEY: &str = "EventService/state";
/// The key of the object that takes what the leader decides.
pub const DECISIONS_KEY: &str = "EventService/decisions";
/// Channels of one service.
pub(crate) const CHANNELS_MAX: usize = 1000;
/// Clients of channels that are no more who wait to be told so.
const FAREWELLS_MAX: usize = 20_000;
/// Before the time of a channel is ordered once more that has not been heard of yet; 100 ns.
const LOOK_AGAIN: u64 = 5_000_000;
/// Octets of a name, and of a reason.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;
/// The operations by which a consumer takes an event out.
const PULL_OPERATIONS: [&str; 2] = ["pull", "try_pull"];
/// Octets of a name.
const NAME_BYTES_MAX: usize = 64;

/// Tells the time of the call that is being executed, equal at all replicas, in 100 ns.
pub type OrderedClock = Box<dyn FnMut() -> Option<u64> + Send>;

/// Tells whose call that is, equal at all replicas: the same number for all calls of one client, or
/// of one gateway.
pub type OrderedCaller = Box<dyn FnMut() -> Option<u64> + Send>;

/// A channel, and what it is like.
pub(crate) struct Held {
    pub(crate) rule: ChannelRule,
    pub(crate) is_filed: bool,
    pub(crate) channel: Channel,
    /// Its time is to be ordered; until then it is not asked for once more.
    looks_until: Option<u64>,
    name: Arc<str>,
    /// What the agenda says of it.
    noted: Noted,
    /// Octets of the rule as a line.
    line_bytes: usize,
}

impl Held {
    pub(crate) fn new(name: &str, rule: ChannelRule, is_filed: bool, channel: Channel) -> Self {
        let (name, noted) = (Arc::from(name), Noted::default());
        let line_bytes = rule.to_string().len();
        Self { rule, is_filed, channel, looks_until: None, name, noted, line_bytes }
    }

    /// The driver's time, if that is its time.
    fn tick(&mut self, local: u64) {
        if !self.rule.reliable {
            self.channel.tick(local);
        }
    }

    pub(crate) fn note(&mut self, agenda: &mut Agenda) {
        agenda.note(&self.name, &mut self.noted, Noted::of(&self.channel));
    }

    pub(crate) const fn line_bytes(&self) -> usize {
        self.line_bytes
    }
}

/// See the module's text.
pub struct EventService {
    pub(crate) home: Home,
    pub(crate) channels: BTreeMap<String, Held>,
    pub(crate) agenda: Agenda,
    pub(crate) is_configured: bool,
    pub(crate) bounds: Bounds,
    /// Octets of one event in any channel.
    event_bytes_max: usize,
    /// Channels of the domain file that there is no room for: their settings, and why.
    pub(crate) missing: BTreeMap<String, (String, String)>,
    pub(crate) leads: bool,
    farewells: VecDeque<Outgoing>,
    /// The driver's time.
    local: u64,
    /// How far the ordered time is before it.
    ahead: u64,
    ordered: Option<OrderedClock>,
    caller: Option<OrderedCaller>,
    /// Who was served last: the others come before.
    turn: String,
    /// Whose timers were the last ones that fired when more were due.
    timers_turn: String,
    /// Proxies that have ended in channels that are no more.
    pub(crate) ended: u64,
    /// Clients that were not told the end of channels that are no more.
    pub(crate) unsaid: u64,
    /// The numbers that no channel has given yet.
    pub(crate) numbers: Numbers,
    /// The name of the next attempt, as channels knew it that are no more. Not replicated.
    pub(crate) tickets: u64,
}

/// Why there is no channel of that name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotMade {
    AlreadyThere,
    Invalid(String),
}

fn base(name: &str) -> String {
    [PREFIX, name].concat()
}

fn settings(name: &str, rule: &ChannelRule, event_bytes_max: usize) -> Settings {
    let proxies = (!rule.reliable).then(|| [UNORDERED_PREFIX, name].concat());
    let mut settings = Settings { proxies, ..Settings::of(rule) };
    settings.limits.event_bytes_max = event_bytes_max;
    // Who missed changes is given the calls, by the group.
    settings.limits.updates_max = 0;
    settings
}

/// What a key is of.
struct Target<'k> {
    /// The channel.
    name: &'k str,
    /// Which of its objects; none if it has no such one.
    place: Option<Place>,
    /// Calls by this key go past the order.
    is_unordered: bool,
}

impl<'k> Target<'k> {
    fn of(key: &'k [u8]) -> Option<Self> {
        let key = core::str::from_utf8(key).ok()?;
        let unordered = key.strip_prefix(UNORDERED_PREFIX);
        let is_unordered = unordered.is_some();
        let rest = unordered.or_else(|| key.strip_prefix(PREFIX))?;
        let (name, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let place = place_behind(behind);
        // Other objects have one key only; these have both.
        let is_pushed_to =
            matches!(place, Some(Place::Consumer(_) | Place::Supplier(_) | Place::Facade));
        let is_one = !name.is_empty() && (is_pushed_to || !is_unordered);
        is_one.then_some(Self { name, place, is_unordered })
    }
}

/// The channel whose object has this key, whether it is there or not.
#[must_use]
pub fn channel_of(key: &[u8]) -> Option<&str> {
    Target::of(key).map(|target| target.name)
}

pub(crate) fn is_name(name: &str) -> bool {
    let is_good = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    let begins = name.bytes().next().is_some_and(|octet| octet.is_ascii_alphanumeric());
    begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_good)
}

impl EventService {
    /// One without channels, whose references lead to `home`. It does not lead.
    #[must_use]
    pub fn new(home: Home) -> Self {
        Self {
            home,
            channels: BTreeMap::new(),
            agenda: Agenda::default(),
            is_configured: false,
            bounds: Bounds::default(),
            event_bytes_max: Limits::default().event_bytes_max,
            missing: BTreeMap::new(),
            leads: false,
            farewells: VecDeque::new(),
            local: 0,
            ahead: 0,
            ordered: None,
            caller: None,
            turn: String::new(),
            timers_turn: String::new(),
            ended: 0,
            unsaid: 0,
            numbers: Numbers::FIRST,
            tickets: 1,
        }
    }

    /// The same with ordered time, for reliable channels.
    #[must_use]
    pub fn with_clock(self, clock: OrderedClock) -> Self {
        Self { ordered: Some(clock), ..self }
    }

    /// The same where replies carry less than the largest event: one that could be pushed, and not
    /// pulled, would be lost. All members must be told the same.
    #[must_use]
    pub fn with_event_bytes_max(self, event_bytes_max: usize) -> Self {
        Self { event_bytes_max: event_bytes_max.min(self.event_bytes_max), ..self }
    }

    /// The same, told who calls, so that no pull from a reliable channel is lost with its gateway.
    #[must_use]
    pub fn with_caller(self, caller: OrderedCaller) -> Self {
        Self { caller: Some(caller), ..self }
    }

    /// What the domain file says of channels, as this service has it.
    #[must_use]
    pub fn filed(&self) -> Vec<Filed> {
        let filed = self.channels.iter().filter(|(_, held)| held.is_filed);
        let filed =
            filed.map(|(name, held)| Filed { name: name.clone(), settings: held.rule.to_string() });
        filed.collect()
    }

    /// Whether it has been told which channels the domain file has.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// How much all channels may hold together.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The channels of the domain file that could not be made, and why.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &str)> {
        self.missing.iter().map(|(name, (_, why))| (name.as_str(), why.as_str()))
    }

    /// Whether there is room for a channel with this rule, beside all others.
    fn check_room(&self, name: &str, rule: &ChannelRule) -> Result<(), String> {
        let others = self.channels.iter().filter(|(other, _)| *other != name);
        self.bounds.check(others.map(|(_, held)| &held.rule).chain([rule]))
    }

    /// The key of one of the service's objects, whether it is there or not; none if it is
    /// somebody else's.
    #[must_use]
    pub fn key_of(&self, object: &Object) -> Option<Vec<u8>> {
        self.home.key_of(object)
    }

    /// The reference to the object that knows all channels.
    #[must_use]
    pub fn reference(&self) -> Object {
        self.home.object(quorba_events::CHANNELS.id(), SERVICE_KEY.as_bytes())
    }

    /// The names of all channels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.channels.keys().map(String::as_str)
    }

    /// A channel.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.get(name).map(|held| &held.channel)
    }

    /// Changes a channel, if it is there. If it is not reliable it has the driver's time then.
    pub(crate) fn with_channel<R>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Channel) -> R,
    ) -> Option<R> {
        let held = self.channels.get_mut(name)?;
        held.tick(self.local);
        let result = change(&mut held.channel);
        held.note(&mut self.agenda);
        Some(result)
    }

    /// The same with all of them.
    fn with_all(&mut self, change: fn(&mut Channel)) {
        for held in self.channels.values_mut() {
            held.tick(self.local);
            change(&mut held.channel);
            held.note(&mut self.agenda);
        }
    }

    pub(crate) fn make(
        &mut self,
        name: &str,
        rule: ChannelRule,
        is_filed: bool,
    ) -> Result<&Channel, NotMade> {
        if !is_name(name) {
            let why = "a name is 1 to 64 letters, digits, '-', '_', '.', the first one a letter \
                       or digit";
            return Err(NotMade::Invalid(why.to_string()));
        }
        if self.channels.contains_key(name) {
            return Err(NotMade::AlreadyThere);
        }
        if self.channels.len() >= CHANNELS_MAX {
            let why = "channels already, and no service has more: end one that is not used";
            return Err(NotMade::Invalid(alloc::format!("there are {CHANNELS_MAX} {why}")));
        }
        self.check_room(name, &rule).map_err(NotMade::Invalid)?;
        let is_filed = self.missing.contains_key(name) || is_filed;
        if !is_filed && !self.has_room_for_channel(name, &rule.to_string()) {
            let why = "there is no room for another channel beside the subscriptions of all, which \
                       may take 1/8 of state_bytes of [limits]: end channels or proxies that are \
                       not used; the operator of the domain can allow more";
            return Err(NotMade::Invalid(why.to_string()));
        }
        let channel = self.empty(name, &rule).map_err(NotMade::Invalid)?;
        self.missing.remove(name);
        let mut held = Held::new(name, rule, is_filed, channel);
        held.note(&mut self.agenda);
        Ok(&self.channels.entry(name.to_string()).or_insert(held).channel)
    }

    pub(crate) fn empty(&self, name: &str, rule: &ChannelRule) -> Result<Channel, String> {
        let made =
            Channel::new(&base(name), &self.home, settings(name, rule, self.event_bytes_max));
        let mut channel = made.map_err(|wrong| wrong.0.to_string())?;
        // What others with its name, or before another state, have under way is not its own.
        channel.number_attempts_from(self.next_ticket());
        channel.registry.first_proxy = self.numbers.proxy;
        if !self.leads {
            channel.follow_another();
        }
        Ok(channel)
    }

    /// A name that no attempt has had in any channel.
    pub(crate) fn next_ticket(&self) -> u64 {
        let tickets = self.channels.values().map(|held| held.channel.next_ticket);
        tickets.fold(self.tickets, u64::max)
    }

    /// Ends a channel; everybody who is connected is told. There may be room now for others.
    pub(crate) fn remove(&mut self, name: &str) {
        self.end(name);
        for (name, (settings, _)) in self.missing.clone() {
            self.make_filed(&name, &settings);
        }
    }

    /// Makes a channel of the domain file, or remembers why it cannot be made.
    fn make_filed(&mut self, name: &str, settings: &str) {
        let rule = ChannelRule::parse(settings).map_err(NotMade::Invalid);
        let made = rule.and_then(|rule| self.make(name, rule, true).map(drop));
        if let Err(NotMade::Invalid(why)) = made {
            self.lacks(name, settings, why);
        }
    }

    fn lacks(&mut self, name: &str, settings: &str, why: String) {
        let is_short = settings.len() <= LINE_BYTES_MAX && why.len() <= TEXT_BYTES_MAX;
        if is_name(name) && is_short && self.missing.len() < CHANNELS_MAX {
            self.missing.insert(name.to_string(), (settings.to_string(), why));
        }
    }

    fn end(&mut self, name: &str) {
        let Some(mut held) = self.channels.remove(name) else { return };
        self.agenda.note(&held.name, &mut held.noted, Noted::default());
        let _ = held.channel.destroy();
        self.ended += held.channel.ended;
        self.tickets = self.tickets.max(held.channel.next_ticket);
        self.unsaid += held.channel.unsaid;
        let room = FAREWELLS_MAX.saturating_sub(self.farewells.len());
        self.unsaid += held.channel.outgoing.len().saturating_sub(room) as u64;
        let told = held.channel.outgoing.drain(..).take(room);
        self.farewells.extend(told.map(|(_, outgoing)| outgoing));
    }

    /// These channels are in the domain file, and no others are; this is how much all may hold.
    pub(crate) fn configure(&mut self, filed: &[Filed], bounds: Bounds) {
        (self.is_configured, self.bounds) = (true, bounds);
        self.missing.clear();
        let is_there = |name: &str| filed.iter().any(|one| one.name == name);
        let gone: Vec<String> = self
            .channels
            .iter()
            .filter(|(name, held)| held.is_filed && !is_there(name))
            .map(|(name, _)| name.clone())
            .collect();
        gone.iter().for_each(|name| self.end(name));
        for one in filed {
            // The file was checked, but perhaps by another version, and without what clients made.
            let rule = ChannelRule::parse(&one.settings);
            let rule = rule.and_then(|rule| self.check_room(&one.name, &rule).map(|()| rule));
            let mut rule = match rule {
                Ok(rule) => rule,
                Err(why) => {
                    self.lacks(&one.name, &one.settings, why);
                    if let Some(held) = self.channels.get_mut(&one.name) {
                        held.is_filed = true;
                    }
                    continue;
                }
            };
            match self.channels.get_mut(&one.name) {
                Some(held) => {
                    held.is_filed = true;
                    if rule.reliable && held.rule.reliable {
                        // What waits stays.
                        rule.queue_events = rule.queue_events.max(held.rule.queue_events);
                        rule.queue_bytes = rule.queue_bytes.max(held.rule.queue_bytes);
                    }
                    if held.rule != rule {
                        let settings = settings(&one.name, &rule, self.event_bytes_max);
                        held.channel.change_settings(settings);
                        (held.line_bytes, held.rule) = (rule.to_string().len(), rule);
                        held.note(&mut self.agenda);
                    }
                }
                None => self.make_filed(&one.name, &one.settings),
            }
        }
    }

    /// It dispatches from now on.
    pub fn lead(&mut self) {
        self.leads = true;
        self.with_all(Channel::lead);
    }

    /// It dispatches no more.
    pub fn follow_another(&mut self) {
        self.leads = false;
        self.farewells.clear();
        self.with_all(Channel::follow_another);
    }

    /// Whether it dispatches.
    #[must_use]
    pub const fn leads(&self) -> bool {
        self.leads
    }

    /// The driver's time, in 100 ns; it does not go back.
    pub fn tick(&mut self, now: u64) {
        self.local = self.local.max(now);
        // What fires at a time has one bound for all, so they take turns.
        let (mut left, turn) = (FIRED_MAX, core::mem::take(&mut self.timers_turn));
        let mut due = self.agenda.due_plain(self.local);
        due.sort_unstable();
        let first = due.partition_point(|name| **name <= *turn);
        due.rotate_left(first);
        let mut last = None;
        for name in due {
            let Some(held) = self.channels.get_mut(&*name) else { continue };
            held.channel.tick_within(self.local, &mut left);
            held.note(&mut self.agenda);
            if left == 0 && last.is_none() {
                last = Some(name.to_string());
            }
        }
        self.timers_turn = last.unwrap_or(turn);
    }

    /// When to call [`EventService::tick`] and [`EventService::overdue`], if nothing else happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        // Time comes to a reliable channel with what is ordered, and the leader has it ordered.
        let mut first = self.agenda.first_plain();
        for (at, name) in self.agenda.reliable().filter(|_| self.leads) {
            let at = at.saturating_sub(self.ahead);
            if first.is_some_and(|first| first <= at) {
                break;
            }
            let looks_until = self.channels.get(name).and_then(|held| held.looks_until);
            let at = at.max(looks_until.unwrap_or(0));
            first = Some(first.map_or(at, |first| first.min(at)));
        }
        first
    }

    /// Reliable channels whose time has to be ordered, because something is due in them. Each is
    /// named once, until its time was ordered or has not been for long.
    pub fn overdue(&mut self) -> Vec<String> {
        if !self.leads {
            return Vec::new();
        }
        let (local, now) = (self.local, self.local.saturating_add(self.ahead));
        let due = self.agenda.reliable().take_while(|(at, _)| *at <= now);
        let mut due: Vec<String> = due.map(|(_, name)| name.to_string()).collect();
        due.retain(|name| {
            let held = self.channels.get_mut(name);
            let held = held.filter(|held| held.looks_until.is_none_or(|until| until <= local));
            held.is_some_and(|held| {
                held.looks_until = Some(local.saturating_add(LOOK_AGAIN));
                true
            })
        });
        due
    }

    /// How many proxies have ended: whoever keeps connections looks when that grows.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.channels.values().map(|held| held.channel.ended).sum::<u64>() + self.ended
    }

    /// How many clients were not told the end of their connection, because too many others were to
    /// be told theirs.
    #[must_use]
    pub fn unsaid(&self) -> u64 {
        self.channels.values().map(|held| held.channel.unsaid).sum::<u64>() + self.unsaid
    }

    /// Whether a channel has a proxy of that number.
    #[must_use]
    pub fn has_proxy(&self, name: &str, id: u64) -> bool {
        let registry = self.channels.get(name).map(|held| &held.channel.registry);
        registry.is_some_and(|it| it.consumers.contains_key(&id) || it.suppliers.contains_key(&id))
    }

    /// The ordered time for a reliable channel, the driver's for any other one.
    pub(crate) fn tick_channel(&mut self, name: &str) {
        let Some(held) = self.channels.get_mut(name) else { return };
        held.tick(self.local);
        if held.rule.reliable
            && let Some(now) = self.ordered.as_mut().and_then(|clock| clock())
        {
            self.ahead = now.saturating_sub(self.local);
            held.looks_until = None;
            held.channel.tick(now);
        }
        held.note(&mut self.agenda);
    }

    /// The next push that can be made, and of which channel; channels take turns.
    pub fn poll_push(&mut self) -> Option<(String, Delivery)> {
        for _ in 0..self.agenda.pushes() {
            let name = self.agenda.next_push(&self.turn)?;
            self.turn = name.to_string();
            if let Some(delivery) = self.with_channel(&name, Channel::poll_push).flatten() {
                return Some((name.to_string(), delivery));
            }
        }
        None
    }

    /// Whether [`EventService::poll_push`] has one.
    #[must_use]
    pub fn has_push(&self) -> bool {
        self.agenda.has_push()
    }

    /// Whether [`EventService::poll`] may have something: `false` is certain.
    #[must_use]
    pub fn has_outgoing(&self) -> bool {
        !self.farewells.is_empty() || self.agenda.has_outgoing()
    }

    /// Whether a push is still to be made: nobody has led since, and its consumer is there.
    #[must_use]
    pub fn is_under_way(&self, name: &str, push: &Delivery) -> bool {
        let one = self.channels.get(name).and_then(|it| it.channel.running.get(&push.consumer));
        one.is_some_and(|one| one.queue.is_under_way(push.ticket))
    }

    /// How a push ended.
    pub fn pushed(&mut self, name: &str, consumer: u64, ticket: u64, outcome: Outcome) {
        self.with_channel(name, |channel| channel.pushed(consumer, ticket, outcome));
    }

    /// How an update of an observer ended.
    pub fn observed(&mut self, name: &str, observer: u32, ticket: u64, outcome: Outcome) {
        self.with_channel(name, |channel| channel.observed(observer, ticket, outcome));
    }

    /// What is to be done beside pushes, and of which channel; of none that is no more.
    pub fn poll(&mut self) -> Option<(String, Outgoing)> {
        if let Some(outgoing) = self.farewells.pop_front() {
            return self.leads.then(|| (String::new(), outgoing));
        }
        let mut last: Option<Arc<str>> = None;
        loop {
            let name = self.agenda.next_outgoing(last.as_deref())?;
            if let Some(outgoing) = self.with_channel(&name, Channel::poll).flatten() {
                return Some((name.to_string(), outgoing));
            }
            last = Some(name);
        }
    }

    /// What a supplier gave: an event, nothing, or no answer.
    pub fn pulled(
        &mut self,
        name: &str,
        supplier: u64,
        ticket: u64,
        answer: Result<Option<Any>, Outcome>,
    ) {
        self.with_channel(name, |channel| channel.pulled(supplier, ticket, answer));
    }

    fn dispatch_channel(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let missing = raise_system(ExceptionKind::ObjectNotExist);
        let Target { name, place, is_unordered } = Target::of(key).ok_or(missing)?;
        let Some(held) = self.channels.get(name) else {
            // It may come as soon as the leader has said which there are.
            let kind = ExceptionKind::Transient;
            return Err(if self.is_configured { missing } else { raise_system(kind) });
        };
        let place = place.filter(|place| *place != Place::State).ok_or(missing)?;
        if let Place::Consumer(id) = place
            && call.operation() == QUESTION_OPERATION
        {
            // It is asked past the order, and moves nothing.
            let leads = self.leads;
            return quorba_events::dispatch_waiting(&mut held.channel.waiting(id, leads), call);
        }
        if is_unordered && held.rule.reliable {
            return Err(missing);
        }
        // Its node says that it leads, or that another one does, in a moment. It is so of ordered
        // calls, too: members that follow keep no events, and nobody hears what they answer.
        let moves_events = UNORDERED_OPERATIONS.contains(&call.operation());
        if !self.leads && !held.rule.reliable && moves_events {
            return Err(raise_system(ExceptionKind::Transient));
        }
        let is_whole = matches!(place, Place::Channel | Place::Rtec | Place::Facade);
        if held.is_filed && is_whole && call.operation() == "destroy" {
            return Err(raise_system(ExceptionKind::NoPermission));
        }
        // Only now: what is refused beside the order must not move a reliable channel's time.
        self.tick_channel(name);
        let room = (!moves_events).then(|| self.room_of(name));
        let Some(held) = self.channels.get_mut(name) else { return Err(missing) };
        if let Some(room) = room {
            held.channel.settings.limits.subscription_bytes_max = room;
        }
        let pulls = held.rule.reliable && PULL_OPERATIONS.contains(&call.operation());
        held.channel.caller = match &mut self.caller {
            Some(caller) if pulls => caller(),
            _ => None,
        };
        // Only what is ordered gives numbers, so a push beside the order changes none.
        let own = held.channel.registry.numbers();
        held.channel.registry.number_from(self.numbers);
        let done = held.channel.dispatch_at(place, call);
        held.note(&mut self.agenda);
        let next = held.channel.registry.numbers();
        if next == self.numbers {
            held.channel.registry.number_from(own);
        }
        self.numbers = next;
        if held.channel.registry.is_destroyed {
            self.remove(name);
        }
        done
    }
}

impl Objects for EventService {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        match core::str::from_utf8(key).ok()? {
            SERVICE_KEY => Some(quorba_events::CHANNELS),
            STATE_KEY => Some(ft::CHECKPOINTABLE),
            DECISIONS_KEY => Some(quorba_events::DECISIONS),
            _ => {
                let Target { name, place, .. } = Target::of(key)?;
                match self.channels.get(name) {
                    Some(held) => held.channel.interface_of(place?),
                    None => (!self.is_configured).then_some(cos::EVENT_CHANNEL),
                }
            }
        }
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match core::str::from_utf8(key) {
            Ok(SERVICE_KEY) => quorba_events::dispatch_channels(self, call),
            Ok(STATE_KEY) => ft::dispatch_checkpointable(self, call),
            Ok(DECISIONS_KEY) => quorba_events::dispatch_decisions(self, call),
            _ => self.dispatch_channel(key, call),
        }
    }
}
