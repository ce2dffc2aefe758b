//! The seal: what opens, what does not, and who is believed.

extern crate std;

use super::session::{Dropped, Sessions};
use super::*;
use crate::output::RefusedReason;
use bytes::BufMut;
use quorba_base::{Instant, NodeSet};
use std::vec::Vec;

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn boot(index: u8, incarnation: u64) -> BootId {
    BootId { node: node(index), incarnation, session: [index ^ incarnation as u8; 12] }
}

fn key(byte: u8) -> DomainKey {
    DomainKey::new([byte; 32])
}

fn sealed(sealer: &mut Sealer, text: &[u8]) -> BytesMut {
    let mut datagram = Sealer::start(text.len());
    datagram.put_slice(text);
    sealer.seal(&mut datagram);
    datagram
}

fn sessions() -> Sessions {
    Sessions::new(node(0), NodeSet::first(3), key(1), true)
}

fn refused(result: Result<Accepted, Dropped>) -> Option<RefusedReason> {
    match result {
        Err(Dropped::Refused(_, reason)) => Some(reason),
        _ => None,
    }
}

#[test]
fn what_is_sealed_opens_and_is_not_readable_meanwhile() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let datagram = sealed(&mut sealer, b"a message to the ring");
    assert_eq!(datagram.len(), 21 + SEAL_BYTES);
    assert!(!datagram.windows(7).any(|window| window == b"message"));
    let accepted = sessions().open(Instant::ZERO, datagram).ok().expect("opens");
    assert_eq!((&accepted.packet[..], accepted.from), (&b"a message to the ring"[..], node(1)));
    assert!(!accepted.proven, "authentic is not live");
}

#[test]
fn equal_packets_never_look_equal() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let first = sealed(&mut sealer, &[0; 64]);
    let second = sealed(&mut sealer, &[0; 64]);
    assert_ne!(first[HEADER_BYTES..], second[HEADER_BYTES..], "another nonce");
    let mut again = Sealer::new(&key(1), boot(1, 6), true);
    assert_ne!(first[HEADER_BYTES..], sealed(&mut again, &[0; 64])[HEADER_BYTES..], "another key");
}

#[test]
fn any_flipped_bit_is_refused() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let datagram = sealed(&mut sealer, b"text");
    for bit in 0..datagram.len() * 8 {
        let mut forged = datagram.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(sessions().open(Instant::ZERO, forged).is_err(), "bit {bit}");
    }
}

#[test]
fn every_length_is_survived() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let datagram = sealed(&mut sealer, b"text");
    for len in 0..datagram.len() {
        assert!(sessions().open(Instant::ZERO, BytesMut::from(&datagram[..len])).is_err());
    }
}

#[test]
fn strangers_are_refused_with_the_cause() {
    let mut wrong_key = Sealer::new(&key(2), boot(1, 5), true);
    let mut outside = Sealer::new(&key(1), boot(9, 5), true);
    let mut mine = Sealer::new(&key(1), boot(0, 5), true);
    let mut open = Sealer::new(&key(1), boot(1, 5), false);
    let cases = [
        (&mut wrong_key, RefusedReason::Seal),
        (&mut outside, RefusedReason::UnknownNode),
        (&mut mine, RefusedReason::UnknownNode),
        (&mut open, RefusedReason::Protection),
    ];
    for (sealer, reason) in cases {
        let result = sessions().open(Instant::ZERO, sealed(sealer, b"let me in"));
        assert_eq!(refused(result), Some(reason));
    }
    let mut version = sealed(&mut Sealer::new(&key(1), boot(1, 5), true), b"text");
    version[2] = 1;
    let result = sessions().open(Instant::ZERO, version);
    assert_eq!(refused(result), Some(RefusedReason::Version));
}

#[test]
fn a_datagram_counts_once() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let mut sessions = sessions();
    let datagrams: Vec<BytesMut> = (0..50).map(|_| sealed(&mut sealer, b"text")).collect();
    for datagram in datagrams.iter().rev() {
        assert!(sessions.open(Instant::ZERO, datagram.clone()).is_ok(), "reordered");
    }
    for datagram in &datagrams {
        assert!(sessions.open(Instant::ZERO, datagram.clone()).is_err(), "replayed");
    }
}

