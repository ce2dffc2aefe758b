//! The programs that are connected to the daemon, as sockets.
//!
//! Invariant: a token is used once; a program that is gone is reported once, by
//! [`Programs::bury`].

use crate::enlarge;
use bytes::BytesMut;
use quorba_groups::ProcessNumber;
use quorba_net::{Poller, Stream};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// What may wait for a program before it is not read from.
const UNSENT_BYTES_SHUT: usize = 4 << 20;

/// One program.
pub(crate) struct Program {
    pub(crate) stream: Stream,
    pub(crate) process: Option<ProcessNumber>,
    /// Read, and not a whole frame yet, or not yet taken.
    pub(crate) buffer: BytesMut,
    /// To be written at the end of the turn.
    pub(crate) out: BytesMut,
    is_dirty: bool,
}

/// See the module's text.
pub(crate) struct Programs {
    listener: UnixListener,
    next_token: u64,
    by_token: HashMap<u64, Program>,
    tokens: HashMap<ProcessNumber, u64>,
    /// Not read from.
    stopped: BTreeSet<u64>,
    /// With something to be written at the end of the turn.
    dirty: Vec<u64>,
    gone: Vec<ProcessNumber>,
}

impl Programs {
    /// Listens at `path`; a socket of an earlier life is replaced.
    pub(crate) fn listen(path: &Path, first_token: u64) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            next_token: first_token,
            by_token: HashMap::new(),
            tokens: HashMap::new(),
            stopped: BTreeSet::new(),
            dirty: Vec::new(),
            gone: Vec::new(),
        })
    }

    pub(crate) const fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Takes in a program that waits at the door.
    pub(crate) fn accept(&mut self, poller: &Poller) -> Option<u64> {
        let (socket, _) = self.listener.accept().ok()?;
        enlarge(&socket);
        let token = self.next_token;
        self.next_token += 1;
        let stream = Stream::local(socket, token, poller).ok()?;
        let (buffer, out) = (BytesMut::new(), BytesMut::new());
        let program = Program { stream, process: None, buffer, out, is_dirty: false };
        self.by_token.insert(token, program);
        Some(token)
    }

    /// The program at `token` is `process` from now on.
    pub(crate) fn name(&mut self, token: u64, process: ProcessNumber) {
        self.tokens.insert(process, token);
        if let Some(program) = self.by_token.get_mut(&token) {
            program.process = Some(process);
        }
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Program> {
        self.by_token.get_mut(&token)
    }

    /// What `process` is told goes in here; it is written at the end of the turn.
    pub(crate) fn out(&mut self, process: ProcessNumber) -> Option<&mut BytesMut> {
        let token = *self.tokens.get(&process)?;
        let program = self.by_token.get_mut(&token)?;
        if !program.is_dirty {
            program.is_dirty = true;
            self.dirty.push(token);
        }
        Some(&mut program.out)
    }

    /// Writes what the turn has brought.
    pub(crate) fn flush(&mut self, poller: &Poller) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            let Some(program) = self.by_token.get_mut(&token) else { continue };
            program.is_dirty = false;
            if program.stream.send_buffer(&mut program.out, poller).is_err() {
                self.end(token);
            } else if program.stream.unsent_bytes() > UNSENT_BYTES_SHUT {
                self.stop(token, poller);
            }
        }
        self.dirty = dirty;
    }

    /// Reads no more from a program, until [`Self::go_on`].
    pub(crate) fn stop(&mut self, token: u64, poller: &Poller) {
        let Some(program) = self.by_token.get_mut(&token) else { return };
        self.stopped.insert(token);
        if program.stream.set_reading(false, poller).is_err() {
            self.end(token);
        }
    }

    pub(crate) fn has_stopped(&self) -> bool {
        !self.stopped.is_empty()
    }

    /// Programs that were stopped and read what they are told.
    pub(crate) fn stopped(&self) -> Vec<u64> {
        let reads = |token: &&u64| {
            let program = self.by_token.get(token);
            program.is_none_or(|program| program.stream.unsent_bytes() <= UNSENT_BYTES_SHUT)
        };
        self.stopped.iter().filter(reads).copied().collect()
    }

    /// Reads from a program again.
    pub(crate) fn go_on(&mut self, token: u64, poller: &Poller) {
        self.stopped.remove(&token);
        let Some(program) = self.by_token.get_mut(&token) else { return };
        if program.stream.set_reading(true, poller).is_err() {
            self.end(token);
        }
    }

    /// A program is gone, or has to go.
    pub(crate) fn end(&mut self, token: u64) {
        self.stopped.remove(&token);
        if let Some(process) = self.by_token.remove(&token).and_then(|program| program.process) {
            self.tokens.remove(&process);
            self.gone.push(process);
        }
    }

    /// A program that is gone and not yet reported.
    pub(crate) fn bury(&mut self) -> Option<ProcessNumber> {
        self.gone.pop()
    }
}
