//! Two TCP connections between any two nodes, one from each side, which carry messages as soon as
//! both ends have proven that they hold a domain key: what a node sends goes on the one that it
//! opened, sealed and in order.
//!
//! Their end says something too: when a process dies, its kernel closes its connections at once,
//! and that is evidence enough to leave it out of the ring without waiting for its silence.
//!
//! What it is not: a sign of life; a link to a process that hangs stays open. Nor does it withstand
//! who can forge packets of a connection under way: such a one can end it, and the ring then finds
//! that the process lives. It repeats nothing: what was on its way when a link ended may be lost.
//!
//! Invariants: only the end of a proven link that this node opened counts as a death, once, because
//! then it is known whose end it was; who that is is known by proof. Addresses only say who may
//! try. Connections without a proof are few, end soon, and never push out one that has it. Messages
//! of a node are told between its [`LinkEvent::Up`] and [`LinkEvent::Down`] or shortly before, come
//! in the order in which they were sent, and of the boot that is named with them; between an `Up`
//! and a `Down` none is missing.

mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handshake;
mod link;
mod queue;
#[cfg(test)]
mod tests;
mod traffic;

use crate::keys::derived;
use crate::poller::{Interest, Poller, Ready};
use bytes::Bytes;
pub use frame::MESSAGE_BYTES_MAX;
use handshake::Boot;
use link::{Link, PROVE_WITHIN, Tools};
pub use queue::Sent;
pub use quorba_base::Lane;
use quorba_base::{NODES_MAX, NodeId, NodeSet};
use ring::hmac;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant as Clock};
pub use traffic::LinkEvent;

/// How long after a failure a link is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// And after the end of one that was proven: the process may live.
const RETRY_PROVEN: Duration = Duration::from_millis(50);
/// How long nobody is taken in after descriptors ran out.
const DEAF_FOR: Duration = Duration::from_millis(100);
/// Bytes that are read at once, beside the rest of a message that has begun.
const READ_BYTES: usize = 64 << 10;
/// Connections from outside that have proven nothing yet, if nothing else is said; each address has
/// its share of them, so that a host where somebody misbehaves hinders only new links of its own
/// nodes.
const UNPROVEN_MAX: usize = 256;
/// The least share of an address.
const UNPROVEN_SHARE_MIN: usize = 4;
/// Proven connections from one node: its own, and one of a process before it whose end was lost.
const PROVEN_PER_NODE_MAX: usize = 2;
/// Connections that one call takes in; the poller says that there are more.
const ACCEPTED_MAX: usize = 16;
/// Tokens of connections from outside begin so far behind the listener's: each node that is
/// called has one in between.
const INCOMING: u64 = 1 + NODES_MAX as u64;
/// More than there are connections, so that a token is not soon used again.
const INCOMING_TOKENS: u64 = 1 << 16;

/// A connection from outside.
struct Incoming {
    link: Link,
    token: u64,
    from: IpAddr,
}

/// See the module's text. Tokens: `base` is the listener, those behind it the links; no more than
/// 2^17 in all.
pub struct Links {
    me: Boot,
    base: u64,
    /// Links come from the ring's address, because the other side takes none from elsewhere.
    from: IpAddr,
    listener: TcpListener,
    peers: Vec<Option<SocketAddr>>,
    keys: Vec<hmac::Key>,
    outgoing: BTreeMap<NodeId, Link>,
    /// In the order in which they came.
    incoming: Vec<Incoming>,
    next_incoming: u64,
    unproven_max: usize,
    known: BTreeSet<IpAddr>,
    /// When links that are not there are opened again.
    reopen_at: Option<Clock>,
    /// When to look for connections that were not proven in time.
    expire_at: Option<Clock>,
    /// Nobody is taken in before: there was no descriptor.
    deaf_until: Option<Clock>,
    /// Boots that messages pass to and from.
    up: BTreeMap<NodeId, u64>,
    /// Something was put into their queues since the last flush.
    to_flush: NodeSet,
    events: VecDeque<LinkEvent>,
    /// Where bytes are read to.
    room: Vec<u8>,
    /// Always empty between events; kept for its room.
    came: Vec<Bytes>,
}

