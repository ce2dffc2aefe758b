//! What a domain file may say of how a domain and its groups work, as values: each policy once,
//! with the words that stand for it.
//!
//! What it is not: the mechanism of any of them, nor how they are coded in messages. Invariant: a
//! policy and its words are defined nowhere else.

use crate::Duration;
use core::fmt;

/// Gives a policy its words; a value without one is a compile error.
macro_rules! words {
    ($policy:ident { $($value:ident: $word:literal,)+ }) => {
        impl $policy {
            /// All of them, in the order in which people are told of them.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];

            /// The words of the domain file, each with what it means.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value),)+];

            /// The word in the domain file.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// What a word of the domain file means.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, policy)| *policy)
            }
        }

        impl fmt::Display for $policy {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// How the members of a group share the work: `ReplicationStyle` of FT-CORBA §23.3.2.1, and
/// `SEMI_ACTIVE` of Delta-4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Style {
    /// Every member executes every request; the one nearest to the client answers.
    #[default]
    Active,
    /// Every member executes every request; what more than half of them reply is the answer.
    ActiveWithVoting,
    /// Every member executes every request; the leader answers.
    SemiActive,
    /// The leader executes and answers. The others have servers too, which get its state from time
    /// to time; they log the requests since.
    WarmPassive,
    /// The leader executes and answers. The others have no server, until one of them has to take
    /// over: they keep the last state and log the requests since.
    ColdPassive,
    /// Any member executes, without order; none remembers anything, nor has a state that counts.
    Stateless,
}

words! {
    Style {
        Active: "active",
        ActiveWithVoting: "active-with-voting",
        SemiActive: "semi-active",
        WarmPassive: "warm-passive",
        ColdPassive: "cold-passive",
        Stateless: "stateless",
    }
}

impl Style {
    /// Whether one member answers all clients, wherever they are connected.
    #[must_use]
    pub const fn has_leader(self) -> bool {
        match self {
            Self::Active | Self::ActiveWithVoting | Self::Stateless => false,
            Self::SemiActive | Self::WarmPassive | Self::ColdPassive => true,
        }
    }

    /// Whether only the leader executes.
    #[must_use]
    pub const fn is_passive(self) -> bool {
        match self {
            Self::Active | Self::ActiveWithVoting | Self::SemiActive | Self::Stateless => false,
            Self::WarmPassive | Self::ColdPassive => true,
        }
    }

    /// Whether every member executes every request.
    #[must_use]
    pub const fn all_execute(self) -> bool {
        match self {
            Self::Active | Self::ActiveWithVoting | Self::SemiActive => true,
            Self::WarmPassive | Self::ColdPassive | Self::Stateless => false,
        }
    }

    /// Whether the reply of a single member that executes is the group's.
    #[must_use]
    pub const fn lets_one_read(self) -> bool {
        match self {
            Self::Active
            | Self::SemiActive
            | Self::WarmPassive
            | Self::ColdPassive
            | Self::Stateless => true,
            // What one member replies, the others have not confirmed.
            Self::ActiveWithVoting => false,
        }
    }
}

/// How safe a request must be before its reply is released to the client (promise 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ack {
    /// A majority of the domain's nodes holds the request.
    Majority,
    /// Every node of the view holds the request, and they are a majority of the domain's nodes.
    Safe,
    /// The request is ordered: the reply is not held back, and a crash may lose the request. For
    /// experiments.
    Agreed,
}

impl Ack {
    /// The one that asks for more.
    #[must_use]
    pub const fn or_safer(self, other: Self) -> Self {
        match (self, other) {
            (Self::Safe, _) | (_, Self::Safe) => Self::Safe,
            (Self::Majority, _) | (_, Self::Majority) => Self::Majority,
            (Self::Agreed, Self::Agreed) => Self::Agreed,
        }
    }
}

words! { Ack { Majority: "majority", Safe: "safe", Agreed: "agreed", } }

/// How a reply comes to the gateway of its client. Its words are those of two keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyPath {
    /// The member nearest to the gateway replies; on the gateway's own node without a message.
    Direct,
    /// Every reply is an ordered message, and every member sends one, unless one is named as the
    /// replier: the gateway takes the first (Zhao02). For experiments.
    Ordered,
    /// The same, but a member that hears another's reply before it has sent its own does not send
    /// it (Zhao 2002, §2.5).
    OrderedOnce,
}

/// What a group's servers are declared to do with several calls that are sent on one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Concurrency {
    /// Unknown: one call is sent at a time.
    Sequential,
    /// They execute them one after the other, in order, so that several can be sent.
    Pipelined,
    /// They may execute them at the same time, and objects share no state: calls of different
    /// objects run side by side, those of one object in order.
    PerObject,
}

