//! Events for consumers that are told numbers wait until the group holds them.
//!
//! A replica executes a request when it is delivered, and only the reply waits until a majority
//! holds it. So the member that leads may have events that nobody else has, and that are gone with
//! it; the next leader then gives their numbers to other events. A consumer that leaves out what
//! numbers it has seen would lose those. So each such push waits for the reply to an ordered call
//! that was made behind it: what was ordered before that call is held then, too.
//!
//! Invariants: one such call is under way at a time, for all that wait; what cannot be held while
//! this member leads is not pushed, and its outcome is "failed".

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use quorba_corba::giop::SystemException;
use quorba_events::Outcome;
use quorba_idl::quorba_events::DecisionsStub;

use super::super::insist::{Ended, insist};
use super::pool::{Job, Pool, Work};
use super::{Core, Surroundings, decide};

/// See the module's text.
#[derive(Clone, Default)]
pub(super) struct Fence(Arc<(Mutex<Vec<Job>>, Condvar)>);

impl Fence {
    /// A push that may leave when its events are held.
    pub(super) fn give(&self, job: Job) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        self.0.1.notify_one();
    }

    /// All that wait.
    fn wait(&self) -> Vec<Job> {
        let waiting = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.0.1.wait_while(waiting, |waiting| waiting.is_empty());
        std::mem::take(&mut *waiting.unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) fn start(around: &Surroundings, core: &Arc<Core>, pool: &Pool) {
    let (waits, core, pool) = (pool.fence().clone(), Arc::clone(core), pool.clone());
    let client = decide::client(around, "events-held", decide::WITHIN);
    thread::spawn(move || {
        let Some(mut client) = client else { return };
        loop {
            let jobs = waits.wait();
            // Any ordered call will do; this one changes nothing but the time of a channel.
            let channel = jobs[0].channel.clone();
            let mut call = || DecisionsStub(&mut client).look(&channel);
            pass(&core, jobs, &mut call, thread::sleep, |job| pool.give(job));
        }
    });
}

/// Lets pushes go when `call` was answered.
fn pass(
    core: &Core,
    jobs: Vec<Job>,
    call: &mut dyn FnMut() -> Result<(), SystemException>,
    wait: fn(Duration),
    mut go: impl FnMut(Job),
) {
    let leads = || core.lock().leads();
    let ended = insist(&"a check that the group holds numbered events", call, leads, wait);
    let mut service = core.lock();
    let is_held = ended == Ended::Heard && service.leads();
    for job in jobs {
        let Work::Push(push) = &job.work else { continue };
        if !is_held {
            service.pushed(&job.channel, push.consumer, push.ticket, Outcome::Failed);
        } else if service.is_under_way(&job.channel, push) {
            go(job);
        }
        // Else this member has begun to lead anew, and the push with it.
    }
    drop(service);
    core.wake();
}

#[cfg(test)]
mod tests {
    use super::super::tests::core;
    use super::*;
    use quorba_corba::{Any, Home, Local, Object, raise_system};
    use quorba_events::EventService;
    use quorba_giop::ExceptionKind;
    use quorba_idl::cos_event_channel_admin::{
        ConsumerAdminStub, ProxyPushConsumerStub, ProxyPushSupplierStub, SupplierAdminStub,
    };

    fn at<'a>(service: &'a mut EventService, key: &str) -> Local<'a> {
        Local::new(service, key.as_bytes())
    }

    /// A service that leads, and a push to a consumer that waits.
    fn waiting() -> (Core, Job) {
        let core = core(&["a"]);
        let mut service = core.lock();
        ConsumerAdminStub(&mut at(&mut service, "Events/a/consumers"))
            .obtain_push_supplier()
            .expect("proxy 1");
        let home = Home { addresses: vec![("there".to_owned(), 1)], prefix: Vec::new() };
        let peer = home.object("IDL:peer:1.0", b"peer");
        let mut proxy = at(&mut service, "Unordered/a/c-1");
        ProxyPushSupplierStub(&mut proxy).connect_push_consumer(&peer).expect("connected");
        SupplierAdminStub(&mut at(&mut service, "Events/a/suppliers"))
            .obtain_push_consumer()
            .expect("proxy 2");
        let mut proxy = at(&mut service, "Unordered/a/s-2");
        ProxyPushConsumerStub(&mut proxy).connect_push_supplier(&Object::nil()).expect("connected");
        let data = Any::new(&1_u32).expect("a value");
        ProxyPushConsumerStub(&mut at(&mut service, "Unordered/a/s-2")).push(&data).expect("taken");
        let (channel, delivery) = service.poll_push().expect("an event");
        drop(service);
        (core, Job { channel, work: Work::Push(delivery) })
    }

    /// How often the consumer's event could not be given.
    fn failed(core: &Core) -> u64 {
        let service = core.lock();
        let mut consumers = service.channel("a").expect("it is there").consumers();
        consumers.next().expect("a consumer").counters.failed
    }

    #[test]
    fn a_push_waits_until_the_group_has_answered() {
        let (core, job) = waiting();
        let mut calls = 0;
        let mut gone = 0;
        let mut call = || {
            calls += 1;
            if calls < 3 { Err(raise_system(ExceptionKind::Transient)) } else { Ok(()) }
        };
        pass(&core, vec![job], &mut call, |_| {}, |_| gone += 1);
        assert_eq!((calls, gone, failed(&core)), (3, 1, 0));
    }

    #[test]
    fn what_may_not_be_held_is_not_pushed() {
        for is_refused in [true, false] {
            let (core, job) = waiting();
            let mut call = || {
                if is_refused {
                    return Err(raise_system(ExceptionKind::NoPermission));
                }
                core.lock().follow_another();
                Err(raise_system(ExceptionKind::Transient))
            };
            pass(&core, vec![job], &mut call, |_| {}, |_| panic!("nobody else may have it"));
            if is_refused {
                assert_eq!(failed(&core), 1, "it is tried again");
            }
        }
    }

    #[test]
    fn a_push_of_a_term_that_is_over_is_made_by_the_next_one() {
        let (core, job) = waiting();
        let mut call = || {
            let mut service = core.lock();
            service.follow_another();
            service.lead();
            Ok(())
        };
        pass(&core, vec![job], &mut call, |_| {}, |_| panic!("it would be pushed twice"));
    }
}
