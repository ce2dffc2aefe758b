//! The fault detector of objects (FT-CORBA §23.4): beside each replica of the manager, it asks the
//! objects at its own node whether they are alive, and tells the manager and the notifier that is
//! registered there of those that are not.
//!
//! What it is not: a part of a replica's state; what it tells is ordered, as from any client.
//!
//! Invariants: an object that is slow keeps no other waiting; it is reported once, until it answers
//! again; one that does not know `is_alive` and says so is alive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::{Any, Object};
use quorba_giop::ExceptionKind;
use quorba_idl::cos_notification::{Property, StructuredEvent};
use quorba_idl::ft::{FaultNotifierStub, PullMonitorableStub};
use quorba_manager::{FAULTS_KEY, Manager, UNANSWERED, Watched};
use quorba_notifier::event::Report;
use quorba_orb::{Client, ClientOptions};

use super::faults::{self, Shared, Surroundings};
use super::insist::insist;

/// How long is waited at least before objects are asked that are due.
const LOOK: Duration = Duration::from_millis(5);
/// How often is looked for objects that came or went.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(200);
/// Nobody is asked more often.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Objects that are being asked at a time; others wait.
const ASKED_MAX: usize = 64;
/// How long a notifier may take.
const NOTIFY_WITHIN: Duration = Duration::from_secs(10);

/// What an object stands for: one type or all, one group or all.
pub(super) type Key = (Option<String>, Option<u64>);

/// How far it is with one object.
struct Asked {
    watched: Watched,
    due: Instant,
    is_busy: Arc<AtomicBool>,
    is_reported: Arc<AtomicBool>,
}

/// Asks for ever.
pub(super) fn watch(around: Surroundings, manager: Shared<Manager<Client>>) {
    thread::spawn(move || {
        let mut book: BTreeMap<Key, Asked> = BTreeMap::new();
        let mut notifier = None;
        let mut looked = None::<Instant>;
        loop {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_FOR_OTHERS) {
                // While the manager executes a call, it goes on with what is known.
                if let Ok(manager) = manager.0.try_lock() {
                    update(&mut book, manager.watched(&around.node));
                    notifier = manager.notifier();
                }
                looked = Some(Instant::now());
            }
            let is_busy = |asked: &&Asked| asked.is_busy.load(Ordering::Acquire);
            let mut busy = book.values().filter(is_busy).count();
            for asked in book.values_mut() {
                let is_due = asked.due <= Instant::now() && busy < ASKED_MAX;
                if is_due && !asked.is_busy.swap(true, Ordering::AcqRel) {
                    busy += 1;
                    asked.due = Instant::now() + asked.watched.interval.max(INTERVAL_MIN);
                    begin(&around, asked, notifier.clone());
                }
            }
            let due = book.values().map(|asked| asked.due).min();
            let wait =
                due.map_or(LOOK_FOR_OTHERS, |at| at.saturating_duration_since(Instant::now()));
            thread::sleep(wait.clamp(LOOK, LOOK_FOR_OTHERS));
        }
    });
}

/// Goes on with those that were there already.
fn update(book: &mut BTreeMap<Key, Asked>, watched: Vec<Watched>) {
    let mut before = std::mem::take(book);
    for one in watched {
        let key = (one.type_id.clone(), one.group);
        let asked = match before.remove(&key).filter(|asked| asked.watched.object == one.object) {
            Some(asked) => Asked { watched: one, ..asked },
            None => Asked {
                watched: one,
                due: Instant::now(),
                is_busy: Arc::default(),
                is_reported: Arc::default(),
            },
        };
        book.insert(key, asked);
    }
}

/// Asks one object, in a thread of its own.
fn begin(around: &Surroundings, asked: &Asked, notifier: Option<Object>) {
    let (around, watched) = (around.clone(), asked.watched.clone());
    let (is_busy, is_reported) = (Arc::clone(&asked.is_busy), Arc::clone(&asked.is_reported));
    thread::spawn(move || {
        if is_alive(&watched) {
            is_reported.store(false, Ordering::Release);
        } else if !is_reported.swap(true, Ordering::AcqRel) {
            report(&around, (watched.type_id, watched.group), notifier);
        }
        is_busy.store(false, Ordering::Release);
    });
}

/// Whether it says so, or says anything that only one says who is alive.
fn is_alive(watched: &Watched) -> bool {
    ask(&watched.object, watched.timeout).unwrap_or(true)
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
fn event(around: &Surroundings, (type_id, group): Key) -> StructuredEvent {
    let report = Report {
        domain_id: around.domain_id.clone(),
        location: around.node.clone(),
        type_id,
        group,
        incident: String::new(),
    };
    let mut event = report.to_event();
    let value = Any::new(&true).unwrap_or_default();
    event.filterable_data.push(Property { name: UNANSWERED.to_owned(), value });
    event
}

/// Tells of an object that is not alive.
pub(super) fn report(around: &Surroundings, stands_for: Key, notifier: Option<Object>) {
    let event = event(around, stands_for);
    let what = format!("that an object at {} is not alive", around.node);
    if let Some(mut faults) = around.client(FAULTS_KEY) {
        insist(&what, || faults::push_fault(&mut faults, &event), || true, thread::sleep);
    }
    let options = faults::options(NOTIFY_WITHIN);
    let notifier = notifier.map(|object| faults::client_of(&object, options));
    if let Some(Ok(mut notifier)) = notifier
        && let Err(raised) = FaultNotifierStub(&mut notifier).push_structured_fault(&event)
    {
        eprintln!("the registered fault notifier was not told {what}: {raised}");
    }
}
