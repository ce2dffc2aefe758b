//! What is kept of the past: replies, states on their way, checkpoints, log snapshots.
//!
//! What it is not: who gives and takes it, which is `member`.

pub(crate) mod archive;
pub(crate) mod catch_up_log;
pub(crate) mod chain;
pub(crate) mod checkpoint;
pub(crate) mod log_snapshot;
pub(crate) mod passive;
pub(crate) mod retention;
pub(crate) mod start;
pub(crate) mod transfer;
