//! Consumers and suppliers: what they were given, and what they were told.
//!
//! Invariant: a consumer that is told numbers leaves out those that it has seen, and nothing else.

use super::plan::{Kind, Wants};
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Call, Interface, Objects, raise_system};
use quorba_events::filter::designator::INTERVAL_TIMEOUT;
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self as cos};
use quorba_idl::quorba_events as numbered;
use quorba_idl::rtec_event_channel_admin::OBSERVER;
use quorba_idl::rtec_event_comm::{self as comm, Event, EventSet};

/// How far a consumer is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It comes later.
    Absent,
    /// It has asked, and heard nothing yet.
    Joining,
    /// It is connected, by that name.
    In(Vec<u8>),
    /// It has asked to be disconnected.
    Leaving,
    /// It is not connected any more.
    Left,
}

/// One consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) kind: Kind,
    pub(crate) wants: Wants,
    pub(crate) stage: Stage,
    /// What it was given, in that order.
    pub(crate) got: Vec<u32>,
    /// How often its timer has fired for it.
    pub(crate) fired: u64,
    /// The first push that it may miss no more, and the first one that it must not get: numbers of
    /// pushes of the whole run.
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// It cannot be reached until then.
    pub(crate) away_until_us: u64,
    /// The last number that it was told.
    last: u64,
    /// Calls of it that were made, for their names.
    pub(crate) calls: u64,
    /// The gateway that it pulls through; how often it has, and how often it left one so early that
    /// it could be taken for several consumers that share a proxy.
    pub(crate) caller: usize,
    pub(crate) pulls: u32,
    pub(crate) restless: usize,
}

impl Consumer {
    pub(crate) fn new(kind: Kind, wants: Wants) -> Self {
        Self {
            kind,
            wants: if kind.filters() { wants } else { Wants::All },
            fired: 0,
            stage: Stage::Absent,
            got: Vec::new(),
            from: u64::MAX,
            until: u64::MAX,
            away_until_us: 0,
            last: 0,
            calls: 0,
            caller: 0,
            pulls: 0,
            restless: 0,
        }
    }

    /// Its gateway did not answer: it pulls through another one.
    pub(crate) fn moves(&mut self, to: usize) {
        self.restless += usize::from(self.pulls < 5);
        (self.caller, self.pulls) = (to, 0);
    }

    fn took(&mut self, data: &Any) {
        self.got.extend(data.get::<u32>());
    }

    fn took_event(&mut self, event: &Event) {
        self.fired += u64::from(event.header.r#type == INTERVAL_TIMEOUT);
        self.took(&event.data.any_value);
    }
}

impl cos::PushConsumer for Consumer {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        self.took(&data);
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl comm::PushConsumer for Consumer {
    fn push(&mut self, data: EventSet) -> Result<(), SystemException> {
        data.iter().for_each(|event| self.took_event(event));
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl numbered::NumberedConsumer for Consumer {
    fn push_numbered(&mut self, first: u64, data: EventSet) -> Result<(), SystemException> {
        if matches!(self.wants, Wants::Both(..)) {
            // What belongs together has one number.
            if first > self.last {
                self.last = first;
                data.iter().for_each(|event| self.took_event(event));
            }
            return Ok(());
        }
        for (number, event) in (first..).zip(&data) {
            if number > self.last {
                self.last = number;
                self.took_event(event);
            }
        }
        Ok(())
    }
}

impl Objects for Consumer {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(OBSERVER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match (self.kind, call.operation()) {
            (Kind::Cos, "push") => cos::dispatch_push_consumer(self, call),
            (_, "push" | "push_numbered") => numbered::dispatch_numbered_consumer(self, call),
            _ => Err(raise_system(ExceptionKind::BadOperation)),
        }
    }
}

/// One that pushes at the facade.
#[derive(Debug)]
pub(crate) struct Supplier {
    /// It names its calls, and repeats them until they are answered.
    pub(crate) repeats: bool,
    pub(crate) id: Vec<u8>,
    /// Its events so far; the last one may be under way.
    pub(crate) pushed: u32,
    pub(crate) is_waiting: bool,
    pub(crate) gateway: usize,
}

/// One event that somebody pushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pushed {
    pub(crate) number: u32,
    pub(crate) event_type: i32,
    /// Its supplier was told that it is there.
    pub(crate) is_acknowledged: bool,
}

/// One that is pulled.
#[derive(Default, Debug)]
pub(crate) struct Source {
    pub(crate) left: u32,
    pub(crate) given: u32,
}
