//! The fault detector of objects that say by themselves that they live (FaultMonitoringStyle PUSH,
//! FT-CORBA §23.4): beside each replica of the manager, it makes the calls by which is found who is
//! silent, and asks those that somebody else says are dead.
//!
//! What it is not: a part of a replica's state; what it tells is ordered, as from any client. Nor
//! does it decide who is silent: that is [`PushDetector`].
//!
//! Invariant: while the manager executes a call nobody is heard, so nobody is silent either.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::Object;
use quorba_idl::quorba::PushMonitorStub;
use quorba_manager::{Manager, PUSH_KEY, PushDetector, PushErrand};
use quorba_orb::Client;

use super::alive::{self, Charged, LOOK_FOR_OTHERS};
use super::faults::{Shared, Surroundings};

/// How often is looked for what was heard, where somebody is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// What the threads share.
#[derive(Clone)]
struct Detecting {
    around: Surroundings,
    detector: Arc<Mutex<PushDetector>>,
    began: Instant,
}

impl Detecting {
    fn with<R>(&self, work: impl FnOnce(&mut PushDetector, Duration) -> R) -> R {
        let mut detector = self.detector.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut detector, self.began.elapsed())
    }

    /// Does something, and what comes of it, in a thread of its own.
    fn begin(&self, first: PushErrand) {
        let this = self.clone();
        thread::spawn(move || {
            let mut next = Some(first);
            while let Some(errand) = next.take() {
                next = this.go(errand);
            }
        });
    }

    fn go(&self, errand: PushErrand) -> Option<PushErrand> {
        match errand {
            PushErrand::Listen(errand) => {
                let is_through = listen(&self.around);
                self.with(|detector, now| detector.listened(&errand, is_through, now));
                None
            }
            PushErrand::Ask(errand, pushing) => {
                let is_alive = alive::ask(&pushing.object, pushing.timeout);
                self.with(|detector, _| detector.answered(errand, is_alive))
            }
            PushErrand::Report { errand, is_for_notifier } => {
                alive::report(&self.around, &errand.target, is_for_notifier);
                self.with(|detector, _| detector.told(&errand));
                None
            }
        }
    }
}

/// Whether calls get through to the manager; what came before this one is heard when it returns.
fn listen(around: &Surroundings) -> bool {
    let client = around.client(PUSH_KEY);
    client.is_some_and(|mut client| PushMonitorStub(&mut client).alive(&Object::nil()).is_ok())
}

/// Waits for ever.
pub(super) fn watch(around: Surroundings, manager: Shared<Manager<Client>>) {
    thread::spawn(move || {
        let mut charged = Charged::new(&around);
        let detecting = Detecting { around, detector: Arc::default(), began: Instant::now() };
        loop {
            let charge = charged.now();
            let locked = match manager.0.try_lock() {
                Ok(manager) => Some(manager),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut manager) = locked {
                let pushing = manager.pushing(charge);
                drop(manager);
                let errands = detecting.with(|detector, now| detector.attend(pushing, now));
                errands.into_iter().for_each(|errand| detecting.begin(errand));
            }
            let is_waiting = detecting.with(|detector, _| detector.is_waiting());
            thread::sleep(if is_waiting { LOOK } else { LOOK_FOR_OTHERS });
        }
    });
}
