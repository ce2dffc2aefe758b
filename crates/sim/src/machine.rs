//! The circumstances of a process: its clock, whether it runs now, how slow it is, and when it
//! ends.
//!
//! What it is not: the process. Invariant: a timer set by whatever clock is due when it rings.

use crate::fault::Fault;
use crate::rng::Rng;
use crate::world::{ms, us};
use quorba_base::{Duration, Instant};

/// Datagrams that a socket keeps while its process does not read.
const SOCKET_DATAGRAMS: usize = 400;
/// Wake-ups at one time after which a process is said to spin.
const SPINS_MAX: u32 = 10_000;

/// A monotonic clock that starts at zero with the process, drifts, jumps ahead or stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The true time since which it runs at its rate, and what it showed then.
    since: Instant,
    shown: Instant,
    /// Parts per million that it runs too fast; negative: too slow.
    drift_ppm: i64,
}

impl Clock {
    pub(crate) fn new(origin: Instant, drift_ppm: i64) -> Self {
        Self { since: origin, shown: Instant::ZERO, drift_ppm }
    }

    fn rate(&self) -> u128 {
        u128::try_from(1_000_000 + self.drift_ppm).expect("drift is far below one million")
    }

    /// What it shows at the true time `at`.
    pub(crate) fn local(&self, at: Instant) -> Instant {
        if self.drift_ppm == 0 {
            return self.shown + at.since(self.since);
        }
        let true_ns = u128::from(at.as_nanos().saturating_sub(self.since.as_nanos()));
        let local_ns = true_ns * self.rate() / 1_000_000;
        Instant::from_nanos(self.shown.as_nanos() + local_ns as u64)
    }

    /// The first true time at which it shows `local` or more.
    pub(crate) fn global(&self, local: Instant) -> Instant {
        if self.drift_ppm == 0 {
            return self.since + local.since(self.shown);
        }
        let local_ns = u128::from(local.as_nanos().saturating_sub(self.shown.as_nanos()));
        let true_ns = (local_ns * 1_000_000).div_ceil(self.rate());
        let true_ns = u64::try_from(true_ns).unwrap_or(u64::MAX);
        Instant::from_nanos(self.since.as_nanos().saturating_add(true_ns))
    }

    fn jump(&mut self, ahead: Duration) {
        self.shown = self.shown + ahead;
    }

    fn drift(&mut self, now: Instant, drift_ppm: i64) {
        *self = Self { since: now, shown: self.local(now), drift_ppm };
    }

    fn stand_still(&mut self, now: Instant, until: Instant) {
        *self = Self { since: until, shown: self.local(now), ..*self };
    }
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) clock: Clock,
    paused_until: Instant,
    busy_until: Instant,
    /// How long each input takes it, and until when that lasts.
    slow: (Duration, Instant),
    /// Datagrams that its socket keeps.
    pub(crate) socket_datagrams: usize,
    /// The process ends after so many effects.
    pub(crate) crash_after: Option<u64>,
    /// Or at the next view that it installs.
    pub(crate) crash_at_view: bool,
    /// When it is woken next. That may be too early, for a timer that was put off: then it is
    /// armed anew, which costs less than a wake-up for each time that a timer is put off.
    pub(crate) armed: Option<Instant>,
    /// Wake-ups in a row at the same time.
    spins: u32,
}

impl Machine {
    /// A process starts.
    pub(crate) fn new(now: Instant, drift_ppm: i64) -> Self {
        Self {
            clock: Clock::new(now, drift_ppm),
            paused_until: Instant::ZERO,
            busy_until: Instant::ZERO,
            slow: (Duration::ZERO, Instant::ZERO),
            socket_datagrams: SOCKET_DATAGRAMS,
            crash_after: None,
            crash_at_view: false,
            armed: None,
            spins: 0,
        }
    }

    /// Whether it cannot look at inputs now.
    pub(crate) fn is_blocked(&self, now: Instant) -> bool {
        self.paused_until > now || self.busy_until > now
    }

    /// Whether its end is planned.
    pub(crate) fn is_doomed(&self) -> bool {
        self.crash_after.is_some() || self.crash_at_view
    }

    /// An input was handled.
    pub(crate) fn worked(&mut self, now: Instant) {
        let (time, until) = self.slow;
        if now < until {
            self.busy_until = now + time;
        }
    }

    /// A timer was handled.
    pub(crate) fn woke(&mut self) {
        self.spins += 1;
    }

