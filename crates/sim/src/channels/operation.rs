//! Calls of the event service, as the order has them: each member executes each one.
//!
//! What it is not: octets. Stubs make a whole call of each at each member.

use super::plan::{Kind, PERIOD_US, Wants};
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object};
use quorba_events::filter::designator;
use quorba_events::{DECISIONS_KEY, Decision, EventService, SERVICE_KEY};
use quorba_idl::cos_event_channel_admin as cos;
use quorba_idl::cos_event_comm::PullSupplierStub;
use quorba_idl::cos_event_comm::pull_supplier::TryPullError;
use quorba_idl::cos_event_comm::push_consumer::PushError as CosPushError;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelFacadeStub;
use quorba_idl::ft_rtec_event_comm::PushConsumerStub;
use quorba_idl::ft_rtec_event_comm::push_consumer::PushError;
use quorba_idl::quorba_events::{ChannelsStub, NumberedChannelStub};
use quorba_idl::rtec_event_channel_admin::{self as rtec, ConsumerQOS, Dependency, SupplierQOS};
use quorba_idl::rtec_event_comm::{Event, EventData, EventHeader};

/// The channel, and where it is made.
pub(crate) const CHANNEL: &str = "sure";

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Op {
    /// The channel is made, with these settings.
    Create(String),
    /// A consumer connects, and gets what it wants.
    Join(Kind, usize, Wants),
    /// A consumer disconnects.
    Leave(Kind, Vec<u8>),
    /// A supplier connects: at the facade, or by CosEvent.
    Offer(bool),
    /// A supplier that is pulled connects.
    Source,
    /// An event: as who, of which type, and its number. Type 0 comes by CosEvent.
    Push(Vec<u8>, i32, u32),
    /// A consumer pulls.
    Pull(Vec<u8>),
    /// What the leader decides.
    Decide(Decision),
}

/// What a member answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Done,
    /// The name of a connection: an id of the facade, or the key of a proxy.
    Name(Vec<u8>),
    /// An event that was pulled, or none.
    Given(Option<u32>),
    Raised(ExceptionKind),
}

pub(crate) fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2812)], prefix: Vec::new() }
}

/// Ports of consumers begin there.
pub(crate) const CONSUMERS: u16 = 1_000;
/// The port of the supplier that is pulled.
pub(crate) const SOURCE: u16 = 2_000;

fn peer(port: u16) -> Object {
    let home = Home { addresses: vec![("there".to_owned(), port)], prefix: Vec::new() };
    home.object("IDL:Peer:1.0", b"peer")
}

fn event(event_type: i32, number: Option<u32>) -> Event {
    let any_value = number.map(|number| Any::new(&number).expect("a value")).unwrap_or_default();
    Event {
        header: EventHeader {
            r#type: event_type,
            source: 1,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData { pad1: 0, payload: Vec::new(), any_value },
    }
}

/// The subscription that says so.
fn subscription(wants: Wants) -> ConsumerQOS {
    let part = |event_type: i32, source: i32| {
        let mut event = event(event_type, None);
        event.header.source = source;
        event
    };
    let mut timer = part(designator::INTERVAL_TIMEOUT, 0);
    timer.header.creation_time = PERIOD_US * 10;
    let events = match wants {
        Wants::All => vec![part(designator::ANY, 0)],
        Wants::Type(only) => vec![part(only, 0)],
        Wants::Not(other) => vec![part(designator::NEGATION, 0), part(other, 0)],
        Wants::Either(one, other) => {
            vec![part(designator::DISJUNCTION, 2), part(one, 0), part(other, 0)]
        }
        Wants::Both(one, other) => {
            vec![part(designator::CONJUNCTION, 2), part(one, 0), part(other, 0)]
        }
        Wants::And(only) => {
            vec![part(designator::LOGICAL_AND, 2), part(only, 0), part(designator::ANY, 1)]
        }
        Wants::Timer => vec![timer],
    };
    let dependencies = events.into_iter().map(|event| Dependency { event, rt_info: 0 }).collect();
    ConsumerQOS { dependencies, is_gateway: false }
}

/// A member, and what its objects are called.
struct At<'a>(&'a mut EventService);

impl At<'_> {
    fn local(&mut self, behind: &str) -> Local<'_> {
        Local::new(self.0, format!("Events/{CHANNEL}/{behind}").as_bytes())
    }

    fn by_key(&mut self, key: &[u8]) -> Local<'_> {
        Local::new(self.0, key)
    }
}

fn key(object: Result<Object, SystemException>) -> Result<Vec<u8>, ExceptionKind> {
    let object = object.map_err(|raised| raised.kind)?;
    home().key_of(&object).ok_or(ExceptionKind::InvObjref)
}

fn plain<T, E: std::fmt::Debug>(result: Result<T, E>) -> Result<T, ExceptionKind> {
    // Nothing here raises what a user would catch.
    result.map_err(|_| ExceptionKind::Unknown)
}

