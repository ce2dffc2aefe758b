//! What a seed stands for when only the replication manager is simulated.
//!
//! Invariant: a plan is a function of the seed and nothing else.

use super::domain::Chances;
use crate::rng::Rng;

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A member's process ends.
    Crash,
    /// A process ends between two calls of the domain.
    CrashMidway,
    /// A process ends that has executed what nobody else has.
    CrashAhead,
    /// A member's node ends.
    EndNode,
    /// A node ends that has no member.
    EndOther,
    /// A server of a group ends.
    EndServer,
    /// At a node no server starts for a while.
    Fail,
    /// A member is cut off, and notices it later than the others.
    Cut,
    /// The domain refuses changes for a while.
    Busy,
    /// The domain refuses changes for ever, as far as it says.
    Never,
    /// A factory creates nothing for a while.
    Broken,
    /// Calls of the domain fail in many ways for a while.
    Poor,
    /// All members end at once.
    EndAll,
    /// Somebody reports what is not true.
    Slander,
}

impl Fault {
    pub(crate) const ALL: [Self; 14] = [
        Self::Crash,
        Self::CrashMidway,
        Self::CrashAhead,
        Self::EndNode,
        Self::EndOther,
        Self::EndServer,
        Self::Fail,
        Self::Cut,
        Self::Busy,
        Self::Never,
        Self::Broken,
        Self::Poor,
        Self::EndAll,
        Self::Slander,
    ];
}

/// See the module's text. Times are in microseconds; chances are per thousand.
#[derive(Clone, Debug)]
pub(crate) struct GroupsPlan {
    pub(crate) members: usize,
    /// Nodes without a member.
    pub(crate) others: usize,
    /// Of each client: whether it names its calls and repeats them.
    pub(crate) clients: Vec<bool>,
    pub(crate) calls: u32,
    pub(crate) call_every_us: u64,
    pub(crate) factories: u16,
    pub(crate) faults: Vec<Fault>,
    pub(crate) fault_every_us: u64,
    pub(crate) safety_us: u64,
    pub(crate) order_us: (u64, u64),
    /// How long a member is away.
    pub(crate) away_us: (u64, u64),
    /// How long a node takes to see that another one went or came.
    pub(crate) news_us: u64,
    /// What goes wrong with calls of the domain until there is peace.
    pub(crate) usual: Chances,
    /// While they fail in many ways.
    pub(crate) poor: Chances,
    /// How long what fails for a while fails.
    pub(crate) while_us: (u64, u64),
}

impl GroupsPlan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x4f47);
        let mut faults = Fault::ALL.to_vec();
        rng.shuffle(&mut faults);
        faults.truncate(rng.pick(&[0, 1, 2, 3, 5, 8, 14]));
        let fault_every_us = rng.pick(&[5_000, 30_000, 150_000]);
        let safety_us = rng.pick(&[300_000, 1_500_000, 6_000_000]);
        let level = rng.pick(&[20, 100, 300]);
        let mut chance = || if rng.per_mille(600) { rng.below(level) } else { 0 };
        let poor = Chances {
            unreachable: chance(),
            doubt: chance(),
            failover: chance(),
            slow: chance(),
            stir: chance(),
        };
        let usual = Chances {
            failover: rng.pick(&[0, 0, 20, 100]),
            slow: rng.pick(&[0, 0, 100]),
            ..Chances::default()
        };
        Self {
            usual,
            members: rng.pick(&[1, 2, 3, 3, 3, 4, 5]),
            others: rng.between(0, 3) as usize,
            clients: (0..rng.between(1, 3)).map(|_| rng.per_mille(800)).collect(),
            calls: rng.pick(&[10, 30, 80]),
            call_every_us: rng.pick(&[1_000, 10_000, 60_000]),
            factories: rng.between(1, 4) as u16,
            faults,
            fault_every_us,
            safety_us: safety_us.min(fault_every_us * 300),
            order_us: rng.pick(&[(50, 300), (100, 3_000), (1_000, 20_000)]),
            away_us: rng.pick(&[(500, 10_000), (2_000, 150_000), (400_000, 1_500_000)]),
            news_us: rng.pick(&[100, 5_000, 60_000]),
            poor,
            while_us: rng.pick(&[(500, 5_000), (5_000, 100_000), (50_000, 800_000)]),
        }
    }
}
