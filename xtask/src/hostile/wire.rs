//! A client of plain octets: it says from which of this host's addresses it comes, and sends what
//! no ORB would.
//!
//! What it is not: an ORB. It repeats nothing and hides nothing of what comes.
//!
//! Invariant: nothing here waits longer than it is told.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::Writer;
use quorba_giop::{
    Body, Endian, Framer, FramerLimits, Message, ReplyStatus, ResponseFlags, SystemException,
    Version, limits,
};
use socket2::{Domain, Socket, Type};

/// Of all requests, if nothing else is said.
pub(super) const KEY: &[u8] = b"o";
/// How long a connection may take, and a write that nobody reads blocks.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const WRITE_WITHIN: Duration = Duration::from_millis(50);
/// The longest answer that is taken.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What came of a request.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// Results: the octets behind the reply's header.
    Results(Vec<u8>),
    /// A system exception.
    Raised(SystemException),
    /// CloseConnection.
    Refused,
    /// MessageError.
    Rejected,
    /// FIN or a reset.
    Closed,
    /// Nothing in time.
    Silence,
    /// What no client can make sense of.
    Odd(String),
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Results(octets) => write!(f, "results of {} octets", octets.len()),
            Self::Raised(exception) => write!(f, "{exception}"),
            Self::Refused => f.write_str("CloseConnection"),
            Self::Rejected => f.write_str("MessageError"),
            Self::Closed => f.write_str("the end of the connection"),
            Self::Silence => f.write_str("no answer in time"),
            Self::Odd(why) => write!(f, "nonsense: {why}"),
        }
    }
}

/// A request; `id` is the caller's choice.
pub(super) fn request(
    id: u32,
    operation: &str,
    expects: bool,
    body: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    request_to(&RequestFields { id, operation, expects, ..RequestFields::default() }, body)
}

/// Everything that may differ in a request.
#[derive(Clone, Copy)]
pub(super) struct RequestFields<'a> {
    pub(super) id: u32,
    pub(super) version: Version,
    pub(super) key: &'a [u8],
    pub(super) operation: &'a str,
    pub(super) expects: bool,
    pub(super) contexts: &'a [(u32, &'a [u8])],
}

impl Default for RequestFields<'_> {
    fn default() -> Self {
        Self {
            id: 2,
            version: Version::V1_2,
            key: KEY,
            operation: "add",
            expects: true,
            contexts: &[],
        }
    }
}

pub(super) fn request_to(aim: &RequestFields<'_>, body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let response_flags = if aim.expects { ResponseFlags::WithTarget } else { ResponseFlags::None };
    let head = RequestHead {
        version: aim.version,
        endian: Endian::Little,
        request_id: aim.id,
        response_flags,
        object_key: aim.key,
        operation: aim.operation.as_bytes(),
        contexts: aim.contexts,
    };
    build::request(&head, body).bytes().to_vec()
}

/// A connection.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    framer: Framer,
}

impl Wire {
    /// From an address of this host.
    pub(super) fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        Self::connect_with(from, to, None)
    }

    /// The same, with little room for what is not read.
    pub(super) fn connect_deaf(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        Self::connect_with(from, to, Some(4096))
    }

    fn connect_with(from: Ipv4Addr, to: SocketAddr, room: Option<usize>) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        if let Some(room) = room {
            socket.set_recv_buffer_size(room)?;
        }
        socket.bind(&SocketAddr::from((from, 0)).into())?;
        socket.connect_timeout(&to.into(), CONNECT_WITHIN)?;
        let stream: TcpStream = socket.into();
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_WITHIN))?;
        let framer = Framer::new(FramerLimits {
            message_bytes_max: ANSWER_BYTES_MAX,
            fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
            buffered_bytes_max: ANSWER_BYTES_MAX,
        });
        Ok(Self { stream, framer })
    }

    /// Sends all of it, until `within` is over.
    pub(super) fn send(&mut self, octets: &[u8], within: Duration) -> io::Result<()> {
        let until = Instant::now() + within;
        let mut rest = octets;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_slow(&error) && Instant::now() < until => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends `octets` again and again; gives how many octets were taken.
    pub(super) fn flood(&mut self, octets: &[u8], until: Instant) -> u64 {
        let (mut at, mut taken) = (0, 0);
        while Instant::now() < until {
            match self.stream.write(&octets[at..]) {
                Ok(0) => return taken,
                Ok(count) => {
                    taken += count as u64;
                    at = (at + count) % octets.len();
                }
                Err(error) if is_slow(&error) => {}
                Err(_) => return taken,
            }
        }
        taken
    }

    /// Says that nothing more will come.
    pub(super) fn half_close(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Sends a request and waits for what comes of it.
    pub(super) fn call(&mut self, id: u32, octets: &[u8], within: Duration) -> Answer {
        let until = Instant::now() + within;
        // A gateway may answer before it has read all, and close.
        let sent = self.send(octets, within);
        let answer = self.answer(id, until.saturating_duration_since(Instant::now()));
        if matches!(answer, Answer::Silence) && sent.is_err() { Answer::Closed } else { answer }
    }

    /// What comes of the request with this id; replies to others are passed over.
    pub(super) fn answer(&mut self, id: u32, within: Duration) -> Answer {
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
                    Some(Err(error)) => Answer::Odd(error.to_string()),
                    None if reply.status() == ReplyStatus::NoException => {
                        Answer::Results(reply.body().to_vec())
                    }
                    None => Answer::Odd(format!("{:?}", reply.status())),
                },
                Ok(Body::CloseConnection) => Answer::Refused,
                Ok(Body::MessageError) => Answer::Rejected,
                Ok(other) => Answer::Odd(format!("{other:?}")),
                Err(error) => Answer::Odd(error.to_string()),
            };
        }
    }

    fn receive(&mut self, until: Instant) -> Result<Message, Answer> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.framer.next() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(error) => return Err(Answer::Odd(error.to_string())),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Answer::Silence);
            }
            let set = self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))));
            set.map_err(|_| Answer::Closed)?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Answer::Closed),
                Ok(count) => self.framer.push(&buffer[..count]),
                Err(error) if is_slow(&error) => {}
                Err(_) => return Err(Answer::Closed),
            }
        }
    }
}

fn is_slow(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
