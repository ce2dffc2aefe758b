//! Calls that change nothing and close a cycle: served as reentrant reads while the request waits.
//!
//! Group A executes a request and has called B in it; B, executing that, or whoever B waits for,
//! calls A with an operation that A declares `readonly`. In the order of A it would wait for the
//! request in which it is made. So it gets no place there: one member of A executes it at once,
//! on a connection of its own, while its server waits in the middle of that request.
//!
//! What it sees is the state that A's server has there: everything before the request, and what
//! the request has done up to the call ([`Spot`]) in which it waits. That is the same at all
//! members of A, which are deterministic, and it stays so until the read is answered: the call in
//! which A waits cannot end before, and a member that has not come to it yet will come to it. So it
//! does not matter which member serves the read, nor when, and one that is gone is replaced.
//!
//! The answer is ordered and remembered under the call's name, like one from outside
//! ([`crate::calls::outside`]): all replicas of the caller hear the same, also one that comes in
//! later and replays, when A has long gone on. Whoever waits has its own copy ordered once more
//! behind the answer; when a majority holds that copy, it holds the answer, and what the answer
//! tells of.
//!
//! A server that takes no second request while it waits never answers. After the time that it has
//! for a reply, the read ends with an exception, for all alike.
//!
//! What it is not: how a server is asked, which is in `executor::reentrant`. Invariant: a read is
//! executed at its spot, or not at all.

use crate::calls::outside::OutsideReport;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{CallKey, GroupId};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use bytes::Bytes;

/// The largest reply, in bytes of its GIOP message: it is remembered for some time.
pub const REENTRANT_REPLY_BYTES_MAX: usize = 64 << 10;

/// Where a server is that waits for a call of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// It is of this group.
    pub(crate) group: GroupId,
    /// In this request.
    pub(crate) during: History,
    /// In this one of its calls.
    pub(crate) number: u32,
}

impl Spot {
    pub(crate) fn encode(self, w: &mut Writer) {
        w.u64(self.group.0);
        put_history(w, self.during);
        w.u32(self.number);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let group = GroupId(r.u64("waiting group")?);
        let during = take_history(r)?;
        Ok(Self { group, during, number: r.u32("waiting call")? })
    }
}

/// One try to serve a read; tries of one read are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadAttempt {
    pub(crate) key: CallKey,
    pub(crate) tries: u32,
}

/// What came of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    pub(crate) read_attempt: ReadAttempt,
    pub(crate) report: OutsideReport,
}

/// A read for the local server.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) read_attempt: ReadAttempt,
    pub(crate) spot: Spot,
    pub(crate) giop: Bytes,
    pub(crate) code_sets: Option<Bytes>,
}
