//! How long a server that ended is left alone before it is started again, and when it is put in
//! quarantine, because its member has failed again and again.
//!
//! What it is not: what starts it. Invariants: a server that was of use is started again soon,
//! however often it ends; one that never is costs the group no more than one try per quarantine.

use std::time::{Duration, Instant};

/// A server that ran this long has recovered: the next pause is short again.
const SETTLED: Duration = Duration::from_secs(10);
/// A server was of use if its member was in for so long.
const USEFUL: Duration = Duration::from_millis(250);
/// The longest quarantine, as a multiple of the first.
const LONGEST: u32 = 16;

/// What a group's domain file says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseRule {
    /// The first pause; doubles up to `longest`.
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    /// Failures in a row that lead into quarantine; 0: there is none.
    pub(crate) quarantine_after: u32,
    /// The first quarantine; doubles.
    pub(crate) quarantine: Duration,
}

/// How long to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    Short(Duration),
    /// After so many failures.
    Quarantine(Duration, u32),
}

/// See the module's text.
pub(crate) struct Pauses {
    rule: PauseRule,
    next: Duration,
    next_quarantine: Duration,
    failures: u32,
    /// Since when the member is in.
    member_in: Option<Instant>,
    /// Since when the server accepts connections.
    server_up: Option<Instant>,
}

impl Pauses {
    pub(crate) fn new(rule: PauseRule) -> Self {
        Self {
            rule,
            next: rule.first,
            next_quarantine: rule.quarantine,
            failures: 0,
            member_in: None,
            server_up: None,
        }
    }

    /// Another rule; what has happened counts as before.
    pub(crate) const fn set_rule(&mut self, rule: PauseRule) {
        let is_other = rule.quarantine.as_nanos() != self.rule.quarantine.as_nanos();
        self.rule = rule;
        if is_other {
            self.next_quarantine = rule.quarantine;
        }
    }

    /// The member is in its group, or is not any more.
    pub(crate) fn member_is_in(&mut self, now: Instant, is_in: bool) {
        self.member_in = is_in.then(|| self.member_in.unwrap_or(now));
    }

    pub(crate) fn server_is_up(&mut self, now: Instant) {
        self.server_up = Some(now);
    }

    /// The server that was started at `began` has ended, or was ended because it was of no use.
    pub(crate) fn ended(&mut self, began: Instant, now: Instant) -> Pause {
        let served = self.server_up.take().zip(self.member_in).map(|(up, inside)| up.max(inside));
        let was_useful = served.is_some_and(|since| now.saturating_duration_since(since) >= USEFUL);
        if now.saturating_duration_since(began) >= SETTLED {
            self.next = self.rule.first;
        }
        if was_useful {
            self.release();
        } else {
            self.failures += 1;
        }
        if self.rule.quarantine_after > 0 && self.failures >= self.rule.quarantine_after {
            let pause = self.next_quarantine;
            self.next_quarantine = (pause * 2).min(self.rule.quarantine * LONGEST);
            return Pause::Quarantine(pause, self.failures);
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.rule.longest);
        Pause::Short(pause)
    }

