//! What is fuzzed: subscriptions, calls, states and updates of any octets.
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise panics.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use quorba_corba::giop::cdr::Reader;
use quorba_corba::giop::{Endian, Version};
use quorba_corba::{Coding, Decoder, Home, Local, Transport};
use quorba_idl::rtec_event_channel_admin::ConsumerQOS;

use crate::filter::{Entry, Filter, FilterLimits, Header, Passed};
use crate::outgoing::{Outcome, Outgoing, Proposal};
use crate::queue::QueueLimits;
use crate::settings::{Limits, Settings};
use crate::{Channel, Full, qos};

/// Entries of any octets are refused, or make a filter that holds its bounds and whose two ways to
/// be asked agree.
///
/// # Panics
/// If not.
pub fn filter(input: &[u8]) {
    let limits =
        FilterLimits { entries_max: 64, depth_max: 8, held_max: 64, timers_max: 64, period_min: 1 };
    let Some((count, rest)) = input.split_first() else { return };
    let count = usize::from(*count).min(rest.len() / 4);
    let (entries, events) = rest.split_at(count * 4);
    let small = |octet: &u8| i32::from(i8::from_ne_bytes([*octet]));
    let entry = |octets: &[u8]| match octets {
        [event_type, source, period, rt_info] => Some(Entry {
            event_type: small(event_type),
            source: small(source),
            period: u64::from(*period),
            rt_info: small(rt_info),
        }),
        _ => None,
    };
    let entries: Vec<Entry> = entries.chunks(4).filter_map(entry).collect();
    let Ok(mut filter) = Filter::<u64>::compile(&entries, limits) else { return };
    filter.arm(0);
    for (now, octets) in (0..).zip(events.chunks(2)) {
        let [event_type, source] = octets else { return };
        let mut header = Header { event_type: small(event_type), source: small(source) };
        let fired = if event_type % 3 == 0 { filter.fire(now) } else { None };
        if let Some((_, event_type)) = fired {
            header = Header { event_type, source: 0 };
        }
        let timer = fired.map(|(number, _)| number);
        let is_accepted = filter.accepts(header, timer);
        let passed = filter.offer(header, timer, &now, now);
        assert!(is_accepted || passed.is_none(), "what passes is accepted");
        if let Some(Passed::Many { items, .. }) = passed {
            assert!(!items.is_empty() && items.last() == Some(&now));
            assert!(items.is_sorted(), "in the order in which they came");
        }
        assert!(filter.held().count() <= limits.held_max);
    }
}

/// Subscriptions in a message: what is read of them is refused, or compiles alike at every
/// replica.
///
/// # Panics
/// If not.
pub fn subscription(input: &[u8]) {
    let [order, input @ ..] = input else { return };
    let reader = Reader::new(input, Endian::from_bit(order & 1));
    let mut from = Decoder::new(reader, Coding::plain(Version::V1_2));
    let Ok(wanted) = from.read::<ConsumerQOS>() else { return };
    let wanted = qos::wanted(&wanted);
    let limits = FilterLimits::default();
    let (one, two) = (
        Filter::<u8>::compile(&wanted.entries, limits),
        Filter::<u8>::compile(&wanted.entries, limits),
    );
    assert!(one == two);
}

/// A state or an update of any octets is refused, or taken as the same that it says.
///
/// # Panics
/// If not.
pub fn state(input: &[u8]) {
    for is_reliable in [false, true] {
        let Some(mut channel) = channel(is_reliable) else { return };
        let before = channel.state();
        if channel.take_over(input).is_ok() {
            let state = channel.state();
            assert!(channel.take_over(&state).is_ok(), "a state of one is one for others");
            assert!(channel.state() == state);
        } else {
            assert!(channel.state() == before, "what is refused changes nothing");
        }
        let before = channel.state();
        if channel.take_update(input).is_err() {
            assert!(channel.state() == before, "what is refused changes nothing");
        }
    }
}

fn channel(is_reliable: bool) -> Option<Channel> {
    let home = Home { addresses: vec![(String::from("n1"), 1)], prefix: Vec::new() };
    let full = if is_reliable { Full::BackPressure } else { Full::DropOldest };
    let limits = Limits { proxies_max: 12, observers_max: 2, updates_max: 6, ..Limits::default() };
    let queue = QueueLimits { sets_max: 3, bytes_max: 2000 };
    let settings = Settings { is_reliable, full, limits, queue, ..Settings::default() };
    Channel::new("Events/a", &home, settings).ok()
}

