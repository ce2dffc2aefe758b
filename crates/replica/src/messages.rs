//! What travels: in the order, from node to node, to the log, and what it names.
//!
//! What it is not: what it means, which is where it is handled. Invariant: what comes from outside
//! is decoded without a panic.

pub(crate) mod backed_up;
pub(crate) mod catalog;
pub(crate) mod command;
pub(crate) mod envelope;
pub(crate) mod hello;
pub(crate) mod log;
pub(crate) mod peer;
pub(crate) mod pieces;
