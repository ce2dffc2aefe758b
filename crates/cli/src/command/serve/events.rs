//! The process of the event service: while its member leads, it calls consumers and suppliers.
//!
//! A thread asks the node who leads, one hands out what is to be called to threads that call
//! ([`pool`]), and one has ordered what all members must know ([`decide`]). What a channel says is
//! to be done is `quorba_events`' matter. Pushes are handed out by whoever makes them possible,
//! too: the thread that brought the event, and the one whose call has just ended, so that no event
//! waits until another thread has woken up.
//!
//! What it is not: a part of a replica's state. Invariants: nothing is called outside unless the
//! node has said a moment ago that this member leads, and that it may serve; what waits meanwhile
//! stays; one call is under way to a consumer at a time.

mod class;
mod decide;
mod fence;
mod goodbyes;
mod pool;
mod pulls;
mod register;
#[cfg(test)]
mod strategies;
mod tell;
mod told;
mod turns;
mod warm;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quorba_base::channel::{
    Bounds, ORDERED_PREFIX, QUESTION_OPERATION, UNORDERED_OPERATIONS, UNORDERED_PREFIX,
};
use quorba_config::Without;
use quorba_corba::giop::SystemException;
use quorba_corba::{Call, Interface, Objects};
use quorba_events::{Decisions, EventService, Outgoing};
use quorba_idl::quorba::LeadersStub;
use quorba_idl::quorba_events::Filed;
use quorba_orb::{Client, ClientOptions, Reference, time_t};

use class::Class;
use decide::Decider;
use goodbyes::Goodbyes;
use pool::{Job, Pool, Work};
pub(super) use told::{Asker, Told};
use turns::Turns;

/// How long the node is asked at a time who leads, in milliseconds.
const LEADER_MS: u32 = 500;
/// How long one such call may take: the node says who leads when nothing has changed, too.
const LEADER_WITHIN: Duration = Duration::from_millis(1_500);
/// Who has not heard for so long that it leads calls nobody outside: another member may lead.
const HEARD_WITHIN: Duration = Duration::from_secs(2);
/// Before something that failed is tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// The longest sleep of who hands out.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// How often is looked for connections to those whose proxies have ended.
const SWEEP: Duration = Duration::from_millis(200);

/// What the process is told of its node and its group.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// The node's object that knows who leads.
    pub(super) leaders: Reference,
    /// The node's object that hears what channels do.
    pub(super) figures: Option<Reference>,
    /// Host and port of the group's gateway on this node.
    pub(super) gateway: String,
    pub(super) group: String,
    pub(super) node: String,
    /// The channels of the domain file.
    pub(super) filed: Vec<Filed>,
    /// How much all channels may hold together.
    pub(super) bounds: Bounds,
    /// The real-time priority of threads that events wait for; 0: none.
    pub(super) priority: u8,
    /// Pushes that are under way at a time.
    pub(super) pushes_at_once: u32,
    /// What is left out for a measurement.
    pub(super) without: Without,
}

impl Surroundings {
    fn ask(&self, within: Duration) -> Client {
        let call_timeout = Some(within);
        Client::new(&self.leaders, ClientOptions { call_timeout, ..ClientOptions::default() })
    }
}

/// What the threads share.
struct Core {
    service: Mutex<EventService>,
    changed: Condvar,
    /// When the node has said last who leads.
    heard: Mutex<Option<Instant>>,
    /// Whether the thread that hands out everything will look again when a turn may be over.
    is_watched: AtomicBool,
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, EventService> {
        self.service.lock().unwrap_or_else(|_| {
            // What it has may be half changed. Its node starts another process, which is given the
            // state of another member.
            eprintln!("a thread panicked while it held the channels: this process ends");
            std::process::abort()
        })
    }

    fn new(service: EventService) -> Self {
        Self {
            service: Mutex::new(service),
            changed: Condvar::new(),
            heard: Mutex::default(),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Whether the node has said a moment ago who leads.
    fn is_heard(&self) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.is_some_and(|at| at.elapsed() < HEARD_WITHIN)
    }

    /// The node says who leads, as it was at that time; how long it had said nothing, if that was
    /// too long.
    fn hears(&self, at: Instant) -> Option<Duration> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let before = heard.replace(at)?;
        let silent = at.saturating_duration_since(before);
        (silent >= HEARD_WITHIN).then_some(silent)
    }

