//! The boots of the other nodes: which is proven, which is a candidate.
//!
//! Invariants: a node's proven incarnation only grows; deriving keys for unknown boots is limited
//! per second, so that junk with random sessions costs a bounded amount of time; a replayed
//! recording of an old boot never becomes proven.

use super::window::ReplayWindow;
use super::{BadHeader, BootId, BootKey, Header, InvalidKeys, KeyId, KeyRing, SessionId};
use crate::config::DomainKey;
use crate::output::RefusedReason;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Buf, Bytes, BytesMut};
use quorba_base::{Instant, NODES_MAX, NodeId, NodeSet};

/// Keys derived for unknown boots, at most, per slot: 5,000 a second, some 2 % of a core. Slots
/// are short, so that a flood of junk leaves honest new boots a chance every few milliseconds.
const DERIVATIONS_PER_SLOT: u32 = 50;
const SLOT_NS: u64 = 10_000_000;

struct Session {
    boot: BootId,
    /// One for each domain key under which this boot has sent; none if nothing is protected.
    keys: Vec<(KeyId, BootKey)>,
    /// One for all keys, for the boot has one counter.
    window: ReplayWindow,
}

#[derive(Default)]
struct Peer {
    /// Has echoed my salt: its packets are live.
    proven: Option<Box<Session>>,
    /// Authentic, but maybe a recording.
    candidate: Option<Box<Session>>,
}

/// An authentic packet.
pub(crate) struct Accepted {
    pub(crate) from: NodeId,
    pub(crate) boot: BootId,
    pub(crate) counter: u64,
    /// The domain key that it is sealed with.
    pub(crate) key: KeyId,
    /// The sender's boot is known to be live. If not, only greetings count.
    pub(crate) proven: bool,
    pub(crate) packet: Bytes,
}

/// Why a datagram was dropped before it was parsed.
pub(crate) enum Dropped {
    /// Not worth a word: not ours, a duplicate, or too many unknown boots.
    Silently,
    /// To be reported.
    Refused(NodeId, RefusedReason),
}

/// All peers' boots.
pub(crate) struct Sessions {
    me: NodeId,
    nodes: NodeSet,
    encrypt: bool,
    keyring: KeyRing,
    peers: Vec<Peer>,
    slot: u64,
    derivations: u32,
}

impl Sessions {
    pub(crate) fn new(me: NodeId, nodes: NodeSet, domain_key: DomainKey, encrypt: bool) -> Self {
        let peers = (0..NODES_MAX).map(|_| Peer::default()).collect();
        let keyring = KeyRing::new(domain_key);
        Self { me, nodes, encrypt, keyring, peers, slot: 0, derivations: 0 }
    }

    /// The domain keys.
    pub(crate) const fn keyring(&self) -> &KeyRing {
        &self.keyring
    }

    pub(crate) const fn keyring_mut(&mut self) -> &mut KeyRing {
        &mut self.keyring
    }

    /// Accepts `keys` and no others from now on.
    pub(crate) fn replace_keys(&mut self, keys: Vec<DomainKey>) -> Result<(), InvalidKeys> {
        self.keyring.replace(keys)?;
        for peer in &mut self.peers {
            for session in [&mut peer.proven, &mut peer.candidate].into_iter().flatten() {
                session.keys.retain(|(id, _)| self.keyring.get(*id).is_some());
            }
        }
        Ok(())
    }

