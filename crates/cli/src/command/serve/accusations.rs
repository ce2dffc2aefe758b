//! Beside each replica of the fault notifier: what others than nodes have reported there is passed
//! on to the replication manager of the domain, if it has one.
//!
//! What it is not: a judge of it; the manager's detectors look at who is said to be dead.
//!
//! Invariants: reports are passed on in their order, by the first replica that is in; it is said
//! how far they are, so that another one can go on; one may be passed on twice.

use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use quorba_config::Service;
use quorba_corba::giop::SystemException;
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::quorba::{FaultDeliveryStub, LeadersStub, NewsStub};
use quorba_manager::FAULTS_KEY;
use quorba_notifier::{DELIVERY_KEY, MANAGER, Notifier};
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
        let mut told = 0;
        loop {
            thread::sleep(LOOK);
            let lock = notifier.0.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = lock.for_manager(BATCH);
            drop(lock);
            let Some((last, events)) = waiting else { continue };
            let members = NewsStub(&mut news).members_in(&around.group);
            let is_first = members.is_ok_and(|all| all.first() == Some(&around.node));
            let is_told = is_first && (last <= told || tell(&around, &mut leaders, &events));
            if is_told {
                told = told.max(last);
            }
            let is_known = is_told
                && around.client(DELIVERY_KEY).is_some_and(|mut client| {
                    FaultDeliveryStub(&mut client).delivered(&MANAGER, &last).is_ok()
                });
            if !is_known {
                thread::sleep(AGAIN);
            }
        }
    });
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
