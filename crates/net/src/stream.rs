//! A non-blocking connection (TCP, or local) with what is still to be sent on it.
//!
//! Invariant: bytes go out in the order in which they were given; what a slow reader leaves
//! unsent is bounded, and a reader that is slower than that is cut off.

use crate::poller::{Interest, Poller};
use crate::tls::{PeerCertificate, Session, TlsAcceptor};
use bytes::{Buf, Bytes, BytesMut};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Bytes that may wait for a slow reader when more is sent.
const UNSENT_MAX: usize = 64 << 20;

/// Bytes that are gathered before some are sent.
const GATHERED_MAX: usize = 256 << 10;

/// What one [`Stream::flush`] sends at most: whoever passes the token on waits meanwhile.
const FLUSHED_MAX: usize = 256 << 10;

/// Pieces up to this long that wait for a slow reader are joined, to so many bytes: each costs more
/// than a few bytes, and is not counted.
const SMALL_MAX: usize = 1 << 10;
const JOINED_MAX: usize = 16 << 10;

/// Pieces that one system call writes.
const SLICES: usize = 256;

/// What came of reading.
pub enum ReadOutcome {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other side is gone.
    Closed,
}

/// See the module's text.
pub struct Stream {
    socket: Socket,
    token: u64,
    unsent: VecDeque<Bytes>,
    unsent_bytes: usize,
    /// Small pieces behind `unsent`, joined; only while that has something.
    joined: BytesMut,
    wants_read: bool,
    /// The other side has ended its sending: there is nothing to be read any more.
    at_end: bool,
    /// The owner has something to write, see [`Self::write`].
    wants_write: bool,
    /// The socket took no more when it was written to last: there is room when the poller says so.
    is_full: bool,
    interest: Interest,
    /// To be closed as soon as everything is sent.
    closing: bool,
    /// Everything is sealed with it; what waits unsent is still plain.
    tls: Option<Box<Session>>,
}

