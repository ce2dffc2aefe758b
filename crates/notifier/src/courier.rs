//! Who calls the consumers: what the replica that leads does next for each of them.
//!
//! What it is not: the caller, and it has no clock: who drives a notifier asks what is to be done,
//! does it, and says how it ended.
//!
//! Invariants: one errand at a time for each consumer; what it has taken is not pushed to it again
//! by the same replica, but said until the group knows it; of reports that a replica was given
//! another state for nothing is said, for others may have their numbers now; who has taken nothing
//! for [`PATIENCE`] of the replica that leads is cut off, and keeps nobody else waiting.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use quorba_base::canary;
use quorba_corba::Object;
use quorba_idl::quorba::Pending;

use crate::delivery::MANAGER;
use crate::notifier::Notifier;

/// A consumer that has taken nothing for so long is cut off.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Before something that failed is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// Something to be done for a consumer.
#[derive(Clone, PartialEq, Debug)]
pub enum Errand {
    /// It is to be given what waits for it.
    Push(Pending),
    /// The group is to be told that it has everything up to this report.
    Delivered {
        /// Which consumer.
        consumer: u64,
        /// The report's number.
        last: u64,
    },
    /// The group is to be told that it is cut off.
    CutOff {
        /// Which consumer.
        consumer: u64,
        /// For people.
        why: String,
    },
    /// It was cut off, and is to be told so, once, as well as that can be done.
    Part {
        /// Which consumer.
        consumer: u64,
        /// Whom to call.
        reference: Object,
        /// It takes sequences.
        is_batch: bool,
    },
    /// The group is to be told that this was tried.
    Parted {
        /// Which consumer.
        consumer: u64,
    },
}

/// Why a consumer did not take what it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotTaken {
    /// For people.
    pub text: String,
    /// It never will.
    pub is_final: bool,
}

/// How far a consumer is, in the eyes of one replica.
#[derive(Clone, Default, Debug)]
struct Progress {
    /// An errand is under way.
    is_busy: bool,
    /// That errand is about another state.
    is_stale: bool,
    /// The last report that it has taken of this replica.
    taken: u64,
    /// The last one of which the group knows it.
    said: u64,
    /// Since when it has taken nothing that it was given.
    failing: Option<Duration>,
    /// Before that nothing is tried.
    again: Duration,
}

impl Progress {
    fn rest(&mut self, until: Duration) {
        (self.is_busy, self.again) = (false, until);
    }
}

/// See the module's text. Times are counted from any moment.
#[derive(Default, Debug)]
pub struct Courier {
    book: BTreeMap<u64, Progress>,
    leads: bool,
    /// Which state of the replica the book is about.
    state: u64,
}

impl Courier {
    /// What is to be done now for consumers, with at most so many reports at once. Only the replica
    /// that leads asks.
    pub fn look(&mut self, notifier: &Notifier, most: u32, now: Duration) -> Vec<Errand> {
        self.lead(notifier);
        let consumers = &notifier.state.consumers;
        let untold: Vec<_> = notifier.untold().collect();
        let waits = |id: &u64| {
            let has_reports = consumers.get(id).is_some_and(|one| !one.waiting.is_empty());
            has_reports || untold.iter().any(|(gone, ..)| gone == id)
        };
        self.book.retain(|id, one| one.is_busy || waits(id) || canary!(ForgivesNothing));
        let waiting = consumers.iter().filter(|(_, one)| !one.waiting.is_empty());
        let errand = |(id, consumer): (&u64, &crate::notifier::Consumer)| {
            let progress = self.book.entry(*id).or_default();
            errand(*id, progress, now, |behind| notifier.pending_of(*id, consumer, behind, most))
        };
        let mut errands: Vec<Errand> = waiting.filter_map(errand).collect();
        for (consumer, reference, is_batch) in untold {
            let progress = self.book.entry(consumer).or_default();
            if !progress.is_busy && now >= progress.again {
                progress.is_busy = true;
                let reference = reference.clone();
                errands.push(Errand::Part { consumer, reference, is_batch });
            }
        }
        errands
    }

