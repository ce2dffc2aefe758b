//! What is wrong with the channels of an event service.
//!
//! What it is not: a judgement on consumers. One that is slow costs its own channel what the
//! domain file says, so that is a note; a channel that is not there is a fault.

use super::words::size;
use super::{Fact, Health};
use crate::status::{ChannelStatus, GroupStatus, SlowestStatus};

/// For so long it is told that events were refused or dropped.
const TOLD_MS: u64 = 60_000;

/// What is wrong with a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelTrouble {
    /// The domain file has it, and it is not there, or not as the file says.
    Missing {
        /// Why.
        why: String,
    },
    /// It refused events lately: a consumer has no room, or they are too large.
    Refuses {
        /// What waits for all its consumers, in events and bytes.
        waiting: (u64, u64),
        /// For whom most waits.
        slowest: Option<SlowestStatus>,
    },
    /// It dropped events lately.
    Drops {
        /// How many since its leader leads.
        dropped: u64,
        /// For whom most waits.
        slowest: Option<SlowestStatus>,
    },
    /// What its leader decided could not be ordered lately.
    LeavesOut {
        /// How often since its leader leads.
        times: u64,
    },
}

impl ChannelTrouble {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "channel-missing",
            Self::Refuses { .. } => "events-refused",
            Self::Drops { .. } => "events-dropped",
            Self::LeavesOut { .. } => "events-left-out",
        }
    }

    pub(super) const fn health(&self) -> Health {
        match self {
            Self::Missing { .. } => Health::Degraded,
            Self::Refuses { .. } | Self::Drops { .. } | Self::LeavesOut { .. } => Health::Ok,
        }
    }

    pub(super) fn what(&self, channel: &str) -> String {
        match self {
            Self::Missing { why } => {
                format!("the channel {channel} of the domain file is not as it says: {why}")
            }
            Self::Refuses { waiting: (events, bytes), slowest } => format!(
                "the channel {channel} refuses events, because a consumer has no room, or they \
                 are too large: {events} ({}) wait{}",
                size(*bytes),
                most(slowest.as_ref())
            ),
            Self::Drops { dropped, slowest } => format!(
                "the channel {channel} drops events, {dropped} so far, because consumers are too \
                 slow{}",
                most(slowest.as_ref())
            ),
            Self::LeavesOut { times } => format!(
                "what the channel {channel} decided could not be ordered, {times} times so far"
            ),
        }
    }

    pub(super) fn next(&self, group: &str, channel: &str) -> String {
        match self {
            Self::Missing { .. } => format!(
                "quorba events ls shows all channels; quorba events rm CHANNEL removes one that \
                 is not in the file, and channels_bytes of [service.{group}] gives them more room"
            ),
            Self::Refuses { waiting: (0, _), .. } => format!(
                "nothing waits now; who pushes what is too large is named in the log of the \
                 leader's server: quorba status {group}"
            ),
            Self::Refuses { .. } | Self::Drops { .. } => format!(
                "quorba events show {channel} shows its consumers; end or mend the slow one, or \
                 give the channel larger queues or another `full`"
            ),
            Self::LeavesOut { .. } => {
                format!("the log of the leader's server says why: quorba status {group}")
            }
        }
    }
}

/// For whom most waits.
fn most(slowest: Option<&SlowestStatus>) -> String {
    slowest.map_or_else(String::new, |one| {
        format!(", most of them ({}) for the consumer at {}", one.waiting, one.at)
    })
}

/// What the leader's node says of a service's channels.
pub(super) fn facts(facts: &mut Vec<Fact>, here: &GroupStatus) {
    let fact = |channel: &str, trouble| Fact::Channel {
        group: here.name.clone(),
        channel: channel.to_owned(),
        trouble,
    };
    let missing = here.missing_channels.iter();
    facts.extend(
        missing.map(|one| fact(&one.name, ChannelTrouble::Missing { why: one.why.clone() })),
    );
    for channel in &here.channels {
        facts.extend(troubles(channel).into_iter().map(|trouble| fact(&channel.name, trouble)));
    }
}

fn troubles(channel: &ChannelStatus) -> Vec<ChannelTrouble> {
    let is_told = |ms: Option<u64>| ms.is_some_and(|ms| ms < TOLD_MS);
    let slowest = || channel.slowest.clone();
    let mut troubles = Vec::new();
    if is_told(channel.refused_ms) {
        let waiting = (channel.waiting, channel.waiting_bytes);
        troubles.push(ChannelTrouble::Refuses { waiting, slowest: slowest() });
    }
    if is_told(channel.dropped_ms) {
        troubles.push(ChannelTrouble::Drops { dropped: channel.dropped, slowest: slowest() });
    }
    if is_told(channel.left_out_ms) {
        troubles.push(ChannelTrouble::LeavesOut { times: channel.left_out });
    }
    troubles
}
