//! Any number of channels as one service: by name, with what each one is like.
//!
//! Channels come and go by calls only, so replicas that are given the same calls have the same
//! ones. Until the member that leads has said which channels the domain file has, callers of
//! channels that are not there are told to come again.
//!
//! What it is not: the driver. Who leads, times and outcomes are told.
//!
//! Invariants: a channel's keys begin with `Events/` and its name; one of the domain file ends only
//! with it; in a reliable channel the time is the ordered one, in the others it is the driver's.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Bound;

use quorba_base::channel::ChannelRule;
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Call, Home, Interface, Objects, raise_system};
use quorba_idl::quorba_events::{self, Filed};
use quorba_idl::{cos_event_channel_admin as cos, ft};

use crate::channel::Channel;
use crate::keys::{Place, place};
use crate::outgoing::{Delivery, Outcome, Outgoing};
use crate::settings::Settings;

/// The key of the object that knows all channels.
pub const SERVICE_KEY: &str = "EventService";
/// The key of the object that hands out the state.
pub const STATE_KEY: &str = "EventService/state";
/// The key of the object that takes what the leader decides.
pub const DECISIONS_KEY: &str = "EventService/decisions";
/// What the keys of channels begin with; the name follows.
pub(crate) const PREFIX: &str = "Events/";
/// What the keys of proxies begin with in channels that are not reliable: their pushes and pulls
/// need no place in the order, and go to the member that leads.
pub const UNORDERED_PREFIX: &str = "Unordered/";
/// Those calls.
const UNORDERED: [&str; 3] = ["push", "pull", "try_pull"];
/// Channels of one service.
pub(crate) const CHANNELS_MAX: usize = 1000;
/// Octets of a name.
const NAME_BYTES_MAX: usize = 64;

/// Tells the time of the call that is being executed, equal at all replicas, in 100 ns.
pub type OrderedClock = Box<dyn FnMut() -> Option<u64> + Send>;

/// A channel, and what it is like.
pub(crate) struct Held {
    pub(crate) rule: ChannelRule,
    pub(crate) is_filed: bool,
    pub(crate) channel: Channel,
}

/// See the module's text.
pub struct EventService {
    pub(crate) home: Home,
    pub(crate) channels: BTreeMap<String, Held>,
    pub(crate) is_configured: bool,
    pub(crate) leads: bool,
    farewells: VecDeque<Outgoing>,
    /// The driver's time.
    local: u64,
    /// How far the ordered time is before it.
    ahead: u64,
    ordered: Option<OrderedClock>,
    /// Who was served last: the others come before.
    turn: String,
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

fn settings(name: &str, rule: &ChannelRule) -> Settings {
    let proxies = (!rule.reliable).then(|| [UNORDERED_PREFIX, name].concat());
    Settings { proxies, ..Settings::of(rule) }
}

/// The name of the channel that an object is of, and what follows it in the key.
fn channel_of(key: &[u8]) -> Option<(&str, &str)> {
    let key = core::str::from_utf8(key).ok()?;
    let unordered = key.strip_prefix(UNORDERED_PREFIX);
    let rest = key.strip_prefix(PREFIX).or(unordered)?;
    let (name, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // Other objects have one key only.
    let is_proxy = behind.starts_with("/c-") || behind.starts_with("/s-");
    (!name.is_empty() && (is_proxy || unordered.is_none())).then_some((name, behind))
}

/// Whether a key is one by which calls go past the order.
fn is_unordered(key: &[u8]) -> bool {
    key.starts_with(UNORDERED_PREFIX.as_bytes())
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
            is_configured: false,
            leads: false,
            farewells: VecDeque::new(),
            local: 0,
            ahead: 0,
            ordered: None,
            turn: String::new(),
        }
    }

    /// The same with ordered time, for reliable channels.
    #[must_use]
    pub fn with_clock(self, clock: OrderedClock) -> Self {
        Self { ordered: Some(clock), ..self }
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

    /// The names of all channels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.channels.keys().map(String::as_str)
    }

