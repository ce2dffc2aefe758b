//! A running digest of what was delivered: two nodes with equal histories saw the same messages.
//!
//! What it is not: protection against forgery; all inputs come through the authenticated ring.

use crate::words::ids::RequestNumber;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use quorba_base::NodeId;

/// Count and digest of a sequence of messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct History {
    /// How many messages the sequence has.
    pub count: u64,
    /// Depends on every message and on their order.
    pub digest: u64,
}

impl Default for History {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl History {
    /// The empty sequence: what a freshly started server has executed.
    pub const EMPTY: Self = Self { count: 0, digest: 0x9e37_79b9_7f4a_7c15 };

    /// The sequence with one more message, named by its origin, that node's boot and a number.
    #[must_use]
    pub fn extended(self, origin: NodeId, incarnation: u64, number: u64) -> Self {
        let digest = mix(mix(mix(self.digest, u64::from(origin.index())), incarnation), number);
        Self { count: self.count + 1, digest }
    }

    /// The sequence with one more request of a client. Whether it was delivered when members had
    /// no room to remember its reply counts, because it is refused then, and one component may
    /// have had room where another had none (seed 2055964 of the simulator's `styles`).
    #[must_use]
    pub fn with_request(
        self,
        origin: NodeId,
        incarnation: u64,
        number: RequestNumber,
        is_full: bool,
    ) -> Self {
        let mark = if is_full { FULL_MARK } else { 0 };
        self.extended(origin, incarnation, number.0 ^ mark)
    }
}

/// Numbers of requests stay far below.
const FULL_MARK: u64 = 1 << 63;

/// A number for some octets; who can choose them can make two that share it.
pub(crate) fn digest_of(octets: &[u8]) -> u64 {
    let words = octets
        .chunks(8)
        .map(|chunk| chunk.iter().fold(0, |word, octet| (word << 8) | u64::from(*octet)));
    words.fold(mix(History::EMPTY.digest, octets.len() as u64), mix)
}

/// The finaliser of splitmix64 over the running state: every input bit reaches every output bit.
fn mix(state: u64, value: u64) -> u64 {
    let mut z = (state ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) fn put_history(w: &mut Writer, history: History) {
    w.u64(history.count);
    w.u64(history.digest);
}

pub(crate) fn take_history(r: &mut Reader) -> Result<History, InvalidEnvelope> {
    Ok(History { count: r.u64("history")?, digest: r.u64("history digest")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_both_count() {
        let a = NodeId::new(0).unwrap();
        let b = NodeId::new(1).unwrap();
        let ab = History::EMPTY.extended(a, 1, 1).extended(b, 1, 1);
        let ba = History::EMPTY.extended(b, 1, 1).extended(a, 1, 1);
        assert_eq!(ab.count, ba.count);
        assert_ne!(ab, ba);
        assert_ne!(History::EMPTY.extended(a, 1, 1), History::EMPTY.extended(a, 2, 1));
    }
}
