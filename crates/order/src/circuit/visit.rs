//! What is done to a token while it is here, whatever the state.
//!
//! Invariants: a visit raises only what this node knows; a token that leaves has a higher hop.

use super::{
    Circuit, NEAR, Place, QUICKEST_OF, RESEND_MAX_NEAR, RESEND_MIN, RESEND_ROTATIONS, Resend,
};
use crate::log::{Held, Inserted};
use crate::output::Destination;
use crate::shared::Core;
use crate::wire::{Data, GapRange, Packet, RANGE_PACKETS_MAX, REQUESTS_MAX, Token};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{Duration, NodeSet, canary};

/// Longer rotations count as this long (µs).
const ROTATION_US_MAX: u128 = 100_000_000;
/// A rotation that takes longer among nodes that were near is a sign of trouble.
const SLOW: Duration = Duration::from_millis(40);
/// A slow rotation is half forgotten after this time (µs).
const ROTATION_FADE_US: u64 = 2_000_000;

impl Circuit {
    /// Whether `token` is this ring's and newer than any seen. If so, learns what it says.
    pub(crate) fn take_token(&mut self, core: &mut Core, token: &Token) -> bool {
        let newest = self.last_hop - u64::from(canary!(TakesOldTokens) && self.last_hop > 1) * 2;
        let is_old = token.hop <= newest;
        if token.ring != self.ring || token.members != self.members {
            return false;
        }
        if is_old {
            self.hear_repeated(core, token);
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
            core.rotation_last = core.now.since(at);
            core.counters.rotations += 1;
            if core.rotation_last > SLOW && core.links.are_near(self.members) {
                core.links.see_trouble(core.now);
            }
            self.note_rotation(core, core.rotation_last);
        }
        let (hop, at) = self.passed;
        if hop > 0 && token.hop - hop + 1 == self.members.len() as u64 {
            let took = core.now.since(at);
            let (seen, quickest) = self.quickest;
            let quickest = if seen == 0 { took } else { quickest.min(took) };
            self.quickest = (seen.saturating_add(1), quickest);
            if seen >= QUICKEST_OF && quickest <= NEAR {
                core.links.note_near(self.members);
            }
        }
        self.see_token(core);
        core.counters.token_visits += 1;
        core.visit_packets = token.seq;
        true
    }

    /// A rotation took this long, or was held up for this long here. The estimate goes up at once
    /// and down over seconds: a host too busy to run us stays so for a while, and everyone's
    /// patience follows this number.
    pub(crate) fn note_rotation(&mut self, core: &Core, took: Duration) {
        let micros = took.as_micros().min(ROTATION_US_MAX) as u64;
        let age_us = core.now.since(self.rotation_at).as_micros().min(ROTATION_US_MAX) as u64;
        self.rotation_at = core.now;
        let before = u64::from(self.rotation_us);
        let smoothed = if micros > before {
            before + (micros - before) / 2
        } else {
            before - (before - micros) * age_us / (age_us + ROTATION_FADE_US)
        };
        self.rotation_us = smoothed as u32;
    }

    /// Sends what the token asks for and this node has; gives how many packets.
    pub(crate) fn serve_requests(&mut self, core: &mut Core, token: &mut Token) -> u32 {
        if token.requests.is_empty() {
            return 0;
        }
        let (mut served, mut in_vain) = (0, false);
        let mut left: Vec<GapRange> = Vec::new();
        let before = core::mem::take(&mut self.served);
        for range in core::mem::take(&mut token.requests) {
            for seq in range.first..=range.last {
                // Asked for again right after I sent it: maybe what I send does not get there.
                let again = contains(&before, seq);
                in_vain |= again;
                let for_others = self.members.len() > 2 && again;
                if served < core.limits.visit_packets
                    && !for_others
                    && let Some(held) = self.log.packet(seq)
                {
                    let data = self.data(seq, held.clone(), true);
                    core.transmit(Destination::Each, &Packet::Data(data));
                    append(&mut self.served, seq);
                    served += 1;
                } else {
                    append(&mut left, seq);
                }
            }
        }
        token.requests = left;
        core.counters.repeated += u64::from(served);
        if in_vain {
            core.links.see_trouble(core.now);
        }
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
    pub(crate) fn report(&mut self, core: &mut Core, token: &mut Token) {
        for (node, aru) in token.members.iter().zip(&mut token.arus) {
            *aru = self.arus[usize::from(node.index())].min(token.seq);
        }
        let overdue =
            self.gap_since.is_some_and(|since| core.now.since(since) >= self.reorder_wait(core));
        if overdue {
            core.links.see_trouble(core.now);
        }
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
        let rest = self.rest(core, token.seq);
        token.rest_budget_us = u32::try_from(rest.as_micros()).unwrap_or(u32::MAX);
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

    /// When to send a token again that comes back by itself. Where the way is so long that what
    /// hosts add does not count, one that is late is lost, and there is time for a third try.
    fn resend_pause(&self, core: &Core) -> Duration {
        if self.round_trip() > core.config.timing.token_loss_min {
            return core.patient(RESEND_MIN).max(self.round_trip());
        }
        let measured = self.rotation().saturating_mul(RESEND_ROTATIONS);
        // Rotations in which tokens were lost are slow, too: where all are near, that a few were
        // lost does not make the next ones be waited for.
        let most = if self.is_near(core) { RESEND_MAX_NEAR } else { Duration::MAX };
        core.patient(RESEND_MIN.max(measured.min(most)))
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
        let never_rests = core.config.timing.rest_max.is_zero();
        let stays = !(circulates && (returns || busy || never_rests));
        let rest = Duration::from_micros(u64::from(token.rest_budget_us));
        let is_idle = rest > core.config.timing.rest_max;
        let pause = if stays {
            let rest = rest.max(core.config.timing.rest_max);
            core.patient(rest + rest / 2).max(rest + self.round_trip())
        } else if self.stood_still {
            // Who stood still as well may have dropped it, and the rotation says nothing now.
            core.patient(RESEND_MIN)
        } else {
            self.resend_pause(core)
        };
        let may_rest = if stays { rest } else { Duration::ZERO };
        self.passed = (token.hop, core.now + may_rest);
        self.circulating_until = if stays { core.now } else { core.now + rotation * 2 };
        core.transmit(Destination::Node(to), &Packet::Token((*token).clone()));
        self.resend = Some(Resend { at: core.now + pause, pause, to, token });
        if !canary!(KeepsRestingToken) {
            self.place = Place::Away;
        }
        if is_idle {
            self.expect_token(core, may_rest + self.token_loss_idle(core));
        } else {
            self.expect_token(core, self.token_loss(core));
        }
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
