//! What the processes of services do beside serving: they hear of faults from their node and tell
//! their groups, and one of them calls the consumers of the fault notifier.
//!
//! What it is not: a part of a replica's state. Everything goes through the group's gateway, as
//! from any client; what is told twice is recognised there.
//!
//! Invariants: news are told in their order, each until it was heard or never will be ([`insist`]);
//! who delivers says what has been delivered, so that another one can go on; a consumer that is
//! slow keeps no other waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::giop::SystemException;
use quorba_corba::{Call, Interface, Object, Objects};
use quorba_giop::{Endian, ExceptionKind};
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::cos_notify_comm::structured_push_consumer::PushStructuredEventError;
use quorba_idl::cos_notify_comm::{SequencePushConsumerStub, StructuredPushConsumerStub};
use quorba_idl::quorba::{FaultDeliveryStub, NewsItem, NewsStub, Pending, WatcherStub};
use quorba_manager::{FAULTS_KEY, Lookout, Manager, Newcomer, Tidings, WATCHER_KEY};
use quorba_notifier::event::Report;
use quorba_notifier::{Courier, DELIVERY_KEY, Errand, NOTIFIER_KEY, News, NotTaken, Notifier};
use quorba_orb::{Client, ClientOptions, Reference};

use super::insist::insist;

/// How long a node is asked for news at a time, in milliseconds.
const NEWS_MS: u32 = 1_000;
/// Before something that failed is tried again.
pub(super) const AGAIN: Duration = Duration::from_millis(50);
/// How often is looked for reports that wait.
const LOOK: Duration = Duration::from_millis(2);
/// How often is asked who delivers.
const ASK_WHO: Duration = Duration::from_millis(200);
/// How long one call of a consumer may take.
const PUSH_WITHIN: Duration = Duration::from_secs(5);
/// How long one that is cut off may take to hear it.
const PART_WITHIN: Duration = Duration::from_secs(2);
/// How often is seen whether the manager is to look for what is left to do.
const LOOK_OUT: Duration = Duration::from_millis(250);
/// Reports in one call of a consumer that takes sequences.
pub(super) const BATCH: u32 = 64;

/// What a service is told of its node, and where its own group is.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// The node's news.
    pub(super) news: Reference,
    /// Host and port of the group's gateway on this node.
    pub(super) gateway: String,
    pub(super) group: String,
    pub(super) node: String,
    pub(super) domain_id: String,
}

pub(super) fn options(call_timeout: Duration) -> ClientOptions {
    ClientOptions { call_timeout: Some(call_timeout), ..ClientOptions::default() }
}

impl Surroundings {
    pub(super) fn client(&self, key: &str) -> Option<Client> {
        let text = format!("corbaloc:iiop:1.2@{}/{key}", self.gateway);
        let reference = Reference::parse(&text).ok()?;
        Some(Client::new(&reference, options(Duration::from_secs(10))))
    }
}

/// Asks a node which domain it is in, until it says so.
pub(super) fn domain_id(news: &Reference) -> String {
    let mut client = Client::new(news, options(Duration::from_secs(5)));
    loop {
        match NewsStub(&mut client).domain_id() {
            Ok(id) => return id,
            Err(_) => thread::sleep(AGAIN),
        }
    }
}

/// Tells of everything that happens, in its order, for ever.
fn watch(around: &Surroundings, mut tell: impl FnMut(&NewsItem) -> Result<(), SystemException>) {
    let mut client = Client::new(&around.news, options(Duration::from_secs(10)));
    let mut after = 0;
    loop {
        let Ok(items) = NewsStub(&mut client).items(&after, &NEWS_MS) else {
            thread::sleep(AGAIN);
            continue;
        };
        for item in items {
            // A group says nothing of itself: while it is short it could hear nothing, either.
            // Whatever else happens, every replica tells: others may have no replica, or none that
            // runs, where it happened. It is recognised by its incident.
            if item.group != around.group {
                let what = format!("the news of {}", item.incident);
                insist(&what, || tell(&item), || true, thread::sleep);
            }
            after = item.number;
        }
    }
}

