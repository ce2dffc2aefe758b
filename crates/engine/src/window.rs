//! How many requests of one group this gateway has in the order and behind it at a time.
//!
//! What was ordered is executed before all that comes later, whoever comes: only what waits in
//! front of the order can be shared out. So there are no more behind it than keep the servers
//! busy: as many as they answer in a few milliseconds and the time that the order takes. What the
//! calls of an address take is learnt, and how long its replies are: members keep them until they
//! are told that they may go.
//!
//! An address may have few calls inside before the first of them has ended, and one more for each
//! that has. Nobody knows before whether they take a microsecond or a second, and whatever is let
//! in by then all others wait for. The time that the order takes says nothing of that: on a busy
//! node it grows with what is inside.
//!
//! Reads have no place in the order; between its being given to a member and its reply lies a mark,
//! and perhaps disks, and that time takes the place of the order's. A read that its client has
//! given up is with its member all the same, and stays inside until that says what came of it: else
//! clients that repeat what they have not been answered in time would give a member ever more.
//!
//! Gateways do not ask each other. Where a member has more in front of it than it should, each of
//! them may have its share of that all the same: else the one that is always first to see room
//! would have all of it.
//!
//! What it is not: a bound on one client, which is the budgets'. Invariants: one request may
//! always go; what has gone in comes out once.

use crate::fair::Source;
use alloc::collections::BTreeMap;
use quorba_base::{Duration, Instant};
use quorba_replica::Backlog;

/// What servers are to have in front of them, in time, besides what the order takes.
const BACKLOG: Duration = Duration::from_millis(3);
/// Bytes of requests, and of the replies that are to be expected, that may be behind the order; one
/// request may always go.
const BYTES_MAX: usize = 16 << 20;
/// Calls that an address may have inside of which none has ended yet.
const UNKNOWN_MAX: u32 = 4;
/// Requests that may be behind the order.
const REQUESTS_MAX: u32 = 4096;
/// What a call takes that nothing is known of, and what it takes at least and at most.
const CALL_NS: u64 = 1_000_000;
const CALL_NS_MIN: u64 = 10_000;
const CALL_NS_MAX: u64 = 10_000_000_000;
/// Calls that the slowest member may be behind, besides what it has in its backlog.
const BEHIND: u64 = 32;
/// A new figure counts so much less than what is known.
const WEIGHT: u64 = 8;

/// What the calls of one address take, each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallCost {
    time_ns: u64,
    /// How long its replies are. The longest count, and are forgotten slowly.
    reply_bytes: usize,
    /// Calls that have ended.
    ended: u32,
}

impl Default for CallCost {
    fn default() -> Self {
        Self { time_ns: CALL_NS, reply_bytes: 0, ended: 0 }
    }
}

impl CallCost {
    /// A call has ended.
    pub(crate) fn learn(&mut self, took: Duration, reply_bytes: usize) {
        self.time_ns = blend(self.time_ns, nanos(took).min(CALL_NS_MAX));
        let forgotten = self.reply_bytes.saturating_sub(reply_bytes) / (WEIGHT * WEIGHT) as usize;
        self.reply_bytes = reply_bytes.max(self.reply_bytes - forgotten);
        self.ended = self.ended.saturating_add(1);
    }
}

/// What one address has inside.
#[derive(Clone, Copy, Default, Debug)]
struct Share {
    calls: u32,
    bytes: usize,
}

/// When a request went in, and how much it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    source: Source,
    at: Instant,
    bytes: usize,
    work_ns: u64,
    /// What was inside before it.
    ahead_ns: u64,
}

/// See the module's text.
pub(crate) struct Window {
    /// So many calls the servers may execute side by side.
    least: u32,
    inside: u32,
    inside_bytes: usize,
    /// What the servers have to do for them, in time.
    inside_ns: u64,
    /// Whose that is; of addresses that have something inside.
    shares: BTreeMap<Source, Share>,
    /// Time until the order has put a request in its place.
    order_ns: u64,
    /// When that was learnt last.
    ordered_at: Instant,
    /// Time that reads are inside.
    read_ns: u64,
    /// What a call takes, whosever it is.
    all_ns: u64,
    last_end: Instant,
}