    /// When it must be woken, if that is not planned yet. `due` is by its own clock; `waiting`:
    /// inputs wait.
    ///
    /// # Errors
    /// It asks to be woken at a time that has passed, for ever.
    pub(crate) fn arm(
        &mut self,
        now: Instant,
        due: Option<Instant>,
        waiting: bool,
    ) -> Result<Option<Instant>, ()> {
        let due = if waiting { Some(now) } else { due.map(|local| self.clock.global(local)) };
        let Some(due) = due else { return Ok(None) };
        let at = due.max(now).max(self.paused_until).max(self.busy_until);
        if at > now {
            self.spins = 0;
        } else if self.spins > SPINS_MAX {
            return Err(());
        }
        if self.armed.is_some_and(|armed| armed <= at) {
            return Ok(None);
        }
        self.armed = Some(at);
        Ok(Some(at))
    }

    /// It stands still; gives when it must be woken.
    pub(crate) fn pause(&mut self, now: Instant, time: Duration) -> Instant {
        let until = now + time;
        self.paused_until = until;
        self.armed = Some(until);
        until
    }

    /// A fault that delays the process or its clock: gives a line for people, and when it must be
    /// woken.
    pub(crate) fn delay(&mut self, now: Instant, fault: Fault, rng: &mut Rng) -> (String, Instant) {
        match fault {
            Fault::PauseShort => {
                let time = ms(rng.between(1, 120));
                (format!("stands still for {} ms", time.as_millis()), self.pause(now, time))
            }
            Fault::PauseLong | Fault::PauseSome => {
                let time = ms(rng.between(150, 4_000));
                (format!("stands still for {} ms", time.as_millis()), self.pause(now, time))
            }
            Fault::Suspend => {
                let time = ms(rng.between(10, 3_000));
                self.clock.stand_still(now, now + time);
                let until = self.pause(now, time);
                (format!("and its clock stand still for {} ms", time.as_millis()), until)
            }
            Fault::SlowNode => {
                let (micros, time) = (rng.between(50, 2_000), rng.between(50, 2_000));
                self.slow = (us(micros), now + ms(time));
                (format!("needs {micros} us per input for {time} ms"), now)
            }
            Fault::SmallSocket => {
                self.socket_datagrams = rng.between(1, 40) as usize;
                (format!("keeps {} datagrams in its socket", self.socket_datagrams), now)
            }
            Fault::ClockDrift => {
                let drift = rng.below(400_000) as i64 - 200_000;
                self.clock.drift(now, drift);
                (format!("has a clock that runs {drift} ppm too fast"), now)
            }
            _ => {
                let ahead = ms(rng.pick(&[1, 100, 5_000, 3_600_000]));
                self.clock.jump(ahead);
                (format!("has a clock that jumps {} ms ahead", ahead.as_millis()), now)
            }
        }
    }

    /// Faults are over; gives when it must be woken.
    pub(crate) fn make_peace(&mut self, now: Instant) -> Instant {
        let clock = Clock { drift_ppm: self.clock.drift_ppm.clamp(-20_000, 20_000), ..self.clock };
        let soon = self.paused_until.min(now + ms(1)).max(now);
        let shown = self.clock.local(now);
        *self = Self { paused_until: soon, spins: self.spins, ..Self::new(now, 0) };
        self.clock = Clock { since: now, shown, ..clock };
        self.armed = Some(soon);
        soon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_set_by_a_drifting_clock_is_due_when_it_rings() {
        let origin = Instant::from_nanos(5_000);
        for drift_ppm in [-200_000, -3, 0, 7, 200_000] {
            let mut clock = Clock::new(origin, drift_ppm);
            for ahead_ns in [0, 12_345] {
                clock.jump(Duration::from_nanos(ahead_ns));
                for local_ns in [12_345, 12_346, 1_000_000_007] {
                    let local = Instant::from_nanos(local_ns);
                    let rings = clock.global(local);
                    assert!(clock.local(rings) >= local);
                    let before = Instant::from_nanos(rings.as_nanos() - 1);
                    assert!(before < origin || clock.local(before) < local);
                }
            }
        }
    }

    #[test]
    fn a_clock_never_goes_back_whatever_happens_to_it() {
        let mut clock = Clock::new(Instant::from_nanos(5_000), 0);
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        assert_eq!(clock.local(at(105)), at(100));
        clock.drift(at(105), -200_000);
        assert_eq!(clock.local(at(105)), at(100));
        assert_eq!(clock.local(at(205)), at(180));
        clock.stand_still(at(205), at(1_000));
        assert_eq!(clock.local(at(300)), at(180));
        assert_eq!(clock.local(at(1_100)), at(260));
    }
}
