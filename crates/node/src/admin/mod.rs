//! The admin API: HTTP on loopback, every request with the node's token.
//!
//! `GET /v1/status` is all there is so far; whatever changes something will be a POST. Invariants:
//! never offered beyond loopback; the token is made anew at every start and readable by the
//! node's user only; a question that the data plane does not answer in time fails.

mod client;
mod server;

pub use client::{AdminError, Client};
pub(crate) use server::{AdminServer, Question};