impl Window {
    pub(crate) fn new(least: u32) -> Self {
        Self {
            least: least.max(1),
            inside: 0,
            inside_bytes: 0,
            inside_ns: 0,
            shares: BTreeMap::new(),
            order_ns: 0,
            ordered_at: Instant::ZERO,
            read_ns: 0,
            all_ns: CALL_NS,
            last_end: Instant::ZERO,
        }
    }

    fn backlog_ns(&self) -> u64 {
        nanos(BACKLOG).saturating_add(self.order_ns.saturating_mul(2))
    }

    /// Whether one more may go in. `behind`: what the slowest member has in front of it.
    pub(crate) fn has_room(&self, behind: Backlog) -> bool {
        let behind_max =
            BEHIND + u64::from(self.least) + self.backlog_ns() / self.all_ns.max(CALL_NS_MIN);
        let share = behind_max / behind.gateways.max(1);
        if behind.all > behind_max && behind.own + u64::from(self.inside) >= share {
            return false;
        }
        self.inside < self.least
            || self.inside_ns < self.backlog_ns()
                && self.inside < REQUESTS_MAX
                && self.inside_bytes < BYTES_MAX
    }

    /// Whether an address whose calls take so much may have one more inside. One may always go.
    pub(crate) fn may_enter(&self, source: Source, call_cost: CallCost) -> bool {
        let Some(share) = self.shares.get(&source) else { return true };
        let calls_max = self.least.max(UNKNOWN_MAX.saturating_add(call_cost.ended));
        share.calls < calls_max && share.bytes < BYTES_MAX
    }

    /// A request of an address whose calls take so much.
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        source: Source,
        request_bytes: usize,
        call_cost: CallCost,
    ) -> Entered {
        let (work_ns, ahead_ns) = (call_cost.time_ns.max(CALL_NS_MIN), self.inside_ns);
        let bytes = request_bytes.saturating_add(call_cost.reply_bytes);
        self.inside += 1;
        self.inside_bytes += bytes;
        self.inside_ns += work_ns;
        let share = self.shares.entry(source).or_default();
        share.calls += 1;
        share.bytes += bytes;
        Entered { source, at: now, bytes, work_ns, ahead_ns }
    }

    /// The order has put it in its place. Of those that were at the same time the first one tells
    /// how long that took: else one delay would count as often as there are requests that it met.
    pub(crate) fn is_ordered(&mut self, now: Instant, entered: Entered) {
        if now > self.ordered_at {
            self.ordered_at = now;
            self.order_ns = blend(self.order_ns, nanos(now.since(entered.at)).min(CALL_NS_MAX));
        }
    }

    /// A read was answered: what of its time is not that of those before it is the marks'. It may
    /// be its own, too, if it is alone: so one that waits for a mark is followed by others, who
    /// show that several can.
    pub(crate) fn end_read(&mut self, now: Instant, entered: Entered) -> Duration {
        let inside_ns = nanos(now.since(entered.at)).min(CALL_NS_MAX);
        self.read_ns = blend(self.read_ns, inside_ns);
        let between = inside_ns.saturating_sub(entered.ahead_ns);
        let known = self.order_ns;
        self.order_ns = if between > known {
            known + (between - known).div_ceil(WEIGHT)
        } else {
            known - (known - between) / (WEIGHT * WEIGHT)
        };
        self.end(now, entered)
    }

    /// Whether one more read would be answered within that time, as far as that is known. One may
    /// always go.
    pub(crate) fn answers_within(&self, time: Duration) -> bool {
        self.inside == 0 || self.read_ns < nanos(time)
    }

    /// It was executed; gives how long that took. Of those that end together the first took all.
    pub(crate) fn end(&mut self, now: Instant, entered: Entered) -> Duration {
        let took = now.since(self.last_end.max(entered.at));
        self.last_end = now;
        self.all_ns = blend(self.all_ns, nanos(took).min(CALL_NS_MAX));
        self.leave(entered);
        took
    }

    /// What is inside: requests, bytes, and time. The rest is learnt, and stays.
    #[cfg(test)]
    pub(crate) fn holdings(&self) -> (u32, usize, u64) {
        let Self {
            inside,
            inside_bytes,
            inside_ns,
            ref shares,
            least: _,
            order_ns: _,
            ordered_at: _,
            read_ns: _,
            all_ns: _,
            last_end: _,
        } = *self;
        let sum = shares.values().fold((0, 0), |(calls, bytes), share| {
            assert!(share.calls > 0, "an address that has nothing inside is not remembered");
            (calls + share.calls, bytes + share.bytes)
        });
        assert_eq!(sum, (inside, inside_bytes));
        (inside, inside_bytes, inside_ns)
    }

    /// It is inside no more, and says nothing of the time that it takes.
    pub(crate) fn leave(&mut self, entered: Entered) {
        self.inside -= 1;
        self.inside_bytes -= entered.bytes;
        self.inside_ns -= entered.work_ns;
        if let Some(share) = self.shares.get_mut(&entered.source) {
            share.calls -= 1;
            share.bytes -= entered.bytes;
            if share.calls == 0 {
                self.shares.remove(&entered.source);
            }
        }
    }
}

