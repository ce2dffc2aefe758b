//! What the server answers to one message.
//!
//! What it is not: I/O. A message goes in, at most one comes out.
//!
//! Invariants: requests execute in turns, taken when their last octet has arrived; a servant that
//! panicked is not called again, because nobody knows what state it is in.

use std::sync::PoisonError;

use quorba_giop::cdr::Reader;
use quorba_giop::{
    Body, Completion, ExceptionKind, LocateRequest, LocateStatus, Message, ReplyStatus, Request,
    SystemException, Target, build,
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
pub(super) fn answer(message: &Message, shared: &Shared) -> Answer {
    match message.parse() {
        Ok(Body::Request(request)) => answer_request(message, &request, shared),
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
        Target::Key(key) if !shared.servants.contains_key(*key) => LocateStatus::UnknownObject,
        // A target by profile or reference is believed: if the object is not here, the request
        // that follows says so.
        Target::Key(_) | Target::Profile { .. } | Target::Reference { .. } => {
            LocateStatus::ObjectHere
        }
    };
    let (version, endian) = (message.version(), message.endian());
    Answer::Message(build::locate_reply(version, endian, request.request_id(), status))
}

fn answer_request(message: &Message, request: &Request<'_>, shared: &Shared) -> Answer {
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
