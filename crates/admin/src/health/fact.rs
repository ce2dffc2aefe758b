//! The facts that make a domain less than healthy, with their words.
//!
//! Invariant: [`Fact::next`] names a command, a key of the domain file or a thing to do, never a
//! wish.

use super::channels::ChannelTrouble;
use super::orbs;
use super::references::Keys;
use super::requests::about;
use super::words::size;
use super::{Finding, Health};
use crate::status::{
    EndsBehindStatus, MemberState, ReferenceStatus, RequestStatus, StateRefusedStatus,
};
use std::ops::RangeInclusive;

/// What is said of a server that somebody else runs and that is not there.
pub const NOT_THERE: &str = "does not serve yet";

/// See the module's text. Names are those of nodes and groups; times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words are in `what`")]
pub enum Fact {
    /// Nobody answers.
    Silent { node: String, why: String },
    /// No primary component: nothing is served.
    NoPrimary { reason: String },
    /// A node that runs and does not say how it is.
    Hangs { node: String, why: String },
    /// A node is not in the view.
    NodeAway { node: String, standing: String, since_ms: Option<u64> },
    /// A node's datagrams are refused.
    Refused { node: String, by: String, what: String, next: String, code: String, since_ms: u64 },
    /// A node is in another view than the others.
    OtherView { node: String, view: u64, best: u64, reason: String },
    /// A group that is not durable waits for the memory of a node that is away.
    WaitsForMemory { group: String, nodes: Vec<String> },
    /// Nobody executes.
    NobodyIn { group: String, is_durable: bool, has_state: bool, behind: Option<EndsBehindStatus> },
    /// A member does not execute.
    MemberOut {
        group: String,
        node: String,
        state: MemberState,
        reason: Option<String>,
        since_ms: Option<u64>,
    },
    /// Only one member of several is left, and the group is in memory only.
    LastMember { group: String, node: String },
    /// Members may differ behind a request that has no reply.
    MayDiffer { group: String, request: u64, since_ms: Option<u64> },
    /// Members were seen to reply differently.
    Differ {
        group: String,
        nodes: Vec<String>,
        what: String,
        first_request: u64,
        request: u64,
        times: u64,
        since_ms: Option<u64>,
        can_rebuild: bool,
        may_be_padding: bool,
    },
    /// Members return references to the same object with different keys.
    KeysDiffer { group: String, keys: Keys },
    /// Servers return references that lead to themselves.
    PastTheOrder { group: String, nodes: Vec<String>, reference: ReferenceStatus },
    /// Servers are at a request for too long.
    Stuck { group: String, request: RequestStatus, nodes: Vec<String>, since_ms: u64 },
    /// A client waits for too long, and nothing else says why.
    Unanswered { group: String, node: String, client: String, since_ms: u64 },
    /// A server is late with what others have answered.
    Late { group: String, node: String },
    /// A server does not give its state.
    StateRefused { group: String, node: String, refused: StateRefusedStatus, log: Option<String> },
    /// A server does not take the state of another one.
    StateNotTaken { group: String, node: String, refused: StateRefusedStatus, log: Option<String> },
    /// A leader's state does not reach the members that stand by.
    CheckpointOverdue { group: String, node: String, requests: u64 },
    /// A server closes its connection at the same call again and again.
    Closes { group: String, node: String, times: u64, log: Option<String> },
    /// A server failed too often.
    Quarantined {
        group: String,
        node: String,
        reason: Option<String>,
        since_ms: Option<u64>,
        log: Option<String>,
    },
    /// A server does not have the object that clients are given references to.
    ObjectMissing { group: String, node: String, key: String, since_ms: Option<u64> },
    /// A node's clock is far from the others'; nothing that is promised depends on it.
    ClockApart { node: String, ahead_ms: i64, of: Option<String> },
    /// Most nodes had ended at the same time; nothing can be done but to bring back a backup.
    MemoryLost { groups: Vec<String>, since_ms: u64 },
    /// Something is wrong with a channel of an event service.
    Channel { group: String, channel: String, trouble: ChannelTrouble },
    /// A service's threads have no real-time class; no promise depends on it.
    NotRealTime { group: String, node: String, priority: u32, why: String },
    /// The durable log cannot be written.
    LogWaits { node: String, reason: String, since_ms: Option<u64> },
}