#[test]
fn what_came_before_the_proof_of_life_is_void() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let mut sessions = sessions();
    let recorded = sealed(&mut sealer, b"recorded");
    let echo = sealed(&mut sealer, b"echoes my salt");
    let accepted = sessions.open(Instant::ZERO, echo).ok().expect("authentic");
    sessions.prove(&accepted);
    assert_eq!(sessions.incarnation(node(1)), Some(5));
    assert!(sessions.open(Instant::ZERO, recorded).is_err());
    let next = sealed(&mut sealer, b"next");
    assert!(sessions.open(Instant::ZERO, next).is_ok_and(|accepted| accepted.proven));
}

#[test]
fn an_older_boot_is_refused_once_a_newer_one_is_known() {
    let mut old = Sealer::new(&key(1), boot(1, 5), true);
    let mut new = Sealer::new(&key(1), boot(1, 6), true);
    let mut sessions = sessions();
    assert!(sessions.open(Instant::ZERO, sealed(&mut old, b"old")).is_ok());
    let accepted = sessions.open(Instant::ZERO, sealed(&mut new, b"new")).ok().expect("newer");
    let result = sessions.open(Instant::ZERO, sealed(&mut old, b"old"));
    assert_eq!(
        refused(result),
        Some(RefusedReason::Incarnation),
        "even before the newer is proven"
    );
    sessions.prove(&accepted);
    let result = sessions.open(Instant::ZERO, sealed(&mut old, b"old"));
    assert_eq!(refused(result), Some(RefusedReason::Incarnation));
}

#[test]
fn junk_costs_a_bounded_number_of_keys_and_disturbs_no_one() {
    let mut sessions = sessions();
    let mut honest = Sealer::new(&key(1), boot(1, 5), true);
    let accepted =
        sessions.open(Instant::ZERO, sealed(&mut honest, b"hi")).ok().expect("authentic");
    sessions.prove(&accepted);
    let mut derived = 0;
    for salt in 0..5000_u64 {
        let mut junk = sealed(&mut Sealer::new(&key(2), boot(1, 9), false), &[0; 100]);
        junk[3] = 1;
        junk[5..8].copy_from_slice(&KeyId::of(&key(1)).0);
        junk[24..32].copy_from_slice(&salt.to_be_bytes());
        let reason = refused(sessions.open(Instant::ZERO, junk));
        derived += usize::from(reason == Some(RefusedReason::Seal));
    }
    assert_eq!(derived, 49, "and one for the honest boot, in this slot of time");
    assert!(sessions.open(Instant::ZERO, sealed(&mut honest, b"hi")).is_ok());
}

#[test]
fn one_counter_runs_through_all_keys_and_one_window_sees_all() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let mut sessions = sessions();
    assert!(sessions.replace_keys([key(1), key(2)].into()).is_ok());
    let first = sealed(&mut sealer, &[0; 64]);
    sealer.turn_to(&key(2));
    let second = sealed(&mut sealer, &[0; 64]);
    sealer.turn_to(&key(1));
    let third = sealed(&mut sealer, &[0; 64]);
    let counter = |datagram: &BytesMut| datagram[16..24].to_vec();
    let counters = [&first, &second, &third].map(counter);
    assert!(counters.is_sorted_by(|a, b| a < b), "even back under the first key, a new nonce");
    for datagram in [&third, &first, &second] {
        assert!(sessions.open(Instant::ZERO, datagram.clone()).is_ok());
    }
    // Under another key's name the same counter is a replay, and the seal would not open.
    let mut forged = second.clone();
    forged[5..8].copy_from_slice(&first[5..8]);
    for datagram in [first, second, third, forged] {
        assert!(sessions.open(Instant::ZERO, datagram).is_err());
    }
}

#[test]
fn a_key_that_was_taken_away_opens_nothing_more() {
    let mut sealer = Sealer::new(&key(1), boot(1, 5), true);
    let mut sessions = sessions();
    assert!(sessions.replace_keys([key(1), key(2)].into()).is_ok());
    let recorded = sealed(&mut sealer, b"never arrived");
    assert!(sessions.open(Instant::ZERO, sealed(&mut sealer, b"hi")).is_ok());
    assert!(sessions.replace_keys([key(2)].into()).is_ok());
    let result = sessions.open(Instant::ZERO, recorded);
    assert_eq!(refused(result), Some(RefusedReason::Seal));
    sealer.turn_to(&key(2));
    assert!(sessions.open(Instant::ZERO, sealed(&mut sealer, b"hi")).is_ok());
}

#[test]
fn the_domain_key_is_never_printed() {
    assert_eq!(std::format!("{:?}", key(0xAB)), "DomainKey(hidden)");
}
