//! How much of a transfer is on its way at once: as much as the way takes without a queue that
//! others would feel, and enough for more than half of what the link carries.
//!
//! The state shares links and cores with the group's own messages. The first window comes as fast
//! as it can, and shows what the link carries; most states are no longer. From then on the joiner
//! looks how long its questions take to be answered: in the least of these times nothing was in the
//! way; what comes on top is a queue, mostly the transfer's own. It asks for more as long as that
//! queue is short, and for less when it has become long, as LEDBAT does (RFC 6817), so that a
//! transfer gives way to what else goes on the link, and an ordinary stream does not give way to
//! it. If that is less than [`WANTED`] of what the link carries, because nodes are slow to look, it
//! asks for more all the same: a member that is away for long is worse for the group.
//!
//! What was too much for a queue on the way, and therefore lost, is tried again only after so many
//! shorter windows that waiting for what is lost takes little of the time.
//!
//! What it is not: what is asked for; a rate that somebody has set, to which the donor keeps.
//!
//! Invariants: nothing else is asked for before the first window has come, or what was left of it
//! after a loss; unless something was lost, a window is never shorter than what comes in [`LEAST`],
//! and it is never longer than the rule's.

use super::TransferRule;
use quorba_base::{Duration, Instant};

/// A shorter window would cost more of the cores' time than it saves on the link.
const LEAST: Duration = Duration::from_micros(200);
/// The same where the donor keeps to a rate, so that a longer one makes no queue.
const LEAST_OF_RATE: Duration = Duration::from_millis(2);
/// Times below that are those of schedulers, not of queues.
const FINEST: Duration = Duration::from_micros(50);
/// A queue lasts; what a scheduler makes one question wait is over at the next.
const BELIEVED: u8 = 2;
/// Of a hundred parts of what the link carries, what is wanted: half of it, and some for the time
/// in which servers give and take the state.
const WANTED: u64 = 60;
/// With less than that a window is not made shorter.
const ENOUGH: u64 = 70;
/// A node that looks late sees what came meanwhile at once, as if the link were as fast as that.
const MEASURED: Duration = Duration::from_micros(500);
/// Windows over which the rate is taken.
const STRETCH_WINDOWS: u64 = 8;
/// Stretches without a loss after which more is tried: at first, and after many losses.
const CALM_STRETCHES: u32 = 2;
const CALM_STRETCHES_MAX: u32 = 64;

/// See the module's text.
pub(super) struct Window {
    rule: TransferRule,
    stage: Stage,
    /// The question that is timed: where its answer begins, and when it was asked.
    timed: Option<(u64, Instant)>,
}

/// Why what was on its way did not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// The link broke, or the donor has yet to begin.
    Otherwise,
    /// Something behind it came.
    Partly,
    /// Nothing came for long.
    Wholly,
}

impl Lost {
    /// What should be on its way after that.
    const fn leaves(self, bytes: u64) -> u64 {
        match self {
            Self::Otherwise => bytes,
            Self::Partly => bytes / 2,
            Self::Wholly => bytes / 4,
        }
    }
}

enum Stage {
    /// The first window is on its way: its length; if it was asked for, when, and what was there
    /// then; when its beginning came, and how much that was.
    First {
        bytes: u64,
        asked: Option<(Instant, u64)>,
        began: Option<(Instant, u64)>,
    },
    Known(Known),
}

/// What the first window has shown, and what came after it.
struct Known {
    bytes: u64,
    least: u64,
    /// More was too much at the last loss.
    most: u64,
    /// Stretches without a loss that are wanted before more is tried, and those that are left.
    calm: u32,
    calm_left: u32,
    /// The most that the link was seen to carry, in bytes per second.
    rate: u64,
    /// The least time from a question to the beginning of its answer.
    quickest: Option<Duration>,
    /// Questions in a row that found a long queue.
    long_queues: u8,
    /// Until then it grows faster.
    has_met_a_queue: bool,
    /// Where a stretch began whose rate is taken.
    stretch: (Instant, u64),
    /// The last stretch had so little of the rate that it should not become less.
    is_little: bool,
}

impl Window {
    pub(super) fn new(rule: TransferRule) -> Self {
        let bytes = rule.window_bytes();
        Self { rule, stage: Stage::First { bytes, asked: None, began: None }, timed: None }
    }

    /// What may be on its way.
    pub(super) fn bytes(&self) -> u64 {
        match &self.stage {
            Stage::First { bytes, .. } | Stage::Known(Known { bytes, .. }) => *bytes,
        }
    }

    /// What is asked for at once, at least: a quarter, or half of the shortest.
    pub(super) fn question_bytes(&self) -> u64 {
        match &self.stage {
            Stage::First { .. } => u64::MAX,
            Stage::Known(known) => (known.bytes / 4).max(known.least / 2).max(1),
        }
    }

