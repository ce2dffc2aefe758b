//! One member executes each request first: see [`crate::server::executor`]'s gate.
//!
//! What it is not: replicated; that is who goes ahead, which the table says. Invariant: nothing is
//! waited for that cannot be heard.

use super::Group;
use crate::messages::peer::PeerMessage;
use crate::output::{DriverOutput, Outbox};
use quorba_base::NodeSet;

/// How far the member is that goes ahead.
#[derive(Default)]
pub(super) struct Ahead {
    /// What was heard of others.
    heard: u64,
    /// What was said of the local member, to those that messages pass to.
    told: Option<(u64, NodeSet)>,
}

impl Group {
    /// Somebody is through all requests up to this one.
    pub(super) fn is_through(&mut self, up_to: u64) {
        self.ahead.heard = self.ahead.heard.max(up_to);
    }

    /// Says how far the local member is if it goes ahead, and has it follow if another one does.
    pub(super) fn mind_stagger(&mut self, out: &mut Outbox) {
        if !self.config.staggered {
            return;
        }
        let first = self.table.goes_ahead(&self.config);
        let others = self.table.in_set().union(self.table.joining());
        let mut others = self.reads.linked(others, self.here);
        others.remove(self.here);
        let Some(member) = &mut self.member else { return };
        match first {
            Some(first) if others.contains(first) => {
                member.follow(Some(self.ahead.heard));
                self.ahead.told = None;
            }
            Some(first) if first == self.here => {
                member.follow(None);
                let Some(up_to) = member.through() else { return };
                let told = Some((up_to, others));
                if self.ahead.told == told {
                    return;
                }
                self.ahead.told = told;
                let message = PeerMessage::Through { group: self.id, up_to };
                for to in others.iter() {
                    let (lane, bytes) = (message.lane(), message.encode());
                    out.push_back(DriverOutput::Peer { to, lane, bytes }.into());
                }
            }
            Some(_) | None => member.follow(None),
        }
    }
}
