//! References are found wherever they stand, and nothing else is taken for one.

use super::*;
use crate::cdr::Writer;
use crate::ior::Profile;
use crate::{Body, Message, ReplyStatus, Version, build};
use alloc::format;
use alloc::string::ToString;
use alloc::vec;

const ENDIANS: [Endian; 2] = [Endian::Big, Endian::Little];
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

fn profile(host: &str, port: u16, alternates: &[(&str, u16)], endian: Endian) -> Profile {
    let alternate = |(host, port): &(&str, u16)| {
        ComponentValue::AlternateAddress { host: (*host).to_string(), port: *port }.encode(endian)
    };
    IiopProfile {
        version: Version::V1_2,
        host: host.to_string(),
        port,
        object_key: b"account/7".to_vec(),
        components: alternates.iter().map(alternate).collect(),
    }
    .encode(endian)
}

fn ior(profiles: Vec<Profile>) -> Ior {
    Ior { type_id: b"IDL:Bank/Account:1.0".to_vec(), profiles }
}

fn reply(version: Version, endian: Endian, write: impl Fn(&mut Writer)) -> (Message, usize) {
    let message = build::reply(version, endian, 7, ReplyStatus::NoException, |out| write(out));
    let Ok(Body::Reply(read)) = message.parse() else { panic!("it is one") };
    let body = read.body_offset();
    (message, body)
}

fn found_in(version: Version, endian: Endian, write: impl Fn(&mut Writer)) -> Vec<Found> {
    let (message, body) = reply(version, endian, write);
    let found = find(message.bytes(), body, endian);
    assert!(has_any(message.bytes(), body, endian) || found.is_empty());
    found
}

fn addresses(found: &[Found]) -> Vec<Vec<String>> {
    let text = |(host, port): &(String, u16)| format!("{host}:{port}");
    found.iter().map(|one| one.addresses.iter().map(text).collect()).collect()
}

#[test]
fn references_are_found_among_other_results_whatever_the_byte_orders() {
    for (version, outer, inner) in VERSIONS
        .into_iter()
        .flat_map(|version| ENDIANS.map(move |outer| (version, outer)))
        .flat_map(|(version, outer)| ENDIANS.map(move |inner| (version, outer, inner)))
    {
        let first = ior(vec![
            profile("10.0.0.1", 4711, &[("b", 2), ("c", 3)], inner),
            Profile { tag: 77, data: vec![9; 3] },
            profile("d", 4, &[], inner),
        ]);
        let second = ior(vec![profile("e", 5, &[], inner)]);
        let found = found_in(version, outer, |out| {
            out.write_u32(1);
            out.write_bool(true);
            first.write(out);
            out.write_string(b"between");
            second.write(out);
            out.write_u32(0);
        });
        assert_eq!(
            addresses(&found),
            [vec!["10.0.0.1:4711", "b:2", "c:3", "d:4"], vec!["e:5"]],
            "{version:?} {outer:?} {inner:?}"
        );
        assert!(found.iter().all(|one| one.keys == [b"account/7"]));
    }
}

#[test]
fn stringified_references_are_found_in_texts() {
    let whole = ior(vec![profile("h", 1, &[("i", 2)], Endian::Big)]).to_string();
    for endian in ENDIANS {
        let found = found_in(Version::V1_2, endian, |out| {
            out.write_count(3);
            out.write_string(b"name");
            out.write_string(whole.as_bytes());
            out.write_string(b"corbaloc::h:7,iiop:1.2@[::1]:8/account%2f7");
            out.write_string(b"corbels");
            out.write_string(b"IOR:zz");
        });
        assert_eq!(addresses(&found), [vec!["h:1", "i:2"], vec!["h:7", "::1:8"]]);
        assert_eq!(found[1].keys, [b"account/7"]);
    }
}

#[test]
fn the_port_for_tls_is_an_address_and_port_0_is_none() {
    use crate::ior::SslTransport;
    let tls = SslTransport { supports: 0x7e, requires: 0x1e, port: 5443 };
    let secured = IiopProfile {
        version: Version::V1_2,
        host: "h".to_string(),
        port: 0,
        object_key: b"k".to_vec(),
        components: vec![ComponentValue::SslTransport(tls).encode(Endian::Big)],
    };
    let secured = ior(vec![secured.encode(Endian::Big)]);
    let found = found_in(Version::V1_2, Endian::Little, |out| secured.write(out));
    assert_eq!(addresses(&found), [["h:5443"]]);
}

