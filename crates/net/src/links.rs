//! A TCP connection from every node to every other one, on which nothing is said once both have
//! proven that they hold a domain key.
//!
//! Its only use is its end: when a process dies, its kernel closes its connections at once, and
//! that is evidence enough to leave it out of the ring without waiting for its silence.
//!
//! What it is not: a path for messages, or a sign of life; a link to a process that hangs stays
//! open. Nor does it withstand who can forge packets of a connection under way: such a one can end
//! it, and the ring then finds that the process lives.
//!
//! Invariants: only the end of a proven link that this node opened counts, once, because then it
//! is known whose end it was; who that is is known by proof. Addresses only say who may try.
//! Connections without a proof are few, end soon, and never push out one that has it.

mod handshake;
mod link;
#[cfg(test)]
mod tests;

use crate::keys::derived;
use crate::poller::{Interest, Poller, Ready};
use link::{Link, PROVE_WITHIN};
use quorba_base::{NODES_MAX, NodeId};
use ring::hmac;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant as Clock};

/// How long after a failure a link is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Connections from outside that have proven nothing yet; each address has its share of them, so
/// that a host where somebody misbehaves hinders only new links of its own nodes.
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
    me: NodeId,
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
    known: BTreeSet<IpAddr>,
    /// When links that are not there are opened again.
    reopen_at: Option<Clock>,
    /// When to look for connections that were not proven in time.
    expire_at: Option<Clock>,
}

impl Links {
    /// Listens at `bind` (the ring's address and port); `peers` has `None` for this node, `me`;
    /// `keys` are the domain keys, the newest last.
    ///
    /// # Errors
    /// What the system says; a retry helps if the address was in use.
    pub fn open<'a>(
        me: NodeId,
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
            me,
            base,
            from: bind.ip(),
            listener,
            peers,
            keys: Vec::new(),
            outgoing: BTreeMap::new(),
            incoming: Vec::new(),
            next_incoming: 0,
            known,
            reopen_at: Some(Clock::now()),
            expire_at: None,
        };
        links.set_keys(keys);
        Ok(links)
    }

    /// The domain keys have changed. What is proven stays: whoever proved it was a node when it
    /// did, and if all links went at once no death would show for a moment.
    pub fn set_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; 32]>) {
        self.keys = derived(b"quorba link v1", keys);
    }

    /// When [`Self::retry`] wants to be called.
    #[must_use]
    pub fn retry_at(&self) -> Option<Clock> {
        [self.reopen_at, self.expire_at].into_iter().flatten().min()
    }

    /// Ends what was not proven in time, and opens the links that are not there, if it is time.
    pub fn retry(&mut self, poller: &Poller) {
        let now = Clock::now();
        if self.expire_at.is_some_and(|at| at <= now) {
            self.expire(now);
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
            self.reopen_soon();
        }
        let incoming = self.incoming.iter().map(|incoming| &incoming.link);
        self.expire_at = self.outgoing.values().chain(incoming).filter_map(Link::prove_by).min();
    }

    fn expire_soon(&mut self) {
        self.expire_at.get_or_insert_with(|| Clock::now() + PROVE_WITHIN);
    }

    fn reopen_soon(&mut self) {
        self.reopen_at.get_or_insert_with(|| Clock::now() + RETRY);
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
                Err(_) => self.reopen_soon(),
            }
        }
    }

    /// Something happened to a link. `Some` is a node whose process has ended.
    pub fn handle(&mut self, event: Ready, poller: &Poller) -> Option<NodeId> {
        let place = event.token.checked_sub(self.base)?;
        if place == 0 {
            self.accept(poller);
            return None;
        }
        if place >= INCOMING {
            self.handle_incoming(event, poller);
            return None;
        }
        let node = NodeId::new(u8::try_from(place - 1).ok()?)?;
        let link = self.outgoing.get_mut(&node)?;
        if link.handle(event, &self.keys, poller).is_ok() {
            return None;
        }
        let ended = self.outgoing.remove(&node)?;
        self.reopen_soon();
        ended.proven()
    }

    fn handle_incoming(&mut self, event: Ready, poller: &Poller) {
        let here = |incoming: &Incoming| incoming.token == event.token;
        let Some(index) = self.incoming.iter().position(here) else { return };
        match self.incoming[index].link.handle(event, &self.keys, poller) {
            Ok(None) => {}
            Ok(Some(node)) if self.is_peer(node) => self.make_room_for_proven(node, event.token),
            Ok(Some(_)) | Err(_) => {
                self.incoming.remove(index);
            }
        }
    }

    fn is_peer(&self, node: NodeId) -> bool {
        self.peers.get(usize::from(node.index())).is_some_and(Option::is_some)
    }

    fn accept(&mut self, poller: &Poller) {
        for _ in 0..ACCEPTED_MAX {
            let Ok((socket, from)) = self.listener.accept() else { return };
            if self.known.contains(&from.ip()) {
                self.make_room_for_unproven(from.ip());
                self.take_in(socket, from.ip(), poller);
            }
        }
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
        let share = (UNPROVEN_MAX / self.known.len().max(1)).max(UNPROVEN_SHARE_MIN);
        let unproven =
            |incoming: &Incoming| incoming.from == from && incoming.link.proven().is_none();
        self.drop_oldest(share - 1, unproven);
    }

    /// `node` has come to hold the connection `token`: a former process of it needs none.
    fn make_room_for_proven(&mut self, node: NodeId, token: u64) {
        let others =
            |incoming: &Incoming| incoming.token != token && incoming.link.proven() == Some(node);
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