    /// Somebody was told that it is cut off, or could not be; what is to be done next for it.
    pub fn parted(&mut self, notifier: &Notifier, consumer: u64) -> Option<Errand> {
        self.heed_state(notifier);
        let progress = self.book.get_mut(&consumer)?;
        if progress.is_stale {
            self.book.remove(&consumer);
            return None;
        }
        Some(Errand::Parted { consumer })
    }

    /// The same for the replication manager, the consumer [`MANAGER`].
    pub fn look_for_manager(
        &mut self,
        notifier: &Notifier,
        most: u32,
        now: Duration,
    ) -> Option<Errand> {
        self.lead(notifier);
        let progress = self.book.entry(MANAGER).or_default();
        errand(MANAGER, progress, now, |behind| {
            let (last, events) = notifier.for_manager(behind, most)?;
            let reference = Object::nil();
            Some(Pending { consumer: MANAGER, reference, is_batch: true, last, events })
        })
    }

    /// Another replica leads. That one has its own patience.
    pub fn follow_another(&mut self) {
        self.leads = false;
        self.book.values_mut().for_each(|one| one.failing = None);
    }

    /// A push up to a report has ended; what is to be done next for its consumer.
    pub fn pushed(
        &mut self,
        notifier: &Notifier,
        (consumer, last): (u64, u64),
        outcome: Result<(), NotTaken>,
        now: Duration,
    ) -> Option<Errand> {
        self.heed_state(notifier);
        let progress = self.book.get_mut(&consumer)?;
        if progress.is_stale {
            self.book.remove(&consumer);
            return None;
        }
        let Some(why) = outcome.err().filter(|_| !canary!(TakesRefusedReports)) else {
            progress.taken = last;
            progress.failing = progress.failing.filter(|_| canary!(ForgivesNothing));
            return Some(Errand::Delivered { consumer, last });
        };
        if self.leads && consumer != MANAGER {
            let since = *progress.failing.get_or_insert(now);
            if why.is_final || now.saturating_sub(since) > PATIENCE {
                return Some(Errand::CutOff { consumer, why: why.text });
            }
        }
        progress.rest(now + AGAIN);
        None
    }

    /// What was to be said of a consumer was heard by the group, or not.
    pub fn said(&mut self, consumer: u64, is_heard: bool, now: Duration) {
        let Some(progress) = self.book.get_mut(&consumer) else { return };
        if progress.is_stale {
            self.book.remove(&consumer);
            return;
        }
        let is_news = progress.taken > progress.said;
        if is_heard {
            progress.said = progress.taken;
        }
        progress.rest(if is_heard && is_news { now } else { now + AGAIN });
    }

    fn lead(&mut self, notifier: &Notifier) {
        self.leads = true;
        self.heed_state(notifier);
    }

    /// What is known of reports of another state counts no more.
    fn heed_state(&mut self, notifier: &Notifier) {
        if self.state == notifier.states || canary!(BelievesBookOfOtherState) {
            return;
        }
        self.state = notifier.states;
        self.book.retain(|_, one| one.is_busy);
        for one in self.book.values_mut() {
            *one = Progress { is_busy: true, is_stale: true, ..Progress::default() };
        }
    }
}

/// What is to be done for one that has something waiting.
fn errand(
    consumer: u64,
    progress: &mut Progress,
    now: Duration,
    pending: impl FnOnce(u64) -> Option<Pending>,
) -> Option<Errand> {
    if progress.is_busy || now < progress.again {
        return None;
    }
    let errand = if progress.taken > progress.said && !canary!(PushesUntilSaid) {
        Errand::Delivered { consumer, last: progress.taken }
    } else {
        // What it has, this replica may not have heard yet.
        let behind = if canary!(PushesUntilSaid) { progress.said } else { progress.taken };
        Errand::Push(pending(behind)?)
    };
    progress.is_busy = true;
    Some(errand)
}