impl Links {
    /// Listens at `bind` (the ring's address and port); `me` is this node and its boot, larger than
    /// any before; `peers` has `None` for this node; `keys` are the domain keys, the newest last.
    ///
    /// # Errors
    /// What the system says; a retry helps if the address was in use.
    pub fn open<'a>(
        me: (NodeId, u64),
        bind: SocketAddr,
        peers: Vec<Option<SocketAddr>>,
        keys: impl Iterator<Item = &'a [u8; 32]>,
        base: u64,
        poller: &Poller,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(bind)?;
        listener.set_nonblocking(true)?;
        poller.add(&listener, base, Interest::READ)?;
        let known = peers.iter().flatten().map(SocketAddr::ip).collect();
        let mut links = Self {
            me: Boot { node: me.0, incarnation: me.1 },
            base,
            from: bind.ip(),
            listener,
            peers,
            keys: Vec::new(),
            outgoing: BTreeMap::new(),
            incoming: Vec::new(),
            next_incoming: 0,
            unproven_max: UNPROVEN_MAX,
            known,
            reopen_at: Some(Clock::now()),
            expire_at: None,
            deaf_until: None,
            up: BTreeMap::new(),
            to_flush: NodeSet::EMPTY,
            events: VecDeque::new(),
            room: vec![0; READ_BYTES],
            came: Vec::new(),
        };
        links.set_keys(keys);
        Ok(links)
    }

    /// The domain keys have changed. What is proven stays: whoever proved it was a node when it
    /// did, and if all links went at once no death would show for a moment. Messages are sealed
    /// with keys of the links' own.
    pub fn set_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; 32]>) {
        self.keys = derived(b"quorba link v1", keys);
    }

    /// When [`Self::retry`] wants to be called.
    #[must_use]
    pub fn retry_at(&self) -> Option<Clock> {
        [self.reopen_at, self.expire_at, self.deaf_until].into_iter().flatten().min()
    }

    /// Ends what was not proven in time, and opens the links that are not there, if it is time.
    pub fn retry(&mut self, poller: &Poller) {
        let now = Clock::now();
        if self.expire_at.is_some_and(|at| at <= now) {
            self.expire(now);
        }
        if self.deaf_until.is_some_and(|at| at <= now) {
            self.deaf_until = None;
            // A listener that cannot be listened to is tried again with the next who cannot call.
            let _ = poller.modify(&self.listener, self.base, Interest::READ);
        }
        if self.reopen_at.is_some_and(|at| at <= now) {
            self.reopen_at = None;
            self.call_missing(poller);
        }
    }

    fn expire(&mut self, now: Clock) {
        let is_late = |link: &Link| link.prove_by().is_some_and(|at| at <= now);
        self.incoming.retain(|incoming| !is_late(&incoming.link));
        let before = self.outgoing.len();
        self.outgoing.retain(|_, link| !is_late(link));
        if self.outgoing.len() < before {
            self.reopen_within(RETRY);
        }
        let incoming = self.incoming.iter().map(|incoming| &incoming.link);
        self.expire_at = self.outgoing.values().chain(incoming).filter_map(Link::prove_by).min();
    }

    fn expire_soon(&mut self) {
        self.expire_at.get_or_insert_with(|| Clock::now() + PROVE_WITHIN);
    }

    fn reopen_within(&mut self, wait: Duration) {
        let at = Clock::now() + wait;
        self.reopen_at = Some(self.reopen_at.map_or(at, |known| known.min(at)));
    }

    fn call_missing(&mut self, poller: &Poller) {
        for index in 0..self.peers.len().min(NODES_MAX) {
            let (Some(node), Some(peer)) = (NodeId::new(index as u8), self.peers[index]) else {
                continue;
            };
            if self.outgoing.contains_key(&node) {
                continue;
            }
            let token = self.base + 1 + index as u64;
            match Link::call((self.me, node), (self.from, peer), token, poller) {
                Ok(link) => {
                    self.outgoing.insert(node, link);
                    self.expire_soon();
                }
                Err(_) => self.reopen_within(RETRY),
            }
        }
    }

    /// Something happened to a link; [`Self::poll`] says what.
    pub fn handle(&mut self, event: Ready, poller: &Poller) {
        let Some(place) = event.token.checked_sub(self.base) else { return };
        if place == 0 {
            return self.accept(poller);
        }
        if place >= INCOMING {
            return self.handle_incoming(event, poller);
        }
        let node = u8::try_from(place - 1).ok().and_then(NodeId::new);
        if let Some(node) = node {
            self.handle_outgoing(node, event, poller);
        }
    }

    fn handle_outgoing(&mut self, node: NodeId, event: Ready, poller: &Poller) {
        let Some(link) = self.outgoing.get_mut(&node) else { return };
        let was_proven = link.proven().is_some();
        let (keys, room, came) = (&self.keys, &mut self.room, &mut self.came);
        match link.handle(event, Tools { keys, poller, room, came }) {
            Ok(None) if event.writable && was_proven => self.write(node, poller),
            Ok(None) => {}
            Ok(Some(_)) => self.look_at(node),
            Err(error) => self.outgoing_ended(node, &error),
        }
    }

    fn outgoing_ended(&mut self, node: NodeId, error: &io::Error) {
        let Some(ended) = self.outgoing.remove(&node) else { return };
        if ended.proven().is_none() {
            return self.reopen_within(RETRY);
        }
        self.reopen_within(RETRY_PROVEN);
        self.look_at(node);
        if is_death(error) {
            self.events.push_back(LinkEvent::Ended { node });
        }
    }

    fn handle_incoming(&mut self, event: Ready, poller: &Poller) {
        let here = |incoming: &Incoming| incoming.token == event.token;
        let Some(index) = self.incoming.iter().position(here) else { return };
        let link = &mut self.incoming[index].link;
        let (keys, room, came) = (&self.keys, &mut self.room, &mut self.came);
        let result = link.handle(event, Tools { keys, poller, room, came });
        if let Some(Boot { node, incarnation }) = link.proven() {
            let message = |bytes| LinkEvent::Message { from: node, incarnation, bytes };
            self.events.extend(self.came.drain(..).map(message));
        }
        match result {
            Ok(None) => {}
            Ok(Some(boot)) if self.is_peer(boot.node) => self.take_over(boot, event.token),
            Ok(Some(_)) | Err(_) => {
                let ended = self.incoming.remove(index);
                if let Some(boot) = ended.link.proven() {
                    self.look_at(boot.node);
                }
            }
        }
    }

    fn is_peer(&self, node: NodeId) -> bool {
        self.peers.get(usize::from(node.index())).is_some_and(Option::is_some)
    }

    fn accept(&mut self, poller: &Poller) {
        for _ in 0..ACCEPTED_MAX {
            let (socket, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // No descriptor: whoever waits would wake this thread again and again.
                Err(_) => {
                    let deaf = Interest { read: false, write: false };
                    let _ = poller.modify(&self.listener, self.base, deaf);
                    self.deaf_until = Some(Clock::now() + DEAF_FOR);
                    return;
                }
            };
            if self.known.contains(&from.ip()) {
                self.make_room_for_unproven(from.ip());
                self.take_in(socket, from.ip(), poller);
            }
        }
    }

    /// No more than `most` connections may be here that have proven nothing yet; but a few of each
    /// address that is known.
    pub fn bound_unproven(&mut self, most: usize) {
        self.unproven_max = most;
    }

    fn take_in(&mut self, socket: TcpStream, from: IpAddr, poller: &Poller) {
        // Not the number of one that is still there.
        let token = loop {
            let token = self.base + INCOMING + self.next_incoming;
            self.next_incoming = (self.next_incoming + 1) % INCOMING_TOKENS;
            if self.incoming.iter().all(|incoming| incoming.token != token) {
                break token;
            }
        };
        if let Ok(link) = Link::called(self.me, socket, token, poller) {
            self.incoming.push(Incoming { link, token, from });
            self.expire_soon();
        }
    }

    /// If too many have proven nothing, the oldest goes: a node is done with its proof in one round
    /// trip, so that one which is still here is rather none.
    fn make_room_for_unproven(&mut self, from: IpAddr) {
        let share = (self.unproven_max / self.known.len().max(1)).max(UNPROVEN_SHARE_MIN);
        let unproven =
            |incoming: &Incoming| incoming.from == from && incoming.link.proven().is_none();
        self.drop_oldest(share - 1, unproven);
    }

    /// `node` has come to hold the connection `token`: a former process of it needs none.
    fn make_room_for_proven(&mut self, node: NodeId, token: u64) {
        let is_its = |incoming: &Incoming| incoming.link.proven().is_some_and(|b| b.node == node);
        let others = |incoming: &Incoming| incoming.token != token && is_its(incoming);
        self.drop_oldest(PROVEN_PER_NODE_MAX - 1, others);
    }

    /// Of the connections from outside that are `such`, at most `most` stay.
    fn drop_oldest(&mut self, most: usize, such: impl Fn(&Incoming) -> bool) {
        let count = self.incoming.iter().filter(|incoming| such(incoming)).count();
        for _ in most..count {
            if let Some(index) = self.incoming.iter().position(&such) {
                self.incoming.remove(index);
            }
        }
    }
}

/// Whether a link ended because its other end did, and not the network.
fn is_death(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}