    /// Wakes the thread that hands out everything, if something is left that only it does:
    /// `is_other`, or what is no push, or a push whose turn nobody waits for. Others have handed
    /// out what they could.
    fn wake_for(&self, service: MutexGuard<'_, EventService>, is_other: bool) {
        let is_left = is_other
            || service.has_outgoing()
            || service.has_push() && !self.is_watched.load(Ordering::Relaxed);
        drop(service);
        if is_left {
            self.wake();
        }
    }

    /// Something has happened that may let something be called.
    fn wake(&self) {
        self.changed.notify_all();
    }
}

/// The objects of a service that is dispatched beside.
pub(super) struct Served {
    core: Arc<Core>,
    pool: Pool,
    /// These are calls past the order.
    is_apart: bool,
    /// Of the thread that brings such a call.
    class: Class,
    /// Who asks the node for what is said of an ordered request.
    asker: Option<Asker>,
}

impl Objects for Served {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        self.core.lock().interface(key)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match self.is_apart {
            true => self.class.take(),
            false => Class::stay(),
        }
        if let Some(asker) = &mut self.asker {
            asker.ask(call.operation());
        }
        let mut service = self.core.lock();
        let due = service.poll_timeout();
        service.tick(time_t());
        let done = service.dispatch(key, call);
        let is_heard = self.core.is_heard();
        if is_heard {
            self.pool.hand_out_some(&mut service);
        }
        let is_other = !self.is_apart || !is_heard || service.poll_timeout() != due;
        self.core.wake_for(service, is_other);
        if let Some(asker) = &self.asker {
            asker.forget();
        }
        done
    }
}

/// Whether a call is one that the leader alone executes, with no place in the order: also the
/// question of a gateway whether a pull would be answered.
pub(super) fn is_past_the_order(key: &[u8], operation: &[u8]) -> bool {
    let is_one = |one: &str| one.as_bytes() == operation;
    let begins = |start: &str| key.starts_with(start.as_bytes());
    let asks = is_one(QUESTION_OPERATION) && begins(ORDERED_PREFIX);
    let is_any = || is_one(QUESTION_OPERATION) || UNORDERED_OPERATIONS.into_iter().any(is_one);
    asks || begins(UNORDERED_PREFIX) && is_any()
}

/// Starts all threads; the objects to serve: to all others, and to those past the order. The node
/// sends the latter on a connection that has nothing else, so that its thread has a class of its
/// own.
pub(super) fn start(
    service: EventService,
    mut around: Surroundings,
    asker: Option<Asker>,
) -> (Served, Served) {
    // As the service has them.
    around.filed.sort_by(|one, other| one.name.cmp(&other.name));
    let core = Arc::new(Core::new(service));
    let decider = decide::start(&around, &core);
    let class = Class::get(around.priority, &around);
    let pool = Pool::new(&core, class, Turns::new(around.pushes_at_once));
    if !around.without.warm {
        warm::start(&core, &pool);
        pool.begin();
    }
    register::start(around.clone(), &core);
    if let Some(figures) = &around.figures {
        tell::start(figures, around.group.clone(), &core);
    }
    let watched = Arc::clone(&core);
    let decides = decider.clone();
    fence::start(&around, &core, &pool);
    thread::spawn(move || {
        // Events wait for it when another member has ended.
        class.take();
        watch_leader(&around, &watched, &decides);
    });
    let management = management(&core);
    let (handed_out, pushes) = (Arc::clone(&core), pool.clone());
    thread::spawn(move || {
        class.take();
        let goodbyes = Goodbyes::default();
        hand_out(&handed_out, &Ways { pool: pushes, management, decider, goodbyes });
    });
    let (of_others, pushes) = (Arc::clone(&core), pool.clone());
    let others = Served { core: of_others, pool: pushes, is_apart: false, class, asker };
    (others, Served { core, pool, is_apart: true, class, asker: None })
}

/// Where calls go that pass on no event. Their threads are begun by one of the normal class, and so
/// are of it. Who is told its end keeps none of the others waiting.
fn management(core: &Arc<Core>) -> Sender<Job> {
    let (sender, jobs) = channel::<Job>();
    let pool = || Pool::new(core, Class::default(), Turns::default());
    let (goodbyes, others) = (pool(), pool());
    thread::spawn(move || {
        for job in jobs {
            let is_goodbye = matches!(job.work, Work::Disconnect(..));
            if is_goodbye { goodbyes.give(job) } else { others.give(job) }
        }
    });
    sender
}

