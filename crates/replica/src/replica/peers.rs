//! What comes over the links to other nodes.
//!
//! Invariant: nothing that is replicated changes because of it.

use super::Replica;
use super::disk::DiskProgress;
use crate::group::Group;
use crate::messages::peer::PeerMessage;
use crate::output::{Event, Output};
use crate::words::ids::{GatewayKey, GroupId};
use bytes::Bytes;
use quorba_base::{Instant, NodeId};

impl Replica {
    /// A message from a node, of this boot of it.
    pub fn handle_peer_message(
        &mut self,
        now: Instant,
        from: NodeId,
        incarnation: u64,
        bytes: Bytes,
    ) {
        let Ok(message) = PeerMessage::decode(bytes) else {
            self.out.push_back(Output::Event(Event::Skipped { origin: from }));
            return;
        };
        let Some(group) = message.group() else {
            return match message {
                PeerMessage::Logged { view, prefix, gaps } => {
                    self.hear_disk(from, DiskProgress { view, prefix, gaps });
                }
                PeerMessage::CatalogSaved { version } => self.hear_catalog(from, version),
                _ => unreachable!("all others have a group"),
            };
        };
        let from = (from, incarnation);
        self.with_group(now, group, |group, here, out| group.hear(now, from, message, here, out));
    }

    /// Messages pass in both directions between this node and that boot of another.
    pub fn handle_peer_up(&mut self, now: Instant, node: NodeId, _incarnation: u64) {
        let out = &mut self.out;
        self.linked.insert(node);
        self.groups.values_mut().for_each(|group| group.peer_up(node, out));
        self.tell_disk_to(node);
        self.tell_catalog_to(node);
        self.settle_all(now);
    }

    /// What was on its way to or from a node may be lost. What is to be done about it is done when
    /// the link is there again.
    pub fn handle_peer_down(&mut self, now: Instant, node: NodeId) {
        self.set_blocked(node, true);
        self.settle_all(now);
    }

    /// Whether a read of `group` may take what it answers, so that it cannot be executed again.
    fn takes_at_leader(&self, group: GroupId) -> bool {
        let config = self.groups.get(group).map(Group::config);
        config.is_some_and(|config| config.reads.of_leader.is_some())
    }

    /// This message to a node was dropped, because too much waits already. What it has cost is
    /// made good by itself if it is about one read: others on their way are not in doubt. Replies
    /// go through the order only where a read cannot be executed again: nothing bounds how many
    /// wait there, and what waits there keeps calls waiting.
    pub fn handle_peer_full(&mut self, now: Instant, node: NodeId, dropped: Bytes) {
        match PeerMessage::decode(dropped) {
            Ok(PeerMessage::Answer { group, to, giop: Some(giop), .. })
                if self.takes_at_leader(group) =>
            {
                self.with_group(now, group, |group, _, out| group.reply_by_order(to, giop, out));
            }
            Ok(PeerMessage::Call { group, number, .. }) => {
                self.with_group(now, group, |group, here, out| {
                    let to = GatewayKey { node: here.node, incarnation: here.incarnation, number };
                    group.answered(now, node, to, (None, false), here, out);
                });
            }
            // They are sent again when there is room.
            Ok(
                PeerMessage::Fetch { .. }
                | PeerMessage::Chunk { .. }
                | PeerMessage::Logged { .. }
                | PeerMessage::CatalogSaved { .. },
            ) => {
                self.groups.values_mut().for_each(|group| group.block_transfers(node));
                self.settle_all(now);
            }
            // Whoever waits for one of these is told that the link is no use.
            Ok(
                PeerMessage::Answer { .. }
                | PeerMessage::AnswersLost { .. }
                | PeerMessage::Through { .. }
                | PeerMessage::Progress { .. },
            )
            | Err(_) => {
                self.set_blocked(node, true);
                self.settle_all(now);
            }
        }
    }

    /// There is room for messages to a node again.
    pub fn handle_peer_room(&mut self, now: Instant, node: NodeId) {
        self.set_blocked(node, false);
        self.tell_disk_to(node);
        self.tell_catalog_to(node);
        self.settle_all(now);
    }

    fn set_blocked(&mut self, node: NodeId, is_blocked: bool) {
        if is_blocked {
            self.linked.remove(node);
        } else {
            self.linked.insert(node);
        }
        let out = &mut self.out;
        self.groups.values_mut().for_each(|group| group.set_blocked(node, is_blocked, out));
    }
}
