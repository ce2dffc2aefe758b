//! Messages about as large as the order carries: what fits is served, what does not is refused,
//! and nobody else notices.

mod stage;

use bytes::Bytes;
use quorba_base::Duration;
use quorba_engine::order::PAYLOAD_BYTES_MAX;
use quorba_engine::replica::{
    CODE_SETS_BYTES_MAX, DownReason, ReplyPath, RequestEnvelope, RequestNumber,
};
use quorba_engine::{GatewayLimits, MESSAGE_BYTES_MAX};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::context::{self, FtRequest};
use quorba_giop::{Completion, Endian, ExceptionKind, Message, ResponseFlags, Version};
use stage::{GROUP, Got, OTHER, OTHER_CLIENT, Plan, Server, Stage};

/// The gateway reads more than the order carries.
fn roomy(nodes: usize) -> Plan {
    let limits = GatewayLimits { message_bytes: 32 << 20, ..GatewayLimits::default() };
    Plan { nodes, groups: 2, limits, datagram_bytes_max: 60_000, ..Plan::default() }
}

fn head(request_id: u32, operation: &'static [u8]) -> RequestHead<'static> {
    RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation,
        contexts: &[],
    }
}

/// A request of exactly so many bytes.
fn sized(head: &RequestHead<'_>, bytes: usize) -> Bytes {
    let filled = |filler: usize| {
        build::request(head, |cdr| {
            cdr.write_u32(head.request_id);
            cdr.write_octets(&vec![0; filler]);
        })
    };
    let message = filled(bytes - filled(0).bytes().len());
    assert_eq!(message.bytes().len(), bytes);
    message.bytes().clone()
}

fn request_of(request_id: u32, bytes: usize) -> Bytes {
    sized(&head(request_id, b"store"), bytes)
}

/// A call that the client names itself, so that it can repeat it.
fn named_call(request_id: u32, retention_id: i32) -> Bytes {
    let name = FtRequest { client_id: b"c".to_vec(), retention_id, expiration_time: 0 };
    let name = name.encode(Endian::Little);
    let contexts: &[(u32, &[u8])] = &[(context::FT_REQUEST, &name)];
    sized(&RequestHead { contexts, ..head(request_id, b"list") }, 200)
}

/// So much more than an empty reply is a reply of the largest size.
fn reply_filler_max() -> usize {
    let request = Message::from_bytes(request_of(1, 100)).unwrap();
    MESSAGE_BYTES_MAX - Server::default().serve(&request).len()
}

fn fill_replies(s: &mut Stage, filler: usize) {
    for node in &mut s.servers {
        node[GROUP.0 as usize].filler = filler;
    }
}

/// The longest request without contexts that the order carries.
fn request_bytes_max() -> usize {
    let envelope = RequestEnvelope {
        group: GROUP,
        number: RequestNumber(1),
        released: quorba_replica::Released::below(RequestNumber(1)),
        stamp: 0,
        ft: None,
        nested: None,
        ended_process: false,
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
        assert_eq!(
            s.nodes[0].snapshot().gateway.groups[GROUP].pending,
            0,
            "nothing is left behind"
        );
    }
}

#[test]
fn a_gateways_own_limit_lets_in_what_the_order_carries_whatever_it_is_wrapped_in() {
    let plan = Plan { groups: 2, datagram_bytes_max: 60_000, ..Plan::default() };
    assert_eq!(plan.limits.message_bytes, MESSAGE_BYTES_MAX);
    let mut s = Stage::of(plan).with_servers();
    let code_sets = [0; 4096];
    let name = FtRequest { client_id: vec![b'c'; 1023], retention_id: 1, expiration_time: 0 };
    let name = name.encode(Endian::Little);
    let call = |request_id, contexts: &[(u32, &[u8])], bytes| {
        let head = RequestHead { contexts, ..head(request_id, b"store") };
        sized(&head, bytes)
    };
    // What the gateway heard of code sets goes along with every later request.
    for length in [CODE_SETS_BYTES_MAX, code_sets.len()] {
        let context = (context::CODE_SETS, &code_sets[..length]);
        s.say(&call(length as u32, &[context], 8000));
        s.say(&call(1, &[(context::FT_REQUEST, &name)], MESSAGE_BYTES_MAX));
        s.pass_until(|stage| stage.got[0].len() == 2);
        assert_eq!(s.client_got(), [Got::Results(length as u32), Got::Results(1)]);
    }
}

