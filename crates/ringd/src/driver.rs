//! One node of a ring, in this thread: the pure [`Ring`] with its sockets, clock and boot file.
//!
//! What it is not: a thread. Whoever owns it calls [`Driver::wait`] and looks at the events.
//!
//! Invariants: everything happens in the caller's thread, one event at a time; datagrams leave
//! only after what the ring wanted stored before them is on disk; events come in the ring's order.

use bytes::{Bytes, BytesMut};
use quorba_base::{Instant, NodeId};
use quorba_config::DomainKey;
use quorba_net::{Fanout, Interest, LinkEvent, Links, Multicast, Poller, Ready, RingSocket};
use quorba_node::boot::BootFile;
use quorba_order::{
    Boot, Config, Delivery, DomainKey as RingKey, Full, Guarantee, InvalidKeys, Output, Progress,
    RefusedReason, Ring, Snapshot, Ticket, View, ViewKind,
};
use rustix::fd::AsFd;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant as Clock};

const RING: u64 = 0;
/// Links to other nodes begin here.
const LINKS: u64 = 1 << 20;
/// Descriptors of the driver's owner have tokens from here on.
pub const OWN_TOKENS: u64 = 1 << 32;
/// Where the thread stands in the scheduler's queue, if it is allowed to.
const NICE: i32 = -10;

/// What the ring tells, but for datagrams.
#[derive(Debug)]
pub enum Event {
    /// The next message of the order.
    Deliver(Delivery),
    /// The configuration changed.
    View(View),
    /// A majority has my messages up to this one.
    Held(Ticket),
    /// All nodes have my messages up to this one.
    Stable(Ticket),
    /// Datagrams in the name of a node are not accepted.
    Refused(NodeId, RefusedReason),
}

/// Says on standard error who is in a regular view, and why it came about.
pub fn log_view(view: &View) {
    if view.kind == ViewKind::Regular {
        eprintln!("view {}: nodes {:?}, because of {:?}", view.ring, view.members, view.reason);
    }
}

