//! The serving side: an async thread of its own that asks the data plane and waits.

use super::backup::{self, BackupAsker, RestoreAsker};
use super::change::{Change, Wanted};
use crate::NodeError;
use crate::backup::Description;
use crate::commands::Asker;
use crate::recent::Requests;
use crate::status::Status;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use quorba_config::Node;
use quorba_engine::replica::Backup;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the data plane may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How long a change may take to get its place in the order; a view may be forming.
const CHANGE_WITHIN: Duration = Duration::from_secs(10);

/// What the data plane is asked.
pub(crate) enum Question {
    /// The node's status.
    Status(oneshot::Sender<Status>),
    /// To change the group of this name.
    Change(String, Change, Asker),
    /// What a group was delivered lately.
    Requests(String, Wanted, oneshot::Sender<Result<Requests, String>>),
    /// A backup of the group of this name.
    Backup(String, BackupAsker),
    /// The group of this name is to have the state of a backup.
    Restore(String, Box<(Description, Backup)>, RestoreAsker),
}

/// The running server; it ends when this is dropped.
pub(crate) struct AdminServer {
    _stop: oneshot::Sender<()>,
}

pub(super) struct Shared {
    token: String,
    pub(super) ask: Box<dyn Fn(Question) -> bool + Send + Sync>,
}

impl AdminServer {
    /// Serves on the node's admin address; questions go to `ask`.
    pub(crate) fn start(
        node: &Node,
        ask: impl Fn(Question) -> bool + Send + Sync + 'static,
    ) -> Result<Self, NodeError> {
        let address = node.admin;
        let listen = |source| NodeError::Listen { what: "the admin API".into(), address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let token = new_token();
        write_token(&node.admin_token_file(), &token)
            .map_err(|source| NodeError::StateDir { path: node.admin_token_file(), source })?;
        let shared = Arc::new(Shared { token, ask: Box::new(ask) });
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(NodeError::Resources)?;
        std::thread::Builder::new()
            .name("admin".into())
            .spawn(move || {
                runtime.block_on(async move {
                    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                    let serve = axum::serve(listener, routes(shared));
                    tokio::select! {
                        result = serve => {
                            if let Err(error) = result {
                                tracing::error!(%error, "the admin API ended");
                            }
                        }
                        _ = stopped => {}
                    }
                });
            })
            .map_err(NodeError::Resources)?;
        Ok(Self { _stop: stop })
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/groups/{name}", post(change))
        .route("/v1/groups/{name}/requests", get(requests))
        .route("/v1/groups/{name}/backup", post(backup::back_up))
        .route("/v1/groups/{name}/restore", post(backup::restore))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), authorize))
        .with_state(shared)
}

async fn authorize(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    if given.is_some_and(|given| same(given.as_bytes(), shared.token.as_bytes())) {
        next.run(request).await
    } else {
        let hint = "the token of this node stands in admin.token in its state directory\n";
        (StatusCode::UNAUTHORIZED, hint).into_response()
    }
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    let (sender, answer) = oneshot::channel();
    if !(shared.ask)(Question::Status(sender)) {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping\n").into_response();
    }
    match tokio::time::timeout(ANSWER_WITHIN, answer).await {
        Ok(Ok(status)) => Json(status).into_response(),
        _ => (StatusCode::GATEWAY_TIMEOUT, "the data plane did not answer\n").into_response(),
    }
}

async fn change(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Json(change): Json<Change>,
) -> Response {
    let (sender, answer) = oneshot::channel();
    if !(shared.ask)(Question::Change(name, change, sender)) {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping\n").into_response();
    }
    match tokio::time::timeout(CHANGE_WITHIN, answer).await {
        Ok(Ok(Ok(()))) => StatusCode::NO_CONTENT.into_response(),
        Ok(Ok(Err(refusal))) => (StatusCode::CONFLICT, refusal).into_response(),
        _ => {
            (StatusCode::GATEWAY_TIMEOUT, "it is not known whether it was ordered").into_response()
        }
    }
}

async fn requests(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let (sender, answer) = oneshot::channel();
    if !(shared.ask)(Question::Requests(name, wanted, sender)) {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping\n").into_response();
    }
    match tokio::time::timeout(ANSWER_WITHIN, answer).await {
        Ok(Ok(Ok(requests))) => Json(requests).into_response(),
        Ok(Ok(Err(refusal))) => (StatusCode::CONFLICT, refusal).into_response(),
        _ => (StatusCode::GATEWAY_TIMEOUT, "the data plane did not answer\n").into_response(),
    }
}

/// Compares without telling, by its duration, how much of a guess was right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn new_token() -> String {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_token(path: &FilePath, token: &str) -> std::io::Result<()> {
    // An old file may have kept wider permissions.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(token.as_bytes())?;
    file.write_all(b"\n")
}
