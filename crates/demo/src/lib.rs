//! The demo: a built-in bank servant, its load client, the accounting of calls, and the director
//! that kills replicas and nodes while they work.
//!
//! [`run`] is `quorba demo`, [`servant_main`] the hidden `quorba servant`, which is the bank
//! server, the load client and the reaper of a demo that was killed. [`accounting`] and
//! [`record`] serve the interop tests, too, whatever ORB the servers and clients are made of.
//!
//! What it is not: a part of what makes calls reliable. It uses nodes as any user does, and what it
//! claims about the outcome it has counted in the servers' own histories.
//!
//! Invariant: nothing of a run is left on disk or running, however it ends.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod bank;
pub mod clock;
mod director;
pub mod load;
mod options;
mod processes;
pub mod record;
mod servant;
pub mod shop;

pub use options::{
    CLIENTS_MAX, DemoError, DemoOptions, DemoOutcome, KILL_EVERY_DEFAULT, KILL_EVERY_MIN,
    NODES_MAX, Show,
};
pub use servant::{ServantError, servant_main};

/// Runs the demo to its end.
///
/// # Errors
/// [`DemoError`] if it could not run; broken promises are in the outcome.
pub fn run(options: &DemoOptions) -> Result<DemoOutcome, DemoError> {
    director::run(options)
}
