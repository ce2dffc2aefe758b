//! What an operator can change of a group while it works, and ask about it.
//!
//! What it is not: a description of the group; a change says what becomes different. Invariant:
//! names as in the domain file.

use serde::{Deserialize, Serialize};

/// The body of `POST /v1/groups/NAME`, such as `{"style": "warm-passive"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Its members share the work in another way: a style of the domain file.
    Style(String),
    /// The member on this node leads.
    Promote(String),
    /// The server of the member on this node, which has to be the one that is asked, is started at
    /// once if it is in quarantine.
    Release(String),
    /// The member on this node takes part again.
    Add(String),
    /// The member on this node takes no part until it is added again.
    Remove(String),
    /// The request of this number, which the server of the node that is asked has or which waits
    /// for it, is given up: nobody waits for its reply, and nobody executes it again.
    Skip(u64),
    /// The same of one that was answered, and behind which servers end; the node that is asked
    /// remembers it.
    #[serde(rename = "skip-answered")]
    SkipAnswered(u64),
    /// The server of the member on this node, which is out because nobody can tell whose state it
    /// has, has the group's.
    Adopt(String),
}

/// What is wanted with `GET /v1/groups/NAME/requests`, in its query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// Only requests behind this number.
    pub after: u64,
    /// The node is to keep whole messages for the next 5 s, and to give those that it kept.
    pub messages: bool,
}
