//! What a status says of requests that servers do not answer.
//!
//! Invariants: as of [`crate::status`]. What a node does not know is empty: only one with a member
//! remembers requests, and only the gateway's node knows its clients' addresses.

use crate::requests::EndKind;
use serde::{Deserialize, Serialize};

/// A request in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestStatus {
    /// Its number in the group, counted from the group's first.
    pub number: u64,
    /// The operation; octets that are no text are escaped as in a Rust string.
    #[serde(default)]
    pub operation: String,
    /// The object's key, as the domain file and a corbaloc write it (`%AF`).
    #[serde(default)]
    pub key: String,
    /// The whole request.
    #[serde(default)]
    pub bytes: u64,
    /// The node whose gateway took it in.
    #[serde(default)]
    pub gateway: String,
    /// The address of its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// Server processes end soon after a request that they have answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndsBehindStatus {
    /// What they had answered last.
    #[serde(flatten)]
    pub request: RequestStatus,
    /// How many did, in a row.
    pub ends: u8,
}

/// A request that ended without a reply of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStatus {
    /// Which one.
    #[serde(flatten)]
    pub request: RequestStatus,
    /// How it ended.
    pub end: EndKind,
    /// The same in words.
    pub how: String,
}

/// A request that the server on this node has had for longer than `stuck_ms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckStatus {
    /// Which one.
    #[serde(flatten)]
    pub request: RequestStatus,
    /// Since the server got to it, in milliseconds.
    pub since_ms: u64,
}

/// A call of one of this node's clients that has waited for longer than `stuck_ms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitStatus {
    /// The address of its client.
    pub client: String,
    /// Since the gateway took it in, in milliseconds.
    pub since_ms: u64,
}

/// The server on this node does not give its state, or does not take another one's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRefusedStatus {
    /// How often in a row.
    pub times: u32,
    /// What it said the last time, such as the id of its exception.
    pub reason: String,
    /// The minor code of that exception, if it is a system exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// Bytes of the state that it was to take; of one that it did not give, those of the last that
    /// it gave, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
