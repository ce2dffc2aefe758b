//! The client: calls one object, at whichever of its addresses answers.
//!
//! What it is not: shared. A client belongs to one thread and makes one call at a time; several
//! threads have a client each, with a connection each.
//!
//! Invariants, like those of the ORBs that it stands in for:
//! - a call that certainly was not executed (no connection, CloseConnection, a request that could
//!   not be sent whole) moves on to the next address without an exception;
//! - a call that may have been executed raises COMM_FAILURE or TIMEOUT, COMPLETED_MAYBE, once, and
//!   the *next* call begins at the next address; unless the client was given an identity
//!   ([`Repeat`]), under which the call is repeated until it is answered or expires;
//! - with every address dead a call raises TRANSIENT, COMPLETED_NO;
//! - an exception that a server raises, COMPLETED_NO, is followed by a try elsewhere where the
//!   reference names a group, and so is COMPLETED_MAYBE under an identity (`again`, FT-CORBA's
//!   table 23-1).

mod again;
mod answer;
mod call;
mod connection;
mod heartbeat;
mod later;
mod named;
mod reference;
mod repeat;
mod reply;
mod stub;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use quorba_giop::cdr::Writer;
use quorba_giop::ior::Endpoint;
use quorba_giop::{
    CodeSets, Completion, Endian, ExceptionKind, FtRequest, Message, SystemException, Version,
    limits,
};

pub use answer::{Answer, CallError, UserException};
use call::{Arguments, Call, Kind};
use connection::Connection;
pub use heartbeat::HeartbeatPolicy;
pub use named::{ResolveError, resolve};
pub use reference::{Reference, ReferenceError};
pub use repeat::{Repeat, time_t};

/// How a client calls.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The highest GIOP version to speak; an address that offers a lower one gets that.
    pub version: Version,
    /// The byte order of requests.
    pub endian: Endian,
    /// How long connecting to one address may take.
    pub connect_timeout: Duration,
    /// How long a call may take; none: as long as it takes.
    pub call_timeout: Option<Duration>,
    /// The address to begin at: its index in the reference, modulo their number.
    pub first_address: usize,
    /// The identity under which calls of unknown outcome are repeated; none: they are not.
    pub repeat: Option<Repeat>,
    /// How long a request may be sent again (FT-CORBA §23.2.8.2, REQUEST_DURATION_POLICY); with an
    /// identity that is what FT_REQUEST says, too. None: with an identity for 60 s, else to each
    /// address once. A call may take longer: that is `call_timeout`'s.
    pub request_duration: Option<Duration>,
    /// Whose call it makes: told by FT_REQUEST with every request, which is not repeated for that.
    /// Without `repeat` only.
    pub passes_on: Option<FtRequest>,
    /// How many replicas must have what is called before the reply comes (Huang05 §3.4), told by
    /// FT_TRANSACTION_DEPTH with every request; none: as many as the server has it.
    pub transaction_depth: Option<u32>,
    /// Heartbeats while a reply is waited for, where they are answered; none: none are sent. When
    /// they stop being answered the call has lost its connection.
    pub heartbeat: Option<HeartbeatPolicy>,
    /// The code sets to speak, which every request tells; none: ISO 8859-1, and the server is
    /// not told. UTF-8 and UTF-16 are what omniORB and JacORB take.
    pub code_sets: Option<CodeSets>,
    /// An address whose connection has ended while it was idle is tried behind all others: who has
    /// died is not asked whether it is there (Huang05 §4.3). Else it is tried first, as most ORBs
    /// do, since its server may only have closed a connection that nobody used.
    pub avoids_ended: bool,
    /// The largest reply, in bytes.
    pub message_bytes_max: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            version: Version::V1_2,
            endian: Endian::Little,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Some(Duration::from_secs(30)),
            first_address: 0,
            repeat: None,
            request_duration: None,
            passes_on: None,
            transaction_depth: None,
            heartbeat: None,
            code_sets: None,
            avoids_ended: false,
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
        }
    }
}

/// How long a call with an identity may be sent again if nobody says how long; its reply is
/// retained for longer than that.
const REQUEST_DURATION: Duration = Duration::from_secs(60);

/// Calls one object.
pub struct Client {
    options: ClientOptions,
    home: Reference,
    /// Where the object was last said to be, if it is not at home (LOCATION_FORWARD).
    forwarded: Option<Reference>,
    current: usize,
    connection: Option<Connection>,
    /// The next call is the last one once more.
    once_more: bool,
    /// The request whose reply is looked for now and then.
    later: Option<u32>,
}

impl Client {
    /// A client of the object at `reference`. It connects with its first call.
    #[must_use]
    pub fn new(reference: &Reference, options: ClientOptions) -> Self {
        let home = reference.clone();
        let current = options.first_address % home.addresses().len();
        let (forwarded, connection, later) = (None, None, None);
        Self { options, home, forwarded, current, connection, once_more: false, later }
    }

    /// Calls another object from now on. Where it has an address at which this client is connected
    /// the connection is used on.
    pub fn retarget(&mut self, reference: &Reference) {
        let at = |client: &Self| {
            let now = client.addresses().get(client.current)?;
            let place = (now.host.as_str(), now.port);
            reference.addresses().iter().position(|one| (one.host.as_str(), one.port) == place)
        };
        let current = at(self);
        if current.is_none() {
            self.connection = None;
        }
        self.current = current.unwrap_or(0);
        self.forwarded = None;
        self.home = reference.clone();
    }

