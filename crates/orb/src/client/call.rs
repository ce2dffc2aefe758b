//! One call: sent, repeated where that is allowed, and ended with an answer or an exception.
//!
//! Invariant: every way through ends within the deadline, and after a bounded number of steps.

use std::thread;
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{
    Body, Completion, ExceptionKind, LocateStatus, Message, ReplyStatus, ResponseFlags,
    SystemException, Version, context,
};

use super::Client;
use super::answer::{Answer, CallError, UserException};
use super::connection::{Connection, Received};
use super::reference::Reference;
use crate::servant::marshal_fault;

/// Forwards that are followed in one call; more are a cycle.
const FORWARDS_MAX: usize = 8;
/// Moves to another address in one call that nothing but CloseConnection causes, per address: a
/// server that always closes must not keep its client running round.
const MOVES_PER_ADDRESS_MAX: usize = 4;
/// Pause before a repeated call tries addresses that were all dead.
const REPEAT_PAUSE: Duration = Duration::from_millis(10);

/// A call that may be repeated waits for this part of the time left for one address...
const REPEAT_SHARES: u32 = 4;
/// ...but at least so long, if that is left.
const ATTEMPT_MIN: Duration = Duration::from_secs(1);

/// What writes a call's arguments into a message of a version, as often as it is asked to.
pub(super) type Arguments<'a> = &'a dyn Fn(&mut Writer, Version);

/// A call under way.
pub(super) struct Call<'a> {
    pub(super) operation: &'a str,
    pub(super) arguments: Arguments<'a>,
    pub(super) kind: Kind,
    pub(super) deadline: Option<Instant>,
    /// FT_REQUEST's data, if the call may be repeated.
    pub(super) identity: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Oneway,
    Locate,
}

/// What one attempt to call gave.
enum Attempt {
    /// A reply, or a locate reply.
    Reply(Message),
    /// A oneway was handed to the network; it itself.
    Sent(Message),
    /// The server certainly did not execute it; another address may.
    NotExecuted,
    /// No address takes a connection.
    Unreached,
    /// The deadline passed before anything was sent.
    TooLate,
    /// It was sent, and nobody knows what became of it: to be raised as this.
    Unknown(ExceptionKind),
}

impl Client {
    pub(super) fn run(&mut self, call: &Call<'_>) -> Result<Answer, CallError> {
        let message = self.exchange(call).map_err(CallError::System)?;
        let Ok(Body::Reply(reply)) = message.parse() else {
            return Err(CallError::System(unknown(ExceptionKind::Marshal)));
        };
        match reply.status() {
            ReplyStatus::NoException => {
                let results_at = reply.body_offset();
                Ok(Answer::new(message, results_at))
            }
            ReplyStatus::UserException => {
                let results_at = reply.body_offset();
                let exception = UserException::read(Answer::new(message, results_at));
                Err(exception.map_or_else(
                    || CallError::System(unknown(ExceptionKind::Marshal)),
                    CallError::User,
                ))
            }
            ReplyStatus::SystemException => Err(CallError::System(raised(&message))),
            // A forward has been followed; other kinds of target address are not needed by
            // anything that this ORB is for.
            ReplyStatus::LocationForward
            | ReplyStatus::LocationForwardPerm
            | ReplyStatus::NeedsAddressingMode => {
                let kind = ExceptionKind::NoImplement;
                let completed = Completion::No;
                Err(CallError::System(SystemException { kind, minor: 0, completed }))
            }
        }
    }

    pub(super) fn run_oneway(&mut self, call: &Call<'_>) -> Result<(), SystemException> {
        self.exchange(call).map(drop)
    }

    pub(super) fn run_locate(&mut self, call: &Call<'_>) -> Result<bool, SystemException> {
        let message = self.exchange(call)?;
        match message.parse() {
            Ok(Body::LocateReply(reply)) => match reply.status() {
                LocateStatus::ObjectHere => Ok(true),
                LocateStatus::UnknownObject => Ok(false),
                LocateStatus::SystemException => {
                    let mut reader = Reader::new(reply.body(), message.endian());
                    let marshal = |_| unknown(ExceptionKind::Marshal);
                    Err(SystemException::read(&mut reader).map_err(marshal)?)
                }
                LocateStatus::ObjectForward
                | LocateStatus::ObjectForwardPerm
                | LocateStatus::NeedsAddressingMode => Err(unknown(ExceptionKind::NoImplement)),
            },
            _ => Err(unknown(ExceptionKind::Marshal)),
        }
    }

