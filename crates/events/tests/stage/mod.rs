//! A channel with peers: consumers, suppliers and observers that write down what they are told,
//! behind whole messages.
//!
//! What it is not: a network. Invariant: a peer is known by the port of its reference.

use std::collections::BTreeMap;

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Call, Home, Interface, Local, Object, Objects, raise_system};
use quorba_events::filter::designator as d;
use quorba_events::{Channel, Outcome, Outgoing, Proposal, Settings};
use quorba_idl::cos_event_comm::pull_supplier::{PullError, TryPullError};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self as cos, Disconnected, PullSupplierStub};
use quorba_idl::rtec_event_channel_admin::{
    self as rtec, ConsumerQOS, Dependency, Publication, SupplierQOS,
};
use quorba_idl::rtec_event_comm::{self as comm, Event, EventData, EventHeader, EventSet};
use quorba_idl::{quorba_events as numbered, rtec_base};

pub(crate) const BASE: &str = "Events/test";
/// 100 ns in a millisecond.
pub(crate) const MS: u64 = 10_000;

/// What a peer does when it is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mood {
    #[default]
    Fine,
    /// It cannot be reached.
    Away,
    /// Its object is no more.
    Gone,
    /// It takes what it is given, and answers by this exception.
    Raises(ExceptionKind, Completion),
}

#[derive(Default)]
pub(crate) struct Peer {
    pub(crate) mood: Mood,
    pub(crate) sets: Vec<EventSet>,
    pub(crate) numbers: Vec<u64>,
    pub(crate) anys: Vec<Any>,
    pub(crate) goodbyes: Vec<String>,
    /// What it gives when it is pulled.
    pub(crate) stock: Vec<Any>,
    pub(crate) seen: Vec<(usize, usize)>,
    /// The operations that it answered by an exception of its mood.
    pub(crate) raised: Vec<String>,
    form: u8,
}