#[test]
fn a_reply_that_the_order_cannot_carry_is_replaced_and_all_members_stay() {
    for (nodes, reply) in [(1, ReplyPath::Direct), (3, ReplyPath::Direct), (3, ReplyPath::Ordered)]
    {
        let mut s = Stage::of(Plan { reply, ..roomy(nodes) }).with_servers();
        let too_large = |number| Got::Raised(number, ExceptionKind::ImpLimit, Completion::Yes);
        for (number, filler, is_carried) in [
            (1, reply_filler_max() - 1, true),
            (2, reply_filler_max(), true),
            (3, reply_filler_max() + 1, false),
            // More than is read of what a server says.
            (4, 70 << 20, false),
        ] {
            fill_replies(&mut s, filler);
            s.say(&named_call(number, number as i32));
            let mut got = others_go_on(&mut s, 100 + number);
            if got.is_empty() {
                s.pass_until(|stage| !stage.got[0].is_empty());
                got = s.client_got();
            }
            let expected = if is_carried { Got::Results(number) } else { too_large(number) };
            assert_eq!(got, [expected], "{nodes} {reply:?}");
            s.pass_until(|stage| stage.logs(GROUP).iter().all(|log| log.len() == number as usize));
        }
        // Again under the same names: answered alike, and executed no second time.
        fill_replies(&mut s, 0);
        for (again, number) in [(13, 3), (14, 4)] {
            s.say(&named_call(again, number));
            s.pass_until(|stage| !stage.got[0].is_empty());
            assert_eq!(s.client_got(), [too_large(again)]);
        }
        s.say(&named_call(5, 5));
        s.pass_until(|stage| !stage.got[0].is_empty());
        assert_eq!(s.client_got(), [Got::Results(5)], "the servers live on");
        s.pass_until(|stage| stage.logs(GROUP).iter().all(|log| *log == [1, 2, 3, 4, 5]));
    }
}

/// A server is started again at node 1 and fetches the state from another member.
fn restart_server(s: &mut Stage) {
    s.nodes[1].handle_server_down(s.now, GROUP, DownReason::ServerExited);
    s.servers[1][GROUP.0 as usize].log.clear();
    s.settle();
    s.nodes[1].handle_server_up(s.now, GROUP);
    s.settle();
}

#[test]
fn a_state_may_be_larger_than_what_the_order_carries_at_once() {
    let mut s = Stage::of(roomy(3)).with_servers();
    s.call(1);
    s.pass_until(|stage| stage.logs(GROUP).iter().all(|log| *log == [1]));
    for node in &mut s.servers {
        node[GROUP.0 as usize].state_filler = PAYLOAD_BYTES_MAX + 4;
    }
    restart_server(&mut s);
    s.pass_until(|stage| stage.logs(GROUP)[1] == [1]);
    others_go_on(&mut s, 2);
}

#[test]
fn a_state_that_is_too_large_to_be_taken_costs_no_member_its_place() {
    let plan = Plan { state_bytes_max: 20 << 20, ..roomy(3) };
    let mut s = Stage::of(plan).with_servers();
    s.call(1);
    s.pass_until(|stage| stage.logs(GROUP).iter().all(|log| *log == [1]));
    for node in &mut s.servers {
        node[GROUP.0 as usize].state_filler = 30 << 20;
    }
    restart_server(&mut s);
    s.pass(Duration::from_secs(2));
    assert!(s.logs(GROUP)[1].is_empty());
    assert_eq!(s.local(GROUP, 0), Some("serving"));
    assert_eq!(s.local(GROUP, 2), Some("serving"));
    s.client_got();
    s.call(2);
    s.pass_until(|stage| !stage.got[0].is_empty());
    assert_eq!(s.client_got(), [Got::Results(2)]);
    // As soon as it is smaller, the member comes in.
    for node in &mut s.servers {
        node[GROUP.0 as usize].state_filler = 0;
    }
    s.pass_until(|stage| stage.logs(GROUP)[1] == [1, 2]);
}