    /// Sends the call until it is answered, or may not be sent again. For a oneway the message is
    /// the request itself.
    pub(super) fn exchange(&mut self, call: &Call<'_>) -> Result<Message, SystemException> {
        let mut forwards = 0;
        let mut moves = 0;
        // From the first attempt of unknown outcome on, no later one can say COMPLETED_NO.
        let mut completed = Completion::No;
        loop {
            let raise = |kind| SystemException { kind, minor: 0, completed };
            match self.attempt(call) {
                Attempt::Reply(message) => {
                    if let Some(reference) = forward_in(&message) {
                        forwards += 1;
                        if forwards > FORWARDS_MAX {
                            return Err(raise(ExceptionKind::Transient));
                        }
                        self.forward(Some(reference));
                    } else if call.may_repeat() && is_temporary(&message) {
                        self.leave();
                        thread::sleep(REPEAT_PAUSE);
                    } else {
                        return without_promise(message, completed);
                    }
                }
                Attempt::Sent(message) => return Ok(message),
                Attempt::NotExecuted => {
                    self.leave();
                    moves += 1;
                    if moves > MOVES_PER_ADDRESS_MAX * self.addresses().len() {
                        return Err(raise(ExceptionKind::Transient));
                    }
                }
                Attempt::Unreached if self.forwarded.is_some() => self.forward(None),
                Attempt::Unreached if call.may_repeat() => thread::sleep(REPEAT_PAUSE),
                Attempt::Unreached => return Err(raise(ExceptionKind::Transient)),
                Attempt::TooLate => return Err(raise(ExceptionKind::Timeout)),
                Attempt::Unknown(kind) => {
                    if self.forwarded.is_some() {
                        // It may still accept connections while it dies; home knows who lives.
                        self.forward(None);
                    } else {
                        self.leave();
                    }
                    completed = Completion::Maybe;
                    if !call.may_repeat() {
                        return Err(unknown(kind));
                    }
                }
            }
        }
    }

    fn attempt(&mut self, call: &Call<'_>) -> Attempt {
        if self.connection.as_ref().is_some_and(Connection::is_stale) {
            self.connection = None;
        }
        if self.connection.is_none() {
            if call.left().is_some_and(|left| left.is_zero()) {
                return Attempt::TooLate;
            }
            if !self.connect(call) {
                return Attempt::Unreached;
            }
        }
        let address = &self.addresses()[self.current];
        let version = self.options.version.min(address.version);
        let object_key = address.object_key.clone();
        let endian = self.options.endian;
        let connection = self.connection.as_mut().expect("connected just now");
        let request_id = connection.next_request_id();
        let message = match call.kind {
            Kind::Locate => build::locate_request(version, endian, request_id, &object_key),
            Kind::Call | Kind::Oneway => {
                let identity = call.identity.as_deref().map(|data| (context::FT_REQUEST, data));
                let sets = self.options.code_sets.map(|sets| sets.encode(endian));
                let sets = sets.as_deref().map(|data| (context::CODE_SETS, data));
                let contexts: Vec<(u32, &[u8])> = sets.into_iter().chain(identity).collect();
                let head = RequestHead {
                    version,
                    endian,
                    request_id,
                    response_flags: call.response_flags(),
                    object_key: &object_key,
                    operation: call.operation.as_bytes(),
                    contexts: &contexts,
                };
                build::request(&head, |out| (call.arguments)(out, version))
            }
        };
        if connection.send(&message).is_err() {
            return Attempt::NotExecuted;
        }
        if call.kind == Kind::Oneway {
            return Attempt::Sent(message);
        }
        match connection.receive(request_id, call.attempt_deadline()) {
            Received::Reply(message) | Received::LocateReply(message) => Attempt::Reply(message),
            Received::NotExecuted => Attempt::NotExecuted,
            Received::Lost => Attempt::Unknown(ExceptionKind::CommFailure),
            Received::Timeout => Attempt::Unknown(ExceptionKind::Timeout),
            Received::Malformed => Attempt::Unknown(ExceptionKind::Marshal),
        }
    }

