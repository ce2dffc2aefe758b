//! A transfer over a link that has a rate, a length and a queue, which others may use as well.

use super::*;
use alloc::collections::VecDeque;

const RULE: TransferRule = TransferRule { chunk_bytes: CHUNK_BYTES_MAX, bytes_per_second: None };
const GIGABIT: u64 = 125_000_000;

/// One way takes `delay`; bytes leave at `rate`, one behind the other.
struct Link {
    rate: u64,
    delay: Duration,
    /// When everything that was put on it has left.
    free_at: Instant,
    under_way: VecDeque<(Instant, Chunk)>,
    questions: VecDeque<(Instant, Fetch)>,
    /// The longest that something waited before it left.
    queued: Duration,
    /// Others put so many bytes on it in a second; until when they have.
    others: u64,
    others_until: Instant,
    /// Whoever should look at what has come may do so as much later.
    late: Duration,
    noise: u64,
}

impl Link {
    fn new(rate: u64, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            free_at: Instant::ZERO,
            under_way: VecDeque::new(),
            questions: VecDeque::new(),
            queued: Duration::ZERO,
            others: 0,
            others_until: Instant::ZERO,
            late: Duration::ZERO,
            noise: 1,
        }
    }

    fn random(&mut self) -> u64 {
        self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.noise >> 33
    }

    /// Half of the time nobody is late.
    fn lateness(&mut self) -> Duration {
        let nanos = self.late.as_nanos() as u64;
        let random = self.random();
        Duration::from_nanos(if random.is_multiple_of(2) || nanos == 0 {
            0
        } else {
            (random / 2) % nanos
        })
    }

    fn put(&mut self, now: Instant, chunk: Chunk) {
        let took = |bytes: u64| Duration::from_nanos(bytes * 1_000_000_000 / self.rate);
        let since = now.since(self.others_until).as_nanos() as u64;
        let others = took(self.others * since / 1_000_000_000);
        // Theirs came little by little since then.
        self.free_at = (self.free_at + others).max(now);
        self.others_until = now;
        self.queued = self.queued.max(self.free_at.since(now));
        self.free_at = self.free_at + took(chunk.bytes.len() as u64);
        self.under_way.push_back((self.free_at + self.delay, chunk));
    }

    fn next_at(&self) -> Option<Instant> {
        let first = self.under_way.front().map(|(at, _)| *at);
        first.into_iter().chain(self.questions.front().map(|(at, _)| *at)).min()
    }

    /// Carries a whole state, and gives how long that took. `look` sees how much has come.
    fn carry(
        &mut self,
        bytes: usize,
        rule: TransferRule,
        mut look: impl FnMut(&mut Self, u64),
    ) -> Duration {
        // It does not compress.
        let state: Bytes = (0..bytes).map(|_| self.random() as u8).collect::<Vec<u8>>().into();
        let mut donor = Outgoing::new(Bytes::new(), state, rule);
        let mut joiner = joiner(rule);
        let mut now = Instant::ZERO;
        loop {
            while let Some(chunk) = donor.next_chunk(now) {
                self.put(now, chunk);
            }
            let at = self.next_at().into_iter().chain(donor.due()).min();
            now = at.expect("it goes on").max(now);
            while self.questions.front().is_some_and(|(at, _)| *at <= now) {
                donor.ask(now, self.questions.pop_front().expect("it is there").1);
            }
            while self.under_way.front().is_some_and(|(at, _)| *at <= now) {
                let (_, chunk) = self.under_way.pop_front().expect("it is there");
                match joiner.add(&chunk) {
                    ChunkOutcome::More => {}
                    ChunkOutcome::Whole(_) => return now.since(Instant::ZERO),
                    failed @ ChunkOutcome::Failed(_) => panic!("{failed:?}"),
                }
                look(self, joiner.received());
                if let Some(fetch) = joiner.ask(now) {
                    let last = self.questions.back().map_or(now, |(at, _)| *at);
                    let at = (now + self.delay + self.lateness()).max(last);
                    self.questions.push_back((at, fetch));
                }
            }
        }
    }
}

