//! The packets of one ring that this node holds, by number.
//!
//! Invariants: `base <= aru <= high`; every packet in `base + 1 ..= aru` is held; the number of
//! slots never exceeds the capacity given at the start.

use crate::ids::Guarantee;
use crate::wire::{Data, GapRange, Inner, RANGE_PACKETS_MAX};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::NodeId;

/// A numbered packet, as held for delivery and repetition.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) origin: NodeId,
    pub(crate) guarantee: Guarantee,
    pub(crate) inner: Option<Inner>,
    pub(crate) body: Bytes,
}

impl From<Data> for Held {
    fn from(data: Data) -> Self {
        let Data { origin, guarantee, inner, body, .. } = data;
        Self { origin, guarantee, inner, body }
    }
}

/// What became of a packet that was to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    New,
    Duplicate,
    /// Beyond the capacity: dropped, to be asked for later.
    Beyond,
}

/// The packets of a ring.
#[derive(Debug)]
pub(crate) struct Log {
    capacity: u64,
    base: u64,
    aru: u64,
    high: u64,
    slots: VecDeque<Option<Held>>,
}

impl Log {
    pub(crate) const fn new(capacity: u64) -> Self {
        Self { capacity, base: 0, aru: 0, high: 0, slots: VecDeque::new() }
    }

    /// Everything up to here has been received.
    pub(crate) const fn aru(&self) -> u64 {
        self.aru
    }

    /// The highest number received.
    pub(crate) const fn high(&self) -> u64 {
        self.high
    }

    /// Slots in use, for the snapshot and the memory checks.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.base + 1)?).ok()
    }

    pub(crate) fn packet(&self, seq: u64) -> Option<&Held> {
        self.slots.get(self.index(seq)?)?.as_ref()
    }

    pub(crate) fn insert(&mut self, seq: u64, packet: Held) -> Inserted {
        let Some(index) = self.index(seq) else { return Inserted::Duplicate };
        if seq - self.base > self.capacity {
            return Inserted::Beyond;
        }
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        let slot = &mut self.slots[index];
        if slot.is_some() {
            return Inserted::Duplicate;
        }
        *slot = Some(packet);
        self.high = self.high.max(seq);
        while self.packet(self.aru + 1).is_some() {
            self.aru += 1;
        }
        Inserted::New
    }

    /// Makes room for packets up to `seq`: what recovery brings must not be dropped.
    pub(crate) fn widen(&mut self, seq: u64) {
        self.capacity = self.capacity.max(seq.saturating_sub(self.base));
    }

    /// Forgets packets up to `seq`, which every member has.
    pub(crate) fn release(&mut self, seq: u64) {
        assert!(seq <= self.aru, "only received packets are released");
        while self.base < seq {
            self.slots.pop_front();
            self.base += 1;
        }
    }

    /// Ranges of missing packets up to `last`, at most `max` of them.
    pub(crate) fn gaps(&self, last: u64, max: usize) -> Vec<GapRange> {
        let mut ranges: Vec<GapRange> = Vec::new();
        let mut seq = self.aru + 1;
        while seq <= last {
            if seq > self.high {
                while seq <= last && ranges.len() < max {
                    let end = last.min(seq + RANGE_PACKETS_MAX - 1);
                    ranges.push(GapRange { first: seq, last: end });
                    seq = end + 1;
                }
                break;
            }
            if self.packet(seq).is_none() {
                let full = ranges.len() == max;
                match ranges.last_mut() {
                    Some(range)
                        if range.last + 1 == seq && seq - range.first < RANGE_PACKETS_MAX =>
                    {
                        range.last = seq;
                    }
                    _ if full => break,
                    _ => ranges.push(GapRange { first: seq, last: seq }),
                }
            }
            seq += 1;
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn packet() -> Held {
        let origin = NodeId::new(0).expect("in range");
        Held { origin, guarantee: Guarantee::Agreed, inner: None, body: Bytes::new() }
    }

    #[test]
    fn aru_moves_over_filled_gaps_and_ranges_name_the_rest() {
        let mut log = Log::new(100);
        for seq in [1, 2, 5, 8] {
            assert_eq!(log.insert(seq, packet()), Inserted::New);
        }
        assert_eq!((log.aru(), log.high()), (2, 8));
        let range = |first, last| GapRange { first, last };
        assert_eq!(log.gaps(10, 9), vec![range(3, 4), range(6, 7), range(9, 10)]);
        assert_eq!(log.gaps(10, 1), vec![range(3, 4)]);
        assert_eq!(log.insert(5, packet()), Inserted::Duplicate);
        for seq in [3, 4] {
            log.insert(seq, packet());
        }
        assert_eq!(log.aru(), 5);
        log.release(4);
        assert!(log.packet(4).is_none() && log.packet(5).is_some());
        assert_eq!(log.insert(2, packet()), Inserted::Duplicate);
    }

    #[test]
    fn never_holds_more_than_its_capacity() {
        let mut log = Log::new(10);
        assert_eq!(log.insert(10, packet()), Inserted::New);
        assert_eq!(log.insert(11, packet()), Inserted::Beyond);
        assert_eq!(log.len(), 10);
    }
}
