//! The process of the event service: while its member leads, it calls consumers and suppliers.
//!
//! A thread asks the node who leads, one hands out what is to be called to threads that call
//! ([`pool`]), and one has ordered what all members must know ([`decide`]). What a channel says is
//! to be done is `quorba_events`' matter.
//!
//! What it is not: a part of a replica's state. Invariants: nothing is called outside unless the
//! node says that this member leads, and that it may serve; one call is under way to a consumer at
//! a time.

mod decide;
mod pool;
mod register;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorba_corba::giop::SystemException;
use quorba_corba::{Call, Interface, Objects};
use quorba_events::{EventService, Outgoing};
use quorba_giop::context::TIME_T_OF_UNIX_EPOCH;
use quorba_idl::quorba::LeadersStub;
use quorba_idl::quorba_events::Filed;
use quorba_orb::{Client, ClientOptions, Reference};

use decide::{Decider, Decision};
use pool::{Job, Pool, Work};

/// How long the node is asked at a time who leads, in milliseconds.
const LEADER_MS: u32 = 1_000;
/// Before something that failed is tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// The longest sleep of who hands out.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Before the time of a channel is ordered once more that has not been heard of yet.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What the process is told of its node and its group.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// The node's object that knows who leads.
    pub(super) leaders: Reference,
    /// Host and port of the group's gateway on this node.
    pub(super) gateway: String,
    pub(super) group: String,
    pub(super) node: String,
    /// The channels of the domain file.
    pub(super) filed: Vec<Filed>,
}

impl Surroundings {
    fn ask(&self) -> Client {
        let call_timeout = Some(Duration::from_secs(5));
        Client::new(&self.leaders, ClientOptions { call_timeout, ..ClientOptions::default() })
    }
}

/// What the threads share.
struct Core {
    service: Mutex<EventService>,
    changed: Condvar,
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, EventService> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has happened that may let something be called.
    fn wake(&self) {
        self.changed.notify_all();
    }
}

/// The time, in 100 ns as CORBA counts it.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TIME_T_OF_UNIX_EPOCH + since.as_secs() * 10_000_000 + u64::from(since.subsec_nanos() / 100)
}

/// The objects of a service that is dispatched beside.
pub(super) struct Served(Arc<Core>);

impl Objects for Served {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        self.0.lock().interface(key)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let mut service = self.0.lock();
        service.tick(now());
        let done = service.dispatch(key, call);
        drop(service);
        self.0.wake();
        done
    }
}

/// Starts all threads; the objects to serve.
pub(super) fn start(service: EventService, mut around: Surroundings) -> Served {
    // As the service has them.
    around.filed.sort_by(|one, other| one.name.cmp(&other.name));
    let core = Arc::new(Core { service: Mutex::new(service), changed: Condvar::new() });
    let decider = decide::start(&around, &core);
    let pool = Pool::new(&core);
    register::start(around.clone(), &core);
    let watched = Arc::clone(&core);
    let decides = decider.clone();
    thread::spawn(move || watch_leader(&around, &watched, &decides));
    let handed_out = Arc::clone(&core);
    thread::spawn(move || hand_out(&handed_out, &pool, &decider));
    Served(core)
}

/// Leads and follows as the node says, for ever.
fn watch_leader(around: &Surroundings, core: &Core, decider: &Decider) {
    let mut client = around.ask();
    let mut known = String::new();
    loop {
        let leader =
            LeadersStub(&mut client).leader(&around.group, &known, &LEADER_MS).unwrap_or_default();
        let is_own = leader == around.node;
        let mut service = core.lock();
        if is_own != service.leads() {
            if is_own {
                service.tick(now());
                service.lead();
                if !service.is_configured() || service.filed() != around.filed {
                    decider.decide(Decision::Configure(around.filed.clone()));
                }
            } else {
                service.follow_another();
            }
            core.wake();
        }
        drop(service);
        if leader.is_empty() {
            thread::sleep(AGAIN);
        }
        known = leader;
    }
}

/// Hands out what is to be called, and waits for the next reason to.
fn hand_out(core: &Core, pool: &Pool, decider: &Decider) {
    let mut looked: HashMap<String, Instant> = HashMap::new();
    let mut service = core.lock();
    loop {
        let at = now();
        service.tick(at);
        while let Some((channel, delivery)) = service.poll_push() {
            pool.give(Job { channel, work: Work::Push(delivery) });
        }
        while let Some((channel, outgoing)) = service.poll() {
            let work = match outgoing {
                Outgoing::Propose(proposal) => {
                    decider.decide(Decision::Proposal(channel, proposal));
                    continue;
                }
                Outgoing::Disconnect { to, call, .. } => Work::Disconnect(to, call),
                Outgoing::Pull { supplier, ticket, to } => Work::Pull(supplier, ticket, to),
                Outgoing::UpdateConsumer { to, qos } => Work::UpdateConsumer(to, qos),
                Outgoing::UpdateSupplier { to, qos } => Work::UpdateSupplier(to, qos),
            };
            pool.give(Job { channel, work });
        }
        for channel in service.overdue() {
            let last = looked.get(&channel);
            if last.is_none_or(|last| last.elapsed() >= LOOK_AGAIN) {
                looked.insert(channel.clone(), Instant::now());
                decider.decide(Decision::Look(channel));
            }
        }
        looked.retain(|_, at| at.elapsed() < LOOK_AGAIN);
        let left = service.poll_timeout().map_or(u64::MAX, |due| due.saturating_sub(at));
        let left = Duration::from_micros(left / 10).clamp(Duration::from_millis(1), SLEEP_MAX);
        let waited = core.changed.wait_timeout(service, left);
        service = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
