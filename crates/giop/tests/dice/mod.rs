//! What the tests with mutated inputs throw; the tests of other rooms, too.
//!
//! Invariant: the same seed gives the same numbers everywhere.

/// A generator (xorshift64*).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `below`; 0 if that is 0.
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).expect("31 bits") % below.max(1)
    }
}
