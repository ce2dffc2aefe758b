//! The fault detector of objects (FT-CORBA §23.4): beside each replica of the manager, it asks the
//! objects at its own node whether they are alive, and tells the manager of those that are not. By
//! way of the manager the notifier hears of them (`unanswered`).
//!
//! What it is not: a part of a replica's state; what it tells is ordered, as from any client.
//!
//! Invariants: an object that is slow keeps no other waiting; it is reported once, until it answers
//! again; one that does not know `is_alive` and says so is alive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::{Any, Object};
use quorba_giop::ExceptionKind;
use quorba_idl::cos_notification::{Property, StructuredEvent};
use quorba_idl::ft::PullMonitorableStub;
use quorba_idl::quorba::WatcherStub;
use quorba_manager::{FAULTS_KEY, Manager, UNANSWERED, Unanswered, WATCHER_KEY, Watched};
use quorba_notifier::event::Report;
use quorba_orb::{Client, ClientOptions, time_t};

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
        let mut looked = None::<Instant>;
        loop {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_FOR_OTHERS) {
                // While the manager executes a call, it goes on with what is known.
                if let Ok(manager) = manager.0.try_lock() {
                    update(&mut book, manager.watched(&around.node));
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
                    begin(&around, asked);
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
                due: Instant::now(),
                is_busy: Arc::default(),
                // A process before this one may have reported it.
                is_reported: Arc::new(one.is_reported.into()),
                watched: one,
            },
        };
        book.insert(key, asked);
    }
}

/// Asks one object, in a thread of its own.
fn begin(around: &Surroundings, asked: &Asked) {
    let (around, watched) = (around.clone(), asked.watched.clone());
    let (is_busy, is_reported) = (Arc::clone(&asked.is_busy), Arc::clone(&asked.is_reported));
    thread::spawn(move || {
        if is_alive(&watched) {
            if is_reported.swap(false, Ordering::AcqRel) {
                answers(&around, &watched.object);
            }
        } else if !is_reported.swap(true, Ordering::AcqRel) {
            report(&around, (watched.type_id, watched.group), true);
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
pub(super) fn report(around: &Surroundings, (type_id, group): Key, is_for_notifier: bool) {
    let incident = if is_for_notifier { incident(&around.node) } else { String::new() };
    let location = around.node.clone();
    let event = event(&around.domain_id, Unanswered { location, type_id, group, incident });
    let what = format!("that an object at {} is not alive", around.node);
    if let Some(mut faults) = around.client(FAULTS_KEY) {
        insist(&what, || faults::push_fault(&mut faults, &event), || true, thread::sleep);
    }
}

/// Tells the manager that an object is alive that was reported not to be.
fn answers(around: &Surroundings, object: &Object) {
    let what = format!("that an object at {} answers again", around.node);
    if let Some(mut watcher) = around.client(WATCHER_KEY) {
        let tell = || WatcherStub(&mut watcher).answers(object);
        insist(&what, tell, || true, thread::sleep);
    }
}
