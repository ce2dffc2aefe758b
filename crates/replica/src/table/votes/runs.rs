//! Requests on which nothing is voted any more, in stretches.
//!
//! Some calls take longer than thousands of later ones, so what is over is no single mark; and
//! those between two old stretches are over too, when there are too many of these.
//!
//! What it is not: why something is over. Invariant: stretches are apart, and few.

use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::BTreeMap;

/// Between the oldest two of more than so many stretches nothing is voted any more, either.
const RUNS_MAX: usize = 4096;

/// Numbers of requests, those without a gap as one: the first and the last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Runs(BTreeMap<u64, u64>);

impl Runs {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    pub(super) fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let before = self.0.range(..number).next_back().map(|(first, last)| (*first, *last));
        let first =
            before.filter(|(_, last)| last + 1 == number).map_or(number, |(first, _)| first);
        let last = number.checked_add(1).and_then(|next| self.0.remove(&next)).unwrap_or(number);
        self.0.insert(first, last);
        while self.0.len() > RUNS_MAX {
            let (first, _) = self.0.pop_first().expect("there are many");
            let (_, last) = self.0.pop_first().expect("there are many");
            self.0.insert(first, last);
        }
    }

    pub(super) fn insert_up_to(&mut self, number: u64) {
        let behind = self.0.split_off(&number.saturating_add(1));
        let reached = self.0.last_key_value().map_or(number, |(_, last)| number.max(*last));
        self.0 = behind;
        self.0.insert(0, reached);
    }

    pub(super) fn encode(&self, w: &mut Writer) {
        w.u32(self.0.len() as u32);
        for (first, last) in &self.0 {
            w.u64(*first);
            w.u64(*last);
        }
    }

    pub(super) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut runs = Self::default();
        for _ in 0..r.count(16, "votes that are over")? {
            runs.0.insert(r.u64("vote that is over")?, r.u64("vote that is over")?);
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_together_and_stay_few() {
        let mut runs = Runs::default();
        for number in [3, 5, 4, 9, 4] {
            runs.insert(number);
        }
        assert_eq!(runs.0, [(3, 5), (9, 9)].into());
        runs.insert_up_to(7);
        assert_eq!(runs.0, [(0, 7), (9, 9)].into());
        runs.insert(8);
        assert_eq!(runs.0, [(0, 9)].into());
        for number in 0..=RUNS_MAX as u64 {
            runs.insert(11 + 2 * number);
        }
        assert_eq!(runs.0.len(), RUNS_MAX);
        assert!(runs.contains(10) && !runs.contains(16) && runs.contains(17));
    }
}
