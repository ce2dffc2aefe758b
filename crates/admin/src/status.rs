//! What a node says of itself: the body of `GET /v1/status`.
//!
//! What it is not: live state. A [`Status`] is a snapshot that the data-plane thread copied out;
//! reading one never touches the engine, and holding one never delays it.
//!
//! Invariants: names, not numbers, for nodes and groups, so that a reader needs no domain file;
//! units stand in the names; fields are only ever added within `/v1`, so a reader ignores what
//! it does not know, and fields added later have defaults.

mod unanswered;

pub use self::unanswered::{
    EndedStatus, EndsBehindStatus, RequestStatus, StateRefusedStatus, StuckStatus, WaitStatus,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A time in whole milliseconds.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One node's view of its domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the node program, such as `0.1.0`.
    pub version: String,
    /// Id of the domain.
    pub domain: String,
    /// Name of the node that answers.
    pub node: String,
    /// Its process id.
    pub pid: u32,
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// The ring as this node sees it.
    pub ring: RingStatus,
    /// Every node of the domain file, in its order.
    pub nodes: Vec<NodeStatus>,
    /// Every group that there is now, in the order in which they came to be.
    pub groups: Vec<GroupStatus>,
    /// CPU time of the process since its start, in milliseconds.
    pub cpu_ms: u64,
    /// Resident memory of the process, in bytes.
    pub rss_bytes: u64,
    /// What decides a call's time on a ring whose token goes round always; none where it rests.
    #[serde(default, alias = "pace", skip_serializing_if = "Option::is_none")]
    pub call_timings: Option<CallTimingsStatus>,
    /// The durable log; none if no group is durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogStatus>,
    /// What an operator should know: warnings of the domain file, and conditions seen since.
    pub warnings: Vec<String>,
}

/// The log on a node's disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogStatus {
    /// Its folder.
    pub path: String,
    /// Why nothing can be written now, so that durable groups answer nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// For how long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_ms: Option<u64>,
}

/// Times of a ring whose token goes round always: medians of the last thousand of a kind, nothing
/// of fewer than twenty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallTimingsStatus {
    /// A rotation without a message, in microseconds: behind one with a message if there were
    /// such, as they are longer while nodes and servers work.
    pub rotation_us: Option<f64>,
    /// What a message makes a rotation longer, in microseconds.
    pub message_us: Option<f64>,
    /// From a reply to a client of this node's gateways until it says something again, in
    /// microseconds: the middles of all tenths.
    pub client_us: Vec<f64>,
    /// Of every group of [`Status::groups`], in the same order: from a request's delivery to the
    /// server on this node until its reply comes, likewise.
    pub servers_us: Vec<Vec<f64>>,
}

words! {
    /// Membership state of a ring (`Amir95 §4`).
    RingState {
        /// A ring is installed.
        Operational = "operational",
        /// Nodes that can be heard are sought.
        Gather = "gather",
        /// Their ring is agreed on.
        Commit = "commit",
        /// What the rings before had is brought to all.
        Recovery = "recovery",
    }
}

words! {
    /// What a server does.
    ServerState {
        /// It was started, and does not serve yet.
        Starting = "starting",
        /// It serves.
        Running = "running",
        /// It does not run, or cannot be reached.
        Down = "down",
        /// It ended too often, and is not started again for a while.
        Quarantined = "quarantined",
    }
}

words! {
    /// What is wrong with a reference that a server returns.
    ReferenceKind {
        /// It leads to a server itself, and not to a gateway.
        PastTheOrder = "past-the-order",
        /// It leads to one gateway of several.
        OneGateway = "one-gateway",
        /// It leads to the port that groups share, with an object key that names none of them.
        NoGroup = "no-group",
    }
}

words! {
    /// What a member was given to come in.
    CatchUpKind {
        /// The whole state.
        State = "state",
        /// The requests that it missed.
        Requests = "requests",
        /// What had changed in the state.
        Updates = "updates",
    }
}

