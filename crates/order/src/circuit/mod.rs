//! One ring's packets and token: what recovery and operation have in common.
//!
//! What it is not: a decision what to send, or when the token rests; the states decide.
//!
//! Invariants: a token changes something only if its hop is above every hop seen or sent; what is
//! noted about a member's reception is what that member has said; no packet is numbered without
//! the token.

#[cfg(test)]
mod tests;
mod timers;
mod visit;

use crate::ids::RingId;
use crate::log::{Held, Inserted, Log};
use crate::partial::Partials;
use crate::promise::Promises;
use crate::seal::KeyId;
use crate::shared::Core;
use crate::wire::{CommitToken, Data, GapRange, Token};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant, NODES_MAX, NodeId, NodeSet, canary};

/// Token loss is at least this many rotations.
const LOSS_ROTATIONS: u32 = 8;
/// A passed token is sent again after this many rotations without a sign of it, at the earliest.
const RESEND_ROTATIONS: u32 = 4;
/// And never sooner than this: a process may wait for its turn to run.
const RESEND_MIN: Duration = Duration::from_millis(5);
/// And where all members are near, never later than this: that costs a datagram if it was not lost.
const RESEND_MAX_NEAR: Duration = Duration::from_millis(20);
/// So many rotations must have been seen before the quickest says how far away the members are.
const QUICKEST_OF: u32 = 8;
/// A ring whose rotations take no longer is on a LAN, for which the floors of the timers are made.
const NEAR: Duration = Duration::from_millis(9);
/// What a process that stood still at least gives itself to read what has queued up.
const LATE_GRACE: Duration = Duration::from_millis(10);
/// What one gives itself that stood still for so long that the others may have gone on without it.
const PROBATION: Duration = Duration::from_millis(40);

/// Where the token is, as far as this node knows.
#[derive(Debug)]
pub(crate) enum Place {
    /// Somewhere else, or under way.
    Away,
    /// Here, until somebody wants it or the time is up.
    Resting { token: Box<Token>, until: Instant },
}

/// A passed token, until there is a sign that it arrived.
#[derive(Debug)]
struct Resend {
    at: Instant,
    pause: Duration,
    to: NodeId,
    token: Box<Token>,
}

/// A ring's packets and token.
#[derive(Debug)]
pub(crate) struct Circuit {
    pub(crate) ring: RingId,
    pub(crate) members: NodeSet,
    pub(crate) incarnations: Box<[u64; NODES_MAX]>,
    pub(crate) log: Log,
    /// What each member has said that it has without a gap.
    pub(crate) arus: Box<[u64; NODES_MAX]>,
    pub(crate) delivered: u64,
    pub(crate) partials: Partials,
    pub(crate) promises: Promises,
    pub(crate) place: Place,
    last_hop: u64,
    /// What the token asked for at my last visit: a request that persists is left to others once.
    served: Vec<GapRange>,
    /// The token's packet number at my last visit.
    previous_seq: u64,
    pub(crate) my_sent: u32,
    pub(crate) my_backlog: u32,
    /// Members that asked for the token since it was here.
    pub(crate) heard_wanted: NodeSet,
    pub(crate) rest_owner: NodeId,
    /// Members that may have delivered all that this node has of the ring, in a recovery that
    /// failed here.
    pub(crate) obligation: NodeSet,
    pub(crate) gap_since: Option<Instant>,
    /// The token comes by itself until then: no need to ask.
    circulating_until: Instant,
    loss_at: Instant,
    /// By how much `loss_at` was put off because this process stood still.
    excused: Duration,
    /// This process stood still, perhaps the others did, and it has not heard of the token since.
    stood_still: bool,
    /// It did for so long that the others may have gone on without it.
    on_probation: bool,
    resend: Option<Resend>,
    request_at: Option<Instant>,
    request_pause: Duration,
    rotation_us: u32,
    rotation_started: Option<(u64, Instant)>,
    /// The token's packet number when this node last sent it round.
    rotation_seq: Option<u64>,
    /// When the rotation time was last measured here.
    rotation_at: Instant,
    /// The hop of the token that was passed on last, and when; later by as long as it may rest.
    passed: (u64, Instant),
    /// The quickest of so many rotations seen here: what the network takes, however busy hosts
    /// are. A busy LAN is not a WAN.
    quickest: (u32, Duration),
}

