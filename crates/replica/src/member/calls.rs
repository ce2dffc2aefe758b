//! A member whose server calls other groups.
//!
//! What it is not: what becomes of the calls. Invariant: a call that is given a name is made in a
//! request that the group was delivered under the try that brought the member in.

use super::{Member, Stage, Wanted};
use crate::history::History;
use crate::ids::Attempt;
use quorba_base::Instant;

impl Member {
    /// The server calls: in which request, which of its calls it is, and under which try.
    pub(crate) fn begin_call(&mut self) -> Option<(History, u32, Attempt)> {
        let Stage::Serving { attempt } = self.stage else { return None };
        let (during, number) = self.executor.begin_call()?;
        Some((during, number, attempt))
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
                Wanted::State | Wanted::Updates { .. } => joined_at.count,
            },
            Stage::Restoring { .. } => self.seen.count,
            Stage::Serving { .. } => {
                let unanswered = self.executor.first_unanswered();
                let executed = unanswered.map_or(self.seen.count, |first| first.saturating_sub(1));
                let base = self.base.as_ref().map_or(u64::MAX, |base| base.at.count);
                executed.min(self.seen.count).min(base)
            }
            Stage::NoServer | Stage::Ready { .. } | Stage::Asked { .. } | Stage::Out { .. } => {
                return None;
            }
        };
        Some((attempt, index))
    }
}
