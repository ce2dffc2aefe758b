//! A consumer of the command line: connected to a channel, and told each event.
//!
//! At a reliable channel of Quorba it is told the numbers of events, and leaves out those that it
//! has; everywhere else it is a consumer of the standard's interface, which hears an event again if
//! its reply is lost.
//!
//! Invariants: who calls is answered within [`TAKE_WITHIN`], or hears that it has to come again;
//! what came by number is taken once.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use ::quorba_events::filter::designator;
use clap::Args;
use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Call, Home, Interface, Object, Objects, raise_system};
use quorba_giop::Endian;
use quorba_idl::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPushSupplierStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_idl::ft_rtec_event_channel_admin::{EventChannelFacadeStub, ObjectId};
use quorba_idl::quorba_events::numbered_channel::ConnectNumberedConsumerError;
use quorba_idl::quorba_events::{self, NumberedChannelStub, NumberedConsumer};
use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, Dependency};
use quorba_idl::rtec_event_comm::{self, Event, EventData, EventHeader, EventSet};
use quorba_orb::{Client, RunningServer, Server, ServerOptions};

use super::ending::{End, Ending};
use super::{Channels, Whose, connected_already, not_done, refused, rule};
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// How long one call of a channel may take here. A channel of Quorba waits for 5 s, and calls again
/// then: what is taken later than that comes twice.
pub(super) const TAKE_WITHIN: Duration = Duration::from_secs(3);
/// The key of a consumer.
const KEY: &[u8] = b"consumer";

/// An event that has come.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Arrival {
    /// Its number, where the channel tells numbers.
    pub(super) number: Option<u64>,
    pub(super) data: Any,
}

/// What is done with events.
pub(super) trait Taker: Send + 'static {
    /// Takes one, until then; what is not taken comes again.
    fn take(&mut self, event: Arrival, until: Instant) -> Result<(), PushError>;
    /// The channel has ended the connection.
    fn ended(&mut self);
}

/// There is no room for an event now: the channel keeps it, and comes again.
pub(super) const fn later() -> SystemException {
    let (kind, completed) = (ExceptionKind::Transient, Completion::No);
    SystemException { kind, minor: 0, completed }
}

#[derive(Debug, Args)]
pub(super) struct Listen {
    /// Where the channel calls [default: the address by which this host reaches it, any port]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
}

/// A channel that is to be listened to.
pub(super) struct Source {
    pub(super) channel: Object,
    pub(super) whose: Whose,
    /// It tells numbers that mean something.
    is_numbered: bool,
}

impl Source {
    /// A channel of another event service.
    pub(super) const fn foreign(channel: Object) -> Self {
        Self { channel, whose: Whose::Foreign, is_numbered: false }
    }

    /// A channel of this one.
    pub(super) fn find(service: &mut Channels, name: &str) -> Result<Self, Failure> {
        let (info, _) = super::info(service, name)?;
        let is_numbered = rule(&info).is_some_and(|rule| rule.reliable);
        Ok(Self { channel: info.channel, whose: Whose::Ours, is_numbered })
    }

    /// Another one of the channel's objects.
    fn beside(&self, behind: &str) -> Object {
        let mut ior = self.channel.0.clone();
        for profile in &mut ior.profiles {
            if let Some(Ok(mut place)) = profile.iiop() {
                place.object_key.extend_from_slice(behind.as_bytes());
                *profile = place.encode(Endian::Big);
            }
        }
        Object(ior)
    }

    /// Connects a consumer; a signal ends it.
    pub(super) fn connect(
        &self,
        service: &Channels,
        listen: &Listen,
        taker: impl Taker,
        ending: &Ending,
    ) -> Result<Subscription, Failure> {
        let (server, consumer) = listen.serve(&self.channel, taker, self.is_numbered)?;
        let proxy = match self.is_numbered {
            true => self.connect_numbered(service, &consumer, ending)?,
            false => self.connect_plain(service, &consumer, ending)?,
        };
        Ok(Subscription { proxy, _server: server })
    }

    fn connect_plain(
        &self,
        service: &Channels,
        consumer: &Object,
        ending: &Ending,
    ) -> Result<Proxy, Failure> {
        let whose = self.whose;
        let admin = EventChannelStub(&mut service.way(&self.channel, whose)?).for_consumers();
        let admin = admin.map_err(|raised| refused(whose, &raised))?;
        let mut admin = service.way(&admin, whose)?;
        let (mut proxy, own) = ending.open(|| {
            let proxy = ConsumerAdminStub(&mut admin).obtain_push_supplier();
            let proxy = proxy.map_err(|raised| refused(whose, &raised))?;
            let end = || -> Result<Proxy, Failure> {
                Ok(Proxy { client: service.way_to_end(&proxy, whose)?, oid: None })
            };
            Ok(((service.way(&proxy, whose)?, end()?), end()?.at_a_signal()))
        })?;
        match ProxyPushSupplierStub(&mut proxy).connect_push_consumer(consumer) {
            Ok(()) => Ok(own),
            Err(ConnectPushConsumerError::System(raised)) => Err(refused(whose, &raised)),
            Err(ConnectPushConsumerError::AlreadyConnected(_)) => Err(connected_already()),
            Err(ConnectPushConsumerError::TypeError(_)) => Err(wrong_kind()),
        }
    }