/// The ring as one node sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingStatus {
    /// Membership state.
    pub state: RingState,
    /// Why it entered that state.
    pub reason: String,
    /// Number of the current view; grows with every view.
    pub view_seq: u64,
    /// The representative (lowest member) of the view.
    pub representative: String,
    /// Names of the nodes in the view, in ring order.
    pub members: Vec<String>,
    /// Whether this view is the domain's primary component.
    pub primary: bool,
    /// Why it is, or is not.
    pub primary_reason: String,
    /// Since the domain began anew because most nodes had ended at the same time, in milliseconds;
    /// none if this node has not seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_lost_ms: Option<u64>,
    /// Median time of a token's round, in microseconds; none before the first round.
    pub rotation_us: Option<f64>,
    /// Usual time from a message to another node until that node has acknowledged it, in
    /// microseconds; none if this node has not measured it: it does where the token rests.
    #[serde(default)]
    pub exchange_us: Option<f64>,
    /// How often the token has been here since this node started.
    #[serde(default)]
    pub token_visits: u64,
    /// Messages delivered since the process started.
    pub delivered: u64,
    /// Messages this node sent again because another had missed them.
    pub retransmits: u64,
    /// Views installed since the process started.
    pub view_changes: u64,
    /// Whether datagrams are encrypted (they are authenticated always).
    pub encrypt: bool,
    /// Id of the domain key that this node seals with; nothing if nothing is protected.
    pub sealing_key: Option<String>,
    /// How messages to all nodes are sent: by multicast, and whom it reaches, or one by one, and
    /// why.
    #[serde(default)]
    pub fanout: String,
    /// The ordering engine, such as `totem`.
    pub engine: String,
}

/// A node of the domain, as another sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name in the domain file.
    pub name: String,
    /// The address that others see.
    pub host: String,
    /// Whether it is in the current view.
    pub in_view: bool,
    /// In words: how it is in the view, or why it is not.
    pub standing: String,
    /// Since when it has been out of the view, in milliseconds; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Its datagrams are refused now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusalStatus>,
    /// By how many milliseconds its clock is surely ahead of that of the node that answers, or
    /// behind it if negative; none for itself, and if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    /// Whether messages pass directly between it and the node that answers; never for itself.
    #[serde(default)]
    pub linked: bool,
    /// Bytes that wait to be sent to it directly.
    #[serde(default)]
    pub link_queued_bytes: u64,
}

/// Why a node's datagrams are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalStatus {
    /// The code that `quorba explain` knows.
    pub code: String,
    /// Why, in words.
    pub what: String,
    /// What helps.
    pub next: String,
    /// They are sealed with the domain key, so that it is known who sent them.
    pub is_proven: bool,
    /// For how long, in milliseconds.
    pub since_ms: u64,
}

