//! Codecs: what is encoded decodes to the same; whatever else comes is an error, not a crash.

extern crate std;

use super::commit::OldState;
use super::*;
use crate::ids::{Guarantee, Ticket};
use crate::output::LeaveReason;
use alloc::vec;
use alloc::vec::Vec;
use bytes::BytesMut;
use quorba_base::{NodeId, NodeSet};

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn ring(seq: u64) -> RingId {
    RingId { seq, representative: node(1) }
}

fn body() -> Bytes {
    let mut body = BytesMut::new();
    body.put_u64(77);
    push_chunk(&mut body, false, true, 5, b"tail.");
    push_chunk(&mut body, true, true, 3, b"one");
    push_chunk(&mut body, true, false, 1000, &[9; 40]);
    push_padding(&mut body, 12);
    body.freeze()
}

fn data() -> Data {
    Data {
        ring: ring(7),
        seq: 12,
        origin: node(2),
        guarantee: Guarantee::Safe,
        repeated: true,
        acks_wanted: 2,
        stable: 9,
        inner: None,
        body: body(),
    }
}

fn token() -> Token {
    Token {
        ring: ring(7),
        hop: 99,
        seq: 500,
        members: NodeSet::first(3),
        arus: vec![500, 3, 0],
        requests: vec![GapRange { first: 4, last: 9 }, GapRange { first: 500, last: 500 }],
        sent: 3,
        backlog: 4,
        wanted: NodeSet::first(1),
        recovering: NodeSet::first(2),
        complete: true,
        safe_pending: NodeSet::first(3),
        rest_owner: node(2),
        hops_to_go: 3,
        rest_budget_us: 25_000,
        rotation_us: 90,
        key: crate::seal::KeyId([1, 2, 3]),
        keyed: NodeSet::first(2),
    }
}

fn join() -> Join {
    let greeting = Greeting {
        domain_digest: 5,
        ring: Some(ring(3)),
        echoes: vec![(node(0), [1; 12]), (node(63), [2; 12])],
    };
    let dead = Dead { node: node(2), incarnation: 8, cause: LeaveReason::Departed };
    Join {
        greeting,
        proc: NodeSet::first(4),
        fail: NodeSet::first(1),
        ring_seq: 6,
        dead: vec![dead],
    }
}

fn commit() -> CommitToken {
    let obligation = NodeSet::first(2);
    let old = OldState { ring: ring(300), delivered: 7, aru: 9, high: 400_000, obligation };
    let states = vec![
        Some(MemberState { incarnation: u64::MAX, old: Some(old) }),
        Some(MemberState { incarnation: 1, old: None }),
        None,
    ];
    CommitToken { ring: ring(8), hop: 2, rotation_us: 55, members: NodeSet::first(3), states }
}

fn samples() -> Vec<Packet> {
    let inner = Inner { ring: ring(6), seq: 44, origin: node(3), guarantee: Guarantee::Agreed };
    vec![
        Packet::Data(data()),
        Packet::Data(Data { inner: Some(inner), body: Bytes::new(), ..data() }),
        Packet::Token(token()),
        Packet::Request(TokenRequest { ring: ring(7) }),
        Packet::Ack(Ack { ring: ring(7), aru: 3 }),
        Packet::Settled(Settled { ring: ring(7), stable: 3 }),
        Packet::Join(join()),
        Packet::Hello(join().greeting),
        Packet::Commit(commit()),
        Packet::Probe(probe()),
    ]
}

fn probe() -> Probe {
    let heard = |index, missed| Reception { node: node(index), missed, last: 31, held_us: 500 };
    Probe { number: 77, troubled: true, receptions: vec![heard(0, Some(32)), heard(2, None)] }
}

fn encoded(packet: &Packet) -> Bytes {
    let mut out = BytesMut::new();
    packet.encode(&mut out);
    out.freeze()
}

#[test]
fn every_kind_survives_the_wire() {
    for packet in samples() {
        assert_eq!(Packet::decode(&encoded(&packet)), Ok(packet));
    }
}

#[test]
fn data_knows_its_length() {
    assert_eq!(encoded(&Packet::Data(data())).len(), data().encoded_bytes());
}

#[test]
fn chunks_come_back() {
    let body = body();
    let chunks: Vec<Chunk> = Chunks::new(&body).unwrap().map(Result::unwrap).collect();
    let parts: Vec<(u64, bool, bool, usize)> =
        chunks.iter().map(|c| (c.ticket.0, c.first, c.last, c.range.len())).collect();
    assert_eq!(parts, [(77, false, true, 5), (78, true, true, 3), (79, true, false, 40)]);
    assert_eq!(chunks[2].message_bytes, 1000);
    assert_eq!(&body[chunks[1].range.clone()], b"one");
    assert_eq!(chunks[0].ticket, Ticket(77));
}

#[test]
fn cut_short_anywhere_is_an_error() {
    for packet in samples() {
        let bytes = encoded(&packet);
        for len in 0..bytes.len() {
            if let Ok(decoded) = Packet::decode(&bytes.slice(..len)) {
                assert!(matches!(decoded, Packet::Data(_)), "only a body can end between chunks");
            }
        }
    }
}

/// CVE-2026-35092: the sum of two counts from a Join wrapped to 0. Here a count is one byte, is
/// compared with its limit alone, and is never added to another.
#[test]
fn cve_2026_35092_counts_of_a_join_cannot_wrap() {
    let mut out = BytesMut::new();
    out.put_u8(KIND_JOIN);
    out.put_u64(5);
    out.put_u8(0);
    out.put_u8(0x80);
    assert_eq!(Packet::decode(&out.freeze()), Err(InvalidDatagram::Count(0x80)));
}

