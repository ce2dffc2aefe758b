//! One connection of a link, from whichever side, from its beginning to its end.
//!
//! Invariants: before it is proven it takes no byte more than the handshake's next message has, and
//! lives no longer than [`PROVE_WITHIN`]; after that messages go from who called to who was called,
//! and whatever comes the other way, or cannot be opened, ends it.

use super::frame::Frames;
use super::handshake::{Boot, Handshake, MESSAGE_BYTES_MAX, NONCE_BYTES, Nonce, Step};
use super::queue::{Queue, Sent};
use crate::poller::{Poller, Ready};
use crate::stream::{ReadOutcome, Stream};
use bytes::Bytes;
use quorba_base::{Lane, NodeId};
use ring::hmac;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant as Clock};

/// Connecting included. A node that does not run is called again after that; what it cost is
/// that its death would have shown only by its silence.
pub(super) const PROVE_WITHIN: Duration = Duration::from_secs(2);
/// What the kernel keeps unsent: enough to fill the gap until it is looked at again, and little
/// that an urgent message has to wait for.
const UNSENT_BYTES: u32 = 128 << 10;
/// Messages that nobody takes for so long are lost with their link.
const SILENCE: Duration = Duration::from_secs(10);

enum Stage {
    Connecting(Handshake),
    /// `bytes`: what has come of the next message.
    Proving {
        handshake: Handshake,
        bytes: Vec<u8>,
    },
    /// It is this boot's.
    Proven(Boot, Traffic),
}

/// What happens on a proven link.
enum Traffic {
    Sends(Queue),
    Receives(Frames),
    /// A later link of that node is there.
    Muted,
}

/// See the module's text.
pub(super) struct Link {
    stream: Stream,
    stage: Stage,
    begun: Clock,
}

/// What is needed to handle an event.
pub(super) struct Tools<'a> {
    pub(super) keys: &'a [hmac::Key],
    pub(super) poller: &'a Poller,
    /// Where what comes is read to.
    pub(super) room: &'a mut [u8],
    /// Messages that have come.
    pub(super) came: &'a mut Vec<Bytes>,
}

impl Link {
    /// I call node `called`, from one address to the other.
    pub(super) fn call(
        (me, called): (Boot, NodeId),
        (from, to): (IpAddr, SocketAddr),
        token: u64,
        poller: &Poller,
    ) -> io::Result<Self> {
        let handshake = Handshake::Calling { me, called, nonce: fresh_nonce()? };
        let stream = Stream::connect_from(Some(from), to, token, poller)?;
        Ok(Self { stream, stage: Stage::Connecting(handshake), begun: Clock::now() })
    }

    /// Somebody has called me.
    pub(super) fn called(
        me: Boot,
        socket: TcpStream,
        token: u64,
        poller: &Poller,
    ) -> io::Result<Self> {
        let challenge = fresh_nonce()?;
        let stream = Stream::accepted(socket, token, poller)?;
        let stage =
            Stage::Proving { handshake: Handshake::Called { me, challenge }, bytes: Vec::new() };
        let mut link = Self { stream, stage, begun: Clock::now() };
        link.send_step(Handshake::challenge(&challenge), poller)?;
        Ok(link)
    }

    /// Whose it is; `None` as long as nobody has proven it.
    pub(super) const fn proven(&self) -> Option<Boot> {
        match self.stage {
            Stage::Proven(boot, _) => Some(boot),
            Stage::Connecting(_) | Stage::Proving { .. } => None,
        }
    }

    /// When it has to be proven; `None` if it is.
    pub(super) fn prove_by(&self) -> Option<Clock> {
        self.proven().is_none().then(|| self.begun + PROVE_WITHIN)
    }

    /// What comes on it counts no more.
    pub(super) fn mute(&mut self) {
        if let Stage::Proven(_, traffic) = &mut self.stage {
            *traffic = Traffic::Muted;
        }
    }

    /// Whether messages come on it.
    pub(super) const fn receives(&self) -> bool {
        matches!(self.stage, Stage::Proven(_, Traffic::Receives(_)))
    }

    /// Puts a message behind the others.
    ///
    /// # Panics
    /// If it is longer than a message may be.
    pub(super) fn send(&mut self, lane: Lane, message: Bytes) -> Sent {
        match &mut self.stage {
            Stage::Proven(_, Traffic::Sends(queue)) => queue.push(lane, message),
            _ => Sent::NotConnected,
        }
    }

