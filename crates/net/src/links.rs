//! A TCP connection from every node to every other one, on which nothing is ever said.
//!
//! Its only use is its end: when a process dies, its kernel closes its connections at once, and
//! that is evidence enough to leave it out of the ring without waiting for its silence.
//!
//! What it is not: a path for messages, or a sign of life; a link to a process that hangs stays
//! open. Invariant: only the end of a link that this node opened counts, because then it is known
//! whose end it was.

use crate::poller::{Interest, Poller, Ready};
use crate::stream::{ReadOutcome, Stream};
use quorba_base::NodeId;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant as Clock};

/// How long after a failure a link is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Links that are taken from one address: old ones of nodes that were started anew included.
const INBOUND_MAX: usize = 256;

struct Link {
    stream: Stream,
    connected: bool,
}

/// See the module's text. Tokens: `base` is the listener, `base + 1 + n` the link to node n.
pub struct Links {
    base: u64,
    /// Links come from the ring's address: by it the other side knows whose they are.
    from: IpAddr,
    listener: TcpListener,
    peers: Vec<Option<SocketAddr>>,
    links: HashMap<u64, Link>,
    /// Held open, never read; the oldest goes when there are too many.
    inbound: Vec<TcpStream>,
    known: Vec<IpAddr>,
    retry_at: Option<Clock>,
}

impl Links {
    /// Listens at `bind` (the ring's address and port); `peers` has `None` for this node.
    ///
    /// # Errors
    /// What the system says; a retry helps if the address was in use.
    pub fn open(
        bind: SocketAddr,
        peers: Vec<Option<SocketAddr>>,
        base: u64,
        poller: &Poller,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(bind)?;
        listener.set_nonblocking(true)?;
        poller.add(&listener, base, Interest::READ)?;
        let known = peers.iter().flatten().map(SocketAddr::ip).collect();
        let retry_at = Some(Clock::now());
        let (links, inbound) = (HashMap::new(), Vec::new());
        let from = bind.ip();
        Ok(Self { base, from, listener, peers, links, inbound, known, retry_at })
    }

    /// When [`Self::retry`] wants to be called.
    #[must_use]
    pub const fn retry_at(&self) -> Option<Clock> {
        self.retry_at
    }

    /// Opens the links that are not there.
    pub fn retry(&mut self, poller: &Poller) {
        self.retry_at = None;
        for (index, peer) in self.peers.iter().enumerate() {
            let token = self.base + 1 + index as u64;
            let Some(peer) = peer else { continue };
            if self.links.contains_key(&token) {
                continue;
            }
            match Stream::connect_from(Some(self.from), *peer, token, poller) {
                Ok(stream) => {
                    self.links.insert(token, Link { stream, connected: false });
                }
                Err(_) => self.retry_at = Some(Clock::now() + RETRY),
            }
        }
    }

    /// Something happened to a link. `Some` is a node whose process has ended.
    pub fn handle(&mut self, event: Ready, poller: &Poller) -> Option<NodeId> {
        if event.token == self.base {
            self.accept();
            return None;
        }
        let link = self.links.get_mut(&event.token)?;
        if !link.connected && event.writable && !event.hung_up {
            link.connected = link.stream.check_connected(poller).is_ok();
        }
        let mut nothing = [0; 64];
        let ended = event.hung_up
            || !link.connected
            || (event.readable && matches!(link.stream.read(&mut nothing), ReadOutcome::Closed));
        if !ended {
            return None;
        }
        let was_connected = link.connected;
        self.links.remove(&event.token);
        self.retry_at = Some(Clock::now() + RETRY);
        let index = u8::try_from(event.token - self.base - 1).ok()?;
        if was_connected { NodeId::new(index) } else { None }
    }

    fn accept(&mut self) {
        while let Ok((socket, from)) = self.listener.accept() {
            if !self.known.contains(&from.ip()) {
                continue;
            }
            if self.inbound.len() >= INBOUND_MAX {
                self.inbound.remove(0);
            }
            self.inbound.push(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::free_ports;

    #[test]
    fn a_link_comes_from_the_rings_address_and_stays_open_where_the_host_has_another_one() {
        let mut poller = Poller::new().expect("epoll");
        let port = free_ports(1).expect("a port")[0];
        let [one, two] = [1, 2].map(|host| SocketAddr::from(([127, 0, 1, host], port)));
        let mut near = Links::open(one, vec![None, Some(two)], 0, &poller).expect("it listens");
        let mut far = Links::open(two, vec![Some(one), None], 100, &poller).expect("it listens");
        near.retry(&poller);
        while far.inbound.is_empty() || !near.links[&2].connected {
            for index in 0..poller.wait(None).expect("epoll") {
                let event = poller.ready(index);
                let ended = match event.token {
                    0..100 => near.handle(event, &poller),
                    _ => far.handle(event, &poller),
                };
                assert_eq!(ended, None, "nobody has ended");
            }
        }
        let from = far.inbound[0].peer_addr().expect("it is connected").ip();
        assert_eq!(from, one.ip(), "not the address that the route would choose");
        drop(far);
        while near.links.contains_key(&2) {
            for index in 0..poller.wait(None).expect("epoll") {
                let event = poller.ready(index);
                assert_eq!(near.handle(event, &poller), NodeId::new(1), "its process has ended");
            }
        }
    }
}
