//! A group's part in reads that close a cycle; see [`crate::calls::reentrant`].
//!
//! Invariant: what came of a read is said until it was heard.

use super::Group;
use crate::calls::outside::OutsideReport;
use crate::calls::reentrant::{Question, ReadAttempt, Served};
use crate::messages::envelope::Envelope;
use crate::output::{OrderOutput, Outbox, Output, forward};
use crate::table::MemberState;
use crate::words::ids::{Attempt, CallKey, GroupId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Instant, NodeId};
use quorba_giop::{Body, Message};

/// What the local server is to do.
pub(super) struct Task {
    attempt: Attempt,
    question: Question,
    report: Option<OutsideReport>,
}

impl Task {
    fn told(&self, group: GroupId) -> Option<Bytes> {
        let ReadAttempt { key, tries } = self.question.read_attempt;
        let report = self.report.clone()?;
        Some(Envelope::Outside { group, key, tries, report }.encode())
    }
}

impl Group {
    /// Whether a call of it changes nothing, and one member's word on it is enough.
    pub(crate) fn is_read(&self, giop: &Bytes) -> bool {
        if self.config.reads.operations.is_empty() || !self.table.style.lets_one_read() {
            return false;
        }
        let Ok(message) = Message::from_bytes(giop.clone()) else { return false };
        let Ok(Body::Request(request)) = message.parse() else { return false };
        self.config.reads.has(request.operation(), request.object_key())
    }

    /// Members that can serve a read, each with its try; behind this node the next ones first.
    pub(crate) fn can_serve(&self, origin: NodeId) -> Vec<(NodeId, u64)> {
        if !self.table.style.lets_one_read() {
            return Vec::new();
        }
        let inside = self.readers();
        let mut able: Vec<(NodeId, u64)> = inside
            .iter()
            .filter_map(|node| match self.table.state(node) {
                Some(MemberState::In { attempt }) => Some((node, attempt.0)),
                _ => None,
            })
            .collect();
        able.sort_by_key(|(node, _)| (*node < origin, *node));
        able
    }

    /// The local member is to serve a read.
    pub(crate) fn take_question(&mut self, attempt: Attempt, question: Question) {
        let known = self.task.as_ref().map(|task| (task.attempt, task.question.read_attempt));
        if known != Some((attempt, question.read_attempt)) {
            self.task = Some(Box::new(Task { attempt, question, report: None }));
        }
    }

    /// It is known what came of a read, or somebody else serves it.
    pub(crate) fn need_not_serve(&mut self, key: CallKey) {
        self.task.take_if(|task| task.question.read_attempt.key == key);
    }

    /// The read that the local member serves, and under which try.
    pub(crate) fn task(&self) -> Option<(ReadAttempt, Attempt)> {
        self.task.as_ref().map(|task| (task.question.read_attempt, task.attempt))
    }

    /// It is somebody else's now.
    pub(crate) fn drop_task(&mut self) {
        self.task = None;
    }

    /// A component was established: nobody may have heard what came of a read.
    pub(crate) fn say_task_again(&self, out: &mut Outbox) {
        let told = self.task.as_ref().and_then(|task| task.told(self.id));
        out.extend(told.map(OrderOutput::Submit).map(Output::from));
    }

    /// Asks the server, or stops to wait for it.
    pub(super) fn settle_task(&mut self, now: Instant, out: &mut Outbox) {
        let Some(member) = &mut self.member else { return };
        let mut commands = Vec::new();
        let open = self.task.as_ref().filter(|task| task.report.is_none());
        member.keep_reentrant(open.map(|task| task.question.read_attempt));
        let overdue = member.reentrant_overdue(now, &mut commands);
        let missed = match open {
            Some(task) if overdue.is_none() => {
                member.serve_reentrant(now, task.attempt, &task.question, &mut commands)
            }
            _ => None,
        };
        forward(self.id, commands, out);
        for served in overdue.into_iter().chain(missed) {
            self.served_reentrant(served, out);
        }
    }

    /// The server has answered, or will not.
    pub(super) fn served_reentrant(&mut self, served: Served, out: &mut Outbox) {
        let Some(task) = &mut self.task else { return };
        if task.question.read_attempt == served.read_attempt && task.report.is_none() {
            task.report = Some(served.report);
            out.extend(task.told(self.id).map(OrderOutput::Submit).map(Output::from));
        }
    }
}
