//! GIOP messages over a TCP stream, with deadlines.
//!
//! What it is not: a connection's state; both the server's and the client's build on it.
//!
//! Invariants: what is buffered grows with what came, never with what a header declares; a message
//! that began to arrive must be complete within [`MESSAGE_WITHIN`].

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use quorba_giop::{Framer, FramerLimits, Message, limits};
use socket2::{SockRef, TcpKeepalive};

/// How long a message may take from its first octet to its last.
const MESSAGE_WITHIN: Duration = Duration::from_secs(30);
/// How long a peer may refuse to take what is written.
const WRITE_WITHIN: Duration = Duration::from_secs(30);
/// Octets that are read at once.
const READ_BYTES: usize = 16 << 10;

/// A stream of messages.
pub(crate) struct MessageStream {
    stream: TcpStream,
    framer: Framer,
    buffer: Box<[u8]>,
    /// The read timeout that the socket has, so that it is set only when it changes.
    timeout: Option<Duration>,
    /// When the message that has come in part began to arrive.
    partial_since: Option<Instant>,
    /// When octets last came.
    heard: Instant,
}

/// Why no message came.
#[derive(Debug)]
pub(crate) enum ReceiveError {
    /// The deadline passed.
    Timeout,
    /// The peer closed or reset the connection.
    Lost,
    /// What came is not GIOP, or more of it than allowed; the stream cannot be read on.
    Malformed,
}

impl MessageStream {
    /// Takes over a connected socket.
    pub(crate) fn new(stream: TcpStream, message_bytes_max: usize) -> io::Result<Self> {
        // Calls and replies are small and waited for.
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(Some(WRITE_WITHIN))?;
        let framer = Framer::new(FramerLimits {
            message_bytes_max,
            fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
            buffered_bytes_max: message_bytes_max.saturating_mul(2),
        });
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        let heard = Instant::now();
        Ok(Self { stream, framer, buffer, timeout: None, partial_since: None, heard })
    }

    /// Writes a whole message.
    pub(crate) fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        self.stream.write_all(octets)
    }

    /// The next message; none at `deadline`: as long as it takes.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> Result<Message, ReceiveError> {
        loop {
            match self.framer.next() {
                Ok(Some(message)) => {
                    self.partial_since = None;
                    return Ok(message);
                }
                Ok(None) => {}
                Err(_) => return Err(ReceiveError::Malformed),
            }
            let mut until = deadline;
            if self.framer.buffered_bytes() > 0 {
                let since = *self.partial_since.get_or_insert_with(Instant::now);
                let complete = since + MESSAGE_WITHIN;
                until = Some(until.map_or(complete, |deadline| deadline.min(complete)));
            }
            let count = self.read(until)?;
            self.framer.push(&self.buffer[..count]);
        }
    }

    fn read(&mut self, until: Option<Instant>) -> Result<usize, ReceiveError> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ReceiveError::Timeout);
            }
            let timeout = left.map(coarse);
            if timeout != self.timeout {
                self.stream.set_read_timeout(timeout).map_err(|_| ReceiveError::Lost)?;
                self.timeout = timeout;
            }
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(ReceiveError::Lost),
                Ok(count) => {
                    self.heard = Instant::now();
                    return Ok(count);
                }
                Err(error) => match error.kind() {
                    // Whether it is the deadline that passed, the loop sees.
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(ReceiveError::Lost),
                },
            }
        }
    }

    /// When octets last came; before the first, when it was connected.
    pub(crate) const fn heard(&self) -> Instant {
        self.heard
    }

    /// Whether the peer has closed the connection, or written what nobody asked for, while it
    /// was idle.
    pub(crate) fn is_disturbed(&self) -> bool {
        let peeked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let restored = self.stream.set_nonblocking(false);
        restored.is_err() || !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// The kernel asks the peer whether it is there when nothing was heard of it for `silence`, and
    /// ends the connection if it says nothing for about as long.
    pub(crate) fn keep_alive(&self, silence: Duration) {
        let questions = TcpKeepalive::new().with_time(silence).with_interval(silence / 4);
        // A system that cannot do it finds out when something is sent.
        let _ = SockRef::from(&self.stream).set_tcp_keepalive(&questions.with_retries(4));
    }
}

/// The timeout rounded up to a step, so that calls with equal timeouts find the socket's set
/// already. Deadlines are met a step late at most.
fn coarse(left: Duration) -> Duration {
    let step_ms = if left > Duration::from_secs(1) { 100 } else { 5 };
    let steps = left.as_millis() / step_ms + 1;
    Duration::from_millis(u64::try_from(steps * step_ms).unwrap_or(u64::MAX))
}