/// The replication manager's: members and nodes that die are replaced.
pub(super) fn watch_for_manager(around: Surroundings) {
    thread::spawn(move || {
        let Some(mut faults) = around.client(FAULTS_KEY) else { return };
        let Some(mut watcher) = around.client(WATCHER_KEY) else { return };
        watch(&around, |item| match Tidings::of(item) {
            Some(Tidings::Look) => WatcherStub(&mut watcher).look().map(drop),
            Some(Tidings::Fault) => {
                push_fault(&mut faults, &Report::of_news(item, &around.domain_id).to_event())
            }
            None => Ok(()),
        });
    });
}

/// Has the manager look for what is left to do, as long as this replica is the first that is in.
pub(super) fn look_out(around: Surroundings, manager: Shared<Manager<Client>>) {
    thread::spawn(move || {
        let mut client = Client::new(&around.news, options(Duration::from_secs(10)));
        let (mut lookout, began) = (Lookout::default(), Instant::now());
        loop {
            thread::sleep(LOOK_OUT);
            let members = NewsStub(&mut client).members_in(&around.group);
            if !members.is_ok_and(|all| all.first() == Some(&around.node)) {
                lookout.follow_another();
                continue;
            }
            // While the manager executes a call, it is looked at later.
            let is_due = match manager.0.try_lock() {
                Ok(manager) => lookout.look(&manager, began.elapsed()),
                Err(_) => false,
            };
            if is_due {
                if let Some(mut watcher) = around.client(WATCHER_KEY) {
                    // What it could not do is left to do.
                    let _looked = WatcherStub(&mut watcher).look();
                }
                lookout.looked(began.elapsed());
            }
            let late = match manager.0.try_lock() {
                Ok(manager) => lookout.overdue(&manager, began.elapsed()),
                Err(_) => None,
            };
            if let Some(Newcomer { group, location, .. }) = late
                && let Some(mut watcher) = around.client(WATCHER_KEY)
            {
                // What is not heard is told again.
                let _done = WatcherStub(&mut watcher).overdue(&group, &location);
            }
        }
    });
}

/// Tells the manager of a fault.
pub(super) fn push_fault(
    faults: &mut Client,
    event: &StructuredEvent,
) -> Result<(), SystemException> {
    let pushed = StructuredPushConsumerStub(faults).push_structured_event(event);
    pushed.map_err(|error| match error {
        PushStructuredEventError::System(raised) => raised,
        PushStructuredEventError::Disconnected(_) => {
            quorba_corba::raise_system(ExceptionKind::ObjectNotExist)
        }
    })
}

/// The fault notifier's: what dies is reported.
pub(super) fn watch_for_notifier(around: Surroundings) {
    thread::spawn(move || {
        let Some(mut notifier) = around.client(NOTIFIER_KEY) else { return };
        let Some(mut delivery) = around.client(DELIVERY_KEY) else { return };
        watch(&around, |item| match News::of(item, &around.domain_id) {
            Some(news @ News::Fault(_)) => news.tell(&mut notifier),
            Some(news @ News::NodeIsUp(_)) => news.tell(&mut delivery),
            None => Ok(()),
        });
    });
}

/// A service that its server and a thread beside it share.
pub(super) struct Shared<S>(pub(super) Arc<Mutex<S>>);

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Objects> Objects for Shared<S> {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).interface(key)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).dispatch(key, call)
    }
}

/// Who calls consumers for a replica, and the clock by which.
#[derive(Clone)]
struct Couriers {
    around: Surroundings,
    notifier: Shared<Notifier>,
    courier: Arc<Mutex<Courier>>,
    began: Instant,
}

/// Calls consumers, as long as this replica is the first that is in.
pub(super) fn deliver(around: Surroundings, notifier: Shared<Notifier>) {
    thread::spawn(move || {
        let mut client = Client::new(&around.news, options(Duration::from_secs(10)));
        let couriers =
            Couriers { around, notifier, courier: Arc::default(), began: Instant::now() };
        let (mut is_first, mut asked) = (false, None::<Instant>);
        loop {
            if asked.is_none_or(|at| at.elapsed() >= ASK_WHO) {
                let members = NewsStub(&mut client).members_in(&couriers.around.group);
                is_first = members.is_ok_and(|all| all.first() == Some(&couriers.around.node));
                asked = Some(Instant::now());
            }
            let errands = couriers.with(|courier, notifier, now| {
                if is_first {
                    return courier.look(notifier, BATCH, now);
                }
                courier.follow_another();
                Vec::new()
            });
            for errand in errands {
                let couriers = couriers.clone();
                thread::spawn(move || couriers.go(errand));
            }
            thread::sleep(LOOK);
        }
    });
}

