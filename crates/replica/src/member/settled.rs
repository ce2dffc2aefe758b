//! State that is given away when the replies that go with it are known to be right.
//!
//! A state goes with the replies to what is in it, and whoever is given one answers with them. As
//! long as one of those is voted on, the state waits here.
//!
//! What it is not: the vote. Invariant: no reply that is still being voted on leaves this member
//! with a state.

use super::{Consequence, Member};
use crate::state::retention::Frozen;
use crate::words::ids::Attempt;
use bytes::Bytes;
use quorba_base::NodeId;

/// Who is to be given a state.
pub(super) enum Recipient {
    /// With what was known when its join was delivered.
    Joiner(NodeId, Attempt, Frozen),
    /// The backup with this number.
    Operator(u64),
}

/// A state that waits.
pub(super) struct Unsettled {
    pub(super) whom: Recipient,
    pub(super) state: Bytes,
    /// The last request on whose reply a vote is open.
    pub(super) up_to: u64,
}

impl Member {
    /// What is known now, but for replies that are still being voted on.
    pub(super) fn freeze(&self) -> Frozen {
        let mut frozen = self.retention.freeze();
        frozen.forget_replies(|key| self.voting.is_held(key));
        frozen
    }

    /// A state is here, of what has been executed by now.
    pub(super) fn give_when_settled(
        &mut self,
        whom: Recipient,
        state: Bytes,
    ) -> Option<Consequence> {
        match self.voting.last_held() {
            Some(up_to) => {
                self.giving.wait(Unsettled { whom, state, up_to });
                None
            }
            None => self.give_to(whom, state),
        }
    }

    /// Gives away what nothing keeps any more; what follows from that.
    pub(crate) fn give_settled(&mut self) -> Option<Consequence> {
        loop {
            let voting = &self.voting;
            let settled = self.giving.take_settled(|up_to| voting.is_over(up_to))?;
            let Unsettled { whom, state, .. } = settled;
            if let Some(consequence) = self.give_to(whom, state) {
                return Some(consequence);
            }
        }
    }

    fn give_to(&mut self, whom: Recipient, state: Bytes) -> Option<Consequence> {
        match whom {
            Recipient::Joiner(joiner, attempt, frozen) => {
                self.give(joiner, attempt, &frozen, state)
            }
            Recipient::Operator(number) => self.back_up_with(number, state),
        }
    }
}
