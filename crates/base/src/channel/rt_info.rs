//! What a channel is told of an `rt_info`: the number by which consumers of TAO's interface say how
//! urgent what they want is. TAO asks a scheduling service; here it is a table of each channel.
//!
//! Invariant: what is written is read as the same; what is out of its range is not read.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use super::{NumberKey, number};

/// What an `rt_info` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtRule {
    /// The lowest is the most urgent.
    pub priority: u32,
    /// Microseconds from when an event came until it should be at its consumer; 0: any time.
    pub deadline_us: u32,
    /// Microseconds that the consumer takes for it.
    pub execution_us: u32,
    /// Whether it must not be late when there is too much to do.
    pub critical: bool,
}

/// An hour.
const MICROS_MAX: u64 = 3_600_000_000;
/// The priority of all of which nothing is said: it comes last.
pub const PRIORITY_LAST: u32 = 1_000_000;
/// So many numbers may be told of one channel.
pub const RT_INFOS_MAX: usize = 64;
/// The largest number: TAO's are signed.
pub const RT_INFO_MAX: u32 = i32::MAX as u32;

/// The numbers of a rule, in the order of [`RtRule::numbers`].
pub const RT_NUMBERS: [NumberKey; 3] = [
    number("priority", "", 0..=PRIORITY_LAST as u64, PRIORITY_LAST),
    number("deadline_us", "microseconds", 0..=MICROS_MAX, 0),
    number("execution_us", "microseconds", 0..=MICROS_MAX, 0),
];
/// The truth of a rule; false where nothing is said.
pub const RT_CRITICAL: &str = "critical";

impl Default for RtRule {
    fn default() -> Self {
        Self { priority: PRIORITY_LAST, deadline_us: 0, execution_us: 0, critical: false }
    }
}

impl RtRule {
    /// Its numbers, in the order of [`RT_NUMBERS`].
    pub const fn numbers(&mut self) -> [&mut u32; 3] {
        [&mut self.priority, &mut self.deadline_us, &mut self.execution_us]
    }

    /// Whether all of it can be meant together.
    ///
    /// # Errors
    /// What cannot, in words.
    pub const fn check(&self) -> Result<(), &'static str> {
        if self.deadline_us > 0 && self.execution_us > self.deadline_us {
            return Err("what takes longer than its deadline is late in any case: choose an \
                        execution_us that is at most deadline_us");
        }
        Ok(())
    }

    /// Reads `key:value,...`; what is not said is as in [`RtRule::default`].
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rule = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let pair = part.split_once(':').ok_or("is written key:value,key:value")?;
            rule.set(pair.0, pair.1)?;
        }
        rule.check().map_err(ToString::to_string)?;
        Ok(rule)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("{key:.80} cannot be {value:.80}");
        if key == RT_CRITICAL {
            self.critical = value.parse().map_err(|_| wrong())?;
            return Ok(());
        }
        let found = RT_NUMBERS.iter().zip(self.numbers()).find(|(one, _)| one.name == key);
        let (known, place) = found.ok_or(format!("has no {key:.80}"))?;
        let read = value.parse::<u32>().ok();
        let read = read.filter(|number| known.range.contains(&u64::from(*number)));
        *place = read.ok_or_else(wrong)?;
        Ok(())
    }
}

impl fmt::Display for RtRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rule = *self;
        for (at, (key, value)) in RT_NUMBERS.iter().zip(rule.numbers()).enumerate() {
            if at == 0 || *value != key.default {
                write!(f, "{}{}:{value}", if at == 0 { "" } else { "," }, key.name)?;
            }
        }
        if self.critical { write!(f, ",{RT_CRITICAL}:true") } else { Ok(()) }
    }
}

/// Reads the number of an `rt_info`, written as it is shown.
#[must_use]
pub fn rt_info_number(text: &str) -> Option<u32> {
    let number = text.parse::<u32>().ok().filter(|number| *number <= RT_INFO_MAX)?;
    (number.to_string() == text).then_some(number)
}
