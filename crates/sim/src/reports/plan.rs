//! What a seed stands for when only the fault notifier is simulated.
//!
//! Invariant: a plan is a function of the seed and nothing else.

use crate::rng::Rng;

/// What becomes of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It is away now and then, and comes back soon.
    Stays,
    /// From some time on it answers nothing.
    Hangs,
    /// From some time on it is no more.
    Ends,
    /// It disconnects.
    Leaves,
}

/// A consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// It takes sequences.
    pub(crate) is_batch: bool,
    pub(crate) fate: Fate,
    /// How long it takes at least and at most to take a report, in microseconds.
    pub(crate) take_us: (u64, u64),
}

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A member's process ends.
    Crash,
    /// The process of the member that leads ends.
    CrashLeader,
    /// A process ends that has executed what nobody else has.
    CrashAhead,
    /// A member's node ends.
    EndNode,
    /// A node ends that has no member.
    EndOther,
    /// A server of another group ends.
    EndServer,
    /// A member is cut off, and notices it later than the others.
    Cut,
    /// The member that leads is.
    CutLeader,
    /// The member that leads is, when it has a report that nobody else has.
    CutAhead,
    /// For a moment nobody is told who is first.
    Blink,
    /// A consumer cannot be reached for a while.
    Away,
    /// What consumers answer gets lost for a while.
    Mute,
    /// The replication manager cannot be reached for a while.
    NoManager,
}

impl Fault {
    pub(crate) const ALL: [Self; 13] = [
        Self::Crash,
        Self::CrashLeader,
        Self::CrashAhead,
        Self::EndNode,
        Self::EndOther,
        Self::EndServer,
        Self::Cut,
        Self::CutLeader,
        Self::CutAhead,
        Self::Blink,
        Self::Away,
        Self::Mute,
        Self::NoManager,
    ];
}

/// See the module's text. Times are in microseconds; chances are per thousand.
#[derive(Clone, Debug)]
pub(crate) struct ReportsPlan {
    pub(crate) members: usize,
    /// Nodes without a member.
    pub(crate) others: usize,
    pub(crate) consumers: Vec<Kind>,
    /// How many consumers there are from the beginning; the others come later.
    pub(crate) early: usize,
    /// Of each client: whether it names its calls and repeats them.
    pub(crate) clients: Vec<bool>,
    pub(crate) messages: u32,
    pub(crate) push_every_us: u64,
    /// Reports that may wait for a consumer.
    pub(crate) waiting_max: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) fault_every_us: u64,
    pub(crate) safety_us: u64,
    pub(crate) order_us: (u64, u64),
    /// How long a member is away.
    pub(crate) away_us: (u64, u64),
    /// How long a call to a consumer is on its way.
    pub(crate) call_us: (u64, u64),
    /// How long a node takes to see that another one went or came.
    pub(crate) news_us: u64,
    /// The chance that a consumer changes its constraint while the run lasts.
    pub(crate) change: u64,
}

impl ReportsPlan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x464e);
        let fates = [Fate::Stays, Fate::Stays, Fate::Stays, Fate::Hangs, Fate::Ends, Fate::Leaves];
        let speeds = [(20, 200), (500, 5_000), (5_000, 40_000)];
        let consumers: Vec<Kind> = (0..rng.between(1, 6))
            .map(|_| Kind {
                is_batch: rng.per_mille(500),
                fate: rng.pick(&fates),
                take_us: rng.pick(&speeds),
            })
            .collect();
        let mut faults = Fault::ALL.to_vec();
        rng.shuffle(&mut faults);
        faults.truncate(rng.pick(&[0, 1, 2, 3, 5, 8, 13]));
        let fault_every_us = rng.pick(&[5_000, 30_000, 150_000, 800_000]);
        // What happens in between has to be told to the slowest consumer, too.
        let safety_us = rng.pick(&[300_000, 1_500_000, 8_000_000, 25_000_000]);
        Self {
            members: rng.pick(&[1, 2, 3, 3, 3, 4, 5]),
            others: rng.between(0, 3) as usize,
            early: rng.between(1, consumers.len() as u64) as usize,
            consumers,
            clients: (0..rng.between(0, 3)).map(|_| rng.per_mille(600)).collect(),
            messages: rng.pick(&[10, 40, 100]),
            push_every_us: rng.pick(&[1_000, 10_000, 100_000]),
            waiting_max: rng.pick(&[12, 10_000, 10_000]),
            faults,
            fault_every_us,
            safety_us: safety_us.min(fault_every_us * 300),
            order_us: rng.pick(&[(50, 300), (100, 3_000), (1_000, 20_000)]),
            away_us: rng.pick(&[(500, 10_000), (2_000, 150_000), (400_000, 4_000_000)]),
            call_us: rng.pick(&[(30, 200), (100, 3_000), (1_000, 30_000)]),
            news_us: rng.pick(&[100, 5_000, 60_000]),
            change: rng.pick(&[0, 0, 400]),
        }
    }
}