impl Peer {
    pub(crate) fn types(&self) -> Vec<i32> {
        self.sets.iter().flatten().map(|event| event.header.r#type).collect()
    }
}

impl cos::PushConsumer for Peer {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        self.anys.push(data);
        Ok(())
    }
    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl cos::PullSupplier for Peer {
    fn pull(&mut self) -> Result<Any, PullError> {
        Err(Disconnected {}.into())
    }
    fn try_pull(&mut self) -> Result<(Any, bool), TryPullError> {
        let there = if self.stock.is_empty() { None } else { Some(self.stock.remove(0)) };
        let is_there = there.is_some();
        Ok((there.unwrap_or_default(), is_there))
    }
    fn disconnect_pull_supplier(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl comm::PushConsumer for Peer {
    fn push(&mut self, data: EventSet) -> Result<(), SystemException> {
        self.sets.push(data);
        Ok(())
    }
    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl numbered::NumberedConsumer for Peer {
    fn push_numbered(&mut self, first: u64, data: EventSet) -> Result<(), SystemException> {
        self.numbers.push(first);
        self.sets.push(data);
        Ok(())
    }
}

impl rtec::Observer for Peer {
    fn update_consumer(&mut self, sub: ConsumerQOS) -> Result<(), SystemException> {
        self.seen.push((sub.dependencies.len(), usize::MAX));
        Ok(())
    }
    fn update_supplier(&mut self, publ: SupplierQOS) -> Result<(), SystemException> {
        self.seen.push((usize::MAX, publ.publications.len()));
        Ok(())
    }
}

impl Objects for Peer {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(rtec::OBSERVER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match self.mood {
            Mood::Fine => {}
            Mood::Away => return Err(raise_system(ExceptionKind::CommFailure)),
            Mood::Gone => return Err(raise_system(ExceptionKind::ObjectNotExist)),
            Mood::Raises(kind, completed) => {
                let operation = call.operation();
                self.raised.push(operation.to_owned());
                if self.form == COS && operation == "push" && completed != Completion::No {
                    cos::dispatch_push_consumer(self, call)?;
                }
                return Err(SystemException { kind, minor: 0, completed });
            }
        }
        if call.operation().starts_with("disconnect") {
            self.goodbyes.push(call.operation().to_owned());
        }
        match (self.form, call.operation()) {
            (COS, "push") => cos::dispatch_push_consumer(self, call),
            (_, "try_pull") => cos::dispatch_pull_supplier(self, call),
            (_, "update_consumer" | "update_supplier") => rtec::dispatch_observer(self, call),
            (_, operation) if operation.starts_with("disconnect") => Ok(()),
            _ => numbered::dispatch_numbered_consumer(self, call),
        }
    }
}

pub(crate) const COS: u8 = 1;
pub(crate) const RTEC: u8 = 2;

pub(crate) struct Stage {
    pub(crate) channel: Channel,
    settings: Settings,
    pub(crate) peers: BTreeMap<u16, Peer>,
    /// What was to be logged.
    pub(crate) ended: Vec<String>,
    next_port: u16,
}

pub(crate) fn home() -> Home {
    Home { addresses: vec![("n1".to_owned(), 2810)], prefix: b"QRB/events/".to_vec() }
}

pub(crate) fn channel(settings: Settings) -> Channel {
    Channel::new(BASE, &home(), settings).expect("settings")
}

/// The key of one of the channel's objects.
pub(crate) fn key_of(object: &Object) -> Vec<u8> {
    home().key_of(object).expect("one of the channel's")
}

fn port(object: &Object) -> u16 {
    object.0.endpoints()[0].port
}

impl Stage {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            channel: channel(settings.clone()),
            settings,
            peers: BTreeMap::new(),
            ended: Vec::new(),
            next_port: 9000,
        }
    }

    /// What its channel was made with.
    pub(crate) fn channel_settings(&self) -> Settings {
        self.settings.clone()
    }

    /// A new peer.
    pub(crate) fn peer(&mut self, form: u8) -> (u16, Object) {
        self.next_port += 1;
        let port = self.next_port;
        self.peers.insert(port, Peer { form, ..Peer::default() });
        let home = Home { addresses: vec![("peer".to_owned(), port)], prefix: Vec::new() };
        (port, home.object("IDL:Peer:1.0", b"peer"))
    }

    /// Lets a client call one of the channel's objects.
    pub(crate) fn at<R>(&mut self, object: &Object, call: impl FnOnce(&mut Local<'_>) -> R) -> R {
        call(&mut Local::new(&mut self.channel, &key_of(object)))
    }

    /// Makes one push; whether there was one.
    pub(crate) fn push_one(&mut self) -> bool {
        let Some(push) = self.channel.poll_push() else { return false };
        let peer = self.peers.get_mut(&port(&push.to)).expect("a peer");
        let is_away = peer.mood != Mood::Fine;
        let outcome = push.send(&mut Local::new(peer, b"peer"));
        // A oneway says nothing of what became of it, but a connection that cannot be made does.
        let outcome = if push.is_oneway() && is_away { Outcome::Failed } else { outcome };
        self.channel.pushed(push.consumer, push.ticket, outcome);
        true
    }

    fn do_one(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Ended(ended) => self.ended.push(ended.to_string()),
            Outgoing::TooLarge(told) => self.ended.push(told.to_string()),
            Outgoing::Disconnect { to, call } => {
                let peer = self.peers.get_mut(&port(&to)).expect("a peer");
                let mut local = Local::new(peer, b"peer");
                let _ = quorba_corba::call::<(), SystemException>(
                    &mut local,
                    call.operation(),
                    &|_| {},
                    |_| Ok(()),
                );
            }
            Outgoing::Pull { supplier, ticket, to } => {
                let peer = self.peers.get_mut(&port(&to)).expect("a peer");
                let answer = PullSupplierStub(&mut Local::new(peer, b"peer")).try_pull();
                let answer = match answer {
                    Ok((data, is_there)) => Ok(is_there.then_some(data)),
                    Err(TryPullError::Disconnected(_)) => Err(Outcome::Gone),
                    Err(TryPullError::System(exception)) => Err(Outcome::of(&exception)),
                };
                self.channel.pulled(supplier, ticket, answer);
            }
            Outgoing::Update { observer, ticket, to, update } => {
                let peer = self.peers.get_mut(&port(&to)).expect("a peer");
                let outcome = update.send(&mut Local::new(peer, b"peer"));
                self.channel.observed(observer, ticket, outcome);
            }
            Outgoing::ObserverEnded { place, .. } => self.ended.push(place),
            Outgoing::Propose(proposal) => self.carry_out(proposal),
        }
    }

    /// The group has it, and says so to who proposed it.
    pub(crate) fn carry_out(&mut self, proposal: Proposal) {
        let pulled = match &proposal {
            Proposal::Pulled { supplier, .. } => Some(*supplier),
            _ => None,
        };
        self.channel.carry_out(proposal);
        pulled.into_iter().for_each(|supplier| self.channel.settled(supplier));
    }

    /// Does all that is to be done now but what is proposed, which is kept.
    pub(crate) fn proposals(&mut self) -> Vec<Proposal> {
        let mut kept = Vec::new();
        loop {
            match self.channel.poll() {
                Some(Outgoing::Propose(proposal)) => kept.push(proposal),
                Some(other) => self.do_one(other),
                None if self.push_one() => {}
                None => return kept,
            }
        }
    }

    /// Does all that is to be done now.
    pub(crate) fn settle(&mut self) {
        loop {
            if let Some(outgoing) = self.channel.poll() {
                self.do_one(outgoing);
            } else if !self.push_one() {
                return;
            }
        }
    }

    /// A consumer of TAO's interface with a proxy: its port, and the proxy.
    pub(crate) fn rtec_consumer(&mut self, qos: &ConsumerQOS) -> (u16, Object) {
        let channel = self.channel.rtec_reference();
        let admin = self.at(&channel, |it| rtec::EventChannelStub(it).for_consumers());
        let admin = admin.expect("an admin");
        let proxy = self.at(&admin, |it| rtec::ConsumerAdminStub(it).obtain_push_supplier());
        let proxy = proxy.expect("a proxy");
        let (port, peer) = self.peer(RTEC);
        let connected =
            self.at(&proxy, |it| rtec::ProxyPushSupplierStub(it).connect_push_consumer(&peer, qos));
        connected.expect("connected");
        (port, proxy)
    }

    /// A supplier of TAO's interface with a proxy.
    pub(crate) fn rtec_supplier(&mut self, qos: &SupplierQOS) -> (u16, Object) {
        let channel = self.channel.rtec_reference();
        let admin = self.at(&channel, |it| rtec::EventChannelStub(it).for_suppliers());
        let admin = admin.expect("an admin");
        let proxy = self.at(&admin, |it| rtec::SupplierAdminStub(it).obtain_push_consumer());
        let proxy = proxy.expect("a proxy");
        let (port, peer) = self.peer(RTEC);
        let connected =
            self.at(&proxy, |it| rtec::ProxyPushConsumerStub(it).connect_push_supplier(&peer, qos));
        connected.expect("connected");
        (port, proxy)
    }
}

/// An event with a number in its payload.
pub(crate) fn event(event_type: i32, source: i32, number: u8) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData { pad1: 0, payload: vec![number], any_value: Any::default() },
    }
}