/// CVE-2026-35091: the check of a short commit token returned success. Here a decoder that meets
/// the end returns an error, there is no check apart from the reading.
#[test]
fn cve_2026_35091_a_short_commit_token_is_no_commit_token() {
    let bytes = encoded(&Packet::Commit(commit()));
    for len in 1..bytes.len() {
        assert_eq!(Packet::decode(&bytes.slice(..len)), Err(InvalidDatagram::Short), "{len}");
    }
}

/// CVE-2025-30472: a token with more entries than its receiver's stack buffer. Here the number of
/// entries is that of one-bits in a 64-bit set, and of requests at most 48.
#[test]
fn cve_2025_30472_a_huge_token_is_refused() {
    let mut out = BytesMut::new();
    out.put_u8(KIND_TOKEN);
    put_ring(&mut out, ring(1));
    out.put_u64(1);
    out.put_u64(10);
    out.put_u64(1);
    put_varint(&mut out, 0);
    out.put_u8(REQUESTS_MAX as u8 + 1);
    out.put_bytes(0, 60_000);
    let count = REQUESTS_MAX as u64 + 1;
    assert_eq!(Packet::decode(&out.freeze()), Err(InvalidDatagram::Count(count)));
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let field = |edit: &dyn Fn(&mut Token)| {
        let mut bad = token();
        edit(&mut bad);
        Packet::decode(&encoded(&Packet::Token(bad))).is_err()
    };
    assert!(field(&|token| token.rest_owner = node(9)), "rest owner outside of the ring");
    assert!(field(&|token| token.wanted = NodeSet::first(5)), "wanted by strangers");
    assert!(field(&|token| token.requests = vec![GapRange { first: 0, last: 3 }]));
    // The first member's `delivered`, three bytes, in front of the other two members.
    let good = encoded(&Packet::Commit(commit()));
    let (mut bad, tail) = (BytesMut::from(&good[..good.len() - 6]), &good[good.len() - 3..]);
    put_varint(&mut bad, 400_001);
    bad.extend_from_slice(tail);
    let below_zero = Err(InvalidDatagram::Count(400_001));
    assert_eq!(Packet::decode(&bad.freeze()), below_zero, "delivered more than received");
    let mut bad = join();
    bad.fail = NodeSet::first(9);
    assert!(Packet::decode(&encoded(&Packet::Join(bad))).is_err());
}

/// A domain's whole life in numbers: years of incarnations, rings and packets, all members from
/// one old ring, or each from its own.
#[test]
fn the_commit_token_of_64_nodes_fits_a_frame() {
    let members = NodeSet::first(64);
    for alone in [false, true] {
        let state = |index: u64| {
            let seq = 40_000 + if alone { index } else { 0 };
            let high = if alone { 9_000 } else { 1 << 40 };
            let ring = RingId { seq, representative: node(if alone { index as u8 } else { 0 }) };
            let obligation = if alone { NodeSet::EMPTY } else { members };
            let (delivered, aru, high) = (high - 700, high - 600, high - 3);
            let old = OldState { ring, delivered, aru, high, obligation };
            let incarnation = 1_800_000_000_000_000_000 + index * 3_600_000_000_000;
            Some(MemberState { incarnation, old: Some(old) })
        };
        let states = (0..64).map(state).collect();
        let commit =
            CommitToken { ring: ring(50_000), hop: 64, rotation_us: 9_000, members, states };
        let bytes = encoded(&Packet::Commit(commit)).len() + crate::SEAL_BYTES;
        assert!(bytes <= crate::DATAGRAM_BYTES_MIN, "{bytes}");
    }
}

#[test]
fn a_message_longer_than_the_limit_is_refused_before_it_is_gathered() {
    let mut body = BytesMut::new();
    body.put_u64(1);
    push_chunk(&mut body, true, false, crate::PAYLOAD_BYTES_MAX + 1, b"x");
    let bytes = encoded(&Packet::Data(Data { body: body.freeze(), ..data() }));
    assert!(matches!(Packet::decode(&bytes), Err(InvalidDatagram::Count(_))));
}

/// Every decoder against mutations of real packets: an error or a value that encodes again.
#[test]
fn fuzz_mutations_of_real_packets() {
    let mut state = 0x1234_5678_9abc_def0_u64;
    let mut random = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let samples: Vec<Bytes> = samples().iter().map(encoded).collect();
    let mut valid = 0;
    for _ in 0..200_000 {
        let mut bytes = samples[random(samples.len())].to_vec();
        for _ in 0..=random(4) {
            match random(5) {
                0 => bytes.truncate(random(bytes.len() + 1)),
                1 => bytes.extend_from_slice(&samples[random(samples.len())]),
                2 if !bytes.is_empty() => {
                    let at = random(bytes.len());
                    bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)];
                }
                _ if !bytes.is_empty() => {
                    let at = random(bytes.len());
                    bytes[at] ^= 1 << random(8);
                }
                _ => {}
            }
        }
        if let Ok(packet) = Packet::decode(&Bytes::from(bytes)) {
            valid += 1;
            assert_eq!(Packet::decode(&encoded(&packet)), Ok(packet));
        }
    }
    assert!(valid > 10_000, "mutations reach behind the first check: {valid}");
}
