//! Nodes whose datagrams are refused: why, in words that help, and for how long.
//!
//! Invariant: one that was not refused for [`FORGET_AFTER`] is refused no more.

use super::Reporter;
use crate::log_limiter::LogLimiter;
use quorba_admin::status::{RefusalStatus, millis};
use quorba_base::NodeId;
use quorba_engine::order::RefusedReason;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The ring tells of the same refusal once a second for as long as datagrams come.
const FORGET_AFTER: Duration = Duration::from_secs(5);

/// How long after it was asked in vain a node is asked for its file again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

struct Refusal {
    reason: RefusedReason,
    since: Instant,
    last: Instant,
    told: LogLimiter,
    /// In what the domain files differ, as far as the other node has said.
    differ_in: Vec<String>,
    /// When it was asked for its file last.
    asked: Option<Instant>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Refusals(HashMap<NodeId, Refusal>);

/// The word for programs; what `me` says of `node`; what helps.
fn words(reason: RefusedReason, node: &str, me: &str) -> (&'static str, String, String) {
    match reason {
        RefusedReason::Seal => (
            "QB-RING-001",
            format!("{node} has another domain key, or somebody forges its datagrams"),
            format!("copy the key_file of {me} to {node}, and restart {node}"),
        ),
        RefusedReason::Protection => (
            "QB-RING-002",
            format!("only one of {me} and {node} has ring.encrypt = false"),
            "give both the same domain file, and restart the one that was wrong".into(),
        ),
        RefusedReason::Version => (
            "QB-RING-003",
            format!("{node} speaks another version of the protocol"),
            "run the same version of quorba on all nodes".into(),
        ),
        RefusedReason::UnknownNode => (
            "QB-RING-004",
            format!("the sender is not in the domain file of {me}, or has its name"),
            "give all nodes the same domain file, and each node a name of its own".into(),
        ),
        RefusedReason::Incarnation => (
            "QB-RING-005",
            format!("they are of an older boot of {node}, or of a second process with its name"),
            "end the process that should not be there".into(),
        ),
        RefusedReason::Digest => (
            "QB-RING-006",
            format!("{node} has another domain file"),
            format!("copy the domain file of {me} to {node}, and restart {node}"),
        ),
        RefusedReason::Malformed => (
            "QB-RING-007",
            "they have a right seal and cannot be read: a fault of the program".into(),
            "run the same version of quorba on all nodes; if they do, report it as a bug".into(),
        ),
    }
}

impl Refusals {
    /// Whether it is to be logged now, and whether it is to be asked for its file.
    fn saw(&mut self, node: NodeId, reason: RefusedReason, now: Instant) -> (bool, bool) {
        let known = self.0.get(&node).is_some_and(|one| one.reason == reason && one.lasts(now));
        if !known {
            let (told, differ_in) = (LogLimiter::default(), Vec::new());
            let refusal = Refusal { reason, since: now, last: now, told, differ_in, asked: None };
            self.0.insert(node, refusal);
        }
        let one = self.0.get_mut(&node).expect("just seen");
        one.last = now;
        let is_asked = one.asked.is_some_and(|at| now.saturating_duration_since(at) < ASK_AGAIN);
        let wants_file = reason == RefusedReason::Digest && one.differ_in.is_empty() && !is_asked;
        if wants_file {
            one.asked = Some(now);
        }
        (!wants_file && one.told.tells(now).is_some(), wants_file)
    }
}

impl Refusal {
    fn lasts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) < FORGET_AFTER
    }
}

impl Reporter {
    /// Datagrams in a node's name are refused. Whether its domain file is wanted, to say in what it
    /// differs.
    pub(crate) fn saw_refusal(&mut self, node: NodeId, reason: RefusedReason) -> bool {
        let (is_to_be_told, wants_file) = self.refusals.saw(node, reason, Instant::now());
        if is_to_be_told {
            self.tell_refusal(node);
        }
        wants_file
    }

    /// The canonical text of a refused node's domain file; none if it could not be had.
    pub(crate) fn heard_file(&mut self, node: NodeId, text: Option<&str>) {
        let ours = &self.file;
        if let Some(refusal) = self.refusals.0.get_mut(&node) {
            refusal.differ_in =
                text.map(|text| quorba_config::differences(ours, text)).unwrap_or_default();
            // It is worth a line of its own.
            if !refusal.differ_in.is_empty() {
                let _ = refusal.told.tells(Instant::now());
                self.tell_refusal(node);
            }
        }
    }

    fn tell_refusal(&self, node: NodeId) {
        let Some(refusal) = self.node_refused(node) else { return };
        tracing::warn!(
            node = self.name_of(node),
            address = self.ring_address(node),
            code = refusal.code,
            "ring datagrams in the name of {} are refused here: {}; {}",
            self.name_of(node),
            refusal.what,
            refusal.next
        );
    }

    pub(super) fn ring_address(&self, node: NodeId) -> String {
        let node = self.domain.node(node);
        node.map_or_else(|| "-".into(), |node| format!("{}:{}", node.host, node.ring_port))
    }

    /// How a node is refused now.
    pub(super) fn node_refused(&self, node: NodeId) -> Option<RefusalStatus> {
        let refusal = self.refusals.0.get(&node).filter(|one| one.lasts(Instant::now()))?;
        let (code, what, next) = words(refusal.reason, self.name_of(node), self.node_name());
        let what = match refusal.differ_in.as_slice() {
            [] => what,
            keys => format!("{what} (differs in: {})", keys.join(", ")),
        };
        let since_ms = millis(refusal.since.elapsed());
        let is_proven = !matches!(
            refusal.reason,
            RefusedReason::Seal | RefusedReason::Version | RefusedReason::UnknownNode
        );
        Some(RefusalStatus { code: code.into(), what, next, is_proven, since_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_a_minute_and_another_one_at_once() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let node = NodeId::new(1).expect("a small number");
        let second = Duration::from_secs(1);
        assert_eq!(refusals.saw(node, RefusedReason::Seal, start), (true, false));
        for number in 1..60 {
            let now = start + second * number;
            assert_eq!(refusals.saw(node, RefusedReason::Seal, now), (false, false), "{number}");
        }
        let now = start + second * 60;
        assert_eq!(refusals.saw(node, RefusedReason::Seal, now), (true, false));
        // It is asked for its file first, and told of at the next datagram if it does not answer.
        assert_eq!(refusals.saw(node, RefusedReason::Digest, now + second), (false, true));
        assert_eq!(refusals.saw(node, RefusedReason::Digest, now + second), (true, false));
        let later = now + second + FORGET_AFTER;
        assert!(!refusals.0[&node].lasts(later));
        assert_eq!(refusals.saw(node, RefusedReason::Digest, later), (false, true));
    }
}