words! {
    Concurrency { Sequential: "sequential", Pipelined: "pipelined", PerObject: "per-object", }
}

/// When a member counts as one that has a call, for a caller that wants so many to have it
/// (Huang05 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Replication {
    /// When it is in the order at its node: it will be executed, whoever else ends.
    #[default]
    Ordered,
    /// When it has executed it. All members do so at once.
    Parallel,
    /// When it has executed it. One member begins when the one in front of it is through.
    Chain,
}

words! { Replication { Ordered: "ordered", Parallel: "parallel", Chain: "chain", } }

impl Replication {
    /// Whether members are counted that have executed a call, and not those that hold it.
    #[must_use]
    pub const fn counts_executed(self) -> bool {
        !matches!(self, Self::Ordered)
    }
}

/// What an operation that changes nothing may miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadConsistency {
    /// Nothing that was answered, anywhere, before it was called.
    #[default]
    Linearizable,
    /// Nothing that its own gateway has answered before.
    Sequential,
}

words! { ReadConsistency { Linearizable: "linearizable", Sequential: "sequential", } }

/// What to do when no member of a group is left that knows the group's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnTotalLoss {
    /// Answer TRANSIENT until an operator decides.
    Stop,
    /// Begin again with the state of a fresh server.
    Fresh,
}

words! { OnTotalLoss { Stop: "stop", Fresh: "fresh", } }

/// What to do when nobody can say whether a call to a server outside was executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnDoubt {
    /// Tell the caller so: `COMM_FAILURE`, `COMPLETED_MAYBE`.
    Fail,
    /// Make the call again, under the same `FT_REQUEST` identity: it changes nothing if it is
    /// executed twice, or the server recognises it.
    Repeat,
}

words! { OnDoubt { Fail: "fail", Repeat: "repeat", } }

/// Of what a primary component must have the greater part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QuorumRule {
    /// Of the domain's nodes.
    #[default]
    Majority,
    /// Of the nodes of the primary component before it (Jajodia and Mutchler, TODS 15(2), 1990:
    /// dynamic-linear voting). Goes on where the static rule stops, if failures come one by one.
    DynamicLinear,
}

words! { QuorumRule { Majority: "majority", DynamicLinear: "dynamic-linear", } }

/// When the leader of a passive group sends its state to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointRule {
    /// After so many requests; at least 1.
    pub requests: u32,
    /// Or so long after the first request that it does not cover.
    pub after: Duration,
    /// The state object is an FT::Updateable (FT-CORBA §23.5): what has changed is enough.
    pub updates: bool,
}

/// How replies are compared where a client does not wait for it (style `active-with-voting`
/// compares each before it is given to anybody).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComparisonRule {
    /// In windows of so many requests; 0: not at all.
    pub requests: u32,
    /// A member that differs from the majority is expelled and rebuilt, and not only reported.
    pub expel: bool,
    /// What looks like padding behind texts does not count.
    pub ignore_padding: bool,
}

/// What happens to an event for a consumer of a channel that has no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Full {
    /// What has waited longest goes.
    #[default]
    DropOldest,
    /// It goes itself.
    DropNewest,
    /// The consumer is disconnected.
    Disconnect,
    /// Its supplier is told to come again.
    BackPressure,
}

words! {
    Full {
        DropOldest: "drop-oldest",
        DropNewest: "drop-newest",
        Disconnect: "disconnect",
        BackPressure: "back-pressure",
    }
}

/// Which consumer of a channel is served first (Huang and Gill §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduling {
    /// The lowest number first.
    #[default]
    FixedPriority,
    /// What must be there first is first.
    EarliestDeadline,
    /// What can wait least is first: the time to its deadline without what its consumer takes.
    LeastLaxity,
    /// What is critical is first; of that, what can wait least; of that, the lowest number.
    MaximumUrgency,
}

words! {
    Scheduling {
        FixedPriority: "fixed-priority",
        EarliestDeadline: "earliest-deadline",
        LeastLaxity: "least-laxity",
        MaximumUrgency: "maximum-urgency",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_what_it_is_the_word_of() {
        for style in Style::ALL {
            assert_eq!(Style::from_word(style.as_str()), Some(*style));
        }
        assert_eq!(Style::ALL.len(), Style::WORDS.len());
        assert_eq!(Style::from_word("Active"), None);
        assert_eq!(QuorumRule::from_word("dynamic-linear"), Some(QuorumRule::DynamicLinear));
    }
}