    /// Checks, verifies and decrypts a datagram.
    pub(crate) fn open(&mut self, now: Instant, datagram: BytesMut) -> Result<Accepted, Dropped> {
        let header = Header::parse(&datagram).map_err(|bad| match bad {
            BadHeader::Foreign | BadHeader::Version(None) => Dropped::Silently,
            BadHeader::Version(Some(node)) => Dropped::Refused(node, RefusedReason::Version),
            BadHeader::Node => Dropped::Silently,
        })?;
        let node = header.boot.node;
        if node == self.me || !self.nodes.contains(node) {
            return Err(Dropped::Refused(node, RefusedReason::UnknownNode));
        }
        if (header.protection == 1) != self.encrypt {
            return Err(Dropped::Refused(node, RefusedReason::Protection));
        }
        if self.encrypt && self.keyring.get(header.key).is_none() {
            return Err(Dropped::Refused(node, RefusedReason::Seal));
        }
        let peer = &mut self.peers[usize::from(node.index())];
        for (slot, proven) in [(&mut peer.proven, true), (&mut peer.candidate, false)] {
            if let Some(session) = slot
                && session.boot == header.boot
            {
                return session.receive(&self.keyring, &header, proven, datagram);
            }
        }
        if let Some(known) = &peer.proven
            && header.boot.incarnation <= known.boot.incarnation
        {
            return Err(Dropped::Refused(node, RefusedReason::Incarnation));
        }
        if let Some(candidate) = &peer.candidate
            && header.boot.incarnation < candidate.boot.incarnation
        {
            return Err(Dropped::Refused(node, RefusedReason::Incarnation));
        }
        self.meet(now, &header, datagram)
    }

    /// A datagram of a boot that is not known: derive its key and see.
    fn meet(
        &mut self,
        now: Instant,
        header: &Header,
        datagram: BytesMut,
    ) -> Result<Accepted, Dropped> {
        let slot = now.as_nanos() / SLOT_NS;
        if slot != self.slot {
            self.slot = slot;
            self.derivations = 0;
        }
        if self.encrypt {
            if self.derivations >= DERIVATIONS_PER_SLOT {
                return Err(Dropped::Silently);
            }
            self.derivations += 1;
        }
        let (keys, window) = (Vec::new(), ReplayWindow::above(0));
        let mut session = Session { boot: header.boot, keys, window };
        let accepted = session.receive(&self.keyring, header, false, datagram)?;
        self.peers[usize::from(header.boot.node.index())].candidate = Some(Box::new(session));
        Ok(accepted)
    }

    /// The packet `accepted` has echoed my salt: its boot is live. What it sent before this packet
    /// is no longer accepted, for I could not tell it from a replay.
    pub(crate) fn prove(&mut self, accepted: &Accepted) {
        let peer = &mut self.peers[usize::from(accepted.from.index())];
        if let Some(mut session) = peer.candidate.take_if(|c| c.boot == accepted.boot) {
            session.window = ReplayWindow::above(accepted.counter);
            peer.proven = Some(session);
        }
    }

    /// The live boot of `node`.
    pub(crate) fn incarnation(&self, node: NodeId) -> Option<u64> {
        let proven = self.peers[usize::from(node.index())].proven.as_ref()?;
        Some(proven.boot.incarnation)
    }

    /// What to echo: of each node the candidate, or else the proven boot's session.
    pub(crate) fn heard(&self) -> impl Iterator<Item = (NodeId, SessionId)> + '_ {
        self.nodes.iter().filter_map(|node| {
            let peer = &self.peers[usize::from(node.index())];
            let session = peer.candidate.as_ref().or(peer.proven.as_ref())?;
            Some((node, session.boot.session))
        })
    }
}

impl Session {
    /// The key of `id`; derived when it is first used, so at most once per session and domain key.
    fn key(&mut self, keyring: &KeyRing, id: KeyId) -> Option<&BootKey> {
        if let Some(place) = self.keys.iter().position(|(known, _)| *known == id) {
            return Some(&self.keys[place].1);
        }
        self.keys.push((id, BootKey::derive(keyring.get(id)?, &self.boot)));
        self.keys.last().map(|(_, key)| key)
    }

    fn receive(
        &mut self,
        keyring: &KeyRing,
        header: &Header,
        proven: bool,
        mut datagram: BytesMut,
    ) -> Result<Accepted, Dropped> {
        let (boot, counter) = (header.boot, header.counter);
        if !self.window.is_fresh(counter) {
            return Err(Dropped::Silently);
        }
        let packet = if header.protection == 1 {
            self.key(keyring, header.key)
                .and_then(|key| key.open(header, datagram))
                .ok_or(Dropped::Refused(boot.node, RefusedReason::Seal))?
        } else {
            datagram.advance(super::HEADER_BYTES);
            datagram.freeze()
        };
        self.window.accept(counter);
        Ok(Accepted { from: boot.node, boot, counter, key: header.key, proven, packet })
    }
}
