//! What a channel is told when it is made.
//!
//! Invariant: replicas of a channel have the same settings.

use alloc::string::String;

use crate::filter::FilterLimits;
use crate::queue::QueueLimits;
use crate::schedule::Schedule;
use quorba_base::channel::{Bounds, ChannelRule};
use quorba_base::policy::Full;

/// How large everything may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Proxies, connected or not, of consumers and suppliers together.
    pub proxies_max: usize,
    /// Observers.
    pub observers_max: usize,
    /// Octets that count for all subscriptions together, see `room.rs`. A service says by itself
    /// how many there are for each of its channels.
    pub subscription_bytes_max: usize,
    /// Timers of all consumers together.
    pub timers_max: usize,
    /// One consumer's filter.
    pub filter: FilterLimits,
    /// What one supplier publishes.
    pub publications_max: usize,
    /// Octets of one reference.
    pub reference_bytes_max: usize,
    /// Events in one push.
    pub events_max: usize,
    /// Octets of one event.
    pub event_bytes_max: usize,
    /// Octets that the conjunctions of one consumer may hold.
    pub held_bytes_max: usize,
    /// Changes that are kept for replicas that missed them; none behind a group, whose order is
    /// what such replicas are given.
    pub updates_max: usize,
    /// Octets that count for these.
    pub updates_bytes_max: usize,
    /// Entries that an observer is told at once.
    pub observed_max: usize,
}

fn size(octets: u64) -> usize {
    usize::try_from(octets).unwrap_or(usize::MAX)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            proxies_max: 20_000,
            observers_max: 64,
            subscription_bytes_max: size(Bounds::default().subscription_bytes_of_one()),
            timers_max: 10_000,
            filter: FilterLimits::default(),
            publications_max: 1024,
            reference_bytes_max: 16 << 10,
            events_max: 1024,
            event_bytes_max: 4 << 20,
            held_bytes_max: 8 << 20,
            updates_max: 1024,
            updates_bytes_max: 1 << 20,
            observed_max: 10_000,
        }
    }
}

/// How a channel behaves. Times are in 100 ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How large everything may become.
    pub limits: Limits,
    /// How much may wait for one consumer.
    pub queue: QueueLimits,
    /// Octets that may wait for all consumers together; what waits for several counts for each.
    pub total_bytes: usize,
    /// What happens when that is too much.
    pub full: Full,
    /// Who is served first.
    pub schedule: Schedule,
    /// Events in one push to a consumer of TAO's interface.
    pub batch_max: usize,
    /// Whether events are kept until consumers have acknowledged them. They are part of the state
    /// then, so every call, and the time, must come to all replicas in the same order.
    pub is_reliable: bool,
    /// How long after a failure a consumer or supplier is tried again.
    pub retry_after: u64,
    /// A consumer that has taken nothing for so long is proposed to be ended; 0: never.
    pub give_up_after: u64,
    /// How often suppliers that are pulled are asked.
    pub pull_every: u64,
    /// The type of events from the standard's interface.
    pub cos_type: i32,
    /// Their source.
    pub cos_source: i32,
    /// Whether events go to gateways with one hop less. TAO's gateways take it off themselves.
    pub takes_hop: bool,
    /// Whether clients of TAO's interface that disconnect are called back, as the standard wants.
    pub calls_back: bool,
    /// Whether to connect again means to change the subscription (TAO's reconnect options).
    pub may_reconnect: bool,
    /// What the keys of proxies begin with, if it is something else than those of the channel.
    pub proxies: Option<String>,
}

impl Default for Settings {
    /// Those of a channel of which the domain file says nothing.
    fn default() -> Self {
        Self::of(&ChannelRule::new(false))
    }
}

/// Units of time in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

impl Settings {
    /// What a domain file says, as settings.
    #[must_use]
    pub fn of(rule: &ChannelRule) -> Self {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        // Their range.
        let signed = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        Self {
            limits: Limits::default(),
            queue: QueueLimits {
                sets_max: size(rule.queue_events),
                bytes_max: size(rule.queue_bytes),
            },
            total_bytes: size(rule.total_bytes),
            full: rule.full,
            schedule: Schedule::of(rule),
            batch_max: size(rule.batch),
            is_reliable: rule.reliable,
            retry_after: u64::from(rule.retry_ms) * TICKS_PER_MS,
            pull_every: u64::from(rule.pull_ms) * TICKS_PER_MS,
            give_up_after: u64::from(rule.give_up_ms) * TICKS_PER_MS,
            cos_type: signed(rule.cos_type),
            cos_source: signed(rule.cos_source),
            takes_hop: rule.takes_hop,
            calls_back: rule.calls_back,
            may_reconnect: rule.may_reconnect,
            proxies: None,
        }
    }
}

impl Settings {
    /// Whether events may be dropped for which there is no room. Else whoever brings them waits, or
    /// who has no room is disconnected.
    pub(crate) const fn drops(&self) -> bool {
        !self.is_reliable && matches!(self.full, Full::DropOldest | Full::DropNewest)
    }
}

/// What cannot be meant together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contradiction(
    /// In words.
    pub &'static str,
);

impl Settings {
    /// Whether all of it can be meant together.
    ///
    /// # Errors
    /// What cannot.
    pub const fn check(&self) -> Result<(), Contradiction> {
        if let Err(why) = ChannelRule::agree(self.is_reliable, self.full) {
            return Err(Contradiction(why));
        }
        if self.batch_max == 0 || self.queue.sets_max == 0 {
            return Err(Contradiction("a batch and a queue have room for an event at least"));
        }
        Ok(())
    }
}
