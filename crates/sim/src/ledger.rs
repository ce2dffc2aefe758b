//! What clients know of their calls: the outside view that every promise is checked against.

use crate::servant::{Mark, Reference, Wish};
use quorba_base::Instant;
use std::collections::BTreeMap;

/// How a call ended, as its client sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Its client still waits, or has not sent it yet.
    Open,
    /// A reply came.
    Acknowledged { mark: Mark, at: Instant },
    /// A reply came, which says no more than what an object's value is.
    Read { value: u64, at: Instant },
    /// It was surely not executed, and is not repeated.
    Refused,
    /// Nobody told the client.
    Unknown,
}

/// One logical call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) client: usize,
    pub(crate) group: usize,
    pub(crate) wish: Wish,
    /// It has an FT_REQUEST identity.
    pub(crate) named: bool,
    /// When its client first sent it.
    pub(crate) invoked: Instant,
    pub(crate) outcome: Outcome,
    /// Requests that were sent for it.
    pub(crate) sent: u32,
}

/// In the place of a client: a server makes the call.
pub(crate) const SERVERS: usize = usize::MAX;

impl Call {
    /// It got a reply.
    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Outcome::Acknowledged { .. })
    }

    /// A server makes it, in a request.
    pub(crate) fn is_servers(&self) -> bool {
        self.client == SERVERS
    }
}

/// All calls of a run.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) calls: BTreeMap<Reference, Call>,
    /// Replies by group in the order in which they came.
    pub(crate) acknowledged: Vec<Reference>,
}

impl Ledger {
    pub(crate) fn open(&mut self, reference: Reference, call: Call) {
        let before = self.calls.insert(reference, call);
        assert!(before.is_none(), "references are unique");
    }

    pub(crate) fn close(&mut self, reference: Reference, outcome: Outcome) {
        let call = self.calls.get_mut(&reference).expect("it was opened");
        if matches!(call.outcome, Outcome::Acknowledged { .. } | Outcome::Read { .. }) {
            return;
        }
        call.outcome = outcome;
        if matches!(outcome, Outcome::Acknowledged { .. }) {
            self.acknowledged.push(reference);
        }
    }

    pub(crate) fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.calls.values().filter(|call| is(&call.outcome)).count()
    }
}
