//! The client against servers that do one thing after the other, as a script says.

mod groups;
mod heartbeats;
mod later;

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use quorba_giop::context::GroupVersion;
use quorba_giop::ior::{GroupReference, Ior, group_reference};
use quorba_giop::{
    Body, Completion, ExceptionKind, Message, ReplyStatus, Request, Rewrite, SystemException,
    build, context,
};

use super::*;
use crate::stream::{MessageStream, ReceiveError};

/// What a scripted server does with a request.
#[derive(Clone, Debug)]
enum Act {
    /// Returns the number.
    Return(u32),
    /// Raises the exception.
    Raise(ExceptionKind, Completion),
    /// Closes the connection without a word.
    Drop,
    /// Sends CloseConnection, and closes.
    CloseConnection,
    /// Says nothing until the client goes.
    Silence,
    /// Sends these octets, and closes.
    Octets(Vec<u8>),
    /// Forwards to an address.
    Forward(SocketAddr),
    /// Forwards to a reference, for good.
    ForwardForGood(Ior),
    /// Returns the number, with a reference in a context beside it.
    ReturnBeside(u32, Ior),
    /// Returns a boolean.
    ReturnTruth(bool),
    /// Answers so many heartbeats, then returns the number.
    ReturnAfterBeats(usize, u32),
    /// Returns the number after so much time, in which the client must say nothing.
    ReturnAfterQuiet(Duration, u32),
    /// Returns the number, then closes the idle connection.
    ReturnAndClose(u32),
}

/// What a request says of itself.
#[derive(Debug)]
struct Asked {
    /// The data of FT_REQUEST.
    identity: Option<Vec<u8>>,
    /// What FT_GROUP_VERSION says.
    version: Option<u32>,
}

/// A server that does one act of its script per request, and reports what each says of itself.
/// When the script is over it closes, and its port refuses connections.
struct Scripted {
    address: SocketAddr,
    asked: Receiver<Asked>,
}

impl Scripted {
    fn asked(&self) -> Asked {
        self.asked.recv().expect("a request")
    }
}

fn scripted(script: &[Act]) -> Scripted {
    scripted_at(TcpListener::bind("127.0.0.1:0").expect("a port"), script)
}

fn scripted_at(listener: TcpListener, script: &[Act]) -> Scripted {
    let address = listener.local_addr().expect("an address");
    let (tell, asked) = mpsc::channel();
    let script = script.to_vec();
    thread::spawn(move || {
        let mut acts = script.into_iter().peekable();
        while acts.peek().is_some() {
            let (stream, _) = listener.accept().expect("a client");
            let mut stream = MessageStream::new(stream, 1 << 20).expect("a stream");
            while acts.peek().is_some() {
                let Ok(message) = stream.receive(None) else { break };
                let act = acts.next().expect("looked at");
                if !perform(&act, &message, &mut stream, &tell) {
                    break;
                }
            }
        }
    });
    Scripted { address, asked }
}

fn perform(act: &Act, message: &Message, stream: &mut MessageStream, tell: &Sender<Asked>) -> bool {
    let Ok(Body::Request(request)) = message.parse() else { panic!("not a request") };
    let context = |id| request.contexts().find(|(known, _)| *known == id).map(|(_, data)| data);
    let version = context(context::FT_GROUP_VERSION)
        .map(|data| GroupVersion::decode(data).expect("a version").0);
    let identity = context(context::FT_REQUEST).map(<[u8]>::to_vec);
    // A test that does not look at them has dropped the other end.
    let _unread = tell.send(Asked { identity, version });
    match act {
        Act::Silence => {
            while stream.receive(None).is_ok() {}
            return false;
        }
        Act::ReturnAfterBeats(count, _) => (0..*count).for_each(|_| answer_beat(stream)),
        Act::ReturnAfterQuiet(time, _) => {
            let heard = stream.receive(Some(Instant::now() + *time));
            assert!(matches!(heard, Err(ReceiveError::Timeout)), "{heard:?}");
        }
        _ => {}
    }
    let octets = match reaction(act, message, &request) {
        Some(octets) => octets,
        None => return false,
    };
    stream.send(&octets).expect("the client reads");
    !matches!(act, Act::CloseConnection | Act::Octets(_) | Act::ReturnAndClose(_))
}

