//! Messages about as large as the order carries: what fits is served, what does not is refused,
//! and nobody else notices.

mod stage;

use bytes::Bytes;
use quorba_engine::GatewayLimits;
use quorba_engine::order::PAYLOAD_BYTES_MAX;
use quorba_engine::replica::{RequestEnvelope, RequestNumber};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Completion, Endian, ExceptionKind, ResponseFlags, Version};
use stage::{GROUP, Got, OTHER, OTHER_CLIENT, Plan, Stage};

/// The gateway reads more than the order carries.
fn roomy(nodes: usize) -> Plan {
    let limits = GatewayLimits { message_bytes: 32 << 20, ..GatewayLimits::default() };
    Plan { nodes, groups: 2, limits, datagram_bytes_max: 60_000, ..Plan::default() }
}

/// A request of exactly so many bytes.
fn request_of(request_id: u32, bytes: usize) -> Bytes {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"store",
        contexts: &[],
    };
    let filled = |filler: usize| {
        build::request(&head, |cdr| {
            cdr.write_u32(request_id);
            cdr.write_octets(&vec![0; filler]);
        })
    };
    let message = filled(bytes - filled(0).bytes().len());
    assert_eq!(message.bytes().len(), bytes);
    message.bytes().clone()
}

/// The longest request without contexts that the order carries.
fn request_bytes_max() -> usize {
    let envelope = RequestEnvelope {
        group: GROUP,
        number: RequestNumber(1),
        released_below: RequestNumber(1),
        stamp: 0,
        ft: None,
        code_sets: None,
        giop: Bytes::new(),
    };
    PAYLOAD_BYTES_MAX - envelope.into_payload().len()
}

/// The other group is served; gives what the clients got before.
fn others_go_on(s: &mut Stage, number: u32) -> Vec<Got> {
    s.call_as(0, OTHER_CLIENT, number);
    s.pass_until(|stage| stage.got[0].contains(&Got::Results(number)));
    s.client_got().into_iter().filter(|got| *got != Got::Results(number)).collect()
}

#[test]
fn a_request_that_the_order_cannot_carry_is_refused_and_others_go_on() {
    for nodes in [1, 3] {
        let mut s = Stage::of(roomy(nodes)).with_servers();
        for (number, bytes, is_carried) in [
            (1, request_bytes_max() - 1, true),
            (2, request_bytes_max(), true),
            (3, request_bytes_max() + 1, false),
        ] {
            s.say(&request_of(number, bytes));
            let mut got = others_go_on(&mut s, 100 + number);
            if got.is_empty() {
                s.pass_until(|stage| !stage.got[0].is_empty());
                got = s.client_got();
            }
            let refused = Got::Raised(number, ExceptionKind::ImpLimit, Completion::No);
            assert_eq!(got, [if is_carried { Got::Results(number) } else { refused }]);
        }
        s.pass_until(|stage| stage.logs(OTHER).iter().all(|log| *log == [101, 102, 103]));
        s.pass_until(|stage| stage.logs(GROUP).iter().all(|log| *log == [1, 2]));
        assert_eq!(s.nodes[0].snapshot().gateway.groups[0].pending, 0, "nothing is left behind");
    }
}
