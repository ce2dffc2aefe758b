//! What is encoded decodes to the same; what is not, is refused with its reason.

extern crate std;
use super::*;
use quorba_base::NodeId;
use std::vec;
use std::vec::Vec;

fn name(text: &str) -> GroupName {
    GroupName::new(text.as_bytes()).unwrap()
}

fn samples() -> Vec<Bytes> {
    let (process, group) = (ProcessNumber(70_000), GroupNumber(3));
    let operation = |action| Operation { id: 7, action }.encode();
    let announced = |number, name, members: &[u32]| AnnouncedGroup {
        number: GroupNumber(number),
        name,
        members: members.iter().map(|n| ProcessNumber(*n)).collect(),
    };
    let ring = RingId { seq: 9, representative: NodeId::new(2).unwrap() };
    let groups = vec![
        announced(0, name("bank"), &[0, 1, 300, u32::MAX]),
        announced(900, GroupName::new(&[255; crate::NAME_BYTES_MAX]).unwrap(), &[5]),
    ];
    vec![
        operation(Action::Join { process, group, name: name("a") }),
        operation(Action::Leave { process, group }),
        operation(Action::Gone { process }),
        Announcement { ring, applied: 6, groups }.encode(),
    ]
}

#[test]
fn what_is_encoded_decodes_to_the_same() {
    for bytes in samples() {
        let again = match Payload::decode(&bytes).unwrap() {
            Payload::Operation(operation) => operation.encode(),
            Payload::Announcement(announcement) => announcement.encode(),
            Payload::Message { .. } => unreachable!("no message among the samples"),
        };
        assert_eq!(again, bytes);
    }
    let mut frame = *b"123456789hello";
    put_message_header(&mut frame, ProcessNumber(1 << 20), GroupNumber(77));
    let decoded = Payload::decode(&Bytes::copy_from_slice(&frame)).unwrap();
    let bytes = Bytes::from_static(b"hello");
    let (process, group) = (ProcessNumber(1 << 20), GroupNumber(77));
    assert_eq!(decoded, Payload::Message { process, group, bytes });
}

#[test]
fn every_cut_is_short_but_for_names() {
    for bytes in samples() {
        for end in 0..bytes.len() {
            match Payload::decode(&bytes.slice(..end)) {
                Err(InvalidPayload::Short | InvalidPayload::Name) => {}
                other => panic!("{end} of {bytes:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_makes_no_sense_has_a_reason() {
    let refused = |bytes: &[u8]| Payload::decode(&Bytes::copy_from_slice(bytes)).unwrap_err();
    assert_eq!(refused(&[99]), InvalidPayload::Kind(99));
    assert_eq!(
        refused(&[KIND_GONE, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 5]),
        InvalidPayload::Trailing
    );
    let join = [[KIND_JOIN].as_slice(), &[0; 16], &[65; 129]].concat();
    assert_eq!(refused(&join), InvalidPayload::Name);
    let head = [[KIND_ANNOUNCEMENT].as_slice(), &[0; 17]].concat();
    let announced = |rest: &[u8]| refused(&[&head, rest].concat());
    assert_eq!(announced(&[0xff, 0xff, 0xff, 0xff, 0x7f]), InvalidPayload::Number);
    assert_eq!(announced(&[0xff, 0xff, 0x7f]), InvalidPayload::Count(0x1f_ffff));
    assert_eq!(announced(&[1, 0, 0, 0, 1, 0]), InvalidPayload::Name);
    let twice = [1, 0, 0, 0, 1, 1, 65, 2, 4, 0];
    assert_eq!(announced(&twice), InvalidPayload::Number, "members ascend");
    let twice = [2, 0, 0, 0, 1, 1, 65, 0, 0, 0, 0, 1, 1, 66, 0];
    assert_eq!(announced(&twice), InvalidPayload::Number, "groups ascend");
    let wide = [1, 0, 0, 0, 1, 1, 65, 2, 9, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(announced(&wide), InvalidPayload::Number, "members are below 2^32");
}
