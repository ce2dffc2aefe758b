//! Requests that servers do not get as they came, or do not get at all, told as short stories.

mod stage;

use bytes::Bytes;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{
    Body, CodeSets, Completion, Endian, ExceptionKind, Message, ResponseFlags, Target, Version,
    context,
};
use stage::{Got, STATE_OBJECT, Stage};

const REQUEST: u8 = 0;
const LOCATE_REQUEST: u8 = 3;

/// How a request addresses its object.
enum Address<'a> {
    Profile { tag: u32, data: &'a [u8] },
    Reference { index: u32, profiles: &'a [(u32, &'a [u8])] },
    OfNoKind,
}

fn profile(key: &[u8]) -> Vec<u8> {
    let mut cdr = Writer::encapsulation(Endian::Big);
    cdr.write_raw(&[1, 2]);
    cdr.write_string(b"gateway");
    cdr.write_u16(2809);
    cdr.write_octets(key);
    cdr.write_count(0);
    cdr.finish()
}

fn write_address(cdr: &mut Writer, address: &Address<'_>) {
    match address {
        Address::Profile { tag, data } => {
            cdr.write_u16(1);
            cdr.write_u32(*tag);
            cdr.write_octets(data);
        }
        Address::Reference { index, profiles } => {
            cdr.write_u16(2);
            cdr.write_u32(*index);
            cdr.write_string(b"IDL:Echo:1.0");
            cdr.write_count(profiles.len());
            for (tag, data) in *profiles {
                cdr.write_u32(*tag);
                cdr.write_octets(data);
            }
        }
        Address::OfNoKind => cdr.write_u16(9),
    }
}

fn message(endian: Endian, kind: u8, write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut cdr = Writer::new(endian);
    cdr.write_raw(b"GIOP");
    cdr.write_raw(&[1, 2, u8::from(endian == Endian::Little), kind, 0, 0, 0, 0]);
    write(&mut cdr);
    let mut bytes = cdr.finish();
    let size = (bytes.len() - 12) as u32;
    let size = if endian == Endian::Big { size.to_be_bytes() } else { size.to_le_bytes() };
    bytes[8..12].copy_from_slice(&size);
    bytes.into()
}

fn addressed(endian: Endian, id: u32, flags: u8, operation: &[u8], to: &Address<'_>) -> Bytes {
    message(endian, REQUEST, |cdr| {
        cdr.write_u32(id);
        cdr.write_raw(&[flags, 0, 0, 0]);
        write_address(cdr, to);
        cdr.write_string(operation);
        cdr.write_count(1);
        cdr.write_u32(0x5151);
        cdr.write_octets(b"odd");
        cdr.align(8);
        cdr.write_u32(id);
    })
}

fn located(id: u32, address: &Address<'_>) -> Bytes {
    message(Endian::Little, LOCATE_REQUEST, |cdr| {
        cdr.write_u32(id);
        write_address(cdr, address);
    })
}

fn with_contexts(version: Version, id: u32, contexts: &[(u32, &[u8])]) -> Message {
    let head = RequestHead {
        version,
        endian: Endian::Little,
        request_id: id,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"key",
        operation: b"echo",
        contexts,
    };
    build::request(&head, |cdr| {
        cdr.write_u32(id);
        cdr.write_f64(1.5);
    })
}

/// What the server at node 0 was sent last.
fn sent(stage: &Stage) -> Message {
    let (_, _, bytes) = stage.calls[0].back().expect("a call");
    Message::from_bytes(bytes.clone()).expect("one message")
}

fn contexts_of(message: &Message) -> Vec<(u32, Vec<u8>)> {
    let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
    request.contexts().map(|(id, data)| (id, data.to_vec())).collect()
}

