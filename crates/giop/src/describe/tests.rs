//! Descriptions say what is there, survive everything and hide no control characters in it.

use super::*;
use crate::build::{self, RequestHead};
use crate::ior::{ComponentValue, FtGroup, GroupReference, group_reference};
use crate::{
    Completion, Endian, ExceptionKind, FtRequest, MinorCode, ReplyStatus, ResponseFlags,
    SystemException, Version, context,
};
use alloc::string::ToString;
use alloc::vec::Vec;

fn request_message(version: Version, endian: Endian, operation: &[u8]) -> Message {
    let ft = FtRequest { client_id: b"c7".to_vec(), retention_id: 5, expiration_time: 9 };
    let head = RequestHead {
        version,
        endian,
        request_id: 41,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"bank",
        operation,
        contexts: &[(context::FT_REQUEST, &ft.encode(endian)), (77, b"abc")],
    };
    build::request(&head, |cdr| cdr.write_string(b"hello"))
}

fn group_ior() -> Ior {
    let group = FtGroup { domain_id: b"plant".to_vec(), group_id: 5, reference_version: 2 };
    group_reference(&GroupReference {
        type_id: b"IDL:T:1.0",
        object_key: b"k\x07",
        gateways: &[("n1".to_string(), 1), ("::1".to_string(), 2)],
        group: Some(&group),
        primary: Some(1),
        tls: &[],
        heartbeat_enabled: false,
        components: &[ComponentValue::OrbType(0x5441_4f00).encode(Endian::Little)],
    })
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn a_request_is_described() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let text = message(&request_message(version, Endian::Little, b"deposit\x1b[2J"));
        let head = alloc::format!("GIOP {version} Request, Little endian");
        says(
            &text,
            &[
                &head,
                "request id 41",
                "object key \"bank\"",
                "operation \"deposit\\x1b[2J\"",
                "FT_REQUEST",
                "client \"c7\", retention id 5",
                "context 0x4d (unknown), 3 bytes",
                "hello",
            ],
        );
    }
}

#[test]
fn replies_are_described() {
    let version = Version::V1_2;
    let exception =
        SystemException::ours(ExceptionKind::Transient, MinorCode::NoPrimary, Completion::No);
    let raised = build::system_exception(version, Endian::Big, 3, &exception);
    says(&message(&raised), &["status SystemException", "TRANSIENT", MinorCode::NoPrimary.text()]);
    let forward = build::reply(version, Endian::Big, 3, ReplyStatus::LocationForward, |cdr| {
        group_ior().write(cdr);
    });
    says(&message(&forward), &["status LocationForward", "profile 2: IIOP 1.2 at [::1]:2"]);
}

#[test]
fn a_reference_is_described_however_it_is_written() {
    let ior = group_ior();
    let parts = [
        "type \"IDL:T:1.0\"",
        "profile 1: IIOP 1.2 at n1:1",
        "key \"k\\x07\", in a corbaloc k%07",
        "alternate address: [::1]:2, which is reachable on its own machine only",
        "ORB type: TAO",
        "FT group: domain \"plant\", group 5, version 2",
        "FT primary: true",
    ];
    says(&reference(&ior), &parts);
    says(&reference_text(&ior.stringify(Endian::Little)), &parts);
    says(&reference_text("corbaloc::1.2@h/k"), &["key \"k\"", "IIOP 1.2 at h:2809\n"]);
    says(&reference_text("corbaloc::0.0.0.0/k"), &["no address to connect to"]);
    says(&reference_text("corbaloc::h:x/k"), &["character 12"]);
    says(&reference_text("\u{1b}[2J"), &["does not begin with"]);
    says(&reference_text("IOR:0g"), &["character 5"]);
}

#[test]
fn of_a_cut_reference_what_is_there_is_shown() {
    let text = group_ior().stringify(Endian::Big);
    for length in 0..text.len() {
        says(&reference_text(&text[..length]), &[""]);
    }
    let most = reference_text(&text[..text.len() - 8]);
    says(&most, &["profile 1: IIOP 1.2 at n1:1", "malformed from here on: profile data"]);
}

#[test]
fn of_a_cut_profile_what_is_there_is_shown() {
    let mut ior = group_ior();
    ior.profiles[0].data.truncate(40);
    says(&reference(&ior), &["at n1:1", "malformed from here on", "IIOP 1.2 at [::1]:2"]);
}

#[test]
fn bytes_that_are_no_message_are_shown_nevertheless() {
    for version in [Version::V1_0, Version::V1_2] {
        let whole = request_message(version, Endian::Big, b"op");
        for length in 0..whole.bytes().len() {
            says(&bytes(&whole.bytes()[..length]), &["not one whole message"]);
        }
        // One changed octet at a time: nothing of it may fail.
        for index in 0..whole.bytes().len() {
            for octet in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.bytes().to_vec();
                changed[index] = octet;
                says(&bytes(&changed), &[""]);
            }
        }
    }
    let long = bytes(&Vec::from([b'x'; 100_000]));
    assert!(long.len() < 4000);
    says(&long, &["and 99744 more bytes"]);
}
