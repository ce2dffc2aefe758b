//! The ring's UDP sockets: datagrams to one node or to all others.
//!
//! Invariants: a datagram that the kernel does not take is lost, as on any network; the ring
//! repeats what matters. Nothing here waits. What was put in leaves at [`RingSocket::flush`] at
//! the latest, in its order. What came by multicast before a datagram that came by unicast is
//! handed out before it, so that a token does not overtake the messages that it numbers.

use crate::multicast::{Prober, Reply, is_probe};
use crate::outbox::Outbox;
use crate::udp::{CHUNK_BYTES, CHUNKS, Udp};
use bytes::BytesMut;
use quorba_base::{NodeId, NodeSet};
use quorba_order::Destination;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Instant;

/// What one call takes from the group, so that a flood of junk neither fills the memory nor keeps
/// everything else waiting. It is more than the ring sends in a rotation (at most 512 datagrams,
/// 1 MiB), so that what it sends is not held up by it.
const TAKEN_MAX: Bounds = Bounds { datagrams: 2048, bytes: 4 << 20 };

#[derive(Clone, Copy, Debug)]
struct Bounds {
    datagrams: usize,
    bytes: usize,
}

/// How datagrams to all nodes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// One by one.
    Off,
    /// By multicast to those nodes that it is seen to reach, one by one to the others.
    Probed(SocketAddrV4),
    /// By multicast only; nobody asks whether it works.
    Always(SocketAddrV4),
}

/// How datagrams to all nodes are sent at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fanout {
    /// One by one, because of this.
    Unicast(&'static str),
    /// By multicast to this group, and one by one to nodes that it does not reach.
    Multicast {
        /// Address and port.
        group: SocketAddrV4,
        /// Nodes that it reaches.
        reached: NodeSet,
    },
}

struct Group {
    address: SocketAddrV4,
    listener: Udp,
    /// `None`: it is used unasked.
    prober: Option<Prober>,
    reached: NodeSet,
    /// Something was sent to the group since it was last probed.
    in_use: bool,
}

impl Group {
    /// A probe has come, or an answer to one.
    fn on_probe(&mut self, udp: &Udp, peers: &[SocketAddr], bytes: &[u8], by_multicast: bool) {
        let Some(prober) = &mut self.prober else { return };
        match prober.handle(Instant::now(), bytes, by_multicast) {
            Some(Reply::Answer(to, answer)) => {
                if let Some(peer) = peers.get(usize::from(to.index())) {
                    let _ = udp.socket.send_to(&answer, peer);
                }
            }
            Some(Reply::Reached(node)) => self.reached.insert(node),
            None => {}
        }
    }
}

/// See the module's text.
pub struct RingSocket {
    udp: Udp,
    group: Result<Group, &'static str>,
    address: SocketAddr,
    me: NodeId,
    peers: Vec<SocketAddr>,
    outbox: Outbox,
    chunks: Vec<u8>,
    /// Always empty between calls; kept for its room.
    later: Vec<BytesMut>,
}