impl Op {
    /// Executes it at a member.
    pub(crate) fn execute(&self, service: &mut EventService) -> Reply {
        let mut at = At(service);
        let done = match self {
            Self::Create(settings) => {
                let mut all = at.by_key(SERVICE_KEY.as_bytes());
                let made = ChannelsStub(&mut all).create(&CHANNEL.to_owned(), settings);
                plain(made).map(|_| Reply::Done)
            }
            Self::Join(kind, index, wants) => join(&mut at, *kind, *index, *wants),
            Self::Leave(kind, name) => leave(&mut at, *kind, name),
            Self::Offer(is_facade) => offer(&mut at, *is_facade),
            Self::Source => source(&mut at),
            Self::Push(id, event_type, number) => push(&mut at, id, *event_type, *number),
            Self::Pull(proxy) => {
                let mut proxy = at.by_key(proxy);
                match PullSupplierStub(&mut proxy).try_pull() {
                    Ok((data, true)) => Ok(Reply::Given(data.get())),
                    Ok((_, false)) => Ok(Reply::Given(None)),
                    Err(TryPullError::System(raised)) => Err(raised.kind),
                    Err(_) => Err(ExceptionKind::Unknown),
                }
            }
            Self::Decide(decision) => {
                let mut all = at.by_key(DECISIONS_KEY.as_bytes());
                decision.call(&mut all).map(|()| Reply::Done).map_err(|raised| raised.kind)
            }
        };
        done.unwrap_or_else(Reply::Raised)
    }
}

fn join(at: &mut At<'_>, kind: Kind, index: usize, wants: Wants) -> Result<Reply, ExceptionKind> {
    let to = peer(CONSUMERS + index as u16);
    match kind {
        Kind::Cos => {
            let proxy = cos::ConsumerAdminStub(&mut at.local("consumers")).obtain_push_supplier();
            let proxy = key(proxy)?;
            let mut local = at.by_key(&proxy);
            plain(cos::ProxyPushSupplierStub(&mut local).connect_push_consumer(&to))?;
            Ok(Reply::Name(proxy))
        }
        Kind::Pull => {
            let proxy = cos::ConsumerAdminStub(&mut at.local("consumers")).obtain_pull_supplier();
            let proxy = key(proxy)?;
            let mut local = at.by_key(&proxy);
            plain(cos::ProxyPullSupplierStub(&mut local).connect_pull_consumer(&Object::nil()))?;
            Ok(Reply::Name(proxy))
        }
        Kind::Facade => {
            let mut facade = at.local("ft");
            let mut facade = EventChannelFacadeStub(&mut facade);
            plain(facade.connect_push_consumer(&to, &subscription(wants))).map(Reply::Name)
        }
        Kind::Rtec => {
            let mut admin = at.local("rtec/consumers");
            let proxy = rtec::ConsumerAdminStub(&mut admin).obtain_push_supplier();
            let proxy = key(proxy)?;
            let mut local = at.by_key(&proxy);
            let mut stub = rtec::ProxyPushSupplierStub(&mut local);
            plain(stub.connect_push_consumer(&to, &subscription(wants)))?;
            Ok(Reply::Name(proxy))
        }
        Kind::Numbered => {
            let mut numbered = at.local("numbered");
            let mut numbered = NumberedChannelStub(&mut numbered);
            plain(numbered.connect_numbered_consumer(&to, &subscription(wants))).map(Reply::Name)
        }
    }
}

fn leave(at: &mut At<'_>, kind: Kind, name: &Vec<u8>) -> Result<Reply, ExceptionKind> {
    let left = match kind {
        Kind::Cos => {
            plain(cos::ProxyPushSupplierStub(&mut at.by_key(name)).disconnect_push_supplier())
        }
        Kind::Pull => {
            plain(cos::ProxyPullSupplierStub(&mut at.by_key(name)).disconnect_pull_supplier())
        }
        Kind::Rtec => {
            plain(rtec::ProxyPushSupplierStub(&mut at.by_key(name)).disconnect_push_supplier())
        }
        Kind::Facade | Kind::Numbered => {
            let mut facade = at.local("ft");
            // It is named for the proxy.
            plain(EventChannelFacadeStub(&mut facade).disconnect_push_supplier(name))
        }
    };
    left.map(|()| Reply::Done)
}

fn source(at: &mut At<'_>) -> Result<Reply, ExceptionKind> {
    let proxy = cos::SupplierAdminStub(&mut at.local("suppliers")).obtain_pull_consumer();
    let proxy = key(proxy)?;
    let mut local = at.by_key(&proxy);
    plain(cos::ProxyPullConsumerStub(&mut local).connect_pull_supplier(&peer(SOURCE)))?;
    Ok(Reply::Name(proxy))
}

fn offer(at: &mut At<'_>, is_facade: bool) -> Result<Reply, ExceptionKind> {
    if is_facade {
        let qos = SupplierQOS { publications: Vec::new(), is_gateway: false };
        let mut facade = at.local("ft");
        let id = EventChannelFacadeStub(&mut facade).connect_push_supplier(&Object::nil(), &qos);
        return plain(id).map(Reply::Name);
    }
    let proxy = cos::SupplierAdminStub(&mut at.local("suppliers")).obtain_push_consumer();
    let proxy = key(proxy)?;
    let mut local = at.by_key(&proxy);
    plain(cos::ProxyPushConsumerStub(&mut local).connect_push_supplier(&Object::nil()))?;
    Ok(Reply::Name(proxy))
}

fn push(
    at: &mut At<'_>,
    id: &Vec<u8>,
    event_type: i32,
    number: u32,
) -> Result<Reply, ExceptionKind> {
    if event_type == 0 {
        let data = Any::new(&number).expect("a value");
        return match cos::ProxyPushConsumerStub(&mut at.by_key(id)).push(&data) {
            Ok(()) => Ok(Reply::Done),
            Err(CosPushError::System(raised)) => Err(raised.kind),
            Err(_) => Err(ExceptionKind::Unknown),
        };
    }
    let events = vec![event(event_type, Some(number))];
    match PushConsumerStub(&mut at.local("ft")).push(id, &events) {
        Ok(()) => Ok(Reply::Done),
        Err(PushError::System(raised)) => Err(raised.kind),
        Err(_) => Err(ExceptionKind::Unknown),
    }
}