impl Couriers {
    fn with<R>(&self, work: impl FnOnce(&mut Courier, &Notifier, Duration) -> R) -> R {
        let notifier = self.notifier.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut courier = self.courier.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut courier, &notifier, self.began.elapsed())
    }

    /// Does something for a consumer, and what comes of it.
    fn go(&self, first: Errand) {
        let mut next = Some(first);
        while let Some(errand) = next {
            next = match errand {
                Errand::Push(pending) => {
                    let outcome = push(&pending);
                    let what = (pending.consumer, pending.last);
                    self.with(|courier, notifier, now| courier.pushed(notifier, what, outcome, now))
                }
                Errand::Delivered { consumer, last } => {
                    self.say(consumer, |delivery| delivery.delivered(&consumer, &last))
                }
                Errand::CutOff { consumer, why } => {
                    self.say(consumer, |delivery| delivery.cut_off(&consumer, &why))
                }
                Errand::Part { consumer, reference, is_batch } => {
                    part(&reference, is_batch);
                    self.with(|courier, notifier, _| courier.parted(notifier, consumer))
                }
                Errand::Parted { consumer } => {
                    self.say(consumer, |delivery| delivery.parted(&consumer))
                }
            };
        }
    }

    /// Tells the group something of a consumer; what it does not hear is said again.
    fn say(
        &self,
        consumer: u64,
        say: impl FnOnce(&mut FaultDeliveryStub<'_>) -> Result<(), SystemException>,
    ) -> Option<Errand> {
        let client = self.around.client(DELIVERY_KEY);
        let is_heard =
            client.is_some_and(|mut client| say(&mut FaultDeliveryStub(&mut client)).is_ok());
        self.with(|courier, _, now| courier.said(consumer, is_heard, now));
        None
    }
}

/// A client of an object; else why it cannot be called.
pub(super) fn client_of(object: &Object, options: ClientOptions) -> Result<Client, String> {
    let reference = Reference::parse(&object.0.stringify(Endian::Big));
    reference.map(|it| Client::new(&it, options)).map_err(|error| error.to_string())
}

/// Tells a consumer that it gets nothing any more. That is tried once: it may be gone.
fn part(reference: &Object, is_batch: bool) {
    let Ok(mut client) = client_of(reference, options(PART_WITHIN)) else { return };
    let told = if is_batch {
        SequencePushConsumerStub(&mut client).disconnect_sequence_push_consumer()
    } else {
        StructuredPushConsumerStub(&mut client).disconnect_structured_push_consumer()
    };
    if let Err(raised) = told {
        eprintln!("a consumer that is cut off was not told so: it answers with {raised}");
    }
}

fn push(pending: &Pending) -> Result<(), NotTaken> {
    let mut client = client_of(&pending.reference, options(PUSH_WITHIN))
        .map_err(|text| NotTaken { text, is_final: true })?;
    let system = |raised: SystemException| NotTaken {
        text: format!("it answers with {raised}"),
        is_final: raised.kind == ExceptionKind::ObjectNotExist,
    };
    let disconnected =
        || NotTaken { text: "it says that it is disconnected".to_owned(), is_final: true };
    if pending.is_batch {
        use quorba_idl::cos_notify_comm::sequence_push_consumer::PushStructuredEventsError as Error;
        let pushed = SequencePushConsumerStub(&mut client).push_structured_events(&pending.events);
        return pushed.map_err(|error| match error {
            Error::Disconnected(_) => disconnected(),
            Error::System(raised) => system(raised),
        });
    }
    use PushStructuredEventError as Error;
    pending.events.iter().try_for_each(|event| {
        let pushed = StructuredPushConsumerStub(&mut client).push_structured_event(event);
        pushed.map_err(|error| match error {
            Error::Disconnected(_) => disconnected(),
            Error::System(raised) => system(raised),
        })
    })
}