    /// Bytes from `offset` on were asked for.
    pub(super) fn asked(&mut self, now: Instant, offset: u64) {
        self.timed.get_or_insert((offset, now));
    }

    /// What was on its way is lost, and why.
    pub(super) fn begin_again(&mut self, now: Instant, received: u64, lost: Lost) {
        self.timed = None;
        // What comes in one piece.
        let least = self.rule.least_window_bytes() / 2;
        match &mut self.stage {
            Stage::First { bytes, asked, began } => {
                *bytes = lost.leaves(*bytes).max(least);
                (*asked, *began) = (Some((now, received)), None);
            }
            Stage::Known(known) => known.begin_again((now, received), lost, least),
        }
    }

    /// Everything in front of `received` has come; `awaited`: everything in front of that is asked
    /// for.
    pub(super) fn came(&mut self, now: Instant, received: u64, awaited: u64) {
        match &mut self.stage {
            Stage::First { began, .. } if received < awaited => {
                if received > 0 {
                    began.get_or_insert((now, received));
                }
            }
            Stage::First { bytes, asked, began } => {
                let rate = |(since, before): &(Instant, u64)| {
                    per_second(received - before, now.since(*since).max(MEASURED))
                };
                let rate = began.iter().chain(asked.iter()).map(rate).max().unwrap_or(0);
                self.stage = Stage::Known(Known::new(self.rule, rate, *bytes, (now, received)));
            }
            Stage::Known(known) => {
                if let Some((_, asked)) = self.timed.filter(|(offset, _)| received > *offset) {
                    self.timed = None;
                    known.answered(now.since(asked));
                }
                known.look_at_rate(now, received, self.rule.window_bytes());
                known.bytes = known.bytes.clamp(known.least, known.most);
            }
        }
    }
}

impl Known {
    fn new(rule: TransferRule, rate: u64, most: u64, stretch: (Instant, u64)) -> Self {
        let least = if rule.bytes_per_second.is_some() { LEAST_OF_RATE } else { LEAST };
        let least = rate.saturating_mul(least.as_nanos() as u64) / 1_000_000_000;
        let least = least.clamp(rule.least_window_bytes(), rule.window_bytes() / 4).min(most);
        Self {
            bytes: least,
            least,
            most,
            calm: CALM_STRETCHES,
            calm_left: CALM_STRETCHES,
            rate,
            quickest: None,
            long_queues: 0,
            has_met_a_queue: false,
            stretch,
            is_little: false,
        }
    }

    /// What was on its way is lost; `least`: what should be on its way at least.
    fn begin_again(&mut self, stretch: (Instant, u64), lost: Lost, least: u64) {
        if lost != Lost::Otherwise {
            self.least = (self.least / 2).max(least);
            self.bytes = lost.leaves(self.bytes).max(self.least);
            self.most = self.bytes;
            self.calm = (self.calm * 2).min(CALM_STRETCHES_MAX);
            self.calm_left = self.calm;
        }
        self.stretch = stretch;
        (self.long_queues, self.has_met_a_queue) = (0, false);
    }

    /// The answer to a question began to come after so long.
    fn answered(&mut self, took: Duration) {
        let quickest = self.quickest.map_or(took, |quickest| quickest.min(took));
        self.quickest = Some(quickest);
        let (queue, bearable) = (took - quickest, (quickest / 2).max(FINEST));
        self.long_queues = if queue > bearable { self.long_queues + 1 } else { 0 };
        if self.long_queues == BELIEVED {
            (self.long_queues, self.has_met_a_queue) = (0, true);
            if !self.is_little {
                self.bytes -= self.bytes / 4;
            }
        } else if queue * 2 <= bearable {
            self.bytes += part(self.bytes, if self.has_met_a_queue { 4 } else { 2 });
        }
    }

    /// Sees to it that what is wanted of the link comes.
    fn look_at_rate(&mut self, now: Instant, received: u64, window_bytes: u64) {
        let (since, before) = self.stretch;
        let came = received - before;
        if came < self.bytes * STRETCH_WINDOWS {
            return;
        }
        self.stretch = (now, received);
        self.calm_left = self.calm_left.saturating_sub(1);
        if self.calm_left == 0 {
            self.most = (self.most + part(self.most, 4)).min(window_bytes);
        }
        let rate = per_second(came, now.since(since));
        self.rate = self.rate.max(rate);
        self.is_little = rate < self.rate / 100 * ENOUGH;
        if rate < self.rate / 100 * WANTED {
            self.bytes += part(self.bytes, 2);
        }
    }
}

/// What a window grows by; the shortest, too.
fn part(bytes: u64, of: u64) -> u64 {
    (bytes / of).max(1)
}

fn per_second(bytes: u64, took: Duration) -> u64 {
    let nanos = (took.as_nanos() as u64).max(1);
    (u128::from(bytes) * 1_000_000_000 / u128::from(nanos)) as u64
}