impl Circuit {
    /// The ring that a full commit token describes.
    pub(crate) fn new(core: &Core, commit: &CommitToken) -> Self {
        let mut incarnations = Box::new([0; NODES_MAX]);
        for node in commit.members {
            let state = commit.state_of(node).expect("the commit token is full");
            incarnations[usize::from(node.index())] = state.incarnation;
        }
        let mut circuit = Self {
            ring: commit.ring,
            members: commit.members,
            incarnations,
            log: Log::new(core.limits.log_packets),
            arus: Box::new([0; NODES_MAX]),
            delivered: 0,
            partials: Partials::default(),
            promises: Promises::default(),
            place: Place::Away,
            last_hop: 0,
            served: Vec::new(),
            previous_seq: 0,
            my_sent: 0,
            my_backlog: 0,
            heard_wanted: NodeSet::EMPTY,
            rest_owner: commit.ring.representative,
            obligation: NodeSet::EMPTY,
            gap_since: None,
            circulating_until: core.now,
            loss_at: core.now,
            excused: Duration::ZERO,
            stood_still: false,
            on_probation: false,
            resend: None,
            request_at: None,
            request_pause: core.config.timing.request_retry,
            rotation_us: commit.rotation_us,
            rotation_started: None,
            rotation_seq: None,
            rotation_at: core.now,
            passed: (0, core.now),
            quickest: (0, Duration::ZERO),
        };
        circuit.expect_token(core, circuit.token_loss(core));
        circuit
    }

    /// The first token of the ring.
    pub(crate) fn first_token(&self) -> Token {
        let mut token = Token {
            ring: self.ring,
            hop: 1,
            seq: 0,
            members: self.members,
            arus: alloc::vec![0; self.members.len()],
            requests: Vec::new(),
            sent: 0,
            backlog: 0,
            wanted: NodeSet::EMPTY,
            recovering: self.members,
            complete: false,
            safe_pending: NodeSet::EMPTY,
            rest_owner: self.ring.representative,
            hops_to_go: 0,
            rest_budget_us: 0,
            rotation_us: self.rotation_us,
            key: KeyId::NONE,
            keyed: NodeSet::EMPTY,
        };
        token.hops_to_go = self.members.len() as u8;
        token
    }

    pub(crate) fn incarnation(&self, node: NodeId) -> u64 {
        self.incarnations[usize::from(node.index())]
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.members.len() == 1
    }

    pub(crate) const fn rotation(&self) -> Duration {
        Duration::from_micros(self.rotation_us as u64)
    }

    /// In this time an answer comes from any member, if the network is what it was: one rotation
    /// visits them all, the other is for what varies. Zero, so that the floors of timers count, on
    /// a LAN and before it is measured.
    pub(crate) fn round_trip(&self) -> Duration {
        let (seen, took) = self.quickest;
        if seen < QUICKEST_OF || took <= NEAR { Duration::ZERO } else { took * 2 }
    }

    /// Whether all members are known to be on a LAN: by rotations of this ring, and before it has
    /// had enough of them by those of earlier rings.
    fn is_near(&self, core: &Core) -> bool {
        let (seen, took) = self.quickest;
        if seen < QUICKEST_OF { core.links.are_near(self.members) } else { took <= NEAR }
    }

    /// Acknowledgements are not late before.
    pub(crate) fn ack_wait(&self, core: &Core) -> Duration {
        core.patient(core.config.timing.ack_wait).max(self.round_trip())
    }

    /// How long a gap may be mere reordering: datagrams overtake each other by a part of their way.
    pub(crate) fn reorder_wait(&self, core: &Core) -> Duration {
        core.config.timing.reorder_wait.max(self.round_trip() / 4)
    }

