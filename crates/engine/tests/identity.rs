//! What a client's name of its call (FT_REQUEST) is worth to a stranger who knows it, told as short
//! stories.

mod stage;

use quorba_base::Duration;
use quorba_engine::replica::IdentityFigures;
use quorba_engine::{Certificate, ClientPeer};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Completion, Endian, ExceptionKind, FtRequest, ResponseFlags, Version, context};
use stage::{CLIENT, GROUP, Got, Stage};
use std::net::IpAddr;

const OWNER: [u8; 4] = [127, 0, 0, 2];
const STRANGER: [u8; 4] = [127, 0, 0, 3];

fn at(address: [u8; 4]) -> ClientPeer {
    ClientPeer::at(IpAddr::from(address))
}

/// A call under the name (`"client"`, `retention_id`).
struct Call<'a> {
    retention_id: i32,
    version: Version,
    key: &'a [u8],
    operation: &'a [u8],
    argument: u32,
}

const TRANSFER: Call<'_> =
    Call { retention_id: 7, version: Version::V1_2, key: b"bank", operation: b"move", argument: 5 };

impl Call<'_> {
    fn by(&self, s: &mut Stage, node: usize, request_id: u32) -> Vec<Got> {
        let name = FtRequest {
            client_id: b"client".to_vec(),
            retention_id: self.retention_id,
            expiration_time: 0,
        };
        let name = name.encode(Endian::Little);
        let head = RequestHead {
            version: self.version,
            endian: Endian::Little,
            request_id,
            response_flags: ResponseFlags::WithTarget,
            object_key: self.key,
            operation: self.operation,
            contexts: &[(context::FT_REQUEST, &name)],
        };
        let message = build::request(&head, |cdr| cdr.write_u32(self.argument));
        s.say_as(node, CLIENT, message.bytes());
        s.pass_until(|stage| !stage.got[node].is_empty());
        // What else comes, comes now.
        s.pass(Duration::from_millis(50));
        s.got_at(node)
    }
}

fn refused(request_id: u32) -> [Got; 1] {
    [Got::Raised(request_id, ExceptionKind::BadContext, Completion::No)]
}

fn figures(s: &Stage, node: usize) -> IdentityFigures {
    s.nodes[node].snapshot().groups[GROUP].identities
}

#[test]
fn a_strangers_call_under_a_known_name_is_refused_at_every_gateway_and_never_executed() {
    let mut s = Stage::serving(3);
    s.connect_from(0, at(OWNER));
    assert_eq!(TRANSFER.by(&mut s, 0, 1), [Got::Results(1)]);
    s.pass_until(|stage| stage.executed == [1, 1, 1]);
    let others = [
        Call { operation: b"balance", ..TRANSFER },
        Call { key: b"vault", ..TRANSFER },
        Call { argument: 6, ..TRANSFER },
        Call { argument: 6, version: Version::V1_1, ..TRANSFER },
        Call { operation: b"mov", key: b"bankm", ..TRANSFER },
    ];
    for node in 0..3 {
        s.connect_from(node, at(STRANGER));
        for (id, call) in (10..).zip(&others) {
            assert_eq!(call.by(&mut s, node, id), refused(id), "n{node}");
        }
    }
    assert_eq!(s.executed, [1, 1, 1]);
    for node in 0..3 {
        assert_eq!(figures(&s, node).taken, 15);
    }
    // The owner still gets its reply, at any gateway, and can go on.
    s.connect_from(2, at(OWNER));
    assert_eq!(TRANSFER.by(&mut s, 2, 20), [Got::Results(20)]);
    assert_eq!(s.executed, [1, 1, 1]);
    let next = Call { retention_id: 8, ..TRANSFER };
    assert_eq!(next.by(&mut s, 2, 21), [Got::Results(21)]);
}

#[test]
fn whoever_comes_first_under_a_name_gives_nobody_else_its_reply() {
    let mut s = Stage::serving(3);
    s.connect_from(1, at(STRANGER));
    let theft = Call { argument: 99, ..TRANSFER };
    assert_eq!(theft.by(&mut s, 1, 1), [Got::Results(1)]);
    s.connect_from(0, at(OWNER));
    assert_eq!(TRANSFER.by(&mut s, 0, 2), refused(2), "it knows that it was not executed");
}

#[test]
fn a_stranger_is_refused_while_the_call_still_runs() {
    let mut s = Stage::serving(1);
    s.held = true;
    s.connect_from(0, at(OWNER));
    let name = FtRequest { client_id: b"client".to_vec(), retention_id: 7, expiration_time: 0 };
    let name = name.encode(Endian::Little);
    let request = |id, operation| {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: id,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"bank",
            operation,
            contexts: &[(context::FT_REQUEST, &name)],
        };
        build::request(&head, |cdr| cdr.write_u32(5))
    };
    s.say(request(1, b"move").bytes());
    s.say(request(2, b"balance").bytes());
    assert_eq!(s.client_got(), refused(2), "another operation, although from the same address");
    s.held = false;
    s.settle();
    assert_eq!(s.client_got(), [Got::Results(1)]);
    assert_eq!(s.executed, [1]);
}

#[test]
fn a_client_may_marshal_again_from_its_address_and_repeat_the_same_from_another() {
    let mut s = Stage::serving(1);
    s.connect_from(0, at(OWNER));
    assert_eq!(TRANSFER.by(&mut s, 0, 1), [Got::Results(1)]);
    let again = Call { argument: 0x0100_0005, ..TRANSFER };
    assert_eq!(again.by(&mut s, 0, 2), [Got::Results(2)]);
    s.connect_from(0, at(STRANGER));
    assert_eq!(TRANSFER.by(&mut s, 0, 3), [Got::Results(3)], "it came by another network");
    assert_eq!(s.executed, [1]);
}

#[test]
fn a_certificate_counts_more_than_the_address() {
    let shown = |digest: u8, address| ClientPeer {
        certificate: Some(Certificate { digest: [digest; 16], names: Vec::new() }),
        ..at(address)
    };
    let mut s = Stage::serving(1);
    s.connect_from(0, shown(1, OWNER));
    assert_eq!(TRANSFER.by(&mut s, 0, 1), [Got::Results(1)]);
    let again = Call { argument: 6, ..TRANSFER };
    s.connect_from(0, shown(1, STRANGER));
    assert_eq!(again.by(&mut s, 0, 2), [Got::Results(2)]);
    s.connect_from(0, shown(2, OWNER));
    assert_eq!(again.by(&mut s, 0, 3), refused(3));
    s.connect_from(0, at(OWNER));
    assert_eq!(again.by(&mut s, 0, 4), refused(4));
    assert_eq!(s.executed, [1]);
}
