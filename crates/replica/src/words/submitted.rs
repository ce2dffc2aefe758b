//! Which requests that a client has named gateways may still have ordered once more.
//!
//! A group forgets a name when its time is over. A gateway that was stopped meanwhile may hold such
//! a request, and has it ordered again when the view changes; under its number here it is known
//! that it is not new, whatever the name stands for by then.
//!
//! What it is not: the table of replies, which is [`crate::state::retention`]. It tells nothing of
//! what came of a request. Invariants: a number goes only when its gateway has released it, or that
//! gateway's boot is over; so two members may differ only in numbers that nobody has ordered any
//! more.

use crate::words::ids::{GatewayKey, RequestNumber};
use crate::words::released::Released;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::{BTreeMap, BTreeSet};
use quorba_base::NodeId;

/// Numbers of one gateway's boot that are known at a time. A gateway releases what is answered with
/// each request, so that none comes near: it has no memory for so many open ones.
pub(crate) const NUMBERS_MAX: usize = 1 << 20;

/// What the numbers of one gateway's boot take at least in a message.
const GATEWAY_BYTES_MIN: usize = 13;

/// See the module's text.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Submitted(BTreeMap<(NodeId, u64), BTreeSet<RequestNumber>>);

impl Submitted {
    /// How many numbers are known.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    pub(crate) fn contains(&self, of: GatewayKey) -> bool {
        let numbers = self.0.get(&(of.node, of.incarnation));
        numbers.is_some_and(|numbers| numbers.contains(&of.number))
    }

    /// Whether one more of this gateway can be known.
    pub(crate) fn has_room(&self, of: GatewayKey) -> bool {
        let numbers = self.0.get(&(of.node, of.incarnation));
        numbers.is_none_or(|numbers| numbers.len() < NUMBERS_MAX)
    }

    pub(crate) fn add(&mut self, of: GatewayKey) {
        self.0.entry((of.node, of.incarnation)).or_default().insert(of.number);
    }

    /// The gateway will not ask again for these requests, nor for those of earlier boots.
    pub(crate) fn release(&mut self, node: NodeId, incarnation: u64, released: &Released) {
        while let Some((former, _)) = self.0.range((node, 0)..(node, incarnation)).next() {
            let former = *former;
            self.0.remove(&former);
        }
        let Some(numbers) = self.0.get_mut(&(node, incarnation)) else { return };
        while numbers.first().is_some_and(|first| *first < released.below) {
            numbers.pop_first();
        }
        for number in &released.also {
            numbers.remove(number);
        }
        if numbers.is_empty() {
            self.0.remove(&(node, incarnation));
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u32(self.0.len() as u32);
        for ((node, incarnation), numbers) in &self.0 {
            w.node(*node);
            w.u64(*incarnation);
            w.u32(numbers.len() as u32);
            numbers.iter().for_each(|number| w.u64(number.0));
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut gateways = BTreeMap::new();
        for _ in 0..r.count(GATEWAY_BYTES_MIN, "gateway count")? {
            let gateway = (r.node("gateway")?, r.u64("incarnation")?);
            let too_many = r.error("number count");
            let count = r.count(size_of::<u64>(), "number count")?;
            if count > NUMBERS_MAX {
                return Err(too_many);
            }
            let mut numbers = BTreeSet::new();
            for _ in 0..count {
                numbers.insert(RequestNumber(r.u64("number")?));
            }
            gateways.insert(gateway, numbers);
        }
        Ok(Self(gateways))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn of(node: u8, incarnation: u64, number: u64) -> GatewayKey {
        let node = NodeId::new(node).unwrap();
        GatewayKey { node, incarnation, number: RequestNumber(number) }
    }

    #[test]
    fn a_number_is_known_until_its_gateway_releases_it_or_begins_anew() {
        let mut submitted = Submitted::default();
        let all = [of(1, 4, 7), of(1, 5, 1), of(1, 5, 2), of(1, 5, 3), of(2, 4, 1)];
        all.iter().for_each(|one| submitted.add(*one));
        let left = |submitted: &Submitted| all.map(|one| submitted.contains(one));
        assert_eq!(left(&submitted), [true; 5]);
        let node = NodeId::new(1).unwrap();
        submitted.release(node, 4, &Released::below(RequestNumber(7)));
        assert_eq!(left(&submitted), [true; 5], "7 may be asked for again");
        let also = vec![RequestNumber(3), RequestNumber(99)];
        submitted.release(node, 5, &Released { below: RequestNumber(2), also });
        assert_eq!(left(&submitted), [false, false, true, false, true]);
        submitted.release(node, 6, &Released::below(RequestNumber(1)));
        assert_eq!(left(&submitted), [false, false, false, false, true]);
        assert_eq!((submitted.len(), submitted.0.len()), (1, 1), "what is empty goes");
    }

    #[test]
    fn it_travels_and_no_count_is_believed() {
        let mut submitted = Submitted::default();
        [of(1, 4, 7), of(1, 5, 1), of(3, 5, 2)].iter().for_each(|one| submitted.add(*one));
        let mut w = Writer::default();
        submitted.encode(&mut w);
        let bytes = w.finish();
        let mut reader = Reader::new(bytes.clone());
        assert_eq!(Submitted::decode(&mut reader), Ok(submitted));
        assert!(reader.end().is_ok());
        for length in 0..bytes.len() {
            assert!(Submitted::decode(&mut Reader::new(bytes.slice(..length))).is_err());
        }
        let mut w = Writer::default();
        w.u32(1);
        w.u8(1);
        w.u64(1);
        w.u32(u32::MAX);
        assert!(Submitted::decode(&mut Reader::new(w.finish())).is_err());
    }

    #[test]
    fn one_gateway_that_releases_nothing_fills_no_memory() {
        let mut submitted = Submitted::default();
        let mut number = 0;
        while submitted.has_room(of(1, 1, number)) {
            submitted.add(of(1, 1, number));
            number += 1;
        }
        assert_eq!(submitted.len(), NUMBERS_MAX);
        assert!(submitted.has_room(of(2, 1, 1)) && submitted.has_room(of(1, 2, 1)));
    }
}
