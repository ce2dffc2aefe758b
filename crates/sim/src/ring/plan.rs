//! What a seed stands for when only rings are simulated.
//!
//! Invariant: a plan is a function of the seed and nothing else.

use crate::fault::{Fault, Place, PoorLinks};
use crate::plan::LinkPlan;
use crate::profile::Profile;
use crate::rng::Rng;
use crate::world::ms;
use quorba_base::Duration;

/// See the module's text. Times are in microseconds unless the name says otherwise; chances are
/// per thousand.
#[derive(Clone, Debug)]
pub(crate) struct RingPlan {
    pub(crate) nodes: usize,
    pub(crate) encrypt: bool,
    pub(crate) accelerated: bool,
    /// The token never rests.
    pub(crate) circulates: bool,
    pub(crate) datagram_bytes_max: usize,
    /// How long faults go on.
    pub(crate) safety: Duration,
    pub(crate) links: LinkPlan,
    pub(crate) faults: Vec<Fault>,
    pub(crate) fault_every_us: u64,
    pub(crate) drift_ppm: u64,
    /// Mean time between two submissions of one node, and how many messages each is.
    pub(crate) submit_every_us: u64,
    pub(crate) burst: u64,
    pub(crate) bytes_max: u64,
    /// Bytes that every message has besides.
    pub(crate) bytes_more: usize,
    /// Chances of safe delivery, and of a message of many packets.
    pub(crate) safe: u64,
    pub(crate) big: u64,
    /// Nobody submits more than this.
    pub(crate) messages_max: usize,
    /// Nothing happens but that links are poor for a while, and good again.
    pub(crate) spells: bool,
}

/// What a ring can be hit by.
const PLACES: &[Place] = &[Place::Network, Place::Nodes];

impl RingPlan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let plan = Self::draw_plain(seed);
        if PoorLinks::of(seed) == PoorLinks::Alone {
            return plan.with_spells();
        }
        match Profile::of_ring(seed) {
            Some((profile, mut rng)) => plan.with(profile, &mut rng),
            None => plan,
        }
    }

    /// Only that, on a network that is good otherwise.
    fn with_spells(mut self) -> Self {
        (self.nodes, self.spells) = (if self.nodes > 4 { 5 } else { 3 }, true);
        self.links = LinkPlan { delay_us: (20, 120), ..LinkPlan::default() };
        (self.faults, self.drift_ppm) = (Vec::new(), 0);
        self.safety = ms(60_000);
        // Somebody always has something to say.
        (self.submit_every_us, self.burst) = (30_000, 1);
        (self.big, self.safe, self.messages_max) = (0, 100, 20_000);
        self
    }

    fn with(mut self, profile: Profile, rng: &mut Rng) -> Self {
        (self.faults, self.fault_every_us) = profile.mix(rng);
        self.nodes = self.nodes.max(3);
        self.links.slow = profile.slow_link(rng, self.nodes);
        self.safety = ms(rng.pick(&[2_000, 4_000]));
        // Somebody always has something to say: few messages at a time, until the end.
        (self.submit_every_us, self.burst) = rng.pick(&[(1_000, 1), (3_000, 2), (6_000, 3)]);
        (self.big, self.messages_max) = (0, 6_000);
        self.safe = rng.pick(&[100, 500, 1000]);
        self
    }

    fn draw_plain(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x4149);
        let nodes = rng.pick(&[1, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7]);
        let kept = rng.pick(&[0, 1, 1, 2, 2, 3, 5, 8, 100]);
        let mut faults: Vec<Fault> = Fault::ALL.to_vec();
        faults.retain(|fault| PLACES.contains(&fault.place()) && !fault.needs_profile());
        rng.shuffle(&mut faults);
        faults.truncate(kept);
        if rng.per_mille(300) {
            // Few seeds would draw one, and the states that they wait for are short.
            faults.push(rng.pick(&[
                Fault::CutAtCommit,
                Fault::CutAtRecovery,
                Fault::CutAtRecovery,
                Fault::CrashAtRecovery,
            ]));
            faults.push(rng.pick(&[Fault::Orphans, Fault::Partition, Fault::Crash]));
        }
        faults.extend(PoorLinks::of(seed).among_others());
        let links = LinkPlan::draw(&mut rng);
        let sealed = links.corrupt > 0 || faults.iter().any(|fault| fault.needs_seal());
        Self {
            nodes,
            encrypt: sealed || rng.per_mille(100),
            accelerated: rng.per_mille(400),
            circulates: rng.per_mille(100),
            datagram_bytes_max: rng.pick(&[1400, 1400, 1400, 9000, 65_000]),
            safety: ms(rng.pick(&[500, 1_000, 2_000, 4_000])),
            links,
            faults,
            fault_every_us: rng.pick(&[5_000, 20_000, 100_000, 400_000]),
            drift_ppm: rng.pick(&[0, 0, 100, 20_000]),
            submit_every_us: rng.pick(&[500, 2_000, 10_000, 50_000]),
            burst: rng.pick(&[1, 1, 3, 20, 100]),
            bytes_max: rng.pick(&[30, 300, 600, 3_000]),
            bytes_more: 0,
            safe: rng.pick(&[0, 100, 500, 1000]),
            big: rng.pick(&[0, 0, 20, 100]),
            messages_max: rng.pick(&[100, 400, 400, 1_500]),
            spells: false,
        }
    }
}