/// An object group, as one node sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name in the domain file.
    pub name: String,
    /// Replication style, such as `active`, as it is now.
    pub style: String,
    /// The node whose member leads, if the style has a leader and one is in.
    #[serde(default)]
    pub leader: Option<String>,
    /// Requests that this node's member keeps and has not executed: in a passive style, those since
    /// the last checkpoint.
    #[serde(default)]
    pub logged: u64,
    /// The gateway's address on this node, `host:port`.
    pub listen: String,
    /// The version of its references (FT-CORBA §23.2.2), which rises when they become others.
    #[serde(default)]
    pub reference_version: u32,
    /// Ordered requests executed since the group was formed; equal on all members at rest.
    pub executed: u64,
    /// Requests that the server on this node has answered since this node started.
    #[serde(default)]
    pub served: u64,
    /// How long it worked on them, together, in microseconds.
    #[serde(default)]
    pub served_us: u64,
    /// Ordered requests of each gateway, as far as this node has seen them since it started.
    #[serde(default)]
    pub callers: Vec<Caller>,
    /// Every member of the domain file, in its order.
    pub members: Vec<MemberStatus>,
    /// It takes no requests yet: at its first start it waits a while for all its members.
    #[serde(default)]
    pub waits_for_members: bool,
    /// Nodes that are away, and may have requests in memory that were acknowledged: a group that is
    /// not durable waits for them after disks have brought back the domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The server behind this node; none on a node that is no member.
    pub server: Option<ServerStatus>,
    /// Client connections open at this node's gateway.
    pub connections: u64,
    /// Requests accepted here and not yet answered.
    pub pending: u64,
    /// Requests accepted here since the process started.
    pub requests: u64,
    /// Of these, those that were answered without a place in the order.
    #[serde(default)]
    pub reads: u64,
    /// Reads that this node's member has executed, for its own and other nodes' clients.
    #[serde(default)]
    pub reads_executed: u64,
    /// Messages that this node had ordered for them.
    #[serde(default)]
    pub read_marks: u64,
    /// Replies released here since the process started.
    pub replies: u64,
    /// Replies of this node's member that went through the order.
    #[serde(default)]
    pub replies_sent: u64,
    /// Replies of this node's member that were not sent, because another member's had come.
    #[serde(default)]
    pub replies_suppressed: u64,
    /// Replies that came to this node's gateway for calls that were answered already.
    #[serde(default)]
    pub replies_dropped: u64,
    /// Repeated requests that were answered from the retained replies or held back.
    pub duplicates: u64,
    /// Replies retained for repetition.
    pub retained: u64,
    /// Bytes of those.
    pub retained_bytes: u64,
    /// Requests refused with TRANSIENT or by a limit.
    pub refused: u64,
    /// Malformed messages received.
    pub malformed: u64,
    /// The last change of membership, in words; none if there was none.
    pub last_change: Option<String>,
    /// States on their way to or from the member on this node.
    #[serde(default)]
    pub transfers: Vec<TransferStatus>,
    /// What the member on this node was given last to come in; none if it was given nothing.
    #[serde(default, alias = "brought")]
    pub last_catch_up: Option<CatchUpStatus>,
    /// What the group's servers have called; left out if they have called nothing.
    #[serde(default, skip_serializing_if = "CallStatus::is_none")]
    pub calls: CallStatus,
    /// Requests that this node's member refused because of the names that clients gave them
    /// (FT_REQUEST); left out if there were none.
    #[serde(default, skip_serializing_if = "IdentityStatus::is_none")]
    pub identities: IdentityStatus,
    /// The last requests that ended without a reply of a server, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedStatus>,
    /// Server processes have ended more than once behind the same answered request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_behind: Option<EndsBehindStatus>,
    /// What the server on this node has been at for longer than `stuck_ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<StuckStatus>,
    /// Requests of this node's clients, with their addresses, that have waited for longer than
    /// `stuck_ms`; another node's server may be at them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<RequestStatus>,
    /// The call of this node's clients, ordered or not, that has waited the longest, if that is
    /// longer than `stuck_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait: Option<WaitStatus>,
    /// The members' states may differ behind the request of this number, which has no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_differ: Option<u64>,
    /// Since when, in milliseconds, if this node saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_differ_ms: Option<u64>,
    /// Members were seen to do different things, and have not been made equal since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differ: Option<DifferStatus>,
    /// Its requests are on disks before they are answered.
    #[serde(default)]
    pub durable: bool,
    /// Its members can give their state, so that one can be rebuilt from another.
    #[serde(default)]
    pub has_state_object: bool,
    /// The member on this node stands by, and has had no checkpoint for much longer than it should.
    #[serde(default)]
    pub checkpoint_overdue: bool,
    /// Nodes whose servers are late with what others have answered; others answer for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<String>,
    /// The server on this node does not give its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_refused: Option<StateRefusedStatus>,
    /// References that the server on this node returns and that lead where they should not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceStatus>,
    /// The object keys in references that the server on this node returned last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_keys: Vec<ReferenceKeysStatus>,
    /// The server on this node does not take the state of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_not_taken: Option<StateRefusedStatus>,
    /// It was there when the domain began anew because most nodes had ended at the same time, as
    /// this node has seen it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_memory: bool,
    /// The channels of an event service, at the node whose member leads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelStatus>,
    /// Channels of the domain file that are not there, or are not as it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_channels: Vec<MissingChannelStatus>,
}

