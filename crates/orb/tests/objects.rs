//! Objects behind skeletons, called by stubs and by hand over real connections.

use std::io::{Read, Write};
use std::net::TcpStream;

use quorba_idl::cos_naming::{
    self, Binding, BindingIterator, BindingIteratorStub, BindingList, BindingType, NameComponent,
    NamingContextStub, naming_context,
};
use quorba_orb::corba::{Call, Coding, Encoder, Interface, Objects};
use quorba_orb::giop::build::{self, RequestHead};
use quorba_orb::giop::ior::{CODE_SET_UTF_8, CODE_SET_UTF_16};
use quorba_orb::giop::{
    Body, CodeSets, Completion, Endian, ExceptionKind, Framer, FramerLimits, LocateStatus, Message,
    ResponseFlags, SystemException, Version, context,
};
use quorba_orb::{Client, ClientOptions, Reference, RunningServer, Server, ServerOptions};

const UTF_8: CodeSets = CodeSets { char_data: CODE_SET_UTF_8, wchar_data: CODE_SET_UTF_16 };

/// As many iterators as there are numbers, each of which gives so many bindings of its name.
#[derive(Default)]
struct Numbers {
    calls: u32,
}

/// One of them, while it is called.
struct Number {
    number: u32,
    calls: u32,
}

impl Number {
    fn binding(&self) -> Binding {
        let id = format!("number {} \u{e9}", self.number);
        let binding_name = vec![NameComponent { id, kind: self.calls.to_string() }];
        Binding { binding_name, binding_type: BindingType::Ncontext }
    }
}

impl BindingIterator for Number {
    fn next_one(&mut self) -> Result<(bool, Binding), SystemException> {
        Ok((true, self.binding()))
    }

    fn next_n(&mut self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        assert_ne!(how_many, 13, "as asked");
        Ok((how_many > 0, (0..how_many).map(|_| self.binding()).collect()))
    }

    fn destroy(&mut self) -> Result<(), SystemException> {
        Err(SystemException {
            kind: ExceptionKind::NoPermission,
            minor: 5,
            completed: Completion::No,
        })
    }
}

impl Objects for Numbers {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        let number = str::from_utf8(key).ok()?.parse::<u32>();
        number.is_ok().then_some(cos_naming::BINDING_ITERATOR)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.calls += 1;
        let number = str::from_utf8(key).expect("it exists").parse().expect("it exists");
        let mut number = Number { number, calls: self.calls };
        cos_naming::dispatch_binding_iterator(&mut number, call)
    }
}

fn start(address: &str) -> RunningServer {
    let server = Server::bind(address, ServerOptions::default()).expect("a port");
    server.with_objects(Numbers::default()).start().expect("started")
}

fn client(server: &RunningServer, key: &str, options: ClientOptions) -> Client {
    Client::new(&Reference::direct(server.address(), key), options)
}

fn utf_8() -> ClientOptions {
    ClientOptions { code_sets: Some(UTF_8), ..ClientOptions::default() }
}

#[test]
fn objects_need_not_be_registered() {
    let server = start("127.0.0.1:0");
    for key in ["0", "17", "4000000000"] {
        let mut client = client(&server, key, utf_8());
        assert!(client.locate().expect("an answer"));
        assert!(client.is_a("IDL:omg.org/CosNaming/BindingIterator:1.0").expect("an answer"));
        assert!(!client.is_a("IDL:omg.org/CosNaming/NamingContext:1.0").expect("an answer"));
        let (more, binding) = BindingIteratorStub(&mut client).next_one().expect("a binding");
        assert!(more);
        let name = &binding.binding_name.first().expect("a component").id;
        assert_eq!(name, &format!("number {key} \u{e9}"));
    }
    let mut nobody = client(&server, "nobody", utf_8());
    assert!(!nobody.locate().expect("an answer"));
    assert!(nobody.non_existent().expect("an answer"));
    let raised = BindingIteratorStub(&mut nobody).next_one().unwrap_err();
    assert_eq!(raised.kind, ExceptionKind::ObjectNotExist);
}

