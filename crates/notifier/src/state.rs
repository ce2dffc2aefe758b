//! The state as octets: what replicas hand each other, and what a backup keeps.
//!
//! Invariants: it is a function of what the notifier knows, in one order; a state that cannot be
//! read whole changes nothing.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::ior::Ior;
use quorba_corba::giop::{Endian, Fault, MessageError};
use quorba_corba::{Any, Object};
use quorba_idl::checkpoint::{give_state, take_state};
use quorba_idl::cos_notification as cn;
use quorba_idl::ft::checkpointable::{GetStateError, SetStateError};
use quorba_idl::ft::{self, Checkpointable};

use crate::analyzer::Analyzer;
use crate::filter::Filter;
use crate::notifier::{Consumer, Gone, Notifier, State, Wanted};

/// What a state begins with: a name, and the version of what follows.
const HEAD: &[u8] = b"QFAULTS\x03";
/// The same of one that says nothing of forms, or of who is told that it was cut off.
const HEAD_2: &[u8] = b"QFAULTS\x02";
/// The same of one that says nothing of what the manager has to be told, either.
const HEAD_1: &[u8] = b"QFAULTS\x01";
const ORDER: Endian = Endian::Big;

fn write_text(text: &str, out: &mut Writer) {
    out.write_octets(text.as_bytes());
}

fn write_properties(properties: &[cn::Property], out: &mut Writer) {
    out.write_count(properties.len());
    for property in properties {
        write_text(&property.name, out);
        property.value.keep(out);
    }
}

/// An event; any values stay as they came.
pub(crate) fn event_octets(event: &cn::StructuredEvent) -> Vec<u8> {
    let mut out = Writer::new(ORDER);
    let fixed = &event.header.fixed_header;
    write_text(&fixed.event_type.domain_name, &mut out);
    write_text(&fixed.event_type.type_name, &mut out);
    write_text(&fixed.event_name, &mut out);
    write_properties(&event.header.variable_header, &mut out);
    write_properties(&event.filterable_data, &mut out);
    event.remainder_of_body.keep(&mut out);
    out.finish()
}

fn read_text(from: &mut Reader<'_>, what: &'static str) -> Result<String, MessageError> {
    let offset = from.position();
    let octets = from.read_octets(usize::MAX, what)?;
    let fault = Fault::Value;
    String::from_utf8(octets.to_vec()).map_err(|_| MessageError { what, offset, fault })
}

fn read_properties(from: &mut Reader<'_>) -> Result<cn::PropertySeq, MessageError> {
    let mut properties = cn::PropertySeq::new();
    for _ in 0..from.read_count(12, usize::MAX, "properties")? {
        let name = read_text(from, "name")?;
        properties.push(cn::Property { name, value: Any::kept(from)? });
    }
    Ok(properties)
}

fn read_event(octets: &[u8]) -> Result<cn::StructuredEvent, MessageError> {
    let mut from = Reader::new(octets, ORDER);
    let domain_name = read_text(&mut from, "domain")?;
    let type_name = read_text(&mut from, "type")?;
    let event_name = read_text(&mut from, "event")?;
    let variable_header = read_properties(&mut from)?;
    let filterable_data = read_properties(&mut from)?;
    let remainder_of_body = Any::kept(&mut from)?;
    if from.remaining() > 0 {
        return Err(from.wrong("event"));
    }
    let event_type = cn::EventType { domain_name, type_name };
    let fixed_header = cn::FixedEventHeader { event_type, event_name };
    let header = cn::EventHeader { fixed_header, variable_header };
    Ok(cn::StructuredEvent { header, filterable_data, remainder_of_body })
}

pub(crate) fn write(state: &State) -> Vec<u8> {
    let mut out = Writer::new(ORDER);
    out.write_raw(HEAD);
    out.write_u64(state.last_consumer);
    out.write_u64(state.last_filter);
    out.write_u64(state.last_report);
    out.write_count(state.filters.len());
    for (id, filter) in &state.filters {
        out.write_u64(*id);
        filter.keep(&mut out);
    }
    out.write_count(state.consumers.len());
    for (id, consumer) in &state.consumers {
        out.write_u64(*id);
        out.write_octets(&consumer.reference.0.encode(ORDER));
        out.write_bool(consumer.is_batch);
        out.write_bool(consumer.is_of_tao);
        match &consumer.wanted {
            Wanted::Own(filter) => {
                out.write_u8(0);
                filter.keep(&mut out);
            }
            Wanted::Of(filter) => {
                out.write_u8(1);
                out.write_u64(*filter);
            }
        }
        out.write_count(consumer.waiting.len());
        consumer.waiting.iter().for_each(|number| out.write_u64(*number));
    }
    out.write_count(state.reports.len());
    for (number, event) in &state.reports {
        out.write_u64(*number);
        out.write_octets(&event_octets(event));
    }
    out.write_count(state.cut_off.len());
    for gone in &state.cut_off {
        out.write_u64(gone.id);
        out.write_octets(&gone.reference.0.encode(ORDER));
        out.write_bool(gone.is_batch);
        write_text(&gone.why, &mut out);
        out.write_bool(gone.is_told);
    }
    out.write_count(state.analyzer.incidents.len());
    state.analyzer.incidents.iter().for_each(|incident| write_text(incident, &mut out));
    for locations in [&state.analyzer.dead, &state.analyzer.back] {
        out.write_count(locations.len());
        for (location, view) in locations {
            write_text(location, &mut out);
            out.write_u64(*view);
        }
    }
    out.write_count(state.for_manager.len());
    state.for_manager.iter().for_each(|number| out.write_u64(*number));
    out.finish()
}

