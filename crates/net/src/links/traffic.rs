//! Messages over the links: what is sent and told, and between whom messages pass.
//!
//! Invariants: those of [`super`].

use super::*;

/// What the links tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// Messages pass in both directions between this node and that boot of another.
    Up {
        /// Which node.
        node: NodeId,
        /// Its boot.
        incarnation: u64,
    },
    /// What was on its way in either direction may be lost.
    Down {
        /// Which node.
        node: NodeId,
    },
    /// The process of a node has ended, as far as anybody can tell.
    Ended {
        /// Which node.
        node: NodeId,
    },
    /// A message.
    Message {
        /// Who sent it.
        from: NodeId,
        /// In which boot.
        incarnation: u64,
        /// What it says.
        bytes: Bytes,
    },
    /// What waits for a node was too much, and is not any more.
    Room {
        /// Which node.
        node: NodeId,
    },
}

impl Links {
    /// The next thing to know.
    pub fn poll(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Puts a message behind the others of its lane; it leaves with the next [`Self::flush`], or
    /// when there is room.
    ///
    /// # Panics
    /// If it is longer than [`MESSAGE_BYTES_MAX`].
    pub fn send(&mut self, to: NodeId, lane: Lane, message: Bytes) -> Sent {
        let Some(link) = self.outgoing.get_mut(&to) else { return Sent::NotConnected };
        self.to_flush.insert(to);
        link.send(lane, message)
    }

    /// Bytes that wait to be sent to a node.
    #[must_use]
    pub fn queued_bytes(&self, to: NodeId) -> usize {
        self.outgoing.get(&to).map_or(0, Link::queued_bytes)
    }

    /// The boots that messages pass to and from.
    pub fn up(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.up.iter().map(|(node, incarnation)| (*node, *incarnation))
    }

    /// Lets go what was sent since the last time.
    pub fn flush(&mut self, poller: &Poller) {
        for node in std::mem::replace(&mut self.to_flush, NodeSet::EMPTY).iter() {
            self.write(node, poller);
        }
    }

    pub(super) fn write(&mut self, node: NodeId, poller: &Poller) {
        let Some(link) = self.outgoing.get_mut(&node) else { return };
        match link.flush(poller) {
            Ok(true) => self.events.push_back(LinkEvent::Room { node }),
            Ok(false) => {}
            Err(error) => self.outgoing_ended(node, &error),
        }
    }

    /// `boot` has come to hold the connection `token`: its messages come on that one from now on,
    /// unless a later boot is there.
    pub(super) fn take_over(&mut self, boot: Boot, token: u64) {
        let node = boot.node;
        let later = |other: Boot| other.node == node && other.incarnation > boot.incarnation;
        let is_late = self.incoming.iter().any(|one| one.link.proven().is_some_and(later));
        for one in &mut self.incoming {
            if one.link.proven().is_some_and(|other| other.node == node)
                && (one.token == token) == is_late
            {
                one.link.mute();
            }
        }
        if !is_late && self.up.remove(&node).is_some() {
            self.events.push_back(LinkEvent::Down { node });
        }
        self.make_room_for_proven(node, token);
        self.look_at(node);
        if !self.outgoing.contains_key(&node) {
            // It runs, so it can be called.
            self.reopen_within(Duration::ZERO);
        }
    }

    /// Something has changed between this node and `node`: whether messages pass.
    pub(super) fn look_at(&mut self, node: NodeId) {
        let outgoing = self.outgoing.get(&node).and_then(Link::proven);
        let from = |one: &&Incoming| {
            one.link.receives() && one.link.proven().is_some_and(|boot| boot.node == node)
        };
        let incoming = self.incoming.iter().find(from).and_then(|one| one.link.proven());
        let now = outgoing.filter(|_| outgoing == incoming).map(|boot| boot.incarnation);
        if self.up.get(&node).copied() == now {
            return;
        }
        if self.up.remove(&node).is_some() {
            self.events.push_back(LinkEvent::Down { node });
        }
        if let Some(incarnation) = now {
            self.up.insert(node, incarnation);
            self.events.push_back(LinkEvent::Up { node, incarnation });
        }
    }
}