#[test]
fn every_version_and_byte_order_is_spoken() {
    let server = start("127.0.0.1:0");
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for endian in [Endian::Big, Endian::Little] {
            for code_sets in [None, Some(UTF_8)] {
                let options =
                    ClientOptions { version, endian, code_sets, ..ClientOptions::default() };
                let mut client = client(&server, "5", options);
                let mut stub = BindingIteratorStub(&mut client);
                let (more, list) = stub.next_n(&3).expect("bindings");
                assert!(more && list.len() == 3);
                assert_eq!(list[2].binding_name[0].id, "number 5 \u{e9}");
                let refused = stub.destroy().unwrap_err();
                assert_eq!((refused.kind, refused.minor), (ExceptionKind::NoPermission, 5));
            }
        }
    }
}

#[test]
fn an_operation_of_another_interface_is_unknown() {
    let server = start("127.0.0.1:0");
    let mut client = client(&server, "5", utf_8());
    match NamingContextStub(&mut client).resolve(&Vec::new()) {
        Err(naming_context::ResolveError::System(exception)) => {
            assert_eq!(exception.kind, ExceptionKind::BadOperation);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ipv6_is_an_address_like_any() {
    let server = start("[::1]:0");
    let mut client = client(&server, "6", utf_8());
    assert!(BindingIteratorStub(&mut client).next_one().is_ok());
    let text = format!("corbaloc:iiop:1.2@[::1]:{}/6", server.address().port());
    let mut client = Client::new(&Reference::parse(&text).expect("a reference"), utf_8());
    assert!(BindingIteratorStub(&mut client).next_one().is_ok());
    server.stop();
}

#[test]
fn after_a_panic_no_object_is_called_any_more() {
    let server = start("127.0.0.1:0");
    let mut one = client(&server, "1", utf_8());
    assert!(BindingIteratorStub(&mut one).next_n(&13).is_err());
    let mut other = client(&server, "2", utf_8());
    let raised = BindingIteratorStub(&mut other).next_one().unwrap_err();
    assert_eq!(raised.kind, ExceptionKind::ObjAdapter);
    assert!(!other.locate().expect("an answer"));
}

/// Requests to the object `7`, as many as `code_sets`, one behind the other.
fn requests(code_sets: &[Option<CodeSets>]) -> Vec<u8> {
    let mut octets = Vec::new();
    for (index, sets) in code_sets.iter().enumerate() {
        let sets = sets.map(|sets| sets.encode(Endian::Big));
        let contexts = sets.as_deref().map(|data| (context::CODE_SETS, data));
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Big,
            request_id: u32::try_from(index).expect("few"),
            response_flags: ResponseFlags::WithTarget,
            object_key: b"7",
            operation: b"next_one",
            contexts: contexts.as_slice(),
        };
        octets.extend_from_slice(build::request(&head, |_| {}).bytes());
    }
    octets
}

fn replies(stream: &mut TcpStream, count: usize) -> Vec<Message> {
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: 1 << 20,
    });
    let mut messages = Vec::new();
    let mut buffer = [0; 4096];
    while messages.len() < count {
        let read = stream.read(&mut buffer).expect("replies");
        assert!(read > 0, "closed after {} replies", messages.len());
        framer.push(&buffer[..read]);
        while let Some(message) = framer.next().expect("GIOP") {
            messages.push(message);
        }
    }
    messages
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = start("127.0.0.1:0");
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    stream.write_all(&requests(&[Some(UTF_8); 100])).expect("sent");
    for (index, reply) in replies(&mut stream, 100).iter().enumerate() {
        let Ok(Body::Reply(reply)) = reply.parse() else { panic!("{reply:?}") };
        assert_eq!(reply.request_id() as usize, index);
        let mut reader = reply.reader();
        reader.read_bool("more").expect("a boolean");
        reader.read_u32("count").expect("a count");
        reader.read_string(100, "id").expect("an id");
        let nth = (index + 1).to_string();
        assert_eq!(reader.read_string(100, "kind").expect("a kind"), nth.as_bytes());
        assert_eq!(reply.contexts().count(), 0, "nothing of its own");
    }
}

#[test]
fn the_code_sets_of_a_first_request_hold_for_its_connection() {
    let server = start("127.0.0.1:0");
    for (told, octets) in [(Some(UTF_8), b"\xc3\xa9\0".as_slice()), (None, b"\xe9\0")] {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.write_all(&requests(&[told, None])).expect("sent");
        for reply in replies(&mut stream, 2) {
            let found = reply.bytes().windows(octets.len()).any(|window| window == octets);
            assert!(found, "{told:?}");
        }
    }
}

