//! Pulling a supplier once.
//!
//! Some suppliers have `pull` only, which answers when there is an event. It is called where
//! `try_pull` is not there, and no thread waits for it: its reply is looked for whenever the
//! channel pulls again, and until then the supplier has nothing.
//!
//! Invariant: one call is under way to a supplier at a time.

use std::time::Duration;

use quorba_corba::{Answer, Any, Arguments, Transport, raise_system};
use quorba_events::Outcome;
use quorba_giop::{ExceptionKind, SystemException};
use quorba_idl::cos_event_comm::PullSupplierStub;
use quorba_idl::cos_event_comm::pull_supplier::{PullError, TryPullError};
use quorba_orb::Client;

/// How long an event may take that the supplier has already.
const AT_ONCE: Duration = Duration::from_millis(5);

/// What the supplier gives.
pub(super) fn pull(client: &mut Client) -> Result<Option<Any>, Outcome> {
    let mut within = Duration::ZERO;
    if !client.is_called() {
        match PullSupplierStub(&mut *client).try_pull() {
            Ok((data, is_there)) => return Ok(is_there.then_some(data)),
            Err(TryPullError::Disconnected(_)) => return Err(Outcome::Gone),
            Err(TryPullError::System(raised)) if !is_missing(raised.kind) => {
                return Err(Outcome::of(&raised));
            }
            Err(TryPullError::System(_)) => {}
        }
        client.call_later("pull", &|_| {}).map_err(|raised| Outcome::of(&raised))?;
        within = AT_ONCE;
    }
    look(client, within)
}

/// What a supplier gives that was called before, and is not called again.
pub(super) fn late(client: &mut Client) -> Result<Option<Any>, Outcome> {
    look(client, Duration::ZERO)
}

fn look(client: &mut Client, within: Duration) -> Result<Option<Any>, Outcome> {
    let Some(answer) = client.look_for_reply(within) else { return Ok(None) };
    match PullSupplierStub(&mut Came(Some(answer))).pull() {
        Ok(data) => Ok(Some(data)),
        Err(PullError::Disconnected(_)) => Err(Outcome::Gone),
        Err(PullError::System(raised)) => Err(Outcome::of(&raised)),
    }
}

/// Whether that says that there is no such operation.
const fn is_missing(kind: ExceptionKind) -> bool {
    matches!(kind, ExceptionKind::NoImplement | ExceptionKind::BadOperation)
}

/// A reply that has come, for a stub to read.
struct Came(Option<Result<Answer, SystemException>>);

impl Transport for Came {
    fn invoke(&mut self, _: &str, _: Arguments<'_>) -> Result<Answer, SystemException> {
        self.0.take().unwrap_or(Err(raise_system(ExceptionKind::Internal)))
    }

    fn send(&mut self, _: &str, _: Arguments<'_>) -> Result<(), SystemException> {
        Err(raise_system(ExceptionKind::Internal))
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::Class;
    use super::super::pool::{Job, Pool, Work};
    use super::super::tests::{core, wait_until};
    use super::super::turns::Turns;
    use super::*;
    use quorba_corba::{Call, Home, Interface, Local, Object, Objects};
    use quorba_events::{Outgoing, Proposal};
    use quorba_idl::cos_event_channel_admin::{
        ConsumerAdminStub, ProxyPullConsumerStub, ProxyPullSupplierStub, SupplierAdminStub,
    };
    use quorba_idl::cos_event_comm::{self, Disconnected};
    use quorba_idl::quorba_events::ChannelsStub;
    use quorba_orb::{ClientOptions, Reference, Server, ServerOptions};
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};

    /// A supplier whose `pull` answers when it has an event; it disconnects behind the last one.
    #[derive(Clone)]
    struct Source {
        events: Arc<Mutex<Receiver<u32>>>,
        /// Calls of `pull`, and those of `try_pull`.
        pulls: Arc<AtomicUsize>,
        tries: Arc<AtomicUsize>,
        lacks: ExceptionKind,
    }

    impl cos_event_comm::PullSupplier for Source {
        fn pull(&mut self) -> Result<Any, PullError> {
            self.pulls.fetch_add(1, Ordering::SeqCst);
            let next = self.events.lock().expect("no holder panics").recv();
            let number = next.map_err(|_| Disconnected {})?;
            Ok(Any::new(&number).expect("a value"))
        }

        fn try_pull(&mut self) -> Result<(Any, bool), TryPullError> {
            self.tries.fetch_add(1, Ordering::SeqCst);
            Err(raise_system(self.lacks).into())
        }

