//! Nonces: numbers that no client can guess, and no two of which are alike.
//!
//! What it is not: a source of chance. The caller's seed is; a counter and a mixing function
//! (SplitMix64, Steele et al. 2014) make as many numbers of it as are needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the module's text. A clone draws from the same sequence.
#[derive(Clone, Debug)]
pub(crate) struct Nonces(Arc<AtomicU64>);

impl Nonces {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    pub(crate) fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
