//! What the gateway says by itself, without a server.
//!
//! One place maps the gateway's own refusals to CORBA system exceptions, with minor code and
//! completion status: NO only if the call was never handed to the group, MAYBE if it was.

use crate::pending::Client;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::cdr::Writer;
use quorba_giop::ior::Ior;
use quorba_giop::{
    Body, Completion, ExceptionKind, LocateStatus, Message, MinorCode, ReplyStatus, Request,
    Rewrite, SystemException, Version, build, context, fragment, renumbered,
};
use quorba_replica::{Availability, RequestEnd, exception_of};

/// The repository id of what a caller is told who demands too much.
const TOO_DEEP: &[u8] = b"IDL:FTRT/TransactionDepthTooHigh:1.0";

/// Replies larger than this go out in fragments: there are ORBs that take no larger message.
const REPLY_PIECE_BYTES: usize = 128 << 10;

/// A reply on its way to a client.
pub(crate) enum ReplyPieces {
    /// It goes out whole, as nearly all do.
    One(Bytes),
    Several(Vec<Bytes>),
}

/// Operations that only ask whether the connection lives (FT-CORBA §23.2.9); ORBs differ in the
/// spelling.
pub(crate) fn is_heartbeat(request: &Request<'_>) -> bool {
    matches!(request.operation(), b"FT_HB" | b"_FT_HB")
}

pub(crate) fn alive(message: &Message, request_id: u32) -> Bytes {
    let (version, endian) = (message.version(), message.endian());
    build::reply(version, endian, request_id, ReplyStatus::NoException, |_| {}).bytes().clone()
}

/// Whether it asks if its object exists (CORBA §4.3.5.1); some old ORBs say `_not_existent`.
pub(crate) fn asks_for_existence(request: &Request<'_>) -> bool {
    matches!(request.operation(), b"_non_existent" | b"_not_existent")
}

/// That the object does not exist: the result of `_non_existent`.
pub(crate) fn gone(message: &Message, request_id: u32) -> Bytes {
    let (version, endian) = (message.version(), message.endian());
    let status = ReplyStatus::NoException;
    build::reply(version, endian, request_id, status, |out| out.write_bool(true)).bytes().clone()
}

/// Where an object is that was named, or not, so that nobody can have it.
pub(crate) fn located(message: &Message, request_id: u32, is_named: bool) -> Bytes {
    let status = if is_named { LocateStatus::ObjectHere } else { LocateStatus::UnknownObject };
    build::locate_reply(message.version(), message.endian(), request_id, status).bytes().clone()
}

/// COMPLETED_NO: nobody has been given it.
pub(crate) fn refused(
    message: &Message,
    request_id: u32,
    (kind, code): (ExceptionKind, MinorCode),
) -> Bytes {
    let exception = SystemException::ours(kind, code, Completion::No);
    let (version, endian) = (message.version(), message.endian());
    build::system_exception(version, endian, request_id, &exception).bytes().clone()
}

pub(crate) fn message_error(version: Version) -> Bytes {
    build::message_error(version).bytes().clone()
}

pub(crate) fn close_connection(version: Version) -> Bytes {
    build::close_connection(version).bytes().clone()
}

/// The server's reply as the client gets it: under its own request id, in pieces if it is large.
pub(crate) fn reply_pieces(giop: Bytes, client: &Client) -> ReplyPieces {
    if giop.len() <= REPLY_PIECE_BYTES
        && let Some(reply) = renumbered(&giop, client.request_id)
    {
        return ReplyPieces::One(reply.freeze());
    }
    let message = Message::from_bytes(giop).expect("the member's framer cut it");
    let Ok(Body::Reply(reply)) = message.parse() else {
        unreachable!("members pass on replies only");
    };
    let reply = reply.with_request_id(client.request_id);
    ReplyPieces::Several(fragment(&reply, REPLY_PIECE_BYTES))
}

/// The server's reply with the group's reference in a context of its own, as FTRT has it: clients
/// that do not know it leave it alone.
pub(crate) fn with_reference(giop: Bytes, reference: &Ior) -> Bytes {
    let message = Message::from_bytes(giop).expect("the member's framer cut it");
    let Ok(Body::Reply(reply)) = message.parse() else {
        unreachable!("members pass on replies only");
    };
    let mut writer = Writer::new(message.endian());
    reference.write(&mut writer);
    let data = writer.finish();
    let add = [(context::FT_FORWARD, data.as_slice())];
    reply.rewrite(&Rewrite { add_contexts: &add, ..Rewrite::default() }).bytes().clone()
}