pub(crate) fn entry(event_type: i32, source: i32, period: u64, rt_info: i32) -> Dependency {
    let mut event = event(event_type, source, 0);
    event.header.creation_time = period;
    event.data.payload.clear();
    Dependency { event, rt_info }
}

/// A subscription of entries: type, source.
pub(crate) fn wants(entries: &[(i32, i32)]) -> ConsumerQOS {
    let dependencies =
        entries.iter().map(|(event_type, source)| entry(*event_type, *source, 0, 0)).collect();
    ConsumerQOS { dependencies, is_gateway: false }
}

/// Everything.
pub(crate) fn wants_all() -> ConsumerQOS {
    wants(&[(d::ANY, 0)])
}

/// A supplier's description: type, source.
pub(crate) fn offers(entries: &[(i32, i32)]) -> SupplierQOS {
    let publication = |(event_type, source): &(i32, i32)| Publication {
        event: event(*event_type, *source, 0),
        dependency_info: rtec_base::DependencyInfo {
            dependency_type: rtec_base::DependencyTypeT::ONEWAYCALL,
            number_of_calls: 1,
            rt_info: 0,
            rt_info_depended_on: 0,
            enabled: rtec_base::DependencyEnabledTypeT::DEPENDENCYENABLED,
        },
    };
    SupplierQOS { publications: entries.iter().map(publication).collect(), is_gateway: false }
}
