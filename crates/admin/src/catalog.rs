//! The groups and servers outside that a domain has, by their definitions, and a change of them.
//!
//! What it is not: the judgement of a definition; whoever has the order decides, at the command's
//! place. Invariant: a command that is repeated under its operation's name is done once.

use quorba_config::Definition;
use serde::{Deserialize, Serialize};

/// The answer to `GET /v1/groups`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    /// Another one whenever a group was created, changed or deleted.
    pub version: String,
    /// In the order of their ids.
    pub groups: Vec<CatalogGroup>,
}

/// One group of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogGroup {
    /// What nodes know it by, in hexadecimal digits; never given twice.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its canonical definition ([`Definition`]).
    pub definition: String,
    /// The version of its references (FT-CORBA §23.2.2), which rises when they become others.
    #[serde(default)]
    pub reference_version: u32,
}

/// What becomes different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogChange {
    /// There is one group more.
    Create(Definition),
    /// The group of this name is another one from now on.
    Change(Definition),
    /// The group of this name is no more.
    Delete(String),
}

impl CatalogChange {
    /// The group.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Create(definition) | Self::Change(definition) => &definition.name,
            Self::Delete(name) => name,
        }
    }
}

/// The answer to a change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defined {
    /// The group's id, in hexadecimal digits.
    pub id: String,
    /// It was so before, by this operation.
    pub existed: bool,
}

/// The body of `POST /v1/groups` and `PUT /v1/groups/NAME`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeRequest {
    /// A name for the command, the same if it is repeated.
    pub operation: String,
    /// The definition.
    pub definition: String,
}

/// The query of `DELETE /v1/groups/NAME`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// A name for the command, the same if it is repeated.
    pub operation: String,
}
