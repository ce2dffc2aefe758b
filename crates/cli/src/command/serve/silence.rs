//! The fault detector of objects that say by themselves that they live (FaultMonitoringStyle PUSH,
//! FT-CORBA §23.4): beside each replica of the manager, it waits for those at its own node, and
//! looks at those that somebody else says are dead.
//!
//! What it is not: a part of a replica's state; what it tells is ordered, as from any client.
//!
//! Invariants: nobody is silent while calls do not get through to the manager, or as long as they
//! take long; who says `is_alive` when it is asked is not reported because others said it is not;
//! an object is reported once, until it is heard again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::Object;
use quorba_idl::quorba::PushMonitorStub;
use quorba_manager::{Manager, PUSH_KEY, Pushing};
use quorba_orb::Client;

use super::alive::{self, Key};
use super::faults::{Shared, Surroundings};

/// How often is looked for what was heard, where nobody is waited for.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(200);
/// The same where somebody is.
const LOOK: Duration = Duration::from_millis(20);
/// How long a call through the order may take, and then is waited once more: at least, and at most.
const GRACE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What came of a look at one that is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Looked {
    /// It may be that nobody can be heard.
    Unheard,
    /// Others are heard.
    Silent,
}

/// How far it is with one object.
struct Waited {
    pushing: Pushing,
    /// When it was heard, or could have been.
    since: Instant,
    is_accused: bool,
    is_reported: Arc<AtomicBool>,
    /// Somebody looks at it.
    is_busy: Arc<AtomicBool>,
    looked: Arc<Mutex<Option<Looked>>>,
}

impl Waited {
    fn new(pushing: Pushing) -> Self {
        Self {
            since: Instant::now(),
            is_accused: false,
            // A process before this one may have reported it.
            is_reported: Arc::new(pushing.is_reported.into()),
            pushing,
            is_busy: Arc::default(),
            looked: Arc::default(),
        }
    }

    /// Does something in a thread of its own, if nothing is being done.
    fn begin(&self, work: impl FnOnce() + Send + 'static) -> bool {
        if self.is_busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        let is_busy = Arc::clone(&self.is_busy);
        thread::spawn(move || {
            work();
            is_busy.store(false, Ordering::Release);
        });
        true
    }

    fn report(&self, around: &Surroundings) {
        let (around, is_reported) = (around.clone(), Arc::clone(&self.is_reported));
        let stands_for = (self.pushing.type_id.clone(), self.pushing.group);
        self.begin(move || {
            if !is_reported.swap(true, Ordering::AcqRel) {
                alive::report(&around, stands_for, true);
            }
        });
    }

    /// What is to be done about it now.
    fn attend(&mut self, around: &Surroundings) {
        if std::mem::take(&mut self.pushing.is_heard) {
            self.since = Instant::now();
            self.is_reported.store(false, Ordering::Release);
        }
        self.is_accused |= std::mem::take(&mut self.pushing.is_accused);
        if self.is_accused && self.look_at(around) {
            self.is_accused = false;
        }
        let Some(silence) = self.pushing.silence else { return };
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner).take();
        if looked == Some(Looked::Unheard) {
            self.since = Instant::now();
        }
        if self.since.elapsed() <= silence || self.is_reported.load(Ordering::Acquire) {
            return;
        }
        if looked == Some(Looked::Silent) {
            self.report(around);
            return;
        }
        let (around, grace) = (around.clone(), (silence / 4).clamp(GRACE.0, GRACE.1));
        let looked = Arc::clone(&self.looked);
        self.begin(move || {
            let found = listen(&around, grace);
            *looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        });
    }

    /// Looks at one that somebody says is dead.
    fn look_at(&self, around: &Surroundings) -> bool {
        let (around, pushing) = (around.clone(), self.pushing.clone());
        let is_reported = Arc::clone(&self.is_reported);
        self.begin(move || {
            let is_dead = match alive::ask(&pushing.object, pushing.timeout) {
                Some(is_alive) => !is_alive,
                // It cannot be asked. If it is to say that it lives, its silence counts.
                None => pushing.silence.is_none(),
            };
            if is_dead && !is_reported.swap(true, Ordering::AcqRel) {
                // The notifier knows it: from there it comes.
                alive::report(&around, (pushing.type_id, pushing.group), false);
                is_reported.store(pushing.silence.is_some(), Ordering::Release);
            }
        })
    }
}

/// Whether calls get through to the manager; what came before this one is heard when it returns.
fn listen(around: &Surroundings, grace: Duration) -> Looked {
    let began = Instant::now();
    let is_through = around
        .client(PUSH_KEY)
        .is_some_and(|mut client| PushMonitorStub(&mut client).alive(&Object::nil()).is_ok());
    if !is_through || began.elapsed() > grace {
        return Looked::Unheard;
    }
    // Others wait for their gateways longer than this one did.
    thread::sleep(grace);
    Looked::Silent
}

/// Goes on with those that were there already.
fn update(book: &mut BTreeMap<Key, Waited>, pushing: Vec<Pushing>) {
    let mut before = std::mem::take(book);
    for one in pushing {
        let key = (one.type_id.clone(), one.group);
        let same = |waited: &Waited| waited.pushing.object == one.object;
        let waited = match before.remove(&key).filter(same) {
            Some(waited) => Waited { pushing: one, ..waited },
            None => Waited::new(one),
        };
        book.insert(key, waited);
    }
}

/// Waits for ever.
pub(super) fn watch(around: Surroundings, manager: Shared<Manager<Client>>) {
    thread::spawn(move || {
        let mut book: BTreeMap<Key, Waited> = BTreeMap::new();
        loop {
            // While the manager executes a call, nobody is heard, so nobody is silent either.
            let locked = match manager.0.try_lock() {
                Ok(manager) => Some(manager),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut manager) = locked {
                let pushing = manager.pushing(&around.node);
                drop(manager);
                update(&mut book, pushing);
                for waited in book.values_mut() {
                    waited.attend(&around);
                }
            }
            thread::sleep(if book.is_empty() { LOOK_FOR_OTHERS } else { LOOK });
        }
    });
}
