//! Asks one address whether it is there: LocateRequest and `_non_existent` over plain IIOP.
//!
//! What it is not: an ORB. It walks no addresses and retries nothing, because it shall show what
//! one address does.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Body, Endian, Framer, FramerLimits, LocateStatus, Message, ReplyStatus, ResponseFlags, Version,
};

use crate::text::{age, system_reason};

/// One address of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// An address or a name.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The GIOP version that the reference allows.
    pub version: Version,
    /// The object.
    pub object_key: Vec<u8>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A LocateRequest: answered by a gateway itself.
    Locate,
    /// The operation `_non_existent`: goes the way of every call, through the servers.
    NonExistent,
}

impl Question {
    /// Its name in a table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Locate => "locate",
            Self::NonExistent => "call",
        }
    }
}

/// What an address said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// The object is there.
    Here,
    /// Something else, in words.
    Other(String),
}

/// Why an address said nothing that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// The name is unknown, or the resolver does not answer.
    Unresolved(String),
    /// Nothing listens, or nobody is there.
    Unreachable(String),
    /// No answer came in time.
    TimedOut(Duration),
    /// It closed the connection, politely or not.
    Closed(&'static str),
    /// What came is no GIOP, or not what was asked for.
    Confused(String),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved(reason) => write!(f, "host unknown: {reason}"),
            Self::Unreachable(reason) => f.write_str(reason),
            Self::TimedOut(time) => write!(f, "timed out after {}", age(*time)),
            Self::Closed(how) => f.write_str(how),
            Self::Confused(reason) => write!(f, "unreadable answer: {reason}"),
        }
    }
}

/// An answer is a few bytes; a system exception has a name.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A connection to one address.
pub struct Probe {
    stream: TcpStream,
    framer: Framer,
    place: Place,
    request_id: u32,
    time: Duration,
}

impl Probe {
    /// Connects; this and each question may take `time`.
    pub fn connect(place: &Place, time: Duration) -> Result<Self, ProbeError> {
        let mut failed = ProbeError::Unresolved("it has no address".to_owned());
        for address in resolve(place, time)? {
            match TcpStream::connect_timeout(&address, time) {
                Ok(stream) => {
                    let unusable =
                        |error: io::Error| ProbeError::Unreachable(system_reason(&error));
                    stream.set_nodelay(true).map_err(unusable)?;
                    let framer = Framer::new(FramerLimits {
                        message_bytes_max: ANSWER_BYTES_MAX,
                        fragmented_requests_max: 1,
                        buffered_bytes_max: ANSWER_BYTES_MAX,
                    });
                    return Ok(Self { stream, framer, place: place.clone(), request_id: 0, time });
                }
                Err(error) if is_timeout(&error) => failed = ProbeError::TimedOut(time),
                Err(error) => failed = ProbeError::Unreachable(system_reason(&error)),
            }
        }
        Err(failed)
    }

    /// Asks once; what was said, and how long it took.
    pub fn ask(&mut self, question: Question) -> Result<(ProbeAnswer, Duration), ProbeError> {
        self.request_id = self.request_id.wrapping_add(1);
        let message = self.message(question);
        let begin = Instant::now();
        let until = begin + self.time;
        let sent = self.stream.set_write_timeout(Some(self.time));
        let sent = sent.and_then(|()| self.stream.write_all(message.bytes()));
        sent.map_err(|error| self.trouble(&error))?;
        loop {
            let answer = self.receive(until)?;
            if let Some(said) = self.understand(&answer)? {
                return Ok((said, begin.elapsed()));
            }
        }
    }

    fn message(&self, question: Question) -> Message {
        let Place { version, object_key, .. } = &self.place;
        match question {
            Question::Locate => {
                build::locate_request(*version, Endian::Little, self.request_id, object_key)
            }
            Question::NonExistent => build::request(
                &RequestHead {
                    version: *version,
                    endian: Endian::Little,
                    request_id: self.request_id,
                    response_flags: ResponseFlags::WithTarget,
                    object_key,
                    operation: b"_non_existent",
                    contexts: &[],
                },
                |_| {},
            ),
        }
    }