#[test]
fn a_reference_in_a_sequence_of_octets_is_found() {
    let inside = ior(vec![profile("h", 1, &[], Endian::Big)]).encode(Endian::Big);
    let found = found_in(Version::V1_2, Endian::Big, |out| out.write_octets(&inside));
    assert_eq!(addresses(&found), [["h:1"]]);
}

#[test]
fn numbers_texts_and_nothing_are_no_references() {
    for endian in ENDIANS {
        let found = found_in(Version::V1_2, endian, |out| {
            (0..2000).for_each(|number| out.write_u32(number));
            out.write_string(b"a text with IOR: in it");
            (0..64).for_each(|_| out.write_raw(&[0, 1, 2, 0]));
            (0..64).for_each(|_| out.write_u32(0));
            Ior::nil().write(out);
        });
        assert_eq!(found, []);
    }
    assert_eq!(find(&[], 24, Endian::Big), []);
    assert_eq!(find(&[0; 24], usize::MAX, Endian::Big), []);
}

#[test]
fn of_a_large_reply_the_beginning_is_looked_at() {
    let reference = ior(vec![profile("h", 1, &[], Endian::Big)]);
    let behind = |octets: usize| {
        found_in(Version::V1_2, Endian::Big, |out| {
            out.write_octets(&vec![b'x'; octets]);
            reference.write(out);
        })
    };
    assert_eq!(behind(LOOKED_AT_BYTES_MAX / 2).len(), 1);
    assert_eq!(behind(LOOKED_AT_BYTES_MAX).len(), 0);
    let many = found_in(Version::V1_2, Endian::Big, |out| {
        (0..300).for_each(|_| reference.write(out));
    });
    assert_eq!(many.len(), REFERENCES_MAX);
}

/// Not random enough for anything but to find octets at which something goes wrong.
struct Octets(u64);

impl Octets {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 56) as u8
    }
}

#[test]
fn no_octets_make_it_panic_and_what_it_finds_stands_there() {
    let reference =
        ior(vec![profile("h", 1, &[("i", 2)], Endian::Little), profile("j", 3, &[], Endian::Big)]);
    let text = reference.to_string();
    let (message, body) = reply(Version::V1_2, Endian::Little, |out| {
        reference.write(out);
        out.write_string(text.as_bytes());
        out.write_string(b"corbaloc::h:7/k");
    });
    let whole = message.bytes().to_vec();
    let mut octets = Octets(1);
    for round in 0..20_000 {
        let mut changed = whole.clone();
        for _ in 0..=round % 4 {
            let at = body + usize::from(octets.next()) % (changed.len() - body);
            changed[at] = match round % 3 {
                0 => octets.next(),
                1 => [0, 1, 255][usize::from(octets.next()) % 3],
                _ => changed[at] ^ 1 << (octets.next() % 8),
            };
        }
        changed.truncate(whole.len() - usize::from(octets.next()) % 8);
        for endian in ENDIANS {
            let found = find(&changed, body, endian);
            assert!(found.is_empty() || has_any(&changed, body, endian));
            let mut behind = body;
            for one in found {
                assert!(one.offset >= behind && one.end > one.offset && one.end <= changed.len());
                assert!(!one.addresses.is_empty() && one.addresses.len() <= ADDRESSES_MAX);
                behind = one.end;
            }
        }
    }
}

/// Places that look like profiles and overlap all the way cost a bounded number of tries.
#[test]
fn what_only_looks_like_references_costs_little() {
    let mut octets = Vec::new();
    while octets.len() < 1 << 20 {
        // A profile to the end of what may be looked at, with a host, and no object key.
        octets.extend([0, 0, 0, 0, 0, 0, 200, 0, 0, 1, 2, 0, 0, 0, 0, 2, b'h', 0, 0, 0]);
    }
    assert!(places(&octets, 0, Endian::Big).count() > TRIES_MAX);
    assert!(find(&octets, 0, Endian::Big).len() <= REFERENCES_MAX);
}
