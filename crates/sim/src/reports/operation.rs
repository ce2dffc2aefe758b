//! Calls of the fault notifier, as the order has them: each member executes each one.
//!
//! What it is not: octets. Stubs make a whole call of each at each member.

use super::fault::{DOMAIN, Told, Want};
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Home, Local, Object};
use quorba_idl::ft::FaultNotifierStub;
use quorba_idl::ft::fault_notifier::DisconnectConsumerError;
use quorba_idl::quorba::{FaultDeliveryStub, NewsItem};
use quorba_notifier::{DELIVERY_KEY, NOTIFIER_KEY, News, Notifier};

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Op {
    /// A consumer connects: whether it takes sequences, and its number.
    Connect(bool, usize),
    /// A connection ends.
    Disconnect(u64),
    /// A connection gets other reports.
    Constrain(u64, Want),
    /// One is reported, or several at once.
    Report(Vec<Told>),
    /// What a node tells of itself and of others.
    News(NewsItem),
    /// A connection has what it was given, up to a number.
    Delivered(u64, u64),
    CutOff(u64, String),
    /// Whoever had it was told that it is cut off.
    Parted(u64),
}

/// What a member answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Done,
    Connection(u64),
    /// The connection is not there.
    Disconnected,
    Raised(ExceptionKind),
}

pub(crate) fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2811)], prefix: Vec::new() }
}

/// Ports of consumers begin there.
pub(crate) const CONSUMERS: u16 = 1_000;

fn peer(index: usize) -> Object {
    let port = CONSUMERS + index as u16;
    let home = Home { addresses: vec![("there".to_owned(), port)], prefix: Vec::new() };
    home.object("IDL:omg.org/CosNotifyComm/StructuredPushConsumer:1.0", b"consumer")
}

fn done(result: Result<(), SystemException>) -> Reply {
    result.map_or_else(|raised| Reply::Raised(raised.kind), |()| Reply::Done)
}

impl Op {
    /// Executes it at a member.
    pub(crate) fn execute(&self, notifier: &mut Notifier) -> Reply {
        let key = match self {
            Self::Delivered(..) | Self::CutOff(..) | Self::Parted(_) => DELIVERY_KEY,
            _ => NOTIFIER_KEY,
        };
        let mut local = Local::new(notifier, key.as_bytes());
        match self {
            Self::Connect(is_batch, index) => {
                let mut stub = FaultNotifierStub(&mut local);
                let connected = if *is_batch {
                    stub.connect_sequence_fault_consumer(&peer(*index))
                } else {
                    stub.connect_structured_fault_consumer(&peer(*index))
                };
                connected.map_or_else(|raised| Reply::Raised(raised.kind), Reply::Connection)
            }
            Self::Disconnect(connection) => {
                match FaultNotifierStub(&mut local).disconnect_consumer(connection) {
                    Ok(()) => Reply::Done,
                    Err(DisconnectConsumerError::Disconnected(_)) => Reply::Disconnected,
                    Err(DisconnectConsumerError::System(raised)) => Reply::Raised(raised.kind),
                }
            }
            Self::Constrain(connection, want) => {
                let mut stub = FaultNotifierStub(&mut local);
                done(stub.replace_constraint(connection, &Vec::new(), &want.constraint()))
            }
            Self::Report(all) => {
                let mut stub = FaultNotifierStub(&mut local);
                let events: Vec<_> = all.iter().map(Told::to_event).collect();
                done(match &events[..] {
                    [one] => stub.push_structured_fault(one),
                    _ => stub.push_sequence_fault(&events),
                })
            }
            Self::News(item) => {
                let Some(news) = News::of(item, DOMAIN) else { return Reply::Done };
                done(news.tell(&mut Local::new(notifier, news.key().as_bytes())))
            }
            Self::Delivered(consumer, last) => {
                done(FaultDeliveryStub(&mut local).delivered(consumer, last))
            }
            Self::CutOff(consumer, why) => {
                done(FaultDeliveryStub(&mut local).cut_off(consumer, why))
            }
            Self::Parted(consumer) => done(FaultDeliveryStub(&mut local).parted(consumer)),
        }
    }
}