    /// The reference that it calls by now: where it was forwarded to, or a newer one to its group
    /// that it was told.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        self.forwarded.as_ref().unwrap_or(&self.home)
    }

    /// How long each further call may take.
    pub fn limit(&mut self, call_timeout: Option<Duration>) {
        self.options.call_timeout = call_timeout;
    }

    /// The next call is the last one once more, which ended without that anybody knows whether it
    /// was executed: where the client has an identity it goes under the same name, so it is
    /// executed once. To be said only of a call with the same operation and arguments.
    pub const fn once_more(&mut self) {
        self.once_more = true;
    }

    /// Connects, before there is anything to call; whether there is a connection. Each address is
    /// tried once.
    pub fn open(&mut self) -> bool {
        self.leave_stale();
        self.connection.is_some() || self.connect_within(|| None)
    }

    /// Calls `operation` with the arguments that `arguments` writes; it may be asked to write
    /// them several times.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(
        &mut self,
        operation: &str,
        arguments: impl Fn(&mut Writer),
    ) -> Result<Answer, CallError> {
        let arguments = |out: &mut Writer, _| arguments(out);
        let call = self.begin(operation, &arguments, Kind::Call);
        self.run(&call)
    }

    /// Sends `operation` without asking for a reply.
    ///
    /// # Errors
    /// The system exception if it could not be sent.
    pub fn oneway(
        &mut self,
        operation: &str,
        arguments: impl Fn(&mut Writer),
    ) -> Result<(), SystemException> {
        let arguments = |out: &mut Writer, _| arguments(out);
        let call = self.begin(operation, &arguments, Kind::Oneway);
        self.run_oneway(&call)
    }

    /// Asks by LocateRequest whether the object is there.
    ///
    /// # Errors
    /// The system exception if nobody says.
    pub fn locate(&mut self) -> Result<bool, SystemException> {
        let call = self.begin("", &|_, _| {}, Kind::Locate);
        self.run_locate(&call)
    }

    /// Whether the object supports the interface `id`.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn is_a(&mut self, id: &str) -> Result<bool, CallError> {
        let answer = self.call("_is_a", |out| out.write_string(id.as_bytes()))?;
        reply::read_bool(&answer)
    }

    /// Whether the object does not exist. A group does not if every address of its reference that
    /// answers says so: a member that is gone is not the group (FT-CORBA §23.2.3).
    ///
    /// # Errors
    /// [`CallError`], if an address cannot say, and none says that it exists.
    pub fn non_existent(&mut self) -> Result<bool, CallError> {
        let first = self.current;
        let mut failure = None;
        for step in 0..self.addresses().len() {
            self.visit((first + step) % self.addresses().len());
            let answer = self.is_gone_here();
            if self.reference().group().is_none() {
                return answer;
            }
            match answer {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    /// What the current address says to `_non_existent`.
    fn is_gone_here(&mut self) -> Result<bool, CallError> {
        match self.call("_non_existent", |_| {}) {
            Ok(answer) => reply::read_bool(&answer),
            Err(CallError::System(exception))
                if exception.kind == ExceptionKind::ObjectNotExist =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn begin<'a>(&mut self, operation: &'a str, arguments: Arguments<'a>, kind: Kind) -> Call<'a> {
        if self.later.take().is_some() {
            self.connection = None;
        }
        let now = Instant::now();
        let deadline = self.options.call_timeout.map(|timeout| now + timeout);
        let endian = self.options.endian;
        let duration = self.options.request_duration;
        let once_more = core::mem::take(&mut self.once_more);
        let repeat = self.options.repeat.as_mut().filter(|_| kind == Kind::Call);
        let identity = repeat.map(|repeat| {
            if once_more {
                repeat.go_back();
            }
            repeat.next(endian, duration.unwrap_or(REQUEST_DURATION))
        });
        let completed = if once_more { Completion::Maybe } else { Completion::No };
        let duration = duration.or(identity.as_ref().map(|_| REQUEST_DURATION));
        let repeat_until = duration.and_then(|duration| now.checked_add(duration));
        Call { operation, arguments, kind, deadline, identity, repeat_until, completed }
    }

    fn addresses(&self) -> &[Endpoint] {
        self.reference().addresses()
    }

    /// Takes a newer reference to the group that rides on a reply (FT_FORWARD): the group has other
    /// members now. One to anything else is left alone.
    fn hear(&mut self, message: &Message) {
        if self.reference().group().is_some()
            && let Some(reference) = reply::reference_beside(message)
            && reference.is_newer_than(self.reference())
        {
            self.retarget(&reference);
        }
    }

    /// Goes to the address with this index.
    fn visit(&mut self, index: usize) {
        if index != self.current {
            self.connection = None;
            self.current = index;
        }
    }

    /// Leaves the current address; the next connection is to the one after it.
    fn leave(&mut self) {
        self.connection = None;
        self.current = (self.current + 1) % self.addresses().len();
    }

    /// Takes the addresses of a forward, or goes back home.
    fn forward(&mut self, to: Option<Reference>) {
        self.connection = None;
        self.current = 0;
        self.forwarded = to;
    }
}
