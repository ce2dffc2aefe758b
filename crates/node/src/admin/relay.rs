//! What is asked of another node: `/v1/at/NODE/...` is answered by that node, as if it had been
//! asked itself, and `GET /v1/domain` by all of them.
//!
//! What it is not: another endpoint. Who asks has shown the token of a node of the domain, and the
//! node that answers knows by its link that it is one. Invariants: what was asked through another
//! node is not sent on to a third one; no node is waited for longer than [`STATUS_WITHIN`] for its
//! status.

use super::server::{Question, Shared};
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::client::conn::http1 as client;
use hyper_util::rt::TokioIo;
use quorba_admin::health::{self, Seen};
use quorba_admin::status::Status;
use quorba_admin::{DomainStatus, NodeAnswer};
use quorba_base::NodeId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a node may take to say how it is.
const STATUS_WITHIN: Duration = Duration::from_millis(1500);
/// The longest text of a domain file that is read.
const FILE_BYTES_MAX: usize = 16 << 20;
/// The longest status that is read.
const STATUS_BYTES_MAX: usize = 64 << 20;

/// Sends a request on, and its answer back, both while they come.
pub(super) async fn at_node(
    State(shared): State<Arc<Shared>>,
    Path((name, rest)): Path<(String, String)>,
    mut request: Request,
) -> Response {
    let Some(node) = shared.peers.iter().find(|peer| peer.name == name) else {
        let text = format!("there is no node {name} in the domain file of this node\n");
        return (StatusCode::CONFLICT, text).into_response();
    };
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let Ok(uri) = Uri::try_from(format!("/v1/{rest}{query}")) else {
        return (StatusCode::BAD_REQUEST, "that is no path\n").into_response();
    };
    *request.uri_mut() = uri;
    // It is this node's, and no business of the other one.
    request.headers_mut().remove(header::AUTHORIZATION);
    match send(&shared, node.id, request).await {
        Ok(response) => response,
        Err(Unreached) => {
            let text = format!("no link leads from here to node {name}, or it ended\n");
            (StatusCode::BAD_GATEWAY, text).into_response()
        }
    }
}

/// The other node did not answer.
struct Unreached;

async fn send(shared: &Shared, node: NodeId, request: Request) -> Result<Response, Unreached> {
    let stream = shared.tunnels.open(node);
    let connected = client::handshake::<_, Body>(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|_| Unreached)?;
    // It ends when the answer is read, or given up.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|_| Unreached)?;
    Ok(response.map(Body::new))
}

/// What a node answers to a question without a body.
pub(super) async fn get(
    shared: &Shared,
    node: NodeId,
    path: &str,
    most: usize,
) -> Result<Bytes, &'static str> {
    let request = Request::builder().uri(path).header(header::HOST, "node");
    let request = request.body(Body::empty()).expect("a right request");
    let asking = async {
        let response = send(shared, node, request).await.map_err(|_| "no link leads there")?;
        to_bytes(response.into_body(), most).await.map_err(|_| "its answer broke off")
    };
    tokio::time::timeout(STATUS_WITHIN, asking).await.unwrap_or(Err("it does not answer"))
}

async fn status_of(shared: &Shared, node: NodeId) -> Result<Status, &'static str> {
    let body = get(shared, node, "/v1/status", STATUS_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|_| "what it answers is no status of this version")
}

/// What must be equal in the domain files of all nodes.
pub(super) async fn file(State(shared): State<Arc<Shared>>) -> Response {
    shared.file.to_string().into_response()
}

/// Asks a node for that, and gives it to the data plane.
pub(super) async fn fetch_file(shared: Arc<Shared>, node: NodeId) {
    let body = get(&shared, node, "/v1/file", FILE_BYTES_MAX).await.ok();
    let text = body.and_then(|body| String::from_utf8(body.into()).ok());
    // If the data plane is gone, so is the node.
    let _ = (shared.ask)(Question::File(node, text));
}

/// The statuses of all nodes, asked at the same time.
pub(super) async fn domain(State(shared): State<Arc<Shared>>) -> Response {
    let mut waiting: Vec<(String, oneshot::Receiver<_>)> = Vec::new();
    for peer in &shared.peers {
        let (done, waits) = oneshot::channel();
        let (shared, id, is_me) = (Arc::clone(&shared), peer.id, peer.is_me);
        tokio::spawn(async move {
            let answer = match is_me {
                true => shared.own_status().await.ok_or("the data plane did not answer"),
                false => status_of(&shared, id).await,
            };
            // Whoever asked may have gone.
            let _ = done.send(answer);
        });
        waiting.push((peer.name.clone(), waits));
    }
    let mut nodes = Vec::new();
    for (node, waits) in waiting {
        let answer = waits.await.unwrap_or(Err("it was not asked"));
        let (status, silence) = match answer {
            Ok(status) => (Some(Box::new(status)), None),
            Err(silence) => (None, Some(silence.to_owned())),
        };
        nodes.push(NodeAnswer { node, status, silence });
    }
    let seen: Vec<Seen> = nodes
        .iter()
        .map(|one| match &one.status {
            Some(status) => Seen::Answered(status),
            None => Seen::Silent {
                node: &one.node,
                why: one.silence.clone().unwrap_or_default(),
                is_suspect: false,
            },
        })
        .collect();
    let judgement = health::judge(&seen, None);
    let asked_by = shared.peers.iter().find(|peer| peer.is_me);
    let asked_by = asked_by.map_or_else(String::new, |peer| peer.name.clone());
    Json(DomainStatus { asked_by, judgement, nodes }).into_response()
}