    fn connect_numbered(
        &self,
        service: &Channels,
        consumer: &Object,
        ending: &Ending,
    ) -> Result<Proxy, Failure> {
        let mut numbered = service.way(&self.beside("/numbered"), self.whose)?;
        let facade = self.beside("/ft");
        ending.open(|| {
            let connected = NumberedChannelStub(&mut numbered)
                .connect_numbered_consumer(consumer, &everything());
            let oid = connected.map_err(|error| match error {
                ConnectNumberedConsumerError::System(raised) => not_done(&raised),
                ConnectNumberedConsumerError::TypeError(_) => wrong_kind(),
            })?;
            let proxy = || -> Result<Proxy, Failure> {
                let client = service.way_to_end(&facade, self.whose)?;
                Ok(Proxy { client, oid: Some(oid.clone()) })
            };
            Ok((proxy()?, proxy()?.at_a_signal()))
        })
    }
}

fn wrong_kind() -> Failure {
    let what = "the channel does not take a consumer of this kind".to_owned();
    let next = "look whether it is a channel of CosEventChannelAdmin; if it is one of Quorba, \
                please report it";
    Failure::new(codes::EVENTS, Exit::Failed, what, next)
}

/// What asks for all events.
fn everything() -> ConsumerQOS {
    let header = EventHeader {
        r#type: designator::NULL,
        source: 0,
        ttl: 0,
        creation_time: 0,
        ec_recv_time: 0,
        ec_send_time: 0,
    };
    let data = EventData { pad1: 0, payload: Vec::new(), any_value: Any::default() };
    let event = Event { header, data };
    ConsumerQOS { dependencies: vec![Dependency { event, rt_info: 0 }], is_gateway: false }
}

/// What this program has in a channel.
struct Proxy {
    /// To the proxy, or to the facade.
    client: Client,
    /// Its name there.
    oid: Option<ObjectId>,
}

impl Proxy {
    /// Tells the channel that nobody is there any more. One that is gone need not be told.
    fn end(&mut self) {
        match &self.oid {
            Some(oid) => {
                let _ = EventChannelFacadeStub(&mut self.client).disconnect_push_supplier(oid);
            }
            None => {
                let _ = ProxyPushSupplierStub(&mut self.client).disconnect_push_supplier();
            }
        }
    }

    fn at_a_signal(mut self) -> End {
        Box::new(move || self.end())
    }
}

/// A consumer that is connected to a channel.
pub(super) struct Subscription {
    proxy: Proxy,
    _server: RunningServer,
}

impl Subscription {
    /// Tells the channel that nobody is there any more.
    pub(super) fn end(&mut self) {
        self.proxy.end();
    }
}

/// The one object of a program that consumes.
struct Consumer<T> {
    taker: T,
    is_numbered: bool,
    /// The last number that was taken.
    last: Option<u64>,
}

impl<T: Taker> Objects for Consumer<T> {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        (key == KEY).then_some(interface(self.is_numbered))
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        if self.is_numbered {
            return quorba_events::dispatch_numbered_consumer(self, call);
        }
        cos_event_comm::dispatch_push_consumer(self, call)
    }
}

const fn interface(is_numbered: bool) -> Interface {
    if is_numbered { quorba_events::NUMBERED_CONSUMER } else { cos_event_comm::PUSH_CONSUMER }
}

impl<T: Taker> PushConsumer for Consumer<T> {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        self.taker.take(Arrival { number: None, data }, Instant::now() + TAKE_WITHIN)
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        self.taker.ended();
        Ok(())
    }
}

impl<T: Taker> rtec_event_comm::PushConsumer for Consumer<T> {
    /// Channels push with numbers.
    fn push(&mut self, _: EventSet) -> Result<(), SystemException> {
        Err(raise_system(ExceptionKind::NoImplement))
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        self.taker.ended();
        Ok(())
    }
}

impl<T: Taker> NumberedConsumer for Consumer<T> {
    fn push_numbered(&mut self, first: u64, data: EventSet) -> Result<(), SystemException> {
        let until = Instant::now() + TAKE_WITHIN;
        for (number, event) in (first..).zip(&data) {
            if self.last.is_some_and(|last| number <= last) {
                continue;
            }
            let data = ::quorba_events::as_any(event);
            let taken = self.taker.take(Arrival { number: Some(number), data }, until);
            taken.map_err(|error| match error {
                PushError::System(raised) => raised,
                PushError::Disconnected(_) => raise_system(ExceptionKind::ObjectNotExist),
            })?;
            self.last = Some(number);
        }
        Ok(())
    }
}

/// The address of this host by which it reaches the channel.
fn own_address(channel: &Object) -> Option<IpAddr> {
    channel.0.endpoints().into_iter().find_map(|one| {
        let place = (one.host.as_str(), one.port).to_socket_addrs().ok()?.next()?;
        let any: SocketAddr =
            if place.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).ok()?;
        // Nothing is sent.
        socket.connect(place).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    })
}

impl Listen {
    /// Has `taker` answer, and says by which reference.
    fn serve(
        &self,
        channel: &Object,
        taker: impl Taker,
        is_numbered: bool,
    ) -> Result<(RunningServer, Object), Failure> {
        let failed = |what: String| {
            let next = "give an address of this host that the nodes reach: --listen HOST:PORT";
            Failure::new(codes::EVENTS, Exit::Failed, what, next)
        };
        let unknown = || failed("no address of this host leads to the channel".to_owned());
        let own = || own_address(channel).map(|address| SocketAddr::new(address, 0));
        let listen = self.listen.or_else(own).ok_or_else(unknown)?;
        if listen.ip().is_unspecified() {
            // It would stand in the consumer's reference.
            return Err(failed(format!("nobody can call {listen}")));
        }
        let refused =
            |error: std::io::Error| failed(format!("nothing can listen at {listen}: {error}"));
        let server = Server::bind(listen, ServerOptions::default()).map_err(refused)?;
        let consumer = Consumer { taker, is_numbered, last: None };
        let server = server.with_objects(consumer).start().map_err(refused)?;
        let address = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        let object = home.object(interface(is_numbered).id(), KEY);
        Ok((server, object))
    }
}
