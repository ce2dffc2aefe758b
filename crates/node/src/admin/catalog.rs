//! The groups that a domain has, by their definitions, and how one is created, changed or deleted.
//!
//! What it is not: the judgement of a definition; whoever has the order decides, at the command's
//! place. Invariants: what comes in is the canonical text of one group, and of the group that the
//! path names; a command that is repeated under its operation's name is done once.

use super::backup::Refusal;
use super::server::{Question, Shared};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quorba_config::Definition;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the data plane may take to give its catalog.
const CATALOG_WITHIN: Duration = Duration::from_secs(5);
/// How long a command may take to get its place in the order; a view may be forming.
const DEFINE_WITHIN: Duration = Duration::from_secs(10);
/// The longest name of an operation, in octets.
const OPERATION_BYTES_MAX: usize = 64;

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

/// Who waits for the catalog.
pub(crate) type CatalogAsker = oneshot::Sender<Result<Catalog, Refusal>>;
/// Who waits for a change of it.
pub(crate) type DefineAsker = oneshot::Sender<Result<Defined, Refusal>>;

/// The body of `POST /v1/groups` and `PUT /v1/groups/NAME`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Wish {
    /// A name for the command, the same if it is repeated.
    pub(super) operation: String,
    /// The definition.
    pub(super) definition: String,
}

/// The query of `DELETE /v1/groups/NAME`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Operation {
    operation: String,
}

pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let (asker, answer) = oneshot::channel();
    if !(shared.ask)(Question::Catalog(asker)) {
        return stopping();
    }
    match tokio::time::timeout(CATALOG_WITHIN, answer).await {
        Ok(Ok(Ok(catalog))) => Json(catalog).into_response(),
        Ok(Ok(Err(refusal))) => refusal.into_response(),
        _ => (StatusCode::GATEWAY_TIMEOUT, "the data plane did not answer\n").into_response(),
    }
}

pub(super) async fn create(State(shared): State<Arc<Shared>>, Json(wish): Json<Wish>) -> Response {
    match parse(&wish.definition) {
        Ok(definition) => define(&shared, wish.operation, CatalogChange::Create(definition)).await,
        Err(refusal) => refusal.into_response(),
    }
}

pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Json(wish): Json<Wish>,
) -> Response {
    match parse(&wish.definition) {
        Ok(definition) if definition.name != name => {
            let other = definition.name;
            let text = format!("the definition is that of group {other}, and not of {name}");
            Refusal::from(text).into_response()
        }
        Ok(definition) => define(&shared, wish.operation, CatalogChange::Change(definition)).await,
        Err(refusal) => refusal.into_response(),
    }
}

pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(Operation { operation }): Query<Operation>,
) -> Response {
    define(&shared, operation, CatalogChange::Delete(name)).await
}

fn parse(text: &str) -> Result<Definition, Refusal> {
    Definition::parse(text).map_err(|report| {
        let problems = report.problems().iter().map(ToString::to_string);
        Refusal::from(problems.collect::<Vec<_>>().join("; "))
    })
}

async fn define(shared: &Shared, operation: String, change: CatalogChange) -> Response {
    if operation.is_empty() || operation.len() > OPERATION_BYTES_MAX {
        let text = format!("the name of an operation has 1 to {OPERATION_BYTES_MAX} octets");
        return Refusal::from(text).into_response();
    }
    let (asker, answer) = oneshot::channel();
    if !(shared.ask)(Question::Define { operation, change, asker }) {
        return stopping();
    }
    match tokio::time::timeout(DEFINE_WITHIN, answer).await {
        Ok(Ok(Ok(defined))) => Json(defined).into_response(),
        Ok(Ok(Err(refusal))) => refusal.into_response(),
        _ => {
            (StatusCode::GATEWAY_TIMEOUT, "it is not known whether it was ordered").into_response()
        }
    }
}

fn stopping() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping\n").into_response()
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