/// How a server's log is pointed at.
fn look(log: Option<&String>) -> String {
    log.map_or_else(|| "see what the server prints".into(), |log| format!("see {log}"))
}

/// How often a server refused, and in what words.
fn said(refused: &StateRefusedStatus) -> String {
    let StateRefusedStatus { times, reason, minor, .. } = refused;
    let minor = minor.filter(|minor| *minor != 0).map(|minor| match orbs::vendor(minor) {
        Some(vendor) => format!(" (minor {minor:#010x}, of {vendor})"),
        None => format!(" (minor {minor:#010x})"),
    });
    let often = if *times == 1 { "once".into() } else { format!("{times} times in a row") };
    format!("{often}: {reason}{}", minor.unwrap_or_default())
}

/// What helps where members differ in octets that mean nothing.
const PADDING_NEXT: &str = "if it is padding alone, as of omniORB behind texts, compare_replies = \
                            \"ignore-padding\": docs/determinism.md";

/// Requests that were compared together, for people.
#[must_use]
pub fn requests_text(requests: &RangeInclusive<u64>) -> String {
    let (first, last) = (requests.start(), requests.end());
    match first < last && *first > 0 {
        true => format!("one of the requests {first} to {last}"),
        false => format!("request {last}"),
    }
}

impl Fact {
    /// In a word, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Silent { .. } => "silent",
            Self::NoPrimary { .. } => "no-primary",
            Self::Hangs { .. } => "hangs",
            Self::NodeAway { .. } => "node-away",
            Self::Refused { .. } => "refused",
            Self::OtherView { .. } => "other-view",
            Self::WaitsForMemory { .. } => "waits-for-memory",
            Self::NobodyIn { .. } => "nobody-in",
            Self::MemberOut { .. } => "member-out",
            Self::LastMember { .. } => "last-member",
            Self::MayDiffer { .. } => "may-differ",
            Self::Differ { .. } => "differ",
            Self::KeysDiffer { .. } => "keys-differ",
            Self::PastTheOrder { .. } => "past-the-order",
            Self::Stuck { .. } => "stuck",
            Self::Unanswered { .. } => "unanswered",
            Self::Late { .. } => "late",
            Self::StateRefused { .. } => "state-refused",
            Self::StateNotTaken { .. } => "state-not-taken",
            Self::CheckpointOverdue { .. } => "checkpoint-overdue",
            Self::Closes { .. } => "closes",
            Self::Quarantined { .. } => "quarantined",
            Self::ObjectMissing { .. } => "object-missing",
            Self::Channel { trouble, .. } => trouble.name(),
            Self::NotRealTime { .. } => "not-real-time",
            Self::LogWaits { .. } => "log-waits",
            Self::ClockApart { .. } => "clock-apart",
            Self::MemoryLost { .. } => "memory-lost",
        }
    }

    /// How bad it is.
    #[must_use]
    pub const fn health(&self) -> Health {
        match self {
            Self::Silent { .. } => Health::Unknown,
            Self::NoPrimary { .. } => Health::NoQuorum,
            Self::ClockApart { .. } | Self::MemoryLost { .. } | Self::NotRealTime { .. } => {
                Health::Ok
            }
            Self::Channel { trouble, .. } => trouble.health(),
            _ => Health::Degraded,
        }
    }

    /// The group that it is about.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Silent { .. }
            | Self::NoPrimary { .. }
            | Self::Hangs { .. }
            | Self::NodeAway { .. }
            | Self::OtherView { .. }
            | Self::Refused { .. }
            | Self::ClockApart { .. }
            | Self::MemoryLost { .. }
            | Self::LogWaits { .. } => None,
            Self::WaitsForMemory { group, .. }
            | Self::NobodyIn { group, .. }
            | Self::MemberOut { group, .. }
            | Self::LastMember { group, .. }
            | Self::MayDiffer { group, .. }
            | Self::Differ { group, .. }
            | Self::KeysDiffer { group, .. }
            | Self::PastTheOrder { group, .. }
            | Self::Stuck { group, .. }
            | Self::Unanswered { group, .. }
            | Self::Late { group, .. }
            | Self::StateRefused { group, .. }
            | Self::StateNotTaken { group, .. }
            | Self::CheckpointOverdue { group, .. }
            | Self::Closes { group, .. }
            | Self::Quarantined { group, .. }
            | Self::ObjectMissing { group, .. }
            | Self::Channel { group, .. }
            | Self::NotRealTime { group, .. } => Some(group),
        }
    }

    /// The node that it is about.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Silent { node, .. }
            | Self::Hangs { node, .. }
            | Self::NodeAway { node, .. }
            | Self::OtherView { node, .. }
            | Self::Refused { node, .. }
            | Self::MemberOut { node, .. }
            | Self::LastMember { node, .. }
            | Self::Unanswered { node, .. }
            | Self::Late { node, .. }
            | Self::StateRefused { node, .. }
            | Self::StateNotTaken { node, .. }
            | Self::CheckpointOverdue { node, .. }
            | Self::Closes { node, .. }
            | Self::Quarantined { node, .. }
            | Self::ObjectMissing { node, .. }
            | Self::ClockApart { node, .. }
            | Self::NotRealTime { node, .. }
            | Self::LogWaits { node, .. } => Some(node),
            Self::NoPrimary { .. }
            | Self::MemoryLost { .. }
            | Self::WaitsForMemory { .. }
            | Self::NobodyIn { .. }
            | Self::MayDiffer { .. }
            | Self::Differ { .. }
            | Self::KeysDiffer { .. }
            | Self::PastTheOrder { .. }
            | Self::Channel { .. }
            | Self::Stuck { .. } => None,
        }
    }

    /// Since when it is so, in milliseconds.
    #[must_use]
    pub const fn since_ms(&self) -> Option<u64> {
        match self {
            Self::NodeAway { since_ms, .. }
            | Self::MemberOut { since_ms, .. }
            | Self::MayDiffer { since_ms, .. }
            | Self::Differ { since_ms, .. }
            | Self::Quarantined { since_ms, .. }
            | Self::ObjectMissing { since_ms, .. }
            | Self::LogWaits { since_ms, .. } => *since_ms,
            Self::KeysDiffer { keys, .. } => Some(keys.since_ms),
            Self::PastTheOrder { reference, .. } => Some(reference.since_ms),
            Self::Stuck { since_ms, .. }
            | Self::Unanswered { since_ms, .. }
            | Self::MemoryLost { since_ms, .. }
            | Self::Refused { since_ms, .. } => Some(*since_ms),
            _ => None,
        }
    }

    /// What is the case.
    #[must_use]
    pub fn what(&self) -> String {
        let of_group = self.group().map_or_else(String::new, |group| format!("group {group}: "));
        format!("{of_group}{}", self.words())
    }

    fn words(&self) -> String {
        match self {
            Self::Silent { node, why } => format!("{node}: {why}"),
            Self::NoPrimary { reason } => format!("no primary view: {reason}"),
            Self::Hangs { node, why } => {
                format!("{node} is in the view, and does not say how it is: {why}")
            }
            Self::NodeAway { node, standing, .. } => {
                format!("{node} is out of the view: {standing}")
            }
            Self::Refused { node, by, what, code, .. } => {
                format!("{by} refuses the datagrams of {node}: {what} [{code}]")
            }
            Self::OtherView { node, view, best, reason } => {
                format!("{node} is in view {view}, not {best}: {reason}")
            }
            Self::WaitsForMemory { nodes, .. } => format!(
                "it is not durable, and waits for {}: acknowledged requests may be in memory there",
                nodes.join(", ")
            ),
            Self::NobodyIn { behind: Some(behind), is_durable: true, .. } => format!(
                "no member executes, so no call is answered: {} server processes have ended when \
                 they had answered {} last",
                behind.ends,
                about(&behind.request)
            ),
            Self::NobodyIn { .. } => "no member executes, so no call is answered".into(),
            Self::MemberOut { node, state, reason, .. } => {
                let reason = reason.as_ref().map_or_else(String::new, |it| format!(": {it}"));
                format!("member {node} is {}{reason}", state.as_str())
            }
            Self::LastMember { node, .. } => format!(
                "only the member on {node} has the state, in memory: if its server ends now, the \
                 state is lost"
            ),
            Self::ClockApart { node, ahead_ms, of } => format!(
                "the clock of {node} is {}: calls do not need it, but times in logs and ordered \
                 time are wrong",
                super::clocks::apart(*ahead_ms, of.as_deref())
            ),
            Self::MemoryLost { groups, .. } => format!(
                "most nodes had ended at the same time: what {} had in memory only was lost, also \
                 what was acknowledged",
                groups.join(", ")
            ),
            Self::Channel { channel, trouble, .. } => trouble.what(channel),
            Self::NotRealTime { node, priority, why, .. } => {
                super::scheduling::words(node, *priority, why)
            }
            _ => self.words_of_servers(),
        }
    }

    /// What servers do, and nodes put up with.
    fn words_of_servers(&self) -> String {
        match self {
            Self::MayDiffer { request, .. } => {
                format!("its members may differ since request {request}, which had no reply")
            }
            Self::Differ { nodes, what, first_request, request, times, may_be_padding, .. } => {
                let who = members_on(nodes);
                let times = if *times > 1 { format!(", {times} times") } else { String::new() };
                let padding =
                    may_be_padding.then(|| format!(". Replies have {}", super::UNCLEARED));
                let padding = padding.unwrap_or_default();
                format!(
                    "{who} {what}, last at {}{times}: their states may differ{padding}",
                    requests_text(&(*first_request..=*request))
                )
            }
            Self::KeysDiffer { keys, .. } => keys.words(),
            Self::PastTheOrder { nodes, reference, .. } => {
                let what = super::references::words(reference);
                let times = match reference.times {
                    1 => String::new(),
                    times => format!(" ({times} times)"),
                };
                format!("{what}{times}; seen on {}", nodes.join(", "))
            }
            Self::Stuck { request, nodes, .. } => {
                let (about, whose) =
                    (super::requests::about(request), super::requests::whose(request));
                format!("{about}{whose} is with the server on {}", nodes.join(", "))
            }
            Self::Unanswered { node, client, .. } => {
                format!("a call of {client} at the gateway of {node} has no answer")
            }
            Self::Late { node, .. } => format!(
                "the server on {node} has not answered what others have; clients have replies"
            ),
            Self::StateRefused { node, refused, .. } => {
                let last = |bytes| format!("; the last state that it gave has {}", size(bytes));
                let last = refused.bytes.map(last);
                format!(
                    "the server on {node} has not given its state, {}{}",
                    said(refused),
                    last.unwrap_or_default()
                )
            }
            Self::StateNotTaken { node, refused, .. } => format!(
                "the server on {node} has not taken the state of another one ({}), {}",
                size(refused.bytes.unwrap_or(0)),
                said(refused)
            ),
            Self::CheckpointOverdue { node, requests, .. } => format!(
                "{requests} requests have come since the last checkpoint that {node} has: if the \
                 leader ends, as many are executed anew"
            ),
            Self::Closes { node, times, .. } => format!(
                "the server on {node} closes its connection each time that it is sent the same \
                 call, {times} times so far"
            ),
            Self::Quarantined { node, reason, .. } => {
                let reason = reason.as_deref().unwrap_or("it failed again and again");
                format!("the server on {node} is quarantined: {reason}")
            }
            Self::ObjectMissing { node, key, .. } => format!(
                "the server on {node} answers, and has no object `{key}` (object_key), which \
                 clients are given references to"
            ),
            Self::LogWaits { node, reason, .. } => format!("{node}: {reason}"),
            _ => unreachable!("the caller has the others"),
        }
    }

    /// What helps.
    #[must_use]
    pub fn next(&self) -> Option<String> {
        let group = self.group().unwrap_or_default();
        Some(match self {
            Self::Silent { .. } | Self::OtherView { .. } => return None,
            Self::NoPrimary { .. } => "start the nodes that are away, or connect them; clients \
                                       are sent elsewhere until then"
                .into(),
            Self::Hangs { node, .. } => format!("look at the log of node {node}"),
            Self::Refused { next, .. } => next.clone(),
            Self::NodeAway { node, .. } => format!("quorba node {node}, on its machine, starts it"),
            Self::WaitsForMemory { .. } => {
                "start what is down, with an empty disk if there is no other".into()
            }
            Self::NobodyIn { is_durable: true, behind: Some(behind), .. } => format!(
                "read what the servers said; if that request, or one just before it, ends them, \
                 quorba group skip {group} {} --answered --yes gives it up, and the servers start \
                 again without it: docs/recovery.md",
                behind.request.number
            ),
            Self::NobodyIn { is_durable: true, .. } => {
                format!("quorba status {group} says why; its disks bring it back")
            }
            Self::NobodyIn { has_state: false, .. } => format!("quorba status {group} says why"),
            Self::NobodyIn { .. } => format!(
                "quorba status {group} says why; where its servers start, quorba restore FILE \
                 --group {group} --yes brings back a backup; quorba group adopt {group} NODE says \
                 which server that somebody else runs has the state"
            ),
            Self::MemberOut { state: MemberState::Out, reason: Some(reason), .. }
                if reason.contains("state_object") =>
            {
                format!(
                    "name the key of the servers' FT::Checkpointable as state_object of {group}: \
                     docs/recovery.md"
                )
            }
            // Nobody here can start it, or has its log.
            Self::MemberOut { reason: Some(reason), .. } if reason.contains(NOT_THERE) => format!(
                "start that server, or say where it is now: `connect` of {group} in a file, and \
                 quorba config apply FILE"
            ),
            Self::MemberOut { .. } => format!("quorba status {group} shows its server and its log"),
            Self::MemoryLost { .. } => {
                "quorba restore brings back a backup; durable = true keeps it \
                                        the next time: docs/durable.md"
                    .into()
            }
            Self::ClockApart { node, .. } => {
                format!("set the clock of {node} by NTP (chronyc tracking, timedatectl)")
            }
            Self::NotRealTime { priority, .. } => super::scheduling::next(*priority),
            Self::LastMember { .. } => format!("quorba status {group} says why the others are out"),
            _ => return self.next_of_servers(group),
        })
    }

    fn next_of_servers(&self, group: &str) -> Option<String> {
        let rebuild = |of: &str| {
            format!(
                "quorba group remove {group} {of} and quorba group add {group} {of} rebuild it \
                 from another member"
            )
        };
        Some(match self {
            Self::MayDiffer { .. } => format!(
                "{}, as often as it takes until all have the state of one; without a state_object \
                 compare what they say",
                rebuild("NODE")
            ),
            Self::Differ { nodes, can_rebuild: true, .. } => {
                let of = nodes.first().map_or("NODE", String::as_str);
                format!("{}; quorba group doctor finds what differs; {PADDING_NEXT}", rebuild(of))
            }
            Self::Differ { .. } => format!(
                "quorba group doctor finds what differs; {PADDING_NEXT}; a state_object lets \
                 members be rebuilt"
            ),
            Self::KeysDiffer { .. } | Self::PastTheOrder { .. } => super::references::NEXT.into(),
            Self::Stuck { request, .. } => {
                format!("quorba group skip {group} {} gives it up", request.number)
            }
            Self::Unanswered { .. } => format!(
                "quorba status {group} shows the servers and their logs; end one that hangs, and \
                 its node starts it anew"
            ),
            Self::Late { .. } => "it is started anew after server_reply_ms".into(),
            Self::StateRefused { refused, log, .. } | Self::StateNotTaken { refused, log, .. } => {
                let is_to_take = matches!(self, Self::StateNotTaken { .. });
                let option = orbs::option(refused, is_to_take);
                let option = option.map_or_else(String::new, |option| format!("{option}; "));
                let log = look(log.as_ref());
                format!("{option}{log}; docs/recovery.md has the options of ORBs")
            }
            Self::CheckpointOverdue { .. } => {
                format!("quorba status {group} shows whether the leader gives its state")
            }
            Self::Closes { log, .. } => look(log.as_ref()),
            Self::Quarantined { node, log, .. } => format!(
                "{}; quorba group release {group} {node} starts it at once",
                look(log.as_ref())
            ),
            Self::ObjectMissing { .. } => {
                "correct object_key in the domain file, or let the server create the object".into()
            }
            Self::LogWaits { .. } => "make room on that file system".into(),
            Self::Channel { channel, trouble, .. } => trouble.next(group, channel),
            _ => unreachable!("the caller has the others"),
        })
    }

    pub(super) fn finding(&self) -> Finding {
        Finding {
            fact: self.name().into(),
            health: self.health(),
            group: self.group().map(str::to_owned),
            node: self.node().map(str::to_owned),
            what: self.what(),
            since_ms: self.since_ms(),
            next: self.next(),
        }
    }
}

/// Those who differ, if it is known who.
fn members_on(nodes: &[String]) -> String {
    match nodes {
        [] => "its members".to_owned(),
        nodes => format!("the members on {}", nodes.join(", ")),
    }
}
