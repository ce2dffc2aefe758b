//! A member whose server calls other groups.
//!
//! What it is not: what becomes of the calls. Invariant: a call that is given a name is made in a
//! request that the group was delivered, and counts under the try that brought the member in; if it
//! is cut off meanwhile, under the one that brings it in again with what its server has executed.

use super::{Member, Stage, Wanted};
use crate::words::history::History;
use crate::words::ids::Attempt;
use quorba_base::Instant;

/// Where a member stands whose server waits for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallerState {
    /// It is in, or replays, by this try.
    Serving(Attempt),
    /// It is cut off, and asks to come in with what its server has executed, and this request.
    Returning,
    /// The request does not count any more.
    Gone,
}

impl Member {
    /// The server calls: in which request, which of its calls it is, and under which try.
    pub(crate) fn begin_call(&mut self) -> Option<(History, u32, Attempt)> {
        let (during, number) = self.executor.begin_call()?;
        let attempt = match self.caller_state(during) {
            CallerState::Serving(attempt) => attempt,
            CallerState::Returning => Attempt::NONE,
            CallerState::Gone => return None,
        };
        Some((during, number, attempt))
    }

    /// How it stands with calls in that request.
    pub(crate) fn caller_state(&self, during: History) -> CallerState {
        if !self.executor.is_at(during) {
            return CallerState::Gone;
        }
        match &self.stage {
            Stage::Serving { attempt } => CallerState::Serving(*attempt),
            // Whether what it claims is a beginning of what the group has, its donor will say.
            Stage::Ready { claim: Some(_), .. }
            | Stage::Asked { claim: Some(_), .. }
            | Stage::Out { claim: Some(_) } => CallerState::Returning,
            Stage::Receiving { wanted, .. } if wanted.claim().is_some() => CallerState::Returning,
            _ => CallerState::Gone,
        }
    }

    /// Whether the server was told what came of a call in a request behind that one.
    pub(crate) fn has_heard_behind(&self, known: History) -> bool {
        self.executor.has_heard_behind(known)
    }

    /// Whether the server was told what came of a call in that request, or in one behind it.
    pub(crate) fn has_heard_in(&self, during: History) -> bool {
        self.executor.has_heard_in(during)
    }

    /// A call of that request has ended.
    pub(crate) fn end_call(&mut self, now: Instant, during: History) {
        self.executor.end_call(now, during);
    }

    /// The last request that the member will not execute again, nor any before it, whatever it is
    /// given next; and its try.
    pub(crate) fn floor(&self) -> Option<(Attempt, u64)> {
        let attempt = self.attempt()?;
        let index = match &self.stage {
            Stage::Receiving { joined_at, wanted, .. } => match wanted {
                Wanted::Requests { behind } => behind.count,
                Wanted::State { .. } | Wanted::Updates { .. } => joined_at.count,
            },
            Stage::Restoring { .. } => self.seen.count,
            Stage::Serving { .. } => {
                let unanswered = self.executor.first_unanswered();
                let executed = unanswered.map_or(u64::MAX, |first| first.saturating_sub(1));
                // Whatever its server has seen: it is given the base first, or the next one is
                // (seed 375 of the simulator's `calls`).
                let base = self.base.as_ref().or(self.takeover.as_deref().map(|t| t.base()));
                let has = base.map_or(self.seen, |base| base.at);
                executed.min(has.count)
            }
            Stage::NoServer | Stage::Ready { .. } | Stage::Asked { .. } | Stage::Out { .. } => {
                return None;
            }
        };
        Some((attempt, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::passive::Checkpoint;
    use crate::words::config::GroupConfig;
    use crate::words::style::Duty;
    use alloc::vec::Vec;
    use bytes::Bytes;
    use quorba_base::policy::Style;
    use quorba_base::{Duration, NodeId};

    #[test]
    fn who_stands_by_is_done_with_all_that_its_checkpoint_covers_whatever_its_server_has_seen() {
        for (style, duty) in [(Style::WarmPassive, Duty::StandBy), (Style::ColdPassive, Duty::Keep)]
        {
            let config = GroupConfig { style, ..GroupConfig::plain(Duration::from_secs(1)) };
            let mut member = Member::new(&config, NodeId::new(1).unwrap(), 1);
            member.stage = Stage::Asked { attempt: Attempt(2), claim: Some(History::EMPTY) };
            member.duty = duty;
            member.admitted(Attempt(2), History::EMPTY);
            assert_eq!(member.floor(), Some((Attempt(2), 0)));
            let mut from = None;
            for count in [5, 9] {
                let up_to = History { count, digest: count };
                let (replies, state) = (Vec::new(), Bytes::from_static(b"state"));
                member.apply_checkpoint(Checkpoint { from, up_to, replies, state });
                assert_eq!(member.floor(), Some((Attempt(2), count)), "{style:?}");
                from = Some(up_to);
            }
        }
    }
}
