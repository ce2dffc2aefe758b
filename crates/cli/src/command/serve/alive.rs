//! The fault detector of objects (FT-CORBA §23.4), beside each replica of the manager: it asks
//! objects whether they are alive, and tells the manager of those that are not. By way of the
//! manager the notifier hears of them (`unanswered`).
//!
//! What it is not: a part of a replica's state; what it tells is ordered, as from any client. Nor
//! does it decide whom to ask, or who is dead: that is [`PullDetector`].
//!
//! Invariant: one that does not know `is_alive` and says so is alive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::{Any, Object};
use quorba_giop::ExceptionKind;
use quorba_idl::cos_notification::{Property, StructuredEvent};
use quorba_idl::ft::PullMonitorableStub;
use quorba_idl::quorba::{LeadersStub, NewsStub, WatcherStub};
use quorba_manager::{
    Charge, FAULTS_KEY, Manager, PullDetector, PullErrand, Target, UNANSWERED, Unanswered,
    WATCHER_KEY, Watched, Whom,
};
use quorba_notifier::event::Report;
use quorba_orb::{Client, ClientOptions, Reference, time_t};

use super::faults::{self, Shared, Surroundings};
use super::insist::insist;

/// How long is waited at least before objects are asked that are due.
const LOOK: Duration = Duration::from_millis(5);
/// How often is looked for objects that came or went, and for who else watches.
pub(super) const LOOK_FOR_OTHERS: Duration = Duration::from_millis(200);
/// How long the node may take.
const NODE_WITHIN: Duration = Duration::from_secs(10);

/// Whose objects are watched here, as the node says now and then.
pub(super) struct Charged {
    news: Client,
    group: String,
    charge: Charge,
    asked: Option<Instant>,
}

impl Charged {
    pub(super) fn new(around: &Surroundings) -> Self {
        Self {
            news: Client::new(&around.news, faults::options(NODE_WITHIN)),
            group: around.group.clone(),
            charge: Charge { node: around.node.clone(), inside: Vec::new() },
            asked: None,
        }
    }

    pub(super) fn now(&mut self) -> &Charge {
        if self.asked.is_none_or(|at| at.elapsed() >= LOOK_FOR_OTHERS) {
            // Who is not told watches its own node's objects.
            self.charge.inside =
                NewsStub(&mut self.news).members_in(&self.group).unwrap_or_default();
            self.asked = Some(Instant::now());
        }
        &self.charge
    }
}

/// What the threads share.
#[derive(Clone)]
struct Detecting {
    around: Surroundings,
    /// The node's object that says where its servers are.
    leaders: Option<Reference>,
    detector: Arc<Mutex<PullDetector>>,
}

