//! The programs that are connected to the daemon, as sockets.
//!
//! Invariants: a program's token is its process number, behind a base, so it is used once; a
//! program that is gone is reported once, by [`Programs::bury`].

use crate::enlarge;
use crate::protocol::put_message_head;
use bytes::{BufMut, Bytes, BytesMut};
use quorba_groups::{GroupNumber, ProcessId, ProcessNumber};
use quorba_net::{Poller, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// What may wait for a program before it is not read from, and everyone is slowed down.
const UNSENT_BYTES_SHUT: usize = 4 << 20;
/// When it is down to this, all is well again.
const UNSENT_BYTES_OPEN: usize = 1 << 20;

/// A message of so many bytes is handed to the system from where it is; a shorter one is copied.
const SHARED_BYTES_MIN: usize = 512;

/// One program.
pub(crate) struct Program {
    pub(crate) stream: Stream,
    /// Read, and not a whole frame yet, or not yet taken.
    pub(crate) buffer: BytesMut,
    /// To be written at the end of the turn, ...
    out: BytesMut,
    /// ... with these between: where in `out`, and what.
    shared: Vec<(usize, Bytes)>,
    is_dirty: bool,
}

impl Program {
    fn write_out(&mut self, poller: &Poller) -> io::Result<()> {
        let starts = std::iter::once(0).chain(self.shared.iter().map(|(at, _)| *at));
        let between = starts.zip(&self.shared);
        let pieces =
            between.flat_map(|(start, (at, message))| [&self.out[start..*at], &message[..]]);
        let last = self.shared.last().map_or(0, |(at, _)| *at);
        let pieces = pieces.chain([&self.out[last..]]);
        let sent = self.stream.send_pieces(pieces.filter(|piece| !piece.is_empty()), poller);
        self.out.clear();
        self.shared.clear();
        sent
    }
}

/// See the module's text.
pub(crate) struct Programs {
    listener: UnixListener,
    /// Tokens begin here.
    base: u64,
    programs: BTreeMap<ProcessNumber, Program>,
    /// Not read from.
    stopped: BTreeSet<ProcessNumber>,
    /// With too much to be read by them.
    slow: BTreeSet<ProcessNumber>,
    /// With something to be written at the end of the turn.
    dirty: Vec<ProcessNumber>,
    gone: Vec<ProcessNumber>,
}

impl Programs {
    /// Listens at `path`; a socket of an earlier life is replaced.
    pub(crate) fn listen(path: &Path, base: u64) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            base,
            programs: BTreeMap::new(),
            stopped: BTreeSet::new(),
            slow: BTreeSet::new(),
            dirty: Vec::new(),
            gone: Vec::new(),
        })
    }

    pub(crate) const fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// A program that waits at the door.
    pub(crate) fn accept(&self) -> Option<UnixStream> {
        self.listener.accept().ok().map(|(socket, _)| socket)
    }

    /// Takes it in as `process`.
    pub(crate) fn admit(&mut self, process: ProcessNumber, socket: UnixStream, poller: &Poller) {
        enlarge(&socket);
        match Stream::local(socket, self.base + u64::from(process.0), poller) {
            Ok(stream) => {
                let (buffer, out) = (BytesMut::new(), BytesMut::new());
                let shared = Vec::new();
                let program = Program { stream, buffer, out, shared, is_dirty: false };
                self.programs.insert(process, program);
            }
            Err(_) => self.gone.push(process),
        }
    }

    /// Whose token it is.
    pub(crate) fn process(&self, token: u64) -> Option<ProcessNumber> {
        u32::try_from(token.checked_sub(self.base)?).ok().map(ProcessNumber)
    }

    pub(crate) fn get(&mut self, process: ProcessNumber) -> Option<&mut Program> {
        self.programs.get_mut(&process)
    }

    /// What `process` is told goes in here; it is written at the end of the turn.
    pub(crate) fn out(&mut self, process: ProcessNumber) -> Option<&mut BytesMut> {
        Some(&mut self.dirty(process)?.out)
    }

    /// `process`, to which something is to be written at the end of the turn.
    fn dirty(&mut self, process: ProcessNumber) -> Option<&mut Program> {
        let program = self.programs.get_mut(&process)?;
        if !program.is_dirty {
            program.is_dirty = true;
            self.dirty.push(process);
        }
        Some(program)
    }

    /// Tells `process` of a message; a long one is not copied for that.
    pub(crate) fn tell_message(
        &mut self,
        process: ProcessNumber,
        group: GroupNumber,
        from: ProcessId,
        message: Bytes,
    ) {
        let Some(Program { out, shared, .. }) = self.dirty(process) else { return };
        put_message_head(out, group, from, message.len());
        if message.len() < SHARED_BYTES_MIN {
            out.put_slice(&message);
        } else {
            shared.push((out.len(), message));
        }
    }

    /// Writes what the turn has brought; whether it was anything.
    pub(crate) fn flush(&mut self, poller: &Poller) -> bool {
        let mut dirty = std::mem::take(&mut self.dirty);
        let any = !dirty.is_empty();
        for process in dirty.drain(..) {
            let Some(program) = self.programs.get_mut(&process) else { continue };
            program.is_dirty = false;
            if program.write_out(poller).is_err() {
                self.end(process);
            } else if program.stream.unsent_bytes() > UNSENT_BYTES_SHUT {
                self.slow.insert(process);
                self.stop(process, poller);
            }
        }
        self.dirty = dirty;
        any
    }

    /// Whether a program does not keep up with what it is told.
    pub(crate) fn is_any_slow(&mut self) -> bool {
        let programs = &self.programs;
        self.slow.retain(|process| {
            let program = programs.get(process);
            program.is_some_and(|program| program.stream.unsent_bytes() > UNSENT_BYTES_OPEN)
        });
        !self.slow.is_empty()
    }

    /// Reads no more from a program, until [`Self::go_on`].
    pub(crate) fn stop(&mut self, process: ProcessNumber, poller: &Poller) {
        let Some(program) = self.programs.get_mut(&process) else { return };
        self.stopped.insert(process);
        if program.stream.set_reading(false, poller).is_err() {
            self.end(process);
        }
    }

    pub(crate) fn has_stopped(&self) -> bool {
        !self.stopped.is_empty()
    }

    /// Programs that were stopped and read what they are told.
    pub(crate) fn stopped(&self) -> Vec<ProcessNumber> {
        let reads = |process: &&ProcessNumber| {
            let program = self.programs.get(process);
            program.is_none_or(|program| program.stream.unsent_bytes() <= UNSENT_BYTES_OPEN)
        };
        self.stopped.iter().filter(reads).copied().collect()
    }

    /// Reads from a program again.
    pub(crate) fn go_on(&mut self, process: ProcessNumber, poller: &Poller) {
        self.stopped.remove(&process);
        let Some(program) = self.programs.get_mut(&process) else { return };
        if program.stream.set_reading(true, poller).is_err() {
            self.end(process);
        }
    }

    /// A program is gone, or has to go.
    pub(crate) fn end(&mut self, process: ProcessNumber) {
        self.stopped.remove(&process);
        if self.programs.remove(&process).is_some() {
            self.gone.push(process);
        }
    }

    /// A program that is gone and not yet reported.
    pub(crate) fn bury(&mut self) -> Option<ProcessNumber> {
        self.gone.pop()
    }
}
