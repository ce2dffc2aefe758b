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
    outbox: Outbox,
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
        Ok(Self { cpg, group, outbox: Outbox::default() })
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
                    self.outbox.waiting.push_back(message);
                    if self.outbox.retry_at.is_none() {
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
        self.outbox.retry_at
    }

    /// Offers what waits, until the daemon takes no more.
    pub(crate) fn offer(&mut self) -> Result<(), NodeError> {
        let Self { cpg, outbox, .. } = self;
        outbox.offer(Clock::now(), |message| cpg.multicast(message)).map_err(unusable)
    }

    pub(crate) fn leave(&self) {
        self.cpg.leave();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err gives")]
fn unusable(error: CpgError) -> NodeError {
    NodeError::Corosync(error.to_string())
}

/// What the daemon did not take yet, in its order.
#[derive(Default)]
struct Outbox {
    waiting: VecDeque<Bytes>,
    /// It took no more; until then nothing is offered.
    retry_at: Option<Clock>,
}

impl Outbox {
    /// Gives what waits to `take`, which says whether it has taken it, until it takes no more.
    fn offer(
        &mut self,
        now: Clock,
        mut take: impl FnMut(&[u8]) -> Result<bool, CpgError>,
    ) -> Result<(), CpgError> {
        self.retry_at = None;
        while let Some(message) = self.waiting.front() {
            if !take(message)? {
                self.retry_at = Some(now + RETRY_PAUSE);
                break;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_does_not_take_is_offered_again_in_its_order() {
        let mut outbox = Outbox::default();
        outbox.waiting.extend(["a", "b", "c"].map(Bytes::from));
        let (now, mut taken) = (Clock::now(), Vec::new());
        // One at a time, and every other one is refused first.
        let mut is_busy = false;
        let mut rounds = 0;
        while outbox.retry_at.is_some() || rounds == 0 {
            let offered = outbox.offer(now, |message| {
                is_busy = !is_busy;
                if !is_busy {
                    taken.push(message.to_vec());
                }
                Ok(!is_busy)
            });
            assert!(offered.is_ok());
            rounds += 1;
            let later = (rounds < 4).then_some(now + RETRY_PAUSE);
            assert_eq!(outbox.retry_at, later, "round {rounds}");
        }
        assert_eq!(taken, [b"a", b"b", b"c"]);
        assert!(outbox.waiting.is_empty());
    }
}
