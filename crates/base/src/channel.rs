//! What a domain file says of an event channel, as values and as one line of text: the line is what
//! a service is told, and what its replicas have alike.
//!
//! What it is not: a channel. Invariant: what is written is read as the same; what is out of its
//! range is not read.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::RangeInclusive;

use crate::policy::{Full, Scheduling};

/// How one channel behaves. Times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelRule {
    /// Whether events are kept until consumers have them.
    pub reliable: bool,
    /// What happens when a consumer's queue is full.
    pub full: Full,
    /// Who is served first.
    pub strategy: Scheduling,
    /// Events that wait for one consumer, at most.
    pub queue_events: u32,
    /// Octets that wait for one consumer, at most.
    pub queue_bytes: u32,
    /// Octets that wait for all consumers together, at most.
    pub total_bytes: u32,
    /// Events in one push to a consumer that takes several.
    pub batch: u32,
    /// Before who did not answer is called again.
    pub retry_ms: u32,
    /// Before a supplier that had nothing is asked again.
    pub pull_ms: u32,
    /// A consumer that has taken nothing for so long is disconnected; 0: never.
    pub give_up_ms: u32,
}

/// A number of a [`ChannelRule`]: its key, its range and its default.
pub struct NumberKey {
    /// The key in the domain file.
    pub name: &'static str,
    /// What it is a number of; empty: of things.
    pub unit: &'static str,
    /// What it may be.
    pub range: RangeInclusive<u64>,
    /// What it is where nothing is said.
    pub default: u32,
}

const fn number(
    name: &'static str,
    unit: &'static str,
    range: RangeInclusive<u64>,
    default: u32,
) -> NumberKey {
    NumberKey { name, unit, range, default }
}

const MIB: u64 = 1 << 20;

/// The numbers of a rule, in the order of [`ChannelRule::numbers`].
pub const NUMBERS: [NumberKey; 7] = [
    number("queue_events", "", 1..=1_000_000, 1024),
    number("queue_bytes", "bytes", 1024..=512 * MIB, 8 << 20),
    number("total_bytes", "bytes", 1024..=512 * MIB, 64 << 20),
    number("batch", "", 1..=1024, 64),
    number("retry_ms", "milliseconds", 1..=3_600_000, 1_000),
    number("pull_ms", "milliseconds", 1..=3_600_000, 10),
    number("give_up_ms", "milliseconds", 0..=86_400_000, 60_000),
];

impl ChannelRule {
    /// What a channel is like of which nothing else is said.
    #[must_use]
    pub fn new(reliable: bool) -> Self {
        let full = if reliable { Full::BackPressure } else { Full::DropOldest };
        let mut rule = Self {
            reliable,
            full,
            strategy: Scheduling::default(),
            queue_events: 0,
            queue_bytes: 0,
            total_bytes: 0,
            batch: 0,
            retry_ms: 0,
            pull_ms: 0,
            give_up_ms: 0,
        };
        rule.numbers().into_iter().zip(&NUMBERS).for_each(|(value, key)| *value = key.default);
        rule
    }

    /// Its numbers, in the order of [`NUMBERS`].
    pub const fn numbers(&mut self) -> [&mut u32; 7] {
        [
            &mut self.queue_events,
            &mut self.queue_bytes,
            &mut self.total_bytes,
            &mut self.batch,
            &mut self.retry_ms,
            &mut self.pull_ms,
            &mut self.give_up_ms,
        ]
    }

    /// Whether all of it can be meant together.
    ///
    /// # Errors
    /// What cannot, in words.
    pub const fn check(&self) -> Result<(), &'static str> {
        match self.full {
            Full::DropOldest | Full::DropNewest if self.reliable => {
                Err("a reliable channel drops no event: `full` is disconnect or back-pressure")
            }
            _ => Ok(()),
        }
    }

    /// Reads a line of `key=value`; what is not said is as in [`ChannelRule::new`].
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pairs = || text.split_ascii_whitespace().map(|word| word.split_once('='));
        let reliable = match pairs().flatten().find(|(key, _)| *key == "reliable") {
            None | Some((_, "false")) => false,
            Some((_, "true")) => true,
            Some((_, other)) => return Err(format!("reliable is true or false, not {other:.80}")),
        };
        let mut rule = Self::new(reliable);
        for pair in pairs() {
            let (key, value) = pair.ok_or("settings are written key=value".to_string())?;
            rule.set(key, value)?;
        }
        rule.check().map_err(String::from)?;
        Ok(rule)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("{key} cannot be {value:.80}");
        match key {
            "reliable" => {}
            "full" => self.full = Full::from_word(value).ok_or_else(wrong)?,
            "strategy" => self.strategy = Scheduling::from_word(value).ok_or_else(wrong)?,
            _ => {
                let found = NUMBERS.iter().zip(self.numbers()).find(|(one, _)| one.name == key);
                let (known, place) = found.ok_or(format!("a channel has no {key:.80}"))?;
                let read = value.parse::<u32>().ok();
                let read = read.filter(|number| known.range.contains(&u64::from(*number)));
                *place = read.ok_or_else(wrong)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ChannelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reliable={} full={} strategy={}", self.reliable, self.full, self.strategy)?;
        let mut rule = *self;
        for (key, value) in NUMBERS.iter().zip(rule.numbers()) {
            write!(f, " {}={value}", key.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for reliable in [false, true] {
            let mut rule = ChannelRule::new(reliable);
            rule.strategy = Scheduling::LeastLaxity;
            rule.give_up_ms = 0;
            assert_eq!(ChannelRule::parse(&rule.to_string()), Ok(rule));
        }
        assert_eq!(ChannelRule::parse(""), Ok(ChannelRule::new(false)));
    }

    #[test]
    fn what_is_no_rule_is_told_by_its_key() {
        let wrong = [
            ("reliable=perhaps", "reliable"),
            ("reliable=true full=drop-oldest", "reliable"),
            ("full=never", "full"),
            ("batch=0", "batch"),
            ("batch=4294967296", "batch"),
            ("colour=red", "colour"),
            ("alone", "key=value"),
        ];
        for (text, key) in wrong {
            let said = ChannelRule::parse(text).expect_err(text);
            assert!(said.contains(key), "{text}: {said}");
        }
    }
}
