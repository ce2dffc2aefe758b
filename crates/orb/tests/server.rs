//! The server, called by the client and by hand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use quorba_orb::giop::cdr::Reader;
use quorba_orb::giop::{
    Completion, Endian, ExceptionKind, MessageType, SystemException, Version, build,
};
use quorba_orb::{
    CallError, Client, ClientOptions, Reference, Reply, RunningServer, SECRET_BYTES, Servant,
    Server, ServerOptions, marshal_fault, unknown_operation,
};

const ID: &str = "IDL:Test/Echo:1.0";

/// Echoes, refuses, overlaps, panics.
#[derive(Default)]
struct Echo {
    inside: Arc<AtomicUsize>,
    gate: Option<Arc<(Barrier, Barrier)>>,
    log: Arc<Mutex<Vec<u64>>>,
}

impl Servant for Echo {
    fn repository_id(&self) -> &str {
        ID
    }

    fn dispatch(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two requests at a time");
        let outcome = self.execute(operation, arguments, reply);
        self.inside.fetch_sub(1, Ordering::SeqCst);
        outcome
    }
}

impl Echo {
    fn execute(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        match operation {
            "echo" => {
                let octet = arguments.read_u8("octet").map_err(no)?;
                let number = arguments.read_u64("number").map_err(no)?;
                let text = arguments.read_string(1 << 20, "text").map_err(no)?;
                self.log.lock().expect("no panic").push(number);
                let results = reply.results();
                results.write_u8(octet);
                results.write_u64(number);
                results.write_string(text);
            }
            "refuse" => {
                reply.results().write_u64(1);
                reply.raise("IDL:Test/Refused:1.0").write_u64(42);
            }
            "wait" => {
                let gate = self.gate.as_ref().expect("a gate");
                gate.0.wait();
                gate.1.wait();
                reply.results().write_u8(1);
            }
            "panic" => {
                self.inside.store(0, Ordering::SeqCst);
                panic!("as asked");
            }
            _ => return Err(unknown_operation()),
        }
        Ok(())
    }
}

fn no(fault: quorba_orb::giop::MessageError) -> SystemException {
    marshal_fault(fault, Completion::No)
}

fn start(echo: Echo) -> RunningServer {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    server.with("echo", echo).start().expect("started")
}

fn client(server: &RunningServer, options: ClientOptions) -> Client {
    Client::new(&Reference::direct(server.address(), "echo"), options)
}

fn plain(server: &RunningServer) -> Client {
    client(server, ClientOptions::default())
}

fn echo(client: &mut Client, number: u64, text: &str) -> Result<(u8, u64, String), CallError> {
    let answer = client.call("echo", |out| {
        out.write_u8(9);
        out.write_u64(number);
        out.write_string(text.as_bytes());
    })?;
    let mut results = answer.results();
    let octet = results.read_u8("octet").expect("an octet");
    let number = results.read_u64("number").expect("a number");
    let text = results.read_string(1 << 20, "text").expect("a string");
    Ok((octet, number, String::from_utf8(text.to_vec()).expect("UTF-8")))
}

fn exception(outcome: Result<impl Sized, CallError>) -> (ExceptionKind, Completion) {
    match outcome {
        Err(CallError::System(exception)) => (exception.kind, exception.completed),
        Err(CallError::User(exception)) => panic!("raised {exception:?}"),
        Ok(_) => panic!("nothing was raised"),
    }
}

#[test]
fn every_version_and_byte_order_echoes() {
    let server = start(Echo::default());
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for endian in [Endian::Big, Endian::Little] {
            let mut client =
                client(&server, ClientOptions { version, endian, ..ClientOptions::default() });
            for length in 0..20 {
                let text = "x".repeat(length);
                let echoed = echo(&mut client, u64::MAX - length as u64, &text).expect("echoed");
                assert_eq!(echoed, (9, u64::MAX - length as u64, text));
            }
            assert!(client.locate().expect("an answer"));
        }
    }
}

#[test]
fn a_user_exception_comes_with_its_members_and_without_results() {
    let server = start(Echo::default());
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut client = client(&server, ClientOptions { version, ..ClientOptions::default() });
        let Err(CallError::User(raised)) = client.call("refuse", |_| {}) else {
            panic!("no user exception")
        };
        assert_eq!(raised.repository_id(), "IDL:Test/Refused:1.0");
        assert_eq!(raised.members().read_u64("number"), Ok(42));
    }
}

#[test]
fn what_is_not_there_is_said_so() {
    let server = start(Echo::default());
    let mut here = plain(&server);
    let refused = |kind| (kind, Completion::No);
    assert_eq!(exception(here.call("no_such", |_| {})), refused(ExceptionKind::BadOperation));
    assert_eq!(exception(here.call("echo", |_| {})), refused(ExceptionKind::Marshal));
    assert!(here.is_a(ID).expect("an answer"));
    assert!(here.is_a("IDL:omg.org/CORBA/Object:1.0").expect("an answer"));
    assert!(!here.is_a("IDL:Test/Other:1.0").expect("an answer"));
    assert!(!here.non_existent().expect("an answer"));

    let nobody = Reference::direct(server.address(), "nobody");
    let mut nobody = Client::new(&nobody, ClientOptions::default());
    assert_eq!(exception(nobody.call("echo", |_| {})), refused(ExceptionKind::ObjectNotExist));
    assert!(nobody.non_existent().expect("an answer"));
    assert!(!nobody.locate().expect("an answer"));
}

#[test]
fn a_oneway_is_executed_and_not_answered() {
    let server = start(Echo::default());
    let mut client = plain(&server);
    client.oneway("refuse", |_| {}).expect("sent");
    // A reply to the oneway would come first.
    assert_eq!(echo(&mut client, 1, "after").expect("echoed").2, "after");
}