    /// Bytes that wait to be sent.
    pub(super) fn queued_bytes(&self) -> usize {
        match &self.stage {
            Stage::Proven(_, Traffic::Sends(queue)) => queue.bytes(),
            _ => 0,
        }
    }

    /// Writes what the socket takes. Whether a queue that was full has room again.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn flush(&mut self, poller: &Poller) -> io::Result<bool> {
        let Stage::Proven(_, Traffic::Sends(queue)) = &mut self.stage else { return Ok(false) };
        loop {
            let wire = queue.wire();
            let length = wire.len();
            if length == 0 {
                break;
            }
            let count = self.stream.write(wire)?;
            queue.written(count);
            if count < length {
                break;
            }
        }
        self.stream.set_writing(queue.bytes() > 0, poller)?;
        Ok(queue.has_room_again())
    }

    /// Something happened to it. `Some`: just now, that node has proven that it is its.
    ///
    /// # Errors
    /// It has ended, or is of no use.
    pub(super) fn handle(&mut self, event: Ready, tools: Tools<'_>) -> io::Result<Option<Boot>> {
        let Tools { keys, poller, room, came } = tools;
        if event.hung_up {
            let reset = || io::ErrorKind::ConnectionReset.into();
            return Err(self.stream.take_error().unwrap_or_else(reset));
        }
        match &mut self.stage {
            Stage::Connecting(handshake) => {
                let handshake = *handshake;
                if event.writable {
                    self.stream.check_connected(poller)?;
                    self.stage = Stage::Proving { handshake, bytes: Vec::new() };
                }
                Ok(None)
            }
            Stage::Proving { .. } | Stage::Proven(..) if !event.readable => Ok(None),
            Stage::Proving { handshake, bytes } => {
                let wanted = handshake.wanted_bytes().saturating_sub(bytes.len());
                let mut room = [0; MESSAGE_BYTES_MAX];
                let count = read(&mut self.stream, &mut [IoSliceMut::new(&mut room[..wanted])])?;
                bytes.extend_from_slice(&room[..count]);
                if count < wanted {
                    return Ok(None);
                }
                let step = handshake.handle(keys, bytes);
                self.go_on(step.ok_or(io::ErrorKind::PermissionDenied)?, poller)
            }
            Stage::Proven(_, Traffic::Receives(frames)) => {
                let mut rooms = [IoSliceMut::new(frames.rest()), IoSliceMut::new(room)];
                let count = read(&mut self.stream, &mut rooms)?;
                let taken = frames.take(count, room, |message| came.push(message));
                taken.map(|()| None).map_err(|_| io::ErrorKind::InvalidData.into())
            }
            Stage::Proven(_, traffic) => {
                let count = read(&mut self.stream, &mut [IoSliceMut::new(room)])?;
                match traffic {
                    Traffic::Sends(_) if count > 0 => Err(io::ErrorKind::InvalidData.into()),
                    _ => Ok(None),
                }
            }
        }
    }

    fn go_on(&mut self, step: Step, poller: &Poller) -> io::Result<Option<Boot>> {
        match step {
            Step::Reply(reply, handshake) => {
                self.stage = Stage::Proving { handshake, bytes: Vec::new() };
                self.send_step(reply, poller).map(|()| None)
            }
            Step::Proven(proof, last) => {
                // Who has nothing left to say has called.
                let traffic = if last.is_empty() {
                    self.stream.bound(UNSENT_BYTES, SILENCE)?;
                    Traffic::Sends(Queue::new(proof.key))
                } else {
                    Traffic::Receives(Frames::new(proof.key))
                };
                self.stage = Stage::Proven(proof.peer, traffic);
                self.send_step(last, poller).map(|()| Some(proof.peer))
            }
        }
    }

    /// The few bytes of a handshake always find room in a new connection's buffer.
    fn send_step(&mut self, message: Vec<u8>, poller: &Poller) -> io::Result<()> {
        if !message.is_empty() {
            self.stream.send(Bytes::from(message), poller)?;
        }
        if self.stream.has_unsent() { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }
}

/// How much of what is there was read; none if nothing is.
fn read(stream: &mut Stream, rooms: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    match stream.read_vectored(rooms) {
        ReadOutcome::Bytes(count) => Ok(count),
        ReadOutcome::Nothing => Ok(0),
        ReadOutcome::Closed => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn fresh_nonce() -> io::Result<Nonce> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}
