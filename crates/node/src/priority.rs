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

/// See the module's text.
pub(crate) struct Priority {
    is_allowed: bool,
    is_front: bool,
    /// Sum of the calls at the last looks, as far as it is not forgotten.
    sum: usize,
    not_before: Clock,
}

impl Priority {
    /// In front, if that is `wanted` and allowed.
    pub(crate) fn new(wanted: bool) -> Self {
        // Only this thread; not allowed to everybody, and then things are as they are.
        let is_allowed = wanted && setpriority_process(None, FRONT).is_ok();
        Self { is_allowed, is_front: is_allowed, sum: 0, not_before: Clock::now() }
    }

    /// So many calls are under way now.
    pub(crate) fn mind(&mut self, calls: usize, now: Clock) {
        self.sum = self.sum - self.sum / LOOKS + calls.min(LOOKS);
        if !self.is_allowed || now < self.not_before {
            return;
        }
        if self.is_front && self.sum >= MUCH * LOOKS {
            self.stand(false);
            self.not_before = now + STEADY;
        } else if !self.is_front && self.sum < LITTLE * LOOKS {
            self.stand(true);
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
