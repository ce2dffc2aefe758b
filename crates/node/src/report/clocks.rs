//! The clocks of other nodes, as far as they are known, and the lines of the log about them.
//!
//! Invariant: a line comes when a clock has gone wrong, is wrong by another amount, or is right
//! again, and not each time that it is measured.

use super::Reporter;
use quorba_admin::health::CLOCK_APART_MS;
use quorba_admin::health::words::age;
use quorba_base::NodeId;
use std::collections::HashMap;
use std::time::Duration;

#[derive(Clone, Copy, Default)]
struct Clock {
    ahead_ms: Option<i64>,
    /// What was logged last; nothing if it was right then.
    told_ms: i64,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Clocks(HashMap<NodeId, Clock>);

impl Clocks {
    /// What is to be logged: by how much the clock is ahead, 0 if it is right again.
    fn heard(&mut self, node: NodeId, ahead_ms: Option<i64>) -> Option<i64> {
        let clock = self.0.entry(node).or_default();
        clock.ahead_ms = ahead_ms;
        let now = ahead_ms?;
        let is_apart = now.unsigned_abs() >= CLOCK_APART_MS;
        let is_news = match (is_apart, clock.told_ms != 0) {
            (true, _) => now.abs_diff(clock.told_ms) >= CLOCK_APART_MS,
            // Not each time that it crosses the bound.
            (false, was_apart) => was_apart && now.unsigned_abs() < CLOCK_APART_MS / 2,
        };
        if is_news {
            clock.told_ms = if is_apart { now } else { 0 };
        }
        is_news.then_some(clock.told_ms)
    }

    pub(super) fn ahead_ms(&self, node: NodeId) -> Option<i64> {
        self.0.get(&node).and_then(|clock| clock.ahead_ms)
    }
}

impl Reporter {
    /// A node's clock was measured, or could not be.
    pub(crate) fn heard_clock(&mut self, node: NodeId, ahead_ms: Option<i64>) {
        let news = self.clocks.heard(node, ahead_ms);
        let (node, address) = (self.name_of(node), self.ring_address(node));
        match news {
            None => {}
            Some(0) => tracing::info!(node, address, "its clock agrees with this node's again"),
            Some(ahead) => tracing::warn!(
                node,
                address,
                "its clock is {} {} this node's: set both by NTP (chronyc tracking, timedatectl)",
                age(Duration::from_millis(ahead.unsigned_abs())),
                if ahead > 0 { "ahead of" } else { "behind" },
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_told_of_at_a_change_only() {
        let (mut clocks, node) = (Clocks::default(), NodeId::new(1).expect("a small number"));
        let mut heard = |ms| clocks.heard(node, ms);
        for (ahead_ms, told) in [
            (Some(0), None),
            (Some(4_999), None),
            (Some(7_200_000), Some(7_200_000)),
            (Some(7_200_900), None),
            (None, None),
            (Some(7_200_100), None),
            (Some(-7_200_000), Some(-7_200_000)),
            (Some(3_000), None),
            (Some(100), Some(0)),
            (Some(100), None),
        ] {
            assert_eq!(heard(ahead_ms), told, "{ahead_ms:?}");
        }
        assert_eq!(clocks.ahead_ms(node), Some(100));
    }
}
