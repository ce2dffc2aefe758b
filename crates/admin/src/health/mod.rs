//! From what the nodes say to one word, with the facts behind it: whether the domain does what it
//! promises.
//!
//! What it is not: measured here; it is a pure function of statuses, so that the admin API, the
//! command line and whatever else shows it conclude the same. Invariants: the domain is not
//! healthy if a call cannot be answered, if replicas may differ, or if the next fault can lose
//! state; every fact says what is the case and what helps, and since when, if that is known. What
//! an operator should know and no promise depends on is a note, and makes nothing unhealthy.

mod channels;
mod clocks;
mod fact;
mod judge;
mod orbs;
pub mod references;
mod requests;
mod scheduling;
#[cfg(test)]
mod tests;
pub mod words;

pub use self::channels::ChannelTrouble;
pub use self::clocks::CLOCK_APART_MS;
pub use self::fact::Fact;
pub use self::fact::{NOT_THERE, requests_text};
pub use self::judge::{best, judge};
pub use self::requests::{ended, ended_note};
use crate::status::Status;
use serde::{Deserialize, Serialize};

/// What may be behind replies that differ, and what to do.
pub const UNCLEARED: &str = "what looks like padding that the ORB leaves uncleared; \
                         `compare_replies = \"ignore-padding\"` ignores such";

/// How the domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    /// All nodes are in the primary view, and all members execute.
    #[serde(rename = "ok")]
    Ok,
    /// A call cannot be answered, replicas may differ, or the next fault may lose state.
    #[serde(rename = "degraded")]
    Degraded,
    /// No node that answers is in the primary component: nothing is served.
    #[serde(rename = "no quorum")]
    NoQuorum,
    /// No node answers.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Health {
    /// The word that is printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::NoQuorum => "no quorum",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known of one node of the domain file.
#[derive(Clone, Debug)]
pub enum Seen<'a> {
    /// What it said.
    Answered(&'a Status),
    /// It said nothing.
    Silent {
        /// Its name.
        node: &'a str,
        /// Why it did not, as far as it is known.
        why: String,
        /// It runs where it was asked, and should have answered.
        is_suspect: bool,
    },
}

impl<'a> Seen<'a> {
    fn status(&self) -> Option<&'a Status> {
        match self {
            Self::Answered(status) => Some(status),
            Self::Silent { .. } => None,
        }
    }
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// In a word, for programs: the name of its [`Fact`] with hyphens.
    pub fact: String,
    /// How bad it is.
    pub health: Health,
    /// The group that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The node that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is the case.
    pub what: String,
    /// Since when, in milliseconds before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// What helps: a command where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The judgement on a domain or a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The worst that was found.
    pub health: Health,
    /// What is not as it should be, the most important first.
    pub findings: Vec<Finding>,
    /// What an operator should know, although no promise depends on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
}

impl Judgement {
    fn of(facts: Vec<Fact>) -> Self {
        let all = facts.iter().map(Fact::finding);
        let (notes, mut findings): (Vec<_>, Vec<_>) = all.partition(|it| it.health == Health::Ok);
        // Of equals the order in which they were found.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.health));
        let health = findings.iter().map(|finding| finding.health).max();
        Self { health: health.unwrap_or(Health::Ok), findings, notes }
    }

    /// What is the case, without what helps.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.findings.iter().map(|finding| finding.what.clone()).collect()
    }
}
