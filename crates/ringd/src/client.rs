//! A program's connection to the daemon on its machine.
//!
//! What it is not: a thread. Sending gathers; [`Client::push`] writes what the daemon takes, and
//! says so if it takes no more: that is how a sender is slowed down to what the ring can order.
//!
//! Invariant: notices come in the order of the daemon's. A program that sends must look at them,
//! too: the daemon does not read from one that does not.

use crate::protocol::{Notice, frame_bytes, put_join, put_leave, put_send};
use bytes::BytesMut;
use quorba_groups::{GroupName, GroupNumber, ProcessId};
use quorba_order::Guarantee;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Read at once.
const READ_BYTES: usize = 256 << 10;
/// Sent at once, at most so much is gathered before.
const GATHER_BYTES: usize = 128 << 10;

/// See the module's text.
pub struct Client {
    socket: UnixStream,
    /// `None` before the welcome.
    process: Option<ProcessId>,
    out: BytesMut,
    /// How much of `out` the daemon has taken.
    written: usize,
    buffer: Vec<u8>,
    /// What of the buffer was read and not yet handed out.
    unread: Range<usize>,
}

impl Client {
    /// Connects to the daemon's socket and waits for its welcome.
    ///
    /// # Errors
    /// There is no daemon, or it says something else.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_nonblocking(true)?;
        crate::enlarge(&socket);
        let (out, buffer) = (BytesMut::new(), vec![0; READ_BYTES]);
        let mut client = Self { socket, process: None, out, written: 0, buffer, unread: 0..0 };
        client.await_notice(None)?;
        let Some(Notice::Welcome(process)) = client.notice()? else {
            return Err(io::Error::other("the daemon does not say welcome"));
        };
        client.process = Some(process);
        Ok(client)
    }

    /// Who this program is.
    ///
    /// # Panics
    /// Never: a client that can be used has been welcomed.
    #[must_use]
    pub const fn process(&self) -> ProcessId {
        self.process.expect("welcomed")
    }

    /// Wants to be in a group; [`Notice::Joining`] brings its number.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn join(&mut self, name: &GroupName) -> io::Result<()> {
        put_join(&mut self.out, name);
        self.flush()
    }

    /// Wants to be out of a group.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn leave(&mut self, group: GroupNumber) -> io::Result<()> {
        put_leave(&mut self.out, group);
        self.flush()
    }

    /// Sends to a group, at the latest with the next [`Self::flush`]. `false`: it was not taken,
    /// because the daemon does not take what was sent before; look at notices, then try again.
    ///
    /// # Errors
    /// The daemon is gone.
    ///
    /// # Panics
    /// If the message is longer than [`crate::protocol::MESSAGE_BYTES_MAX`].
    pub fn send(
        &mut self,
        group: GroupNumber,
        guarantee: Guarantee,
        message: &[u8],
    ) -> io::Result<bool> {
        if self.out.len() - self.written >= GATHER_BYTES && !self.push()? {
            return Ok(false);
        }
        put_send(&mut self.out, group, guarantee, message);
        Ok(true)
    }

    /// Writes what was gathered, as far as the daemon takes it at once; whether that was all.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn push(&mut self) -> io::Result<bool> {
        while self.written < self.out.len() {
            match rustix::io::write(&self.socket, &self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }

    /// Whether something waits to be taken by the daemon.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.out.is_empty()
    }

    /// Writes what was gathered, and keeps what comes in meanwhile, however much.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.push()? {
            if self.wait(PollFlags::IN | PollFlags::OUT, None)?.contains(PollFlags::IN) {
                self.read()?;
            }
        }
        Ok(())
    }

    /// The next notice that is here already.
    ///
    /// # Errors
    /// The daemon speaks another language.
    pub fn notice(&mut self) -> io::Result<Option<Notice<'_>>> {
        let unread = &self.buffer[self.unread.clone()];
        let Some(bytes) = frame_bytes(unread).map_err(io::Error::other)? else { return Ok(None) };
        let start = self.unread.start;
        self.unread.start += bytes;
        let frame = &self.buffer[start..start + bytes];
        Notice::decode(frame).map(Some).map_err(io::Error::other)
    }

    /// Waits until there is a notice, at most `timeout`; whether there is one. Writes meanwhile
    /// what was gathered, as far as the daemon takes it.
    ///
    /// # Errors
    /// The daemon is gone, or speaks another language.
    pub fn await_notice(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        loop {
            let wanted = match self.push()? {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            let unread = &self.buffer[self.unread.clone()];
            if frame_bytes(unread).map_err(io::Error::other)?.is_some() {
                return Ok(true);
            }
            if !self.read()? && self.wait(wanted, timeout)?.is_empty() {
                return Ok(false);
            }
        }
    }

    fn wait(&self, what: PollFlags, timeout: Option<Duration>) -> io::Result<PollFlags> {
        let mut fds = [PollFd::new(&self.socket, what)];
        let timeout = timeout.map(quorba_net::timespec);
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(fds[0].revents()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads once what is there; whether anything was.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn read(&mut self) -> io::Result<bool> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.end == self.buffer.len() {
            self.make_room();
        }
        match rustix::io::read(&self.socket, &mut self.buffer[self.unread.end..]) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon is gone")),
            Ok(count) => {
                self.unread.end += count;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn make_room(&mut self) {
        if self.unread.start == 0 {
            // One frame, longer than all that was thought of.
            self.buffer.resize(self.buffer.len() * 2, 0);
        } else {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
