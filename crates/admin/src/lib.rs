//! What a node says of itself, what follows from it, and how it is asked: the types of the admin
//! API, shared by the node that answers and by all that ask (command line, demo, laboratory).
//!
//! What it is not: the API's server, which is the node's, nor the presentation, which is each
//! asker's. Invariants: a [`status::Status`] is a snapshot; within `/v1` fields and words are only
//! added, and a word of [`words`] that the reader does not know reads as `Unknown`; [`health`] is a
//! pure function of statuses.

#[macro_use]
mod words;
pub mod catalog;
mod change;
mod client;
mod domain;
pub mod health;
pub mod requests;
pub mod status;

pub use catalog::{Catalog, CatalogChange, CatalogGroup, Defined};
pub use change::{Change, Wanted};
pub use client::{AdminError, Client};
pub use domain::{DomainStatus, NodeAnswer};
