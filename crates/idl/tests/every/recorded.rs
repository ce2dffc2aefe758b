//! What clients of omniORB 4.2.5 (C++) and JacORB 3.9 sent to an object of `every.idl`, recorded
//! once: every type that they have, and anys with structs that contain themselves, unions, wide
//! strings, anys in anys and TypeCodes.

use quorba_corba::giop::cdr::Reader;
use quorba_corba::giop::{
    Body, CodeSets, Completion, Endian, Framer, FramerLimits, Message, ReplyStatus, Request,
    Version,
};
use quorba_corba::{
    Any, CharSet, Coding, Decoder, Encoder, WString, answer, answer_locate, hear_code_sets,
};

use crate::Server;
use crate::every::{All, ByNumber, Choice, Colour, Maybe, Precise, Tree};

const OMNIORB: &[u8] = include_bytes!("omniorb.giop");
const JACORB: &[u8] = include_bytes!("jacorb.giop");

fn messages(stream: &[u8]) -> Vec<Message> {
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: 1 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: 1 << 20,
    });
    framer.push(stream);
    let mut messages = Vec::new();
    while let Some(message) = framer.next().expect("GIOP") {
        messages.push(message);
    }
    messages
}

fn coding(message: &Message, code_sets: Option<CodeSets>) -> Coding {
    let version = message.version();
    code_sets.map_or(Coding::plain(version), |sets| Coding::agreed(version, sets))
}

fn read_all(message: &Message, offset: usize, coding: Coding) -> All {
    let reader = Reader::at(message.bytes(), offset, message.endian());
    Decoder::new(reader, coding).read().expect("a value of every type")
}

/// What an echo was given and what it replied.
struct Echo {
    given: All,
    reply: Message,
    is_refused: bool,
}

/// Lets the object answer a stream; what became of the echoes in it.
fn echoes(stream: &[u8]) -> Vec<Echo> {
    let (mut server, mut code_sets) = (Server::default(), None);
    let mut echoes = Vec::new();
    for message in messages(stream) {
        match message.parse().expect("a message") {
            Body::LocateRequest(request) => {
                answer_locate(&message, &request, &server);
            }
            Body::CloseConnection => {}
            Body::Request(request) => {
                let reply = answer(&message, &request, &mut server, &mut code_sets);
                let Some(reply) = reply else {
                    assert_eq!(request.operation(), b"notify", "the only oneway");
                    continue;
                };
                echoes.extend(look(&message, &request, reply, code_sets));
            }
            other => panic!("{other:?}"),
        }
    }
    echoes
}

fn look(
    message: &Message,
    request: &Request<'_>,
    reply: Message,
    mut code_sets: Option<CodeSets>,
) -> Option<Echo> {
    hear_code_sets(request, &mut code_sets).expect("code sets");
    let Ok(Body::Reply(answered)) = reply.parse() else { panic!("{reply:?}") };
    if request.operation() != b"echo" {
        let is_known = request.operation() != b"_interface";
        assert_eq!(answered.status() == ReplyStatus::NoException, is_known, "{reply:?}");
        return None;
    }
    let given = read_all(message, request.body_offset(), coding(message, code_sets));
    let is_refused = answered.status() == ReplyStatus::UserException;
    if !is_refused {
        let back = read_all(&reply, answered.body_offset(), coding(&reply, code_sets));
        assert_eq!(written(&back), written(&given));
    }
    Some(Echo { given, reply, is_refused })
}

/// A value as it is written at one place in one way: omniORB's own has marks in wide strings, which
/// ours has not, so that what stands behind them moves.
fn written(all: &All) -> Vec<u8> {
    let coding = Coding { version: Version::V1_2, chars: CharSet::Utf8 };
    let mut to = Encoder::new(Endian::Big, coding);
    to.write(all);
    to.finish(Completion::No).expect("written")
}

/// What both clients sent each time, whatever the any.
fn check_rest(all: &All) {
    assert!(["na\u{ef}ve", "refuse"].contains(&all.narrow.as_str()));
    assert!(all.wide.to_string().starts_with("\u{20ac}x"));
    assert_eq!((all.some_numbers.e, all.some_numbers.h, all.some_numbers.m.0), (-5, -0.25, 0x20ac));
    assert_eq!(&*all.short_text, "four");
    assert_eq!(all.a_choice, Choice::Text(Colour::Blue, "blue".to_owned()));
    assert!(matches!(&all.perhaps, Maybe::It(nil) if nil.is_nil()));
    assert_eq!(names(all.some_trees.first().expect("a tree")), ["root", "k0", "k1"]);
    let ByNumber::Something(_, any) = &all.one_by_number else { panic!("{all:?}") };
    assert_eq!(names(&any.get::<Tree>().expect("a tree")), ["root", "k0", "k1"]);
}

fn names(tree: &Tree) -> Vec<&str> {
    let kids = tree.kids.iter().map(|kid| kid.r#type.as_str());
    std::iter::once(tree.r#type.as_str()).chain(kids).collect()
}

/// Which of the types that we know an any is of.
fn known(any: &Any) -> &'static str {
    if any.get::<Tree>().is_some_and(|tree| names(&tree) == ["root", "k0", "k1"]) {
        return "tree";
    }
    let id = any.type_code().id();
    match id.as_deref() {
        Some("IDL:Every/Choice:1.0") if any.get::<Choice>().is_some() => "choice",
        Some("IDL:Every/ByNumber:1.0") if any.get::<ByNumber>().is_some() => "by number",
        Some("IDL:Every/Maybe:1.0") if any.get::<Maybe>().is_some() => "maybe",
        Some("IDL:Every/All:1.0") if any.get::<All>().is_some() => "all",
        Some("IDL:Every/Precise:1.0") if any.get::<Precise>().is_some() => "precise",
        None if any.get::<WString>().is_some() => "wide",
        None if any.get::<Any>().is_some_and(|any| any.get::<Tree>().is_some()) => "any",
        None if any.get::<quorba_corba::TypeCode>().is_some() => "TypeCode",
        None if any.get::<i32>().is_some() => "long",
        _ => "unknown",
    }
}

#[test]
fn what_omniorb_sent_is_understood_and_passed_on() {
    let echoes = echoes(OMNIORB);
    echoes.iter().for_each(|echo| check_rest(&echo.given));
    let known: Vec<_> = echoes.iter().map(|echo| known(&echo.given.anything)).collect();
    let anys = ["tree", "choice", "by number", "all", "wide", "any", "TypeCode", "by number"];
    assert_eq!(known, [anys.as_slice(), &["precise", "long"]].concat());
    assert_eq!(echoes.iter().filter(|echo| echo.is_refused).count(), 1);
}

#[test]
fn what_jacorb_sent_is_understood_and_passed_on() {
    let echoes = echoes(JACORB);
    echoes.iter().for_each(|echo| check_rest(&echo.given));
    let known: Vec<_> = echoes.iter().map(|echo| known(&echo.given.anything)).collect();
    assert_eq!(known, ["tree", "choice", "by number", "wide", "any", "maybe", "long"]);
    assert_eq!(echoes.iter().filter(|echo| echo.is_refused).count(), 1);
}

#[test]
fn two_replicas_answer_the_same_octets() {
    for stream in [OMNIORB, JACORB] {
        let replies = || echoes(stream).iter().map(|echo| echo.reply.bytes().to_vec()).collect();
        let (one, other): (Vec<_>, Vec<_>) = (replies(), replies());
        assert_eq!(one, other);
    }
}
