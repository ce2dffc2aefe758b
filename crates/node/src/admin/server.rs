//! The serving side: an async thread of its own that asks the data plane and waits.

use super::backup::{self, BackupAsker, RestoreAsker};
use super::catalog::{self, CatalogAsker, DefineAsker};
use super::clock;
use super::relay;
use super::token::{new_token, offer, write_token};
use crate::NodeError;
use crate::backup::Description;
use crate::commands::Asker;
use crate::filesystem::{explain, is_shortage};
use crate::log_limiter::LogLimiter;
use crate::tunnel::{Begun, NewsReceiver, Tunnels};
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use quorba_admin::requests::Requests;
use quorba_admin::status::Status;
use quorba_admin::{CatalogChange, Change, Wanted};
use quorba_base::NodeId;
use quorba_config::Node;
use quorba_engine::replica::Backup;
use quorba_orb::same_secret;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// How long the data plane may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How long a change may take to get its place in the order; a view may be forming.
const CHANGE_WITHIN: Duration = Duration::from_secs(10);

/// How long they may take to show it.
const TOKEN_WITHIN: Duration = Duration::from_secs(5);
/// How long the head of a request may take, from when the one before is answered.
const HEADER_WITHIN: Duration = Duration::from_secs(30);
/// How long no connection is taken in after descriptors ran out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What the data plane is asked.
pub(crate) enum Question {
    /// The node's status.
    Status(oneshot::Sender<Status>),
    /// To change the group of this name.
    Change(String, Change, Asker),
    /// What a group was delivered lately.
    Requests(String, Wanted, oneshot::Sender<Result<Requests, String>>),
    /// All groups of the domain.
    Catalog(CatalogAsker),
    /// To create, change or delete one; done once, however often it is asked for under the name of
    /// this operation.
    Define { operation: String, change: CatalogChange, asker: DefineAsker },
    /// A backup of the group of this name.
    Backup(String, BackupAsker),
    /// The group of this name is to have the state of a backup.
    Restore(String, Box<(Description, Backup)>, RestoreAsker),
    /// What a service asks of the domain.
    Service(crate::offer::Asked),
    /// A message of a tunnel for another node; nobody answers.
    Tunnel(NodeId, Bytes),
    /// The canonical text of a node's domain file, if it gives it; nobody answers.
    File(NodeId, Option<String>),
    /// By how much a node's clock is ahead of this one's, if it says; nobody answers.
    Clock(NodeId, Option<i64>),
}

/// A node of the domain file.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) id: NodeId,
    /// It is this one.
    pub(crate) is_me: bool,
}

/// Connections that have not shown the token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnprovenConnections {
    /// So many may be here at once.
    pub(crate) most: usize,
    /// For so long.
    pub(crate) token_within: Duration,
}

impl UnprovenConnections {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, token_within: TOKEN_WITHIN }
    }
}

/// The running server; it ends when this is dropped.
pub(crate) struct AdminServer {
    _stop: oneshot::Sender<()>,
}

pub(super) type Ask = Arc<dyn Fn(Question) -> bool + Send + Sync>;

pub(super) struct Shared {
    token: String,
    pub(super) ask: Ask,
    pub(super) peers: Vec<Peer>,
    /// What must be equal in the domain files of all nodes.
    pub(super) file: Arc<str>,
    pub(super) tunnels: Arc<Tunnels>,
}

impl Shared {
    pub(super) fn new(peers: Vec<Peer>, file: Arc<str>, tunnels: Arc<Tunnels>, ask: Ask) -> Self {
        Self { token: new_token(), ask, peers, file, tunnels }
    }

    /// The node's status; none if its data plane does not answer in time.
    pub(super) async fn own_status(&self) -> Option<Status> {
        let (sender, answer) = oneshot::channel();
        if !(self.ask)(Question::Status(sender)) {
            return None;
        }
        tokio::time::timeout(ANSWER_WITHIN, answer).await.ok()?.ok()
    }
}

