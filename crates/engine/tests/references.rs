//! Clients that know FT-CORBA: what they say of their reference and of how long a request counts.

mod stage;

use quorba_base::Duration;
use quorba_engine::CurrentReference;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::context::{self, GroupVersion};
use quorba_giop::ior::{FtGroup, GroupReference, group_reference};
use quorba_giop::{Completion, Endian, ExceptionKind, FtRequest, Message, ResponseFlags, Version};
use stage::{CLIENT, Got, Plan, Stage};
use std::sync::Arc;

const VERSION: u32 = 7;

fn current() -> CurrentReference {
    let group = FtGroup { domain_id: b"d".to_vec(), group_id: 1, reference_version: VERSION };
    let gateways = [("n1".to_owned(), 5000)];
    let ior = group_reference(&GroupReference {
        type_id: b"IDL:T:1.0",
        object_key: b"key",
        gateways: &gateways,
        tls: &[],
        group: Some(&group),
        primary: None,
        heartbeat_enabled: true,
        components: &[],
    });
    CurrentReference { version: VERSION, ior: Arc::new(ior) }
}

fn request(request_id: u32, endian: Endian, contexts: &[(u32, &[u8])]) -> Message {
    let head = RequestHead {
        version: Version::V1_2,
        endian,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"echo",
        contexts,
    };
    build::request(&head, |cdr| cdr.write_u32(request_id))
}

fn got(stage: &mut Stage, message: &Message) -> Vec<Got> {
    stage.say_as(0, CLIENT, message.bytes());
    stage.pass_until(|stage| !stage.got[0].is_empty());
    stage.client_got()
}

#[test]
fn an_old_reference_is_served_and_its_client_is_told_the_new_one() {
    let plan = Plan { nodes: 3, reference: Some(current), ..Plan::default() };
    let mut stage = Stage::of(plan).with_servers();
    for endian in [Endian::Little, Endian::Big] {
        let with = |id, version| {
            let data = GroupVersion(version).encode(endian);
            request(id, endian, &[(context::FT_GROUP_VERSION, &data)])
        };
        assert_eq!(got(&mut stage, &with(1, 3)), [Got::Newer(VERSION), Got::Results(1)]);
        assert_eq!(got(&mut stage, &with(2, VERSION)), [Got::Results(2)], "it is not old");
        assert_eq!(got(&mut stage, &with(3, 9)), [Got::Results(3)], "it is newer");
        assert_eq!(got(&mut stage, &request(4, endian, &[])), [Got::Results(4)], "it says nothing");
    }
}

#[test]
fn a_request_that_expired_before_the_group_forgot_replies_of_then_is_refused() {
    let mut stage = Stage::of(Plan { nodes: 3, ..Plan::default() }).with_servers();
    // The group remembers replies for 60 s.
    stage.pass(Duration::from_secs(100));
    let seconds = |count: u64| count * 10_000_000;
    let mut named = |retention_id: i32, expiration_time: u64| {
        let name = FtRequest { client_id: b"client".to_vec(), retention_id, expiration_time };
        let data = name.encode(Endian::Little);
        let id = u32::try_from(retention_id).expect("small");
        got(&mut stage, &request(id, Endian::Little, &[(context::FT_REQUEST, &data)]))
    };
    let refused = Got::Raised(1, ExceptionKind::BadContext, Completion::No);
    assert_eq!(named(1, seconds(30)), [refused]);
    assert_eq!(named(2, seconds(60)), [Got::Results(2)], "a clock that is 40 s behind");
    assert_eq!(named(3, seconds(200)), [Got::Results(3)]);
}