impl RingSocket {
    /// Binds to `bind`; `peers` are the ring addresses of all nodes, this one's included; `keys`
    /// are the domain keys, the newest last.
    ///
    /// # Errors
    /// What the system says; a retry helps if the address was in use.
    pub fn open<'a>(
        bind: SocketAddr,
        me: NodeId,
        peers: Vec<SocketAddr>,
        multicast: Multicast,
        keys: impl Iterator<Item = &'a [u8; 32]>,
    ) -> io::Result<Self> {
        let udp = Udp::bind(bind, false)?;
        let group = match (multicast, obstacle(bind, &peers)) {
            (Multicast::Off, _) => Err("it is switched off"),
            (Multicast::Probed(_), Some(why)) => Err(why),
            (Multicast::Probed(address), None) => {
                let prober = Prober::new(me, keys, Instant::now());
                join(&udp, bind, address, Some(prober))
            }
            (Multicast::Always(address), _) => {
                let mut group = join(&udp, bind, address, None);
                if let Ok(group) = &mut group {
                    group.reached = NodeSet::first(peers.len());
                    group.reached.remove(me);
                }
                group
            }
        };
        let chunks = vec![0; CHUNKS * CHUNK_BYTES];
        let (outbox, later) = (Outbox::default(), Vec::new());
        Ok(Self { udp, group, address: bind, me, peers, outbox, chunks, later })
    }

    /// Where it is bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every node's address, `None` for this one.
    #[must_use]
    pub fn others(&self) -> Vec<Option<SocketAddr>> {
        let me = usize::from(self.me.index());
        let other = |(index, peer): (usize, &SocketAddr)| (index != me).then_some(*peer);
        self.peers.iter().enumerate().map(other).collect()
    }

    /// What to wait for.
    pub fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        let listener = self.group.as_ref().ok().map(|group| &group.listener.socket);
        [Some(&self.udp.socket), listener].into_iter().flatten()
    }

    /// How datagrams to all nodes are sent at present.
    #[must_use]
    pub fn fanout(&self) -> Fanout {
        match &self.group {
            Err(why) => Fanout::Unicast(why),
            Ok(group) if group.reached.is_empty() => {
                Fanout::Unicast("no node answers what is sent by multicast")
            }
            Ok(group) => Fanout::Multicast { group: group.address, reached: group.reached },
        }
    }

    /// The domain keys have changed.
    pub fn set_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; 32]>) {
        if let Ok(Group { prober: Some(prober), .. }) = &mut self.group {
            prober.set_keys(keys);
        }
    }

    /// When [`Self::probe`] wants to be called.
    #[must_use]
    pub fn probe_at(&self) -> Option<Instant> {
        let group = self.group.as_ref().ok()?;
        group.prober.as_ref().map(|prober| prober.next_at(group.in_use))
    }

    /// Asks the network, if it is time, whether multicast reaches the other nodes.
    pub fn probe(&mut self, now: Instant) {
        let Ok(group) = &mut self.group else { return };
        let Some(prober) = &mut group.prober else { return };
        let mut nonce = [0; 16];
        if prober.next_at(group.in_use) > now || getrandom::fill(&mut nonce).is_err() {
            return;
        }
        let probe = prober.probe(now, nonce);
        let _ = self.udp.socket.send_to(&probe, group.address);
        group.reached = prober.reached();
        group.in_use = false;
    }

    /// Appends datagrams that are there to `into`. Not necessarily all: the poller says whether
    /// there are more.
    pub fn receive(&mut self, into: &mut Vec<BytesMut>) {
        let Ok(group) = &mut self.group else {
            self.udp.receive(&mut self.chunks, into);
            return;
        };
        let mut later = std::mem::take(&mut self.later);
        self.udp.receive(&mut self.chunks, &mut later);
        take(&group.listener, &mut self.chunks, into, TAKEN_MAX);
        for (datagrams, by_multicast) in [(&mut *into, true), (&mut later, false)] {
            datagrams.retain(|datagram| {
                let probe = group.prober.is_some() && is_probe(datagram);
                if probe {
                    group.on_probe(&self.udp, &self.peers, datagram, by_multicast);
                }
                !probe
            });
        }
        into.append(&mut later);
        self.later = later;
    }

    /// Sends, at the latest at the next [`Self::flush`].
    pub fn send(&mut self, to: Destination, datagram: BytesMut) {
        if !self.outbox.takes(to, &datagram, self.udp.batch_max()) {
            self.flush();
        }
        self.outbox.push(to, datagram);
    }

    /// Sends all that waits.
    pub fn flush(&mut self) {
        let Some(to) = self.outbox.to() else { return };
        let others = NodeSet::first(self.peers.len()).difference(NodeSet::EMPTY.with(self.me));
        let reached = match &mut self.group {
            // For a single node, multicast is only a detour.
            Ok(group) if to == Destination::Others && group.reached.len() > 1 => {
                self.udp.send(group.address.into(), &self.outbox.common());
                group.in_use = true;
                group.reached
            }
            _ => NodeSet::EMPTY,
        };
        match to {
            Destination::Node(node) => {
                if let Some(peer) = self.peers.get(usize::from(node.index())) {
                    self.udp.send(*peer, &self.outbox.common());
                }
            }
            Destination::Others | Destination::Each => {
                for node in others {
                    let peer = self.peers[usize::from(node.index())];
                    let to = Destination::Node(node);
                    if !reached.contains(node) {
                        self.udp.send(peer, &self.outbox.for_node(to));
                    } else if let Some(own) = self.outbox.only_for(to) {
                        self.udp.send(peer, &own);
                    }
                }
            }
        }
        self.outbox.clear();
    }
}

