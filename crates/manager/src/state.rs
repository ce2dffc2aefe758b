//! The state as octets: what replicas hand each other; and of it what is of no group, which the
//! manager writes into its own definition.
//!
//! Invariants: it is a function of what the manager knows, in one order; a state that cannot be
//! read whole changes nothing.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::Transport;
use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_idl::checkpoint::{give_state, take_state};
use quorba_idl::ft::checkpointable::{GetStateError, SetStateError};
use quorba_idl::ft::{self, Checkpointable};

use crate::group::{Group, keep_object, kept_object, kept_text};
use crate::manager::{Manager, Registered, State};
use crate::property::{self, ORDER, Values};
use crate::reports::Reports;
use crate::trials;

/// What a state begins with: a name, and the version of what follows.
const HEAD: &[u8] = b"QMANAGE\x03";
/// The same of one that says nothing of newcomers.
const HEAD_2: &[u8] = b"QMANAGE\x02";
/// The same of one that says nothing of reports and of groups in doubt.
const HEAD_1: &[u8] = b"QMANAGE\x01";
/// The same of what stands in the manager's own definition.
const OWN_HEAD: &[u8] = b"QMANOWN\x01";
/// The same with groups that are to go.
const OWN_GARBAGE_HEAD: &[u8] = b"QMANOWN\x02";

pub(crate) fn write(state: &State) -> Vec<u8> {
    let mut out = Writer::new(ORDER);
    out.write_raw(HEAD);
    out.write_octets(state.domain_id.as_bytes());
    out.write_u64(state.next_group);
    out.write_bool(state.is_unsaved);
    let garbage = if canary!(LosesGarbageInTransfer) { &BTreeSet::new() } else { &state.garbage };
    write_numbers(garbage, &mut out);
    write_numbers(&state.doubtful, &mut out);
    write_common(state, &mut out);
    write_groups(&state.groups.iter().collect::<Vec<_>>(), &mut out);
    state.reports.keep(&mut out);
    trials::keep(&state.trials, &mut out);
    out.finish()
}

pub(crate) fn write_own(state: &State) -> Vec<u8> {
    let mut out = Writer::new(ORDER);
    out.write_raw(if state.garbage.is_empty() { OWN_HEAD } else { OWN_GARBAGE_HEAD });
    if !state.garbage.is_empty() {
        write_numbers(&state.garbage, &mut out);
    }
    write_common(state, &mut out);
    // Others stand in definitions of their own.
    let empty: Vec<_> = state.groups.iter().filter(|(_, group)| group.members.is_empty()).collect();
    write_groups(&empty, &mut out);
    out.finish()
}

fn write_numbers(numbers: &BTreeSet<u64>, out: &mut Writer) {
    out.write_count(numbers.len());
    numbers.iter().for_each(|id| out.write_u64(*id));
}

fn read_numbers(from: &mut Reader<'_>, what: &'static str) -> Result<BTreeSet<u64>, MessageError> {
    let mut numbers = BTreeSet::new();
    for _ in 0..from.read_count(8, usize::MAX, what)? {
        let id = from.read_u64(what)?;
        if numbers.last().is_some_and(|last| *last >= id) {
            return Err(from.wrong(what));
        }
        numbers.insert(id);
    }
    Ok(numbers)
}

/// The same, where there must be some.
fn read_some(from: &mut Reader<'_>, what: &'static str) -> Result<BTreeSet<u64>, MessageError> {
    let numbers = read_numbers(from, what)?;
    if numbers.is_empty() { Err(from.wrong(what)) } else { Ok(numbers) }
}

fn write_groups(groups: &[(&u64, &Group)], out: &mut Writer) {
    out.write_count(groups.len());
    for (id, group) in groups {
        out.write_u64(**id);
        group.keep(out);
        keep_object(&group.reference, out);
    }
}

fn write_common(state: &State, out: &mut Writer) {
    out.write_u64(state.reserved);
    property::keep(&state.defaults, out);
    out.write_count(state.types.len());
    for (type_id, values) in &state.types {
        out.write_octets(type_id.as_bytes());
        property::keep(values, out);
    }
    out.write_bool(state.notifier.is_some());
    if let Some(notifier) = &state.notifier {
        keep_object(notifier, out);
    }
    out.write_count(state.registry.len());
    for ((role, _), one) in &state.registry {
        out.write_octets(role.as_bytes());
        out.write_octets(one.type_id.as_bytes());
        let info = Vec::from([one.info.clone()]);
        let values = Values::from([(property::Key::Factories, property::Value::Factories(info))]);
        property::keep(&values, out);
    }
}