    fn receive(&mut self, until: Instant) -> Result<Message, ProbeError> {
        let mut buffer = [0; 4096];
        loop {
            match self.framer.next() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(error) => return Err(ProbeError::Confused(error.to_string())),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ProbeError::TimedOut(self.time));
            }
            let read = self.stream.set_read_timeout(Some(left));
            match read.and_then(|()| self.stream.read(&mut buffer)) {
                Ok(0) => return Err(ProbeError::Closed("closed the connection without an answer")),
                Ok(count) => self.framer.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.trouble(&error)),
            }
        }
    }

    /// `None`: an answer to a question that was given up before.
    fn understand(&self, answer: &Message) -> Result<Option<ProbeAnswer>, ProbeError> {
        let body = answer.parse().map_err(|error| ProbeError::Confused(error.to_string()))?;
        let (request_id, said) = match &body {
            Body::LocateReply(reply) => (reply.request_id(), located(reply.status())),
            Body::Reply(reply) => (reply.request_id(), replied(reply)?),
            Body::CloseConnection => {
                return Err(ProbeError::Closed("closes its connections (CloseConnection)"));
            }
            Body::MessageError => {
                return Err(ProbeError::Closed("did not understand the question (MessageError)"));
            }
            _ => return Err(ProbeError::Confused("a message that only clients send".to_owned())),
        };
        Ok((request_id == self.request_id).then_some(said))
    }

    fn trouble(&self, error: &io::Error) -> ProbeError {
        match error.kind() {
            _ if is_timeout(error) => ProbeError::TimedOut(self.time),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                ProbeError::Closed("dropped the connection without an answer")
            }
            _ => ProbeError::Unreachable(system_reason(error)),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

fn located(status: LocateStatus) -> ProbeAnswer {
    ProbeAnswer::Other(match status {
        LocateStatus::ObjectHere => return ProbeAnswer::Here,
        LocateStatus::UnknownObject => "unknown object".to_owned(),
        LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
            "forwards elsewhere".to_owned()
        }
        LocateStatus::SystemException => "raises a system exception".to_owned(),
        LocateStatus::NeedsAddressingMode => "wants another kind of address".to_owned(),
    })
}

fn replied(reply: &quorba_giop::Reply<'_>) -> Result<ProbeAnswer, ProbeError> {
    let unreadable = |error: quorba_giop::MessageError| ProbeError::Confused(error.to_string());
    Ok(ProbeAnswer::Other(match reply.status() {
        ReplyStatus::NoException => {
            match reply.reader().read_u8("non_existent").map_err(unreadable)? {
                0 => return Ok(ProbeAnswer::Here),
                _ => "says that the object does not exist".to_owned(),
            }
        }
        ReplyStatus::SystemException => match reply.system_exception() {
            Some(exception) => exception.map_err(unreadable)?.to_string(),
            None => "raises a system exception".to_owned(),
        },
        ReplyStatus::UserException => "raises a user exception".to_owned(),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            "forwards elsewhere".to_owned()
        }
        ReplyStatus::NeedsAddressingMode => "wants another kind of address".to_owned(),
    }))
}

/// Asks the resolver, which knows no deadline of its own.
fn resolve(place: &Place, time: Duration) -> Result<Vec<std::net::SocketAddr>, ProbeError> {
    let (sender, receiver) = mpsc::channel();
    let asked = (place.host.clone(), place.port);
    // If the resolver hangs, the thread ends with the process.
    thread::spawn(move || {
        let resolved = asked.to_socket_addrs().map(Iterator::collect);
        drop(sender.send(resolved));
    });
    match receiver.recv_timeout(time) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(ProbeError::Unresolved(system_reason(&error))),
        Err(_) => Err(ProbeError::TimedOut(time)),
    }
}