impl Stream {
    /// Takes over an accepted connection.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn accepted(socket: TcpStream, token: u64, poller: &Poller) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Self::over(socket.into(), token, poller)
    }

    /// Takes over an accepted connection on which TLS is spoken.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn accepted_tls(
        socket: TcpStream,
        token: u64,
        acceptor: &TlsAcceptor,
        poller: &Poller,
    ) -> io::Result<Self> {
        let session = acceptor.session()?;
        let stream = Self::accepted(socket, token, poller)?;
        Ok(Self { tls: Some(Box::new(session)), ..stream })
    }

    /// Whether TLS is spoken.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether it is not yet known who the other side is.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// What the other side has shown, if anything.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<PeerCertificate> {
        self.tls.as_ref()?.peer()
    }

    /// Why TLS has failed, if it has.
    #[must_use]
    pub fn tls_fault(&self) -> Option<String> {
        self.tls.as_ref()?.fault()
    }

    /// Takes over a connection within this machine.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn local(socket: UnixStream, token: u64, poller: &Poller) -> io::Result<Self> {
        Self::over(OwnedFd::from(socket).into(), token, poller)
    }

    fn over(socket: Socket, token: u64, poller: &Poller) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        poller.add(&socket, token, Interest::READ)?;
        Ok(Self::new(socket, token, Interest::READ))
    }

    /// Begins to connect; it is connected when it becomes writable, see [`Self::check_connected`].
    ///
    /// # Errors
    /// What the system says at once; a later refusal shows in [`Self::check_connected`].
    pub fn connect(to: SocketAddr, token: u64, poller: &Poller) -> io::Result<Self> {
        Self::connect_from(None, to, token, poller)
    }

    /// As [`Self::connect`], from the address `from`, where the host has several.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_from(
        from: Option<IpAddr>,
        to: SocketAddr,
        token: u64,
        poller: &Poller,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(from) = from {
            socket.bind(&SocketAddr::new(from, 0).into())?;
        }
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&to.into()) {
            Ok(()) => {}
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        poller.add(&socket, token, Interest::WRITE)?;
        Ok(Self::new(socket, token, Interest::WRITE))
    }

    /// As [`Self::connect`], to a socket within this machine.
    ///
    /// # Errors
    /// What the system says; a listener that has too many waiting is one that refuses.
    pub fn connect_local(to: &Path, token: u64, poller: &Poller) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(to)?)?;
        poller.add(&socket, token, Interest::WRITE)?;
        Ok(Self::new(socket, token, Interest::WRITE))
    }

    fn new(socket: Socket, token: u64, interest: Interest) -> Self {
        Self {
            socket,
            token,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            joined: BytesMut::new(),
            wants_read: true,
            at_end: false,
            wants_write: false,
            is_full: false,
            interest,
            closing: false,
            tls: None,
        }
    }

    /// After the first writability: whether the connection came about.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn check_connected(&mut self, poller: &Poller) -> io::Result<()> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        self.socket.peer_addr()?;
        self.update(poller)
    }

    /// Reads once. With TLS the buffer should hold two records (36 KiB) at least, and the owner
    /// flushes afterwards.
    pub fn read(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        if let Some(tls) = &mut self.tls {
            return tls.read(&mut self.socket, buffer);
        }
        match self.socket.read(buffer) {
            Ok(0) => {
                self.at_end = true;
                ReadOutcome::Closed
            }
            Ok(count) => ReadOutcome::Bytes(count),
            Err(error) if would_block(&error) => ReadOutcome::Nothing,
            Err(_) => ReadOutcome::Closed,
        }
    }

    /// Reads once, into one room after the other.
    pub(crate) fn read_vectored(&mut self, rooms: &mut [IoSliceMut<'_>]) -> ReadOutcome {
        match self.socket.read_vectored(rooms) {
            Ok(0) => ReadOutcome::Closed,
            Ok(count) => ReadOutcome::Bytes(count),
            Err(error) if would_block(&error) => ReadOutcome::Nothing,
            Err(_) => ReadOutcome::Closed,
        }
    }

    /// Whether the other side has ended its sending in good order: it may still read.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// Writes what the socket takes now, and gives how much that is. Only for an owner that keeps
    /// the rest itself, and sends nothing in another way.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.socket.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if would_block(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Whether the owner wants to know when it can write.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub(crate) fn set_writing(&mut self, writing: bool, poller: &Poller) -> io::Result<()> {
        self.wants_write = writing;
        self.update(poller)
    }

    /// What went wrong with the connection, if anything did.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.socket.take_error().unwrap_or_else(Some)
    }

    /// The kernel keeps no more than `unsent_bytes` that are not under way, and ends the
    /// connection if nothing of what is has arrived for so long.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub(crate) fn bound(&self, unsent_bytes: u32, silence: Duration) -> io::Result<()> {
        self.socket.set_tcp_notsent_lowat(unsent_bytes)?;
        self.socket.set_tcp_user_timeout(Some(silence))
    }

    /// The kernel asks the other side whether it is still there when nothing was heard of it for
    /// `silence`, and ends the connection if it says nothing for about as long.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn keep_alive(&self, silence: Duration) -> io::Result<()> {
        let questions = TcpKeepalive::new().with_time(silence).with_interval(silence / 4);
        self.socket.set_tcp_keepalive(&questions.with_retries(4))
    }

    /// Sends, now or when there is room.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn send(&mut self, bytes: Bytes, poller: &Poller) -> io::Result<()> {
        let mut bytes = bytes;
        if self.unsent.is_empty() && self.tls.is_none() {
            match self.socket.write(&bytes[..bytes.len().min(FLUSHED_MAX)]) {
                Ok(count) => bytes.advance(count),
                Err(error) if would_block(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        // What waits already counts: one message may be as long as it likes.
        if self.unsent_bytes > UNSENT_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the reader is too slow"));
        }
        self.keep(bytes);
        self.update(poller)
    }

    /// Behind all that waits.
    fn keep(&mut self, bytes: Bytes) {
        self.unsent_bytes += bytes.len();
        if self.is_full && !self.unsent.is_empty() && bytes.len() <= SMALL_MAX {
            if self.joined.len() + bytes.len() > JOINED_MAX {
                self.close_joined();
            }
            if self.joined.is_empty() {
                self.joined.reserve(JOINED_MAX);
            }
            return self.joined.extend_from_slice(&bytes);
        }
        self.close_joined();
        self.unsent.push_back(bytes);
    }

    /// What was joined waits as one piece.
    fn close_joined(&mut self) {
        if !self.joined.is_empty() {
            self.unsent.push_back(std::mem::take(&mut self.joined).freeze());
        }
    }

    /// Keeps `bytes` for the next [`Self::flush`], so that one system call sends many. Whether that
    /// flush is now owed: nothing else waits for it or for room. Does not let very much pile up.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn gather(&mut self, bytes: Bytes, poller: &Poller) -> io::Result<bool> {
        self.gather_all(std::iter::once(bytes), poller)
    }

    /// The same with one message that comes in pieces.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn gather_all(
        &mut self,
        pieces: impl IntoIterator<Item = Bytes>,
        poller: &Poller,
    ) -> io::Result<bool> {
        let is_first = self.unsent.is_empty();
        let waited = self.unsent_bytes;
        for bytes in pieces {
            self.keep(bytes);
        }
        // A socket that is full is not asked again for each piece: that cost a system call each.
        if self.unsent_bytes >= GATHERED_MAX && !self.is_full {
            self.flush(poller)?;
        }
        // What waited before counts: one message, a whole state, may be as long as it likes.
        if waited.min(self.unsent_bytes) > UNSENT_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the reader is too slow"));
        }
        Ok(is_first)
    }

    /// Sends `pieces`, now or when there is room; copies only what there is no room for now.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn send_pieces<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        poller: &Poller,
    ) -> io::Result<()> {
        let mut pieces = pieces.peekable();
        let mut rest = BytesMut::new();
        let mut is_full = !self.unsent.is_empty() || self.tls.is_some();
        while pieces.peek().is_some() && !is_full {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&mut pieces) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            let mut left = &mut slices[..count];
            while !left.is_empty() && !is_full {
                match self.socket.write_vectored(left) {
                    Ok(written) => IoSlice::advance_slices(&mut left, written),
                    Err(error) if would_block(&error) => is_full = true,
                    Err(error) => return Err(error),
                }
            }
            left.iter().for_each(|slice| rest.extend_from_slice(slice));
        }
        pieces.for_each(|piece| rest.extend_from_slice(piece));
        if rest.is_empty() { Ok(()) } else { self.send(rest.freeze(), poller) }
    }

    /// Bytes that wait for a slow reader.
    #[must_use]
    pub const fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// There is room: sends what waits. Where the reader is as fast as this that has no end for
    /// long, so that a part is sent, and there is room again at the next look.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn flush(&mut self, poller: &Poller) -> io::Result<()> {
        self.is_full = false;
        self.close_joined();
        let mut left = if self.tls.is_some() { self.flush_sealed()? } else { FLUSHED_MAX };
        while left > 0
            && let Some(first) = self.unsent.front()
        {
            let written = if self.unsent.len() == 1 || first.len() >= left {
                self.socket.write(&first[..first.len().min(left)])
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let mut room = left;
                for (slice, piece) in slices.iter_mut().zip(&self.unsent) {
                    *slice = IoSlice::new(&piece[..piece.len().min(room)]);
                    room -= slice.len();
                }
                self.socket.write_vectored(&slices[..self.unsent.len().min(SLICES)])
            };
            match written {
                Ok(count) => {
                    self.forget_sent(count);
                    left -= count;
                }
                Err(error) if would_block(&error) => {
                    self.is_full = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if !self.end_if_sent() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.update(poller)
    }

    /// The same with TLS. Nothing is left to send in another way.
    fn flush_sealed(&mut self) -> io::Result<usize> {
        let mut left = FLUSHED_MAX;
        while let Some(tls) = &mut self.tls {
            let is_out = tls.write_out(&mut self.socket)?;
            self.is_full = !is_out;
            let Some(first) = self.unsent.front().filter(|_| is_out && left > 0) else { break };
            let count = tls.seal(&first[..first.len().min(left)])?;
            self.forget_sent(count);
            left -= count;
        }
        Ok(0)
    }

    fn forget_sent(&mut self, count: usize) {
        self.unsent_bytes -= count;
        let mut left = count;
        while let Some(front) = self.unsent.front_mut() {
            if front.len() > left {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.unsent.pop_front();
        }
    }

    /// Reads no more until told otherwise.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn set_reading(&mut self, reading: bool, poller: &Poller) -> io::Result<()> {
        self.wants_read = reading;
        self.update(poller)
    }

    /// Ends the connection when everything is sent, and reads on until the other side has seen
    /// that: a socket that is closed with unread input resets the connection, and the last words
    /// would be lost. False if it is broken already.
    pub fn close_when_sent(&mut self, poller: &Poller) -> bool {
        self.closing = true;
        self.wants_read = true;
        self.end_if_sent() && self.update(poller).is_ok()
    }

    fn end_if_sent(&mut self) -> bool {
        if !self.closing || !self.unsent.is_empty() {
            return true;
        }
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye();
            match tls.write_out(&mut self.socket) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        self.socket.shutdown(Shutdown::Write).is_ok()
    }

    /// Whether something waits for a slow reader.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether it ends as soon as everything is sent.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    fn update(&mut self, poller: &Poller) -> io::Result<()> {
        let write = self.wants_write || self.has_unsent();
        // At the end it is readable always.
        let wanted = Interest { read: self.wants_read && !self.at_end, write };
        if wanted != self.interest {
            poller.modify(&self.socket, self.token, wanted)?;
            self.interest = wanted;
        }
        Ok(())
    }
}

pub(crate) fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
