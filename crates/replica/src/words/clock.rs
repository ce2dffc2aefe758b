//! Time as the order tells it: the same at all members, and not at the mercy of one bad clock.
//!
//! Every request carries its gateway's clock. The clocks of gateways differ, and some jump; what
//! they agree on is how much time passes. So each gateway's clock is aligned with the group's when
//! its first request comes, and the group's time is that of the fastest; but no single request
//! moves it by more than [`STEP_TICKS_MAX`].
//!
//! The first request may have waited before it was ordered, and others behind it. What passed
//! meanwhile has passed for the group already, and must not pass once more for each gateway. So a
//! new gateway moves the time only when its clock has gone on by as much as its first stamp is away
//! from the latest of all: if clocks agree, that is when it is later than that one; if they are
//! hours apart, it is when requests have been remembered for so long anew.
//!
//! Besides, it tells servers what time it is: the latest stamp of all, for what is written into
//! their data should be near the clock on the wall, even after a night without requests.
//!
//! Invariants: never goes back; a pure function of the delivered requests.

use crate::words::node_map::NodeMap;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use quorba_base::{NodeId, canary};

/// The most that one request can move the time: 10 s in units of 100 ns.
const STEP_TICKS_MAX: u64 = 100_000_000;

/// A gateway's clock as the group follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Follow {
    incarnation: u64,
    /// Its last stamp; of a new one, the stamp from which on it moves the time.
    stamp: u64,
    /// The group's time that the stamp was taken for.
    time: u64,
}

/// See the module's text. Units of 100 ns since the group began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct OrderedClock {
    time: u64,
    /// The latest stamp of all.
    wall: u64,
    gateways: NodeMap<Follow>,
}

impl OrderedClock {
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// What time it is for servers, TimeT.
    pub(crate) fn wall(&self) -> u64 {
        self.wall
    }

    /// A request was delivered that its gateway stamped with `stamp`. It moves the time by a small
    /// part of `kept_ticks` at most, for which requests are remembered: what came just before it is
    /// not over (seed 9600495 of the simulator's `domain`).
    pub(crate) fn advance(
        &mut self,
        (origin, incarnation): (NodeId, u64),
        stamp: u64,
        kept_ticks: u64,
    ) {
        let step_max = STEP_TICKS_MAX.min(kept_ticks / 6);
        let doubted = if self.wall == 0 { 0 } else { stamp.abs_diff(self.wall).min(kept_ticks) };
        self.wall = self.wall.max(stamp);
        let known = self.gateways.get(origin).filter(|known| known.incarnation == incarnation);
        let time = match known {
            Some(known) => {
                let passed = stamp.saturating_sub(known.stamp).min(step_max);
                // A request that was submitted again carries an old stamp.
                known.time.saturating_add(passed)
            }
            None => self.time,
        };
        let first = stamp.saturating_add(doubted);
        let stamp = known.map_or(first, |known| known.stamp.max(stamp));
        self.time = self.time.max(time);
        self.gateways.insert(origin, Follow { incarnation, stamp, time });
    }

    /// Servers were told this time in the life from which the group's state is.
    pub(crate) fn was_told(&mut self, wall: u64) {
        self.wall = self.wall.max(wall);
    }

    /// The group has another history from here on, in which servers were told this time last.
    pub(crate) fn goes_on_at(&mut self, wall: u64) {
        self.wall = wall;
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.time);
        writer.u64(self.wall);
        writer.u32(self.gateways.len() as u32);
        for (node, follow) in self.gateways.iter() {
            writer.node(node);
            writer.u64(follow.incarnation);
            writer.u64(follow.stamp);
            writer.u64(follow.time);
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let time = reader.u64("time")?;
        let wall = reader.u64("wall clock")?;
        let wall = if canary!(ForgetsToldTime) { 0 } else { wall };
        let mut gateways = NodeMap::new();
        for _ in 0..reader.count(25, "gateway count")? {
            let node = reader.node("gateway")?;
            let incarnation = reader.u64("incarnation")?;
            let stamp = reader.u64("stamp")?;
            let time = reader.u64("gateway time")?;
            gateways.insert(node, Follow { incarnation, stamp, time });
        }
        Ok(Self { time, wall, gateways })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 10_000_000;
    const KEPT: u64 = 300 * SECOND;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).unwrap()
    }

    #[test]
    fn gateways_whose_clocks_are_hours_apart_agree_on_how_much_time_passes() {
        let mut clock = OrderedClock::default();
        for second in 0..100 {
            clock.advance((node(0), 1), second * SECOND, KEPT);
            clock.advance((node(1), 1), 7200 * SECOND + second * SECOND, KEPT);
        }
        assert_eq!(clock.time(), 99 * SECOND);
    }

    #[test]
    fn what_waited_at_several_gateways_moves_the_time_once() {
        for ahead in [0, 7200] {
            let mut clock = OrderedClock::default();
            for (gateway, ahead) in [(0, ahead), (1, 0), (2, ahead), (3, 14_400)] {
                for second in 0..=10 {
                    clock.advance((node(gateway), 1), (20_000 + ahead + second) * SECOND, KEPT);
                }
                assert_eq!(clock.time(), 10 * SECOND);
            }
        }
    }

    #[test]
    fn a_new_gateway_moves_the_time_when_its_first_stamp_is_no_longer_doubted() {
        for (first, doubted) in [(93, 7), (100, 0), (103, 3), (7200, 300)] {
            let mut clock = OrderedClock::default();
            clock.advance((node(0), 1), 100 * SECOND, KEPT);
            for second in (0..=310).step_by(5) {
                clock.advance((node(1), 1), (first + second) * SECOND, KEPT);
            }
            assert_eq!(clock.time(), (310 - doubted) * SECOND);
        }
    }

    #[test]
    fn servers_are_told_the_latest_stamp_and_their_time_never_goes_back() {
        let mut clock = OrderedClock::default();
        for (gateway, stamp, told) in [(0, 5, 5), (1, 3, 5), (0, 9000, 9000), (1, 9001, 9001)] {
            clock.advance((node(gateway), 1), stamp * SECOND, KEPT);
            assert_eq!(clock.wall(), told * SECOND);
        }
    }

    #[test]
    fn what_is_remembered_for_seconds_is_not_over_after_one_request() {
        let (mut clock, kept) = (OrderedClock::default(), 2 * SECOND);
        for gateway in 0..5 {
            clock.advance((node(gateway), 1), 0, kept);
        }
        for gateway in 0..5 {
            clock.advance((node(gateway), 1), 3600 * SECOND, kept);
        }
        assert!(clock.time() > 0 && clock.time() < kept / 2, "{}", clock.time());
    }

    #[test]
    fn a_clock_that_jumps_moves_the_time_by_little_and_never_back() {
        let mut clock = OrderedClock::default();
        clock.advance((node(0), 1), 5 * SECOND, KEPT);
        clock.advance((node(0), 1), 3600 * SECOND, KEPT);
        assert_eq!(clock.time(), STEP_TICKS_MAX);
        clock.advance((node(0), 1), SECOND, KEPT);
        clock.advance((node(0), 1), 3601 * SECOND, KEPT);
        assert_eq!(clock.time(), STEP_TICKS_MAX + SECOND);
        clock.advance((node(0), 2), 9_999_999 * SECOND, KEPT);
        assert_eq!(clock.time(), STEP_TICKS_MAX + SECOND, "a new boot is aligned first");
    }
}
