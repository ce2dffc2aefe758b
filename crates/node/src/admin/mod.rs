//! The admin API: HTTP on loopback, every request with the node's token.
//!
//! `GET /v1/status` says how the node is; `POST /v1/groups/NAME` with a [`quorba_admin::Change`]
//! changes a group, and is answered when the change has its place in the order;
//! `GET /v1/groups/NAME/requests` says what the group was delivered lately.
//! `GET /v1/groups` gives the definitions of all groups; `POST /v1/groups`, `PUT /v1/groups/NAME`
//! and `DELETE /v1/groups/NAME` create, change and delete one.
//! `POST /v1/groups/NAME/backup` gives a backup of it, `POST /v1/groups/NAME/restore` takes one.
//! `GET /v1/domain` says how all nodes are, and what is not as it should be; `/v1/at/NODE/...` is
//! any of these at another node.
//!
//! Invariants: never offered beyond loopback; the token is made anew at every start and readable by
//! the node's user only; a question that the data plane does not answer in time fails.

mod backup;
mod catalog;
mod clock;
mod relay;
mod server;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use backup::{BackupAsker, Refusal, RestoreAsker};
pub(crate) use catalog::{CatalogAsker, DefineAsker};
pub(crate) use server::{AdminServer, Peer, Question, UnprovenConnections};
