//! What a gateway will not ask for again, told with each of its requests so that members can
//! forget replies.
//!
//! What it is not: the table of replies, which is [`crate::state::retention`]. Invariants: whoever
//! says that a request is released has submitted it for the last time before; as a gateway's
//! messages keep their order, no repetition of it comes behind.

use crate::words::ids::RequestNumber;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;

/// Requests of one gateway's boot that are answered for good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Released {
    /// All below this one.
    pub below: RequestNumber,
    /// Besides, these, at most [`Released::ALSO_MAX`]: one call that takes long must not keep the
    /// replies to all later ones in memory.
    pub also: Vec<RequestNumber>,
}

impl Released {
    /// Numbers that one request carries.
    pub const ALSO_MAX: usize = 16;

    /// All below `number`.
    #[must_use]
    pub const fn below(number: RequestNumber) -> Self {
        Self { below: number, also: Vec::new() }
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        assert!(self.also.len() <= Self::ALSO_MAX, "a gateway says too much at once");
        w.u64(self.below.0);
        w.u8(self.also.len() as u8);
        self.also.iter().for_each(|number| w.u64(number.0));
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let below = RequestNumber(r.u64("released below")?);
        let invalid = r.error("released");
        let count = usize::from(r.u8("released")?);
        if count > Self::ALSO_MAX {
            return Err(invalid);
        }
        let mut also = Vec::with_capacity(count);
        for _ in 0..count {
            also.push(RequestNumber(r.u64("released")?));
        }
        Ok(Self { below, also })
    }
}
