//! Who is served first: fixed priority, earliest deadline, least laxity, maximum urgency.
//!
//! What a consumer's `rt_info` means stands in a table of the channel's settings, because channels
//! here have no scheduling service that could say it. What nothing is said of comes last.
//!
//! Invariant: the place of an event is known when it comes, and does not change; of equal ones the
//! one that came first is first.

use alloc::collections::BTreeMap;

use quorba_base::channel::{ChannelRule, PRIORITY_LAST, RtRule};
use quorba_base::policy::Scheduling;
use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};

/// What an `rt_info` means. Times are in 100 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtInfo {
    /// The lowest is the most urgent.
    pub priority: i32,
    /// How long after it came an event may arrive.
    pub deadline: u64,
    /// How long its consumer takes for it.
    pub execution: u64,
    /// Whether it must not be late when there is too much to do.
    pub is_critical: bool,
}

/// A deadline that is none, but can be compared with others.
const NO_DEADLINE: u64 = 1 << 62;

impl Default for RtInfo {
    fn default() -> Self {
        Self::of(&RtRule::default())
    }
}

/// Units of time in a microsecond.
const TICKS_PER_US: u64 = 10;

impl RtInfo {
    /// What a domain file says of one.
    fn of(rule: &RtRule) -> Self {
        let ticks = |micros: u32| u64::from(micros) * TICKS_PER_US;
        Self {
            priority: i32::try_from(rule.priority.min(PRIORITY_LAST)).unwrap_or(i32::MAX),
            deadline: if rule.deadline_us == 0 { NO_DEADLINE } else { ticks(rule.deadline_us) },
            execution: ticks(rule.execution_us),
            is_critical: rule.critical,
        }
    }
}

/// The place of an event among all that wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Key {
    class: u8,
    main: i64,
    minor: i32,
    pub(crate) arrival: u64,
}

impl Key {
    pub(crate) fn write(self, out: &mut Writer) {
        out.write_u8(self.class);
        out.write_i64(self.main);
        out.write_i32(self.minor);
        out.write_u64(self.arrival);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, MessageError> {
        Ok(Self {
            class: from.read_u8("class")?,
            main: from.read_i64("place")?,
            minor: from.read_i32("priority")?,
            arrival: from.read_u64("arrival")?,
        })
    }
}

/// How places are given out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// The strategy.
    pub scheduling: Scheduling,
    /// What each `rt_info` means; the default for those that are not here.
    pub rt_infos: BTreeMap<i32, RtInfo>,
}

impl Schedule {
    /// What a domain file says.
    #[must_use]
    pub(crate) fn of(rule: &ChannelRule) -> Self {
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let rt_infos = rule.rt_infos.iter();
        let rt_infos = rt_infos.map(|(at, means)| (number(*at), RtInfo::of(means))).collect();
        Self { scheduling: rule.strategy, rt_infos }
    }

    /// The place of what comes now.
    pub(crate) fn key(&self, rt_info: i32, now: u64, arrival: u64) -> Key {
        let info = self.rt_infos.get(&rt_info).copied().unwrap_or_default();
        let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let deadline = now.saturating_add(info.deadline);
        let laxity = signed(deadline).saturating_sub(signed(info.execution));
        let (class, main, minor) = match self.scheduling {
            Scheduling::FixedPriority => (0, i64::from(info.priority), 0),
            Scheduling::EarliestDeadline => (0, signed(deadline), 0),
            Scheduling::LeastLaxity => (0, laxity, 0),
            Scheduling::MaximumUrgency => (u8::from(!info.is_critical), laxity, info.priority),
        };
        Key { class, main, minor, arrival }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const URGENT: i32 = 1;
    const SLOW: i32 = 2;
    const CRITICAL: i32 = 3;

    fn order(scheduling: Scheduling) -> Vec<i32> {
        let info = |priority, deadline, execution, is_critical| RtInfo {
            priority,
            deadline,
            execution,
            is_critical,
        };
        let rt_infos = BTreeMap::from([
            (URGENT, info(0, 500, 0, false)),
            (SLOW, info(5, 600, 300, false)),
            (CRITICAL, info(9, 900, 0, true)),
        ]);
        let schedule = Schedule { scheduling, rt_infos };
        let mut keys: Vec<(Key, i32)> = [0, SLOW, CRITICAL, URGENT]
            .iter()
            .zip(0..)
            .map(|(rt_info, arrival)| (schedule.key(*rt_info, 1000, arrival), *rt_info))
            .collect();
        keys.sort();
        keys.into_iter().map(|(_, rt_info)| rt_info).collect()
    }

    #[test]
    fn each_strategy_has_its_own_order() {
        assert_eq!(order(Scheduling::FixedPriority), [URGENT, SLOW, CRITICAL, 0]);
        assert_eq!(order(Scheduling::EarliestDeadline), [URGENT, SLOW, CRITICAL, 0]);
        assert_eq!(order(Scheduling::LeastLaxity), [SLOW, URGENT, CRITICAL, 0]);
        assert_eq!(order(Scheduling::MaximumUrgency), [CRITICAL, SLOW, URGENT, 0]);
    }

    #[test]
    fn of_equals_the_first_is_first_and_times_do_not_overflow() {
        let schedule = Schedule { scheduling: Scheduling::LeastLaxity, ..Schedule::default() };
        assert!(schedule.key(0, 7, 1) < schedule.key(0, 7, 2));
        assert!(schedule.key(0, 7, 1) < schedule.key(0, u64::MAX, 0));
    }
}
