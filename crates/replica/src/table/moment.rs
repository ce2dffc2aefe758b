//! The moment of a request: time and chance as the order tells them, equal at all members.
//!
//! What it is not: a secret. Whoever knows the order knows both. Invariant: a pure function of the
//! delivered requests.

use crate::table::GroupTable;
use crate::words::history::History;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};

/// What a server may know of the request that it executes, and its replicas know alike.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moment {
    /// The request's number in its group, from 1.
    pub number: u64,
    /// The wall clock of its gateway when it came in, or of an earlier request if that was later:
    /// TimeT, 100 ns since 1582-10-15.
    pub time: u64,
    /// Differs from request to request without a pattern; for random numbers, not for keys.
    pub seed: u64,
}

impl Moment {
    /// That of the request that `table` was delivered last.
    pub(crate) fn of(table: &GroupTable) -> Self {
        // A digest that no two requests of a group share, and that restarts do not repeat.
        let History { count, digest } = table.history;
        Self { number: count, time: table.clock.wall(), seed: digest }
    }

    pub(crate) fn encode(self, w: &mut Writer) {
        w.u64(self.number);
        w.u64(self.time);
        w.u64(self.seed);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let (number, time) = (r.u64("number")?, r.u64("time")?);
        Ok(Self { number, time, seed: r.u64("seed")? })
    }
}
