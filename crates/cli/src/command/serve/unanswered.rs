//! Beside each replica of the replication manager: what it knows of objects that are not alive is
//! passed on to the fault notifier, the registered one, or else that of the domain.
//!
//! What it is not: a detector; what there is to tell waits in the manager's state.
//!
//! Invariants: the first replica that is in tells, in the order of the reports, and each until it
//! was heard or never will be ([`insist`]); it says what it has told, so that another one can go
//! on. A report that two of them tell is recognised by its incident, and one that is told twice by
//! its FT_REQUEST, too.

use std::cell::RefCell;
use std::sync::TryLockError;
use std::thread;
use std::time::Duration;

use quorba_config::Service;
use quorba_corba::giop::SystemException;
use quorba_corba::raise_system;
use quorba_giop::ExceptionKind;
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::ft::FaultNotifierStub;
use quorba_idl::quorba::{LeadersStub, NewsStub, WatcherStub};
use quorba_manager::{Manager, Unanswered, WATCHER_KEY};
use quorba_notifier::NOTIFIER_KEY;
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::alive;
use super::faults::{self, AGAIN, Shared, Surroundings};
use super::insist::{Ended, insist};

/// How often is looked for what waits.
const LOOK: Duration = Duration::from_millis(2);
/// How long the node may take, and a notifier.
const WITHIN: Duration = Duration::from_secs(10);
/// So much is told before it is said.
const BATCH: usize = 64;

/// What this process has for all this.
struct Teller {
    around: Surroundings,
    news: Client,
    leaders: Client,
    manager: Shared<Manager<Client>>,
}

/// Passes on for ever.
pub(super) fn pass_on(around: Surroundings, leaders: &Reference, manager: Shared<Manager<Client>>) {
    let news = Client::new(&around.news, faults::options(WITHIN));
    let leaders = Client::new(leaders, faults::options(WITHIN));
    let mut teller = Teller { around, news, leaders, manager };
    thread::spawn(move || {
        // What this process has told, and its replica may not have heard.
        let mut told: Vec<String> = Vec::new();
        loop {
            thread::sleep(LOOK);
            // While the manager executes a call, the next look is as good.
            let waiting = teller.with(|manager| manager.for_notifier(BATCH));
            let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else { continue };
            if !teller.leads() {
                thread::sleep(AGAIN);
                continue;
            }
            told.retain(|incident| waiting.iter().any(|one| one.incident == *incident));
            if told.len() == waiting.len() {
                thread::sleep(AGAIN);
            }
            for one in waiting {
                let incident = one.incident.clone();
                if told.contains(&incident) {
                    continue;
                }
                if teller.tell(one) == Ended::Unwanted {
                    break;
                }
                told.push(incident);
            }
            teller.say(&told);
        }
    });
}

impl Teller {
    fn with<R>(&self, look: impl FnOnce(&Manager<Client>) -> R) -> Option<R> {
        match self.manager.0.try_lock() {
            Ok(manager) => Some(look(&manager)),
            Err(TryLockError::Poisoned(poisoned)) => Some(look(&poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn leads(&mut self) -> bool {
        let members = NewsStub(&mut self.news).members_in(&self.around.group);
        members.is_ok_and(|all| all.first() == Some(&self.around.node))
    }

    /// Tells whoever is the notifier by then, as long as this replica is the first one.
    fn tell(&mut self, one: Unanswered) -> Ended {
        let what = format!("that an object at {} is not alive", one.location);
        let event = alive::event(&self.around.domain_id, one);
        let repeat = Some(Repeat::new("replication-manager", 0));
        let options = ClientOptions { repeat, ..faults::options(WITHIN) };
        let teller = RefCell::new(self);
        let call = || teller.borrow_mut().tell_once(&event, &options);
        insist(&what, call, || teller.borrow_mut().leads(), thread::sleep)
    }

    /// Each try is the same call.
    fn tell_once(
        &mut self,
        event: &StructuredEvent,
        options: &ClientOptions,
    ) -> Result<(), SystemException> {
        let registered = self.with(Manager::registered_notifier);
        let client = match registered.ok_or(raise_system(ExceptionKind::Transient))? {
            Some(object) => faults::client_of(&object, options.clone()),
            None => {
                let service = Service::FaultNotifier.as_str().to_owned();
                let gateway = LeadersStub(&mut self.leaders).gateway(&service)?;
                if gateway.is_empty() {
                    // There is none, and nobody to tell.
                    return Ok(());
                }
                let text = format!("corbaloc:iiop:1.2@{gateway}/{NOTIFIER_KEY}");
                let reference = Reference::parse(&text).map_err(|error| error.to_string());
                reference.map(|it| Client::new(&it, options.clone()))
            }
        };
        let mut client = client.map_err(|_| raise_system(ExceptionKind::InvObjref))?;
        FaultNotifierStub(&mut client).push_structured_fault(event)
    }

    /// Tells the group what the notifier was told; if nobody hears it, it is said again.
    fn say(&self, told: &Vec<String>) {
        if let Some(mut watcher) = self.around.client(WATCHER_KEY) {
            let _unheard = WatcherStub(&mut watcher).told(told);
        }
    }
}
