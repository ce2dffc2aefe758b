//! epoll, level-triggered: one read per wake-up is enough, so a hop costs one system call in.
//!
//! Invariant: a token names what was registered; stale events of closed descriptors are possible
//! within one batch, so whoever gets an event looks its token up and may find nothing.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::Timespec;
use std::io;
use std::time::Duration;

/// Events that one wait can bring.
const BATCH: usize = 128;

/// Readiness of one descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other side is gone, or the descriptor failed.
    pub(crate) hung_up: bool,
}

/// See the module's text.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self { read: true, write: false };
    pub(crate) const WRITE: Self = Self { read: false, write: true };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(BATCH) })
    }

    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), interest.flags())?)
    }

    pub(crate) fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Waits at most `timeout` (for ever if `None`) and gives what is ready.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<Ready>> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self
            .events
            .iter()
            .map(|event| {
                // The kernel's struct is packed: copy before use.
                let (flags, data) = (event.flags, event.data);
                Ready {
                    token: data.u64(),
                    readable: flags.contains(EventFlags::IN),
                    writable: flags.contains(EventFlags::OUT),
                    hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
                }
            })
            .collect())
    }
}
