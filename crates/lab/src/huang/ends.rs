//! A supplier and a consumer of a channel, both in this program: by one clock.
//!
//! What it is not: many consumers, see [`super::load`]. Invariant: an event's latency is from
//! before its push begins until the consumer has it.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Interface, Object, Objects};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPushConsumerStub, ProxyPushSupplierStub,
    SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_orb::{Client, ClientOptions, Reference, RunningServer};

use super::stand::Stand;
use crate::serve::serve;

/// Octets of an event's text.
pub(super) const EVENT_LEN: usize = 1_000;
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
pub(super) struct Supplier {
    proxy: Client,
    next: u64,
}

impl Supplier {
    /// How many events it has pushed.
    pub(super) const fn pushed(&self) -> u64 {
        self.next
    }

    /// Pushes until it was taken: its number, and how many attempts failed.
    pub(super) fn push(&mut self) -> Result<(u64, u32), String> {
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

/// A channel, for whoever connects to it.
pub(super) struct ChannelClient {
    channel: Client,
    consumers: Client,
    entrance: Option<SocketAddr>,
    moves_on: bool,
}

impl ChannelClient {
    /// Of a stand. `moves_on`: clients do not connect again to who has ended.
    pub(super) fn of(stand: &Stand, moves_on: bool) -> Result<Self, String> {
        let reference = Reference::parse(&stand.channel).map_err(|error| error.to_string())?;
        let mut channel = Client::new(&reference, Self::options(moves_on));
        let consumers = insist(|| EventChannelStub(&mut channel).for_consumers())?;
        let consumers = Self::way(&consumers, stand.entrance, moves_on)?;
        Ok(Self { channel, consumers, entrance: stand.entrance, moves_on })
    }

    /// Like an ORB that knows nothing of it: no call has a name.
    fn options(moves_on: bool) -> ClientOptions {
        let call_timeout = Some(WITHIN);
        ClientOptions { call_timeout, avoids_ended: moves_on, ..ClientOptions::default() }
    }

    fn way(
        object: &Object,
        entrance: Option<SocketAddr>,
        moves_on: bool,
    ) -> Result<Client, String> {
        let reference = match entrance {
            None => Reference::from_ior(&object.0).map_err(|error| error.to_string())?,
            Some(address) => {
                let profile = object.0.profiles.iter().find_map(|profile| profile.iiop()?.ok());
                Reference::direct(address, profile.ok_or("no profile")?.object_key)
            }
        };
        Ok(Client::new(&reference, Self::options(moves_on)))
    }

    /// Connects a consumer that is pushed to.
    pub(super) fn connect_consumer(&mut self, consumer: &Object) -> Result<(), String> {
        let proxy = insist(|| ConsumerAdminStub(&mut self.consumers).obtain_push_supplier())?;
        let mut proxy = Self::way(&proxy, self.entrance, self.moves_on)?;
        insist(|| ProxyPushSupplierStub(&mut proxy).connect_push_consumer(consumer))
    }

    /// Connects a supplier that pushes.
    pub(super) fn supplier(&mut self) -> Result<Supplier, String> {
        let suppliers = insist(|| EventChannelStub(&mut self.channel).for_suppliers())?;
        let mut suppliers = Self::way(&suppliers, self.entrance, self.moves_on)?;
        let proxy = insist(|| SupplierAdminStub(&mut suppliers).obtain_push_consumer())?;
        let mut proxy = Self::way(&proxy, self.entrance, self.moves_on)?;
        insist(|| ProxyPushConsumerStub(&mut proxy).connect_push_supplier(&Object::nil()))?;
        Ok(Supplier { proxy, next: 0 })
    }
}

impl Ends {
    /// Connects both. `moves_on`: the supplier does not connect again to who has ended.
    pub(super) fn connect(stand: &Stand, moves_on: bool) -> Result<Self, String> {
        let mut channel_client = ChannelClient::of(stand, moves_on)?;
        let (sender, came) = channel();
        let (server, home) = serve(Consumer(sender))?;
        let consumer = home.object(cos_event_comm::PUSH_CONSUMER.id(), KEY);
        channel_client.connect_consumer(&consumer)?;
        Ok(Self { supplier: channel_client.supplier()?, came, _consumer: server })
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
