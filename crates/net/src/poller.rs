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
pub struct Ready {
    /// What was registered with the descriptor.
    pub token: u64,
    /// There is something to read, or the end.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The other side is gone, or the descriptor failed.
    pub hung_up: bool,
}

/// See the module's text.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// Something to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Interest {
    /// Only something to read.
    pub const READ: Self = Self { read: true, write: false };
    /// Only room to write.
    pub const WRITE: Self = Self { read: false, write: true };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

impl Poller {
    /// Nothing is registered.
    ///
    /// # Errors
    /// The process or the system has no descriptor left, or the kernel is older than Linux 5.11,
    /// whose epoll does not know times below a millisecond.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut poller = Self { epoll, events: Vec::with_capacity(BATCH) };
        match poller.wait(Some(Duration::ZERO)) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel has no epoll_pwait2: Linux 5.11 or newer is needed",
            )),
            probed => probed.map(|_| poller),
        }
    }

    /// Waits for `fd` too.
    ///
    /// # Errors
    /// What the system says of the descriptor.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Waits for something else of `fd` from now on.
    ///
    /// # Errors
    /// What the system says of the descriptor.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Waits at most `timeout` (for ever if `None`); gives how many events there are, to be
    /// looked at with [`Self::ready`].
    ///
    /// # Errors
    /// What the system says; a signal is no error.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(timespec);
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(self.events.len()),
            Err(error) => Err(error.into()),
        }
    }

    /// The event at `index` of the last wait.
    ///
    /// # Panics
    /// If there were fewer.
    #[must_use]
    pub fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        // The kernel's struct is packed: copy before use.
        let (flags, data) = (event.flags, event.data);
        Ready {
            token: data.u64(),
            readable: flags.contains(EventFlags::IN),
            writable: flags.contains(EventFlags::OUT),
            hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
        }
    }
}

/// A duration as the system's calls take it; longer than the system can say is as long as it can.
#[must_use]
pub fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wait_for_less_than_a_millisecond_is_not_made_one() {
        let mut poller = Poller::new().expect("there is a descriptor left");
        let wanted = Duration::from_micros(50);
        // On a busy machine most waits take longer; one that was rounded up always does.
        let is_exact = (0..2_000).any(|_| {
            let began = Instant::now();
            poller.wait(Some(wanted)).expect("it waits");
            let took = began.elapsed();
            assert!(took >= wanted, "{took:?}");
            took < Duration::from_millis(1)
        });
        assert!(is_exact);
    }
}
