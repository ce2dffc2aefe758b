//! A supplier and a consumer of a channel, both in this program: by one clock.
//!
//! Invariant: an event's latency is from before its push begins until the consumer has it.

use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Home, Interface, Object, Objects};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPushConsumerStub, ProxyPushSupplierStub,
    SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_orb::{Client, ClientOptions, Reference, RunningServer, Server, ServerOptions};

use super::stand::Stand;

/// Octets of an event's text.
const EVENT_LEN: usize = 1_000;
/// Its first octets are its number.
const NUMBER_LEN: usize = 10;
const WITHIN: Duration = Duration::from_secs(30);
/// An event that was taken and has not come then is lost.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// Before a call is made again that nobody could take yet.
const AGAIN: Duration = Duration::from_micros(200);
const KEY: &[u8] = b"consumer";

struct Consumer(Sender<(u64, Instant)>);

impl PushConsumer for Consumer {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        let at = Instant::now();
        let text = data.get::<String>().unwrap_or_default();
        let number = text.get(..NUMBER_LEN).and_then(|number| number.parse().ok());
        let told = number.is_some_and(|number| self.0.send((number, at)).is_ok());
        if told { Ok(()) } else { Err(cos_event_comm::Disconnected {}.into()) }
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Objects for Consumer {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        (key == KEY).then_some(cos_event_comm::PUSH_CONSUMER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        cos_event_comm::dispatch_push_consumer(self, call)
    }
}

/// Both ends of a channel.
pub(super) struct Ends {
    supplier: Supplier,
    came: Receiver<(u64, Instant)>,
    _consumer: RunningServer,
}

/// Who pushes.
struct Supplier {
    proxy: Client,
    next: u64,
}

impl Supplier {
    /// Pushes until it was taken: its number, and how many attempts failed.
    fn push(&mut self) -> Result<(u64, u32), String> {
        let number = self.next;
        self.next += 1;
        let text = format!("{number:0>NUMBER_LEN$}{:x>1$}", "", EVENT_LEN - NUMBER_LEN);
        let data = Any::new(&text).ok_or("a text without a zero")?;
        let mut attempts = 0;
        insist(|| {
            attempts += 1;
            ProxyPushConsumerStub(&mut self.proxy).push(&data)
        })?;
        Ok((number, attempts - 1))
    }
}

/// Calls until it is answered: while another member begins to lead, it may be told to come again.
fn insist<T, E: std::fmt::Debug>(mut call: impl FnMut() -> Result<T, E>) -> Result<T, String> {
    let deadline = Instant::now() + WITHIN;
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= deadline => return Err(format!("{error:?}")),
            Err(_) => thread::sleep(AGAIN),
        }
    }
}

impl Ends {
    /// Connects both. `moves_on`: the supplier does not connect again to who has ended.
    pub(super) fn connect(stand: &Stand, moves_on: bool) -> Result<Self, String> {
        // Like an ORB that knows nothing of it: no call has a name.
        let options = || ClientOptions {
            call_timeout: Some(WITHIN),
            avoids_ended: moves_on,
            ..ClientOptions::default()
        };
        let way = |object: &Object| {
            let reference = Reference::from_ior(&object.0).map_err(|error| error.to_string())?;
            Ok::<_, String>(Client::new(&reference, options()))
        };
        let reference = Reference::parse(&stand.channel).map_err(|error| error.to_string())?;
        let mut channel_client = Client::new(&reference, options());
        let failed = |error: std::io::Error| format!("no consumer: {error}");
        let (sender, came) = channel();
        let bound = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = bound.map_err(failed)?.with_objects(Consumer(sender)).start();
        let server = server.map_err(failed)?;
        let address = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        let consumer = home.object(cos_event_comm::PUSH_CONSUMER.id(), KEY);

        let consumers = insist(|| EventChannelStub(&mut channel_client).for_consumers())?;
        let mut consumers = way(&consumers)?;
        let proxy = insist(|| ConsumerAdminStub(&mut consumers).obtain_push_supplier())?;
        let mut proxy = way(&proxy)?;
        insist(|| ProxyPushSupplierStub(&mut proxy).connect_push_consumer(&consumer))?;
        let suppliers = insist(|| EventChannelStub(&mut channel_client).for_suppliers())?;
        let mut suppliers = way(&suppliers)?;
        let proxy = insist(|| SupplierAdminStub(&mut suppliers).obtain_push_consumer())?;
        let mut proxy = way(&proxy)?;
        insist(|| ProxyPushConsumerStub(&mut proxy).connect_push_supplier(&Object::nil()))?;
        Ok(Self { supplier: Supplier { proxy, next: 0 }, came, _consumer: server })
    }

    /// Pushes one event: how long it took until it came.
    pub(super) fn pass(&mut self) -> Result<Duration, String> {
        let (took, _) = self.pass_or_lose()?;
        took.ok_or_else(|| "an event did not come".to_owned())
    }

    /// The same, and how many attempts to push it failed. A push past the order is taken when its
    /// leader has it: if that dies before it has called the consumer, the event is lost.
    pub(super) fn pass_or_lose(&mut self) -> Result<(Option<Duration>, u32), String> {
        let began = Instant::now();
        let (number, failed) = self.supplier.push()?;
        Ok((self.wait_for(number).map(|at| at - began), failed))
    }

    fn wait_for(&self, wanted: u64) -> Option<Instant> {
        let deadline = Instant::now() + LOST_AFTER;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.came.recv_timeout(left) {
                Ok((number, at)) if number == wanted => return Some(at),
                // One that came again.
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
