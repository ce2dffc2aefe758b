//! What a group was delivered lately, in words: the body of `GET /v1/groups/NAME/requests`.
//!
//! What it is not: live state; see [`crate::status`]. Invariants: as there. Octets that are no
//! text are escaped as in a Rust string; whole messages are in base64.

use crate::report::end_word;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use quorba_base::{Duration as Span, Instant, NodeId};
use quorba_config::Domain;
use quorba_engine::replica::{
    Moment, RecentOutcome, RecentPage, RecentQuery, RecentRequest, RecordedRequest,
    RequestEnvelope, Short, request_names,
};
use quorba_giop::ReplyStatus;
use quorba_giop::context::TIME_T_OF_UNIX_EPOCH;
use quorba_giop::corbaloc::EscapedKey;
use serde::{Deserialize, Serialize};

/// Octets of whole messages that one answer has, save for a larger one.
const PAGE_BYTES_MAX: usize = 8 << 20;

/// How long a recording goes on after it was asked for last.
const RECORD_FOR: Span = Span::from_secs(5);

/// What was ordered behind some request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// The node that answers.
    pub node: String,
    /// In their order; of a group that orders much, not all.
    pub requests: Vec<OrderedRequest>,
    /// Whole messages, if they were asked for; in their order.
    pub messages: Vec<Messages>,
}

/// A request in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderedRequest {
    /// Its number in the group, from 1.
    pub number: u64,
    /// The wall clock of its gateway when it came in, in µs since 1970.
    pub unix_us: u64,
    /// The group's ordered time, in µs since the group began.
    pub group_us: u64,
    /// The node whose gateway took it in.
    pub gateway: String,
    /// The client's own name for it (FT_REQUEST), if there is one: client id and retention id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The operation.
    pub operation: String,
    /// The object's key, as the domain file and a corbaloc write it (`%AF`).
    pub key: String,
    /// The whole request.
    pub request_bytes: u64,
    /// What became of it at the node that answers.
    pub outcome: Outcome,
    /// Since it was delivered, in ms.
    pub age_ms: u64,
}

/// What became of a request at a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Outcome {
    /// It waits, runs, or is executed elsewhere.
    #[default]
    Open,
    /// It repeats an earlier one, and is not executed.
    Repetition,
    /// The server has executed it.
    Executed {
        /// From its delivery to the end of the reply, in µs.
        latency_us: u64,
        /// How it ended: `no-exception`, ..., or `oneway`.
        status: String,
        /// The whole reply.
        reply_bytes: u64,
    },
    /// No server has replied to it, and none will; its client got an exception.
    Ended {
        /// In a word: `no-reply`, `rejected`, `never-taken`, `ends-servers` or `skipped`.
        how: String,
    },
}

/// A request as it came, and its reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// As [`OrderedRequest::number`].
    pub number: u64,
    /// The GIOP message.
    #[serde(with = "text")]
    pub request: Bytes,
    /// The code sets of its client's connection.
    #[serde(default, with = "maybe_text", skip_serializing_if = "Option::is_none")]
    pub code_sets: Option<Bytes>,
    /// The time that the server may be told, TimeT.
    #[serde(default)]
    pub time: u64,
    /// The seed of random numbers that it may be told.
    #[serde(default)]
    pub seed: u64,
    /// The reply of the node's server, if it has one yet.
    #[serde(default, with = "maybe_text", skip_serializing_if = "Option::is_none")]
    pub reply: Option<Bytes>,
}

/// The question in the words of the engine.
pub(crate) fn query(now: Instant, after: u64, record: bool) -> RecentQuery {
    let record_until = record.then(|| now + RECORD_FOR);
    RecentQuery { after, record_until, bytes_max: PAGE_BYTES_MAX }
}

/// The answer in words.
pub(crate) fn answer(domain: &Domain, me: NodeId, now: Instant, page: RecentPage) -> Requests {
    let name = |node| domain.node(node).map_or_else(String::new, |node| node.name.clone());
    Requests {
        node: name(me),
        requests: page.requests.iter().map(|one| ordered(one, now, name)).collect(),
        messages: page.recorded.into_iter().map(Messages::from).collect(),
    }
}

