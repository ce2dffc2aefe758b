//! How many events a second a channel hands to many consumers, and for how much CPU time.
//!
//! One supplier pushes as fast as it is answered, and a bounded number of events ahead of the
//! slowest consumer ([`ahead`]), so that no service drops any; supplier and consumers are the same
//! for all services. The CPU time is that of the service's processes, its nodes among them, and not
//! that of supplier and consumers.
//!
//! Invariant: every consumer has every event, or there is no figure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Interface, Object, Objects};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_orb::RunningServer;
use serde::Serialize;

use super::ends::{ChannelClient, EVENT_LEN, Supplier};
use super::stand::Stand;
use super::{Service, ice_storm};
use crate::serve::serve;

/// Consumers of the measurement that is compared with other event services.
pub(super) const SOME: u32 = 10;
/// As many as one channel is to have.
pub(super) const MANY: u32 = 1_000;
/// How many events the supplier may be ahead of the slowest consumer at most: fewer than any
/// service keeps for one consumer.
const AHEAD_MAX: u64 = 200;
/// How many events may wait for all consumers together: fewer than a channel keeps for all.
const WAITING_MAX: u64 = 20_000;
/// Programs that the consumers are in, at most.
const PROGRAMS: u32 = 10;
/// Before it is looked again how far the consumers are.
const LOOK: Duration = Duration::from_micros(50);
/// How long no consumer gets anything before it counts as an end.
const STALLED: Duration = Duration::from_secs(30);

/// How many events the supplier may be ahead of the slowest of so many consumers.
fn ahead(consumers: u32) -> u64 {
    AHEAD_MAX.min(WAITING_MAX / u64::from(consumers.max(1)))
}

/// One service under load, in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// From 1.
    pub round: u32,
    /// Of which.
    pub service: Service,
    /// So many.
    pub consumers: u32,
    /// Events that each of them had.
    pub events: u32,
    /// Events pushed in a second.
    pub events_s: f64,
    /// CPU time of the service's processes for one event, in microseconds.
    pub cpu_us: f64,
}

/// Consumers in one program: their keys are their numbers.
struct Crowd {
    had: Arc<Vec<AtomicU64>>,
    /// Who is called at the moment.
    called: usize,
}

fn number(key: &[u8]) -> Option<usize> {
    std::str::from_utf8(key).ok()?.parse().ok()
}

impl Objects for Crowd {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        number(key).filter(|it| *it < self.had.len()).map(|_| cos_event_comm::PUSH_CONSUMER)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.called = number(key).unwrap_or(usize::MAX);
        cos_event_comm::dispatch_push_consumer(self, call)
    }
}