    /// A channel.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.get(name).map(|held| &held.channel)
    }

    pub(crate) fn channel_mut(&mut self, name: &str) -> Option<&mut Channel> {
        self.channels.get_mut(name).map(|held| &mut held.channel)
    }

    pub(crate) fn make(
        &mut self,
        name: &str,
        rule: ChannelRule,
        is_filed: bool,
    ) -> Result<&mut Channel, NotMade> {
        if !is_name(name) {
            let why = "a name is 1 to 64 letters, digits, '-', '_', '.', the first one a letter \
                       or digit";
            return Err(NotMade::Invalid(why.to_string()));
        }
        if self.channels.contains_key(name) {
            return Err(NotMade::AlreadyThere);
        }
        if self.channels.len() >= CHANNELS_MAX {
            return Err(NotMade::Invalid(alloc::format!("there are {CHANNELS_MAX} already")));
        }
        let channel = self.empty(name, rule).map_err(NotMade::Invalid)?;
        let held = Held { rule, is_filed, channel };
        Ok(&mut self.channels.entry(name.to_string()).or_insert(held).channel)
    }

    pub(crate) fn empty(&self, name: &str, rule: ChannelRule) -> Result<Channel, String> {
        let made = Channel::new(&base(name), &self.home, settings(name, &rule));
        let mut channel = made.map_err(|wrong| wrong.0.to_string())?;
        if !self.leads {
            channel.follow_another();
        }
        Ok(channel)
    }

    /// Ends a channel; everybody who is connected is told.
    pub(crate) fn remove(&mut self, name: &str) {
        let Some(mut held) = self.channels.remove(name) else { return };
        let _ = held.channel.destroy();
        self.farewells.extend(held.channel.outgoing.drain(..).map(|(_, outgoing)| outgoing));
    }

    /// These channels are in the domain file, and no others are.
    pub(crate) fn configure(&mut self, filed: &[Filed]) {
        self.is_configured = true;
        let is_there = |name: &str| filed.iter().any(|one| one.name == name);
        let gone: Vec<String> = self
            .channels
            .iter()
            .filter(|(name, held)| held.is_filed && !is_there(name))
            .map(|(name, _)| name.clone())
            .collect();
        gone.iter().for_each(|name| self.remove(name));
        for one in filed {
            // The file was checked; what another version has written is left out.
            let Ok(mut rule) = ChannelRule::parse(&one.settings) else { continue };
            match self.channels.get_mut(&one.name) {
                Some(held) => {
                    held.is_filed = true;
                    if rule.reliable && held.rule.reliable {
                        // What waits stays.
                        rule.queue_events = rule.queue_events.max(held.rule.queue_events);
                        rule.queue_bytes = rule.queue_bytes.max(held.rule.queue_bytes);
                    }
                    if held.rule != rule {
                        held.rule = rule;
                        held.channel.change_settings(settings(&one.name, &rule));
                    }
                }
                None => drop(self.make(&one.name, rule, true)),
            }
        }
    }

    /// It dispatches from now on.
    pub fn lead(&mut self) {
        self.leads = true;
        self.channels.values_mut().for_each(|held| held.channel.lead());
    }

    /// It dispatches no more.
    pub fn follow_another(&mut self) {
        self.leads = false;
        self.farewells.clear();
        self.channels.values_mut().for_each(|held| held.channel.follow_another());
    }

    /// Whether it dispatches.
    #[must_use]
    pub const fn leads(&self) -> bool {
        self.leads
    }

    /// The driver's time, in 100 ns; it does not go back.
    pub fn tick(&mut self, now: u64) {
        self.local = self.local.max(now);
        let plain = self.channels.values_mut().filter(|held| !held.rule.reliable);
        plain.for_each(|held| held.channel.tick(self.local));
    }

    /// When to call [`EventService::tick`] and [`EventService::overdue`], if nothing else happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let due = self.channels.values().filter_map(|held| {
            let ahead = if held.rule.reliable { self.ahead } else { 0 };
            Some(held.channel.poll_timeout()?.saturating_sub(ahead))
        });
        due.min()
    }

    /// Reliable channels whose time has to be ordered, because something is due in them.
    #[must_use]
    pub fn overdue(&self) -> Vec<String> {
        let now = self.local.saturating_add(self.ahead);
        let reliable = self.channels.iter().filter(|(_, held)| held.rule.reliable && self.leads);
        let due =
            reliable.filter(|(_, held)| held.channel.poll_timeout().is_some_and(|at| at <= now));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// The ordered time for a reliable channel, the driver's for any other one.
    pub(crate) fn tick_channel(&mut self, name: &str) {
        let Some(held) = self.channels.get_mut(name) else { return };
        if !held.rule.reliable {
            return held.channel.tick(self.local);
        }
        if let Some(now) = self.ordered.as_mut().and_then(|clock| clock()) {
            self.ahead = now.saturating_sub(self.local);
            held.channel.tick(now);
        }
    }

    /// The next push that can be made, and of which channel; channels take turns.
    pub fn poll_push(&mut self) -> Option<(String, Delivery)> {
        let turn = core::mem::take(&mut self.turn);
        let of_one = |(name, held): (&String, &mut Held)| {
            let delivery = held.channel.poll_push()?;
            Some((name.clone(), delivery))
        };
        let behind = (Bound::Excluded(&turn), Bound::Unbounded);
        let first = self.channels.range_mut::<String, _>(behind).find_map(of_one);
        let next =
            first.or_else(|| self.channels.range_mut::<String, _>(..=&turn).find_map(of_one));
        if let Some((name, _)) = &next {
            self.turn.clone_from(name);
        }
        next
    }

    /// How a push ended.
    pub fn pushed(&mut self, name: &str, consumer: u64, ticket: u64, outcome: Outcome) {
        if let Some(channel) = self.channel_mut(name) {
            channel.pushed(consumer, ticket, outcome);
        }
    }

    /// What is to be done beside pushes, and of which channel; of none that is no more.
    pub fn poll(&mut self) -> Option<(String, Outgoing)> {
        if let Some(outgoing) = self.farewells.pop_front() {
            return self.leads.then(|| (String::new(), outgoing));
        }
        let mut channels = self.channels.iter_mut();
        channels.find_map(|(name, held)| {
            let outgoing = held.channel.poll()?;
            Some((name.clone(), outgoing))
        })
    }

    /// What a supplier gave: an event, nothing, or no answer.
    pub fn pulled(
        &mut self,
        name: &str,
        supplier: u64,
        ticket: u64,
        answer: Result<Option<Any>, Outcome>,
    ) {
        if let Some(channel) = self.channel_mut(name) {
            channel.pulled(supplier, ticket, answer);
        }
    }

    fn dispatch_channel(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let missing = raise_system(ExceptionKind::ObjectNotExist);
        let (name, behind) = channel_of(key).ok_or(missing)?;
        let (name, whole) = (name.to_string(), [PREFIX, name, behind].concat());
        let Some(held) = self.channels.get(&name) else {
            // It may come as soon as the leader has said which there are.
            let kind = ExceptionKind::Transient;
            return Err(if self.is_configured { missing } else { raise_system(kind) });
        };
        let at = place(&base(&name), whole.as_bytes());
        if is_unordered(key) {
            if held.rule.reliable {
                return Err(missing);
            }
            // Its node says that it leads, or that another one does, in a moment.
            if !self.leads && UNORDERED.contains(&call.operation()) {
                return Err(raise_system(ExceptionKind::Transient));
            }
        }
        let is_whole = matches!(at, Some(Place::Channel | Place::Rtec | Place::Facade));
        if at == Some(Place::State) {
            return Err(missing);
        }
        if held.is_filed && is_whole && call.operation() == "destroy" {
            return Err(raise_system(ExceptionKind::NoPermission));
        }
        // Only now: what is refused beside the order must not move a reliable channel's time.
        self.tick_channel(&name);
        let Some(held) = self.channels.get_mut(&name) else { return Err(missing) };
        let done = held.channel.dispatch(whole.as_bytes(), call);
        if held.channel.registry.is_destroyed {
            self.remove(&name);
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
            _ => match channel_of(key).map(|(name, _)| self.channels.get(name))? {
                Some(held) => {
                    let (name, behind) = channel_of(key)?;
                    held.channel.interface([PREFIX, name, behind].concat().as_bytes())
                }
                None => (!self.is_configured).then_some(cos::EVENT_CHANNEL),
            },
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
