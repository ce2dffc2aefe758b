//! Subscriptions as octets: the whole registry, or one change of it.
//!
//! Invariants: the octets are a function of what is said, in one order; what cannot be read whole,
//! or is larger than the limits allow, changes nothing.

use alloc::vec::Vec;

use quorba_corba::Object;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::ior::Ior;
use quorba_corba::giop::{Endian, MessageError};

use crate::filter::{Entry, Filter};
use crate::registry::{
    Change, Consumer, ConsumerForm, Offered, Published, Registry, Supplier, SupplierForm, Wanted,
};
use crate::settings::Limits;

/// The byte order of states.
pub(crate) const ORDER: Endian = Endian::Big;
/// What a state begins with: a name; the version of what follows is behind it.
const NAME: &[u8] = b"QEVENTS";
/// The version that is written. The first one had nothing of those that pull, the second one not
/// how often each of them has pulled without others between, the third one no numbers of
/// connections.
const VERSION: u8 = 4;
/// What a change begins with.
const UPDATE_HEAD: &[u8] = b"QEVUPDT\x01";
/// Octets that an entry takes.
const ENTRY_BYTES: usize = 20;
const PUBLISHED_BYTES: usize = 12;

fn write_object(object: &Object, out: &mut Writer) {
    let mut octets = Writer::new(ORDER);
    object.0.write(&mut octets);
    out.write_octets(&octets.finish());
}

fn read_object(from: &mut Reader<'_>, limits: &Limits) -> Result<Object, MessageError> {
    let octets = from.read_octets(limits.reference_bytes_max, "reference")?;
    let mut inner = Reader::new(octets, ORDER);
    let ior = Ior::read(&mut inner)?;
    if inner.remaining() > 0 { Err(from.wrong("reference")) } else { Ok(Object(ior)) }
}

/// Octets that a reference takes.
pub(crate) fn object_bytes(object: &Object) -> usize {
    let mut octets = Writer::new(ORDER);
    object.0.write(&mut octets);
    octets.position()
}

fn write_wanted(wanted: &Wanted, out: &mut Writer) {
    out.write_bool(wanted.is_gateway);
    out.write_count(wanted.entries.len());
    for entry in &wanted.entries {
        out.write_i32(entry.event_type);
        out.write_i32(entry.source);
        out.write_i32(entry.rt_info);
        out.write_u64(entry.period);
    }
}

fn read_wanted(from: &mut Reader<'_>, limits: &Limits) -> Result<Wanted, MessageError> {
    let is_gateway = from.read_bool("gateway")?;
    let count = from.read_count(ENTRY_BYTES, limits.filter.entries_max, "entries")?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let (event_type, source) = (from.read_i32("type")?, from.read_i32("source")?);
        let rt_info = from.read_i32("rt_info")?;
        entries.push(Entry { event_type, source, period: from.read_u64("period")?, rt_info });
    }
    if Filter::<()>::compile(&entries, limits.filter.of_kept()).is_err() {
        return Err(from.wrong("filter"));
    }
    Ok(Wanted { entries, is_gateway })
}

fn write_offered(offered: &Offered, out: &mut Writer) {
    out.write_bool(offered.is_gateway);
    out.write_count(offered.publications.len());
    for one in &offered.publications {
        out.write_i32(one.event_type);
        out.write_i32(one.source);
        out.write_i32(one.rt_info);
    }
}

fn read_offered(from: &mut Reader<'_>, limits: &Limits) -> Result<Offered, MessageError> {
    let is_gateway = from.read_bool("gateway")?;
    let count = from.read_count(PUBLISHED_BYTES, limits.publications_max, "publications")?;
    let mut publications = Vec::with_capacity(count);
    for _ in 0..count {
        let (event_type, source) = (from.read_i32("type")?, from.read_i32("source")?);
        publications.push(Published { event_type, source, rt_info: from.read_i32("rt_info")? });
    }
    Ok(Offered { publications, is_gateway })
}

