//! Threads that call consumers and suppliers, as many as calls are under way at a time.
//!
//! Invariants: a call that takes long keeps its own thread, and nobody else waiting, until there
//! are as many as there may be; a connection is used again for the same consumer, and kept no
//! longer than its proxy is there. Who has made a push makes the next one that may begin, so that
//! no other thread has to wake up for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::{Object, Transport};
use quorba_events::{Delivery, EventService, Goodbye, Outcome, Update};
use quorba_orb::{Client, ClientOptions, Reference, time_t};

use super::Core;
use super::class::Class;
use super::fence::Fence;
use super::goodbyes::Place;
use super::pulls::{late, pull};
use super::turns::Turns;
use super::warm::{Proxy, WARM_MAX};
use crate::reference;

/// How long one call may take.
const CALL_WITHIN: Duration = Duration::from_secs(5);
/// How long it may take to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Threads at a time.
const THREADS_MAX: usize = 1_024;
/// A thread that has had nothing to do for so long ends.
const IDLE: Duration = Duration::from_secs(10);
/// Octets of a thread's stack.
const STACK_BYTES: usize = 256 << 10;
/// Pushes that are handed out by who brings an event.
const SOME: usize = 32;
/// Connections that are kept while nothing is under way on them.
const KEPT_MAX: usize = 4_096;

/// Something to call.
pub(super) struct Job {
    pub(super) channel: String,
    pub(super) work: Work,
}

/// What.
pub(super) enum Work {
    Push(Delivery),
    Pull(u64, u64, Object),
    /// A call was under way when this member stopped to lead.
    Late(u64, Object, Box<Client>),
    Disconnect(Object, Goodbye, Place),
    Update(u32, u64, Object, Update),
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

/// By the number of a proxy, and its channel: to whom, and the connection.
type Kept = HashMap<Proxy, (Object, Client)>;

struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
    kept: Mutex<Kept>,
    core: Arc<Core>,
    class: Class,
    turns: Turns,
    /// Where pushes go that wait until their events are held.
    fence: Fence,
}

/// See the module's text.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

impl Pool {
    /// Its threads have that class.
    pub(super) fn new(core: &Arc<Core>, class: Class, turns: Turns) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            more: Condvar::new(),
            kept: Mutex::default(),
            core: Arc::clone(core),
            class,
            turns,
            fence: Fence::default(),
        }))
    }

    pub(super) fn fence(&self) -> &Fence {
        &self.0.fence
    }

    /// Hands out pushes, as many as may be under way; how long to wait for another turn, if others
    /// wait for one.
    pub(super) fn hand_out(&self, service: &mut EventService) -> Option<Duration> {
        loop {
            match self.0.next_push(service) {
                Ok(job) => self.give(job),
                Err(wait) => return wait,
            }
        }
    }

    /// Hands out a few of them: who brings an event waits meanwhile.
    pub(super) fn hand_out_some(&self, service: &mut EventService) {
        for _ in 0..SOME {
            let Ok(job) = self.0.next_push(service) else { return };
            self.give(job);
        }
    }

    /// Looks for what suppliers have answered that were called while this member led, now that it
    /// does not: nobody else has it.
    pub(super) fn look_for_late(&self) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let called = kept.extract_if(|_, (_, client)| client.is_called());
        let called: Vec<_> = called.collect();
        drop(kept);
        for ((channel, supplier), (to, client)) in called {
            let work = Work::Late(supplier, to, Box::new(client));
            self.give(Job { channel, work });
        }
    }

    /// Closes connections to those whose proxies have ended.
    pub(super) fn sweep(&self, service: &EventService) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(channel, proxy), _| service.has_proxy(channel, *proxy));
        drop(kept);
        self.0.turns.sweep(service);
    }

    /// Opens a connection to a consumer before there is anything to call, if none is kept; whether
    /// there is one. None is opened when there are enough.
    pub(super) fn open(&self, proxy: &Proxy, to: &Object) -> bool {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = kept.len() >= WARM_MAX && !kept.contains_key(proxy);
        let known = kept.remove(proxy).filter(|(whom, _)| whom == to);
        drop(kept);
        if is_full {
            return false;
        }
        let Some(mut client) = known.map(|(_, client)| client).or_else(|| connect(to)) else {
            return false;
        };
        let is_open = client.open();
        let service = self.0.core.lock();
        if is_open && service.has_proxy(&proxy.0, proxy.1) {
            let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
            // A call may have made one meanwhile.
            kept.entry(proxy.clone()).or_insert_with(|| (to.clone(), client));
        }
        is_open
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.0.kept.lock().expect("no holder panics").len()
    }

    pub(super) fn give(&self, job: Job) {
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.jobs.push_back(job);
        if queue.idle < queue.jobs.len() && queue.threads < THREADS_MAX {
            self.add_thread(&mut queue);
        }
        drop(queue);
        self.0.more.notify_one();
    }

    /// There is a thread from now on before there is anything to call: the first event behind the
    /// death of another member waits for none.
    pub(super) fn begin(&self) {
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.threads == 0 {
            self.add_thread(&mut queue);
        }
    }

    fn add_thread(&self, queue: &mut Queue) {
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("events-call".to_owned());
        // If there can be none, the others come to it.
        if thread.stack_size(STACK_BYTES).spawn(move || shared.work()).is_ok() {
            queue.threads += 1;
        }
    }
}