fn ordered(one: &RecentRequest, now: Instant, name: impl Fn(NodeId) -> String) -> OrderedRequest {
    let us = |span: Span| u64::try_from(span.as_nanos() / 1_000).unwrap_or(u64::MAX);
    let outcome = match one.outcome {
        RecentOutcome::Open => Outcome::Open,
        RecentOutcome::Repetition => Outcome::Repetition,
        RecentOutcome::Executed { after, status, reply_bytes } => Outcome::Executed {
            latency_us: us(after),
            status: status_text(status).into(),
            reply_bytes: reply_bytes.into(),
        },
        RecentOutcome::Ended(end) => Outcome::Ended { how: end_word(end).into() },
    };
    OrderedRequest {
        number: one.index,
        unix_us: unix_us(one.stamp),
        group_us: one.clock / 10,
        gateway: name(one.gateway.0),
        client: one.client.map(|(id, retention)| format!("{} {retention}", escaped(&id))),
        operation: escaped(&one.operation),
        key: escaped_key(&one.object_key),
        request_bytes: one.request_bytes.into(),
        outcome,
        age_ms: us(now.since(one.at)) / 1_000,
    }
}

/// A request of the durable log in short; what became of it is not in the log.
pub(crate) fn described(one: &RequestEnvelope, moment: Moment, gateway: &str) -> OrderedRequest {
    let (operation, object_key) = request_names(&one.giop);
    let client = one.ft.as_ref();
    OrderedRequest {
        number: moment.number,
        unix_us: unix_us(one.stamp),
        gateway: gateway.into(),
        client: client
            .map(|ft| format!("{} {}", escaped(&Short::new(&ft.client_id)), ft.retention_id)),
        operation: escaped(&operation),
        key: escaped_key(&object_key),
        request_bytes: one.giop.len() as u64,
        ..OrderedRequest::default()
    }
}

/// TimeT in µs since 1970.
fn unix_us(time: u64) -> u64 {
    time.saturating_sub(TIME_T_OF_UNIX_EPOCH) / 10
}

/// What stands for the octets that were left out.
fn more(short: &Short) -> &'static str {
    if short.total as usize > short.octets().len() { "..." } else { "" }
}

pub(crate) fn escaped(short: &Short) -> String {
    format!("{}{}", short.octets().escape_ascii(), more(short))
}

/// As the domain file and a corbaloc write it.
pub(crate) fn escaped_key(short: &Short) -> String {
    format!("{}{}", EscapedKey(short.octets()), more(short))
}

/// A reply's status as `GIOP` calls it.
#[must_use]
pub const fn status_text(status: Option<ReplyStatus>) -> &'static str {
    match status {
        None => "oneway",
        Some(ReplyStatus::NoException) => "no-exception",
        Some(ReplyStatus::UserException) => "user-exception",
        Some(ReplyStatus::SystemException) => "system-exception",
        Some(ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm) => "location-forward",
        Some(ReplyStatus::NeedsAddressingMode) => "needs-addressing-mode",
    }
}

impl Messages {
    /// What the server may be told of the request.
    #[must_use]
    pub const fn moment(&self) -> Moment {
        Moment { number: self.number, time: self.time, seed: self.seed }
    }
}

impl From<RecordedRequest> for Messages {
    fn from(recorded: RecordedRequest) -> Self {
        let RecordedRequest { index, giop, code_sets, moment, reply } = recorded;
        let Moment { time, seed, .. } = moment;
        Self { number: index, request: giop, code_sets, time, seed, reply }
    }
}

/// Octets as base64.
mod text {
    use super::{BASE64_STANDARD, Bytes};
    use base64::Engine as _;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(octets: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(octets))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(from)?;
        BASE64_STANDARD.decode(text).map(Bytes::from).map_err(D::Error::custom)
    }
}

/// Octets as base64, if there are any.
mod maybe_text {
    use super::{BASE64_STANDARD, Bytes};
    use base64::Engine as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        octets: &Option<Bytes>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        octets.as_ref().map(|octets| BASE64_STANDARD.encode(octets)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        BASE64_STANDARD.decode(text).map(|octets| Some(octets.into())).map_err(D::Error::custom)
    }
}
