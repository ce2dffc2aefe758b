//! What a domain file says of an event channel, as values and as one line of text: the line is what
//! a service is told, and what its replicas have alike.
//!
//! What it is not: a channel. Invariant: what is written is read as the same; what is out of its
//! range is not read.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::RangeInclusive;

use crate::policy::{Full, Scheduling};

mod rt_info;

pub use rt_info::{
    PRIORITY_LAST, RT_CRITICAL, RT_INFO_MAX, RT_INFOS_MAX, RT_NUMBERS, RtRule, rt_info_number,
};

/// What the keys of proxies begin with in channels that are not reliable.
pub const UNORDERED_PREFIX: &str = "Unordered/";
/// The operations of these proxies that need no place in the order, and go to the member that
/// leads.
pub const UNORDERED_OPERATIONS: [&str; 3] = ["push", "pull", "try_pull"];
/// What the keys of all other objects of channels begin with.
pub const ORDERED_PREFIX: &str = "Events/";
/// The operation of a proxy that waits until there is an event. Gateways hold it meanwhile.
pub const WAITING_OPERATION: &str = "pull";
/// The operation by which they ask the same proxy whether it would have to wait: a boolean, true if
/// not. It changes nothing.
pub const QUESTION_OPERATION: &str = "has_event";

/// How one channel behaves. Times are in milliseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// The type of events that come by the standard's interface.
    pub cos_type: u32,
    /// Their source.
    pub cos_source: u32,
    /// Whether events go to gateways with one hop less. TAO's gateways take it off themselves.
    pub takes_hop: bool,
    /// Whether clients of TAO's interface that disconnect are called back, as the standard wants.
    pub calls_back: bool,
    /// Whether to connect again means to change the subscription (TAO's reconnect options).
    pub may_reconnect: bool,
    /// What each `rt_info` means, for `strategy`; of others nothing is said.
    pub rt_infos: BTreeMap<u32, RtRule>,
}

/// What a key begins with that says what an `rt_info` means; its number follows.
const RT_INFO_KEY: &str = "rt_info.";
/// Octets of a line of settings, at most.
pub const LINE_BYTES_MAX: usize = 8 << 10;

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
/// TAO's types and sources are signed.
const TYPE_MAX: u64 = i32::MAX as u64;

/// The numbers of a rule, in the order of [`ChannelRule::numbers`].
pub const NUMBERS: [NumberKey; 9] = [
    number("queue_events", "", 1..=1_000_000, 1024),
    number("queue_bytes", "bytes", 1024..=512 * MIB, 8 << 20),
    number("total_bytes", "bytes", 1024..=512 * MIB, 64 << 20),
    number("batch", "", 1..=1024, 64),
    number("retry_ms", "milliseconds", 1..=3_600_000, 1_000),
    number("pull_ms", "milliseconds", 1..=3_600_000, 10),
    number("give_up_ms", "milliseconds", 0..=86_400_000, 60_000),
    // ACE_ES_EVENT_UNDEFINED: the first type that is an application's.
    number("cos_type", "", 0..=TYPE_MAX, 16),
    number("cos_source", "", 0..=TYPE_MAX, 0),
];

/// The truths of a rule beside `reliable`, in the order of [`ChannelRule::flags`]; false where
/// nothing is said.
pub const FLAGS: [&str; 3] = ["takes_hop", "calls_back", "may_reconnect"];

/// Pushes that a service has under way at a time, and how many where nothing is said.
pub const PUSHES_AT_ONCE: RangeInclusive<u64> = 1..=1024;
/// See [`PUSHES_AT_ONCE`].
pub const PUSHES_AT_ONCE_USUAL: u32 = 16;

/// How much all channels of a service may hold together: bounds on sums of `total_bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// All channels.
    pub channels_bytes: u64,
    /// The reliable ones: what they hold is in the state that their members give each other.
    pub reliable_bytes: u64,
}

/// What `channels_bytes` may be.
pub const CHANNELS_BYTES: RangeInclusive<u64> = 1024..=1 << 40;

impl Default for Bounds {
    fn default() -> Self {
        Self { channels_bytes: 4 << 30, ..Self::of_state(256 << 20) }
    }
}

