//! Events inside of a channel, and what each side of it sees of them.
//!
//! Inside, an event is TAO's. One from the standard's interface has its `any` in it, and a type and
//! a source that the channel's settings say. Consumers of the standard's interface are given that
//! `any`; of an event without one they are given the whole event as an `any`, so that nothing is
//! lost.
//!
//! Invariant: an event is there once, however many consumers wait for it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quorba_corba::{Any, Cdr, Encoder, Kind};
use quorba_idl::rtec_event_comm::{Event, EventData, EventHeader};

use crate::filter::Header;

/// Octets that an event takes beside its data.
const EVENT_BYTES: usize = 64;

/// An event that waits for consumers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Held {
    pub(crate) event: Event,
    pub(crate) bytes: usize,
}

/// One that several may wait for.
pub(crate) type Shared = Arc<Held>;

/// Octets that an event takes.
pub(crate) fn size(event: &Event) -> usize {
    size_of_any(&event.data.any_value) + event.data.payload.len()
}

/// The same of one that has this and no more.
pub(crate) fn size_of_any(data: &Any) -> usize {
    EVENT_BYTES + data.size()
}

pub(crate) fn shared(event: Event) -> Shared {
    let bytes = size(&event);
    Arc::new(Held { event, bytes })
}

pub(crate) const fn header(event: &Event) -> Header {
    Header { event_type: event.header.r#type, source: event.header.source }
}

/// An event without data.
pub(crate) fn plain(header: Header, ttl: i32, now: u64) -> Event {
    Event {
        header: EventHeader {
            r#type: header.event_type,
            source: header.source,
            ttl,
            creation_time: now,
            ec_recv_time: now,
            ec_send_time: now,
        },
        data: EventData { pad1: 0, payload: Vec::new(), any_value: Any::default() },
    }
}

/// What a consumer of the standard's interface is given.
#[must_use]
pub fn as_any(event: &Event) -> Any {
    if event.data.any_value.type_code().kind() == Kind::Null {
        return Any::new(event).unwrap_or_default();
    }
    event.data.any_value.clone()
}

/// Events that are handed on together: one, or what a conjunction has waited for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Set {
    One(Shared),
    Many(Vec<Shared>),
}

impl Set {
    pub(crate) fn events(&self) -> &[Shared] {
        match self {
            Self::One(event) => core::slice::from_ref(event),
            Self::Many(events) => events,
        }
    }

    /// When the last of them came.
    pub(crate) fn came(&self) -> u64 {
        self.events().last().map_or(0, |held| held.event.header.ec_recv_time)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.events().iter().map(|event| event.bytes).sum()
    }
}

/// Writes an event as it goes out: with the time, and with what a gateway may still do with it.
pub(crate) fn write(event: &Event, now: u64, hops_taken: i32, to: &mut Encoder) {
    let mut header = event.header.clone();
    header.ec_send_time = now;
    header.ttl = header.ttl.saturating_sub(hops_taken);
    header.write(to);
    event.data.write(to);
}
