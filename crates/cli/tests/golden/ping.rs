//! `quorba ping`, against servers that speak GIOP, or do not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use quorba_giop::{
    Body, Completion, Endian, ExceptionKind, Framer, FramerLimits, LocateStatus, Message,
    MinorCode, ReplyStatus, SystemException, Target, Version, build,
};

use crate::bench::{Bench, silent_port};

/// How a server answers one message; `None`: not at all.
type Answer = fn(&Message) -> Option<Message>;

/// Serves on a free port. The thread ends with the test.
fn serve(bench: &mut Bench, name: &str, answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    bench.hide(address, name);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream, answer));
        }
    });
    address
}

fn converse(mut stream: TcpStream, answer: Answer) {
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: 65_536,
        fragmented_requests_max: 1,
        buffered_bytes_max: 65_536,
    });
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        framer.push(&buffer[..count]);
        while let Ok(Some(message)) = framer.next() {
            match answer(&message) {
                Some(answer) => stream.write_all(answer.bytes()).expect("it listens"),
                // Long enough that the client gives up first.
                None => thread::sleep(Duration::from_secs(5)),
            }
        }
    }
}

fn here(message: &Message) -> Option<Message> {
    let (version, endian) = (message.version(), message.endian());
    match message.parse().expect("well formed") {
        Body::LocateRequest(request) => {
            assert!(matches!(request.target(), Target::Key(b"bank")));
            let id = request.request_id();
            Some(build::locate_reply(version, endian, id, LocateStatus::ObjectHere))
        }
        Body::Request(request) => {
            assert_eq!(request.operation(), b"_non_existent");
            let id = request.request_id();
            Some(build::reply(version, endian, id, ReplyStatus::NoException, |cdr| {
                cdr.write_bool(false);
            }))
        }
        _ => panic!("neither question"),
    }
}

fn transient(message: &Message) -> Option<Message> {
    match message.parse().expect("well formed") {
        Body::Request(request) => {
            let code = MinorCode::NoPrimary;
            let exception = SystemException::ours(ExceptionKind::Transient, code, Completion::No);
            let id = request.request_id();
            Some(build::system_exception(message.version(), message.endian(), id, &exception))
        }
        _ => here(message),
    }
}

fn unknown(message: &Message) -> Option<Message> {
    let (version, endian) = (message.version(), message.endian());
    match message.parse().expect("well formed") {
        Body::LocateRequest(request) => {
            let id = request.request_id();
            Some(build::locate_reply(version, endian, id, LocateStatus::UnknownObject))
        }
        Body::Request(request) => {
            let id = request.request_id();
            Some(build::reply(version, endian, id, ReplyStatus::NoException, |cdr| {
                cdr.write_bool(true);
            }))
        }
        _ => panic!("neither question"),
    }
}

fn close(_: &Message) -> Option<Message> {
    Some(build::close_connection(Version::V1_2))
}

fn strange(_: &Message) -> Option<Message> {
    Some(build::locate_request(Version::V1_2, Endian::Big, 1, b"what?"))
}

fn silent(_: &Message) -> Option<Message> {
    None
}

fn corbaloc(addresses: &[SocketAddr]) -> String {
    let list: Vec<String> = addresses.iter().map(|address| format!("iiop:1.2@{address}")).collect();
    format!("corbaloc:{}/bank", list.join(","))
}

fn refused(bench: &mut Bench, name: &str) -> SocketAddr {
    let address = SocketAddr::from(([127, 0, 0, 1], silent_port()));
    bench.hide(address, name);
    address
}

/// Compares a transcript in which times and the widths of columns are hidden.
fn assert_golden(name: &str, transcript: &str) {
    insta::with_settings!({filters => vec![
        (r" +\d+(\.\d+)? (µs|ms|s)\b", "  [TIME]"),
        (r#"(_us":)[0-9.]+"#, "${1}[US]"),
        (r#"("port":)\d+"#, "${1}[PORT]"),
        (r" {3,}", "  "),
    ]}, {
        insta::assert_snapshot!(name, transcript);
    });
}

#[test]
fn all_addresses_answer() {
    let mut bench = Bench::new();
    let addresses = [serve(&mut bench, "G1", here), serve(&mut bench, "G2", here)];
    let mut transcript = bench.run(&["ping", &corbaloc(&addresses), "-n", "5"]);
    transcript += &bench.run(&["ping", &corbaloc(&addresses[..1]), "--only", "locate"]);
    transcript += &bench.run(&["-o", "json", "ping", &corbaloc(&addresses[..1]), "-n", "2"]);
    transcript += &bench.run(&["ping", &format!("corbaloc::{}/bank", addresses[0])]);
    assert_golden("ping", &transcript);
}

#[test]
fn some_addresses_answer() {
    let mut bench = Bench::new();
    let addresses = [
        serve(&mut bench, "G1", here),
        refused(&mut bench, "G2"),
        serve(&mut bench, "G3", transient),
        serve(&mut bench, "G4", unknown),
        serve(&mut bench, "G5", close),
        serve(&mut bench, "G6", strange),
    ];
    assert_golden("ping_some", &bench.run(&["ping", &corbaloc(&addresses), "-n", "3"]));
}

#[test]
fn no_address_answers() {
    let mut bench = Bench::new();
    let addresses = [refused(&mut bench, "G1"), refused(&mut bench, "G2")];
    let mut transcript = bench.run(&["ping", &corbaloc(&addresses)]);
    transcript += &bench.run(&["-o", "json", "ping", &corbaloc(&addresses)]);
    transcript += &bench.run(&["ping", "corbaloc:rir:/NameService"]);
    transcript += &bench.run(&["ping", "corbaloc::127.0.0.1:1/x", "-n", "0"]);
    assert_golden("ping_nobody", &transcript);
}

#[test]
fn silence_ends_with_the_deadline() {
    let mut bench = Bench::new();
    let address = serve(&mut bench, "G1", silent);
    let transcript = bench.run(&["ping", &corbaloc(&[address]), "--timeout", "200ms"]);
    assert!(transcript.contains("timed out after"), "{transcript}");
    assert!(transcript.ends_with("--- exit 4\n"), "{transcript}");
}
