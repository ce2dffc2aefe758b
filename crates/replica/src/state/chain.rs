//! What a leader's updates go on from, and the last of them, for members that come back.
//!
//! `get_update` tells what has changed since it, or `get_state`, was asked last, so there is one
//! chain of places in the order, and each update leads from one to the next. Whoever has the state
//! of one of the places, and of no other, can be given the updates behind it.
//!
//! Where a member joins, the leader takes an update there, for all: the joiner goes on from that
//! place as the others do, whether it is given the updates since its own, or the whole state, for
//! which `get_state` is asked right behind the update.
//!
//! What it is not: a promise. It ends at a bound and with the leader, because the next one's server
//! cannot tell what has changed since another one was asked. Invariant: the updates that are kept
//! lead without a gap to the end.

use crate::state::retention::{Frozen, Retention};
use crate::state::transfer;
use crate::words::history::{History, put_history, take_history};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;

/// Bytes of the updates that are kept.
const BYTES_MAX: usize = 64 << 20;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Chain {
    /// Where the last checkpoint was taken; `None`: the next one cannot go on from it.
    end: Option<History>,
    /// Updates, and from where they lead on.
    links: VecDeque<(History, Bytes)>,
    bytes: usize,
    /// Updates since the last whole state.
    updates: usize,
}

impl Chain {
    pub(crate) const fn end(&self) -> Option<History> {
        self.end
    }

    /// Updates since the last whole state.
    pub(crate) const fn updates(&self) -> usize {
        self.updates
    }

    /// Somebody lacks what the next update would go on from.
    pub(crate) fn break_off(&mut self) {
        *self = Self::default();
    }

    /// A whole state was taken there.
    pub(crate) fn begin(&mut self, at: History) {
        *self = Self { end: Some(at), ..Self::default() };
    }

    /// An update was taken that leads there.
    pub(crate) fn go_on(&mut self, to: History, update: Bytes) {
        let Some(from) = self.end.replace(to) else { return };
        self.bytes += update.len();
        self.updates += 1;
        self.links.push_back((from, update));
        while self.bytes > BYTES_MAX {
            let Some((_, first)) = self.links.pop_front() else { return };
            self.bytes -= first.len();
        }
    }

    /// Whether updates from that place on are known.
    pub(crate) fn knows(&self, place: History) -> bool {
        self.since(place).is_some()
    }

    /// The updates behind that place.
    pub(crate) fn since(&self, place: History) -> Option<Vec<Bytes>> {
        let links = self.links.len();
        let is_it = |(from, _): &(History, Bytes)| *from == place;
        let first = self.links.iter().position(is_it);
        let first = first.or((self.end == Some(place)).then_some(links))?;
        let first = if canary!(UpdatesFromAnywhere) { links.saturating_sub(1) } else { first };
        let first = links.min(first + usize::from(canary!(UpdatesSkipOne)));
        Some(self.links.range(first..).map(|(_, update)| update.clone()).collect())
    }
}

/// What a joiner is given that has the state of the place `from`, as bytes in front of, and behind
/// each other: the replies that clients may ask for, and the updates until `up_to`.
pub(crate) fn pack(
    (retention, frozen): (&Retention, &Frozen),
    (from, up_to): (History, History),
    updates: &[Bytes],
) -> (Bytes, Bytes) {
    let bytes: usize = updates.iter().map(|update| 4 + update.len()).sum();
    let mut w = Writer::with_capacity(36 + bytes);
    put_history(&mut w, from);
    put_history(&mut w, up_to);
    w.u32(updates.len() as u32);
    updates.iter().for_each(|update| w.bytes(update));
    (transfer::head(retention, frozen), w.finish())
}

/// Takes it apart, if it leads from the one place to the other.
pub(crate) fn unpack(
    bytes: Bytes,
    from: History,
    up_to: History,
) -> Result<(Retention, Vec<Bytes>), InvalidEnvelope> {
    let (retention, rest) = transfer::unpack(bytes)?;
    let mut r = Reader::new(rest);
    let ends = (take_history(&mut r)?, take_history(&mut r)?);
    let mut updates = Vec::new();
    for _ in 0..r.count(4, "update count")? {
        updates.push(r.bytes("update")?);
    }
    let invalid = r.error("places");
    r.end()?;
    if ends == (from, up_to) { Ok((retention, updates)) } else { Err(invalid) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(count: u64) -> History {
        History { count, digest: 7 * count }
    }

    fn chain(ends: core::ops::RangeInclusive<u64>, bytes: usize) -> Chain {
        let mut chain = Chain::default();
        chain.begin(at(0));
        for end in ends {
            chain.go_on(at(end), Bytes::from(vec![end as u8; bytes]));
        }
        chain
    }

    #[test]
    fn updates_are_given_from_places_of_the_chain_only() {
        let chain = chain(1..=3, 1);
        let firsts = |place| chain.since(place).map(|u| u.iter().map(|u| u[0]).collect::<Vec<_>>());
        assert_eq!(firsts(at(0)), Some(vec![1, 2, 3]));
        assert_eq!(firsts(at(2)), Some(vec![3]));
        assert_eq!(firsts(at(3)), Some(vec![]));
        assert_eq!(firsts(at(4)), None);
        assert_eq!(firsts(History { count: 2, digest: 1 }), None, "another history");
    }

    #[test]
    fn what_is_too_old_or_behind_a_gap_is_not_known() {
        let mut chain = chain(1..=5, 20 << 20);
        assert!(!chain.knows(at(1)) && chain.knows(at(2)));
        assert_eq!(chain.updates(), 5);
        chain.break_off();
        assert!(chain.end().is_none() && !chain.knows(at(5)));
        chain.go_on(at(6), Bytes::new());
        chain.begin(at(7));
        assert!(!chain.knows(at(5)) && chain.knows(at(7)));
    }

    #[test]
    fn what_is_given_is_taken_between_the_same_places_only() {
        let retention = Retention::default();
        let updates = [Bytes::from_static(b"one"), Bytes::from_static(b"two")];
        let (head, rest) = pack((&retention, &retention.freeze()), (at(1), at(3)), &updates);
        let whole = Bytes::from([head, rest].concat());
        assert_eq!(
            unpack(whole.clone(), at(1), at(3)).map(|(_, u)| u).as_deref(),
            Ok(&updates[..])
        );
        assert!(unpack(whole.clone(), at(2), at(3)).is_err());
        assert!(unpack(whole.clone(), at(1), at(4)).is_err());
        for length in 0..whole.len() {
            assert!(unpack(whole.slice(..length), at(1), at(3)).is_err());
        }
    }
}
