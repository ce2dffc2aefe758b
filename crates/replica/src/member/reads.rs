//! Reads at the member.
//!
//! Invariant: they go the way of requests to the server, behind all that was delivered before, and
//! leave no trace.

use super::{Member, Server, Stage};
use crate::calls::reads::ReadId;
use crate::server::executor::{Call, Job};
use crate::words::history::History;
use crate::words::ids::Attempt;
use bytes::Bytes;

impl Member {
    /// Whether the member of this try has executed all that it was delivered, but for what waits
    /// for its server.
    pub(crate) fn can_read(&self, attempt: Attempt) -> bool {
        matches!(self.stage, Stage::Serving { attempt: serving } if serving == attempt)
            && self.executes_now()
            && !self.withholds(u64::MAX)
    }

    pub(crate) fn has_server(&self) -> bool {
        self.server == Server::Up
    }

    /// Behind all that was delivered, or beside it.
    pub(crate) fn read(&mut self, id: ReadId, giop: Bytes, code_sets: Option<Bytes>) {
        if self.executor.has_aside() {
            return self.executor.push_aside(id, giop, code_sets);
        }
        let call = Call::Read(id);
        self.executor.push(Job::Execute { call, moment: None, giop, code_sets, awaited: true });
    }

    /// Those that wait for the server and have not begun; they are not executed here.
    pub(crate) fn take_reads(&mut self) -> alloc::vec::Vec<ReadId> {
        self.executor.take_reads()
    }

    /// From here on the member's state is the group's, whatever it was before.
    pub(crate) fn begins_at(&mut self, history: History) {
        (self.delivered, self.seen) = (history, history);
    }

    /// It changes when calls that were given to the server, or wait for it, are forgotten.
    pub(crate) fn epoch(&self) -> u64 {
        self.executor.epoch()
    }
}
