//! What a reliable channel holds, as octets: events that wait, and what filters remember.
//!
//! An event that several consumers wait for is there once.
//!
//! Invariants: a channel that has taken this over hands on what the other one would have, with the
//! same numbers.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorba_base::canary;

use quorba_corba::Any;
use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_idl::rtec_event_comm::{Event, EventData, EventHeader};

use crate::channel::Channel;
use crate::event::{self, Set, Shared};
use crate::filter::Memory;
use crate::pulled::{Given, Pulled, Puller};
use crate::queue::{Item, Queue};
use crate::registry::Registry;
use crate::schedule::Key;
use crate::settings::{Limits, Settings};

/// Octets that an item of a queue takes at least.
const ITEM_BYTES: usize = 32;

/// Octets that a caller takes that has nothing.
const GIVEN_BYTES: usize = 18;

/// Octets that a consumer takes for which nothing waits.
const KEPT_BYTES: usize = 32;

/// What serves one consumer.
struct HeldChannel {
    next_number: u64,
    items: Vec<Item>,
    pulled: Pulled,
    memory: Memory<Shared>,
}

/// See the module's text.
pub(crate) struct HeldEvents {
    now: u64,
    next_arrival: u64,
    kept: BTreeMap<u64, HeldChannel>,
}

/// What is to be read.
#[derive(Clone, Copy)]
pub(crate) struct Form<'s> {
    /// The channel's.
    pub(crate) settings: &'s Settings,
    /// Of the state.
    pub(crate) version: u8,
}

/// The events of a state, and where each one stands in it.
#[derive(Default)]
struct Table {
    events: Vec<Shared>,
    places: BTreeMap<usize, u32>,
}

impl Table {
    /// The number of an event. Addresses tell events apart, and decide nothing else.
    fn place(&mut self, event: &Shared) -> u32 {
        let address = Arc::as_ptr(event) as usize;
        let next = self.events.len() as u32;
        let place = *self.places.entry(address).or_insert(next);
        if place == next {
            self.events.push(event.clone());
        }
        place
    }
}

fn write_events(events: &[Shared], table: &mut Table, out: &mut Writer) {
    out.write_count(events.len());
    events.iter().for_each(|event| out.write_u32(table.place(event)));
}

fn write_item(item: &Item, table: &mut Table, out: &mut Writer) {
    item.key.write(out);
    out.write_u64(item.number);
    out.write_bool(matches!(item.set, Set::Many(_)));
    write_events(item.set.events(), table, out);
}

fn write_pulled(pulled: &[Given], table: &mut Table, out: &mut Writer) {
    out.write_count(pulled.len());
    for given in pulled {
        out.write_u64(given.to.caller);
        out.write_u64(given.to.now);
        out.write_u32(given.run);
        out.write_bool(given.shares);
        out.write_bool(given.item.is_some());
        if let Some(item) = &given.item {
            write_item(item, table, out);
        }
    }
}

pub(crate) fn write(channel: &Channel, out: &mut Writer) {
    let mut table = Table::default();
    let mut body = Writer::new(crate::state::ORDER);
    body.write_count(channel.running.len());
    for (id, one) in &channel.running {
        body.write_u64(*id);
        body.write_u64(one.queue.next_number);
        body.write_count(one.queue.len());
        one.queue.items().for_each(|item| write_item(item, &mut table, &mut body));
        write_pulled(one.queue.pulled(), &mut table, &mut body);
        let memory = one.filter.memory();
        body.write_count(memory.marks.len());
        memory.marks.iter().for_each(|mark| body.write_bool(*mark));
        body.write_count(memory.stores.len());
        memory.stores.iter().for_each(|store| write_events(store, &mut table, &mut body));
        body.write_count(memory.dues.len());
        for due in memory.dues {
            body.write_bool(due.is_some());
            body.write_u64(due.unwrap_or(0));
        }
    }
    out.write_u64(channel.now);
    out.write_u64(channel.next_arrival);
    out.write_count(table.events.len());
    table.events.iter().for_each(|event| write_event(&event.event, out));
    out.write_octets(&body.finish());
}

