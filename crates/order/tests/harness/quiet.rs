//! Rings without faults, and load on all of their nodes.

use super::{Faults, Net, ms};
use quorba_order::Guarantee;

impl Net {
    /// A ring of all nodes that has come to rest; every hop takes 50 µs.
    pub fn quiet(count: usize, seed: u64) -> Self {
        let mut net = Self::new(count, seed);
        net.faults = Faults { delay_us: (50, 50), ..Faults::default() };
        assert!(net.run_till(ms(1000), Self::is_whole));
        net.run_for(ms(60));
        net
    }

    /// Each node sends so many messages.
    pub fn load(&mut self, each: usize, bytes: usize, guarantee: Guarantee) {
        for index in 0..self.count {
            for _ in 0..each {
                self.submit(index, bytes, guarantee);
            }
        }
        for index in 0..self.count {
            self.drain(index);
        }
    }
}
