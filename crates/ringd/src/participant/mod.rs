//! A participant of `cargo xtask bench order`: does what the director says on standard input.
//!
//! What it is not: part of the service. It is a user of the ring (in process) or of the daemon.

mod client;
mod command;
mod director;
mod experiment;
mod member;

pub(crate) use client::client;
pub(crate) use director::tell;
pub(crate) use member::member;

use director::Director;
use experiment::{Experiment, Next};
use quorba_order::Counters;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// What a participant does with the order's interface, whichever it is.
trait Port {
    /// Sends a message; `false`: full, try again when something was delivered.
    fn send(&mut self, message: &[u8], safe: bool) -> io::Result<bool>;
    /// Makes sure that what was sent is under way.
    fn push(&mut self) -> io::Result<()>;
}

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Messages offered in a row, before what came in is looked at.
const OFFERS: usize = 1024;

/// Sends what the experiment wants sent now.
fn offer(experiment: &mut Experiment, port: &mut impl Port) -> io::Result<()> {
    let safe = experiment.plan.guarantee == quorba_order::Guarantee::Safe;
    for _ in 0..OFFERS {
        if experiment.next(monotonic_ns()) != Next::Send {
            break;
        }
        let before = monotonic_ns();
        if !port.send(experiment.message(), safe)? {
            break;
        }
        experiment.sent(before);
    }
    port.push()
}

/// How long until the experiment wants to send; `None`: not before a delivery.
fn pause(experiment: &mut Experiment) -> Option<Duration> {
    let now = monotonic_ns();
    match experiment.next(now) {
        Next::Send => Some(Duration::ZERO),
        Next::WaitUntil(at) => Some(Duration::from_nanos(at.saturating_sub(now))),
        Next::Wait => None,
    }
}

/// What the ring did during an experiment.
fn ring_figures(before: Counters, after: Counters, took_ns: u64) -> Value {
    let visits = after.token_visits - before.token_visits;
    json!({
        "rotations": visits,
        "rotation_mean_us": took_ns as f64 / 1000.0 / visits.max(1) as f64,
        "packets_sent": after.packets_sent - before.packets_sent,
        "repeated": after.repeated - before.repeated,
        "duplicates": after.duplicates - before.duplicates,
        "token_resent": after.token_resent - before.token_resent,
        "gathers": after.gathers - before.gathers,
    })
}