impl Shared {
    fn work(&self) {
        self.class.take();
        let mut behind = None;
        while let Some(job) = behind.take().or_else(|| self.next()) {
            if !self.is_for_nobody(&job) {
                behind = self.carry_out(job);
            }
        }
    }

    /// Whether others wait for a thread, and who this one would call has no proxy any more: so what
    /// waits does not grow with those that connect, cannot be reached and end.
    fn is_for_nobody(&self, job: &Job) -> bool {
        let proxy = match &job.work {
            Work::Push(delivery) => delivery.consumer,
            Work::Pull(supplier, ..) => *supplier,
            Work::Late(..) | Work::Disconnect(..) | Work::Update(..) => return false,
        };
        if !self.is_behind() || self.core.lock().has_proxy(&job.channel, proxy) {
            return false;
        }
        if let Work::Push(delivery) = &job.work {
            let key = (job.channel.clone(), proxy);
            self.turns.end(&key, delivery.ticket, Duration::ZERO, Outcome::Gone);
        }
        true
    }

    /// The next push that may begin, which counts from now on; if there is none, how long to wait
    /// for a turn, if some wait for one.
    fn next_push(&self, service: &mut EventService) -> Result<Job, Option<Duration>> {
        loop {
            let now = Instant::now();
            if let Some(wait) = self.turns.wait(now) {
                return Err(service.has_push().then_some(wait));
            }
            let (channel, delivery) = service.poll_push().ok_or(None)?;
            if delivery.is_to_be_held() {
                // Held pushes go together, when one answer has come for all of them.
                self.fence.give(Job { channel, work: Work::Push(delivery) });
                continue;
            }
            self.turns.begin((channel.clone(), delivery.consumer), delivery.ticket, now);
            return Ok(Job { channel, work: Work::Push(delivery) });
        }
    }

