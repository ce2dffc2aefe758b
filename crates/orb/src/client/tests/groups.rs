//! References to groups, and what a client does because it has one.

use quorba_giop::FtRequest;
use quorba_giop::ior::FtGroup;

use super::*;

const OF_THE_WAY: [ExceptionKind; 4] = [
    ExceptionKind::CommFailure,
    ExceptionKind::Transient,
    ExceptionKind::NoResponse,
    ExceptionKind::ObjAdapter,
];

/// A reference to version `version` of group `group_id`.
pub(super) fn reference(group_id: u64, version: u32, addresses: &[SocketAddr]) -> Ior {
    let named = FtGroup { domain_id: b"d".to_vec(), group_id, reference_version: version };
    let place = |address: &SocketAddr| (address.ip().to_string(), address.port());
    let gateways: Vec<_> = addresses.iter().map(place).collect();
    group_reference(&GroupReference {
        type_id: b"IDL:Test:1.0",
        object_key: b"key",
        gateways: &gateways,
        tls: &[],
        group: Some(&named),
        primary: None,
        heartbeat_enabled: true,
        components: &[],
    })
}

/// A client of version 1 of group 1.
pub(super) fn of_group(addresses: &[SocketAddr], options: ClientOptions) -> Client {
    let reference = Reference::from_ior(&reference(1, 1, addresses)).expect("a reference");
    Client::new(&reference, options)
}

fn named() -> ClientOptions {
    ClientOptions { repeat: Some(Repeat::new("test", 0)), ..ClientOptions::default() }
}

/// What a call gives when the first address raises this and the second one would return 2.
fn after(
    kind: ExceptionKind,
    completed: Completion,
    column: usize,
) -> Result<u32, SystemException> {
    let (first, second) = (scripted(&[Act::Raise(kind, completed)]), scripted(&[Act::Return(2)]));
    let addresses = [first.address, second.address];
    let mut client = match column {
        0 => plain(&addresses),
        1 => of_group(&addresses, ClientOptions::default()),
        2 => of_group(&addresses, named()),
        _ => client(&addresses, named()),
    };
    call(&mut client)
}

#[test]
fn exceptions_are_followed_by_a_try_elsewhere_as_table_23_1_has_it() {
    for kind in OF_THE_WAY {
        for completed in [Completion::No, Completion::Maybe, Completion::Yes] {
            for column in 0..4 {
                let goes_on = match completed {
                    Completion::No => column > 0,
                    Completion::Maybe => column > 1,
                    Completion::Yes => false,
                };
                let expected = if goes_on { Ok(2) } else { raised(kind, 7, completed) };
                assert_eq!(after(kind, completed, column), expected, "column {column}");
            }
        }
    }
    for column in 0..4 {
        let other = raised(ExceptionKind::NoPermission, 7, Completion::No);
        assert_eq!(after(ExceptionKind::NoPermission, Completion::No, column), other);
    }
}

#[test]
fn a_lost_connection_is_completed_maybe_in_every_column() {
    let lost = raised(ExceptionKind::CommFailure, 0, Completion::Maybe);
    for (options, expected) in [(ClientOptions::default(), lost), (named(), Ok(2))] {
        let (first, second) = (scripted(&[Act::Drop]), scripted(&[Act::Return(2)]));
        let mut client = of_group(&[first.address, second.address], options);
        assert_eq!(call(&mut client), expected);
    }
}

#[test]
fn a_forward_is_followed_in_every_column() {
    for column in 0..3 {
        let target = scripted(&[Act::Return(7)]);
        let home = [scripted(&[Act::Forward(target.address)]).address];
        let mut client = match column {
            0 => plain(&home),
            1 => of_group(&home, ClientOptions::default()),
            _ => of_group(&home, named()),
        };
        assert_eq!(call(&mut client), Ok(7));
    }
}

#[test]
fn without_a_name_and_a_time_each_address_is_asked_once() {
    let busy = Act::Raise(ExceptionKind::Transient, Completion::No);
    let script = [busy, Act::Return(9)];
    let servers = [scripted(&script), scripted(&script), scripted(&script)];
    let addresses = servers.each_ref().map(|server| server.address);
    let mut client = of_group(&addresses, ClientOptions::default());
    assert_eq!(call(&mut client), raised(ExceptionKind::Transient, 7, Completion::No));
    for server in &servers {
        server.asked();
        assert!(server.asked.try_recv().is_err());
    }
}

