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
use quorba_giop::{Body, Endian, Message, Version};

use super::heartbeat::{self, Due, HeartbeatPolicy, Pulse};
use crate::stream::{MessageStream, ReceiveError};

/// A connection that was idle for longer is looked at before it is used.
const TRUSTED_FOR: Duration = Duration::from_millis(10);

pub(super) struct Connection {
    stream: MessageStream,
    last_request_id: u32,
    used: Instant,
}

/// The heartbeats to send while a reply is waited for.
pub(super) struct Beats<'a> {
    pub(super) policy: HeartbeatPolicy,
    pub(super) version: Version,
    pub(super) endian: Endian,
    pub(super) object_key: &'a [u8],
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
    /// The connection was lost, or heartbeats show that nobody is at its other end.
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

    /// Whether something has come that was not read, or the peer has closed it.
    pub(super) fn has_octets(&self) -> bool {
        self.stream.is_disturbed()
    }

    /// The kernel asks whether the peer is there, after a silence of `silence`.
    pub(super) fn keep_alive(&self, silence: Duration) {
        self.stream.keep_alive(silence);
    }

    /// The id of the last request.
    pub(super) const fn request_id(&self) -> u32 {
        self.last_request_id
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
    pub(super) fn receive(
        &mut self,
        request_id: u32,
        deadline: Option<Instant>,
        beats: Option<&Beats<'_>>,
    ) -> Received {
        let mut pulse = beats.map(|beats| (Pulse::new(beats.policy, Instant::now()), beats));
        loop {
            let beat = pulse.as_ref().map(|(pulse, _)| pulse.until());
            let until = match (deadline, beat) {
                (Some(deadline), Some(beat)) => Some(deadline.min(beat)),
                (deadline, beat) => deadline.or(beat),
            };
            let message = match self.stream.receive(until) {
                Ok(message) => message,
                Err(ReceiveError::Timeout) => {
                    let now = Instant::now();
                    let is_over = deadline.is_some_and(|deadline| now >= deadline);
                    match &mut pulse {
                        Some((pulse, beats)) if !is_over && now >= pulse.until() => {
                            let due = pulse.due(now, self.stream.heard());
                            if !self.perform(due, beats) {
                                return Received::Lost;
                            }
                            continue;
                        }
                        // Or a message took too long from its first octet to its last.
                        _ => return Received::Timeout,
                    }
                }
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

    /// Sends a heartbeat if one is due. Whether the connection lives, as far as can be seen.
    fn perform(&mut self, due: Due, beats: &Beats<'_>) -> bool {
        match due {
            Due::Nothing => true,
            Due::Dead => false,
            Due::Beat => {
                let id = self.next_request_id();
                let Beats { version, endian, object_key, .. } = *beats;
                self.stream
                    .send(heartbeat::message(version, endian, id, object_key).bytes())
                    .is_ok()
            }
        }
    }
}
