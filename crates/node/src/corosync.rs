//! The order as the Corosync cluster of the hosts makes it.
//!
//! What it is not: its protocol; that is `quorba-corosync`'s. This one connects the group with
//! the daemon's socket, and keeps what the daemon does not take yet.
//!
//! Invariant: outputs of the group take effect in their order; a multicast is offered only after
//! what came before it was handed out and carried out.

use crate::NodeError;
use crate::boot::BootFile;
use bytes::Bytes;
use quorba_base::NodeId;
use quorba_config::Domain;
use quorba_corosync::{Cpg, CpgError, Event, Group, GroupConfig, Output};
use quorba_engine::order::{Output as Ordered, Ticket};
use quorba_net::{Interest, Poller};
use std::collections::VecDeque;
use std::time::{Duration, Instant as Clock};

/// When a message that the daemon did not take is offered again.
const RETRY_PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Corosync {
    cpg: Cpg,
    group: Group,
    /// What the daemon did not take yet, in its order.
    outbox: VecDeque<Bytes>,
    retry_at: Option<Clock>,
}

impl Corosync {
    /// Joins the domain's group. Nothing is said before the first [`Self::dispatch`].
    pub(crate) fn join(
        domain: &Domain,
        me: NodeId,
        boot: &BootFile,
        token: u64,
        poller: &Poller,
    ) -> Result<Self, NodeError> {
        let config = GroupConfig {
            me,
            nodes: domain.node_set(),
            incarnation: boot.incarnation(),
            digest: domain.digest(),
            seq_min: boot.ring_seq(),
        };
        let cpg = Cpg::join(&format!("quorba.{}", domain.id)).map_err(unusable)?;
        poller.add(&cpg, token, Interest::READ).map_err(NodeError::Resources)?;
        let group = Group::new(config);
        Ok(Self { cpg, group, outbox: VecDeque::new(), retry_at: None })
    }

    pub(crate) fn submit(&mut self, ticket: Ticket, payload: Bytes) {
        self.group.submit(ticket, payload);
    }

    /// Takes what the daemon has to say.
    pub(crate) fn dispatch(&mut self) -> Result<(), NodeError> {
        for event in self.cpg.dispatch().map_err(unusable)? {
            match event {
                Event::Change(change) => self.group.handle_change(change),
                Event::Message { from, message } => self.group.handle_message(from, message),
            }
        }
        self.group.flush();
        Ok(())
    }

    /// The next output of the order; multicasts before it are offered to the daemon.
    pub(crate) fn next(&mut self) -> Result<Option<Ordered>, NodeError> {
        while let Some(output) = self.group.poll() {
            match output {
                Output::Multicast(message) => {
                    self.outbox.push_back(message);
                    if self.retry_at.is_none() {
                        self.offer()?;
                    }
                }
                Output::Ordered(ordered) => return Ok(Some(ordered)),
            }
        }
        Ok(None)
    }

    /// When [`Self::offer`] is wanted.
    pub(crate) fn retry_at(&self) -> Option<Clock> {
        self.retry_at
    }

    /// Offers what waits, until the daemon takes no more.
    pub(crate) fn offer(&mut self) -> Result<(), NodeError> {
        self.retry_at = None;
        while let Some(message) = self.outbox.front() {
            if !self.cpg.multicast(message).map_err(unusable)? {
                self.retry_at = Some(Clock::now() + RETRY_PAUSE);
                break;
            }
            self.outbox.pop_front();
        }
        Ok(())
    }

    pub(crate) fn leave(&self) {
        self.cpg.leave();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err gives")]
fn unusable(error: CpgError) -> NodeError {
    NodeError::Corosync(error.to_string())
}
