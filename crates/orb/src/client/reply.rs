//! What is read in a reply, whatever was called.
//!
//! What it is not: what follows from it; it does no I/O.

use quorba_giop::cdr::Reader;
use quorba_giop::{
    Body, Completion, ExceptionKind, LocateStatus, Message, Reply, ReplyStatus, SystemException,
    context,
};

use super::again::Row;
use super::answer::{Answer, CallError};
use super::reference::Reference;
use crate::servant::marshal_fault;

/// Reads the result of an operation that returns a boolean.
pub(super) fn read_bool(answer: &Answer) -> Result<bool, CallError> {
    (answer.results().read_bool("result"))
        .map_err(|fault| CallError::System(marshal_fault(fault, Completion::Yes)))
}

/// Where a reply forwards to.
pub(super) struct Forward {
    pub(super) to: Reference,
    /// LOCATION_FORWARD_PERM.
    pub(super) is_permanent: bool,
}

impl Forward {
    /// The forward in a reply, if it is one, and if there is an address in it.
    pub(super) fn read(message: &Message) -> Option<Self> {
        let (to, is_permanent) = match message.parse() {
            Ok(Body::Reply(reply)) => {
                let is_permanent = match reply.status() {
                    ReplyStatus::LocationForward => false,
                    ReplyStatus::LocationForwardPerm => true,
                    _ => return None,
                };
                (Reference::read(&mut reply.reader()), is_permanent)
            }
            Ok(Body::LocateReply(reply)) => {
                let is_permanent = match reply.status() {
                    LocateStatus::ObjectForward => false,
                    LocateStatus::ObjectForwardPerm => true,
                    _ => return None,
                };
                let mut body = Reader::new(reply.body(), message.endian());
                (Reference::read(&mut body), is_permanent)
            }
            _ => return None,
        };
        to.ok().map(|to| Self { to, is_permanent })
    }
}

/// The reference that rides on a reply (FT_FORWARD), if there is an address in it.
pub(super) fn reference_beside(message: &Message) -> Option<Reference> {
    let Ok(Body::Reply(reply)) = message.parse() else { return None };
    let (_, data) = reply.contexts().find(|(id, _)| *id == context::FT_FORWARD)?;
    Reference::read(&mut Reader::new(data, message.endian())).ok()
}

/// Which row of the table a reply is, if it is one of them.
pub(super) fn row_of(message: &Message) -> Option<Row> {
    match message.parse() {
        Ok(Body::Reply(reply)) => match reply.status() {
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => Some(Row::Forward),
            _ => raised_in(&reply).map(|it| Row::Raised(it.kind, it.completed)),
        },
        Ok(Body::LocateReply(reply)) => match reply.status() {
            LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => Some(Row::Forward),
            _ => None,
        },
        _ => None,
    }
}

/// The system exception in a reply, if it is one.
fn exception_in(message: &Message) -> Option<SystemException> {
    let Ok(Body::Reply(reply)) = message.parse() else { return None };
    raised_in(&reply)
}

fn raised_in(reply: &Reply<'_>) -> Option<SystemException> {
    reply.system_exception()?.ok()
}

/// The reply as it is; but if an earlier attempt may have been executed, an exception that says
/// COMPLETED_NO speaks of the last one only, and is raised as COMPLETED_MAYBE.
pub(super) fn without_promise(
    message: Message,
    completed: Completion,
) -> Result<Message, SystemException> {
    if completed != Completion::Maybe {
        return Ok(message);
    }
    match exception_in(&message).filter(|it| it.completed == Completion::No) {
        Some(exception) => Err(SystemException { completed, ..exception }),
        None => Ok(message),
    }
}

/// The system exception that a reply raises.
pub(super) fn raised(message: &Message) -> SystemException {
    exception_in(message).unwrap_or(unknown(ExceptionKind::Marshal))
}

/// An exception of this ORB's own for a call that may have been executed.
pub(super) const fn unknown(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: Completion::Maybe }
}
