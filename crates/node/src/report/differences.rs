//! What members were seen to do differently, since when members are out, and when that is over.
//!
//! What it is not: a judgement; [`quorba_admin::health`] makes one of it. Invariant: a difference
//! is remembered until as many members as it takes were given the state of another one since, or
//! the group was restored.

use super::Reporter;
use crate::log_limiter::LogLimiter;
use quorba_admin::status::{DifferStatus, millis};
use quorba_base::{NodeId, NodeSet};
use quorba_engine::replica::{Command, GroupId, MemberState};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Instant;

/// Requests that ended without a reply, whose times are remembered of each group.
const ENDED_MAX: usize = 64;

struct Difference {
    /// Those that did something else than most.
    nodes: NodeSet,
    what: &'static str,
    /// Compared together when it was seen last.
    requests: RangeInclusive<u64>,
    times: u64,
    since: Instant,
    /// Members that came in since, with the state of another one.
    rebuilt: NodeSet,
    may_be_padding: bool,
}

#[derive(Default)]
struct OfGroup {
    difference: Option<Difference>,
    told: LogLimiter,
    told_calls: LogLimiter,
    told_padding: LogLimiter,
    inside: NodeSet,
    out_since: HashMap<NodeId, Instant>,
    ended_at: HashMap<u64, Instant>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Differences(HashMap<GroupId, OfGroup>);

impl Differences {
    fn of(&mut self, group: GroupId) -> &mut OfGroup {
        self.0.entry(group).or_default()
    }

    pub(super) fn forget(&mut self, group: GroupId) {
        self.0.remove(&group);
    }

    pub(super) fn out_since(&self, group: GroupId, node: NodeId) -> Option<Instant> {
        self.0.get(&group)?.out_since.get(&node).copied()
    }

    fn member(&mut self, group: GroupId, node: NodeId, state: MemberState) {
        let of = self.of(group);
        if !matches!(state, MemberState::In { .. }) {
            of.inside.remove(node);
            of.out_since.entry(node).or_insert_with(Instant::now);
            return;
        }
        of.out_since.remove(&node);
        of.inside.insert(node);
        let inside = of.inside;
        if let Some(difference) = &mut of.difference {
            difference.rebuilt.insert(node);
            if difference.is_over(inside) {
                of.difference = None;
            }
        }
    }

    /// Whether it is to be logged now: how often it was not since the last time.
    fn saw(
        &mut self,
        group: GroupId,
        nodes: NodeSet,
        what: &'static str,
        at: &RangeInclusive<u64>,
    ) -> Option<u64> {
        let of = self.of(group);
        let now = Instant::now();
        let known = of.difference.get_or_insert(Difference {
            nodes,
            what,
            requests: at.clone(),
            times: 0,
            since: now,
            rebuilt: NodeSet::EMPTY,
            may_be_padding: false,
        });
        known.times += 1;
        (known.requests, known.what) = (at.clone(), what);
        // Without a majority it may be anybody.
        known.nodes = match nodes.is_empty() || known.nodes.is_empty() && known.times > 1 {
            true => NodeSet::EMPTY,
            false => known.nodes.union(nodes),
        };
        known.rebuilt = NodeSet::EMPTY;
        of.told.tells(now)
    }
}

impl Difference {
    fn is_over(&self, inside: NodeSet) -> bool {
        match self.nodes.is_empty() {
            // All that are in have the state of one of them.
            true => inside.difference(self.rebuilt).len() <= 1,
            false => self.nodes.difference(self.rebuilt).is_empty(),
        }
    }
}

impl Reporter {
    pub(crate) fn member_is(&mut self, group: GroupId, node: NodeId, state: MemberState) {
        // What is late is of a group that has gone.
        if self.groups.get(group).is_none() {
            return;
        }
        self.differences.member(group, node, state);
        // Its server is gone, or will be given anew.
        if node == self.me && matches!(state, MemberState::Down(_)) {
            self.references.forget(group);
        }
    }

    /// Members of a group were seen to do different things at one of these requests: `nodes` did
    /// something else than most, if most did the same. `Some` if that is to be logged now: how
    /// often it was seen and not logged.
    pub(crate) fn saw_difference(
        &mut self,
        group: GroupId,
        nodes: NodeSet,
        what: &'static str,
        requests: &RangeInclusive<u64>,
    ) -> Option<u64> {
        self.differences.saw(group, nodes, what, requests)
    }