fn write_event(event: &Event, out: &mut Writer) {
    let header = &event.header;
    out.write_i32(header.r#type);
    out.write_i32(header.source);
    out.write_i32(header.ttl);
    out.write_u64(header.creation_time);
    out.write_u64(header.ec_recv_time);
    out.write_u64(header.ec_send_time);
    out.write_i32(event.data.pad1);
    out.write_octets(&event.data.payload);
    event.data.any_value.keep(out);
}

fn read_event(from: &mut Reader<'_>) -> Result<Shared, MessageError> {
    let (event_type, source) = (from.read_i32("type")?, from.read_i32("source")?);
    let ttl = from.read_i32("ttl")?;
    let creation_time = from.read_u64("time")?;
    let (ec_recv_time, ec_send_time) = (from.read_u64("time")?, from.read_u64("time")?);
    let pad1 = from.read_i32("pad")?;
    // As large as any may be, and not as one may be now: a channel comes with what waits in it from
    // a domain whose order carries more.
    let payload = Vec::from(from.read_octets(Limits::default().event_bytes_max, "payload")?);
    let any_value = Any::kept(from)?;
    let header =
        EventHeader { r#type: event_type, source, ttl, creation_time, ec_recv_time, ec_send_time };
    Ok(event::shared(Event { header, data: EventData { pad1, payload, any_value } }))
}

fn read_set(from: &mut Reader<'_>, table: &[Shared]) -> Result<Vec<Shared>, MessageError> {
    let count = from.read_count(4, usize::MAX, "events")?;
    let mut events = Vec::with_capacity(count);
    for _ in 0..count {
        let place = from.read_u32("event")? as usize;
        events.push(table.get(place).cloned().ok_or(from.wrong("event"))?);
    }
    Ok(events)
}

fn read_item(from: &mut Reader<'_>, table: &[Shared]) -> Result<Item, MessageError> {
    let key = Key::read(from)?;
    let number = from.read_u64("number")?;
    let is_many = from.read_bool("set")?;
    let mut events = read_set(from, table)?;
    let set = match (is_many, events.pop()) {
        (true, Some(last)) => {
            events.push(last);
            Set::Many(events)
        }
        (false, Some(one)) if events.is_empty() => Set::One(one),
        _ => return Err(from.wrong("set")),
    };
    Ok(Item { key, number, set })
}

fn read_memory(
    from: &mut Reader<'_>,
    table: &[Shared],
    settings: &Settings,
) -> Result<Memory<Shared>, MessageError> {
    let limits = settings.limits.filter;
    let mut memory = Memory { marks: Vec::new(), stores: Vec::new(), dues: Vec::new() };
    for _ in 0..from.read_count(1, limits.entries_max, "marks")? {
        memory.marks.push(from.read_bool("mark")?);
    }
    let mut held = 0;
    for _ in 0..from.read_count(4, limits.entries_max, "stores")? {
        let store = read_set(from, table)?;
        held += store.len();
        memory.stores.push(store);
    }
    for _ in 0..from.read_count(9, limits.entries_max, "timers")? {
        let is_due = from.read_bool("timer")?;
        let due = from.read_u64("due")?;
        memory.dues.push(is_due.then_some(due));
    }
    if held > limits.held_max { Err(from.wrong("held")) } else { Ok(memory) }
}

fn read_kept(
    from: &mut Reader<'_>,
    table: &[Shared],
    form: Form<'_>,
) -> Result<HeldChannel, MessageError> {
    let settings = form.settings;
    let next_number = from.read_u64("next")?;
    let mut items: Vec<Item> = Vec::new();
    // They may be more than a queue takes now: pulled events come behind it, and a change of the
    // settings leaves what is there. The octets bound them.
    for _ in 0..from.read_count(ITEM_BYTES, usize::MAX, "items")? {
        let item = read_item(from, table)?;
        let is_behind = items.last().is_none_or(|last| last.number < item.number);
        if !is_behind || item.number >= next_number {
            return Err(from.wrong("number"));
        }
        items.push(item);
    }
    let pulled = read_pulled(from, table, form.version)?;
    Ok(HeldChannel { next_number, items, pulled, memory: read_memory(from, table, settings)? })
}

fn read_pulled(
    from: &mut Reader<'_>,
    table: &[Shared],
    version: u8,
) -> Result<Pulled, MessageError> {
    let mut pulled = Pulled::default();
    if version < 2 {
        return Ok(pulled);
    }
    for _ in 0..from.read_count(GIVEN_BYTES, usize::MAX, "callers")? {
        let to = Puller { caller: from.read_u64("caller")?, now: from.read_u64("time")? };
        let run = if version < 3 { 0 } else { from.read_u32("run")? };
        let (shares, has_item) = (from.read_bool("shares")?, from.read_bool("item")?);
        let item = has_item.then(|| read_item(from, table)).transpose()?;
        if !pulled.restore(Given { to, item, shares, run }) {
            return Err(from.wrong("caller"));
        }
    }
    Ok(pulled)
}

pub(crate) fn read(
    from: &mut Reader<'_>,
    registry: &Registry,
    form: Form<'_>,
) -> Result<HeldEvents, MessageError> {
    let settings = form.settings;
    let (now, next_arrival) = (from.read_u64("now")?, from.read_u64("arrival")?);
    let mut table = Vec::new();
    for _ in 0..from.read_count(50, usize::MAX, "events")? {
        table.push(read_event(from)?);
    }
    let body = from.read_octets(usize::MAX, "consumers")?;
    let from = &mut Reader::new(body, crate::state::ORDER);
    let mut kept = BTreeMap::new();
    for _ in 0..from.read_count(KEPT_BYTES, settings.limits.proxies_max, "consumers")? {
        let id = from.read_u64("consumer")?;
        let is_known = registry.consumers.get(&id).is_some_and(|one| one.peer.is_some());
        let is_behind = kept.last_key_value().is_none_or(|(last, _)| *last < id);
        if !is_known || !is_behind {
            return Err(from.wrong("consumer"));
        }
        kept.insert(id, read_kept(from, &table, form)?);
    }
    if from.remaining() > 0 {
        return Err(from.wrong("end"));
    }
    Ok(HeldEvents { now, next_arrival, kept })
}

/// Puts into a channel what was read, after its subscriptions are those of the same state.
pub(crate) fn restore(channel: &mut Channel, held: HeldEvents) {
    channel.now = held.now;
    channel.next_arrival = held.next_arrival;
    for (id, kept) in held.kept {
        if let Some(one) = channel.running.get_mut(&id) {
            if let Some(at) = one.queue.retry_at {
                channel.retries.remove(&(at, id));
            }
            one.filter.remember(kept.memory);
        }
        channel.with_queue(id, |queue| {
            *queue = Queue::default();
            queue.next_number = kept.next_number;
            let items = kept.items.into_iter().filter(|_| !canary!(LosesQueuesInTransfer));
            items.for_each(|item| queue.restore(item));
            queue.restore_pulled(kept.pulled);
        });
        channel.refresh(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_2_says_of_those_that_pull_is_read() {
        for version in [2, 3] {
            let mut out = Writer::new(crate::state::ORDER);
            out.write_count(2);
            for caller in [7, 8] {
                out.write_u64(caller);
                out.write_u64(100);
                if version == 3 {
                    out.write_u32(1);
                }
                out.write_bool(true);
                out.write_bool(false);
            }
            let octets = out.finish();
            let mut from = Reader::new(&octets, crate::state::ORDER);
            let pulled = read_pulled(&mut from, &[], version).expect("a list");
            let given: Vec<_> =
                pulled.given().iter().map(|it| (it.to.caller, it.shares, it.run)).collect();
            let run = u32::from(version) - 2;
            assert_eq!(given, [(7, true, run), (8, true, run)]);
            assert_eq!(from.remaining(), 0);
        }
        let mut from = Reader::new(&[], crate::state::ORDER);
        assert_eq!(read_pulled(&mut from, &[], 1), Ok(Pulled::default()));
    }
}