/// Appends what is there to `into`, until the bounds are reached; what is left stays in the
/// kernel's buffer, and the poller, which is level-triggered, says so again. The last system call
/// may exceed the bounds by what it takes at most.
fn take(listener: &Udp, chunks: &mut [u8], into: &mut Vec<BytesMut>, bounds: Bounds) {
    let (before, mut bytes) = (into.len(), 0);
    loop {
        let seen = into.len();
        let is_more = listener.receive(chunks, into);
        bytes += into[seen..].iter().map(BytesMut::len).sum::<usize>();
        if !is_more || into.len() - before >= bounds.datagrams || bytes >= bounds.bytes {
            return;
        }
    }
}

/// Why multicast cannot be used among these addresses.
fn obstacle(bind: SocketAddr, peers: &[SocketAddr]) -> Option<&'static str> {
    let hosts: std::collections::BTreeSet<IpAddr> = peers.iter().map(SocketAddr::ip).collect();
    if peers.len() < 3 {
        Some("there are fewer than three nodes")
    } else if !bind.is_ipv4() || peers.iter().any(|peer| !peer.is_ipv4()) {
        Some("the ring's addresses are not all of IPv4")
    } else if hosts.len() < peers.len() {
        Some("nodes share an address")
    } else if peers.iter().any(|peer| peer.ip().is_loopback()) {
        Some("nodes are on the loopback interface")
    } else {
        None
    }
}

/// Listens to the group, and lets `udp` send to it.
fn join(
    udp: &Udp,
    bind: SocketAddr,
    address: SocketAddrV4,
    prober: Option<Prober>,
) -> Result<Group, &'static str> {
    let interface = match bind.ip() {
        IpAddr::V4(interface) => interface,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    };
    let prepare = || -> io::Result<Udp> {
        let listener = Udp::bind(address.into(), true)?;
        listener.socket.join_multicast_v4(address.ip(), &interface)?;
        let sender = socket2::SockRef::from(&udp.socket);
        sender.set_multicast_if_v4(&interface)?;
        sender.set_multicast_loop_v4(false)?;
        sender.set_multicast_ttl_v4(1)?;
        Ok(listener)
    };
    match prepare() {
        Ok(listener) => {
            Ok(Group { address, listener, prober, reached: NodeSet::EMPTY, in_use: false })
        }
        Err(_) => Err("the system refuses to join the multicast group"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::{Interest, Poller};

    fn udp() -> Udp {
        Udp::bind((Ipv4Addr::LOCALHOST, 0).into(), false).expect("a socket")
    }

    #[test]
    fn a_flood_is_taken_in_bounded_bites_and_the_poller_calls_again_for_the_rest() {
        const SENT: usize = 100;
        let (listener, sender) = (udp(), udp());
        let to = listener.socket.local_addr().expect("it is bound");
        let mut poller = Poller::new().expect("epoll");
        poller.add(&listener.socket, 1, Interest::READ).expect("registered");
        for number in 0..SENT as u8 {
            // Each of its own length, so that the kernel joins none.
            let datagram = vec![number; 100 + usize::from(number)];
            sender.socket.send_to(&datagram, to).expect("there is room");
        }
        let mut chunks = vec![0; CHUNKS * CHUNK_BYTES];
        let few = Bounds { datagrams: 10, bytes: 1 << 20 };
        let short = Bounds { datagrams: SENT, bytes: 1_000 };
        let mut came = 0;
        for bounds in [few, short].into_iter().cycle() {
            assert_eq!(poller.wait(None).expect("epoll"), 1, "there is more");
            let mut bite = Vec::new();
            take(&listener, &mut chunks, &mut bite, bounds);
            assert!((1..10 + CHUNKS).contains(&bite.len()), "{bounds:?}: {}", bite.len());
            came += bite.len();
            if came == SENT {
                break;
            }
        }
        assert_eq!(poller.wait(Some(std::time::Duration::ZERO)).expect("epoll"), 0);
    }
}