#[test]
fn requests_of_all_connections_execute_one_at_a_time_in_order_of_arrival() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let server = start(Echo { log: Arc::clone(&log), ..Echo::default() });
    thread::scope(|scope| {
        for number in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let mut client = plain(server);
                for call in 0..200 {
                    echo(&mut client, number * 1000 + call, "").expect("echoed");
                }
            });
        }
    });
    let log = log.lock().expect("no panic");
    assert_eq!(log.len(), 1600);
    for number in 0..8 {
        let of_client: Vec<u64> = log.iter().copied().filter(|n| n / 1000 == number).collect();
        assert!(of_client.is_sorted(), "client {number} was reordered");
    }
}

#[test]
fn garbage_is_answered_by_message_error_and_harms_nobody_else() {
    let server = start(Echo::default());
    let mut honest = plain(&server);
    echo(&mut honest, 1, "before").expect("echoed");
    let request_header_only = b"GIOP\x01\x02\x01\x00\x00\x00\x00\x00";
    let declares_too_much = b"GIOP\x01\x02\x01\x00\xff\xff\xff\x7f";
    for octets in [b"GET / HTTP/1.0\r\n\r\n".as_slice(), request_header_only, declares_too_much] {
        let mut peer = TcpStream::connect(server.address()).expect("connected");
        peer.write_all(octets).expect("written");
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).expect("answered and closed");
        assert_eq!(answer.get(7), Some(&MessageType::MessageError.octet()), "to {octets:?}");
        echo(&mut honest, 2, "meanwhile").expect("echoed");
    }
}

#[test]
fn a_connection_too_many_is_closed_with_a_word() {
    let options = ServerOptions { connections_max: 1, ..ServerOptions::default() };
    let server = Server::bind("127.0.0.1:0", options).expect("a port");
    let server = server.with("echo", Echo::default()).start().expect("started");
    let mut first = plain(&server);
    echo(&mut first, 1, "first").expect("echoed");
    let mut second = TcpStream::connect(server.address()).expect("connected");
    let mut answer = Vec::new();
    second.read_to_end(&mut answer).expect("closed");
    assert_eq!(answer, build::close_connection(Version::V1_0).bytes().as_ref());
    drop(first);
    // The place is free as soon as the server has seen that the first is gone.
    while echo(&mut plain(&server), 2, "third").is_err() {
        thread::yield_now();
    }
}

#[test]
fn who_does_not_begin_with_the_secret_is_not_served() {
    let secret = [7; SECRET_BYTES];
    let options = ServerOptions { secret: Some(secret), ..ServerOptions::default() };
    let server = Server::bind("127.0.0.1:0", options).expect("a port");
    let server = server.with("echo", Echo::default()).start().expect("started");
    let version = Version::V1_2;
    let asked = build::locate_request(version, Endian::Little, 1, b"echo");
    let answer_to = |begin: &[u8]| {
        let mut peer = TcpStream::connect(server.address()).expect("connected");
        peer.write_all(&[begin, asked.bytes()].concat()).expect("written");
        // Whoever is not served may see a reset, also before it has said that it sends no more.
        let _ended = peer.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _closed = peer.read_to_end(&mut answer);
        answer
    };
    assert!(answer_to(&[]).is_empty() && answer_to(&[6; SECRET_BYTES]).is_empty());
    assert_eq!(answer_to(&secret).get(7), Some(&MessageType::LocateReply.octet()));
}

#[test]
fn stopping_finishes_the_request_and_moves_clients_on_without_an_exception() {
    let gate = Arc::new((Barrier::new(2), Barrier::new(2)));
    let server = start(Echo { gate: Some(Arc::clone(&gate)), ..Echo::default() });
    let other = start(Echo::default());
    let both = format!("corbaloc:iiop:1.2@{},iiop:1.2@{}/echo", server.address(), other.address());
    let both = Reference::parse(&both).expect("a reference");
    let mut idle = Client::new(&both, ClientOptions::default());
    echo(&mut idle, 1, "here").expect("echoed");
    let address = server.address();
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let busy = scope.spawn(|| plain_at(address).call("wait", |_| {}).map(drop));
        gate.0.wait();
        scope.spawn(|| {
            server.stop();
            stopped.store(true, Ordering::SeqCst);
        });
        // The listener is closed at once, and the request in execution is waited for.
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            thread::yield_now();
        }
        assert!(!stopped.load(Ordering::SeqCst));
        gate.1.wait();
        busy.join().expect("no panic").expect("its reply came");
    });
    assert_eq!(echo(&mut idle, 2, "there").expect("echoed elsewhere").2, "there");
}

fn plain_at(address: std::net::SocketAddr) -> Client {
    Client::new(&Reference::direct(address, "echo"), ClientOptions::default())
}

#[test]
fn a_servant_that_panicked_is_not_called_again_and_the_others_are() {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    let server = server.with("echo", Echo::default()).with("other", Echo::default());
    let server = server.start().expect("started");
    let mut client = plain(&server);
    let (kind, completed) = exception(client.call("panic", |_| {}));
    assert_eq!((kind, completed), (ExceptionKind::CommFailure, Completion::Maybe));
    let outcome = exception(echo(&mut client, 1, "again"));
    assert_eq!(outcome, (ExceptionKind::ObjAdapter, Completion::No));
    let other = Reference::direct(server.address(), "other");
    let mut other = Client::new(&other, ClientOptions::default());
    echo(&mut other, 1, "other").expect("echoed");
}

#[test]
fn large_messages_pass_both_ways() {
    let server = start(Echo::default());
    let text = "ä".repeat(500_000);
    assert_eq!(echo(&mut plain(&server), 1, &text).expect("echoed").2, text);
}