#[test]
fn a_completion_maybe_that_a_server_says_is_remembered() {
    let first = scripted(&[Act::Raise(ExceptionKind::Transient, Completion::Maybe)]);
    let second = scripted(&[Act::Raise(ExceptionKind::NoPermission, Completion::No)]);
    let mut client = of_group(&[first.address, second.address], named());
    assert_eq!(call(&mut client), raised(ExceptionKind::NoPermission, 7, Completion::Maybe));
}

#[test]
fn a_request_is_sent_again_as_long_as_its_duration_says() {
    let busy = Act::Raise(ExceptionKind::Transient, Completion::No);
    let lasting = |duration| ClientOptions {
        request_duration: Some(duration),
        call_timeout: None,
        ..ClientOptions::default()
    };
    // One address, which is busy at first.
    let script = [busy.clone(), busy.clone(), busy.clone(), Act::Return(2)];
    let mut client = of_group(&[scripted(&script).address], lasting(Duration::from_secs(30)));
    assert_eq!(call(&mut client), Ok(2));
    // And which always is.
    for repeat in [None, Some(Repeat::new("test", 0))] {
        let server = scripted(&vec![busy.clone(); 10_000]);
        let options = ClientOptions { repeat, ..lasting(Duration::from_millis(100)) };
        let mut client = of_group(&[server.address], options);
        assert_eq!(call(&mut client), raised(ExceptionKind::Transient, 7, Completion::No));
        server.asked();
        server.asked();
    }
}

#[test]
fn the_expiration_of_a_request_is_its_duration_from_now_on() {
    for (duration, s) in [(None, 60), (Some(Duration::from_secs(5)), 5)] {
        let server = scripted(&[Act::Drop, Act::Return(1)]);
        let options = ClientOptions { request_duration: duration, ..named() };
        let mut client = of_group(&[server.address], options);
        let before = time_t();
        assert_eq!(call(&mut client), Ok(1));
        let after = time_t();
        let (first, again) = (server.asked().identity, server.asked().identity);
        assert_eq!(first, again, "a repetition has the same name and time");
        let said = FtRequest::decode(&first.expect("a name")).expect("FT_REQUEST").expiration_time;
        let ticks = s * 10_000_000;
        assert!((before + ticks..=after + ticks).contains(&said), "{said}");
    }
}

// A group remembers a reply by the name of its request, also that a server was not ready yet.
#[test]
fn a_request_that_was_not_executed_is_made_anew_under_another_name() {
    let names = |acts: &[Act]| {
        let server = scripted(acts);
        let mut client = of_group(&[server.address], named());
        assert_eq!(call(&mut client), Ok(1));
        acts.iter().map(|_| server.asked().identity.expect("a name")).collect::<Vec<_>>()
    };
    let busy = Act::Raise(ExceptionKind::Transient, Completion::No);
    let [first, again] = &names(&[busy.clone(), Act::Return(1)])[..] else { panic!("two") };
    let [first, again] = [first, again].map(|name| FtRequest::decode(name).expect("FT_REQUEST"));
    assert_eq!(again.retention_id, first.retention_id + 1);
    assert_eq!(again.client_id, first.client_id);
    let ticks = again.expiration_time.abs_diff(first.expiration_time);
    assert!(ticks < 10_000_000, "it expires when the first one does: {ticks}");
    // Nobody knows what became of the first attempt.
    let names = names(&[Act::Drop, busy, Act::Return(1)]);
    assert!(names.iter().all(|name| *name == names[0]));
}