    /// Connects to the first address that takes a connection, from the current one on.
    fn connect(&mut self, call: &Call<'_>) -> bool {
        for _ in 0..self.addresses().len() {
            let within = self.options.connect_timeout;
            let within = call.left().map_or(within, |left| within.min(left));
            if within.is_zero() {
                return false;
            }
            let address = &self.addresses()[self.current];
            match Connection::open(address, within, self.options.message_bytes_max) {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return true;
                }
                Err(_) => self.leave(),
            }
        }
        false
    }
}

impl Call<'_> {
    /// The time that is left.
    fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the call may be sent again although it may have been executed.
    fn may_repeat(&self) -> bool {
        self.identity.is_some() && self.left().is_none_or(|left| !left.is_zero())
    }

    /// Until when one attempt may take. A call that may be repeated does not spend all of its
    /// time on one address that is silent.
    fn attempt_deadline(&self) -> Option<Instant> {
        let deadline = self.deadline?;
        let left = deadline.saturating_duration_since(Instant::now());
        let share = if self.identity.is_some() { left / REPEAT_SHARES } else { left };
        Some(Instant::now() + share.max(ATTEMPT_MIN.min(left)))
    }

    fn response_flags(&self) -> ResponseFlags {
        match self.kind {
            Kind::Oneway => ResponseFlags::None,
            Kind::Call | Kind::Locate => ResponseFlags::WithTarget,
        }
    }
}

/// Reads the result of an operation that returns a boolean.
pub(super) fn read_bool(answer: &Answer) -> Result<bool, CallError> {
    (answer.results().read_bool("result"))
        .map_err(|fault| CallError::System(marshal_fault(fault, Completion::Yes)))
}

/// The reference that a reply forwards to, if it does, and if there is an address in it.
fn forward_in(message: &Message) -> Option<Reference> {
    match message.parse() {
        Ok(Body::Reply(reply)) => match reply.status() {
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                Reference::read(&mut reply.reader()).ok()
            }
            _ => None,
        },
        Ok(Body::LocateReply(reply)) => match reply.status() {
            LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                Reference::read(&mut Reader::new(reply.body(), message.endian())).ok()
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a reply says that another address, or another time, may do better; the conditions are
/// those of FT-CORBA §23.2.8 for a call that carries its identity.
fn is_temporary(message: &Message) -> bool {
    let Ok(Body::Reply(reply)) = message.parse() else { return false };
    let Some(Ok(exception)) = reply.system_exception() else { return false };
    matches!(
        exception.kind,
        ExceptionKind::CommFailure
            | ExceptionKind::Transient
            | ExceptionKind::NoResponse
            | ExceptionKind::ObjAdapter
    )
}

/// The reply as it is; but if an earlier attempt may have been executed, an exception that says
/// COMPLETED_NO speaks of the last one only, and is raised as COMPLETED_MAYBE.
fn without_promise(message: Message, completed: Completion) -> Result<Message, SystemException> {
    let says_no = match message.parse() {
        Ok(Body::Reply(reply)) => reply
            .system_exception()
            .and_then(Result::ok)
            .filter(|exception| exception.completed == Completion::No),
        _ => None,
    };
    match says_no {
        Some(exception) if completed == Completion::Maybe => {
            Err(SystemException { completed, ..exception })
        }
        _ => Ok(message),
    }
}

/// The system exception that a reply raises.
pub(super) fn raised(message: &Message) -> SystemException {
    match message.parse() {
        Ok(Body::Reply(reply)) => match reply.system_exception() {
            Some(Ok(exception)) => exception,
            _ => unknown(ExceptionKind::Marshal),
        },
        _ => unknown(ExceptionKind::Marshal),
    }
}

/// An exception of this ORB's own for a call that may have been executed.
pub(super) const fn unknown(kind: ExceptionKind) -> SystemException {
    SystemException { kind, minor: 0, completed: Completion::Maybe }
}