/// An event channel, as the member that leads has it; numbers are of its process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Its name.
    pub name: String,
    /// Its events are replicated.
    pub reliable: bool,
    /// Proxies of consumers.
    pub consumers: u64,
    /// Proxies of suppliers.
    pub suppliers: u64,
    /// Events that came.
    pub pushed: u64,
    /// Pushes that were refused because a consumer has no room, or because they were too large,
    /// and pulled events that were too large.
    pub refused: u64,
    /// Since when nothing was refused, in milliseconds; none if nothing was seen to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_ms: Option<u64>,
    /// What the member that leads decided and could not have ordered.
    pub left_out: u64,
    /// Since when nothing was left out, in milliseconds; none if nothing was seen to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_ms: Option<u64>,
    /// Events that consumers were given.
    pub delivered: u64,
    /// Events that were dropped because a consumer was too slow.
    pub dropped: u64,
    /// Since when nothing was dropped, in milliseconds; none if nothing was seen to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_ms: Option<u64>,
    /// Pushes to consumers that failed.
    pub failed: u64,
    /// Events that wait for all consumers together.
    pub waiting: u64,
    /// Bytes of those.
    pub waiting_bytes: u64,
    /// The consumer for which most waits; none if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<SlowestStatus>,
    /// Proxies of consumers that the channel has ended, because more waited for them than may.
    #[serde(default)]
    pub ended_too_slow: u64,
    /// The same, because the conjunctions of their filters held more than may be.
    #[serde(default)]
    pub ended_holding: u64,
    /// Proxies of suppliers that the channel has ended, because they gave too large an event.
    #[serde(default)]
    pub ended_too_large: u64,
    /// Proxies that the channel has ended, because there was nobody any more.
    #[serde(default)]
    pub ended_gone: u64,
    /// The same, because they were there, and answered by exceptions only.
    #[serde(default)]
    pub ended_raises: u64,
    /// The last of all of them, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<String>,
}

/// The consumer of a channel for which most waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowestStatus {
    /// Where it is called, as `host:port`; the number of its proxy if it is not called.
    pub at: String,
    /// Events that wait for it.
    pub waiting: u64,
}

/// A channel that is not as the domain file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingChannelStatus {
    /// Its name.
    pub name: String,
    /// Why it is not there.
    pub why: String,
}

/// The object keys of references in a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceKeysStatus {
    /// To which operation.
    pub operation: String,
    /// To which request, counted from the group's first.
    pub request: u64,
    /// The first one, or its beginning; octets that are no characters are escaped.
    pub key: String,
    /// Of all of them: equal for equal ones.
    pub digest: u64,
    /// Since the reply came, in milliseconds.
    pub since_ms: u64,
}

/// References that a server returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceStatus {
    /// In replies to which operation.
    pub operation: String,
    /// What is wrong with them.
    pub kind: ReferenceKind,
    /// The address that was found last: `host:port`.
    pub address: String,
    /// How many were found.
    pub times: u64,
    /// Since one was found first, in milliseconds.
    pub since_ms: u64,
}

impl ReferenceStatus {
    /// Whether whoever uses it calls a server past the order.
    #[must_use]
    pub fn is_past_the_order(&self) -> bool {
        self.kind == ReferenceKind::PastTheOrder
    }
}

/// Members that were seen to do different things.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferStatus {
    /// Those that did something else than most; none if there is no majority.
    pub nodes: Vec<String>,
    /// What, in words, such as `replied differently`.
    pub what: String,
    /// The first of the requests that were compared together when it was seen last: one of these
    /// differs.
    #[serde(default)]
    pub first_request: u64,
    /// The last of them.
    pub request: u64,
    /// How often it was seen.
    pub times: u64,
    /// Since it was seen first, in milliseconds.
    pub since_ms: u64,
    /// Replies of the server on this node have what looks like padding that is not cleared.
    #[serde(default)]
    pub may_be_padding: bool,
}