/// TRANSIENT, COMPLETED_NO: not now, and not executed.
pub(crate) fn unavailable(client: &Client, availability: Availability) -> Bytes {
    let code = match availability {
        Availability::NoPrimary(_) => MinorCode::NoPrimary,
        Availability::Waits => MinorCode::MemoryAway,
        Availability::NoMember => MinorCode::NoMember,
        Availability::Starting => MinorCode::GroupStarting,
        Availability::Ready => MinorCode::Crowded,
    };
    raise(client, ExceptionKind::Transient, code, Completion::No)
}

/// TRANSIENT, COMPLETED_NO: the client's address holds more memory here than it may.
pub(crate) fn over_budget(client: &Client) -> Bytes {
    raise(client, ExceptionKind::Transient, MinorCode::OverBudget, Completion::No)
}

/// TRANSIENT, COMPLETED_NO: there is nothing yet, and the call is held no longer.
pub(crate) fn nothing_yet(client: &Client) -> Bytes {
    raise(client, ExceptionKind::Transient, MinorCode::NothingYet, Completion::No)
}

/// TRANSIENT, COMPLETED_NO: the connection is one too many.
pub(crate) fn too_many_connections(message: &Message, request_id: u32) -> Bytes {
    let refusal = (ExceptionKind::Transient, MinorCode::TooManyConnections);
    refused(message, request_id, refusal)
}

/// IMP_LIMIT, COMPLETED_NO: the order cannot carry it, now or later.
pub(crate) fn too_large(client: &Client) -> Bytes {
    raise(client, ExceptionKind::ImpLimit, MinorCode::RequestTooLarge, Completion::No)
}

/// `FTRT::TransactionDepthTooHigh`: fewer members are in than have to have it; nobody was given it.
pub(crate) fn too_deep(client: &Client) -> Bytes {
    let Client { version, endian, request_id, .. } = *client;
    let status = ReplyStatus::UserException;
    build::reply(version, endian, request_id, status, |out| out.write_string(TOO_DEEP))
        .bytes()
        .clone()
}

/// TRANSIENT, COMPLETED_NO: the same, where the group demands it, and not the client.
pub(crate) fn too_few(client: &Client) -> Bytes {
    raise(client, ExceptionKind::Transient, MinorCode::DepthNotMet, Completion::No)
}

/// TRANSIENT, COMPLETED_MAYBE: it was or may have been executed, and fewer members have it than its
/// caller demands, as far as is known.
pub(crate) fn depth_not_met(client: &Client) -> Bytes {
    raise(client, ExceptionKind::Transient, MinorCode::DepthNotMet, Completion::Maybe)
}

/// OBJECT_NOT_EXIST: the group was deleted, and perhaps had executed the call before.
pub(crate) fn deleted(client: &Client, may_be_executed: bool) -> Bytes {
    let done = if may_be_executed { Completion::Maybe } else { Completion::No };
    raise(client, ExceptionKind::ObjectNotExist, MinorCode::NoSuchGroup, done)
}

/// BAD_INV_ORDER, COMPLETED_NO: a replicated server calls while it executes no request.
pub(crate) fn no_call(client: &Client) -> Bytes {
    raise(client, ExceptionKind::BadInvOrder, MinorCode::CallOutsideRequest, Completion::No)
}

/// TIMEOUT, COMPLETED_MAYBE: it was handed to the group, and nobody can say more.
pub(crate) fn timed_out(client: &Client) -> Bytes {
    raise(client, ExceptionKind::Timeout, MinorCode::TimedOut, Completion::Maybe)
}

/// The call has ended without a reply of a server.
pub(crate) fn ended(client: &Client, end: RequestEnd) -> Bytes {
    raise_this(client, &exception_of(end))
}

fn raise(client: &Client, kind: ExceptionKind, code: MinorCode, done: Completion) -> Bytes {
    raise_this(client, &SystemException::ours(kind, code, done))
}

fn raise_this(client: &Client, exception: &SystemException) -> Bytes {
    let Client { version, endian, request_id, .. } = *client;
    build::system_exception(version, endian, request_id, exception).bytes().clone()
}
