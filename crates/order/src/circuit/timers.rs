//! What a circuit does while the token is away, or seems to be: ask, send again, give up.
//!
//! Invariant: a token is not lost before what queued up while this process did not run was read.

use super::{Circuit, LATE_GRACE, PROBATION, Place, RESEND_MIN};
use crate::output::{Destination, TimerKind};
use crate::shared::Core;
use crate::wire::{Packet, Token};
use quorba_base::{Duration, Instant, NodeId};

impl Circuit {
    /// Asks for the token if it is away and needed: to send, or to have a gap repeated.
    pub(crate) fn ask_for_token(&mut self, core: &mut Core, to_send: bool) {
        // One that never rests comes by itself.
        if !matches!(self.place, Place::Away) || core.config.timing.rest_max.is_zero() {
            return;
        }
        let due = match (to_send, self.gap_since) {
            (true, _) => Some(core.now),
            (false, Some(since)) => Some(since + self.reorder_wait(core)),
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
            core.transmit(Destination::Each, &Packet::Request(request));
            core.counters.token_requests += 1;
            // No sooner than the token can be here, however far away it is.
            let pause = core.patient(self.request_pause).max(self.round_trip());
            self.request_at = Some(core.now + pause);
            self.request_pause = (self.request_pause * 2).min(core.config.timing.rest_max);
        }
    }

    /// A token that was here has come again: whoever sends it waits in vain.
    pub(crate) fn hear_repeated(&mut self, core: &mut Core, token: &Token) {
        if self.resend.as_ref().is_some_and(|resend| resend.token.hop == token.hop + 1) {
            self.resend_soon(core);
        }
    }

    /// A member asks for the token. If it was passed to just this one, it waits in vain.
    pub(crate) fn hear_request(&mut self, core: &mut Core, from: NodeId) {
        self.heard_wanted.insert(from);
        if self.resend.as_ref().is_some_and(|resend| resend.to == from) {
            self.resend_soon(core);
        }
    }

    /// The passed token may be lost: that is not found out by waiting for as long as it may rest.
    fn resend_soon(&mut self, core: &mut Core) {
        let arrives = RESEND_MIN.max(self.round_trip());
        let Some(resend) = &mut self.resend else { return };
        if resend.at.since(core.now) + arrives <= resend.pause {
            resend.at = core.now + resend.pause;
            self.send_again(core);
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
        core.links.see_trouble(core.now);
        self.send_again(core);
    }

    fn send_again(&self, core: &mut Core) {
        let Some(resend) = &self.resend else { return };
        let (to, token) = (resend.to, (*resend.token).clone());
        core.transmit(Destination::Node(to), &Packet::Token(token));
        core.counters.token_resent += 1;
    }

    /// Whether the token is lost.
    pub(crate) fn is_lost(&self, core: &Core) -> bool {
        let rests = matches!(self.place, Place::Resting { .. });
        !self.is_alone() && !rests && self.loss_at <= core.now
    }

    /// This process stood still for `late`: in that time it could hear nothing, and perhaps the
    /// others stood still as well. It does not count, but for as long as a token loss at most.
    pub(crate) fn excuse(&mut self, core: &Core, late: Duration) {
        self.stood_still |= late > PROBATION;
        let grace = late.clamp(LATE_GRACE, PROBATION);
        if self.excused <= self.token_loss(core) {
            self.excused += late.max(grace);
            self.loss_at = (self.loss_at + late).max(core.now + grace);
        }
    }

    /// This process stood still for so long that the others may have gone on without it. If they
    /// have not, it soon hears of the token.
    pub(crate) fn put_on_probation(&mut self, core: &Core) {
        (self.stood_still, self.on_probation) = (true, true);
        self.expect_token(core, PROBATION);
    }

    /// Whether this process stood still for long, and has not heard of the token since.
    pub(crate) const fn is_on_probation(&self) -> bool {
        self.on_probation
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