    /// Its failures are forgiven.
    pub(crate) fn release(&mut self) {
        self.failures = 0;
        self.next_quarantine = self.rule.quarantine;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: PauseRule = PauseRule {
        first: Duration::from_millis(100),
        longest: Duration::from_secs(10),
        quarantine_after: 3,
        quarantine: Duration::from_secs(60),
    };

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_server_that_is_of_no_use_is_left_alone_longer_and_longer() {
        let (mut pauses, mut now) = (Pauses::new(RULE), Instant::now());
        let mut end = || {
            let began = now;
            pauses.server_is_up(now + ms(50));
            now += ms(100);
            pauses.ended(began, now)
        };
        assert_eq!(end(), Pause::Short(ms(100)));
        assert_eq!(end(), Pause::Short(ms(200)));
        assert_eq!(end(), Pause::Quarantine(ms(60_000), 3));
        assert_eq!(end(), Pause::Quarantine(ms(120_000), 4));
        let later: Vec<Pause> = (0..5).map(|_| end()).collect();
        assert_eq!(later[4], Pause::Quarantine(ms(960_000), 9));
    }

    #[test]
    fn a_server_that_was_in_use_when_it_ended_has_not_failed() {
        let (mut pauses, now) = (Pauses::new(RULE), Instant::now());
        for _ in 0..20 {
            pauses.server_is_up(now);
            pauses.member_is_in(now + ms(100), true);
            pauses.member_is_in(now + ms(120), true);
            assert!(matches!(pauses.ended(now, now + ms(350)), Pause::Short(_)));
            pauses.member_is_in(now, false);
        }
        pauses.member_is_in(now, true);
        let unused = pauses.ended(now, now + ms(900));
        assert!(matches!(unused, Pause::Short(_)), "the first that never accepted a connection");
        assert!(matches!(pauses.ended(now, now + ms(900)), Pause::Short(_)));
        assert!(matches!(pauses.ended(now, now + ms(900)), Pause::Quarantine(..)));
        pauses.release();
        assert!(matches!(pauses.ended(now, now + ms(900)), Pause::Short(_)));
    }

    /// As long as it does not count as failed: it is of use, and ends again and again.
    #[test]
    fn pauses_grow_up_to_the_longest_and_are_short_again_behind_a_life_that_was_long() {
        let (mut pauses, now) =
            (Pauses::new(PauseRule { quarantine_after: 0, ..RULE }), Instant::now());
        let mut end = |lived: u64| match pauses.ended(now, now + ms(lived)) {
            Pause::Short(pause) => pause.as_millis(),
            Pause::Quarantine(..) => panic!("there is none"),
        };
        let grown = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
        assert_eq!(grown.map(|_| end(300)), grown);
        assert_eq!(end(9_999), 10_000, "it has not recovered");
        assert_eq!([10_000, 300, 300].map(&mut end), [100, 200, 400]);
    }

    /// Neither counts: a member that was in before its server was there, or a server that was there
    /// before its member was in.
    #[test]
    fn of_use_is_who_was_there_and_in_at_the_same_time() {
        for (up, inside, is_useful) in
            [(0, 100, true), (100, 0, true), (0, 101, false), (101, 0, false), (101, 101, false)]
        {
            let (mut pauses, now) = (Pauses::new(RULE), Instant::now());
            for _ in 0..9 {
                pauses.server_is_up(now + ms(up));
                pauses.member_is_in(now + ms(inside), true);
                let pause = pauses.ended(now, now + ms(350));
                pauses.member_is_in(now + ms(350), false);
                if !is_useful && matches!(pause, Pause::Quarantine(..)) {
                    break;
                }
            }
            let last = pauses.ended(now, now + ms(350));
            assert_eq!(matches!(last, Pause::Short(_)), is_useful, "{up} {inside}");
        }
    }

    /// That a former one accepted connections says nothing of the next.
    #[test]
    fn a_server_that_never_accepted_a_connection_was_of_no_use() {
        let (mut pauses, now) = (Pauses::new(RULE), Instant::now());
        pauses.server_is_up(now);
        pauses.member_is_in(now, true);
        for number in 1..=4 {
            let pause = pauses.ended(now, now + ms(900 * number));
            // The first was of use.
            assert_eq!(matches!(pause, Pause::Quarantine(_, 3)), number == 4, "{number}");
        }
    }

    #[test]
    fn who_was_of_use_again_begins_with_the_shortest_quarantine() {
        let (mut pauses, now) = (Pauses::new(RULE), Instant::now());
        let mut lengths = Vec::new();
        for round in 0..2 {
            for _ in 0..5 {
                if let Pause::Quarantine(length, _) = pauses.ended(now, now) {
                    lengths.push((round, length.as_secs()));
                }
            }
            pauses.server_is_up(now);
            pauses.member_is_in(now, true);
            assert!(matches!(pauses.ended(now, now + ms(250)), Pause::Short(_)));
            pauses.member_is_in(now, false);
        }
        let both = [0, 1].map(|round| [60, 120, 240].map(|seconds| (round, seconds)));
        assert_eq!(lengths, both.concat());
    }

    /// A group can be declared otherwise while its server fails.
    #[test]
    fn another_rule_counts_from_the_next_end_on_and_failures_stay_counted() {
        let (mut pauses, now) = (Pauses::new(RULE), Instant::now());
        assert_eq!(pauses.ended(now, now), Pause::Short(ms(100)));
        let quarantine = Duration::from_secs(7);
        pauses.set_rule(PauseRule { quarantine_after: 2, quarantine, ..RULE });
        assert_eq!(pauses.ended(now, now), Pause::Quarantine(quarantine, 2));
        pauses.set_rule(PauseRule { quarantine_after: 0, ..RULE });
        assert!(matches!(pauses.ended(now, now), Pause::Short(_)));
    }

    #[test]
    fn without_a_limit_there_is_no_quarantine() {
        let mut pauses = Pauses::new(PauseRule { quarantine_after: 0, ..RULE });
        let now = Instant::now();
        assert!((0..100).all(|_| matches!(pauses.ended(now, now), Pause::Short(_))));
    }
}
