//! Which consumers an event can be for, by its type.
//!
//! What it is not: the decision; filters make it.
//!
//! Invariant: a consumer that is not named accepts no event of that type.

use alloc::collections::{BTreeMap, BTreeSet};

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Index {
    by_type: BTreeMap<i32, BTreeSet<u64>>,
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
                for event_type in types {
                    self.by_type.entry(event_type).or_default().insert(id);
                }
            }
        }
    }

    /// The same consumer is no more.
    pub(crate) fn remove(&mut self, id: u64, types: Option<BTreeSet<i32>>) {
        self.others.remove(&id);
        for event_type in types.into_iter().flatten() {
            if let Some(there) = self.by_type.get_mut(&event_type) {
                there.remove(&id);
                if there.is_empty() {
                    self.by_type.remove(&event_type);
                }
            }
        }
    }

    /// The consumers that an event of a type can be for, in their order; none if all of `count`
    /// should be asked.
    pub(crate) fn named(&self, event_type: i32, count: usize) -> Option<impl Iterator<Item = u64>> {
        if event_type == 0 {
            return None;
        }
        let by_type = self.by_type.get(&event_type);
        let named = self.others.len() + by_type.map_or(0, BTreeSet::len);
        if named.saturating_mul(WORTH) > count {
            return None;
        }
        let mut others = self.others.iter().copied().peekable();
        let mut by_type = by_type.into_iter().flatten().copied().peekable();
        Some(core::iter::from_fn(move || match (others.peek(), by_type.peek()) {
            (Some(one), Some(other)) if other < one => by_type.next(),
            (Some(_), _) => others.next(),
            (None, _) => by_type.next(),
        }))
    }
}
