//! A program's connection to the daemon on its machine.
//!
//! What it is not: a thread. Sending gathers; [`Client::flush`] writes, and waits if the daemon
//! does not take it: that is how a sender is slowed down to what the ring can order.
//!
//! Invariants: notices come in the order of the daemon's; while a flush waits, what comes in is
//! kept, so that two sides that send much never wait for each other.

use crate::protocol::{Notice, next_frame, put_join, put_leave, put_send};
use bytes::BytesMut;
use quorba_groups::{GroupName, GroupNumber, ProcessId};
use quorba_order::Guarantee;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
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
    buffer: BytesMut,
    scratch: Vec<u8>,
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
        let (out, buffer) = (BytesMut::new(), BytesMut::new());
        let scratch = vec![0; READ_BYTES];
        let mut client = Self { socket, process: None, out, buffer, scratch };
        match client.next(None)? {
            Some(Notice::Welcome(process)) => client.process = Some(process),
            _ => return Err(io::Error::other("the daemon does not say welcome")),
        }
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

    /// Sends to a group, at the latest with the next [`Self::flush`].
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
    ) -> io::Result<()> {
        put_send(&mut self.out, group, guarantee, message);
        if self.out.len() >= GATHER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what was gathered, and takes in what comes meanwhile.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.out.len() {
            match rustix::io::write(&self.socket, &self.out[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if self.wait(PollFlags::IN | PollFlags::OUT, None)?.contains(PollFlags::IN) {
                        self.read()?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.out.clear();
        Ok(())
    }

    /// The next notice that is here already.
    ///
    /// # Errors
    /// The daemon speaks another language.
    pub fn notice(&mut self) -> io::Result<Option<Notice>> {
        let frame = next_frame(&mut self.buffer).map_err(io::Error::other)?;
        frame.map(|frame| Notice::decode(frame).map_err(io::Error::other)).transpose()
    }

    /// Flushes, then waits for the next notice, at most `timeout`.
    ///
    /// # Errors
    /// The daemon is gone, or speaks another language.
    pub fn next(&mut self, timeout: Option<Duration>) -> io::Result<Option<Notice>> {
        self.flush()?;
        loop {
            if let Some(notice) = self.notice()? {
                return Ok(Some(notice));
            }
            if self.read()? {
                continue;
            }
            if self.wait(PollFlags::IN, timeout)?.is_empty() {
                return Ok(None);
            }
        }
    }

    fn wait(&self, what: PollFlags, timeout: Option<Duration>) -> io::Result<PollFlags> {
        let mut fds = [PollFd::new(&self.socket, what)];
        let timeout = timeout.map(crate::timespec);
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
        match rustix::io::read(&self.socket, &mut *self.scratch) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon is gone")),
            Ok(count) => {
                self.buffer.extend_from_slice(&self.scratch[..count]);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