impl AdminServer {
    /// Serves on the node's admin address, and what comes from other nodes through `news`;
    /// questions go to `ask`. `peers`: all nodes of the domain file, in its order;
    /// `file`: what must be equal in all nodes' files. `guests`: how many connections may be here
    /// that have not shown the token, and how long.
    pub(crate) fn start(
        node: &Node,
        guests: UnprovenConnections,
        (peers, file): (Vec<Peer>, Arc<str>),
        news: NewsReceiver,
        ask: impl Fn(Question) -> bool + Send + Sync + 'static,
    ) -> Result<Self, NodeError> {
        let address = node.admin;
        let listen = |source| NodeError::Listen { what: "the admin API".into(), address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let ask: Ask = Arc::new(ask);
        let post = Arc::clone(&ask);
        let tunnels = Tunnels::new(move |node, bytes| post(Question::Tunnel(node, bytes)));
        let shared = Arc::new(Shared::new(peers, file, tunnels, ask));
        let token_file = node.admin_token_file();
        let is_offered = match write_token(&token_file, &shared.token) {
            Ok(()) => true,
            // Calls do not need it, and it is tried again.
            Err(error) if is_shortage(&error) => {
                let why = explain(&token_file, &error);
                let file = token_file.display();
                tracing::error!("commands cannot ask this node until {file} can be written: {why}");
                false
            }
            Err(source) => return Err(NodeError::StateDir { path: token_file, source }),
        };
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
                    let inner = inner_routes(Arc::clone(&shared));
                    clock::watch(&shared);
                    tokio::select! {
                        () = Arc::clone(&shared.tunnels).run(news, |begun| match begun {
                            Begun::Stream(stream) => {
                                tokio::spawn(serve_node(stream, inner.clone()));
                            }
                            Begun::WantsFile(node) => {
                                tokio::spawn(relay::fetch_file(Arc::clone(&shared), node));
                            }
                        }) => {}
                        () = accept(listener, guests, routes(Arc::clone(&shared))) => {}
                        () = offer(&token_file, &shared.token, is_offered) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(NodeError::Resources)?;
        Ok(Self { _stop: stop })
    }
}

/// Takes in connections for ever. Of those that have not shown the token only so many may wait: the
/// oldest makes room, so that who wants nothing but to be there keeps nobody out.
async fn accept(listener: TcpListener, guests: UnprovenConnections, routes: Router) {
    let mut shortage = LogLimiter::default();
    let mut waiting: VecDeque<Arc<AdminPeer>> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if shortage.tells(Instant::now()).is_some() {
                    tracing::warn!(%error, "the admin API cannot take in connections");
                }
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        waiting.retain(|guest| !guest.is_welcome() && Arc::strong_count(guest) > 1);
        if waiting.len() >= guests.most
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.must_go.notify_one();
        }
        let guest = Arc::new(AdminPeer::default());
        waiting.push_back(Arc::clone(&guest));
        let routes = routes.clone().layer(Extension(Arc::clone(&guest)));
        tokio::spawn(serve(stream, routes, guest, guests.token_within));
    }
}

/// Serves one connection, until it ends or must.
async fn serve(stream: TcpStream, routes: Router, guest: Arc<AdminPeer>, token_within: Duration) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WITHIN)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let too_late = async {
        tokio::time::sleep(token_within).await;
        if guest.is_welcome() {
            std::future::pending().await
        }
    };
    tokio::select! {
        // How it ends concerns nobody but who is at the other end.
        _ = serving => {}
        () = guest.must_go.notified() => {}
        () = too_late => {}
    }
}

/// Serves what another node asks; its link ends it.
async fn serve_node(stream: DuplexStream, routes: Router) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WITHIN)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // How it ends concerns nobody but who asked.
    let _ = serving.await;
}

/// Who is at the other end of a connection.
#[derive(Default)]
struct AdminPeer {
    has_shown_token: AtomicBool,
    must_go: Notify,
}

impl AdminPeer {
    fn is_welcome(&self) -> bool {
        self.has_shown_token.load(Ordering::Relaxed)
    }
}

/// What operators ask.
fn routes(shared: Arc<Shared>) -> Router {
    own_routes()
        .route("/v1/domain", get(relay::domain))
        .route("/v1/at/{node}/{*rest}", any(relay::at_node))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), authorize))
        .with_state(shared)
}

/// What other nodes ask, for operators who have shown them a token.
fn inner_routes(shared: Arc<Shared>) -> Router {
    own_routes().with_state(shared)
}

fn own_routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/file", get(relay::file))
        .route("/v1/clock", get(clock::now))
        .route("/v1/groups", get(catalog::list).post(catalog::create))
        .route("/v1/groups/{name}", post(change).put(catalog::change).delete(catalog::delete))
        .route("/v1/groups/{name}/requests", get(requests))
        .route("/v1/groups/{name}/backup", post(backup::back_up))
        .route("/v1/groups/{name}/restore", post(backup::restore))
}

async fn authorize(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let guest = request.extensions().get::<Arc<AdminPeer>>();
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    if given.is_some_and(|given| same_secret(given.as_bytes(), shared.token.as_bytes())) {
        if let Some(guest) = guest {
            guest.has_shown_token.store(true, Ordering::Relaxed);
        }
        next.run(request).await
    } else {
        let hint = "the token of this node stands in admin.token in its state directory\n";
        (StatusCode::UNAUTHORIZED, hint).into_response()
    }
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    match shared.own_status().await {
        Some(status) => Json(status).into_response(),
        None => (StatusCode::GATEWAY_TIMEOUT, "the data plane did not answer\n").into_response(),
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