#[test]
fn a_silent_address_is_left_within_the_duration_of_the_request() {
    let (first, second) = (scripted(&[Act::Silence]), scripted(&[Act::Return(2)]));
    let options = ClientOptions {
        request_duration: Some(Duration::from_secs(4)),
        call_timeout: None,
        ..named()
    };
    let mut client = of_group(&[first.address, second.address], options);
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn a_group_does_not_exist_if_every_address_says_so() {
    let not_there = Act::Raise(ExceptionKind::ObjectNotExist, Completion::No);
    let ask = |acts: [Act; 2], is_group: bool| {
        let servers = acts.map(|act| scripted(&[act]));
        let addresses = servers.each_ref().map(|server| server.address);
        let mut client = match is_group {
            true => of_group(&addresses, ClientOptions::default()),
            false => plain(&addresses),
        };
        client.non_existent().expect("an answer")
    };
    let (gone, here) = (Act::ReturnTruth(true), Act::ReturnTruth(false));
    assert!(!ask([gone.clone(), here.clone()], true), "one member is not the group");
    assert!(!ask([not_there.clone(), here.clone()], true));
    assert!(!ask([here.clone(), gone.clone()], true));
    assert!(ask([gone.clone(), not_there.clone()], true));
    assert!(!ask([Act::Drop, here.clone()], true), "who does not say is no answer");
    assert!(ask([gone, here.clone()], false), "an object has one answer");
    assert!(ask([not_there, here], false));
}

#[test]
fn a_client_says_its_version_and_takes_a_newer_reference_from_a_reply() {
    let newcomer = scripted(&[Act::Return(2)]);
    let newer = reference(1, 5, &[newcomer.address]);
    let first = scripted(&[Act::ReturnBeside(1, newer)]);
    let mut client = of_group(&[first.address], ClientOptions::default());
    assert_eq!(call(&mut client), Ok(1));
    assert_eq!(first.asked().version, Some(1));
    let version = client.reference().group().map(|group| group.reference_version);
    assert_eq!(version, Some(5));
    assert_eq!(call(&mut client), Ok(2));
    assert_eq!(newcomer.asked().version, Some(5));
}

#[test]
fn a_reference_that_is_no_newer_one_to_the_same_group_is_left_alone() {
    let elsewhere = [dead()];
    let mut other_domain = reference(1, 5, &elsewhere);
    // Its octets differ in the one letter of the domain's name.
    for profile in &mut other_domain.profiles {
        let at = profile.data.windows(2).rposition(|two| two == b"d\0").expect("the domain");
        profile.data[at] = b'e';
    }
    let beside = [
        reference(1, 1, &elsewhere),
        reference(1, 0, &elsewhere),
        reference(2, 5, &elsewhere),
        other_domain,
        Ior::nil(),
    ];
    let script: Vec<Act> = beside.map(|ior| Act::ReturnBeside(3, ior)).into();
    let calls = script.len();
    let server = scripted(&[script, vec![Act::Return(4)]].concat());
    let mut client = of_group(&[server.address], ClientOptions::default());
    for _ in 0..calls {
        assert_eq!(call(&mut client), Ok(3));
    }
    assert_eq!(call(&mut client), Ok(4));
    // One that names no group takes none, and says no version.
    let server = scripted(&[Act::ReturnBeside(3, reference(1, 5, &elsewhere)), Act::Return(4)]);
    let mut client = plain(&[server.address]);
    assert_eq!((call(&mut client), call(&mut client)), (Ok(3), Ok(4)));
    assert_eq!(server.asked().version, None);
}

#[test]
fn a_newer_reference_keeps_a_connection_that_it_has_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let newer = reference(1, 2, &[dead(), address]);
    let _server = scripted_at(listener, &[Act::ReturnBeside(1, newer), Act::Return(2)]);
    let mut client = of_group(&[address], ClientOptions::default());
    assert_eq!(call(&mut client), Ok(1));
    assert!(client.connection.is_some());
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn a_forward_for_good_to_a_newer_reference_replaces_the_old_one() {
    let newcomer = scripted(&[Act::Return(2), Act::Drop, Act::Return(3)]);
    let newer = reference(1, 2, &[newcomer.address]);
    let home = scripted(&[Act::ForwardForGood(newer)]);
    let mut client = of_group(&[home.address], ClientOptions::default());
    assert_eq!(call(&mut client), Ok(2));
    assert_eq!(call(&mut client), raised(ExceptionKind::CommFailure, 0, Completion::Maybe));
    assert_eq!(call(&mut client), Ok(3), "it does not go back to where it was sent away");
}