/// Calls of a group's servers to other groups, since this node started.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStatus {
    /// Different calls that were ordered.
    pub made: u64,
    /// Of these, those that were refused: in a cycle, or with nobody to execute them.
    pub refused: u64,
    /// How often a member asked for something else than another one in the same call.
    pub differing: u64,
    /// Calls of the server on this node that it made outside of any request.
    pub void: u64,
}

/// Requests that were refused because of their names, since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityStatus {
    /// The name was that of another call.
    pub taken: u64,
    /// Too many names, or bytes of replies, are remembered, in all or of their client or address.
    pub no_room: u64,
}

impl IdentityStatus {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl CallStatus {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The clients of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The gateway's node.
    pub node: String,
    /// Requests that were ordered for them.
    pub requests: u64,
}

/// A state on its way from one member to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStatus {
    /// The node whose member gives it.
    pub from: String,
    /// The node whose member takes it.
    pub to: String,
    /// Bytes that have arrived, as far as the node that answers knows.
    pub done_bytes: u64,
    /// Bytes in all; none as long as they are not known.
    pub total_bytes: Option<u64>,
}

/// What a member was given to come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatchUpStatus {
    /// What it was.
    pub what: CatchUpKind,
    /// Bytes of it, with the replies that clients may still ask for.
    pub bytes: u64,
}

/// A member of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The node that carries it.
    pub node: String,
    /// Whether it executes requests.
    pub state: MemberState,
    /// Why it is in that state, where that is not obvious.
    pub reason: Option<String>,
    /// Since when it has not been in, in milliseconds, if this node saw it go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
}

/// Whether a member executes requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It executes every ordered request.
    In,
    /// It is being brought to the group's state; requests are buffered meanwhile.
    Joining,
    /// Its node is not in the view, or its server is not up.
    #[default]
    Down,
    /// It is up, and kept out: its state is not the group's, and cannot be transferred.
    Out,
    /// An operator took it out; `quorba group add` puts it back.
    Removed,
}

impl MemberState {
    /// The word that stands in the JSON text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Joining => "joining",
            Self::Down => "down",
            Self::Out => "out",
            Self::Removed => "removed",
        }
    }
}

/// The server process (or foreign server) behind one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// What it does.
    pub state: ServerState,
    /// Its process id; none for a server that somebody else started.
    pub pid: Option<u32>,
    /// The port its ORB listens on, for the node's own use.
    pub port: Option<u16>,
    /// How often it was started again.
    pub restarts: u64,
    /// The file its output goes to; none for a server that somebody else started.
    pub log: Option<String>,
    /// Why it is in that state, where that is not obvious.
    pub reason: Option<String>,
    /// Since when it is in that state, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// It serves, and does not have the object with this key, the group's `object_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_object: Option<String>,
    /// The last lines that it printed, if it ended or did not come up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_output: Vec<String>,
    /// Connections to it that ended, or could not be made, while its process lived.
    #[serde(default)]
    pub reconnects: u64,
    /// Messages of it that answered nothing, and were dropped.
    #[serde(default)]
    pub dropped: u64,
    /// Calls that it made on its node's connection, which were refused.
    #[serde(default)]
    pub refused_calls: u64,
    /// How often it has answered the call that it has now with CloseConnection.
    #[serde(default)]
    pub closes: u64,
    /// Bytes that it printed and that were not kept: it printed too fast, or the disk was full.
    #[serde(default)]
    pub output_left_out_bytes: u64,
    /// Of a service that is to have threads of a real-time class: whether it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingStatus>,
}

/// Threads of a real-time class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulingStatus {
    /// The priority that the domain file wants for them.
    pub wanted_priority: u32,
    /// The one that they have; 0: the normal class.
    pub real_time_priority: u32,
    /// Why they have no other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}
