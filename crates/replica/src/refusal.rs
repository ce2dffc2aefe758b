//! Replies that a member makes itself instead of its server.

use crate::endings::{NoReply, RequestEnd};
use crate::nested::CallRefusal;
use crate::outside::OutsideFailure;
use bytes::Bytes;
use quorba_giop::{
    Body, Completion, ExceptionKind, Message, MinorCode, QUORBA_VMCID, SystemException, build,
};

/// An exception that says how a request has ended is shorter.
const ENDED_BYTES_MAX: usize = 512;

/// NO_RESOURCES, COMPLETED_NO: the request cannot be remembered, so it must not be executed.
pub(crate) fn no_room(request: &Bytes) -> Option<Bytes> {
    raise(request, ExceptionKind::NoResources, MinorCode::NoRoom, Completion::No)
}

/// BAD_CONTEXT, COMPLETED_NO: another request has the name that its client gave it.
pub(crate) fn identity_taken(request: &Bytes) -> Option<Bytes> {
    raise(request, ExceptionKind::BadContext, MinorCode::IdentityTaken, Completion::No)
}

/// BAD_CONTEXT, COMPLETED_MAYBE: its gateway has it ordered again, and the group has forgotten what
/// came of it (FT-CORBA §23.2.8.1 lets a server refuse what comes when its time is over). No ORB
/// repeats such a call by itself.
pub(crate) fn forgotten(request: &Bytes) -> Option<Bytes> {
    raise(request, ExceptionKind::BadContext, MinorCode::Forgotten, Completion::Maybe)
}

/// NO_RESOURCES, COMPLETED_NO: why a call of a replicated server was not executed. ORBs repeat no
/// such call by themselves, as they do after TRANSIENT: how often they did would depend on the
/// clock, and every replica has to make the same calls.
pub(crate) fn call_refused(request: &Bytes, why: CallRefusal) -> Option<Bytes> {
    let code = match why {
        CallRefusal::Cycle => MinorCode::CallCycle,
        CallRefusal::NoMember => MinorCode::CalleeGone,
        CallRefusal::TooMany => MinorCode::TooManyCalls,
        CallRefusal::NoRoom => MinorCode::NoRoom,
    };
    raise(request, ExceptionKind::NoResources, code, Completion::No)
}

/// What a server hears whose call to the outside has no reply. None but the first two may be
/// repeated, and no ORB does so by itself.
#[must_use]
pub fn outside_failed(request: &Bytes, why: OutsideFailure) -> Option<Bytes> {
    use Completion::{Maybe, No, Yes};
    let (kind, code, completed) = match why {
        OutsideFailure::NotReached => {
            (ExceptionKind::NoResources, MinorCode::OutsideNotReached, No)
        }
        OutsideFailure::Moved => (ExceptionKind::NoImplement, MinorCode::OutsideMoved, No),
        OutsideFailure::Doubt => (ExceptionKind::CommFailure, MinorCode::OutsideInDoubt, Maybe),
        OutsideFailure::TooLarge => (ExceptionKind::ImpLimit, MinorCode::ReplyTooLarge, Yes),
        OutsideFailure::Rejected => (ExceptionKind::Marshal, MinorCode::Rejected, Maybe),
    };
    raise(request, kind, code, completed)
}

/// What a server hears whose read closed a cycle and has no reply.
pub(crate) fn reentrant_read_failed(request: &Bytes, why: OutsideFailure) -> Option<Bytes> {
    use OutsideFailure::{Doubt, Moved, NotReached, Rejected, TooLarge};
    let no_resources = ExceptionKind::NoResources;
    match why {
        NotReached => raise(request, no_resources, MinorCode::CalleeGone, Completion::No),
        Doubt | Moved => {
            raise(request, no_resources, MinorCode::CircleUnanswered, Completion::Maybe)
        }
        TooLarge | Rejected => outside_failed(request, why),
    }
}

/// BAD_INV_ORDER, COMPLETED_NO: who calls does not execute a request that counts.
pub(crate) fn no_call(request: &Bytes) -> Option<Bytes> {
    raise(request, ExceptionKind::BadInvOrder, MinorCode::CallOutsideRequest, Completion::No)
}