    /// Whether all threads are busy, and something waits for one.
    fn is_behind(&self) -> bool {
        !self.queue.lock().unwrap_or_else(PoisonError::into_inner).jobs.is_empty()
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            queue.idle += 1;
            let waited = self.more.wait_timeout(queue, IDLE);
            let (now, ended) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = now;
            queue.idle -= 1;
            // The last one stays.
            if ended.timed_out() && queue.jobs.is_empty() && queue.threads > 1 {
                queue.threads -= 1;
                return None;
            }
        }
    }

    /// Does it; what this thread is to do next, if that is known.
    fn carry_out(&self, job: Job) -> Option<Job> {
        let channel = job.channel;
        match job.work {
            Work::Push(delivery) => {
                let (consumer, ticket) = (delivery.consumer, delivery.ticket);
                let began = Instant::now();
                let key = (channel, consumer);
                let client = self.connection(&key, &delivery.to);
                let (client, outcome) = match client {
                    Some(mut client) => {
                        let outcome = delivery.send(&mut client);
                        (Some(client), outcome)
                    }
                    None => (None, Outcome::Gone),
                };
                self.turns.end(&key, ticket, began.elapsed(), outcome);
                let mut service = self.core.lock();
                let due = service.poll_timeout();
                service.tick(time_t());
                self.keep(&service, &key, &delivery.to, client, outcome);
                service.pushed(&key.0, consumer, ticket, outcome);
                if outcome == Outcome::Taken && self.core.is_heard() && !self.is_behind() {
                    let next = self.next_push(&mut service);
                    // That one may be to who was late, and count for nothing; a queue that has room
                    // again has its timers back.
                    let is_free = self.turns.wait(Instant::now()).is_none();
                    let is_other = is_free && service.has_push() || service.poll_timeout() != due;
                    self.core.wake_for(service, is_other);
                    return next.ok();
                }
            }
            Work::Pull(supplier, ticket, to) => {
                let key = (channel, supplier);
                let mut client = self.connection(&key, &to);
                let answer = client.as_mut().map_or(Err(Outcome::Gone), pull);
                let outcome = answer.as_ref().map_or_else(|why| *why, |_| Outcome::Taken);
                let mut service = self.core.lock();
                self.keep(&service, &key, &to, client, outcome);
                service.pulled(&key.0, supplier, ticket, answer);
            }
            Work::Late(supplier, to, mut client) => {
                let answer = late(&mut client);
                let outcome = answer.as_ref().map_or_else(|why| *why, |_| Outcome::Taken);
                let mut service = self.core.lock();
                self.keep(&service, &(channel.clone(), supplier), &to, Some(*client), outcome);
                // It is of no attempt that anybody waits for.
                if let Ok(Some(data)) = answer {
                    service.pulled(&channel, supplier, 0, Ok(Some(data)));
                }
            }
            // Who does not hear it finds out with the next call.
            Work::Disconnect(to, call, place) => {
                drop(connect(&to).map(|mut client| client.invoke(call.operation(), &|_| {})));
                drop(place);
            }
            Work::Update(observer, ticket, to, update) => {
                let called = connect(&to).map(|mut client| update.send(&mut client));
                let outcome = called.unwrap_or(Outcome::Gone);
                self.core.lock().observed(&channel, observer, ticket, outcome);
            }
        }
        self.core.wake();
        None
    }

    /// The connection that is kept, or a new one.
    fn connection(&self, key: &(String, u64), to: &Object) -> Option<Client> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.remove(key) {
            Some((whom, client)) if whom == *to => Some(client),
            _ => {
                drop(kept);
                connect(to)
            }
        }
    }

    /// Keeps a connection for the next call, if its proxy may have one.
    fn keep(
        &self,
        service: &EventService,
        key: &(String, u64),
        to: &Object,
        client: Option<Client>,
        outcome: Outcome,
    ) {
        let Some(client) = client else { return };
        if outcome == Outcome::Gone || !service.has_proxy(&key.0, key.1) {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            // One whose supplier is about to give an event is the last to go.
            let is_idle =
                |one: &&Proxy| kept.get(one).is_none_or(|(_, client)| !client.is_called());
            let any = kept.keys().find(is_idle).or_else(|| kept.keys().next()).cloned();
            any.and_then(|any| kept.remove(&any));
        }
        kept.insert(key.clone(), (to.clone(), client));
    }
}

/// A way to an object, in the code sets that its reference knows; none if that has no address.
fn connect(to: &Object) -> Option<Client> {
    let reference = Reference::from_ior(&to.0).ok()?;
    let options = ClientOptions {
        call_timeout: Some(CALL_WITHIN),
        connect_timeout: CONNECT_WITHIN,
        code_sets: reference::code_sets(&to.0),
        ..ClientOptions::default()
    };
    Some(Client::new(&reference, options))
}

#[cfg(test)]
mod tests {
    use super::super::tests::core;
    use super::*;
    use quorba_corba::Local;
    use quorba_idl::cos_event_channel_admin::{
        ConsumerAdminStub, ProxyPushSupplierStub, SupplierAdminStub,
    };

