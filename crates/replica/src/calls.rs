//! Calls that are no ordinary requests of clients: of servers, to servers outside, reads, calls to
//! stateless groups; and what callers are told of those that fail.
//!
//! What it is not: who executes them, which is `server`. Invariant: see `lib.rs` for the folders.

pub(crate) mod arrived;
pub(crate) mod duplicates;
pub(crate) mod nested;
pub(crate) mod outside;
pub(crate) mod reads;
pub(crate) mod reentrant;
pub(crate) mod refusal;
pub(crate) mod stateless;
