//! What the server answers to one message.
//!
//! What it is not: I/O. A message goes in, at most one comes out.
//!
//! Objects that have a servant of their own are looked up first, then those of an [`Objects`].
//!
//! Invariants: requests execute in turns, taken when their last octet has arrived, but for those
//! that wait for something, which take none; a servant that
//! panicked is not called again, because nobody knows what state it is in.

use std::sync::{Mutex, PoisonError};

use quorba_corba::Objects;
use quorba_giop::cdr::Reader;
use quorba_giop::{
    Body, CodeSets, Completion, ExceptionKind, LocateRequest, LocateStatus, Message, ReplyStatus,
    Request, SystemException, Target, build,
};

use super::Shared;
use crate::servant::{Reply, Servant, marshal_fault};

/// What to send.
pub(super) enum Answer {
    /// This.
    Message(Message),
    /// Nothing: a oneway, or a message that is not answered.
    Nothing,
    /// What came is not GIOP, or not what a client says.
    Malformed,
    /// The client has closed the connection.
    Closed,
}

/// The longest repository id that `_is_a` is asked with, in octets.
const REPOSITORY_ID_BYTES_MAX: usize = 4096;
/// Every object is one.
const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// Answers `message`, executing it if it is a request.
///
/// `code_sets` are the connection's, which the first request may tell.
pub(super) fn answer(
    message: &Message,
    shared: &Shared,
    code_sets: &mut Option<CodeSets>,
) -> Answer {
    match message.parse() {
        Ok(Body::Request(request)) => answer_request(message, &request, shared, code_sets),
        Ok(Body::LocateRequest(request)) => answer_locate(message, &request, shared),
        // The request was answered before the message that cancels it was read.
        Ok(Body::CancelRequest { .. }) => Answer::Nothing,
        // From GIOP 1.2 on a client may say it, too.
        Ok(Body::CloseConnection | Body::MessageError) => Answer::Closed,
        Ok(Body::Reply(_) | Body::LocateReply(_)) | Err(_) => Answer::Malformed,
    }
}

fn answer_locate(message: &Message, request: &LocateRequest<'_>, shared: &Shared) -> Answer {
    let status = match request.target() {
        Target::Key(key) if !shared.has(key) => LocateStatus::UnknownObject,
        // A target by profile or reference is believed: if the object is not here, the request
        // that follows says so.
        Target::Key(_) | Target::Profile { .. } | Target::Reference { .. } => {
            LocateStatus::ObjectHere
        }
    };
    let (version, endian) = (message.version(), message.endian());
    Answer::Message(build::locate_reply(version, endian, request.request_id(), status))
}

fn answer_request(
    message: &Message,
    request: &Request<'_>,
    shared: &Shared,
    code_sets: &mut Option<CodeSets>,
) -> Answer {
    let key = request.object_key();
    if let Some(waiting) = &shared.waiting
        && key.is_some_and(|key| (waiting.takes)(key, request.operation()))
    {
        let mut objects = (waiting.make)();
        return quorba_corba::answer(message, request, &mut *objects, code_sets)
            .map_or(Answer::Nothing, Answer::Message);
    }
    if let Some(apart) = &shared.apart
        && key.is_some_and(|key| (apart.takes)(key, request.operation()))
    {
        let _turn = apart.turns.take();
        return by_objects(message, request, &apart.objects, code_sets);
    }
    if let Some(objects) = &shared.objects
        && key.is_none_or(|key| !shared.servants.contains_key(key))
    {
        let _turn = shared.turns.take();
        return by_objects(message, request, objects, code_sets);
    }
    // Servants read octets; but what is said here holds for the objects of the same connection.
    let _unreadable = quorba_corba::hear_code_sets(request, code_sets);
    let mut reply = Reply::new(message.endian());
    let outcome = {
        let _turn = shared.turns.take();
        execute(message, request, shared, &mut reply)
    };
    if !request.response_expected() {
        return Answer::Nothing;
    }
    let (version, endian, id) = (message.version(), message.endian(), request.request_id());
    Answer::Message(match outcome {
        Err(exception) => build::system_exception(version, endian, id, &exception),
        Ok(()) => {
            let (octets, raised) = reply.finish();
            let status = if raised { ReplyStatus::UserException } else { ReplyStatus::NoException };
            build::reply(version, endian, id, status, |out| out.write_raw(&octets))
        }
    })
}

fn by_objects(
    message: &Message,
    request: &Request<'_>,
    objects: &Mutex<Box<dyn Objects + Send>>,
    code_sets: &mut Option<CodeSets>,
) -> Answer {
    match objects.lock() {
        Ok(mut objects) => quorba_corba::answer(message, request, &mut **objects, code_sets)
            .map_or(Answer::Nothing, Answer::Message),
        Err(_) => refused(message, request),
    }
}

/// What a request gets after a panic in one before it.
fn refused(message: &Message, request: &Request<'_>) -> Answer {
    if !request.response_expected() {
        return Answer::Nothing;
    }
    let (version, endian, id) = (message.version(), message.endian(), request.request_id());
    let exception = refusal(ExceptionKind::ObjAdapter);
    Answer::Message(build::system_exception(version, endian, id, &exception))
}

impl Shared {
    /// Whether there is an object with this key.
    fn has(&self, key: &[u8]) -> bool {
        let in_objects = |objects: &Mutex<Box<dyn Objects + Send>>| {
            objects.lock().is_ok_and(|objects| objects.interface(key).is_some())
        };
        self.servants.contains_key(key) || self.objects.as_ref().is_some_and(in_objects)
    }
}

fn execute(
    message: &Message,
    request: &Request<'_>,
    shared: &Shared,
    reply: &mut Reply,
) -> Result<(), SystemException> {
    let operation = std::str::from_utf8(request.operation())
        .map_err(|_| refusal(ExceptionKind::BadOperation))?;
    let servant = request.object_key().and_then(|key| shared.servants.get(key));
    let Some(servant) = servant else {
        if operation == "_non_existent" {
            reply.results().write_bool(true);
            return Ok(());
        }
        return Err(refusal(ExceptionKind::ObjectNotExist));
    };
    let mut servant =
        servant.lock().map_err(|_: PoisonError<_>| refusal(ExceptionKind::ObjAdapter))?;
    let mut arguments = Reader::at(message.bytes(), request.body_offset(), message.endian());
    match operation {
        "_is_a" => {
            let is_a = is_a(&**servant, &mut arguments)?;
            reply.results().write_bool(is_a);
            Ok(())
        }
        // `_not_existent` is what some old ORBs say.
        "_non_existent" | "_not_existent" => {
            reply.results().write_bool(false);
            Ok(())
        }
        _ => servant.dispatch(operation, &mut arguments, reply),
    }
}

fn is_a(servant: &dyn Servant, arguments: &mut Reader<'_>) -> Result<bool, SystemException> {
    let id = arguments
        .read_string(REPOSITORY_ID_BYTES_MAX, "repository id")
        .map_err(|fault| marshal_fault(fault, Completion::No))?;
    Ok(std::str::from_utf8(id).is_ok_and(|id| id == OBJECT_ID || servant.is_a(id)))
}

const fn refusal(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: Completion::No }
}
