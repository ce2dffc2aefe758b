//! A client that sees what passes on its connection: every message, every end, every silence.
//!
//! What it is not: an ORB. It repeats nothing, follows no forward and connects once.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{
    Body, Endian, ExceptionKind, Framer, FramerLimits, Message, MinorCode, ReplyStatus,
    ResponseFlags, SystemException, Version, limits,
};

/// What came of a call.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Results, or a user exception, or a forward: the whole Reply.
    Reply(Message),
    /// A system exception.
    Raised(SystemException),
    /// CloseConnection.
    Refused,
    /// MessageError.
    Rejected,
    /// FIN or a reset.
    Closed,
    /// Something that is no GIOP, or no message for a client.
    Malformed(String),
    /// Nothing in time.
    Silence,
}

impl Answer {
    /// The only result, a number.
    pub fn number(&self) -> Result<u32, String> {
        self.read(|reader| reader.read_u32("result").ok())
    }

    /// The only result, a text.
    pub fn text(&self) -> Result<String, String> {
        let text = |reader: &mut Reader<'_>| {
            let text = reader.read_string(limits::MESSAGE_BYTES_MAX, "result").ok()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        self.read(text)
    }

    fn read<T>(&self, get: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Result<T, String> {
        let results = || {
            let Self::Reply(message) = self else { return None };
            let Ok(Body::Reply(reply)) = message.parse() else { return None };
            let is_result = reply.status() == ReplyStatus::NoException;
            if is_result { get(&mut reply.reader()) } else { None }
        };
        results().ok_or_else(|| self.to_string())
    }

    /// Which of Quorba's own reasons a system exception has.
    pub fn ours(&self) -> Option<MinorCode> {
        let Self::Raised(exception) = self else { return None };
        MinorCode::from_minor(exception.minor)
    }

    /// Whether it says that one may try again later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Raised(exception) if exception.kind == ExceptionKind::Transient)
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reply(message) => write!(f, "a reply of {} octets", message.bytes().len()),
            Self::Raised(exception) => write!(f, "{exception}"),
            Self::Refused => f.write_str("CloseConnection"),
            Self::Rejected => f.write_str("MessageError"),
            Self::Closed => f.write_str("the end of the connection"),
            Self::Malformed(why) => write!(f, "nonsense: {why}"),
            Self::Silence => f.write_str("no answer in time"),
        }
    }
}

/// What octets go over: a socket, or TLS on one.
pub trait Carrier: Read + Write + Send {
    /// The socket below.
    fn socket(&self) -> &TcpStream;
}

impl Carrier for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

/// A connection.
pub struct Wire {
    stream: Box<dyn Carrier>,
    framer: Framer,
    last_id: u32,
    /// Of the requests that it makes.
    pub version: Version,
    pub endian: Endian,
}

impl Wire {
    /// To a port on loopback.
    pub fn connect(port: u16) -> std::io::Result<Self> {
        Ok(Self::over(TcpStream::connect((Ipv4Addr::LOCALHOST, port))?))
    }

    /// The same from another address of this machine.
    pub fn connect_from(from: Ipv4Addr, port: u16) -> std::io::Result<Self> {
        Ok(Self::over(connect_from(from, port)?))
    }

    /// Over a connection that is there.
    pub fn over(stream: impl Carrier + 'static) -> Self {
        stream.socket().set_nodelay(true).expect("a socket");
        let stream: Box<dyn Carrier> = Box::new(stream);
        let framer = Framer::new(FramerLimits {
            message_bytes_max: 64 << 20,
            fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
            buffered_bytes_max: 128 << 20,
        });
        Self { stream, framer, last_id: 0, version: Version::V1_2, endian: Endian::Little }
    }

    /// Ends its sending; it reads on.
    pub fn end_sending(&self) -> std::io::Result<()> {
        self.stream.socket().shutdown(Shutdown::Write)
    }

    /// Sends as much of `octets` as is taken within a time; how much that is.
    pub fn push(&mut self, octets: &[u8], within: Duration) -> usize {
        self.stream.socket().set_write_timeout(Some(within)).expect("a socket");
        self.stream.write(octets).unwrap_or(0)
    }

    /// The id of the last request.
    pub fn last_id(&self) -> u32 {
        self.last_id
    }

    /// Sends octets, whatever they are.
    pub fn send(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(octets)
    }

    /// A request with a reply, under the next id.
    pub fn request(
        &mut self,
        key: &[u8],
        operation: &str,
        contexts: &[(u32, &[u8])],
        arguments: impl FnOnce(&mut Writer),
    ) -> (u32, Message) {
        self.last_id += 2;
        let head = RequestHead {
            version: self.version,
            endian: self.endian,
            request_id: self.last_id,
            response_flags: ResponseFlags::WithTarget,
            object_key: key,
            operation: operation.as_bytes(),
            contexts,
        };
        (self.last_id, build::request(&head, arguments))
    }

    /// Calls, and waits for what comes of it. A gateway that has gone is [`Answer::Closed`].
    pub fn call(
        &mut self,
        key: &[u8],
        operation: &str,
        within: Duration,
        arguments: impl FnOnce(&mut Writer),
    ) -> Answer {
        let (id, request) = self.request(key, operation, &[], arguments);
        if self.send(request.bytes()).is_err() {
            return Answer::Closed;
        }
        self.answer(id, within)
    }

    /// What comes of the request with this id. Replies to others are passed over: they come late.
    pub fn answer(&mut self, id: u32, within: Duration) -> Answer {
        let until = Instant::now() + within;
        loop {
            let message = match self.receive(until) {
                Ok(message) => message,
                Err(answer) => return answer,
            };
            return match message.parse() {
                Ok(Body::Reply(reply)) if reply.request_id() != id => continue,
                Ok(Body::Reply(reply)) => match reply.system_exception() {
                    Some(Ok(exception)) => Answer::Raised(exception),
                    Some(Err(error)) => Answer::Malformed(error.to_string()),
                    None => Answer::Reply(message),
                },
                Ok(Body::CloseConnection) => Answer::Refused,
                Ok(Body::MessageError) => Answer::Rejected,
                Ok(other) => Answer::Malformed(format!("{other:?}")),
                Err(error) => Answer::Malformed(error.to_string()),
            };
        }
    }

    /// The next message, or the answer that there is none.
    pub fn receive(&mut self, until: Instant) -> Result<Message, Answer> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.framer.next() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(error) => return Err(Answer::Malformed(error.to_string())),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Answer::Silence);
            }
            let set =
                self.stream.socket().set_read_timeout(Some(left.max(Duration::from_millis(1))));
            set.map_err(|_| Answer::Closed)?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Answer::Closed),
                Ok(count) => self.framer.push(&buffer[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(Answer::Closed),
                },
            }
        }
    }
}

/// A connection on loopback from an address of it.
pub fn connect_from(from: Ipv4Addr, port: u16) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    use std::net::SocketAddrV4;
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    Ok(socket.into())
}