/// Reads numbered things; the numbers rise, and none is beyond `last`.
fn read_numbered<T>(
    from: &mut Reader<'_>,
    least: usize,
    last: u64,
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T, MessageError>,
) -> Result<BTreeMap<u64, T>, MessageError> {
    let mut map = BTreeMap::new();
    for _ in 0..from.read_count(least, usize::MAX, "count")? {
        let id = from.read_u64("number")?;
        let is_next = map.last_key_value().is_none_or(|(before, _)| *before < id);
        let value = read(from)?;
        if !is_next || id > last || id == 0 {
            return Err(from.wrong("number"));
        }
        map.insert(id, value);
    }
    Ok(map)
}

fn read_reference(from: &mut Reader<'_>) -> Result<Object, MessageError> {
    let octets = from.read_octets(usize::MAX, "reference")?;
    let reference = Ior::decode(octets)?;
    // One way only to write it.
    if reference.encode(ORDER) != octets {
        return Err(from.wrong("reference"));
    }
    Ok(Object(reference))
}

fn read_gone(from: &mut Reader<'_>, is_whole: bool) -> Result<Gone, MessageError> {
    let id = from.read_u64("consumer")?;
    let (mut reference, mut is_batch, mut is_told) = (Object::nil(), false, true);
    if is_whole {
        (reference, is_batch) = (read_reference(from)?, from.read_bool("batch")?);
    }
    let why = read_text(from, "why")?;
    if is_whole {
        is_told = from.read_bool("told")?;
    }
    Ok(Gone { id, reference, is_batch, why, is_told })
}

fn read_consumer(
    from: &mut Reader<'_>,
    last_report: u64,
    says_form: bool,
) -> Result<Consumer, MessageError> {
    let reference = read_reference(from)?;
    let is_batch = from.read_bool("batch")?;
    let is_said_of_tao = says_form && from.read_bool("form")?;
    let wanted = match from.read_u8("wanted")? {
        0 => Wanted::Own(Filter::kept(from)?),
        1 => Wanted::Of(from.read_u64("filter")?),
        _ => return Err(from.wrong("wanted")),
    };
    let mut waiting = read_waiting(from, last_report)?;
    if canary!(LosesReportsInTransfer) {
        waiting.clear();
    }
    // Filter objects are TAO's alone.
    let is_of_tao = is_said_of_tao || !says_form && matches!(wanted, Wanted::Of(_));
    Ok(Consumer { reference, is_batch, is_of_tao, wanted, waiting })
}

fn read_waiting(from: &mut Reader<'_>, last_report: u64) -> Result<VecDeque<u64>, MessageError> {
    let mut waiting = VecDeque::new();
    for _ in 0..from.read_count(8, usize::MAX, "waiting")? {
        let number = from.read_u64("report")?;
        if number > last_report || waiting.back().is_some_and(|last| *last >= number) {
            return Err(from.wrong("report"));
        }
        waiting.push_back(number);
    }
    Ok(waiting)
}

fn read_locations(from: &mut Reader<'_>) -> Result<BTreeMap<String, u64>, MessageError> {
    let mut locations = BTreeMap::new();
    for _ in 0..from.read_count(12, usize::MAX, "locations")? {
        let location = read_text(from, "location")?;
        if locations.last_key_value().is_some_and(|(last, _)| *last >= location) {
            return Err(from.wrong("location"));
        }
        let view = from.read_u64("view")?;
        locations.insert(location, view);
    }
    Ok(locations)
}

pub(crate) fn read(octets: &[u8]) -> Result<State, MessageError> {
    let mut from = Reader::new(octets, ORDER);
    let head = from.take(HEAD.len(), "head")?;
    if ![HEAD, HEAD_2, HEAD_1].contains(&head) {
        return Err(from.wrong("head"));
    }
    let is_whole = head == HEAD;
    let last_consumer = from.read_u64("consumers")?;
    let last_filter = from.read_u64("filters")?;
    let last_report = from.read_u64("reports")?;
    let filters = read_numbered(&mut from, 16, last_filter, Filter::kept)?;
    let consumers = read_numbered(&mut from, 18, last_consumer, |from| {
        read_consumer(from, last_report, is_whole)
    })?;
    let reports = read_numbered(&mut from, 12, last_report, |from| {
        let octets = from.read_octets(usize::MAX, "event")?;
        let event = read_event(octets)?;
        if event_octets(&event) == octets { Ok(event) } else { Err(from.wrong("event")) }
    })?;
    let mut cut_off = VecDeque::new();
    for _ in 0..from.read_count(12, usize::MAX, "cut off")? {
        cut_off.push_back(read_gone(&mut from, is_whole)?);
    }
    let mut incidents = VecDeque::new();
    for _ in 0..from.read_count(4, usize::MAX, "incidents")? {
        incidents.push_back(read_text(&mut from, "incident")?);
    }
    let dead = read_locations(&mut from)?;
    let back = read_locations(&mut from)?;
    let for_manager = match head == HEAD_1 {
        true => VecDeque::new(),
        false => read_waiting(&mut from, last_report)?,
    };
    if from.remaining() > 0 {
        return Err(from.wrong("end"));
    }
    let analyzer = Analyzer { incidents, dead, back };
    Ok(State {
        last_consumer,
        consumers,
        last_filter,
        filters,
        last_report,
        reports,
        cut_off,
        analyzer,
        for_manager,
    })
}

impl Checkpointable for Notifier {
    fn get_state(&mut self) -> Result<ft::State, GetStateError> {
        give_state(self.state())
    }

    fn set_state(&mut self, s: ft::State) -> Result<(), SetStateError> {
        take_state(self.take_over(&s))
    }
}
