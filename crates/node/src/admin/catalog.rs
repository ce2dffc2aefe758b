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
use quorba_admin::catalog::{Catalog, CatalogChange, ChangeRequest, Defined, Operation};
use quorba_config::Definition;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the data plane may take to give its catalog.
const CATALOG_WITHIN: Duration = Duration::from_secs(5);
/// How long a command may take to get its place in the order; a view may be forming.
const DEFINE_WITHIN: Duration = Duration::from_secs(10);
/// The longest name of an operation, in octets.
const OPERATION_BYTES_MAX: usize = 64;

/// Who waits for the catalog.
pub(crate) type CatalogAsker = oneshot::Sender<Result<Catalog, Refusal>>;
/// Who waits for a change of it.
pub(crate) type DefineAsker = oneshot::Sender<Result<Defined, Refusal>>;

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

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Json(wish): Json<ChangeRequest>,
) -> Response {
    match parse(&wish.definition) {
        Ok(definition) => define(&shared, wish.operation, CatalogChange::Create(definition)).await,
        Err(refusal) => refusal.into_response(),
    }
}

pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Json(wish): Json<ChangeRequest>,
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
