//! One connection: reads messages, answers them in order.
//!
//! What it is not: pipelined. The next message is read when the reply to the one before is out;
//! what a client sends meanwhile waits in its socket.
//!
//! Invariants: a connection ends with CloseConnection when the server stops, with MessageError
//! when what came is not GIOP; either is sent after the last reply, and the peer gets the chance
//! to read it.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use quorba_giop::{Version, build};

use super::answer::{Answer, answer};
use super::{SECRET_BYTES, Shared};
use crate::stream::{MessageStream, ReceiveError};

/// How long a peer has to read the last message and close.
const LINGER: Duration = Duration::from_millis(500);
/// Octets of a peer that goes on writing that are thrown away, at most.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// How long a peer has to show the secret.
const SECRET_WITHIN: Duration = Duration::from_secs(5);

/// Serves the connection until either side ends it.
pub(super) fn serve(stream: TcpStream, shared: &Shared) {
    if shared.options.secret.is_some_and(|secret| !shows(&stream, &secret)) {
        return;
    }
    let Ok(handle) = stream.try_clone() else { return };
    let Ok(mut stream) = MessageStream::new(stream, shared.options.message_bytes_max) else {
        return;
    };
    // Until a message says otherwise: everybody understands the oldest.
    let mut version = Version::V1_0;
    let mut code_sets = None;
    loop {
        let last = match stream.receive(None) {
            Ok(message) => {
                version = message.version();
                match answer(&message, shared, &mut code_sets) {
                    Answer::Message(reply) => {
                        if stream.send(reply.bytes()).is_err() {
                            return;
                        }
                        None
                    }
                    Answer::Nothing => None,
                    Answer::Malformed => Some(build::message_error(version)),
                    Answer::Closed => return,
                }
            }
            Err(ReceiveError::Malformed) => Some(build::message_error(version)),
            Err(ReceiveError::Lost) if !shared.is_stopping() => return,
            Err(ReceiveError::Lost | ReceiveError::Timeout) => {
                Some(build::close_connection(version))
            }
        };
        let last = last.or_else(|| shared.is_stopping().then(|| build::close_connection(version)));
        if let Some(last) = last {
            if stream.send(last.bytes()).is_ok() {
                linger(&handle);
            }
            return;
        }
    }
}

/// Whether the peer begins with the secret.
fn shows(mut stream: &TcpStream, secret: &[u8; SECRET_BYTES]) -> bool {
    let mut shown = [0; SECRET_BYTES];
    stream.set_read_timeout(Some(SECRET_WITHIN)).is_ok()
        && stream.read_exact(&mut shown).is_ok()
        && stream.set_read_timeout(None).is_ok()
        && same_secret(&shown, secret)
}

/// Compares without telling, by its duration, how much of a guess was right.
#[must_use]
pub fn same_secret(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Tells a client that came too late, or is one too many, that it was not served.
pub(super) fn refuse(stream: TcpStream) {
    let handle = stream.try_clone();
    let close = build::close_connection(Version::V1_0);
    if let (Ok(handle), Ok(mut stream)) = (handle, MessageStream::new(stream, 0))
        && stream.send(close.bytes()).is_ok()
    {
        let _gone = handle.shutdown(Shutdown::Write);
    }
}

/// Waits until the peer has closed: closing while octets of it are unread would reset the
/// connection, and the reset can overtake the last message.
fn linger(mut stream: &TcpStream) {
    let deadline = Instant::now() + LINGER;
    let mut thrown_away = 0;
    let mut buffer = [0; 4096];
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    while thrown_away < LINGER_BYTES_MAX && Instant::now() < deadline {
        if stream.set_read_timeout(Some(LINGER)).is_err() {
            return;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => thrown_away += count,
        }
    }
}
