//! One call: sent, repeated where that is allowed, and ended with an answer or an exception.
//!
//! Invariant: every way through ends within the deadline, and after a bounded number of steps.

use std::thread;
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::context::{GroupVersion, TransactionDepth};
use quorba_giop::{
    Body, Completion, ExceptionKind, LocateStatus, Message, ReplyStatus, ResponseFlags,
    SystemException, Version, context,
};

use super::Client;
use super::again::{self, Column, Next, Row};
use super::answer::{Answer, CallError, UserException};
use super::connection::{Beats, Connection, Received};
use super::reply::{Forward, raised, row_of, unknown, without_promise};

/// Forwards that are followed in one call; more are a cycle.
const FORWARDS_MAX: usize = 8;
/// Moves to another address in one call that nothing but CloseConnection causes, per address: a
/// server that always closes must not keep its client running round.
const MOVES_PER_ADDRESS_MAX: usize = 4;
/// Pause before a repeated call tries addresses that were all dead.
const REPEAT_PAUSE: Duration = Duration::from_millis(10);

/// A call that may be repeated waits for this part of the time left for one address...
const REPEAT_SHARES: u32 = 4;
/// ...but at least so long, if that is left...
const ATTEMPT_MIN: Duration = Duration::from_secs(1);
/// ...and so much more, in which it could be sent again.
const ATTEMPT_MARGIN: Duration = Duration::from_millis(200);

/// What writes a call's arguments into a message of a version, as often as it is asked to.
pub(super) type Arguments<'a> = &'a dyn Fn(&mut Writer, Version);

/// A call under way.
pub(super) struct Call<'a> {
    pub(super) operation: &'a str,
    pub(super) arguments: Arguments<'a>,
    pub(super) kind: Kind,
    pub(super) deadline: Option<Instant>,
    /// FT_REQUEST's data, if the call may be repeated although it may have been executed.
    pub(super) identity: Option<Vec<u8>>,
    /// Until when it may be sent again; none: to each address once, or, with an identity, for ever.
    pub(super) repeat_until: Option<Instant>,
    /// What is known of it before it is sent.
    pub(super) completed: Completion,
}

/// What came of a call so far.
struct Tries {
    forwards: usize,
    /// Moves to another address that CloseConnection caused.
    moves: usize,
    /// Addresses that refused it.
    refusals: usize,
    /// From the first attempt of unknown outcome on, no later one can say COMPLETED_NO.
    completed: Completion,
    /// FT_REQUEST's data of the next attempt, if it is not the call's.
    renewed: Option<Vec<u8>>,
}

impl Default for Tries {
    fn default() -> Self {
        Self { forwards: 0, moves: 0, refusals: 0, completed: Completion::No, renewed: None }
    }
}

impl Tries {
    const fn raise(&self, kind: ExceptionKind) -> SystemException {
        SystemException { kind, minor: 0, completed: self.completed }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Oneway,
    /// A call whose reply is not waited for here.
    Later,
    Locate,
}

/// What one attempt to call gave.
enum Attempt {
    /// A reply, or a locate reply.
    Reply(Message),
    /// It was handed to the network, and no reply is waited for; it itself.
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
        let mut tries = Tries { completed: call.completed, ..Tries::default() };
        loop {
            match self.attempt(call, tries.renewed.as_deref()) {
                Attempt::Sent(message) => return Ok(message),
                Attempt::Reply(message) => {
                    self.hear(&message);
                    if !self.goes_on(call, &message, &mut tries)? {
                        return without_promise(message, tries.completed);
                    }
                }
                Attempt::NotExecuted => {
                    self.leave();
                    tries.moves += 1;
                    if tries.moves > MOVES_PER_ADDRESS_MAX * self.addresses().len() {
                        return Err(tries.raise(ExceptionKind::Transient));
                    }
                }
                Attempt::Unreached if self.forwarded.is_some() => self.forward(None),
                Attempt::Unreached => {
                    tries.refusals += self.addresses().len();
                    let row = Row::Raised(ExceptionKind::Transient, Completion::No);
                    if !self.may_repeat(call, row, &tries) {
                        return Err(tries.raise(ExceptionKind::Transient));
                    }
                    thread::sleep(REPEAT_PAUSE);
                }
                Attempt::TooLate => return Err(tries.raise(ExceptionKind::Timeout)),
                Attempt::Unknown(kind) => {
                    // Silence for the time of one attempt is a response that did not come.
                    let of_the_table = match kind {
                        ExceptionKind::Timeout => ExceptionKind::NoResponse,
                        kind => kind,
                    };
                    let row = Row::Raised(of_the_table, Completion::Maybe);
                    let may_repeat = self.may_repeat(call, row, &tries);
                    if self.forwarded.is_some() {
                        // It may still accept connections while it dies; home knows who lives.
                        self.forward(None);
                    } else {
                        self.leave();
                    }
                    tries.completed = Completion::Maybe;
                    if !may_repeat {
                        return Err(unknown(kind));
                    }
                }
            }
        }
    }

