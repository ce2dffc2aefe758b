//! What a group was delivered lately: the body of `GET /v1/groups/NAME/requests`.
//!
//! What it is not: live state; see [`crate::status`]. Invariants: as there. Octets that are no
//! text are escaped as in a Rust string; whole messages are in base64.

use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use quorba_giop::ReplyStatus;
use serde::{Deserialize, Serialize};

words! {
    /// How a request ended to which no server has replied.
    EndKind {
        /// The server did something else than reply.
        NoReply = "no-reply",
        /// The server answered MessageError.
        Rejected = "rejected",
        /// The server closed the connection at each try.
        NeverTaken = "never-taken",
        /// Server processes ended at it.
        EndsServers = "ends-servers",
        /// An operator had it given up.
        Skipped = "skipped",
    }
}

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
        /// How.
        how: EndKind,
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
