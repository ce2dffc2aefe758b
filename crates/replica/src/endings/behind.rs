//! Server processes that end soon after a request that they have answered.
//!
//! A reply is out by then, so nothing follows from it in the order: the request was executed, and a
//! log has it executed again. An operator is told which request it may be.
//!
//! Invariant: a count of ends in a row behind the same request, and no judgement.

use crate::wire::{InvalidEnvelope, Reader, Writer};

/// So many ends behind the same request are worth telling.
const ENDS_MIN: u8 = 2;

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EndsBehindRequest {
    /// The request that was answered last, counted from the group's first; 0: none.
    request: u64,
    ends: u8,
}

impl EndsBehindRequest {
    /// A process has ended that had answered all up to that request.
    pub(crate) fn process_ended(&mut self, request: u64) {
        if self.request == request {
            self.ends = self.ends.saturating_add(1);
        } else {
            *self = Self { request, ends: 1 };
        }
    }

    /// The request behind which processes end, and how often in a row they did.
    pub(crate) fn suspect(self) -> Option<(u64, u8)> {
        (self.request > 0 && self.ends >= ENDS_MIN).then_some((self.request, self.ends))
    }

    pub(crate) fn encode(self, w: &mut Writer) {
        w.u64(self.request);
        w.u8(self.ends);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        Ok(Self { request: r.u64("answered last")?, ends: r.u8("ends behind it")? })
    }
}
