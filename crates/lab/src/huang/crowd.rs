//! What ten thousand subscriptions cost a channel: time for each, memory, and the latency of an
//! event that one of them is for.
//!
//! They are made by the facade's one call, each for a type of events that no other one wants.
//!
//! Invariant: of the events that are pushed, each comes to the one consumer that wants it, and to
//! no other one, or there is no figure.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Home, Interface, Objects};
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub;
use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, Dependency, Publication, SupplierQOS};
use quorba_idl::rtec_event_comm::{self, Event, EventData, EventHeader, EventSet, PushConsumer};
use quorba_orb::{Client, ClientOptions, Reference, RunningServer};
use serde::Serialize;

use super::ends::EVENT_LEN;
use super::stand::Stand;
use crate::serve::serve;
use crate::stats::Percentiles;

/// As many as one channel is to have.
pub(super) const SUBSCRIPTIONS: u32 = 10_000;
/// The type that the first one wants; those below have meanings of their own.
const FIRST_TYPE: i32 = 1_000;
/// How many of them the events are for.
const CALLED: i32 = 100;
const WITHIN: Duration = Duration::from_secs(30);
/// How long it is seen that nobody else has an event.
const QUIET: Duration = Duration::from_millis(300);

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crowd {
    /// So many.
    pub subscriptions: u32,
    /// Of one of them, in the order in which they were made.
    pub subscription: Percentiles,
    /// From before a push until the consumer has the event, with one subscription.
    pub alone: Percentiles,
    /// With all of them.
    pub among: Percentiles,
    /// Memory of the leader's process before and after, in KiB.
    pub memory_kib: (u32, u32),
}

struct Consumers {
    of: i32,
    came: Sender<(i32, i32, Instant)>,
}

impl Objects for Consumers {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(rtec_event_comm::PUSH_CONSUMER)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.of = std::str::from_utf8(key).ok().and_then(|key| key.parse().ok()).unwrap_or(0);
        rtec_event_comm::dispatch_push_consumer(self, call)
    }
}

impl PushConsumer for Consumers {
    fn push(&mut self, data: EventSet) -> Result<(), SystemException> {
        let at = Instant::now();
        for event in data {
            // Who measures may have ended.
            let _ = self.came.send((self.of, event.header.r#type, at));
        }
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn event(of: i32, octets: usize) -> Event {
    let header = EventHeader {
        r#type: of,
        source: 1,
        ttl: 1,
        creation_time: 0,
        ec_recv_time: 0,
        ec_send_time: 0,
    };
    Event {
        header,
        data: EventData { pad1: 0, payload: vec![b'x'; octets], any_value: Any::default() },
    }
}

struct Facade {
    client: Client,
    pushes: Client,
    supplier: Vec<u8>,
    home: Home,
    came: Receiver<(i32, i32, Instant)>,
    _consumers: RunningServer,
}

impl Facade {
    fn open(stand: &Stand) -> Result<Self, String> {
        let (sender, came) = channel();
        let (consumers, home) = serve(Consumers { of: 0, came: sender })?;
        let way = |key: String| {
            let reference = Reference::parse(&key).map_err(|error| error.to_string())?;
            let options = ClientOptions { call_timeout: Some(WITHIN), ..ClientOptions::default() };
            Ok::<_, String>(Client::new(&reference, options))
        };
        let unordered = stand.channel.replace("/Events/", "/Unordered/");
        let mut client = way(format!("{}/ft", stand.channel))?;
        let pushes = way(format!("{unordered}/ft"))?;
        let offers = SupplierQOS { publications: Vec::<Publication>::new(), is_gateway: false };
        let supplier = home.object(rtec_event_comm::PUSH_SUPPLIER.id(), b"supplier");
        let id = EventChannelStub(&mut client).connect_push_supplier(&supplier, &offers);
        let supplier = id.map_err(|error| format!("no supplier: {error:?}"))?;
        Ok(Self { client, pushes, supplier, home, came, _consumers: consumers })
    }

    /// A subscription for a type: how long it took.
    fn subscribe(&mut self, of: i32) -> Result<Duration, String> {
        let key = of.to_string();
        let consumer = self.home.object(rtec_event_comm::PUSH_CONSUMER.id(), key.as_bytes());
        let dependency = Dependency { event: event(of, 0), rt_info: 0 };
        let wants = ConsumerQOS { dependencies: vec![dependency], is_gateway: false };
        let began = Instant::now();
        let id = EventChannelStub(&mut self.client).connect_push_consumer(&consumer, &wants);
        id.map_err(|error| format!("no subscription: {error:?}"))?;
        Ok(began.elapsed())
    }

    /// Events, each for one of `subscribed` types: how long each took.
    fn pass(&mut self, events: u32, subscribed: i32) -> Result<Percentiles, String> {
        let mut samples = Vec::new();
        for number in 0..i32::try_from(events).unwrap_or(i32::MAX) {
            // Some, spread over all: a connection is kept to so many.
            let step = (subscribed / CALLED).max(1);
            let of = FIRST_TYPE + (number % CALLED * step).rem_euclid(subscribed);
            let began = Instant::now();
            let pushed = EventChannelStub(&mut self.pushes)
                .push(&self.supplier, &vec![event(of, EVENT_LEN)]);
            pushed.map_err(|error| format!("no push: {error:?}"))?;
            match self.came.recv_timeout(WITHIN) {
                Ok((by, what, at)) if (by, what) == (of, of) => {
                    let took = at.saturating_duration_since(began);
                    samples.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
                }
                Ok((by, what, _)) => {
                    return Err(format!("the consumer of {by} has {what}; {of} was pushed"));
                }
                Err(_) => return Err(format!("an event of type {of} did not come")),
            }
        }
        match self.came.recv_timeout(QUIET) {
            Err(RecvTimeoutError::Timeout) => {}
            more => return Err(format!("more came than was pushed: {more:?}")),
        }
        Percentiles::of(&samples).ok_or_else(|| "no events".to_owned())
    }
}

/// Makes so many subscriptions, and pushes `events` with the first and with all.
pub(super) fn measure(stand: &Stand, subscriptions: u32, events: u32) -> Result<Crowd, String> {
    let mut facade = Facade::open(stand)?;
    let count = i32::try_from(subscriptions).map_err(|_| "too many subscriptions")?;
    facade.subscribe(FIRST_TYPE)?;
    // Connections are there.
    facade.pass(events / 10 + 1, 1)?;
    let alone = facade.pass(events, 1)?;
    let before = stand.memory_kib()?;
    let mut samples = Vec::new();
    for number in 1..count {
        let took = facade.subscribe(FIRST_TYPE + number)?;
        samples.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
    let subscription = Percentiles::of(&samples).ok_or("no subscriptions")?;
    facade.pass(events / 10 + 1, count)?;
    let among = facade.pass(events, count)?;
    let memory_kib = (before, stand.memory_kib()?);
    Ok(Crowd { subscriptions, subscription, alone, among, memory_kib })
}

/// The summary.
pub(super) fn lines(found: Option<&Crowd>) -> Vec<String> {
    let Some(Crowd { subscriptions, subscription, alone, among, memory_kib }) = found else {
        return Vec::new();
    };
    vec![format!(
        "{subscriptions} subscriptions: one takes p50 {:.0} us, p99 {:.0}; an event to its one \
         consumer p50 {:.0} us, alone {:.0}; the leader's process has {} KiB, before {}",
        subscription.p50_us,
        subscription.p99_us,
        among.p50_us,
        alone.p50_us,
        memory_kib.1,
        memory_kib.0
    )]
}