    pub(crate) fn token_loss(&self, core: &Core) -> Duration {
        let timing = &core.config.timing;
        let measured = self.rotation().saturating_mul(LOSS_ROTATIONS);
        let floor = timing.token_loss_min.max(measured);
        core.patient(floor).min(timing.token_loss_max)
    }

    /// A token on its way round an idle ring is lost sooner than a busy one, for it has rested for
    /// longer before: silence is noticed as soon in either.
    fn token_loss_idle(&self, core: &Core) -> Duration {
        self.token_loss(core) - core.config.timing.idle_stretch()
    }

    /// How long the token may rest now that it goes round. Where rotations are slow it does not
    /// rest for longer when the ring is idle: there, time is needed to tell slow from dead.
    fn rest(&mut self, core: &Core, seq: u64) -> Duration {
        let timing = &core.config.timing;
        let is_idle = self.rotation_seq.replace(seq) == Some(seq);
        let is_quick = self.rotation().saturating_mul(LOSS_ROTATIONS)
            <= timing.token_loss_min - timing.idle_stretch();
        let stretch = if is_idle && is_quick { timing.idle_stretch() } else { Duration::ZERO };
        timing.rest_max + stretch
    }

    /// A sign from elsewhere that the token is alive.
    fn see_token(&mut self, core: &Core) {
        (self.stood_still, self.on_probation) = (false, false);
        self.expect_token(core, self.token_loss(core));
    }

    /// The token is lost if there is no sign of it for so long.
    fn expect_token(&mut self, core: &Core, loss: Duration) {
        let loss = if self.on_probation { loss.min(PROBATION) } else { loss };
        self.loss_at = core.now + loss;
        self.excused = Duration::ZERO;
    }

    /// What every member has, as far as this node knows.
    pub(crate) fn all_received(&self) -> u64 {
        self.members.iter().map(|node| self.arus[usize::from(node.index())]).min().unwrap_or(0)
    }

    /// The highest number that at least `count` members have everything up to; `None` if there
    /// are fewer members.
    pub(crate) fn received_by(&self, count: usize) -> Option<u64> {
        let mut arus = [0; NODES_MAX];
        let mut len = 0;
        for node in self.members {
            arus[len] = self.arus[usize::from(node.index())];
            len += 1;
        }
        let arus = &mut arus[..len];
        arus.sort_unstable_by(|a, b| b.cmp(a));
        arus.get(count.checked_sub(1)?).copied()
    }

    /// `node` has said that it has everything up to `aru`.
    pub(crate) fn learn(&mut self, node: NodeId, aru: u64) {
        let known = &mut self.arus[usize::from(node.index())];
        *known = aru.max(*known);
    }

    /// Someone knows that all members have everything up to `stable`.
    pub(crate) fn learn_stable(&mut self, stable: u64) {
        if stable <= self.log.aru() {
            for node in self.members {
                self.learn(node, stable);
            }
        }
    }

    /// Takes in a numbered packet of this ring.
    pub(crate) fn take_packet(&mut self, core: &mut Core, data: Data) -> Inserted {
        let news = !data.repeated && data.seq > self.log.high();
        if news {
            self.see_token(core);
            self.resend.take_if(|resend| data.seq > resend.token.seq);
            self.heard_wanted.remove(data.origin);
            self.rest_owner = data.origin;
        }
        let (seq, stable) = (data.seq, data.stable);
        let inserted = self.log.insert(seq, Held::from(data));
        match inserted {
            Inserted::New => {
                let reported =
                    if canary!(ReportsHighAsAru) { self.log.high() } else { self.log.aru() };
                self.learn(core.me(), reported);
                self.note_gap(core.now);
            }
            Inserted::Duplicate => core.counters.duplicates += 1,
            Inserted::Beyond => core.counters.beyond += 1,
        }
        self.learn_stable(stable);
        inserted
    }

    fn note_gap(&mut self, now: Instant) {
        if self.log.aru() == self.log.high() {
            self.gap_since = None;
        } else if self.gap_since.is_none() {
            self.gap_since = Some(now);
        }
    }
}
