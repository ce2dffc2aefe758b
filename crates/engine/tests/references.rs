//! Clients that know FT-CORBA: what they say of their reference and of how long a request counts.

mod stage;

use bytes::Bytes;
use quorba_base::Duration;
use quorba_engine::References;
use quorba_engine::replica::{CatalogChange, Definition};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::context::{self, GroupVersion};
use quorba_giop::ior::{FtGroup, GroupReference, Ior, group_reference};
use quorba_giop::{Completion, Endian, ExceptionKind, FtRequest, Message, ResponseFlags, Version};
use stage::{CLIENT, Got, Plan, Stage};
use std::sync::Arc;

const VERSION: u32 = 7;

/// Those of a group that had so many versions before anybody counted.
#[derive(Debug)]
struct Group(u32);

impl References for Group {
    fn object_key(&self) -> &[u8] {
        b"key"
    }

    fn version(&self, counted: u32) -> u32 {
        self.0 + counted
    }

    fn reference(&self, counted: u32) -> Ior {
        let reference_version = self.version(counted);
        let group = FtGroup { domain_id: b"d".to_vec(), group_id: 1, reference_version };
        group_reference(&GroupReference {
            type_id: b"IDL:T:1.0",
            object_key: b"key",
            gateways: &[("n1".to_owned(), 5000)],
            tls: &[],
            group: Some(&group),
            primary: None,
            heartbeat_enabled: true,
            components: &[],
        })
    }
}

fn old_group() -> Arc<dyn References> {
    Arc::new(Group(VERSION))
}

fn new_group() -> Arc<dyn References> {
    Arc::new(Group(0))
}

fn request(request_id: u32, endian: Endian, contexts: &[(u32, &[u8])]) -> Message {
    request_to(b"key", request_id, endian, contexts)
}

fn request_to(
    object_key: &[u8],
    request_id: u32,
    endian: Endian,
    contexts: &[(u32, &[u8])],
) -> Message {
    let head = RequestHead {
        version: Version::V1_2,
        endian,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key,
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
    let plan = Plan { nodes: 3, references: Some(old_group), ..Plan::default() };
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

/// Servers may have several objects; the group's reference is of one.
#[test]
fn a_client_of_another_object_of_the_servers_is_not_told_the_reference_of_the_groups() {
    let plan = Plan { nodes: 3, references: Some(old_group), ..Plan::default() };
    let mut stage = Stage::of(plan).with_servers();
    let data = GroupVersion(3).encode(Endian::Little);
    let contexts = [(context::FT_GROUP_VERSION, data.as_slice())];
    let of_another = request_to(b"other", 1, Endian::Little, &contexts);
    assert_eq!(got(&mut stage, &of_another), [Got::Results(1)]);
}

#[test]
fn what_the_domain_counts_is_the_version_of_the_reference_that_clients_are_told() {
    let plan = Plan { nodes: 3, references: Some(new_group), ..Plan::default() };
    let mut stage = Stage::of(plan).with_servers();
    let with = |id, version| {
        let data = GroupVersion(version).encode(Endian::Little);
        request(id, Endian::Little, &[(context::FT_GROUP_VERSION, &data)])
    };
    assert_eq!(got(&mut stage, &with(1, 0)), [Got::Results(1)], "nothing has changed");
    let name = "0".into();
    let change = CatalogChange::Change(Definition { name, text: Bytes::from_static(b"more") });
    let now = stage.now;
    stage.nodes[0].handle_define(now, 1, Bytes::from_static(b"operation"), change);
    stage.pass(Duration::from_millis(100));
    assert_eq!(got(&mut stage, &with(2, 0)), [Got::Newer(1), Got::Results(2)]);
    assert_eq!(got(&mut stage, &with(3, 1)), [Got::Results(3)]);
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