fn scope(bytes: usize, took: Duration, rate: u64) -> f64 {
    bytes as f64 / took.as_secs_f64() / rate as f64
}

#[test]
fn a_short_link_is_used_and_its_queue_stays_short() {
    const BYTES: usize = 64 << 20;
    for (rate, delay_us) in [(GIGABIT, 30), (GIGABIT, 200), (GIGABIT * 10, 50), (GIGABIT / 10, 100)]
    {
        let mut link = Link::new(rate, Duration::from_micros(delay_us));
        let mut at_first = None;
        let took = link.carry(BYTES, RULE, |link, received| {
            if received > (BYTES / 8) as u64 {
                at_first.get_or_insert_with(|| core::mem::take(&mut link.queued));
            }
        });
        let scope = scope(BYTES, took, rate);
        assert!(scope >= 0.8, "{rate} B/s, {delay_us} us: {scope}");
        let (first, then) = (at_first.expect("it began"), link.queued);
        // The first window comes at once.
        let whole = Duration::from_nanos((1 << 20) * 1_000_000_000 / rate);
        assert!(first <= whole, "{rate} B/s, {delay_us} us: {first:?}");
        let little = Duration::from_micros(if rate < GIGABIT { 600 } else { 300 });
        assert!(then <= little, "{rate} B/s, {delay_us} us: {then:?}");
    }
}

#[test]
fn where_nodes_are_often_late_a_short_link_is_used_as_well() {
    const BYTES: usize = 64 << 20;
    let mut link = Link::new(GIGABIT, Duration::from_micros(50));
    link.late = Duration::from_millis(2);
    let took = link.carry(BYTES, RULE, |_, _| {});
    let scope = scope(BYTES, took, GIGABIT);
    assert!(scope >= 0.5, "{scope}");
}

#[test]
fn with_a_rate_there_is_hardly_a_queue_at_all() {
    const BYTES: usize = 64 << 20;
    let mut link = Link::new(GIGABIT, Duration::from_micros(50));
    let rule = TransferRule { bytes_per_second: Some(GIGABIT * 3 / 5), ..RULE };
    let took = link.carry(BYTES, rule, |_, _| {});
    let scope = scope(BYTES, took, GIGABIT);
    assert!(scope > 0.59 && scope <= 0.6, "{scope}");
    assert!(link.queued <= Duration::from_micros(150), "{:?}", link.queued);
}

#[test]
fn a_long_link_is_filled_after_some_round_trips() {
    const BYTES: usize = 64 << 20;
    let delay = Duration::from_millis(5);
    let mut link = Link::new(GIGABIT, delay);
    let took = link.carry(BYTES, RULE, |_, _| {});
    // A window of 1 MiB in a round trip of 10 ms.
    let best = Duration::from_millis(10) * 64;
    assert!(took < best * 3 / 2, "{took:?}");
}

#[test]
fn a_transfer_gives_way_to_what_else_comes_and_takes_the_room_again() {
    const THIRD: u64 = 64 << 20;
    let mut link = Link::new(GIGABIT, Duration::from_micros(50));
    let mut now = vec![Instant::ZERO];
    let mut queued = Vec::new();
    link.carry(3 * THIRD as usize + (1 << 20), RULE, |link, received| {
        if received >= THIRD * now.len() as u64 {
            now.push(link.free_at);
            queued.push(core::mem::take(&mut link.queued));
            // Meanwhile others use a third of it.
            link.others = if now.len() == 2 { GIGABIT / 3 } else { 0 };
        }
    });
    let scope = |pair: &[Instant]| scope(THIRD as usize, pair[1].since(pair[0]), GIGABIT);
    let shares: Vec<f64> = now.windows(2).map(scope).collect();
    assert!(shares[0] > 0.9 && shares[1] > 0.6 && shares[2] > 0.9, "{shares:?}");
    assert!(queued[1] <= Duration::from_micros(400), "{queued:?}");
}