/// Calls of any operation with any octets at any object, times and outcomes between them: two
/// replicas that are given the same have the same state, one that takes it over, too; and no queue
/// holds more than it may.
///
/// # Panics
/// If not.
pub fn calls(input: &[u8]) {
    let Some((mode, mut input)) = input.split_first() else { return };
    let is_reliable = mode & 1 == 1;
    let Some(mut replicas) = channel(is_reliable).zip(channel(is_reliable)) else { return };
    while let [operation, place, length, rest @ ..] = input {
        let (arguments, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        input = behind;
        let answers = [
            step(&mut replicas.0, *operation, *place, arguments),
            step(&mut replicas.1, *operation, *place, arguments),
        ];
        assert!(answers[0] == answers[1], "replicas answer alike");
        assert!(replicas.0.consumers().all(|one| one.waiting <= 3), "queues are bounded");
        let waits: usize = replicas.0.consumers().map(|one| one.waiting_bytes).sum();
        assert!(replicas.0.waiting_bytes() == waits, "what waits is counted");
    }
    let state = replicas.0.state();
    assert!(state == replicas.1.state(), "replicas are alike");
    if let Some(mut third) = channel(is_reliable) {
        assert!(third.take_over(&state).is_ok() && third.state() == state, "a joiner is, too");
    }
}

const PLACES: &[&str] = &["", "/consumers", "/suppliers", "/rtec", "/rtec/consumers"];
const MORE_PLACES: &[&str] = &["/rtec/suppliers", "/ft", "/numbered", "/state"];
const OPERATIONS: &[&str] = &[
    "push",
    "obtain_push_supplier",
    "obtain_pull_supplier",
    "obtain_push_consumer",
    "obtain_pull_consumer",
    "connect_push_consumer",
    "connect_pull_consumer",
    "connect_push_supplier",
    "connect_pull_supplier",
    "pull",
    "try_pull",
    "suspend_connection",
    "resume_connection",
    "suspend_push_supplier",
    "disconnect_push_supplier",
    "disconnect_push_consumer",
    "disconnect_pull_supplier",
    "append_observer",
    "remove_observer",
    "connect_numbered_consumer",
    "acknowledge",
    "set_update",
    "destroy",
];

/// One step; what came of it, so that replicas can be compared.
fn step(channel: &mut Channel, operation: u8, place: u8, arguments: &[u8]) -> Option<Vec<u8>> {
    match operation {
        240.. => {
            channel.tick(channel.poll_timeout().unwrap_or(0).saturating_add(u64::from(place)));
            return None;
        }
        200..240 => {
            let raised = Outcome::Raised { is_undone: place & 8 == 0 };
            let all = [Outcome::Taken, Outcome::Failed, Outcome::Gone, Outcome::Unanswered, raised];
            let outcome = all.get(usize::from(place % 5)).copied()?;
            if let Some(push) = channel.poll_push() {
                channel.pushed(push.consumer, push.ticket, outcome);
            }
            while let Some(outgoing) = channel.poll() {
                match outgoing {
                    Outgoing::Propose(proposal) => {
                        let pulled = matches!(proposal, Proposal::Pulled { .. });
                        channel.carry_out(proposal);
                        if pulled {
                            channel.settled(place.into());
                        }
                    }
                    Outgoing::Pull { supplier, ticket, .. } => {
                        channel.pulled(supplier, ticket, Err(outcome));
                        break;
                    }
                    _ => {}
                }
            }
            return None;
        }
        _ => {}
    }
    let mut key = String::from("Events/a");
    let fixed = PLACES.iter().chain(MORE_PLACES).nth(usize::from(place));
    match fixed {
        Some(rest) => key.push_str(rest),
        None => {
            let side = if place.is_multiple_of(2) { "/c-" } else { "/s-" };
            key.push_str(side);
            key.push(char::from(b'1' + place % 9));
        }
    }
    let name = OPERATIONS.get(usize::from(operation) % OPERATIONS.len())?;
    let mut local = Local::new(channel, key.as_bytes());
    let answer = local.invoke(name, &|to| to.writer().write_raw(arguments));
    answer.ok().map(|answer| Vec::from(answer.message.bytes().as_ref()))
}