pub(crate) fn read(octets: &[u8]) -> Result<State, MessageError> {
    let mut from = Reader::new(octets, ORDER);
    let head = from.take(HEAD.len(), "head")?;
    if ![HEAD, HEAD_2, HEAD_1].contains(&head) {
        return Err(from.wrong("head"));
    }
    let mut state = State { domain_id: kept_text(&mut from, "domain")?, ..State::default() };
    state.next_group = from.read_u64("groups")?;
    state.is_unsaved = from.read_bool("unsaved")?;
    state.garbage = read_numbers(&mut from, "garbage")?;
    if head != HEAD_1 {
        state.doubtful = read_numbers(&mut from, "doubt")?;
    }
    read_common(&mut from, &mut state)?;
    state.groups = read_groups(&mut from)?;
    if head != HEAD_1 {
        state.reports = Reports::kept(&mut from)?;
    }
    if head == HEAD {
        state.trials = trials::kept(&mut from)?;
    }
    let is_behind = state.groups.last_key_value().is_some_and(|(id, _)| *id >= state.next_group);
    if is_behind || from.remaining() > 0 {
        return Err(from.wrong("end"));
    }
    Ok(state)
}

/// Takes what a manager before wrote into its definition; nothing if that is not it.
pub(crate) fn read_own(octets: &[u8], state: &mut State) {
    let read = |octets: &[u8]| {
        let mut from = Reader::new(octets, ORDER);
        let head = from.take(OWN_HEAD.len(), "head")?;
        let has_garbage = head == OWN_GARBAGE_HEAD;
        if head != OWN_HEAD && !has_garbage {
            return Err(from.wrong("head"));
        }
        let mut own = State::default();
        if has_garbage {
            own.garbage = read_some(&mut from, "garbage")?;
        }
        read_common(&mut from, &mut own)?;
        own.groups = read_groups(&mut from)?;
        if from.remaining() > 0 { Err(from.wrong("end")) } else { Ok(own) }
    };
    if let Ok(own) = read(octets) {
        let last = own.groups.last_key_value().map_or(0, |(id, _)| *id);
        let reserved = if canary!(ForgetsReserved) { 0 } else { own.reserved };
        let next_group = state.next_group.max(reserved).max(last + 1);
        *state = State { next_group, ..own };
    }
}

fn read_groups(from: &mut Reader<'_>) -> Result<BTreeMap<u64, Group>, MessageError> {
    let mut groups = BTreeMap::new();
    for _ in 0..from.read_count(28, usize::MAX, "groups")? {
        let id = from.read_u64("group")?;
        let mut group = Group::kept(from)?;
        group.reference = kept_object(from)?;
        if groups.last_key_value().is_some_and(|(last, _)| *last >= id) {
            return Err(from.wrong("group"));
        }
        groups.insert(id, group);
    }
    Ok(groups)
}

fn read_common(from: &mut Reader<'_>, state: &mut State) -> Result<(), MessageError> {
    state.reserved = from.read_u64("reserved")?;
    state.defaults = property::kept(from)?;
    for _ in 0..from.read_count(8, usize::MAX, "types")? {
        let type_id = kept_text(from, "type")?;
        let values = property::kept(from)?;
        if state.types.last_key_value().is_some_and(|(last, _)| *last >= type_id) {
            return Err(from.wrong("type"));
        }
        state.types.insert(type_id, values);
    }
    if from.read_bool("notifier")? {
        state.notifier = Some(kept_object(from)?);
    }
    for _ in 0..from.read_count(12, usize::MAX, "factories")? {
        let role = kept_text(from, "role")?;
        let type_id = kept_text(from, "type")?;
        let mut values = property::kept(from)?;
        let fault = from.wrong("factory");
        let infos = match values.pop_first() {
            Some((property::Key::Factories, property::Value::Factories(infos))) => infos,
            _ => return Err(fault),
        };
        let (Ok([info]), true) = (<[ft::FactoryInfo; 1]>::try_from(infos), values.is_empty())
        else {
            return Err(fault);
        };
        let location = property::id_of(&info.the_location).ok_or(fault)?;
        let key = (role, alloc::string::String::from(location));
        if state.registry.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(fault);
        }
        state.registry.insert(key, Registered { type_id, info });
    }
    Ok(())
}

impl<D: Transport> Checkpointable for Manager<D> {
    fn get_state(&mut self) -> Result<ft::State, GetStateError> {
        give_state(self.state())
    }

    fn set_state(&mut self, s: ft::State) -> Result<(), SetStateError> {
        take_state(self.take_over(&s))
    }
}
