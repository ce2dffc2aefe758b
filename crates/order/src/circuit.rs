//! One ring's packets and token: what recovery and operation have in common.
//!
//! What it is not: a decision what to send, or when the token rests; the states decide.
//!
//! Invariants: a token changes something only if its hop is above every hop seen or sent; what is
//! noted about a member's reception is what that member has said; no packet is numbered without
//! the token.

use crate::ids::RingId;
use crate::log::{Held, Inserted, Log};
use crate::output::{Destination, TimerKind};
use crate::partial::Partials;
use crate::promise::Promises;
use crate::shared::Core;
use crate::wire::{CommitToken, Data, GapRange, Packet, RANGE_PACKETS_MAX, REQUESTS_MAX, Token};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant, NODES_MAX, NodeId, NodeSet};

/// Token loss is at least this many rotations.
const LOSS_ROTATIONS: u32 = 20;
/// A passed token is sent again after this many rotations without a sign of it, at the earliest.
const RESEND_ROTATIONS: u32 = 4;
/// And never sooner than this: a process may wait for its turn to run.
const RESEND_MIN: Duration = Duration::from_millis(5);
/// A timer that fires later than this was late because this process did not run.
const LATE: Duration = Duration::from_millis(2);
/// What a late process gives itself to read what has queued up.
const LATE_GRACE: Duration = Duration::from_millis(10);

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
    loss_graced: bool,
    resend: Option<Resend>,
    request_at: Option<Instant>,
    request_pause: Duration,
    rotation_us: u32,
    rotation_started: Option<(u64, Instant)>,
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
            loss_graced: false,
            resend: None,
            request_at: None,
            request_pause: core.config.timing.request_retry,
            rotation_us: commit.rotation_us,
            rotation_started: None,
        };
        circuit.see_token(core);
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

    pub(crate) fn token_loss(&self, core: &Core) -> Duration {
        let timing = &core.config.timing;
        let measured = self.rotation().saturating_mul(LOSS_ROTATIONS);
        let floor = timing.token_loss_min.max(measured);
        core.patient(floor).min(timing.token_loss_max)
    }

    /// A sign that the token is alive.
    fn see_token(&mut self, core: &Core) {
        self.loss_at = core.now + self.token_loss(core);
        self.loss_graced = false;
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
                self.learn(core.me(), self.log.aru());
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

    /// Whether `token` is this ring's and newer than any seen. If so, learns what it says.
    pub(crate) fn take_token(&mut self, core: &mut Core, token: &Token) -> bool {
        if token.ring != self.ring || token.members != self.members || token.hop <= self.last_hop {
            return false;
        }
        self.last_hop = token.hop;
        self.resend = None;
        self.request_at = None;
        self.request_pause = core.config.timing.request_retry;
        self.rest_owner = token.rest_owner;
        self.rotation_us = token.rotation_us;
        for (node, aru) in token.members.iter().zip(&token.arus) {
            if node != core.me() {
                self.learn(node, *aru);
            }
        }
        if let Some((hop, at)) = self.rotation_started.take()
            && token.hop - hop == self.members.len() as u64
        {
            let micros = core.now.since(at).as_micros().min(u128::from(u32::MAX / 8));
            let before = u64::from(self.rotation_us);
            let smoothed =
                if before == 0 { micros as u64 } else { (before * 7 + micros as u64) / 8 };
            self.rotation_us = smoothed as u32;
        }
        self.see_token(core);
        core.counters.token_visits += 1;
        true
    }

    /// Sends what the token asks for and this node has; gives how many packets.
    pub(crate) fn serve_requests(&mut self, core: &mut Core, token: &mut Token) -> u32 {
        if token.requests.is_empty() {
            return 0;
        }
        let mut served = 0;
        let mut left: Vec<GapRange> = Vec::new();
        let before = core::mem::take(&mut self.served);
        for range in core::mem::take(&mut token.requests) {
            for seq in range.first..=range.last {
                // Asked for again right after I sent it: maybe what I send does not get there.
                let for_others = self.members.len() > 2 && contains(&before, seq);
                if served < core.limits.visit_packets
                    && !for_others
                    && let Some(held) = self.log.packet(seq)
                {
                    let data = self.data(seq, held.clone(), true);
                    core.transmit(Destination::Others, &Packet::Data(data));
                    append(&mut self.served, seq);
                    served += 1;
                } else {
                    append(&mut left, seq);
                }
            }
        }
        token.requests = left;
        core.counters.repeated += u64::from(served);
        served
    }

    fn data(&self, seq: u64, held: Held, repeated: bool) -> Data {
        let Held { origin, guarantee, inner, body } = held;
        let stable = self.all_received();
        Data {
            ring: self.ring,
            seq,
            origin,
            guarantee,
            repeated,
            acks_wanted: 0,
            stable,
            inner,
            body,
        }
    }

    /// Gives `held`, a packet of mine, the next number.
    pub(crate) fn number(&mut self, core: &Core, token: &mut Token, held: Held) -> Data {
        token.seq += 1;
        let inserted = self.log.insert(token.seq, held.clone());
        assert_eq!(inserted, Inserted::New, "the token's numbers are new");
        self.learn(core.me(), self.log.aru());
        self.note_gap(core.now);
        self.data(token.seq, held, false)
    }

    /// How many new packets this visit may send (Amir95, flow control).
    pub(crate) fn allowance(&self, core: &Core, token: &Token, backlog: u32, repeated: u32) -> u32 {
        let limits = &core.limits;
        let window_left = limits.window_packets.saturating_sub(token.sent);
        let all = u64::from(token.backlog) + u64::from(backlog);
        let fair = u64::from(limits.window_packets) * u64::from(backlog) / all.max(1);
        let unstable = token.seq.saturating_sub(self.all_received());
        let room = limits.unstable_packets.saturating_sub(unstable);
        let allowed = u64::from(limits.visit_packets.min(window_left));
        let allowed = allowed.min(fair.max(1)).min(room) as u32;
        allowed.saturating_sub(repeated)
    }

    /// Writes what this node has into the token, and asks for what it lacks.
    pub(crate) fn report(&mut self, core: &Core, token: &mut Token) {
        for (node, aru) in token.members.iter().zip(&mut token.arus) {
            *aru = self.arus[usize::from(node.index())].min(token.seq);
        }
        let overdue = self
            .gap_since
            .is_some_and(|since| core.now.since(since) >= core.config.timing.reorder_wait);
        let until = match (core.config.accelerated, overdue) {
            (false, _) => token.seq,
            (true, true) => self.log.high().max(self.previous_seq),
            // What was numbered since my last visit may still be under way (Babay16).
            (true, false) => self.previous_seq,
        };
        for gap in self.log.gaps(until, REQUESTS_MAX) {
            let asked = |range: &GapRange| range.first <= gap.first && gap.last <= range.last;
            if token.requests.len() < REQUESTS_MAX && !token.requests.iter().any(asked) {
                token.requests.push(gap);
            }
        }
        token.rotation_us = self.rotation_us;
        self.previous_seq = token.seq;
    }

    /// The token must go once round before it may rest.
    pub(crate) fn start_rotation(&mut self, core: &Core, token: &mut Token) {
        token.hops_to_go = self.members.len() as u8;
        let rest = core.config.timing.rest_max.as_micros();
        token.rest_budget_us = u32::try_from(rest).unwrap_or(u32::MAX);
        self.rotation_started = Some((token.hop, core.now));
    }

    /// Whether something but a request keeps the token moving.
    pub(crate) fn must_circulate(&self, core: &Core, token: &Token) -> bool {
        let unstable = token.seq.saturating_sub(self.all_received());
        token.hops_to_go > 0
            || token.backlog > 0
            || !token.requests.is_empty()
            || token.rest_budget_us == 0
            || !token.recovering.is_empty()
            || !token.safe_pending.difference(NodeSet::EMPTY.with(core.me())).is_empty()
            || unstable > core.limits.unstable_packets / 2
            || self.log.aru() < token.seq
    }

    /// Passes the token on.
    pub(crate) fn pass(&mut self, core: &mut Core, mut token: Box<Token>) {
        let me = core.me();
        if token.rest_budget_us == 0 && token.hops_to_go == 0 {
            self.start_rotation(core, &mut token);
        }
        let circulates = self.must_circulate(core, &token);
        let wanted = token.wanted.difference(NodeSet::EMPTY.with(me));
        let others = if circulates || wanted.is_empty() {
            token.hops_to_go = token.hops_to_go.saturating_sub(1);
            self.members
        } else {
            wanted
        };
        let to = others.successor(me).expect("this node is a member");
        assert_ne!(to, me, "a ring of one keeps its token");
        token.hop += 1;
        self.last_hop = token.hop;
        let rotation = self.rotation();
        // Where it may rest on its way, nothing is heard of it for as long.
        let returns = usize::from(token.hops_to_go) + 1 >= self.members.len();
        let busy = token.backlog > 0 || !token.requests.is_empty() || !token.recovering.is_empty();
        let stays = !(circulates && (returns || busy));
        let pause = if stays {
            core.config.timing.rest_max + core.config.timing.rest_max / 2
        } else {
            RESEND_MIN.max(rotation.saturating_mul(RESEND_ROTATIONS))
        };
        self.circulating_until = if stays { core.now } else { core.now + rotation * 2 };
        core.transmit(Destination::Node(to), &Packet::Token((*token).clone()));
        let pause = core.patient(pause);
        self.resend = Some(Resend { at: core.now + pause, pause, to, token });
        self.place = Place::Away;
        self.see_token(core);
    }

    /// Asks for the token if it is away and needed: to send, or to have a gap repeated.
    pub(crate) fn ask_for_token(&mut self, core: &mut Core, to_send: bool) {
        if !matches!(self.place, Place::Away) {
            return;
        }
        let due = match (to_send, self.gap_since) {
            (true, _) => Some(core.now),
            (false, Some(since)) => Some(since + core.config.timing.reorder_wait),
            (false, None) => None,
        };
        let Some(due) = due else {
            self.request_at = None;
            return;
        };
        let due = due.max(self.circulating_until);
        let at = *self.request_at.get_or_insert(due);
        if at <= core.now {
            let request = crate::wire::TokenRequest { ring: self.ring };
            core.transmit(Destination::Others, &Packet::Request(request));
            core.counters.token_requests += 1;
            self.request_at = Some(core.now + core.patient(self.request_pause));
            self.request_pause = (self.request_pause * 2).min(core.config.timing.rest_max);
        }
    }

    /// Sends the passed token again if it is time.
    pub(crate) fn resend_if_due(&mut self, core: &mut Core) {
        let Some(resend) = &mut self.resend else { return };
        if resend.at > core.now {
            return;
        }
        resend.pause *= 2;
        resend.at = core.now + resend.pause;
        let (to, token) = (resend.to, (*resend.token).clone());
        core.transmit(Destination::Node(to), &Packet::Token(token));
        core.counters.token_resent += 1;
    }

    /// Whether the token is lost. A process that wakes up late first reads what has queued up.
    pub(crate) fn is_lost(&mut self, core: &Core) -> bool {
        if self.is_alone() || matches!(self.place, Place::Resting { .. }) {
            return false;
        }
        if core.now < self.loss_at {
            return false;
        }
        if core.now.since(self.loss_at) > LATE && !self.loss_graced {
            self.loss_graced = true;
            self.loss_at = core.now + LATE_GRACE;
            return false;
        }
        true
    }

    /// The next of the circuit's timers.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, TimerKind)> {
        if self.is_alone() {
            return None;
        }
        if let Place::Resting { until, .. } = &self.place {
            return Some((*until, TimerKind::Rest));
        }
        let loss = Some((self.loss_at, TimerKind::TokenLoss));
        let resend = self.resend.as_ref().map(|resend| (resend.at, TimerKind::TokenResend));
        let request = self.request_at.map(|at| (at, TimerKind::TokenRequest));
        [loss, resend, request].into_iter().flatten().min()
    }
}

fn contains(ranges: &[GapRange], seq: u64) -> bool {
    ranges.iter().any(|range| range.first <= seq && seq <= range.last)
}

/// Adds `seq` to ranges, as far as the limits of a token allow.
fn append(ranges: &mut Vec<GapRange>, seq: u64) {
    let full = ranges.len() >= REQUESTS_MAX;
    match ranges.last_mut() {
        Some(last) if last.last + 1 == seq && seq - last.first < RANGE_PACKETS_MAX => {
            last.last = seq;
        }
        _ if full => {}
        _ => ranges.push(GapRange { first: seq, last: seq }),
    }
}