/// What a client is told of a request that has no reply of a server. The same at all members, and
/// for all repetitions; no ORB repeats such a call by itself.
#[must_use]
pub fn exception_of(end: RequestEnd) -> SystemException {
    use Completion::{Maybe, No};
    let (kind, code, completed) = match end {
        RequestEnd::NoReply(NoReply::ConnectionEnded | NoReply::NotAReply) => {
            (ExceptionKind::CommFailure, MinorCode::NoReply, Maybe)
        }
        RequestEnd::NoReply(NoReply::Rejected) => {
            (ExceptionKind::Marshal, MinorCode::Rejected, Maybe)
        }
        // GIOP promises that it was not executed (GIOP §15.5.1.1).
        RequestEnd::NoReply(NoReply::NeverTaken) => {
            (ExceptionKind::NoResources, MinorCode::NeverTaken, No)
        }
        RequestEnd::EndsServers => (ExceptionKind::CommFailure, MinorCode::EndsServers, Maybe),
        RequestEnd::Skipped => (ExceptionKind::Timeout, MinorCode::Skipped, Maybe),
    };
    SystemException::ours(kind, code, completed)
}

/// Whether a reply says so. One that a server has from another group and passes on is none of its
/// own; that makes no difference to whoever looks, and cannot be seen.
pub(crate) fn tells_end(reply: &Bytes) -> bool {
    if reply.len() > ENDED_BYTES_MAX {
        return false;
    }
    let message = Message::from_bytes(reply.clone());
    let Ok(Ok(Body::Reply(reply))) = message.as_ref().map(Message::parse) else { return false };
    let Some(Ok(exception)) = reply.system_exception() else { return false };
    let codes = {
        use MinorCode::{EndsServers, NeverTaken, NoReply, Rejected, Skipped};
        [NoReply, Rejected, NeverTaken, EndsServers, Skipped]
    };
    codes.iter().any(|code| exception.minor == QUORBA_VMCID | code.number())
}

/// See [`exception_of`].
pub(crate) fn ended(request: &Bytes, end: RequestEnd) -> Option<Bytes> {
    raise_this(request, &exception_of(end))
}

/// NO_IMPLEMENT, COMPLETED_NO: a server calls on the connection of its node.
pub(crate) fn not_carried(request: &Bytes) -> Option<Bytes> {
    let (kind, code) = (ExceptionKind::NoImplement, MinorCode::CallbackNotCarried);
    raise(request, kind, code, Completion::No)
}

/// INTERNAL, COMPLETED_MAYBE: the members replied different things, and none has a majority.
pub(crate) fn disagreement(reply: &Bytes) -> Option<Bytes> {
    let message = Message::from_bytes(reply.clone()).ok()?;
    let Ok(Body::Reply(view)) = message.parse() else { return None };
    let request_id = view.request_id();
    let (kind, code) = (ExceptionKind::Internal, MinorCode::ReplicasDisagree);
    let exception = SystemException::ours(kind, code, Completion::Maybe);
    let (version, endian) = (message.version(), message.endian());
    Some(build::system_exception(version, endian, request_id, &exception).bytes().clone())
}

/// IMP_LIMIT, COMPLETED_YES: the order cannot carry the reply. The same whichever member answers
/// and on whichever way, so that a repetition is answered like the call itself.
pub(crate) fn reply_too_large(request: &Bytes) -> Option<Bytes> {
    raise(request, ExceptionKind::ImpLimit, MinorCode::ReplyTooLarge, Completion::Yes)
}

fn raise(
    request: &Bytes,
    kind: ExceptionKind,
    code: MinorCode,
    completed: Completion,
) -> Option<Bytes> {
    raise_this(request, &SystemException::ours(kind, code, completed))
}

fn raise_this(request: &Bytes, exception: &SystemException) -> Option<Bytes> {
    let message = Message::from_bytes(request.clone()).ok()?;
    let Ok(Body::Request(view)) = message.parse() else { return None };
    let (version, endian) = (message.version(), message.endian());
    let reply = build::system_exception(version, endian, view.request_id(), exception);
    Some(reply.bytes().clone())
}