#[test]
fn servers_get_an_object_key_whatever_the_request_had() {
    let data = profile(b"the key");
    let profiles = [(1, &b"x"[..]), (0, &data)];
    for address in [
        Address::Profile { tag: 0, data: &data },
        Address::Reference { index: 1, profiles: &profiles },
        Address::Reference { index: 0, profiles: &profiles },
    ] {
        for endian in [Endian::Big, Endian::Little] {
            let mut s = Stage::serving(1);
            s.held = true;
            s.say(&addressed(endian, 7, 3, b"echo", &address));
            let sent = sent(&s);
            let Ok(Body::Request(request)) = sent.parse() else { panic!("a request") };
            assert!(matches!(request.target(), Target::Key(b"the key")), "{request:?}");
            assert_eq!(request.operation(), b"echo");
            assert_eq!(contexts_of(&sent), [(0x5151, b"odd".to_vec())]);
            assert_eq!(request.body_offset() % 8, 0);
            let mut body = Reader::at(request.message_bytes(), request.body_offset(), endian);
            assert_eq!(body.read_u32("number"), Ok(7));
            s.held = false;
            s.settle();
            assert_eq!(s.client_got(), [Got::Results(7)]);
        }
    }
}

#[test]
fn clients_cannot_move_a_groups_state_by_its_reference_either() {
    let data = profile(STATE_OBJECT);
    let profiles = [(0, &data[..])];
    let mut s = Stage::serving(1);
    let by_profile = Address::Profile { tag: 0, data: &data };
    s.say(&addressed(Endian::Big, 1, 3, b"set_state", &by_profile));
    let by_reference = Address::Reference { index: 0, profiles: &profiles };
    s.say(&addressed(Endian::Big, 2, 3, b"get_state", &by_reference));
    let forbidden = |id| Got::Raised(id, ExceptionKind::NoPermission, Completion::No);
    assert_eq!(s.client_got(), [forbidden(1), forbidden(2)]);
}

#[test]
fn a_target_without_an_object_key_is_one_clients_trouble() {
    let data = profile(b"key");
    let cut = &data[..20];
    let targets = [
        (Address::Profile { tag: 0, data: cut }, ExceptionKind::ObjectNotExist),
        (Address::Profile { tag: 1, data: &data }, ExceptionKind::ObjectNotExist),
        (Address::Reference { index: 0, profiles: &[] }, ExceptionKind::ObjectNotExist),
        (Address::Reference { index: 1, profiles: &[(0, &data)] }, ExceptionKind::ObjectNotExist),
        (Address::Reference { index: 0, profiles: &[(1, &data)] }, ExceptionKind::ObjectNotExist),
        (Address::OfNoKind, ExceptionKind::Marshal),
    ];
    let mut s = Stage::serving(1);
    for (target, kind) in targets {
        s.say(&addressed(Endian::Big, 1, 3, b"echo", &target));
        assert_eq!(s.client_got(), [Got::Raised(1, kind, Completion::No)]);
        s.say(&addressed(Endian::Big, 1, 0, b"echo", &target));
        assert_eq!(s.client_got(), [], "a oneway");
        s.say(&located(2, &target));
        assert_eq!(s.client_got(), [Got::Nowhere(2)]);
    }
    assert_eq!(s.executed, [0]);
    s.call(3);
    assert_eq!(s.client_got(), [Got::Results(3)], "the connection is as good as before");
}

#[test]
fn an_object_is_located_by_its_reference() {
    let data = profile(b"key");
    let mut s = Stage::serving(1);
    s.say(&located(1, &Address::Profile { tag: 0, data: &data }));
    s.say(&located(2, &Address::Reference { index: 0, profiles: &[(0, &data)] }));
    assert_eq!(s.client_got(), [Got::Here(1), Got::Here(2)]);
}