    /// What a server reads of a text in the code set of a reference with, or without, code sets.
    fn octets_sent(has_code_sets: bool) -> Vec<u8> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let home = quorba_corba::Home {
            addresses: vec![(address.ip().to_string(), address.port())],
            prefix: Vec::new(),
        };
        let to = match has_code_sets {
            true => home.object("IDL:peer:1.0", b"peer"),
            false => {
                let text = format!("corbaloc:iiop:1.2@{address}/peer");
                Object(quorba_giop::corbaloc::parse(&text).expect("a reference").to_ior())
            }
        };
        let sender = std::thread::spawn(move || {
            let mut client = connect(&to).expect("an address");
            let sent = client.send("push", &|to| to.write(&"caf\u{e9}".to_owned()));
            sent.expect("it is sent");
        });
        let mut octets = Vec::new();
        let (mut stream, _) = listener.accept().expect("a client");
        sender.join().expect("it is sent");
        std::io::Read::read_to_end(&mut stream, &mut octets).expect("all of it");
        octets
    }

    /// Whose reference says nothing of code sets speaks ISO 8859-1 (GIOP §13.10.2.4).
    #[test]
    fn clients_are_called_in_the_code_set_that_their_reference_knows() {
        let has = |octets: &[u8], text: &[u8]| octets.windows(text.len()).any(|it| it == text);
        assert!(has(&octets_sent(true), "caf\u{e9}".as_bytes()));
        let plain = octets_sent(false);
        assert!(has(&plain, b"caf\xe9") && !has(&plain, "caf\u{e9}".as_bytes()), "{plain:?}");
    }

    #[test]
    fn a_connection_is_kept_as_long_as_its_proxy_is_there() {
        let core = Arc::new(core(&["a"]));
        let pool = Pool::new(&core, Class::default(), Turns::default());
        let mut service = core.lock();
        let mut admin = Local::new(&mut *service, b"Events/a/consumers");
        ConsumerAdminStub(&mut admin).obtain_push_supplier().expect("proxy 1");
        let reference = Reference::direct(([127, 0, 0, 1], 1).into(), b"nobody");
        let keep = |service: &EventService, name: &str, proxy: u64| {
            let client = Some(Client::new(&reference, ClientOptions::default()));
            let key = (name.to_owned(), proxy);
            pool.0.keep(service, &key, &Object::nil(), client, Outcome::Taken);
            pool.0.kept.lock().expect("no holder panics").len()
        };
        assert_eq!(keep(&service, "a", 1), 1);
        // They ended while they were called.
        assert_eq!((keep(&service, "a", 2), keep(&service, "gone", 1)), (1, 1));
        pool.sweep(&service);
        assert_eq!(keep(&service, "a", 1), 1);
        let mut proxy = Local::new(&mut *service, b"Unordered/a/c-1");
        ProxyPushSupplierStub(&mut proxy).disconnect_push_supplier().expect("it was there");
        pool.sweep(&service);
        assert!(pool.0.kept.lock().expect("no holder panics").is_empty());
    }

    #[test]
    fn while_calls_wait_for_a_thread_those_of_proxies_that_have_ended_are_not_made() {
        let core = Arc::new(core(&["a"]));
        let pool = Pool::new(&core, Class::default(), Turns::default());
        let mut service = core.lock();
        let mut admin = Local::new(&mut *service, b"Events/a/suppliers");
        SupplierAdminStub(&mut admin).obtain_pull_consumer().expect("proxy 1");
        drop(service);
        let pull = |proxy: u64| {
            let work = Work::Pull(proxy, 1, Object::nil());
            Job { channel: "a".to_owned(), work }
        };
        assert!(!pool.0.is_for_nobody(&pull(2)), "nobody waits for it");
        pool.0.queue.lock().expect("no holder panics").jobs.push_back(pull(1));
        assert!(!pool.0.is_for_nobody(&pull(1)));
        assert!(pool.0.is_for_nobody(&pull(2)));
    }
}
