//! Backups on their way out of a node and back into one, in parts.
//!
//! What it is not: the file's format, which is [`crate::backup`]. Invariant: of a backup that comes
//! in, a node keeps what it has read and nothing of what is only announced; nothing is asked of the
//! data plane before all of it was read.

use super::server::{Question, Shared};
use crate::backup::{BackupError, Decoder, Description, Encoder};
use axum::body::{Body, BodyDataStream};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_core::Stream;
use quorba_engine::replica::Backup;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a server may take to give its state, at the longest; who asks sets a shorter time.
const BACKUP_WITHIN: Duration = Duration::from_secs(3600);

/// Why there is no backup, or no restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) text: String,
    /// The same may work in a moment.
    pub(crate) is_passing: bool,
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { text, is_passing: false }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code =
            if self.is_passing { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::CONFLICT };
        (code, self.text).into_response()
    }
}

/// Who waits for a backup.
pub(crate) type BackupAsker = oneshot::Sender<Result<(Description, Backup), Refusal>>;
/// Who waits for a restore.
pub(crate) type RestoreAsker = oneshot::Sender<Result<(), Refusal>>;

/// A file as the body of an answer.
struct Parts(Encoder);

impl Stream for Parts {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

pub(super) async fn back_up(
    State(shared): State<Arc<Shared>>,
    Path(group): Path<String>,
) -> Response {
    let (asker, answer) = oneshot::channel();
    if !(shared.ask)(Question::Backup(group, asker)) {
        return stopping();
    }
    match tokio::time::timeout(BACKUP_WITHIN, answer).await {
        Ok(Ok(Ok((description, backup)))) => {
            Body::from_stream(Parts(Encoder::new(description, backup))).into_response()
        }
        Ok(Ok(Err(refusal))) => refusal.into_response(),
        _ => (StatusCode::GATEWAY_TIMEOUT, "the server did not give its state").into_response(),
    }
}

pub(super) async fn restore(
    State(shared): State<Arc<Shared>>,
    Path(group): Path<String>,
    body: Body,
) -> Response {
    let (description, backup) = match read(body.into_data_stream()).await {
        Ok(read) => read,
        Err(error) => return Refusal::from(error.to_string()).into_response(),
    };
    let (asker, answer) = oneshot::channel();
    if !(shared.ask)(Question::Restore(group, Box::new((description, backup)), asker)) {
        return stopping();
    }
    match tokio::time::timeout(BACKUP_WITHIN, answer).await {
        Ok(Ok(Ok(()))) => StatusCode::NO_CONTENT.into_response(),
        Ok(Ok(Err(refusal))) => refusal.into_response(),
        _ => {
            (StatusCode::GATEWAY_TIMEOUT, "it is not known whether it was ordered").into_response()
        }
    }
}

/// Reads a whole file; one whose sender goes away ends early.
async fn read(mut body: BodyDataStream) -> Result<(Description, Backup), BackupError> {
    let mut decoder = Decoder::default();
    loop {
        let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_next(context)).await;
        let Some(Ok(bytes)) = next else { return decoder.finish() };
        decoder.push(&bytes)?;
    }
}

fn stopping() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping\n").into_response()
}