    /// Whether the call goes on although a reply came: it forwards, or it says that another
    /// address may do better.
    fn goes_on(
        &mut self,
        call: &Call<'_>,
        message: &Message,
        tries: &mut Tries,
    ) -> Result<bool, SystemException> {
        let Some(row) = row_of(message) else { return Ok(false) };
        match (again::next(self.column(call), row), row) {
            (Next::Follow, _) => self.follow(message, tries),
            (Next::Elsewhere, Row::Raised(_, completed)) => {
                tries.refusals += 1;
                if !self.has_time(call, tries) {
                    return Ok(false);
                }
                if completed == Completion::Maybe {
                    tries.completed = Completion::Maybe;
                }
                if tries.completed == Completion::No {
                    tries.renewed = self.next_identity(call);
                }
                self.leave();
                thread::sleep(REPEAT_PAUSE);
                Ok(true)
            }
            (Next::Elsewhere | Next::Raise, _) => Ok(false),
        }
    }

    /// Goes where a reply forwards to, if there is an address in it.
    fn follow(&mut self, message: &Message, tries: &mut Tries) -> Result<bool, SystemException> {
        let Some(forward) = Forward::read(message) else { return Ok(false) };
        tries.forwards += 1;
        if tries.forwards > FORWARDS_MAX {
            return Err(tries.raise(ExceptionKind::Transient));
        }
        if forward.is_permanent && forward.to.is_newer_than(&self.home) {
            self.retarget(&forward.to);
        } else {
            self.forward(Some(forward.to));
        }
        Ok(true)
    }

    /// Whether the table lets the call go to another address after an outcome that this ORB found
    /// out by itself, and there is time for it.
    fn may_repeat(&self, call: &Call<'_>, row: Row, tries: &Tries) -> bool {
        again::next(self.column(call), row) == Next::Elsewhere && self.has_time(call, tries)
    }

    fn column(&self, call: &Call<'_>) -> Column {
        Column::of(self.reference().group().is_some(), call.identity.is_some())
    }

    fn has_time(&self, call: &Call<'_>, tries: &Tries) -> bool {
        call.has_time(tries.refusals < self.addresses().len())
    }

    /// The name of the next attempt if no attempt so far was executed. A group remembers that a
    /// server raised COMPLETED_NO, and would answer that to each repetition of the same name.
    fn next_identity(&mut self, call: &Call<'_>) -> Option<Vec<u8>> {
        call.identity.as_ref()?;
        let left = call.repeat_until?.saturating_duration_since(Instant::now());
        let endian = self.options.endian;
        self.options.repeat.as_mut().map(|repeat| repeat.next(endian, left))
    }