    /// A member has asked for something else than another one in the same call. Octets that differ
    /// may be padding, which some ORBs leave uncleared, so this is told and counted, and concludes
    /// nothing.
    pub(crate) fn saw_calls_differ(&mut self, group: GroupId) -> Option<u64> {
        self.differences.of(group).told_calls.tells(Instant::now())
    }

    /// Where members reply differently, the local server leaves what looks like padding uncleared.
    pub(crate) fn saw_uncleared(&mut self, group: GroupId) -> Option<u64> {
        let of = self.differences.of(group);
        if let Some(difference) = &mut of.difference {
            difference.may_be_padding = true;
        }
        of.told_padding.tells(Instant::now())
    }

    pub(crate) fn saw_command(&mut self, group: GroupId, command: Command) {
        if matches!(command, Command::Restore { .. }) {
            self.differences.of(group).difference = None;
        }
    }

    pub(crate) fn saw_end(&mut self, group: GroupId, request: u64) {
        let ended = &mut self.differences.of(group).ended_at;
        if ended.len() >= ENDED_MAX
            && let Some(oldest) = ended.keys().min().copied()
        {
            ended.remove(&oldest);
        }
        ended.insert(request, Instant::now());
    }

    pub(super) fn may_differ_ms(&self, group: GroupId, doubt: Option<u64>) -> Option<u64> {
        let at = self.differences.0.get(&group)?.ended_at.get(&doubt?)?;
        Some(millis(at.elapsed()))
    }

    pub(super) fn differ(&self, group: GroupId) -> Option<DifferStatus> {
        let known = self.differences.0.get(&group)?.difference.as_ref()?;
        Some(DifferStatus {
            nodes: self.names(known.nodes),
            what: known.what.into(),
            first_request: *known.requests.start(),
            request: *known.requests.end(),
            times: known.times,
            since_ms: millis(known.since.elapsed()),
            may_be_padding: known.may_be_padding,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_engine::replica::{Attempt, DownReason};

    const GROUP: GroupId = GroupId(0);

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("a small number")
    }

    fn set(nodes: &[u8]) -> NodeSet {
        nodes.iter().map(|index| node(*index)).collect()
    }

    fn comes_in(known: &mut Differences, index: u8) {
        known.member(GROUP, node(index), MemberState::Down(DownReason::NotStarted));
        known.member(GROUP, node(index), MemberState::In { attempt: Attempt(1) });
    }

    fn differ(known: &Differences) -> bool {
        known.0.get(&GROUP).is_some_and(|of| of.difference.is_some())
    }

    #[test]
    fn without_a_majority_all_but_one_must_be_rebuilt() {
        let mut known = Differences::default();
        (0..3).for_each(|index| comes_in(&mut known, index));
        assert_eq!(known.saw(GROUP, NodeSet::EMPTY, "reply differently", &(1..=7)), Some(0));
        comes_in(&mut known, 1);
        assert!(differ(&known));
        assert_eq!(
            known.saw(GROUP, NodeSet::EMPTY, "reply differently", &(9..=9)),
            None,
            "once a minute"
        );
        comes_in(&mut known, 0);
        assert!(differ(&known), "what was rebuilt before counts no more");
        comes_in(&mut known, 2);
        assert!(!differ(&known));
    }

    #[test]
    fn one_that_differs_must_be_rebuilt_itself() {
        let mut known = Differences::default();
        (0..3).for_each(|index| comes_in(&mut known, index));
        known.saw(GROUP, set(&[2]), "replied differently", &(7..=7));
        comes_in(&mut known, 0);
        assert!(differ(&known));
        comes_in(&mut known, 2);
        assert!(!differ(&known));
        assert_eq!(known.out_since(GROUP, node(2)), None);
    }

    #[test]
    fn one_that_goes_is_out_since_it_went_and_not_since_it_was_mentioned_last() {
        let mut known = Differences::default();
        comes_in(&mut known, 1);
        known.member(GROUP, node(1), MemberState::Down(DownReason::ServerExited));
        let since = known.out_since(GROUP, node(1)).expect("it is out");
        known.member(GROUP, node(1), MemberState::Down(DownReason::NodeLeft));
        assert_eq!(known.out_since(GROUP, node(1)), Some(since));
    }
}