/// Why a driver cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A socket, or the kernel, refuses.
    #[error("the ring's socket on {0}: {1}")]
    Socket(SocketAddr, #[source] io::Error),
    /// The boot file cannot be used.
    #[error(transparent)]
    Boot(#[from] quorba_node::NodeError),
    /// Too many keys, or the same one twice.
    #[error("the domain keys: {0}")]
    Keys(#[from] InvalidKeys),
    /// Something that every process needs.
    #[error("the system refused a resource: {0}")]
    Resources(#[from] io::Error),
}

/// See the module's text.
pub struct Driver {
    me: NodeId,
    ring: Ring,
    socket: RingSocket,
    links: Links,
    poller: Poller,
    boot: BootFile,
    started: Clock,
    datagrams: Vec<BytesMut>,
    events: VecDeque<Event>,
    /// Readiness of the owner's descriptors.
    ready: VecDeque<Ready>,
}

impl Driver {
    /// Opens everything; `peers` are the ring addresses of all nodes, in their order, and `keys`
    /// all domain keys, the oldest first.
    ///
    /// # Errors
    /// [`DriverError`]; a retry helps if an address was in use.
    pub fn open(
        config: Config,
        keys: &[DomainKey],
        state: &Path,
        peers: Vec<SocketAddr>,
        multicast: Multicast,
    ) -> Result<Self, DriverError> {
        let me = config.me;
        let address = peers[usize::from(me.index())];
        let boot = BootFile::begin(state)?;
        let poller = Poller::new()?;
        let raw = keys.iter().map(DomainKey::as_bytes);
        let failed = |source| DriverError::Socket(address, source);
        let socket = RingSocket::open(address, me, peers, multicast, raw).map_err(failed)?;
        for socket in socket.sockets() {
            poller.add(socket, RING, Interest::READ)?;
        }
        let raw = keys.iter().map(DomainKey::as_bytes);
        let life = (me, boot.incarnation());
        let links = Links::open(life, address, socket.others(), raw, LINKS, &poller);
        let links = links.map_err(failed)?;
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| io::Error::other(error.to_string()))?;
        let life = Boot { incarnation: boot.incarnation(), salt, ring_seq_min: boot.ring_seq() };
        let mut ring = Ring::new(config, life, Instant::ZERO);
        let keys = keys.iter().map(|key| RingKey::new(*key.as_bytes())).collect();
        ring.set_domain_keys(Instant::ZERO, keys)?;
        // Only this thread; not allowed to everybody, and then things are as they are.
        let _ = rustix::process::setpriority_process(None, NICE);
        Ok(Self {
            me,
            ring,
            socket,
            links,
            poller,
            boot,
            started: Clock::now(),
            datagrams: Vec::new(),
            events: VecDeque::new(),
            ready: VecDeque::new(),
        })
    }

    /// Which node this is, and the number of its boot.
    #[must_use]
    pub const fn identity(&self) -> (NodeId, u64) {
        (self.me, self.boot.incarnation())
    }

    /// Where own descriptors are registered, with tokens from [`OWN_TOKENS`] on.
    #[must_use]
    pub const fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Waits for `fd` too.
    ///
    /// # Errors
    /// What the system says of the descriptor.
    pub fn register(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(token >= OWN_TOKENS, "the tokens below are the driver's");
        self.poller.add(fd, token, interest)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Queues a message; it is sent by [`Self::pump`], or before the next wait.
    ///
    /// # Errors
    /// [`Full`]: as the ring says.
    pub fn submit(&mut self, payload: Bytes, guarantee: Guarantee) -> Result<Ticket, Full> {
        let now = self.now();
        self.ring.submit(now, payload, guarantee)
    }

    /// Slows the whole ring down, or lets it go: see [`Ring::throttle`].
    pub const fn throttle(&mut self, throttled: bool) {
        self.ring.throttle(throttled);
    }

    /// Carries out what the ring wants.
    ///
    /// # Errors
    /// The boot file cannot be written: the node must not go on.
    pub fn pump(&mut self) -> io::Result<()> {
        self.gather()?;
        self.socket.flush();
        Ok(())
    }

    /// As [`Self::pump`], but datagrams that nothing else waits for leave with the next one.
    ///
    /// # Errors
    /// As [`Self::pump`].
    pub fn gather(&mut self) -> io::Result<()> {
        while let Some(output) = self.ring.poll() {
            let event = match output {
                Output::Transmit { to, datagram } => {
                    self.socket.send(to, datagram);
                    continue;
                }
                Output::Persist { ring_seq } => {
                    self.socket.flush();
                    self.boot.set_ring_seq(ring_seq)?;
                    continue;
                }
                Output::Deliver(delivery) => Event::Deliver(delivery),
                Output::View(view) => Event::View(view),
                Output::Held(ticket) => Event::Held(ticket),
                Output::Stable(ticket) => Event::Stable(ticket),
                Output::Refused { node, reason } => Event::Refused(node, reason),
            };
            self.events.push_back(event);
        }
        Ok(())
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next of the owner's descriptors that is ready.
    pub fn ready(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }

    /// Sends what is due, then waits for something to happen, at most `timeout`, and lets the
    /// ring have it. Returns at once if there are events.
    ///
    /// # Errors
    /// What the system says of waiting or of the boot file: the node must not go on.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.pump()?;
        self.tick()?;
        let now = self.now();
        let ring = self.ring.poll_timeout().map(|(at, _)| at.since(now));
        let links = self.links.retry_at().map(|at| at.saturating_duration_since(Clock::now()));
        let probe = self.socket.probe_at().map(|at| at.saturating_duration_since(Clock::now()));
        let mut wait = [ring, links, probe, timeout].into_iter().flatten().min();
        if !self.events.is_empty() {
            wait = Some(Duration::ZERO);
        }
        let count = self.poller.wait(wait)?;
        for index in 0..count {
            let event = self.poller.ready(index);
            match event.token {
                RING => self.read_ring()?,
                LINKS..OWN_TOKENS => {
                    self.links.handle(event, &self.poller);
                    self.hear_links()?;
                }
                _ => self.ready.push_back(event),
            }
        }
        Ok(())
    }

    /// Looks for news without sleeping, until then; whether there is any, which [`Self::wait`] will
    /// take in.
    ///
    /// # Errors
    /// What the system says of waiting: the node must not go on.
    pub fn linger(&mut self, until: Clock) -> io::Result<bool> {
        while Clock::now() < until {
            if self.poller.wait(Some(Duration::ZERO))? > 0 {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        Ok(false)
    }

    /// Timers come after what the owner has made of the events before.
    fn tick(&mut self) -> io::Result<()> {
        let now = self.now();
        if self.ring.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.ring.handle_timeout(now);
            self.pump()?;
        }
        self.socket.probe(Clock::now());
        if self.links.retry_at().is_some_and(|at| at <= Clock::now()) {
            self.links.retry(&self.poller);
        }
        Ok(())
    }

    /// Only a death matters here: the ring's daemons send each other no messages over links.
    fn hear_links(&mut self) -> io::Result<()> {
        while let Some(event) = self.links.poll() {
            if let LinkEvent::Ended { node } = event {
                let now = self.now();
                self.ring.handle_peer_lost(now, node);
                self.pump()?;
            }
        }
        Ok(())
    }

    fn read_ring(&mut self) -> io::Result<()> {
        let mut datagrams = std::mem::take(&mut self.datagrams);
        self.socket.receive(&mut datagrams);
        // One look at the clock for all of them: they came together.
        let now = self.now();
        for datagram in datagrams.drain(..) {
            self.ring.handle_datagram(now, datagram);
            self.pump()?;
        }
        self.datagrams = datagrams;
        Ok(())
    }

    /// How far the ring has come; cheap enough to ask after every event.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.ring.progress()
    }

    /// The ring's state and counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.ring.snapshot()
    }

    /// How datagrams to all nodes are sent at present.
    #[must_use]
    pub fn fanout(&self) -> Fanout {
        self.socket.fanout()
    }

    /// Says farewell to the others, so that they need not wait for this node's silence.
    ///
    /// # Errors
    /// As [`Self::pump`].
    pub fn leave(&mut self) -> io::Result<()> {
        let now = self.now();
        self.ring.leave(now);
        self.pump()
    }
}
