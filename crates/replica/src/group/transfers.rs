//! Messages of other nodes that concern a group, and those for them.
//!
//! What it is not: ordered; nothing here changes the table.

use super::{Group, NodeContext};
use crate::calls::reads::Read;
use crate::member::Sent;
use crate::messages::peer::PeerMessage;
use crate::output::{DriverOutput, Outbox};
use crate::words::ids::GatewayKey;
use quorba_base::{Instant, NodeId};

impl Group {
    /// A message of another node.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        (from, incarnation): (NodeId, u64),
        message: PeerMessage,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        match (message, &mut self.member) {
            (PeerMessage::Call { number, stateless, code_sets, giop, .. }, _) => {
                let asker = GatewayKey { node: from, incarnation, number };
                self.called(Read { asker, giop, code_sets }, stateless, here, out);
            }
            (PeerMessage::Answer { to, giop, ended, .. }, _) => {
                self.answered(now, from, to, (giop, ended), here, out);
            }
            (PeerMessage::Through { attempt, up_to, .. }, _) => {
                self.hear_through(from, attempt, up_to);
            }
            (PeerMessage::Progress { up_to, caught_up, .. }, _) => {
                self.hear_progress(now, from, up_to, caught_up);
            }
            (PeerMessage::AnswersLost { .. }, _) => self.answers_lost(from, out),
            (PeerMessage::Fetch { attempt, fetch, .. }, Some(member)) => {
                member.asked(now, from, attempt, fetch);
            }
            (PeerMessage::Chunk { attempt, chunk, .. }, Some(member)) => {
                let consequence = member.receive(from, attempt, &chunk);
                self.follow(consequence, here, out);
                self.save_state(out);
            }
            (PeerMessage::Logged { .. } | PeerMessage::CatalogSaved { .. }, _) => {
                unreachable!("it has no group")
            }
            (PeerMessage::Fetch { .. } | PeerMessage::Chunk { .. }, None) => {}
        }
    }

    /// Messages pass to and from a node.
    pub(crate) fn peer_up(&mut self, node: NodeId, out: &mut Outbox) {
        self.reads_link_up(node, out);
        self.repeat_through();
        if let Some(member) = &mut self.member {
            member.set_blocked(node, false);
            member.link_is_up(node);
        }
    }

    /// The queue to a node is full, and no reads were lost of it.
    pub(crate) fn block_transfers(&mut self, node: NodeId) {
        if let Some(member) = &mut self.member {
            member.set_blocked(node, true);
        }
    }

    /// The queue to a node is full or its link has ended, or there is room again.
    pub(crate) fn set_blocked(&mut self, node: NodeId, is_blocked: bool, out: &mut Outbox) {
        if is_blocked {
            self.reads_link_down(node, out);
        } else {
            self.reads_link_up(node, out);
            self.repeat_through();
        }
        if let Some(member) = &mut self.member {
            member.set_blocked(node, is_blocked);
        }
    }

    /// Sends what members on other nodes wait for.
    pub(super) fn send_to_members(&mut self, now: Instant, out: &mut Outbox) {
        let (group, member) = (self.id, self.member.as_deref_mut());
        let Some(member) = member else { return };
        while let Some(sent) = member.next_sent(now) {
            let (to, message) = match sent {
                Sent::Chunk(to, attempt, chunk) => {
                    (to, PeerMessage::Chunk { group, attempt, chunk })
                }
                Sent::Fetch(to, attempt, fetch) => {
                    (to, PeerMessage::Fetch { group, attempt, fetch })
                }
            };
            out.push_back(
                DriverOutput::Peer { to, lane: message.lane(), bytes: message.encode() }.into(),
            );
        }
    }
}