/// Leads and follows as the node says, for ever. While it says nothing, this member neither calls
/// anybody nor forgets anything.
fn watch_leader(around: &Surroundings, core: &Core, decider: &Decider) {
    let mut client = around.ask(LEADER_WITHIN);
    let mut known = String::new();
    let mut is_silent = false;
    loop {
        // As it is when the node is asked, at the earliest.
        let asked = Instant::now();
        let leader = match LeadersStub(&mut client).leader(&around.group, &known, &LEADER_MS) {
            Ok(leader) => leader,
            Err(raised) => {
                if !std::mem::replace(&mut is_silent, true) && core.lock().leads() {
                    eprintln!(
                        "the node does not say who leads ({raised}): consumers and suppliers are \
                         called no more after {} s, until it does; quorba status shows the node",
                        HEARD_WITHIN.as_secs()
                    );
                }
                // What it says next is news.
                known = String::new();
                thread::sleep(AGAIN);
                continue;
            }
        };
        is_silent = false;
        let was_heard = core.is_heard();
        if let Some(silent) = core.hears(asked) {
            let silent = silent.as_millis();
            eprintln!("the node says again who leads ({leader:?}), after {silent} ms");
        }
        if !was_heard {
            core.wake();
        }
        let is_own = leader == around.node;
        let mut service = core.lock();
        if is_own != service.leads() {
            if is_own {
                service.tick(time_t());
                service.lead();
                let is_same = service.filed() == around.filed && service.bounds() == around.bounds;
                if !service.is_configured() || !is_same {
                    let (filed, bounds) = (around.filed.clone(), around.bounds);
                    decider.add(|waiting| waiting.configure(filed, bounds));
                }
            } else {
                service.follow_another();
                decider.add(Decisions::forget);
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

/// Says in the log which channels of the domain file are not there; each once, at who leads.
fn tell_missing(service: &EventService, told: &mut BTreeMap<String, String>) {
    if !service.leads() {
        return told.clear();
    }
    let missing: BTreeMap<String, String> =
        service.missing().map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
    for (name, why) in &missing {
        if told.get(name) != Some(why) {
            eprintln!("the channel {name} of the domain file is not as it says: {why}");
        }
    }
    *told = missing;
}

/// Says in the log how many clients were not told their end since, because too much waited.
fn tell_unsaid(service: &EventService, told: &mut u64) {
    let all = service.unsaid();
    let new = all.saturating_sub(std::mem::replace(told, all));
    if new > 0 {
        eprintln!(
            "{new} clients were not told that they are disconnected: too much waits to be done; \
             they find out with their next call"
        );
    }
}

/// Where what is to be called goes.
struct Ways {
    pool: Pool,
    management: Sender<Job>,
    decider: Decider,
    goodbyes: Goodbyes,
}

impl Ways {
    /// Has something done, or says it.
    fn take(&self, channel: String, outgoing: Outgoing) {
        let work = match outgoing {
            Outgoing::Propose(proposal) => {
                return self.decider.add(|waiting| waiting.propose(channel, proposal));
            }
            Outgoing::Pull { supplier, ticket, to } => {
                return self.pool.give(Job { channel, work: Work::Pull(supplier, ticket, to) });
            }
            Outgoing::Ended(ended) => return eprintln!("channel {channel}: {ended}"),
            Outgoing::TooLarge(told) => return eprintln!("channel {channel}: {told}"),
            Outgoing::Disconnect { to, call } => {
                let Some(place) = self.goodbyes.place(&to) else { return };
                Work::Disconnect(to, call, place)
            }
            Outgoing::Update { observer, ticket, to, update } => {
                Work::Update(observer, ticket, to, update)
            }
            Outgoing::ObserverEnded { observer, place } => {
                return eprintln!(
                    "channel {channel}: observer {observer} ({place}) is removed: it could not be \
                     told anything; if it is there, it may be appended again"
                );
            }
        };
        // Its thread is there as long as the process.
        let _ = self.management.send(Job { channel, work });
    }
}

/// Hands out what is to be called, and waits for the next reason to.
fn hand_out(core: &Core, ways: &Ways) {
    let Ways { pool, decider, .. } = ways;
    let (mut ended, mut looked, mut unsaid) = (0, Instant::now(), 0);
    let mut told = BTreeMap::new();
    let mut service = core.lock();
    loop {
        if !core.is_heard() {
            let waited = core.changed.wait_timeout(service, SLEEP_MAX);
            service = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let at = time_t();
        service.tick(at);
        let pause = pool.hand_out(&mut service);
        while decider.has_room()
            && let Some((channel, outgoing)) = service.poll()
        {
            ways.take(channel, outgoing);
        }
        for channel in service.overdue() {
            decider.add(|waiting| waiting.look(channel));
        }
        if looked.elapsed() >= SWEEP {
            looked = Instant::now();
            if std::mem::replace(&mut ended, service.ended()) != service.ended() {
                pool.sweep(&service);
            }
            tell_missing(&service, &mut told);
            tell_unsaid(&service, &mut unsaid);
            if !service.leads() {
                pool.look_for_late();
            }
        }
        let left = service.poll_timeout().map_or(u64::MAX, |due| due.saturating_sub(at));
        // No supplier is asked while too much waits to be ordered, though its time has come.
        let least = if decider.has_room() { Duration::from_millis(1) } else { AGAIN };
        let left = Duration::from_micros(left / 10).clamp(least, SLEEP_MAX);
        let left = pause.map_or(left, |pause| left.min(pause));
        core.is_watched.store(pause.is_some(), Ordering::Relaxed);
        let waited = core.changed.wait_timeout(service, left);
        service = waited.unwrap_or_else(PoisonError::into_inner).0;
        core.is_watched.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_corba::{Home, Local};
    use quorba_idl::quorba_events::ChannelsStub;

    /// A service that leads, with these channels.
    pub(super) fn core(names: &[&str]) -> Core {
        let home = Home { addresses: vec![("here".to_owned(), 2812)], prefix: Vec::new() };
        let mut service = EventService::new(home);
        service.lead();
        for name in names {
            let mut local = Local::new(&mut service, quorba_events::SERVICE_KEY.as_bytes());
            let made = ChannelsStub(&mut local).create(&(*name).to_owned(), &String::new());
            made.expect("it is made");
        }
        Core::new(service)
    }

    /// A node that says who leads, or nothing.
    #[derive(Clone, Default)]
    struct Node {
        is_silent: Arc<Mutex<bool>>,
        changed: Arc<Condvar>,
    }

    impl Node {
        fn set_silent(&self, is_silent: bool) {
            *self.is_silent.lock().expect("no holder panics") = is_silent;
            self.changed.notify_all();
        }
    }

    impl Objects for Node {
        fn interface(&self, _: &[u8]) -> Option<Interface> {
            Some(quorba_idl::quorba::LEADERS)
        }

        fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
            quorba_idl::quorba::dispatch_leaders(self, call)
        }
    }

    impl quorba_idl::quorba::Leaders for Node {
        fn leader(&mut self, _: String, known: String, _: u32) -> Result<String, SystemException> {
            let silent = self.is_silent.lock().expect("no holder panics");
            drop(self.changed.wait_while(silent, |silent| *silent).expect("no holder panics"));
            if known == "n1" {
                thread::sleep(Duration::from_millis(10));
            }
            Ok("n1".to_owned())
        }

        fn gateway(&mut self, _: String) -> Result<String, SystemException> {
            Ok(String::new())
        }

        fn monitorable(&mut self, _: String) -> Result<quorba_corba::Object, SystemException> {
            Ok(quorba_corba::Object::nil())
        }
    }

    pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn who_does_not_hear_that_it_leads_calls_nobody_until_it_does_and_loses_nothing() {
        let node = Node::default();
        let options = quorba_orb::ServerOptions::default();
        let server = quorba_orb::Server::bind((std::net::Ipv4Addr::LOCALHOST, 0), options);
        let server = server.expect("a port").with_objects(node.clone()).start().expect("threads");
        let around = Surroundings {
            leaders: Reference::direct(server.address(), b"leaders"),
            figures: None,
            gateway: "127.0.0.1:1".to_owned(),
            group: "events".to_owned(),
            node: "n1".to_owned(),
            filed: Vec::new(),
            bounds: Bounds::default(),
            priority: 0,
            pushes_at_once: 1,
            without: Without::default(),
        };
        let core = Arc::new(core(&["a"]));
        let watched = Arc::clone(&core);
        thread::spawn(move || watch_leader(&around, &watched, &Decider::default()));
        wait_until("it hears that it leads", || core.is_heard());
        node.set_silent(true);
        wait_until("it calls nobody any more", || !core.is_heard());
        assert!(core.lock().leads(), "what waits is kept");
        node.set_silent(false);
        wait_until("it goes on", || core.is_heard());
    }
}
