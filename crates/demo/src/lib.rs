//! The built-in bank servant, its load client and the accounting of calls.

pub mod accounting;
pub mod bank;
pub mod record;
