//! What all nodes of a domain say: the answer to `GET /v1/domain`.
//!
//! What it is not: asked here; a node asks the others. Invariant: every node of the domain file is
//! in it, with its status or with why there is none.

use crate::health::Judgement;
use crate::status::Status;
use serde::{Deserialize, Serialize};

/// What all nodes of a domain say, as one of them was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainStatus {
    /// Who asked the others.
    pub asked_by: String,
    /// Whether the domain does what it promises, and what is not as it should be.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Every node of the domain file, in its order.
    pub nodes: Vec<NodeAnswer>,
}

/// What one node said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeAnswer {
    /// Its name.
    pub node: String,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Box<Status>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<String>,
}
