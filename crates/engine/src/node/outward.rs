//! What goes to servers outside of the domain, and what comes of it.
//!
//! What it is not: who calls, which is the replica's business, and how, which is
//! [`crate::abroad`]'s.

use super::Node;
use crate::abroad::{AbroadId, Errand, Return};
use crate::gateway::Submission;
use quorba_base::Instant;
use quorba_replica::{OutsideReport, outside_failed};

impl Node {
    /// A connection that [`crate::AbroadCommand::Connect`] asked for is there.
    pub fn handle_abroad_connected(&mut self, now: Instant, connection: AbroadId) {
        self.abroad.connected(now, connection);
        self.unsettled = Some(now);
    }

    /// Bytes from a server outside.
    pub fn handle_abroad_bytes(&mut self, now: Instant, connection: AbroadId, bytes: &[u8]) {
        self.abroad.received(now, connection, bytes);
        self.unsettled = Some(now);
    }

    /// A connection to a server outside ended, or could not be made.
    pub fn handle_abroad_closed(&mut self, now: Instant, connection: AbroadId) {
        self.abroad.closed(now, connection);
        self.unsettled = Some(now);
    }

    /// Makes the calls that may be made, and tells what came of others. Returns whether there was
    /// anything.
    pub(super) fn pump_abroad(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((key, tries)) = self.gateway.next_given_up() {
            any = true;
            self.replica.handle_called_outside(key, tries, OutsideReport::NotBegun);
        }
        while let Some(call) = self.gateway.next_call_abroad() {
            any = true;
            let errand = Errand::Call(call.key, call.tries);
            self.abroad.begin(now, call.envelope.group, errand, call.envelope);
        }
        while let Some(Return { errand, request, report }) = self.abroad.next_return() {
            any = true;
            match errand {
                Errand::Call(key, tries) => self.replica.handle_called_outside(key, tries, report),
                Errand::Ask(group, number) => {
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
        let errand = Errand::Ask(submission.group, submission.number);
        self.gateway.called(submission);
        self.abroad.begin(now, submission.group, errand, asked);
        true
    }
}
