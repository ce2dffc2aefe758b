//! Which consumers an event can be for, by its type.
//!
//! What it is not: the decision; filters make it.
//!
//! Invariants: a consumer that is not named accepts no event of that type; a type of a consumer
//! takes the same few octets, however many consumers have it.

use alloc::collections::BTreeSet;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Index {
    /// Types, each with a consumer that accepts it.
    by_type: BTreeSet<(i32, u64)>,
    /// Those whose types are not known.
    others: BTreeSet<u64>,
}

/// Of so many consumers one must be named, so that to look them up is less than to ask all.
const WORTH: usize = 4;

impl Index {
    /// A consumer that accepts these types.
    pub(crate) fn insert(&mut self, id: u64, types: Option<BTreeSet<i32>>) {
        match types {
            None => {
                self.others.insert(id);
            }
            Some(types) => {
                self.by_type.extend(types.into_iter().map(|event_type| (event_type, id)));
            }
        }
    }

    /// The same consumer is no more.
    pub(crate) fn remove(&mut self, id: u64, types: Option<BTreeSet<i32>>) {
        self.others.remove(&id);
        for event_type in types.into_iter().flatten() {
            self.by_type.remove(&(event_type, id));
        }
    }

    /// The consumers that an event of a type can be for, in their order; none if all of `count`
    /// should be asked.
    pub(crate) fn named(&self, event_type: i32, count: usize) -> Option<impl Iterator<Item = u64>> {
        if event_type == 0 {
            return None;
        }
        let by_type = || self.by_type.range((event_type, 0)..=(event_type, u64::MAX));
        // To count more of them than can be worth it would be work for nothing.
        let worth = (count / WORTH).checked_sub(self.others.len())?;
        if by_type().nth(worth).is_some() {
            return None;
        }
        let mut others = self.others.iter().copied().peekable();
        let mut by_type = by_type().map(|(_, id)| *id).peekable();
        Some(core::iter::from_fn(move || match (others.peek(), by_type.peek()) {
            (Some(one), Some(other)) if other < one => by_type.next(),
            (Some(_), _) => others.next(),
            (None, _) => by_type.next(),
        }))
    }
}
