//! Where the data plane's thread stands in the scheduler's queue.
//!
//! A node that has little to do stands in front: then a call waits for nobody, and a busy host does
//! not make the others believe that the node is dead. One that has much to do stands where everyone
//! does: in front it would run after each single message of its clients and servers, and while it
//! waits its turn they have more for it to take in at once.
//!
//! What it is not: a promise. What may not stand in front stays where it is. Invariant: a thread
//! that was late stands in front for a while, whatever it has to do.

use rustix::process::setpriority_process;
use std::time::{Duration, Instant as Clock};

/// In front, and where everyone is.
const FRONT: i32 = -10;
const USUAL: i32 = 0;
/// From so many calls under way on, on average, there is much to do, and below so many little.
const MUCH: usize = 4;
const LITTLE: usize = 2;
/// The average is over about so many looks.
const LOOKS: usize = 64;
/// A change is not taken back sooner.
const STEADY: Duration = Duration::from_millis(100);
/// A timer that is seen later than this was late because the thread did not run.
const LATE: Duration = Duration::from_millis(20);
/// And then it stands in front for so long.
const CAREFUL: Duration = Duration::from_secs(2);

/// The calling thread, which the data plane has begun, is for what takes long: it stands where
/// everyone does, because it would keep the token otherwise.
pub(crate) fn lower_priority() {
    // To stand further back is allowed to everybody.
    let _ = setpriority_process(None, USUAL);
}

/// See the module's text.
pub(crate) struct Priority {
    is_allowed: bool,
    is_front: bool,
    /// There is much to do.
    is_busy: bool,
    /// Sum of the calls at the last looks, as far as it is not forgotten.
    sum: usize,
    not_before: Clock,
}

impl Priority {
    /// In front, if that is `wanted` and allowed.
    pub(crate) fn new(wanted: bool) -> Self {
        // Only this thread; not allowed to everybody, and then things are as they are.
        let is_allowed = wanted && setpriority_process(None, FRONT).is_ok();
        let (is_front, is_busy) = (is_allowed, false);
        Self { is_allowed, is_front, is_busy, sum: 0, not_before: Clock::now() }
    }

    /// Whether there is much to do, so that it pays to do several things at once.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// So many calls are under way now.
    pub(crate) fn mind(&mut self, calls: usize, now: Clock) {
        self.sum = self.sum - self.sum / LOOKS + calls.min(LOOKS);
        self.is_busy = self.sum >= if self.is_busy { LITTLE * LOOKS } else { MUCH * LOOKS };
        if self.is_allowed && now >= self.not_before && self.is_front == self.is_busy {
            self.stand(!self.is_busy);
            self.not_before = now + STEADY;
        }
    }

    /// A timer was seen by so much too late.
    pub(crate) fn was_late(&mut self, by: Duration, now: Clock) {
        if self.is_allowed && by > LATE && !self.is_front {
            self.stand(true);
            self.not_before = now + CAREFUL;
        }
    }

    fn stand(&mut self, front: bool) {
        let nice = if front { FRONT } else { USUAL };
        self.is_allowed = setpriority_process(None, nice).is_ok();
        self.is_front = front;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_much_to_do_when_many_calls_are_under_way_for_a_while() {
        let mut priority = Priority::new(false);
        let now = Clock::now();
        (0..10).for_each(|_| priority.mind(8, now));
        assert!(!priority.is_busy(), "a burst is no load");
        (0..200).for_each(|_| priority.mind(8, now));
        assert!(priority.is_busy());
        (0..200).for_each(|_| priority.mind(3, now));
        assert!(priority.is_busy(), "between the two bounds it stays what it was");
        (0..200).for_each(|_| priority.mind(1, now));
        assert!(!priority.is_busy());
    }
}