#[test]
fn two_servers_answer_the_same_octets() {
    let (one, other) = (start("127.0.0.1:0"), start("127.0.0.1:0"));
    let answers = |server: &RunningServer| {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        let mut octets = requests(&[Some(UTF_8), None, Some(UTF_8)]);
        let locate = build::locate_request(Version::V1_2, Endian::Little, 9, b"7");
        octets.extend_from_slice(locate.bytes());
        stream.write_all(&octets).expect("sent");
        let replies = replies(&mut stream, 4);
        match replies.last().map(Message::parse) {
            Some(Ok(Body::LocateReply(reply))) => {
                assert_eq!(reply.status(), LocateStatus::ObjectHere);
            }
            other => panic!("{other:?}"),
        }
        replies.iter().map(|reply| reply.bytes().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(answers(&one), answers(&other));
    // A stub's own writing is a function of its arguments, too.
    let mut encoder = Encoder::new(Endian::Little, Coding::plain(Version::V1_2));
    encoder.write(&NameComponent { id: "a".to_owned(), kind: String::new() });
    let octets = encoder.finish(Completion::No).expect("written");
    assert_eq!(octets, b"\x02\0\0\0a\0\0\0\x01\0\0\0\0");
}

/// Objects that are busy until they are told.
struct Busy {
    is_at_it: std::sync::mpsc::Sender<()>,
    until: std::sync::mpsc::Receiver<()>,
}

impl Objects for Busy {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(cos_naming::BINDING_ITERATOR)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.is_at_it.send(()).expect("somebody waits");
        self.until.recv().expect("it is told");
        cos_naming::dispatch_binding_iterator(&mut Number { number: 1, calls: 1 }, call)
    }
}

#[test]
fn objects_that_are_apart_wait_for_no_others() {
    let (is_at_it, begun) = std::sync::mpsc::channel();
    let (tell, until) = std::sync::mpsc::channel();
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    let takes = |key: &[u8], operation: &[u8]| key == b"7" && operation == b"next_one";
    let server = server.with_objects(Busy { is_at_it, until });
    let server = server.with_objects_apart(takes, Numbers::default()).start().expect("threads");
    let client = |key: &[u8]| {
        Client::new(&Reference::direct(server.address(), key), ClientOptions::default())
    };
    let (mut busy, mut apart) = (client(b"1"), client(b"7"));
    let waits = std::thread::spawn(move || BindingIteratorStub(&mut busy).next_one());
    begun.recv().expect("it has begun");
    // Its turn would not come.
    let answered = BindingIteratorStub(&mut apart).next_one();
    assert!(answered.is_ok_and(|(there, _)| there));
    tell.send(()).expect("it waits");
    assert!(waits.join().expect("no panic").is_ok());
}

#[test]
fn requests_that_wait_keep_nobody_waiting_not_even_each_other() {
    let (is_at_it, begun) = std::sync::mpsc::channel();
    let ends = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    let takes = |_: &[u8], operation: &[u8]| operation == b"next_one";
    let told = std::sync::Arc::clone(&ends);
    let waiting = move || {
        let (tell, until) = std::sync::mpsc::channel();
        told.lock().expect("no panic").push(tell);
        Box::new(Busy { is_at_it: is_at_it.clone(), until }) as Box<dyn Objects + Send>
    };
    let server = server.with_waiting(takes, waiting);
    let server = server.with_objects(Numbers::default()).start().expect("threads");
    let reference = Reference::direct(server.address(), b"7");
    let client = || Client::new(&reference, ClientOptions::default());
    let all: Vec<_> = (0..3)
        .map(|_| {
            let mut client = client();
            std::thread::spawn(move || BindingIteratorStub(&mut client).next_one())
        })
        .collect();
    all.iter().for_each(|_| begun.recv().expect("it waits beside the others"));
    // Its turn would not come.
    assert!(BindingIteratorStub(&mut client()).next_n(&3).is_ok());
    let ends = std::mem::take(&mut *ends.lock().expect("no panic"));
    ends.iter().for_each(|tell| tell.send(()).expect("it waits"));
    for one in all {
        assert!(one.join().expect("no panic").is_ok());
    }
}