fn blend(known: u64, new: u64) -> u64 {
    known - known / WEIGHT + new / WEIGHT
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    fn address(last: u8) -> Source {
        Some(Ipv4Addr::new(10, 0, 0, last).into())
    }

    fn quick_calls() -> CallCost {
        CallCost { time_ns: CALL_NS_MIN, ..CallCost::default() }
    }

    /// A client that always has more, an order that takes `order`, and one server after it: how
    /// many are executed in `time`, and how long they are inside in the end.
    fn run(order: Duration, service: Duration, time: Duration) -> (u64, Duration) {
        let (mut window, mut call_cost) = (Window::new(1), CallCost::default());
        let (mut now, mut free_at) = (Instant::ZERO, Instant::ZERO);
        let (mut inside, mut done, mut last) = (VecDeque::new(), 0, Duration::ZERO);
        while now < Instant::ZERO + time {
            while window.has_room(Backlog::default()) && window.may_enter(None, call_cost) {
                let entered = window.enter(now, None, 100, call_cost);
                free_at = free_at.max(now + order) + service;
                inside.push_back((free_at, entered));
            }
            let (ends, entered): (Instant, Entered) = inside.pop_front().expect("one may go");
            now = ends;
            last = now.since(entered.at);
            window.is_ordered(entered.at + order, entered);
            call_cost.learn(window.end(now, entered), 100);
            done += 1;
        }
        (done, last)
    }

    #[test]
    fn a_server_is_kept_busy_and_has_little_in_front_of_it() {
        let second = Duration::from_secs(1);
        let us = Duration::from_micros;
        for (order, service) in [(300, 20), (1000, 200), (10_000, 200), (1000, 3000), (300, 50_000)]
        {
            let (done, inside) = run(us(order), us(service), second * 10);
            let most = 10_000_000 / service;
            assert!(done * 10 >= most * 7, "{done} of {most} calls of {service} us");
            let bound = us(order * 4 + service * 3) + BACKLOG * 2;
            assert!(inside <= bound, "{inside:?} inside, calls of {service} us");
        }
    }

    #[test]
    fn a_slow_call_is_not_followed_into_the_order() {
        let (mut window, mut slow) = (Window::new(1), CallCost::default());
        for _ in 0..50 {
            slow.learn(Duration::from_millis(50), 0);
        }
        let now = Instant::ZERO;
        let quick = window.enter(now, None, 100, quick_calls());
        assert!(window.has_room(Backlog::default()));
        let entered = window.enter(now, None, 64 << 20, slow);
        assert!(!window.has_room(Backlog::default()));
        window.leave(entered);
        window.leave(quick);
        assert!(window.has_room(Backlog::default()), "one may always go");
    }

    /// A busy node: the order takes the longer the more is behind it.
    #[test]
    fn an_address_whose_calls_are_not_known_has_few_behind_the_order() {
        let (mut window, greedy) = (Window::new(1), address(2));
        let mut entered = VecDeque::new();
        let mut now = Instant::ZERO;
        for _ in 0..10 {
            let of_greedy = |window: &Window| {
                window.has_room(Backlog::default()) && window.may_enter(greedy, CallCost::default())
            };
            let mut came = Vec::new();
            while of_greedy(&window) {
                came.push(window.enter(now, greedy, 100, CallCost::default()));
            }
            now = now + Duration::from_millis(100);
            came.iter().for_each(|one| window.is_ordered(now, *one));
            entered.extend(came);
        }
        assert!(entered.len() as u32 <= UNKNOWN_MAX, "{} are inside", entered.len());
        let honest = address(3);
        assert!(
            window.has_room(Backlog::default()) && window.may_enter(honest, CallCost::default())
        );
        let mut call_cost = CallCost::default();
        for ended in 1..=3 {
            let one = entered.pop_front().expect("inside");
            call_cost.learn(window.end(now, one), 100);
            assert!(window.may_enter(greedy, call_cost), "{ended} have ended");
        }
        entered.into_iter().for_each(|one| window.leave(one));
        assert_eq!(window.holdings(), (0, 0, 0));
    }

    #[test]
    fn what_one_delay_of_the_order_meets_counts_once() {
        let (mut window, now) = (Window::new(1), Instant::ZERO);
        let came = [(); 8].map(|()| window.enter(now, None, 100, quick_calls()));
        let later = now + Duration::from_millis(80);
        came.into_iter().for_each(|one| window.is_ordered(later, one));
        assert_eq!(window.order_ns, 10_000_000);
    }

    #[test]
    fn replies_that_are_to_be_expected_count_as_much_as_requests() {
        let (mut window, mut long) = (Window::new(1), quick_calls());
        let (greedy, now) = (address(2), Instant::ZERO);
        window.order_ns = 1_000_000_000;
        // One long reply among short ones is enough.
        (0..100).for_each(|_| long.learn(Duration::from_micros(10), 100));
        long.learn(Duration::from_micros(10), 4 << 20);
        (0..8).for_each(|_| long.learn(Duration::from_micros(10), 100));
        let mut inside = 0;
        while window.has_room(Backlog::default()) && window.may_enter(greedy, long) {
            window.enter(now, greedy, 100, long);
            inside += 1;
        }
        assert!((4..=5).contains(&inside), "{inside} are inside");
        (0..1000).for_each(|_| long.learn(Duration::from_micros(10), 100));
        assert!(long.reply_bytes < 1000, "it is forgotten, though slowly: {}", long.reply_bytes);
    }

    #[test]
    fn servers_with_threads_have_a_call_for_each() {
        let (mut window, mut slow) = (Window::new(8), CallCost::default());
        slow.learn(Duration::from_secs(1), 0);
        for _ in 0..8 {
            assert!(window.has_room(Backlog::default()) && window.may_enter(None, slow));
            window.enter(Instant::ZERO, None, 100, slow);
        }
        assert!(!window.has_room(Backlog::default()));
    }

    #[test]
    fn a_member_that_is_far_behind_is_waited_for() {
        let window = Window::new(1);
        let behind = |all| Backlog { all, own: all, gateways: 1 };
        assert!(window.has_room(behind(BEHIND)));
        assert!(!window.has_room(behind(BEHIND + 100)));
    }

    /// Two gateways, of which one always has more to submit, and hears of the slow member first.
    #[test]
    fn a_gateway_that_asks_for_little_has_its_share_of_a_member_that_is_behind() {
        let (mut hot, mut quiet) = (Window::new(1), Window::new(1));
        // What the quiet one knows of calls is how long the order takes.
        hot.all_ns = 50_000;
        quiet.all_ns = 5_000_000;
        let now = Instant::ZERO;
        // Whose requests the slow member has in front of it.
        let mut waiting: VecDeque<bool> = VecDeque::new();
        let seen = |waiting: &VecDeque<bool>, by_quiet| Backlog {
            all: waiting.len() as u64,
            own: waiting.iter().filter(|one| **one == by_quiet).count() as u64,
            gateways: 2,
        };
        let (mut served, mut asked, mut longest) = (0, None, 0);
        for round in 0..1000 {
            while hot.has_room(seen(&waiting, false)) {
                // The members at the gateways execute at once.
                let entered = hot.enter(now, None, 100, quick_calls());
                hot.leave(entered);
                waiting.push_back(false);
            }
            let since = *asked.get_or_insert(round);
            longest = longest.max(round - since);
            if quiet.has_room(seen(&waiting, true)) {
                let entered = quiet.enter(now, None, 100, CallCost::default());
                quiet.leave(entered);
                waiting.push_back(true);
                (served, asked) = (served + 1, None);
            }
            assert!(waiting.len() < 300, "it is bounded: {}", waiting.len());
            waiting.pop_front();
        }
        // It waits for what was in front of it at most.
        assert!(served > 100 && longest < 100, "{served} served, {longest} rounds at most");
    }
}
