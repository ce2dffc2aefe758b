//! One connection of a client: sends a request, waits for its reply.
//!
//! What it is not: multiplexed. One call at a time, so a reply to anything but the call that is
//! waited for belongs to one that was given up.
//!
//! Invariant: a connection on which anything went wrong is not used again; its owner drops it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use quorba_giop::ior::Endpoint;
use quorba_giop::{Body, Message};

use crate::stream::{MessageStream, ReceiveError};

/// A connection that was idle for longer is looked at before it is used.
const TRUSTED_FOR: Duration = Duration::from_millis(10);

pub(super) struct Connection {
    stream: MessageStream,
    last_request_id: u32,
    used: Instant,
}

/// What became of a request that was sent.
#[derive(Debug)]
pub(super) enum Received {
    /// Its reply.
    Reply(Message),
    /// Its locate reply.
    LocateReply(Message),
    /// The server closed and has not executed it.
    NotExecuted,
    /// The connection was lost.
    Lost,
    /// The deadline passed.
    Timeout,
    /// What came back is not GIOP, or the server says that of the request.
    Malformed,
}

impl Connection {
    /// Connects to `address`, to each of its host's addresses in turn.
    pub(super) fn open(
        address: &Endpoint,
        within: Duration,
        message_bytes_max: usize,
    ) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for socket in (address.host.as_str(), address.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&socket, within) {
                Ok(stream) => {
                    let stream = MessageStream::new(stream, message_bytes_max)?;
                    return Ok(Self { stream, last_request_id: 0, used: Instant::now() });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Whether the peer has closed it meanwhile.
    pub(super) fn is_stale(&self) -> bool {
        self.used.elapsed() > TRUSTED_FOR && self.stream.is_disturbed()
    }

    /// The id for the next request.
    pub(super) fn next_request_id(&mut self) -> u32 {
        // Even ids, as omniORB takes: odd ones would be the other side's if it could call back.
        self.last_request_id = self.last_request_id.wrapping_add(2);
        self.last_request_id
    }

    /// Sends a message. After an error the server cannot have all of it, so it is not executed.
    pub(super) fn send(&mut self, message: &Message) -> io::Result<()> {
        self.used = Instant::now();
        self.stream.send(message.bytes())
    }

    /// Waits for the reply to `request_id`.
    pub(super) fn receive(&mut self, request_id: u32, deadline: Option<Instant>) -> Received {
        loop {
            let message = match self.stream.receive(deadline) {
                Ok(message) => message,
                Err(ReceiveError::Timeout) => return Received::Timeout,
                Err(ReceiveError::Lost) => return Received::Lost,
                Err(ReceiveError::Malformed) => return Received::Malformed,
            };
            self.used = Instant::now();
            match message.parse() {
                Ok(Body::Reply(reply)) if reply.request_id() == request_id => {
                    return Received::Reply(message);
                }
                Ok(Body::LocateReply(reply)) if reply.request_id() == request_id => {
                    return Received::LocateReply(message);
                }
                Ok(Body::Reply(_) | Body::LocateReply(_)) => {}
                Ok(Body::CloseConnection) => return Received::NotExecuted,
                Ok(_) | Err(_) => return Received::Malformed,
            }
        }
    }
}
