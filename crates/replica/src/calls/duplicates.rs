//! Replies through the order of which one is enough: a member that has heard another's drops its
//! own while it is not sent (Zhao 2002, §2.5; measured in Zhao 2005).
//!
//! What it is not: knowledge of who has what. A reply that was delivered here was perhaps not
//! delivered at the gateway's node; who misses it submits the request again, and then it is
//! answered again. Invariants: each delivery of a request is answered, by this member or by one
//! whose reply was delivered behind it; what is kept is bounded.

use crate::words::ids::{GatewayKey, RequestNumber};
use alloc::collections::BTreeMap;

/// Calls that are kept in mind; beyond, duplicates may be sent.
const CALLS_MAX: usize = 16_384;

/// Where this member is with a reply that it owes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The server has not answered, or the answer is held back.
    Owed,
    /// Another member's was delivered meanwhile.
    Answered,
    /// Given to the order, and not delivered yet.
    Handed,
}

/// Replies of one group through the order, since this node started.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct OrderedReplies {
    /// Of the local member, delivered.
    pub sent: u64,
    /// Of the local member, not sent, because another member's had come.
    pub suppressed: u64,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Duplicates {
    calls: BTreeMap<GatewayKey, Stage>,
    pub(crate) figures: OrderedReplies,
}

impl Duplicates {
    /// A request was delivered that this member is to answer; its gateway has the replies to those
    /// below a number, and will not ask for them again.
    pub(crate) fn owed(&mut self, to: GatewayKey, released_below: RequestNumber) {
        let low = GatewayKey { number: RequestNumber(0), ..to };
        let high = GatewayKey { number: released_below, ..to };
        while low < high
            && let Some((done, stage)) = self.calls.range(low..high).next()
        {
            // A server that is slow executes it still, and then nobody waits for it.
            self.figures.suppressed += u64::from(*stage == Stage::Answered);
            let done = *done;
            self.calls.remove(&done);
        }
        self.note(to, Stage::Owed);
    }

    fn note(&mut self, to: GatewayKey, stage: Stage) {
        if self.calls.len() >= CALLS_MAX {
            self.calls.pop_first();
        }
        self.calls.insert(to, stage);
    }

    /// This member has a reply. Whether it is to be sent.
    pub(crate) fn replies(&mut self, to: GatewayKey) -> bool {
        if self.calls.get(&to) == Some(&Stage::Answered) {
            self.calls.remove(&to);
            self.figures.suppressed += 1;
            return false;
        }
        self.note(to, Stage::Handed);
        true
    }

    /// A reply was delivered. Whether this member's own, which is with the order, is to be taken
    /// back.
    pub(crate) fn delivered(&mut self, to: GatewayKey, own: bool) -> bool {
        if own {
            self.figures.sent += 1;
            self.calls.remove(&to);
            return false;
        }
        match self.calls.get_mut(&to) {
            Some(stage @ Stage::Owed) => {
                *stage = Stage::Answered;
                false
            }
            Some(Stage::Handed) => {
                self.calls.remove(&to);
                true
            }
            Some(Stage::Answered) | None => false,
        }
    }

    /// It was taken back in time.
    pub(crate) fn withdrawn(&mut self) {
        self.figures.suppressed += 1;
    }

    /// Whoever misses a reply asks again.
    pub(crate) fn begin_anew(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_base::NodeId;

    const NONE: RequestNumber = RequestNumber(0);

    fn call(number: u64) -> GatewayKey {
        let node = NodeId::new(0).unwrap();
        GatewayKey { node, incarnation: 1, number: RequestNumber(number) }
    }

    #[test]
    fn what_another_has_answered_is_not_sent_but_a_repetition_is() {
        let mut duplicates = Duplicates::default();
        duplicates.owed(call(1), NONE);
        assert!(!duplicates.delivered(call(1), false), "nothing is with the order yet");
        assert!(!duplicates.replies(call(1)));
        assert!(duplicates.replies(call(1)), "asked again, answered from the log");
        assert!(!duplicates.delivered(call(1), true));
        let expected = OrderedReplies { sent: 1, suppressed: 1 };
        assert_eq!((duplicates.figures, duplicates.calls.len()), (expected, 0));
    }

    #[test]
    fn a_request_that_is_delivered_again_is_answered_again() {
        let mut duplicates = Duplicates::default();
        duplicates.owed(call(1), NONE);
        duplicates.delivered(call(1), false);
        duplicates.owed(call(1), NONE);
        assert!(duplicates.replies(call(1)), "the first answer may have been lost on its way");
        assert!(duplicates.delivered(call(1), false), "it waits for the token: take it back");
        assert!(!duplicates.delivered(call(1), false), "once");
    }

    #[test]
    fn what_its_gateway_has_is_not_kept_in_mind() {
        let mut duplicates = Duplicates::default();
        duplicates.owed(call(1), NONE);
        duplicates.delivered(call(1), false);
        duplicates.owed(call(2), RequestNumber(2));
        let expected = OrderedReplies { sent: 0, suppressed: 1 };
        assert_eq!((duplicates.figures, duplicates.calls.len()), (expected, 1));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut duplicates = Duplicates::default();
        (0..CALLS_MAX as u64 + 9).for_each(|number| duplicates.owed(call(number), NONE));
        assert_eq!(duplicates.calls.len(), CALLS_MAX);
        assert!(duplicates.replies(call(0)), "forgotten, so it is sent");
    }
}
