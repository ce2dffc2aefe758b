//! The members of a group that is quiet agree on what state they have, where servers may be started
//! anew by somebody else.
//!
//! What it is not: what a member does with that, which is `member::endings`. Invariant: it costs a
//! server little of its time, however long its state takes to be given.

use super::Group;
use crate::messages::envelope::Envelope;
use crate::output::{OrderOutput, Outbox};
use crate::table::MemberState;
use crate::table::endings::ROUNDS;
use crate::words::history::History;
use quorba_base::{Duration, Instant, NodeId};

/// How long a group has been delivered nothing that is quiet; longer if states are long.
const QUIET: Duration = Duration::from_secs(1);
const QUIET_MAX: Duration = Duration::from_secs(120);
/// So many times as long as it takes to agree.
const SHARE: u32 = 20;
/// When it is tried again, if that came to nothing.
const AGAIN: Duration = Duration::from_secs(60);

/// When the members agree next; the member that asks for it minds that.
#[derive(Default)]
pub(super) struct Quiet {
    at: Option<Instant>,
    /// What the group had been delivered when it was looked at last.
    history: Option<History>,
    asked: Option<Instant>,
    pause: Duration,
}

impl Quiet {
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }
}

impl Group {
    /// Whether the members are to agree on a state whenever the group is quiet.
    fn agrees(&self) -> bool {
        self.config.foreign && self.config.state_object.is_some() && !self.is_stateless()
    }

    /// Asks for a round when the group has been quiet for long enough.
    pub(super) fn mind_quiet(&mut self, now: Instant, in_primary: bool, out: &mut Outbox) {
        let asks = in_primary && self.table.in_set().lowest() == Some(self.here) && self.agrees();
        if !asks {
            self.quiet = Quiet::default();
            return;
        }
        let (history, quiet) = (self.table.history, &mut self.quiet);
        if self.table.endings.agreed.state().is_some_and(|(at, _)| at == history) {
            if let Some(asked) = quiet.asked.take() {
                quiet.pause = now.since(asked).saturating_mul(SHARE);
            }
            (quiet.at, quiet.history) = (None, Some(history));
            return;
        }
        if quiet.history != Some(history) || quiet.at.is_none() {
            let pause = quiet.pause.max(QUIET).min(QUIET_MAX);
            (quiet.at, quiet.history) = (Some(now + pause), Some(history));
        }
        if quiet.at.is_some_and(|at| at <= now) {
            quiet.at = Some(now + AGAIN);
            quiet.asked = Some(now);
            if let Some(attempt) = self.table.attempt(self.here) {
                let (group, number, digest) = (self.id, ROUNDS, None);
                let round = Envelope::StateDigest { group, attempt, number, digest };
                out.push_back(OrderOutput::Submit(round.encode()).into());
            }
        }
    }

    /// A round begins here, or a member has its say in one.
    pub(super) fn deliver_agreed(&mut self, origin: NodeId, number: u64, digest: Option<u64>) {
        if number != ROUNDS {
            self.table.endings.agreed.hear(origin, number, digest);
            return;
        }
        if !self.agrees() {
            return;
        }
        let executing =
            self.table.with_electorate(&self.config, |_, electorate| electorate.executing);
        let number = self.table.endings.agreed.begin(self.table.history, executing);
        let is_in = matches!(self.table.state(self.here), Some(MemberState::In { .. }));
        if let Some(member) = self.member.as_deref_mut().filter(|_| is_in && self.replay.is_none())
        {
            member.compare_states(number);
        }
    }
}
