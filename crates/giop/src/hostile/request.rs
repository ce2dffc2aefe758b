//! What is wrong in the header of a Request or LocateRequest, but for its contexts.

use super::{Cases, LOCATE_REQUEST, OBJECT_KEY, REQUEST_ID, Reactions};
use crate::limits::{OBJECT_KEY_BYTES_MAX, OPERATION_BYTES_MAX};
use crate::version::Version;
use alloc::vec;
use alloc::vec::Vec;

pub(super) fn add(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    cases.add("request-cut-in-first-number", May::REFUSES, maker.cut_request(2));
    cases.add("request-cut-behind-first-number", May::REFUSES, maker.cut_request(4));
    cases.add("request-cut-behind-flags", May::REFUSES, maker.cut_request(9));
    cases.add("request-cut-in-key", May::REFUSES, maker.cut_request(30));
    let whole = maker.body(&maker.parts()).len();
    cases.add("request-cut-in-last-number", May::REFUSES, maker.cut_request(whole - 1));
    cases.add("response-flags-all-bits", May::ANY, maker.request(|parts| parts.flags = 0xff));
    cases.add("response-flags-undefined", May::ANY, maker.request(|parts| parts.flags = 2));
    if maker.version >= Version::V1_1 {
        let bytes = maker.request(|parts| parts.reserved = [0xff; 3]);
        cases.add("reserved-octets-set", May::TOLERATES, bytes);
    }
    let bytes = maker.request(|parts| parts.request_id = u32::MAX);
    cases.add("request-id-largest", May::TOLERATES, bytes);
    let bytes = maker.request(|parts| parts.parameters = vec![0xff; 64]);
    cases.add("parameters-are-garbage", May::TOLERATES, bytes);
    let bytes = maker.request(|parts| {
        parts.operation = maker.string(b"_is_a");
        parts.parameters = maker.number(u32::MAX);
    });
    cases.add("is-a-with-endless-string", May::TOLERATES, bytes);
    let bytes = maker.request(|parts| parts.operation = maker.string(b"_is_a"));
    cases.add("is-a-without-parameters", May::TOLERATES, bytes);
    if maker.version < Version::V1_2 {
        let bytes = maker.request(|parts| parts.principal = maker.number(u32::MAX));
        cases.add("principal-length-largest", May::REFUSES, bytes);
        let bytes = maker.request(|parts| parts.principal = maker.number(1));
        cases.add("principal-beyond-end", May::REFUSES, bytes);
    }
}

pub(super) fn add_operations(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let mut add = |name, may, operation: Vec<u8>| {
        cases.add(name, may, maker.request(|parts| parts.operation = operation));
    };
    let counted = |length: u32, text: &[u8]| {
        maker.part(|writer| {
            writer.write_u32(length);
            writer.write_raw(text);
        })
    };
    add("operation-length-largest", May::REFUSES, counted(u32::MAX, b"op"));
    add("operation-length-negative", May::REFUSES, counted(0x8000_0000, b"op"));
    add("operation-length-beyond-end", May::REFUSES, counted(200, b"op"));
    add("operation-length-0", May::TOLERATES, counted(0, b""));
    add("operation-empty", May::TOLERATES, maker.string(b""));
    add("operation-unterminated", May::TOLERATES, counted(4, b"oper"));
    add("operation-with-zero-inside", May::TOLERATES, maker.string(b"_is_a\0drop"));
    add("operation-not-text", May::TOLERATES, maker.string(&[0xff, 0xfe, 0x80, 0x1b, 0x5b]));
    add("operation-format-string", May::TOLERATES, maker.string(b"%n%n%s%s%x"));
    let long = vec![b'a'; OPERATION_BYTES_MAX + 1];
    add("operation-over-limit", May::TOLERATES, maker.string(&long));
}

pub(super) fn add_targets(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let new = maker.version >= Version::V1_2;
    let mut add = |name, may, target: Vec<u8>| {
        cases.add(name, may, maker.request(|parts| parts.target = target));
    };
    let counted = |length: u32| {
        maker.part(|writer| {
            if new {
                writer.write_u16(0);
            }
            writer.write_u32(length);
            writer.write_raw(b"key!");
        })
    };
    add("key-length-largest", May::REFUSES, counted(u32::MAX));
    add("key-length-negative", May::REFUSES, counted(0x8000_0000));
    add("key-length-beyond-end", May::REFUSES, counted(4000));
    add("key-empty", May::TOLERATES, maker.key(b""));
    add("key-with-zeros", May::TOLERATES, maker.key(&[0; 40]));
    let long = vec![b'k'; OBJECT_KEY_BYTES_MAX + 1];
    add("key-over-limit", May::TOLERATES, maker.key(&long));
    if !new {
        return;
    }
    let kind = |kind: u16, rest: &[u32]| {
        maker.part(|writer| {
            writer.write_u16(kind);
            for number in rest {
                writer.write_u32(*number);
            }
        })
    };
    add("target-kind-3", May::TOLERATES, kind(3, &[0]));
    add("target-kind-largest", May::TOLERATES, kind(u16::MAX, &[0]));
    add("target-profile-empty", May::TOLERATES, kind(1, &[0, 0]));
    add("target-profile-of-unknown-tag", May::TOLERATES, kind(1, &[0x5151_5151, 4, 0]));
    add("target-profile-length-largest", May::TOLERATES, kind(1, &[0, u32::MAX]));
    // Index, type id "", profiles.
    add("target-reference-nil", May::TOLERATES, kind(2, &[0, 1, 0, 0]));
    add("target-reference-index-beyond", May::TOLERATES, kind(2, &[9, 1, 0, 1, 0, 0]));
    add("target-reference-type-endless", May::TOLERATES, kind(2, &[0, u32::MAX]));
    add("target-reference-profiles-endless", May::TOLERATES, kind(2, &[0, 1, 0, u32::MAX]));
    add("target-reference-profile-endless", May::TOLERATES, kind(2, &[0, 1, 0, 1, 0, u32::MAX]));
}

pub(super) fn add_locates(cases: &mut Cases) {
    use Reactions as May;
    let maker = cases.maker;
    let id = maker.number(REQUEST_ID);
    let mut add = |name, may, target: &[u8]| {
        let body = [id.as_slice(), target].concat();
        cases.add(name, may, maker.message(LOCATE_REQUEST, 0, &body));
    };
    add("locate-cut-behind-id", May::REFUSES, &[]);
    let mut endless = maker.key(OBJECT_KEY);
    let length = endless.len().saturating_sub(OBJECT_KEY.len());
    for octet in endless.get_mut(length.saturating_sub(4)..length).unwrap_or(&mut []) {
        *octet = 0xff;
    }
    add("locate-key-length-largest", May::REFUSES, &endless);
    let cut = maker.key(OBJECT_KEY);
    add("locate-cut-in-key", May::REFUSES, cut.get(..12).unwrap_or(&[]));
    let trailing = [maker.key(OBJECT_KEY), vec![0xee; 33]].concat();
    add("locate-with-octets-behind", May::TOLERATES, &trailing);
    if maker.version >= Version::V1_2 {
        let kind = maker.part(|writer| writer.write_u16(9));
        add("locate-target-kind-9", May::TOLERATES, &kind);
    }
    cases.add("locate-size-0", May::REFUSES, maker.message(LOCATE_REQUEST, 0, &[]));
}