fn number_of<T: PartialEq>(all: &[T], one: T) -> u8 {
    let at = all.iter().position(|each| *each == one);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

fn read_form<T: Copy>(from: &mut Reader<'_>, all: &[T]) -> Result<T, MessageError> {
    let number = from.read_u8("form")?;
    all.get(usize::from(number)).copied().ok_or(from.wrong("form"))
}

fn write_peer(peer: Option<&Object>, out: &mut Writer) {
    out.write_bool(peer.is_some());
    if let Some(peer) = peer {
        write_object(peer, out);
    }
}

fn read_peer(from: &mut Reader<'_>, limits: &Limits) -> Result<Option<Object>, MessageError> {
    let is_there = from.read_bool("peer")?;
    is_there.then(|| read_object(from, limits)).transpose()
}

/// The number of a connection, in a state of `version` whose last change is `sequence`.
fn read_connection(from: &mut Reader<'_>, version: u8, sequence: u64) -> Result<u64, MessageError> {
    let number = if version < 4 { 0 } else { from.read_u64("connection")? };
    if number <= sequence { Ok(number) } else { Err(from.wrong("connection")) }
}

/// The registry as octets.
pub(crate) fn write(registry: &Registry, out: &mut Writer) {
    out.write_raw(NAME);
    out.write_u8(VERSION);
    out.write_u64(registry.sequence);
    out.write_u64(registry.first_proxy);
    out.write_u64(registry.next_proxy);
    out.write_u32(registry.next_observer);
    out.write_bool(registry.is_destroyed);
    out.write_count(registry.consumers.len());
    for (id, consumer) in &registry.consumers {
        out.write_u64(*id);
        out.write_u8(number_of(&ConsumerForm::ALL, consumer.form));
        out.write_bool(consumer.is_suspended);
        write_peer(consumer.peer.as_ref(), out);
        out.write_u64(consumer.connection);
        write_wanted(&consumer.wanted, out);
    }
    out.write_count(registry.suppliers.len());
    for (id, supplier) in &registry.suppliers {
        out.write_u64(*id);
        out.write_u8(number_of(&SupplierForm::ALL, supplier.form));
        write_peer(supplier.peer.as_ref(), out);
        out.write_u64(supplier.connection);
        write_offered(&supplier.offered, out);
    }
    out.write_count(registry.observers.len());
    for (handle, observer) in &registry.observers {
        out.write_u32(*handle);
        write_object(observer, out);
    }
}

/// Whether octets are a whole state, and not one change.
pub(crate) fn is_whole(octets: &[u8]) -> bool {
    octets.starts_with(NAME)
}

/// Reads the beginning of a state: its version.
pub(crate) fn read_head(from: &mut Reader<'_>) -> Result<u8, MessageError> {
    let name = from.take(NAME.len(), "head")?;
    let version = from.read_u8("version")?;
    let is_known = name == NAME && (1..=VERSION).contains(&version);
    if is_known { Ok(version) } else { Err(from.wrong("head")) }
}

/// Reads what [`write()`] wrote behind the head of that version; what follows it is left.
pub(crate) fn read(
    from: &mut Reader<'_>,
    limits: &Limits,
    version: u8,
) -> Result<Registry, MessageError> {
    let mut registry = Registry { sequence: from.read_u64("sequence")?, ..Registry::default() };
    if version > 3 {
        registry.first_proxy = from.read_u64("first proxy")?;
    }
    registry.next_proxy = from.read_u64("proxies")?;
    registry.next_observer = from.read_u32("observers")?;
    registry.is_destroyed = from.read_bool("destroyed")?;
    let mut last = 0;
    for _ in 0..from.read_count(15, limits.proxies_max, "consumers")? {
        let id = from.read_u64("consumer")?;
        if id <= core::mem::replace(&mut last, id) {
            return Err(from.wrong("consumer"));
        }
        let form = read_form(from, &ConsumerForm::ALL)?;
        let is_suspended = from.read_bool("suspended")?;
        let peer = read_peer(from, limits)?;
        let connection = read_connection(from, version, registry.sequence)?;
        let wanted = read_wanted(from, limits)?;
        registry.consumers.insert(id, Consumer { form, peer, wanted, is_suspended, connection });
    }
    let highest = core::mem::take(&mut last);
    for _ in 0..from.read_count(14, limits.proxies_max, "suppliers")? {
        let id = from.read_u64("supplier")?;
        let is_both = registry.consumers.contains_key(&id);
        if id <= core::mem::replace(&mut last, id) || is_both {
            return Err(from.wrong("supplier"));
        }
        let form = read_form(from, &SupplierForm::ALL)?;
        let peer = read_peer(from, limits)?;
        let connection = read_connection(from, version, registry.sequence)?;
        let offered = read_offered(from, limits)?;
        registry.suppliers.insert(id, Supplier { form, peer, offered, connection });
    }
    let highest = highest.max(last);
    let mut last = 0;
    for _ in 0..from.read_count(8, limits.observers_max, "observers")? {
        let handle = from.read_u32("observer")?;
        if handle <= core::mem::replace(&mut last, handle) {
            return Err(from.wrong("observer"));
        }
        registry.observers.insert(handle, read_object(from, limits)?);
    }
    let is_behind = highest >= registry.next_proxy || last >= registry.next_observer;
    let is_more = registry.is_destroyed && (registry.proxies() > 0 || last > 0);
    if is_behind || is_more || registry.proxies() > limits.proxies_max {
        return Err(from.wrong("end"));
    }
    registry.count_bytes();
    Ok(registry)
}

/// A change with its number as octets.
pub(crate) fn write_update(sequence: u64, change: &Change) -> Vec<u8> {
    let mut out = Writer::new(ORDER);
    out.write_raw(UPDATE_HEAD);
    out.write_u64(sequence);
    let out = &mut out;
    match change {
        Change::NewConsumer { form } => {
            out.write_u8(0);
            out.write_u8(number_of(&ConsumerForm::ALL, *form));
        }
        Change::NewSupplier { form } => {
            out.write_u8(1);
            out.write_u8(number_of(&SupplierForm::ALL, *form));
        }
        Change::ConnectConsumer { id, peer, wanted } => {
            out.write_u8(2);
            out.write_u64(*id);
            write_object(peer, out);
            write_wanted(wanted, out);
        }
        Change::ConnectSupplier { id, peer, offered } => {
            out.write_u8(3);
            out.write_u64(*id);
            write_object(peer, out);
            write_offered(offered, out);
        }
        Change::Suspend { id, is_suspended } => {
            out.write_u8(4);
            out.write_u64(*id);
            out.write_bool(*is_suspended);
        }
        Change::EndConsumer { id } => {
            out.write_u8(5);
            out.write_u64(*id);
        }
        Change::EndSupplier { id } => {
            out.write_u8(6);
            out.write_u64(*id);
        }
        Change::Observe { observer } => {
            out.write_u8(7);
            write_object(observer, out);
        }
        Change::Unobserve { handle } => {
            out.write_u8(8);
            out.write_u32(*handle);
        }
        Change::Destroy => out.write_u8(9),
    }
    core::mem::replace(out, Writer::new(ORDER)).finish()
}

/// Reads what [`write_update`] wrote.
pub(crate) fn read_update(octets: &[u8], limits: &Limits) -> Result<(u64, Change), MessageError> {
    let mut from = Reader::new(octets, ORDER);
    if from.take(UPDATE_HEAD.len(), "head")? != UPDATE_HEAD {
        return Err(from.wrong("head"));
    }
    let sequence = from.read_u64("sequence")?;
    let from = &mut from;
    let change = match from.read_u8("change")? {
        0 => Change::NewConsumer { form: read_form(from, &ConsumerForm::ALL)? },
        1 => Change::NewSupplier { form: read_form(from, &SupplierForm::ALL)? },
        2 => {
            let id = from.read_u64("id")?;
            let peer = read_object(from, limits)?;
            Change::ConnectConsumer { id, peer, wanted: read_wanted(from, limits)? }
        }
        3 => {
            let id = from.read_u64("id")?;
            let peer = read_object(from, limits)?;
            Change::ConnectSupplier { id, peer, offered: read_offered(from, limits)? }
        }
        4 => {
            let id = from.read_u64("id")?;
            Change::Suspend { id, is_suspended: from.read_bool("suspended")? }
        }
        5 => Change::EndConsumer { id: from.read_u64("id")? },
        6 => Change::EndSupplier { id: from.read_u64("id")? },
        7 => Change::Observe { observer: read_object(from, limits)? },
        8 => Change::Unobserve { handle: from.read_u32("handle")? },
        9 => Change::Destroy,
        _ => return Err(from.wrong("change")),
    };
    if from.remaining() > 0 { Err(from.wrong("end")) } else { Ok((sequence, change)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A registry with a consumer and a supplier, as each version has it.
    fn registry(version: u8, connection: u64) -> Vec<u8> {
        let mut out = Writer::new(ORDER);
        out.write_raw(NAME);
        out.write_u8(version);
        out.write_u64(4);
        if version > 3 {
            out.write_u64(1);
        }
        out.write_u64(3);
        out.write_u32(1);
        out.write_bool(false);
        for (id, is_consumer) in [(1, true), (2, false)] {
            out.write_count(1);
            out.write_u64(id);
            out.write_u8(2);
            if is_consumer {
                out.write_bool(false);
            }
            write_peer(Some(&Object::nil()), &mut out);
            if version > 3 {
                out.write_u64(connection);
            }
            out.write_bool(false);
            out.write_count(0);
        }
        out.write_count(0);
        out.finish()
    }

    fn read_whole(octets: &[u8]) -> Result<Registry, MessageError> {
        let mut from = Reader::new(octets, ORDER);
        let version = read_head(&mut from)?;
        let registry = read(&mut from, &Limits::default(), version)?;
        assert_eq!(from.remaining(), 0);
        Ok(registry)
    }

    #[test]
    fn what_version_3_says_of_proxies_is_read() {
        for version in [1, 2, 3, 4] {
            let registry = read_whole(&registry(version, 3)).expect("a registry");
            let connection = if version < 4 { 0 } else { 3 };
            assert_eq!(registry.consumers[&1].connection, connection);
            assert_eq!(registry.suppliers[&2].connection, connection);
        }
        assert!(read_whole(&registry(4, 5)).is_err(), "it had four changes");
        assert!(read_whole(&registry(5, 3)).is_err(), "nobody here knows that version");
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let octets = registry(VERSION, 3);
        let mut out = Writer::new(ORDER);
        write(&read_whole(&octets).expect("a registry"), &mut out);
        assert_eq!(out.finish(), octets);
    }
}
