//! The local server: what it is sent, what it answers, what is remembered of that, and backups.
//!
//! What it is not: what an answer means to the group, which is `member` and `group`.

pub(crate) mod backup;
pub(crate) mod executor;
pub(crate) mod recent;
