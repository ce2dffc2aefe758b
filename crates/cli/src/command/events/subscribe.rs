//! `quorba events sub`: a consumer that prints what it is pushed.
//!
//! Invariants: each event is printed once, when it comes; at the end the channel is told that
//! nobody is there any more.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use clap::Args;
use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Home, Interface, Object, Objects};
use quorba_idl::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPushSupplierStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_orb::{Client, RunningServer, Server, ServerOptions};
use serde_json::json;

use super::{Channels, Whose, connected_already, not_done, value};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Events that wait to be printed; beyond, the channel waits.
const WAITING: usize = 64;
/// How often is looked whether somebody still reads.
pub(super) const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(super) struct Subscribe {
    /// The channel
    name: String,

    #[command(flatten)]
    until: Until,

    #[command(flatten)]
    listen: Listen,
}

/// When a consumer ends by itself.
#[derive(Debug, Args)]
pub(super) struct Until {
    /// End after so many events
    #[arg(long, value_name = "COUNT")]
    pub(super) count: Option<u64>,

    /// End after so long [default: when it is interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = crate::args::duration)]
    span: Option<Duration>,
}

impl Until {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.span.map(|span| Instant::now() + span)
    }

    /// The time is over before all events came.
    pub(super) fn too_early(seen: u64) -> Failure {
        let what = format!("{seen} events came in time");
        Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, "--for waits longer")
    }
}

#[derive(Debug, Args)]
pub(super) struct Listen {
    /// Where the channel calls [default: the address by which this host reaches it, any port]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
}

enum FromChannel {
    Event(Any),
    End,
}

struct Consumer(SyncSender<FromChannel>);

/// The one object of a program that consumes.
struct Only<C>(C);

impl<C: PushConsumer> Objects for Only<C> {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        (key == KEY).then_some(cos_event_comm::PUSH_CONSUMER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        cos_event_comm::dispatch_push_consumer(&mut self.0, call)
    }
}

/// The key of a consumer.
const KEY: &[u8] = b"consumer";

impl PushConsumer for Consumer {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        self.0.send(FromChannel::Event(data)).map_err(|_| cos_event_comm::Disconnected {}.into())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        let _ = self.0.send(FromChannel::End);
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
    /// Has `consumer` answer, and says by which reference.
    pub(super) fn serve(
        &self,
        channel: &Object,
        consumer: impl PushConsumer + Send + 'static,
    ) -> Result<(RunningServer, Object), Failure> {
        let failed = |what: String| {
            let next = "give an address of this host that the nodes reach: --listen HOST:PORT";
            Failure::new(codes::EVENTS, Exit::Failed, what, next)
        };
        let unknown = || failed("no address of this host leads to the channel".to_owned());
        let own = || own_address(channel).map(|address| SocketAddr::new(address, 0));
        let listen = self.listen.or_else(own).ok_or_else(unknown)?;
        let refused =
            |error: std::io::Error| failed(format!("nothing can listen at {listen}: {error}"));
        let server = Server::bind(listen, ServerOptions::default()).map_err(refused)?;
        let server = server.with_objects(Only(consumer)).start().map_err(refused)?;
        let address = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        let object = home.object(cos_event_comm::PUSH_CONSUMER.id(), KEY);
        Ok((server, object))
    }
}

/// A consumer that is connected to a channel.
pub(super) struct Subscription {
    proxy: Client,
}

impl Subscription {
    /// Tells the channel that nobody is there any more.
    pub(super) fn end(&mut self) {
        let _ = ProxyPushSupplierStub(&mut self.proxy).disconnect_push_supplier();
    }
}

/// Connects a consumer to a channel.
pub(super) fn connect(
    service: &Channels,
    channel: &Object,
    consumer: &Object,
    whose: Whose,
) -> Result<Subscription, Failure> {
    let admin = EventChannelStub(&mut service.way(channel, whose)?).for_consumers();
    let admin = admin.map_err(|raised| not_done(&raised))?;
    let proxy = ConsumerAdminStub(&mut service.way(&admin, whose)?).obtain_push_supplier();
    let mut proxy = service.way(&proxy.map_err(|raised| not_done(&raised))?, whose)?;
    match ProxyPushSupplierStub(&mut proxy).connect_push_consumer(consumer) {
        Ok(()) => Ok(Subscription { proxy }),
        Err(ConnectPushConsumerError::System(raised)) => Err(not_done(&raised)),
        Err(ConnectPushConsumerError::AlreadyConnected(_)) => Err(connected_already()),
        Err(ConnectPushConsumerError::TypeError(_)) => {
            let what = "the channel does not take a consumer of this kind".to_owned();
            let next = "look whether it is a channel of CosEventChannelAdmin; if it is one of \
                        Quorba, please report it";
            Err(Failure::new(codes::EVENTS, Exit::Failed, what, next))
        }
    }
}

impl Subscribe {
    pub(super) fn run(self, context: &Context, service: &mut Channels) -> Result<Exit, Failure> {
        let channel = service.channel(&self.name)?;
        let (sender, said) = sync_channel(WAITING);
        let (_server, consumer) = self.listen.serve(&channel, Consumer(sender))?;
        let mut subscription = connect(service, &channel, &consumer, Whose::Ours)?;
        context.tell(format!("note: subscribed to {}", self.name));
        let ended = self.print(context, &said);
        // What comes now is refused.
        drop(said);
        if !matches!(ended, Ok(End::OfChannel)) {
            subscription.end();
        }
        match ended? {
            End::OfChannel => {
                let what = format!("the channel {} has ended the subscription", self.name);
                let next = "quorba events show says whether it is there; it ends consumers that \
                            cannot be called or have no room";
                Err(Failure::new(codes::EVENTS, Exit::Failed, what, next))
            }
            End::Wanted => Ok(Exit::Ok),
            End::TooEarly(seen) => Err(Until::too_early(seen)),
        }
    }

    /// Prints what comes, until there is a reason to end.
    fn print(&self, context: &Context, said: &Receiver<FromChannel>) -> Result<End, Failure> {
        let (until, count) = (self.until.deadline(), self.until.count);
        let mut seen = 0_u64;
        loop {
            if count.is_some_and(|count| seen >= count) {
                return Ok(End::Wanted);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(if count.is_some() { End::TooEarly(seen) } else { End::Wanted });
            }
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            match said.recv_timeout(left.min(LOOK)) {
                Ok(FromChannel::Event(event)) => {
                    seen += 1;
                    let value = value::shown(&event);
                    match context.is_json() {
                        true => context.print_json(&json!({ "number": seen, "event": value }))?,
                        false => context.print(&format!("{value}\n"))?,
                    }
                }
                Ok(FromChannel::End) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(End::OfChannel);
                }
                Err(RecvTimeoutError::Timeout) if context.nobody_reads() => return Ok(End::Wanted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Why no more is printed.
enum End {
    Wanted,
    OfChannel,
    TooEarly(u64),
}