fn answer_beat(stream: &mut MessageStream) {
    let message = stream.receive(None).expect("a heartbeat");
    let Ok(Body::Request(request)) = message.parse() else { panic!("not a request") };
    assert_eq!((request.operation(), request.response_expected()), (b"FT_HB".as_slice(), true));
    let (version, endian, id) = (message.version(), message.endian(), request.request_id());
    let alive = build::reply(version, endian, id, ReplyStatus::NoException, |_| {});
    stream.send(alive.bytes()).expect("the client reads");
}

fn reaction(act: &Act, message: &Message, request: &Request<'_>) -> Option<Vec<u8>> {
    let (version, endian, id) = (message.version(), message.endian(), request.request_id());
    let reply = match act {
        Act::Return(number)
        | Act::ReturnAndClose(number)
        | Act::ReturnAfterBeats(_, number)
        | Act::ReturnAfterQuiet(_, number)
        | Act::ReturnBeside(number, _) => {
            build::reply(version, endian, id, ReplyStatus::NoException, |out| {
                out.write_u32(*number);
            })
        }
        Act::ReturnTruth(truth) => {
            build::reply(version, endian, id, ReplyStatus::NoException, |out| {
                out.write_bool(*truth);
            })
        }
        Act::ForwardForGood(ior) => {
            let status = ReplyStatus::LocationForwardPerm;
            build::reply(version, endian, id, status, |out| ior.write(out))
        }
        Act::Raise(kind, completed) => {
            let exception = SystemException { kind: *kind, minor: 7, completed: *completed };
            build::system_exception(version, endian, id, &exception)
        }
        Act::CloseConnection => build::close_connection(version),
        Act::Forward(address) => {
            let gateways = [(address.ip().to_string(), address.port())];
            let ior = group_reference(&GroupReference {
                type_id: b"IDL:Test:1.0",
                object_key: b"key",
                gateways: &gateways,
                group: None,
                primary: None,
                tls: &[],
                heartbeat_enabled: false,
                components: &[],
            });
            build::reply(version, endian, id, ReplyStatus::LocationForward, |out| ior.write(out))
        }
        Act::Octets(octets) => return Some(octets.clone()),
        Act::Drop | Act::Silence => return None,
    };
    let Act::ReturnBeside(_, ior) = act else { return Some(reply.bytes().to_vec()) };
    let mut data = Writer::new(endian);
    ior.write(&mut data);
    let data = data.finish();
    let add = [(context::FT_FORWARD, data.as_slice())];
    let Ok(Body::Reply(reply)) = reply.parse() else { panic!("a reply") };
    let reply = reply.rewrite(&Rewrite { add_contexts: &add, ..Rewrite::default() });
    Some(reply.bytes().to_vec())
}

/// An address at which nothing listens, and that no server of another test is given.
fn dead() -> SocketAddr {
    ([127, 0, 0, 1], quorba_net::free_ports(1).expect("a port")[0]).into()
}

fn client(addresses: &[SocketAddr], options: ClientOptions) -> Client {
    let list: Vec<String> = addresses.iter().map(|address| format!("iiop:1.2@{address}")).collect();
    let reference = Reference::parse(&format!("corbaloc:{}/key", list.join(",")));
    Client::new(&reference.expect("a reference"), options)
}

fn plain(addresses: &[SocketAddr]) -> Client {
    client(addresses, ClientOptions::default())
}

fn repeating(addresses: &[SocketAddr]) -> Client {
    let repeat = Some(Repeat::new("test", 0));
    client(addresses, ClientOptions { repeat, ..ClientOptions::default() })
}

fn call(client: &mut Client) -> Result<u32, SystemException> {
    match client.call("number", |_| {}) {
        Ok(answer) => Ok(answer.results().read_u32("number").expect("a number")),
        Err(CallError::System(exception)) => Err(exception),
        Err(CallError::User(exception)) => panic!("{exception:?}"),
    }
}

fn raised(kind: ExceptionKind, minor: u32, completed: Completion) -> Result<u32, SystemException> {
    Err(SystemException { kind, minor, completed })
}

