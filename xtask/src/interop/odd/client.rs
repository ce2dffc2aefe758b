//! A client that sends what no ORB would, and sees what comes back.
//!
//! What it is not: an ORB. It repeats nothing, follows no forward and makes one call a connection.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::Writer;
use quorba_giop::{
    Body, Endian, Framer, FramerLimits, Message, MinorCode, ReplyStatus, ResponseFlags,
    SystemException, Version, limits,
};

/// The object that all calls go to.
const KEY: &[u8] = b"bank";
/// Each connection has one request.
const ID: u32 = 2;

/// What came of a call.
#[derive(Debug)]
pub(in crate::interop) enum Answer {
    /// Results, as the 64 bits that every operation returns that is called here.
    Results(u64),
    /// A system exception, of the server or of the node.
    Raised(SystemException),
    /// Whatever else; no answer at all is among it.
    Other(String),
}

impl Answer {
    /// Which of Quorba's own reasons a system exception has.
    pub(in crate::interop) fn ours(&self) -> Option<MinorCode> {
        let Self::Raised(exception) = self else { return None };
        MinorCode::from_minor(exception.minor)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Results(_) => f.write_str("a reply"),
            Self::Raised(exception) => match self.ours() {
                Some(code) => write!(f, "{} {code:?}", exception.kind.name()),
                None => write!(f, "the server's {exception}"),
            },
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// A call of the bank.
#[derive(Clone, Copy)]
pub(in crate::interop) struct Call<'a> {
    pub(in crate::interop) operation: &'a str,
    pub(in crate::interop) contexts: &'a [(u32, &'a [u8])],
    pub(in crate::interop) arguments: Arguments<'a>,
}

/// What stands behind the head of a request.
#[derive(Clone, Copy)]
pub(in crate::interop) enum Arguments<'a> {
    None,
    /// One string.
    Text(&'a str),
    /// One string, and octets that its receiver's IDL knows nothing of.
    TextAndMore(&'a str),
    /// The beginning of a string that says that it is longer.
    Truncated,
}

impl Arguments<'_> {
    fn write(self, writer: &mut Writer) {
        match self {
            Self::None => {}
            Self::Text(text) => writer.write_string(text.as_bytes()),
            Self::TextAndMore(text) => {
                writer.write_string(text.as_bytes());
                writer.write_raw(&[0; 8]);
            }
            Self::Truncated => {
                // More than what a server may have behind it in a buffer that it used before.
                writer.write_u32(1 << 20);
                writer.write_raw(b"abc");
            }
        }
    }
}

/// Makes one call on a connection of its own.
pub(in crate::interop) fn call(address: &str, call: &Call<'_>, within: Duration) -> Answer {
    let until = Instant::now() + within;
    let sent = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_nodelay(true)?;
        stream.write_all(request(call).bytes())?;
        Ok(stream)
    });
    match sent {
        Ok(stream) => receive(stream, until).map_or_else(Answer::Other, |reply| read(&reply)),
        Err(error) => Answer::Other(format!("{address}: {error}")),
    }
}

fn request(call: &Call<'_>) -> Message {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: ID,
        response_flags: ResponseFlags::WithTarget,
        object_key: KEY,
        operation: call.operation.as_bytes(),
        contexts: call.contexts,
    };
    build::request(&head, |writer| call.arguments.write(writer))
}

fn receive(mut stream: TcpStream, until: Instant) -> Result<Message, String> {
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: limits::MESSAGE_BYTES_MAX,
        fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
        buffered_bytes_max: 2 * limits::MESSAGE_BYTES_MAX,
    });
    let mut buffer = [0; 4096];
    loop {
        if let Some(message) = framer.next().map_err(|error| format!("no GIOP: {error}"))? {
            return Ok(message);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("no answer in time".into());
        }
        let told = |error: std::io::Error| format!("the end of the connection: {error}");
        stream.set_read_timeout(Some(left)).map_err(told)?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err("the end of the connection".into()),
            Ok(count) => framer.push(&buffer[..count]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return Err(told(error)),
            },
        }
    }
}

fn read(message: &Message) -> Answer {
    let reply = match message.parse() {
        Ok(Body::Reply(reply)) => reply,
        Ok(other) => return Answer::Other(format!("{other:?}")),
        Err(error) => return Answer::Other(error.to_string()),
    };
    match reply.system_exception() {
        Some(Ok(exception)) => return Answer::Raised(exception),
        Some(Err(error)) => return Answer::Other(error.to_string()),
        None => {}
    }
    if reply.request_id() != ID || reply.status() != ReplyStatus::NoException {
        return Answer::Other(format!("a reply that is {:?}", reply.status()));
    }
    match reply.reader().read_u64("result") {
        Ok(number) => Answer::Results(number),
        Err(error) => Answer::Other(error.to_string()),
    }
}