impl Bounds {
    /// What there is room for in a state of so many octets: subscriptions are in it, too.
    #[must_use]
    pub fn of_state(state_bytes: u64) -> Self {
        Self { channels_bytes: u64::MAX, reliable_bytes: state_bytes / 8 * 7 }
    }

    /// Octets that the subscriptions of all channels may take together: the eighth of a state that
    /// [`Bounds::of_state`] leaves beside events.
    #[must_use]
    pub const fn subscription_bytes(&self) -> u64 {
        self.reliable_bytes / 7
    }

    /// The same of one channel: half of that, so that no channel takes it all.
    #[must_use]
    pub const fn subscription_bytes_of_one(&self) -> u64 {
        self.subscription_bytes() / 2
    }

    /// Whether there may be channels with all of these rules.
    ///
    /// # Errors
    /// Which bound is passed and what can be done, in words.
    pub fn check<'r>(&self, rules: impl Iterator<Item = &'r ChannelRule>) -> Result<(), String> {
        let (mut all, mut reliable) = (0_u64, 0_u64);
        for rule in rules {
            let bytes = u64::from(rule.total_bytes);
            all = all.saturating_add(bytes);
            reliable = reliable.saturating_add(if rule.reliable { bytes } else { 0 });
        }
        let own = (all, self.channels_bytes, "all channels", "channels_bytes of [service.events]");
        let key = "7/8 of state_bytes of [limits]";
        let state = (reliable, self.reliable_bytes, "the reliable channels", key);
        for (sum, most, whose, key) in [own, state] {
            if sum > most {
                return Err(format!(
                    "total_bytes of {whose} would be {sum} together, and {key} allows {most}: \
                     choose a smaller total_bytes, or end channels; the operator of the domain can \
                     allow more"
                ));
            }
        }
        Ok(())
    }
}

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
            cos_type: 0,
            cos_source: 0,
            takes_hop: false,
            calls_back: false,
            may_reconnect: false,
            rt_infos: BTreeMap::new(),
        };
        rule.numbers().into_iter().zip(&NUMBERS).for_each(|(value, key)| *value = key.default);
        rule
    }

    /// Its numbers, in the order of [`NUMBERS`].
    pub const fn numbers(&mut self) -> [&mut u32; 9] {
        [
            &mut self.queue_events,
            &mut self.queue_bytes,
            &mut self.total_bytes,
            &mut self.batch,
            &mut self.retry_ms,
            &mut self.pull_ms,
            &mut self.give_up_ms,
            &mut self.cos_type,
            &mut self.cos_source,
        ]
    }

    /// Its truths, in the order of [`FLAGS`].
    pub const fn flags(&mut self) -> [&mut bool; 3] {
        [&mut self.takes_hop, &mut self.calls_back, &mut self.may_reconnect]
    }

    /// Whether all of it can be meant together.
    ///
    /// # Errors
    /// What cannot, in words.
    pub const fn check(&self) -> Result<(), &'static str> {
        Self::agree(self.reliable, self.full)
    }

    /// Whether a channel can be both.
    ///
    /// # Errors
    /// Why not, in words.
    pub const fn agree(reliable: bool, full: Full) -> Result<(), &'static str> {
        match full {
            Full::DropOldest | Full::DropNewest if reliable => {
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
        if text.len() > LINE_BYTES_MAX {
            return Err(format!("settings have {LINE_BYTES_MAX} octets at most"));
        }
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
        if let Some(number) = key.strip_prefix(RT_INFO_KEY) {
            return self.set_rt_info(number, value).map_err(|why| format!("{key:.80} {why}"));
        }
        let wrong = || format!("{key} cannot be {value:.80}");
        match key {
            "reliable" => {}
            "full" => self.full = Full::from_word(value).ok_or_else(wrong)?,
            "strategy" => self.strategy = Scheduling::from_word(value).ok_or_else(wrong)?,
            _ if FLAGS.contains(&key) => {
                let found = FLAGS.iter().zip(self.flags()).find(|(one, _)| **one == key);
                let (_, place) = found.ok_or_else(wrong)?;
                *place = value.parse().map_err(|_| wrong())?;
            }
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

impl ChannelRule {
    fn set_rt_info(&mut self, number: &str, value: &str) -> Result<(), String> {
        let Some(number) = rt_info_number(number) else {
            return Err(format!("is no key: the number of an rt_info is 0 to {RT_INFO_MAX}"));
        };
        self.rt_infos.insert(number, RtRule::parse(value)?);
        if self.rt_infos.len() > RT_INFOS_MAX {
            return Err(format!("is one too many: a channel has {RT_INFOS_MAX} at most"));
        }
        Ok(())
    }
}

impl fmt::Display for ChannelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reliable={} full={} strategy={}", self.reliable, self.full, self.strategy)?;
        let mut rule = self.clone();
        for (key, value) in NUMBERS.iter().zip(rule.numbers()) {
            write!(f, " {}={value}", key.name)?;
        }
        for (key, value) in FLAGS.iter().zip(rule.flags()) {
            write!(f, " {key}={value}")?;
        }
        for (number, means) in &self.rt_infos {
            write!(f, " {RT_INFO_KEY}{number}={means}")?;
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
            (rule.give_up_ms, rule.cos_type, rule.calls_back) = (0, 40, true);
            let most = RtRule {
                priority: PRIORITY_LAST - 1,
                deadline_us: 3_600_000_000,
                execution_us: 3_600_000_000,
                critical: true,
            };
            let few = RtRule { deadline_us: 7, ..RtRule::default() };
            let all = (RT_INFO_MAX - 61..=RT_INFO_MAX).map(|number| (number, most));
            rule.rt_infos = all.chain([(0, few), (3, RtRule::default())]).collect();
            assert_eq!(rule.rt_infos.len(), RT_INFOS_MAX);
            assert!(rule.to_string().len() <= LINE_BYTES_MAX, "the longest line is not too long");
            assert_eq!(ChannelRule::parse(&rule.to_string()), Ok(rule));
        }
        assert_eq!(ChannelRule::parse(""), Ok(ChannelRule::new(false)));
    }

    #[test]
    fn all_channels_together_have_a_bound_and_the_reliable_ones_another() {
        let bounds = Bounds { channels_bytes: 3 * (64 << 20), reliable_bytes: 64 << 20 };
        let (plain, sure) = (&ChannelRule::new(false), &ChannelRule::new(true));
        assert_eq!(bounds.check([plain, plain, sure].into_iter()), Ok(()));
        let said = bounds.check([plain, plain, plain, plain].into_iter()).expect_err("too many");
        assert!(said.contains("channels_bytes of [service.events]"), "{said}");
        let said = bounds.check([plain, sure, sure].into_iter()).expect_err("too many");
        assert!(said.contains("state_bytes of [limits]"), "{said}");
    }

    #[test]
    fn what_is_no_rule_is_told_by_its_key() {
        let wrong = [
            ("reliable=perhaps", "reliable"),
            ("reliable=true full=drop-oldest", "reliable"),
            ("full=never", "full"),
            ("batch=0", "batch"),
            ("batch=4294967296", "batch"),
            ("cos_type=2147483648", "cos_type"),
            ("takes_hop=1", "takes_hop"),
            ("colour=red", "colour"),
            ("alone", "key=value"),
            ("rt_info.x=priority:1", "rt_info.x"),
            ("rt_info.01=priority:1", "rt_info.01"),
            ("rt_info.2147483648=priority:1", "0 to 2147483647"),
            ("rt_info.1=priority:-1", "rt_info.1 priority"),
            ("rt_info.1=priority:1000001", "rt_info.1 priority"),
            ("rt_info.1=deadline_us:3600000001", "rt_info.1 deadline_us"),
            ("rt_info.1=colour:1", "rt_info.1 has no colour"),
            ("rt_info.1=critical", "key:value"),
            ("rt_info.1=critical:1", "critical"),
            ("rt_info.1=deadline_us:5,execution_us:6", "late in any case"),
        ];
        for (text, key) in wrong {
            let said = ChannelRule::parse(text).expect_err(text);
            assert!(said.contains(key), "{text}: {said}");
        }
        let many: String = (0..=64).map(|number| format!("rt_info.{number}=priority:1 ")).collect();
        let said = ChannelRule::parse(&many).expect_err("too many");
        assert!(said.contains("64 at most"), "{said}");
        let long = "takes_hop=true ".repeat(LINE_BYTES_MAX / 15 + 1);
        assert!(ChannelRule::parse(&long).is_err());
    }
}