#[test]
fn a_context_that_cannot_be_read_is_one_clients_trouble() {
    let mut s = Stage::serving(1);
    let cut = [
        (context::CODE_SETS, &[1][..]),
        (context::CODE_SETS, &[]),
        (context::CODE_SETS, &[7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
        (context::BI_DIR_IIOP, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        (context::SENDING_CONTEXT_RUN_TIME, &[0]),
        (context::INVOCATION_POLICIES, &[0, 0, 0, 0, 0, 0, 0, 1]),
        (context::RT_CORBA_PRIORITY, &[1, 0, 7]),
        (context::FT_GROUP_VERSION, &[0, 0, 0, 0, 1]),
        (context::FT_REQUEST, &[0]),
    ];
    for version in [Version::V1_0, Version::V1_2] {
        for (id, data) in cut {
            s.say(with_contexts(version, 1, &[(0x5151, b""), (id, data)]).bytes());
            let refused = Got::Raised(1, ExceptionKind::Marshal, Completion::No);
            assert_eq!(s.client_got(), [refused], "{id}");
        }
    }
    assert_eq!(s.executed, [0], "nothing was ordered");
    s.say(with_contexts(Version::V1_2, 2, &[(0x5151, b""), (14, b"")]).bytes());
    assert_eq!(s.client_got(), [Got::Results(2)], "of others nothing is known");
}

#[test]
fn code_sets_that_cannot_be_read_change_nothing() {
    let mut s = Stage::serving(1);
    let sets = CodeSets { char_data: 0x0501_0001, wchar_data: 0x0001_0109 };
    let data = sets.encode(Endian::Little);
    s.say(with_contexts(Version::V1_2, 1, &[(context::CODE_SETS, &data)]).bytes());
    s.say(with_contexts(Version::V1_2, 2, &[(context::CODE_SETS, &[1])]).bytes());
    let refused = Got::Raised(2, ExceptionKind::Marshal, Completion::No);
    assert_eq!(s.client_got(), [Got::Results(1), refused]);
    s.held = true;
    s.call(3);
    let (_, before, _) = s.calls[0].back().expect("a call").clone();
    s.held = false;
    s.settle();
    s.held = true;
    s.say(with_contexts(Version::V1_2, 4, &[(context::CODE_SETS, &data)]).bytes());
    let (_, channel, _) = s.calls[0].back().expect("a call");
    assert_eq!(*channel, before, "the connection with these code sets");
}

#[test]
fn octets_behind_what_a_context_says_do_no_harm() {
    let mut data = CodeSets { char_data: 1, wchar_data: 2 }.encode(Endian::Little);
    data.extend([0xee; 3]);
    let mut s = Stage::serving(1);
    s.held = true;
    let said = with_contexts(Version::V1_2, 1, &[(context::CODE_SETS, &data)]);
    s.say(said.bytes());
    assert_eq!(contexts_of(&sent(&s)), [(context::CODE_SETS, data)]);
}

#[test]
fn no_server_is_offered_the_nodes_connection_for_calls() {
    let mut cdr = Writer::encapsulation(Endian::Little);
    cdr.write_count(1);
    cdr.write_string(b"client");
    cdr.write_u16(4711);
    let bidirectional = cdr.finish();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut s = Stage::serving(1);
        s.held = true;
        let contexts: [(u32, &[u8]); 3] =
            [(0x5151, b"odd"), (context::BI_DIR_IIOP, &bidirectional), (0x5152, b"")];
        s.say(with_contexts(version, 7, &contexts).bytes());
        let sent = sent(&s);
        let mut got = contexts_of(&sent);
        // Before GIOP 1.2 one of ours may stand in, for the alignment of what follows.
        got.retain(|(id, _)| *id != 0x5142_0001);
        assert_eq!(got, [(0x5151, b"odd".to_vec()), (0x5152, Vec::new())]);
        let Ok(Body::Request(request)) = sent.parse() else { panic!("a request") };
        let endian = Endian::Little;
        let mut body = Reader::at(request.message_bytes(), request.body_offset(), endian);
        assert_eq!((body.read_u32("number"), body.read_f64("double")), (Ok(7), Ok(1.5)));
        s.held = false;
        s.settle();
        assert_eq!(s.client_got(), [Got::Results(7)]);
    }
}