    /// `renewed`: FT_REQUEST's data, if it is not the call's.
    fn attempt(&mut self, call: &Call<'_>, renewed: Option<&[u8]>) -> Attempt {
        self.leave_stale();
        if self.connection.is_none() {
            if call.left().is_some_and(|left| left.is_zero()) {
                return Attempt::TooLate;
            }
            if !self.connect(call) {
                return Attempt::Unreached;
            }
        }
        let endian = self.options.endian;
        let group = self.reference().group();
        let group_version = group.map(|group| GroupVersion(group.reference_version).encode(endian));
        let address = &self.addresses()[self.current];
        let version = self.options.version.min(address.version);
        let object_key = address.object_key.clone();
        let policy = self.options.heartbeat.filter(|_| address.heartbeat_enabled);
        let connection = self.connection.as_mut().expect("connected just now");
        let request_id = connection.next_request_id();
        let message = match call.kind {
            Kind::Locate => build::locate_request(version, endian, request_id, &object_key),
            Kind::Call | Kind::Oneway | Kind::Later => {
                let passed = self.options.passes_on.as_ref().map(|request| request.encode(endian));
                let identity = renewed.or(call.identity.as_deref()).or(passed.as_deref());
                let identity = identity.map(|data| (context::FT_REQUEST, data));
                let sets = self.options.code_sets.map(|sets| sets.encode(endian));
                let sets = sets.as_deref().map(|data| (context::CODE_SETS, data));
                let group_version = group_version.as_deref();
                let group_version = group_version.map(|data| (context::FT_GROUP_VERSION, data));
                let depth = self.options.transaction_depth;
                let depth = depth.map(|depth| TransactionDepth(depth).encode(endian));
                let depth = depth.as_deref().map(|data| (context::FT_TRANSACTION_DEPTH, data));
                let contexts = sets.into_iter().chain(group_version).chain(identity).chain(depth);
                let contexts: Vec<(u32, &[u8])> = contexts.collect();
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
        if matches!(call.kind, Kind::Oneway | Kind::Later) {
            return Attempt::Sent(message);
        }
        let beats = policy.map(|policy| Beats { policy, version, endian, object_key: &object_key });
        match connection.receive(request_id, call.attempt_deadline(), beats.as_ref()) {
            Received::Reply(message) | Received::LocateReply(message) => Attempt::Reply(message),
            Received::NotExecuted => Attempt::NotExecuted,
            Received::Lost => Attempt::Unknown(ExceptionKind::CommFailure),
            Received::Timeout => Attempt::Unknown(ExceptionKind::Timeout),
            Received::Malformed => Attempt::Unknown(ExceptionKind::Marshal),
        }
    }

    /// Connects to the first address that takes a connection, from the current one on.
    fn connect(&mut self, call: &Call<'_>) -> bool {
        self.connect_within(|| call.left())
    }

    /// A connection that has ended while it was idle is not used again.
    pub(super) fn leave_stale(&mut self) {
        if self.connection.as_ref().is_some_and(Connection::is_stale) {
            if self.options.avoids_ended {
                return self.leave();
            }
            self.connection = None;
        }
    }

    /// `left`: the time that is left, if there is an end.
    pub(super) fn connect_within(&mut self, left: impl Fn() -> Option<Duration>) -> bool {
        for _ in 0..self.addresses().len() {
            let within = self.options.connect_timeout;
            let within = left().map_or(within, |left| within.min(left));
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

    /// Whether there is time to send it again. Who was told no time is sent to each address once:
    /// `has_others`, some have not been asked.
    fn has_time(&self, has_others: bool) -> bool {
        if self.left().is_some_and(|left| left.is_zero()) {
            return false;
        }
        match self.repeat_until {
            Some(until) => Instant::now() < until,
            None => self.identity.is_some() || has_others,
        }
    }

    /// Until when one attempt may take. A call that may be repeated although it may have been
    /// executed does not spend all of its time on one address that is silent.
    fn attempt_deadline(&self) -> Option<Instant> {
        let until = match (self.deadline, self.repeat_until) {
            (Some(deadline), Some(until)) => Some(deadline.min(until)),
            (deadline, until) => deadline.or(until),
        };
        let Some(until) = until.filter(|_| self.identity.is_some()) else { return self.deadline };
        let left = until.saturating_duration_since(Instant::now());
        let share = (left / REPEAT_SHARES).max(ATTEMPT_MIN);
        if share + ATTEMPT_MARGIN < left { Some(Instant::now() + share) } else { self.deadline }
    }

    fn response_flags(&self) -> ResponseFlags {
        match self.kind {
            Kind::Oneway => ResponseFlags::None,
            Kind::Call | Kind::Later | Kind::Locate => ResponseFlags::WithTarget,
        }
    }
}
