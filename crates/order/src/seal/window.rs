//! Which packet counters of a session have been seen: the replay window.
//!
//! Invariant: a counter is accepted at most once, and never when it is [`WINDOW`] or more behind
//! the highest accepted one.

/// How far behind the newest packet a reordered one may be.
pub(crate) const WINDOW: u64 = 2048;
const WORDS: usize = (WINDOW / 64) as usize;

/// A sliding window over packet counters.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    top: u64,
    floor: u64,
    bits: [u64; WORDS],
}

impl ReplayWindow {
    /// Accepts only counters above `floor`.
    pub(crate) const fn above(floor: u64) -> Self {
        Self { top: floor, floor, bits: [0; WORDS] }
    }

    /// Whether `counter` may still be accepted. To be asked before the cryptography.
    pub(crate) fn is_fresh(&self, counter: u64) -> bool {
        if counter > self.top {
            return true;
        }
        counter > self.floor && self.top - counter < WINDOW && !self.bit(counter)
    }

    /// Marks `counter` as seen; only after its packet was verified.
    pub(crate) fn accept(&mut self, counter: u64) {
        if counter > self.top {
            let steps = counter - self.top;
            if steps >= WINDOW {
                self.bits = [0; WORDS];
            } else {
                for skipped in self.top + 1..counter {
                    self.clear(skipped);
                }
            }
            self.top = counter;
        }
        let slot = counter % WINDOW;
        self.bits[(slot / 64) as usize] |= 1 << (slot % 64);
    }

    fn bit(&self, counter: u64) -> bool {
        let slot = counter % WINDOW;
        self.bits[(slot / 64) as usize] & (1 << (slot % 64)) != 0
    }

    fn clear(&mut self, counter: u64) {
        let slot = counter % WINDOW;
        self.bits[(slot / 64) as usize] &= !(1 << (slot % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_once() {
        let mut window = ReplayWindow::above(0);
        for counter in [1, 3, 2, 5000, 4999] {
            assert!(window.is_fresh(counter));
            window.accept(counter);
            assert!(!window.is_fresh(counter));
        }
        assert!(!window.is_fresh(4), "fell out of the window");
        assert!(!window.is_fresh(0));
        assert!(window.is_fresh(4000));
    }

    #[test]
    fn a_wrapped_slot_is_not_mistaken_for_an_old_one() {
        let mut window = ReplayWindow::above(0);
        window.accept(7);
        window.accept(7 + WINDOW + 5);
        assert!(window.is_fresh(7 + WINDOW), "same slot as 7, never seen");
        window.accept(7 + WINDOW);
        assert!(!window.is_fresh(7 + WINDOW));
    }

    #[test]
    fn nothing_at_or_below_the_floor() {
        let mut window = ReplayWindow::above(100);
        assert!(!window.is_fresh(100));
        assert!(window.is_fresh(101));
        window.accept(103);
        assert!(!window.is_fresh(99));
        assert!(window.is_fresh(102));
    }
}
