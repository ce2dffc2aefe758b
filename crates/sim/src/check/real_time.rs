//! A call that began after another one was answered comes after it: with replies that name their
//! position, that is all there is to linearizability of a log.

use crate::ledger::Call;
use crate::servant::{Mark, Reference, Wish};
use quorba_base::Instant;

/// The longest history acknowledged at each time; both ascend.
#[derive(Clone, Default)]
pub(crate) struct Order(Vec<(Instant, u64)>);

impl Order {
    pub(super) fn note(
        &mut self,
        now: Instant,
        reference: Reference,
        call: &Call,
        mark: Mark,
    ) -> Option<String> {
        let known = self.0.partition_point(|(at, _)| *at < call.invoked);
        let before = known.checked_sub(1).map_or(0, |index| self.0[index].1);
        let least = before + u64::from(call.wish == Wish::Append);
        let longest = self.0.last().map_or(0, |(_, length)| *length);
        if mark.length > longest {
            self.0.push((now, mark.length));
        }
        (mark.length < least).then(|| {
            format!(
                "{:x} of c{} got position {}, but {before} had been acknowledged before it began",
                reference.0, call.client, mark.length
            )
        })
    }
}
