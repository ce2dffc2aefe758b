//! What goes to servers outside of the domain, and what comes of it.
//!
//! What it is not: who calls, which is the replica's business, and how, which is
//! [`crate::external`]'s.

use super::Node;
use crate::external::{ExternalId, Purpose, Return};
use crate::gateway::Submission;
use quorba_base::Instant;
use quorba_replica::{OutsideReport, outside_failed};

impl Node {
    /// A connection that [`crate::ExternalCommand::Connect`] asked for is there.
    pub fn handle_external_connected(&mut self, now: Instant, connection: ExternalId) {
        self.external.connected(now, connection);
        self.unsettled = Some(now);
    }

    /// Bytes from a server outside.
    pub fn handle_external_bytes(&mut self, now: Instant, connection: ExternalId, bytes: &[u8]) {
        self.external.received(now, connection, bytes);
        self.unsettled = Some(now);
    }

    /// A connection to a server outside ended, or could not be made.
    pub fn handle_external_closed(&mut self, now: Instant, connection: ExternalId) {
        self.external.closed(now, connection);
        self.unsettled = Some(now);
    }

    /// Makes the calls that may be made, and tells what came of others. Returns whether there was
    /// anything.
    pub(super) fn pump_external(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((key, tries)) = self.gateway.next_given_up() {
            any = true;
            self.replica.handle_called_outside(key, tries, OutsideReport::NotBegun);
        }
        while let Some(call) = self.gateway.next_external_call() {
            any = true;
            let purpose = Purpose::Call(call.key, call.tries);
            self.external.begin(now, call.envelope.group, purpose, call.envelope);
        }
        while let Some(Return { purpose, request, report }) = self.external.next_return() {
            any = true;
            match purpose {
                Purpose::Call(key, tries) => self.replica.handle_called_outside(key, tries, report),
                Purpose::Ask(group, number) => {
                    let giop = match report {
                        OutsideReport::Reply(reply) => Some(reply),
                        OutsideReport::NotBegun => None,
                        OutsideReport::Failed(why) => outside_failed(&request, why),
                    };
                    self.gateway.read(group, number, giop, false);
                }
            }
        }
        any
    }

    /// What an ORB asks by itself is asked past the order, for whoever asks; gives whether the
    /// submission is that.
    pub(super) fn asks_outside(&mut self, now: Instant, submission: &Submission) -> bool {
        if !self.replica.is_outside(submission.group) {
            return false;
        }
        let asked = self.gateway.asked(submission).filter(|asked| asked.nested.is_none());
        let Some(asked) = asked.cloned() else { return false };
        let purpose = Purpose::Ask(submission.group, submission.number);
        self.gateway.called(submission);
        self.external.begin(now, submission.group, purpose, asked);
        true
    }
}