        fn disconnect_pull_supplier(&mut self) -> Result<(), SystemException> {
            Ok(())
        }
    }

    impl Objects for Source {
        fn interface(&self, _: &[u8]) -> Option<Interface> {
            Some(cos_event_comm::PULL_SUPPLIER)
        }

        fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
            cos_event_comm::dispatch_pull_supplier(self, call)
        }
    }

    #[test]
    fn a_supplier_that_has_only_pull_gives_its_events_and_nobody_waits_for_it() {
        for lacks in [ExceptionKind::NoImplement, ExceptionKind::BadOperation] {
            let (give, events) = channel();
            let events = Arc::new(Mutex::new(events));
            let (pulls, tries) = Default::default();
            let source = Source { events, pulls, tries, lacks };
            let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
            let server = server.expect("a port").with_objects(source.clone());
            let server = server.start().expect("threads");
            let reference = Reference::direct(server.address(), b"source");
            let mut client = Client::new(&reference, ClientOptions::default());
            for number in 1..=3_u32 {
                for _ in 0..3 {
                    assert_eq!(pull(&mut client), Ok(None), "nothing yet");
                }
                give.send(number).expect("it waits");
                let mut given = None;
                wait_until("the event comes", || {
                    given = pull(&mut client).expect("it answers");
                    given.is_some()
                });
                let number = number as usize;
                assert_eq!(given.expect("an event").get::<u32>(), Some(number as u32));
                assert_eq!(source.pulls.load(Ordering::SeqCst), number, "one at a time");
                assert_eq!(source.tries.load(Ordering::SeqCst), number);
            }
            assert_eq!(pull(&mut client), Ok(None));
            drop(give);
            wait_until("it is disconnected", || pull(&mut client) == Err(Outcome::Gone));
        }
    }

    /// A supplier that is called while this member leads gives its next event to nobody else.
    #[test]
    fn what_a_supplier_answers_when_another_member_leads_is_an_event_all_the_same() {
        let (give, events) = channel();
        let events = Arc::new(Mutex::new(events));
        let (pulls, tries) = Default::default();
        let source = Source { events, pulls, tries, lacks: ExceptionKind::NoImplement };
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = server.expect("a port").with_objects(source.clone());
        let server = server.start().expect("threads");
        let (host, port) = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![(host, port)], prefix: Vec::new() };
        let core = Arc::new(core(&[]));
        let pool = Pool::new(&core, Class::default(), Turns::default());
        let mut service = core.lock();
        let mut all = Local::new(&mut *service, quorba_events::SERVICE_KEY.as_bytes());
        ChannelsStub(&mut all).create(&"a".to_owned(), &"reliable=true".to_owned()).expect("made");
        let mut admin = Local::new(&mut *service, b"Events/a/consumers");
        ConsumerAdminStub(&mut admin).obtain_pull_supplier().expect("proxy 1");
        let mut proxy = Local::new(&mut *service, b"Events/a/c-1");
        ProxyPullSupplierStub(&mut proxy).connect_pull_consumer(&Object::nil()).expect("connected");
        let mut admin = Local::new(&mut *service, b"Events/a/suppliers");
        SupplierAdminStub(&mut admin).obtain_pull_consumer().expect("proxy 2");
        let mut proxy = Local::new(&mut *service, b"Events/a/s-2");
        let object = home.object("IDL:omg.org/CosEventComm/PullSupplier:1.0", b"source");
        ProxyPullConsumerStub(&mut proxy).connect_pull_supplier(&object).expect("connected");
        let asked = std::iter::from_fn(|| service.poll()).find_map(|(channel, it)| match it {
            Outgoing::Pull { supplier, ticket, to } => {
                Some(Job { channel, work: Work::Pull(supplier, ticket, to) })
            }
            _ => None,
        });
        drop(service);
        pool.give(asked.expect("it is asked"));
        wait_until("it is called", || source.pulls.load(Ordering::SeqCst) == 1 && pool.kept() == 1);
        core.lock().follow_another();
        give.send(7).expect("it waits");
        wait_until("the event is to be ordered", || {
            pool.look_for_late();
            let mut service = core.lock();
            std::iter::from_fn(|| service.poll()).any(|(_, it)| {
                matches!(it, Outgoing::Propose(Proposal::Pulled { supplier: 2, .. }))
            })
        });
        assert_eq!(source.pulls.load(Ordering::SeqCst), 1, "it is not called again");
    }
}