impl PushConsumer for Crowd {
    fn push(&mut self, _: Any) -> Result<(), PushError> {
        let had = self.had.get(self.called).ok_or(cos_event_comm::Disconnected {})?;
        had.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A supplier and its consumers.
struct Audience {
    supplier: Supplier,
    ahead: u64,
    had: Arc<Vec<AtomicU64>>,
    _programs: Vec<RunningServer>,
}

impl Audience {
    fn connect(stand: &Stand, consumers: u32) -> Result<Self, String> {
        let had: Vec<_> = (0..consumers).map(|_| AtomicU64::new(0)).collect();
        let had = Arc::new(had);
        let mut channel = ChannelClient::of(stand, true)?;
        let (mut programs, mut homes) = (Vec::new(), Vec::new());
        for _ in 0..consumers.min(PROGRAMS) {
            let (server, home) = serve(Crowd { had: Arc::clone(&had), called: usize::MAX })?;
            homes.push(home);
            programs.push(server);
        }
        for (index, home) in homes.iter().cycle().take(consumers as usize).enumerate() {
            let key = index.to_string();
            let consumer: Object = home.object(cos_event_comm::PUSH_CONSUMER.id(), key.as_bytes());
            channel.connect_consumer(&consumer)?;
        }
        let (supplier, ahead) = (channel.supplier()?, ahead(consumers));
        Ok(Self { supplier, ahead, had, _programs: programs })
    }

    /// How many events the slowest consumer has had.
    fn slowest(&self) -> u64 {
        self.had.iter().map(|had| had.load(Ordering::Relaxed)).min().unwrap_or(0)
    }

    /// Waits until each consumer has had so many.
    fn wait_for(&self, wanted: u64) -> Result<(), String> {
        let (mut at, mut seen) = (Instant::now(), self.slowest());
        while seen < wanted {
            thread::sleep(LOOK);
            let now = self.slowest();
            if now > seen {
                (at, seen) = (Instant::now(), now);
            }
            if at.elapsed() > STALLED {
                return Err(format!("a consumer has had {seen} events, and not {wanted}"));
            }
        }
        Ok(())
    }

    fn push(&mut self, events: u64) -> Result<(), String> {
        for _ in 0..events {
            let (number, _) = self.supplier.push()?;
            self.wait_for((number + 1).saturating_sub(self.ahead))?;
        }
        let pushed = self.supplier.pushed();
        self.wait_for(pushed)
    }
}

/// Pushes `events` to so many consumers.
#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 of anything")]
pub(super) fn measure(
    stand: &Stand,
    service: Service,
    (round, consumers, events): (u32, u32, u32),
) -> Result<Load, String> {
    let (took, cpu) = match service {
        Service::IceStorm => ice_storm::load(stand, consumers, (ahead(consumers), events))?,
        _ => pushed(stand, consumers, events)?,
    };
    let events_s = f64::from(events) / took.as_secs_f64();
    let cpu_us = cpu.as_nanos() as f64 / 1e3 / f64::from(events);
    Ok(Load { round, service, consumers, events, events_s, cpu_us })
}

/// How long it took until all consumers had them, and the CPU time of the service.
fn pushed(stand: &Stand, consumers: u32, events: u32) -> Result<(Duration, Duration), String> {
    let mut audience = Audience::connect(stand, consumers)?;
    // Connections are there, and memory is.
    audience.push(u64::from(events / 10).max(1))?;
    let (before, began) = (stand.cpu()?, Instant::now());
    audience.push(u64::from(events))?;
    Ok((began.elapsed(), stand.cpu()?.saturating_sub(before)))
}

pub(super) fn line(load: &Load) -> String {
    format!(
        "round {}  {:<13} {} consumers: {:6.0} events/s, {:6.0} deliveries/s, {:6.1} us of CPU \
         time for an event",
        load.round,
        load.service.name(),
        load.consumers,
        load.events_s,
        load.events_s * f64::from(load.consumers),
        load.cpu_us
    )
}

/// The summary.
pub(super) fn lines(all: &[Load]) -> Vec<String> {
    let median = |service: Service, of: fn(&Load) -> f64| {
        let found = all.iter().filter(|one| one.service == service && one.consumers == SOME);
        Some(crate::stats::Spread::of(found.map(of))?.median)
    };
    let mut lines: Vec<String> = all.iter().map(line).collect();
    let peers = [(Service::OmniEvents, "; wanted: 2"), (Service::IceStorm, "")];
    let is_ours = |one: &Service| peers.iter().all(|(peer, _)| peer != one);
    for (peer, wanted) in peers {
        for service in Service::all().into_iter().filter(is_ours) {
            let both = |of| Some((median(service, of)?, median(peer, of)?));
            let (rate, cpu) = (both(|load| load.events_s), both(|load| load.cpu_us));
            let (Some(rate), Some(cpu)) = (rate, cpu) else { continue };
            lines.push(format!(
                "{}: {:.2} times {}'s events a second, {:.2} times as many for the same CPU \
                 time{wanted}",
                service.name(),
                rate.0 / rate.1,
                peer.name(),
                cpu.1 / cpu.0
            ));
        }
    }
    lines.push(format!("Events of {EVENT_LEN} octets, one supplier, one push at a time."));
    lines
}
