//! Clocks that are far from the others'.
//!
//! What it is not: a matter of health. No promise depends on clocks that agree: the ring measures
//! times and not their difference, replies are retained on the ordered clock, and ordered time
//! never goes back. But whoever reads the logs of two nodes is misled, and ordered time follows the
//! clock that is ahead.

use super::Fact;
use super::words::age;
use crate::status::Status;
use std::time::Duration;

/// Clocks that are nearer than this, in milliseconds, are taken for equal.
pub const CLOCK_APART_MS: u64 = 5_000;

/// Whose clock is apart, as the node sees it that knows most.
pub(super) fn clocks(best: &Status) -> Vec<Fact> {
    let ahead = |name: &str, measured| if name == best.node { Some(0) } else { measured };
    let mut known: Vec<(i64, &str)> = (best.nodes.iter())
        .filter_map(|node| Some((ahead(&node.name, node.clock_ahead_ms)?, node.name.as_str())))
        .collect();
    known.sort_unstable();
    let apart = |a: i64, b: i64| a.abs_diff(b) >= CLOCK_APART_MS;
    if let [one, other] = known[..] {
        // Nobody knows which is right; the one that tells is named second.
        let (it, me) = if one.1 == best.node { (other, one) } else { (one, other) };
        let of = Some(me.1.to_owned());
        let fact = Fact::ClockApart { node: it.1.into(), ahead_ms: it.0, of };
        return if apart(it.0, 0) { vec![fact] } else { Vec::new() };
    }
    let Some((middle, _)) = known.get(known.len() / 2).copied() else { return Vec::new() };
    let facts = known.into_iter().filter(|(ms, _)| apart(*ms, middle)).map(|(ms, name)| {
        let ahead_ms = ms.saturating_sub(middle);
        Fact::ClockApart { node: name.into(), ahead_ms, of: None }
    });
    facts.collect()
}

/// `2h 05m ahead of the others'`.
pub(super) fn apart(ahead_ms: i64, of: Option<&str>) -> String {
    let by = age(Duration::from_millis(ahead_ms.unsigned_abs()));
    let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let of = of.map_or_else(|| "the others'".to_owned(), |node| format!("that of {node}"));
    format!("{by} {way} {of}")
}