#[test]
fn a_dead_address_is_passed_over_and_the_client_stays_where_it_is_served() {
    let server = scripted(&[Act::Return(1), Act::Return(2)]);
    let mut client = plain(&[dead(), server.address, dead()]);
    assert_eq!(call(&mut client), Ok(1));
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn with_every_address_dead_nothing_was_executed() {
    let mut client = plain(&[dead(), dead()]);
    assert_eq!(call(&mut client), raised(ExceptionKind::Transient, 0, Completion::No));
}

#[test]
fn a_client_begins_at_the_address_it_was_told() {
    let (first, second) = (scripted(&[Act::Return(1)]), scripted(&[Act::Return(2)]));
    let options = ClientOptions { first_address: 3, ..ClientOptions::default() };
    let mut client = client(&[first.address, second.address], options);
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn a_connection_lost_in_mid_call_is_told_once_and_the_next_call_goes_on() {
    let (first, second) = (scripted(&[Act::Drop]), scripted(&[Act::Return(2)]));
    let mut client = plain(&[first.address, second.address]);
    assert_eq!(call(&mut client), raised(ExceptionKind::CommFailure, 0, Completion::Maybe));
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn close_connection_before_the_reply_is_not_seen() {
    let (first, second) = (scripted(&[Act::CloseConnection]), scripted(&[Act::Return(2)]));
    let mut client = plain(&[first.address, second.address]);
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn a_server_that_always_closes_does_not_keep_its_client() {
    let server = scripted(&[const { Act::CloseConnection }; 100]);
    let mut client = plain(&[server.address]);
    assert_eq!(call(&mut client), raised(ExceptionKind::Transient, 0, Completion::No));
}

#[test]
fn a_connection_that_was_closed_while_idle_is_not_used() {
    let (first, second) = (scripted(&[Act::ReturnAndClose(1)]), scripted(&[Act::Return(2)]));
    let mut client = plain(&[first.address, second.address]);
    assert_eq!(call(&mut client), Ok(1));
    // Until the end of the connection has arrived, and is old enough to be looked for.
    while !client.connection.as_ref().expect("connected").is_stale() {
        thread::yield_now();
    }
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn who_avoids_what_has_ended_asks_the_dead_for_nothing_and_others_ask_it_first() {
    for (avoids_ended, answer) in [(true, 2), (false, 3)] {
        let acts = [Act::ReturnAndClose(1), Act::Return(3)];
        let (first, second) = (scripted(&acts), scripted(&[Act::Return(2)]));
        let options = ClientOptions { avoids_ended, ..ClientOptions::default() };
        let mut client = client(&[first.address, second.address], options);
        assert_eq!(call(&mut client), Ok(1));
        while !client.connection.as_ref().expect("connected").is_stale() {
            thread::yield_now();
        }
        assert_eq!(call(&mut client), Ok(answer));
    }
}

#[test]
fn silence_ends_at_the_deadline_and_the_next_call_goes_elsewhere() {
    let (first, second) = (scripted(&[Act::Silence]), scripted(&[Act::Return(2)]));
    let call_timeout = Some(Duration::from_millis(300));
    let options = ClientOptions { call_timeout, ..ClientOptions::default() };
    let mut client = client(&[first.address, second.address], options);
    assert_eq!(call(&mut client), raised(ExceptionKind::Timeout, 0, Completion::Maybe));
    client.options.call_timeout = None;
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn what_is_not_giop_is_a_marshal_fault_of_unknown_outcome() {
    let declares_4_gb = [b"GIOP\x01\x02\x01\x01".as_slice(), &[0xff; 4]].concat();
    for octets in [b"HTTP/1.1 200 OK\r\n".to_vec(), declares_4_gb] {
        let server = scripted(&[Act::Octets(octets)]);
        let mut client = plain(&[server.address]);
        assert_eq!(call(&mut client), raised(ExceptionKind::Marshal, 0, Completion::Maybe));
    }
}

#[test]
fn a_forward_is_followed_and_left_when_its_target_dies() {
    let target = scripted(&[Act::Return(7), Act::Drop]);
    let home = scripted(&[Act::Forward(target.address), Act::Return(1)]);
    let mut client = plain(&[home.address]);
    assert_eq!(call(&mut client), Ok(7));
    assert_eq!(call(&mut client), raised(ExceptionKind::CommFailure, 0, Completion::Maybe));
    assert_eq!(call(&mut client), Ok(1));
}

#[test]
fn a_circle_of_forwards_ends() {
    let looping = scripted_forward_to_itself();
    let mut client = plain(&[looping]);
    assert_eq!(call(&mut client), raised(ExceptionKind::Transient, 0, Completion::No));
}

/// A server that forwards every request to itself.
fn scripted_forward_to_itself() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (tell, _asked) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut stream = MessageStream::new(stream, 1 << 20).expect("a stream");
            while let Ok(message) = stream.receive(None) {
                perform(&Act::Forward(address), &message, &mut stream, &tell);
            }
        }
    });
    address
}

#[test]
fn a_call_with_an_identity_is_repeated_under_it() {
    let (first, second) = (scripted(&[Act::Drop]), scripted(&[Act::Return(2), Act::Return(3)]));
    let mut client = repeating(&[first.address, second.address]);
    assert_eq!(call(&mut client), Ok(2));
    let identity = |server: &Scripted| server.asked().identity;
    let of_first_call = identity(&first).expect("an identity");
    assert_eq!(identity(&second), Some(of_first_call.clone()));
    assert_eq!(call(&mut client), Ok(3));
    assert_ne!(identity(&second), Some(of_first_call));
}

/// The caller gave up; the same call made later is still the same one.
#[test]
fn a_call_that_is_made_once_more_goes_under_the_name_that_it_had() {
    let server = scripted(&[
        Act::Raise(ExceptionKind::Internal, Completion::Maybe),
        Act::Raise(ExceptionKind::NoPermission, Completion::No),
        Act::Return(2),
    ]);
    let mut client = repeating(&[server.address]);
    assert_eq!(call(&mut client), raised(ExceptionKind::Internal, 7, Completion::Maybe));
    client.once_more();
    // The first time is not known yet.
    assert_eq!(call(&mut client), raised(ExceptionKind::NoPermission, 7, Completion::Maybe));
    assert_eq!(call(&mut client), Ok(2));
    let names = [(); 3].map(|()| server.asked().identity.expect("an identity"));
    let retention = |name: &Vec<u8>| FtRequest::decode(name).expect("a name").retention_id;
    let [first, again, next] = names.each_ref().map(retention);
    assert_eq!((again, next), (first, first + 1));
}

#[test]
fn a_temporary_exception_is_raised_without_an_identity_and_tried_elsewhere_with_one() {
    let busy = [Act::Raise(ExceptionKind::Transient, Completion::No)];
    let (first, second) = (scripted(&busy), scripted(&[Act::Return(2)]));
    let mut client = plain(&[first.address, second.address]);
    assert_eq!(call(&mut client), raised(ExceptionKind::Transient, 7, Completion::No));

    let (first, second) = (scripted(&busy), scripted(&[Act::Return(2)]));
    let mut client = repeating(&[first.address, second.address]);
    assert_eq!(call(&mut client), Ok(2));
}

#[test]
fn a_final_exception_after_an_unknown_attempt_does_not_say_no() {
    let first = scripted(&[Act::Drop]);
    let second = scripted(&[Act::Raise(ExceptionKind::NoPermission, Completion::No)]);
    let mut client = repeating(&[first.address, second.address]);
    assert_eq!(call(&mut client), raised(ExceptionKind::NoPermission, 7, Completion::Maybe));
}

#[test]
fn a_repeated_call_ends_at_its_deadline() {
    let first = scripted(&[Act::Drop]);
    let mut client = repeating(&[first.address]);
    client.options.call_timeout = Some(Duration::from_millis(300));
    let outcome = call(&mut client).expect_err("nobody answers");
    assert_eq!(outcome.completed, Completion::Maybe);
}

#[test]
fn a_connection_that_was_opened_before_is_used() {
    let server = scripted(&[Act::Return(1)]);
    let mut client = plain(&[server.address]);
    assert!(client.open() && client.open(), "the second time there is one");
    assert_eq!(call(&mut client), Ok(1));
    let nobody = quorba_net::free_ports(1).expect("a port")[0];
    assert!(!plain(&[([127, 0, 0, 1], nobody).into()]).open(), "nobody listens");
}