impl Detecting {
    fn with<R>(&self, work: impl FnOnce(&mut PullDetector) -> R) -> R {
        work(&mut self.detector.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something, and what comes of it, in a thread of its own.
    fn begin(&self, first: PullErrand) {
        let this = self.clone();
        thread::spawn(move || {
            let mut next = Some(first);
            while let Some(errand) = next.take() {
                next = this.go(errand);
            }
        });
    }

    fn go(&self, errand: PullErrand) -> Option<PullErrand> {
        match errand {
            PullErrand::Ask(errand, watched) => {
                let is_alive = self.is_alive(&watched);
                self.with(|detector| detector.answered(errand, is_alive))
            }
            PullErrand::Report(errand) => {
                report(&self.around, &errand.target, true);
                self.with(|detector| detector.told(&errand));
                None
            }
            PullErrand::Answers(errand, watched) => {
                answers(&self.around, &watched);
                self.with(|detector| detector.told(&errand));
                None
            }
        }
    }

    /// Whether it says so, or says anything that only one says who is alive; nothing if there is
    /// nobody to ask.
    fn is_alive(&self, watched: &Watched) -> Option<bool> {
        let object = match &watched.whom {
            Whom::Object(object) => object.clone(),
            Whom::Server(group) => {
                let mut node = Client::new(self.leaders.as_ref()?, faults::options(NODE_WITHIN));
                LeadersStub(&mut node).monitorable(group).ok().filter(|it| !it.is_nil())?
            }
        };
        Some(ask(&object, watched.timeout).unwrap_or(true))
    }
}

/// Asks for ever.
pub(super) fn watch(
    around: Surroundings,
    leaders: Option<Reference>,
    manager: Shared<Manager<Client>>,
) {
    thread::spawn(move || {
        let (mut charged, began) = (Charged::new(&around), Instant::now());
        let detecting = Detecting { around, leaders, detector: Arc::default() };
        let mut looked = None::<Instant>;
        loop {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_FOR_OTHERS) {
                let charge = charged.now();
                // While the manager executes a call, it goes on with what is known.
                if let Ok(manager) = manager.0.try_lock() {
                    let watched = manager.watched(charge);
                    drop(manager);
                    detecting.with(|detector| detector.update(watched, began.elapsed()));
                }
                looked = Some(Instant::now());
            }
            while let Some(errand) = detecting.with(|detector| detector.poll(began.elapsed())) {
                detecting.begin(errand);
            }
            let due = detecting.with(|detector| detector.due());
            let wait = due.map_or(LOOK_FOR_OTHERS, |at| at.saturating_sub(began.elapsed()));
            thread::sleep(wait.clamp(LOOK, LOOK_FOR_OTHERS));
        }
    });
}

/// Whether an object says that it is alive, or there is nobody who says anything; nothing if it
/// answers something else, as one does that cannot be asked.
pub(super) fn ask(object: &Object, timeout: Duration) -> Option<bool> {
    let options = ClientOptions {
        connect_timeout: timeout,
        call_timeout: Some(timeout),
        ..ClientOptions::default()
    };
    let Ok(mut client) = faults::client_of(object, options) else { return Some(false) };
    match PullMonitorableStub(&mut client).is_alive() {
        Ok(is_alive) => Some(is_alive),
        Err(raised) => {
            let is_nobody = matches!(
                raised.kind,
                ExceptionKind::CommFailure
                    | ExceptionKind::NoResponse
                    | ExceptionKind::ObjectNotExist
                    | ExceptionKind::Timeout
                    | ExceptionKind::Transient
            );
            is_nobody.then_some(false)
        }
    }
}

/// The report of an object that is not alive.
pub(super) fn event(domain_id: &str, one: Unanswered) -> StructuredEvent {
    let Unanswered { location, type_id, group, incident } = one;
    let report = Report { domain_id: domain_id.to_owned(), location, type_id, group, incident };
    let mut event = report.to_event();
    let value = Any::new(&true).unwrap_or_default();
    event.filterable_data.push(Property { name: UNANSWERED.to_owned(), value });
    event
}

/// A name that no other report has.
fn incident(node: &str) -> String {
    static REPORTS: AtomicU64 = AtomicU64::new(0);
    let number = REPORTS.fetch_add(1, Ordering::Relaxed);
    format!("{node} object {:x} {:x} {number}", time_t(), std::process::id())
}

/// Tells the manager of an object that is not alive; and by way of it the notifier, unless that
/// knows it.
pub(super) fn report(around: &Surroundings, target: &Target, is_for_notifier: bool) {
    let incident = if is_for_notifier { incident(&around.node) } else { String::new() };
    let what = format!("that an object at {} is not alive", target.location);
    let Target { location, type_id, group } = target.clone();
    let event = event(&around.domain_id, Unanswered { location, type_id, group, incident });
    if let Some(mut faults) = around.client(FAULTS_KEY) {
        insist(&what, || faults::push_fault(&mut faults, &event), || true, thread::sleep);
    }
}

/// Tells the manager that an object is alive that was reported not to be.
fn answers(around: &Surroundings, watched: &Watched) {
    let what = format!("that an object at {} answers again", watched.location);
    if let Some(mut watcher) = around.client(WATCHER_KEY) {
        let tell = || WatcherStub(&mut watcher).answers(&watched.name);
        insist(&what, tell, || true, thread::sleep);
    }
}
