//! One connection of a link, from whichever side, from its beginning to its end.
//!
//! Invariants: before it is proven it takes no byte more than the handshake's next message has, and
//! lives no longer than [`PROVE_WITHIN`]; what comes after that is thrown away.

use super::handshake::{Handshake, MESSAGE_BYTES_MAX, NONCE_BYTES, Nonce, Step};
use crate::poller::{Poller, Ready};
use crate::stream::{ReadOutcome, Stream};
use bytes::Bytes;
use quorba_base::NodeId;
use ring::hmac;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant as Clock};

/// Connecting included. A node that does not run is called again after that; what it cost is
/// that its death would have shown only by its silence.
pub(super) const PROVE_WITHIN: Duration = Duration::from_secs(2);

enum Stage {
    Connecting(Handshake),
    /// `bytes`: what has come of the next message.
    Proving {
        handshake: Handshake,
        bytes: Vec<u8>,
    },
    /// It is this node's.
    Proven(NodeId),
}

/// See the module's text.
pub(super) struct Link {
    stream: Stream,
    stage: Stage,
    begun: Clock,
}

impl Link {
    /// I call node `called`, from one address to the other.
    pub(super) fn call(
        (me, called): (NodeId, NodeId),
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
        me: NodeId,
        socket: TcpStream,
        token: u64,
        poller: &Poller,
    ) -> io::Result<Self> {
        let challenge = fresh_nonce()?;
        let stream = Stream::accepted(socket, token, poller)?;
        let stage =
            Stage::Proving { handshake: Handshake::Called { me, challenge }, bytes: Vec::new() };
        let mut link = Self { stream, stage, begun: Clock::now() };
        link.send(Handshake::challenge(&challenge), poller)?;
        Ok(link)
    }

    /// Whose it is; `None` as long as nobody has proven it.
    pub(super) const fn proven(&self) -> Option<NodeId> {
        match self.stage {
            Stage::Proven(node) => Some(node),
            Stage::Connecting(_) | Stage::Proving { .. } => None,
        }
    }

    /// When it has to be proven; `None` if it is.
    pub(super) fn prove_by(&self) -> Option<Clock> {
        self.proven().is_none().then(|| self.begun + PROVE_WITHIN)
    }

    /// Something happened to it. `Some`: just now, that node has proven that it is its.
    ///
    /// # Errors
    /// It has ended, or is of no use.
    pub(super) fn handle(
        &mut self,
        event: Ready,
        keys: &[hmac::Key],
        poller: &Poller,
    ) -> io::Result<Option<NodeId>> {
        if event.hung_up {
            return Err(io::ErrorKind::ConnectionReset.into());
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
            Stage::Proving { .. } | Stage::Proven(_) if !event.readable => Ok(None),
            Stage::Proving { handshake, bytes } => {
                let wanted = handshake.wanted_bytes().saturating_sub(bytes.len());
                let mut room = [0; MESSAGE_BYTES_MAX];
                let came = read(&mut self.stream, &mut room[..wanted])?;
                bytes.extend_from_slice(came);
                if came.len() < wanted {
                    return Ok(None);
                }
                let step = handshake.handle(keys, bytes);
                self.go_on(step.ok_or(io::ErrorKind::PermissionDenied)?, poller)
            }
            Stage::Proven(_) => read(&mut self.stream, &mut [0; 64]).map(|_| None),
        }
    }

    fn go_on(&mut self, step: Step, poller: &Poller) -> io::Result<Option<NodeId>> {
        match step {
            Step::Reply(reply, handshake) => {
                self.stage = Stage::Proving { handshake, bytes: Vec::new() };
                self.send(reply, poller).map(|()| None)
            }
            Step::Proven(node, last) => {
                self.stage = Stage::Proven(node);
                self.send(last, poller).map(|()| Some(node))
            }
        }
    }

    /// The few bytes of a handshake always find room in a new connection's buffer.
    fn send(&mut self, message: Vec<u8>, poller: &Poller) -> io::Result<()> {
        if !message.is_empty() {
            self.stream.send(Bytes::from(message), poller)?;
        }
        if self.stream.has_unsent() { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }
}

/// What is there; nothing if nothing is.
fn read<'a>(stream: &mut Stream, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
    match stream.read(room) {
        ReadOutcome::Bytes(count) => Ok(&room[..count]),
        ReadOutcome::Nothing => Ok(&[]),
        ReadOutcome::Closed => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn fresh_nonce() -> io::Result<Nonce> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}
