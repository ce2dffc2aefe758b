//! Beside each replica of the fault notifier: what others than nodes have reported there is passed
//! on to the replication manager of the domain, if it has one.
//!
//! What it is not: a judge of it; the manager's detectors look at who is said to be dead.
//!
//! Invariants: reports are passed on in their order, by the first replica that is in; it is said
//! how far they are, so that another one can go on; one may be passed on twice.

use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use quorba_config::Service;
use quorba_corba::giop::SystemException;
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::quorba::{FaultDeliveryStub, LeadersStub, NewsStub};
use quorba_manager::FAULTS_KEY;
use quorba_notifier::{Courier, DELIVERY_KEY, Errand, MANAGER, NotTaken, Notifier};
use quorba_orb::{Client, Reference};

use super::faults::{self, AGAIN, BATCH, Shared, Surroundings};
use super::insist::is_passing;

/// How often is looked for reports that wait.
const LOOK: Duration = Duration::from_millis(5);
/// How long the node may take.
const NODE_WITHIN: Duration = Duration::from_secs(10);

/// Passes on for ever.
pub(super) fn pass_on(around: Surroundings, leaders: Reference, notifier: Shared<Notifier>) {
    thread::spawn(move || {
        let mut news = Client::new(&around.news, faults::options(NODE_WITHIN));
        let mut leaders = Client::new(&leaders, faults::options(NODE_WITHIN));
        let (mut courier, began) = (Courier::default(), Instant::now());
        loop {
            thread::sleep(LOOK);
            let lock = notifier.0.lock().unwrap_or_else(PoisonError::into_inner);
            let is_something = lock.for_manager(0, 1).is_some();
            drop(lock);
            if !is_something {
                continue;
            }
            let members = NewsStub(&mut news).members_in(&around.group);
            let is_first = members.is_ok_and(|all| all.first() == Some(&around.node));
            if !is_first {
                courier.follow_another();
                thread::sleep(AGAIN);
                continue;
            }
            let lock = notifier.0.lock().unwrap_or_else(PoisonError::into_inner);
            let errand = courier.look_for_manager(&lock, BATCH, began.elapsed());
            drop(lock);
            let mut next = errand;
            while let Some(errand) = next.take() {
                next = go(&around, &mut leaders, &notifier, (&mut courier, began), errand);
            }
        }
    });
}

/// Does one thing; what is to be done next.
fn go(
    around: &Surroundings,
    leaders: &mut Client,
    notifier: &Shared<Notifier>,
    (courier, began): (&mut Courier, Instant),
    errand: Errand,
) -> Option<Errand> {
    match errand {
        Errand::Push(pending) => {
            let text = String::from("the manager cannot be reached");
            let is_told = tell(around, leaders, &pending.events);
            let outcome = is_told.then_some(()).ok_or(NotTaken { text, is_final: false });
            let lock = notifier.0.lock().unwrap_or_else(PoisonError::into_inner);
            courier.pushed(&lock, (MANAGER, pending.last), outcome, began.elapsed())
        }
        Errand::Delivered { last, .. } => {
            let is_heard = around.client(DELIVERY_KEY).is_some_and(|mut client| {
                FaultDeliveryStub(&mut client).delivered(&MANAGER, &last).is_ok()
            });
            courier.said(MANAGER, is_heard, began.elapsed());
            None
        }
        // The manager never is cut off.
        Errand::CutOff { .. } | Errand::Part { .. } | Errand::Parted { .. } => None,
    }
}

/// Whether the manager has heard everything, or never will.
fn tell(around: &Surroundings, leaders: &mut Client, events: &[StructuredEvent]) -> bool {
    let service = Service::ReplicationManager.as_str().to_owned();
    let gateway = match LeadersStub(leaders).gateway(&service) {
        Ok(gateway) if gateway.is_empty() => return true,
        Ok(gateway) => gateway,
        Err(_) => return false,
    };
    let manager = Surroundings { gateway, ..around.clone() };
    let Some(mut client) = manager.client(FAULTS_KEY) else { return true };
    events.iter().all(|event| match faults::push_fault(&mut client, event) {
        Ok(()) => true,
        Err(raised) if is_passing(raised.kind) => false,
        Err(raised) => {
            left_out(raised);
            true
        }
    })
}

fn left_out(raised: SystemException) {
    eprintln!(
        "the replication manager does not take a report that was pushed to the fault notifier: \
         {raised}; if an application made it, let it have the form of FT-CORBA §23.4.5.1"
    );
}
