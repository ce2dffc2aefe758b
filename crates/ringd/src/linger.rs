//! Whether the daemon stays awake for a moment after it has told a program something, because
//! that one asks again at once: to wake a sleeping core takes longer than all the rest.
//!
//! What it is not: a loop that spins by itself, or a clock. Invariants: nothing is waited for that
//! has not come soon so often in a row; the first time in vain is the last, until it has again.

use std::time::{Duration, Instant};

/// A program that asks again within this time, of which waking the core takes a part, would be
/// heard while the daemon is awake.
const SOON: Duration = Duration::from_micros(80);
/// So often in a row.
const HABIT: u32 = 8;
/// How long the daemon stays awake at most.
const AWAKE: Duration = Duration::from_micros(60);

/// See the module's text.
#[derive(Default, Debug)]
pub(crate) struct Linger {
    /// How often in a row a program has asked soon.
    soon: u32,
    told_at: Option<Instant>,
}

impl Linger {
    /// Programs were told something in this turn.
    pub(crate) const fn told(&mut self, now: Instant) {
        self.told_at = Some(now);
    }

    /// A program asks.
    pub(crate) fn asked(&mut self, now: Instant) {
        let Some(told_at) = self.told_at.take() else { return };
        let is_soon = now.saturating_duration_since(told_at) <= SOON;
        self.soon = if is_soon { self.soon.saturating_add(1) } else { 0 };
    }

    /// Until when to stay awake.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.told_at.filter(|_| self.soon >= HABIT).map(|told_at| told_at + AWAKE)
    }

    /// Nobody asked in that time.
    pub(crate) const fn in_vain(&mut self) {
        self.soon = 0;
        self.told_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(linger: &mut Linger, turns: u32, pause: Duration) -> Option<Duration> {
        let mut now = Instant::now();
        for _ in 0..turns {
            linger.told(now);
            now += pause;
            linger.asked(now);
        }
        linger.told(now);
        linger.until().map(|until| until - now)
    }

    #[test]
    fn who_asks_again_and_again_is_waited_for() {
        let mut linger = Linger::default();
        assert_eq!(after(&mut linger, HABIT - 1, SOON), None, "that may be chance");
        assert_eq!(after(&mut linger, 1, SOON), Some(AWAKE));
        linger.in_vain();
        assert_eq!(after(&mut linger, HABIT - 1, SOON), None, "it has stopped");
    }

    #[test]
    fn who_takes_its_time_is_not() {
        let mut linger = Linger::default();
        assert_eq!(after(&mut linger, 100, 2 * SOON), None);
        after(&mut linger, HABIT, SOON);
        assert_eq!(after(&mut linger, 1, 2 * SOON), None, "not any more");
    }

    #[test]
    fn who_only_listens_is_not() {
        let mut linger = Linger::default();
        for _ in 0..100 {
            linger.told(Instant::now());
        }
        assert_eq!(linger.until(), None);
    }
}
