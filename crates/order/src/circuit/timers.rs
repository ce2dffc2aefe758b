//! What a circuit does while the token is away, or seems to be: ask, send again, give up.
//!
//! Invariant: a token is not lost before what queued up while this process did not run was read.

use super::{Circuit, LATE, LATE_GRACE, Place, RESEND_MIN};
use crate::output::{Destination, TimerKind};
use crate::shared::Core;
use crate::wire::{Packet, Token};
use quorba_base::{Instant, NodeId};

impl Circuit {
    /// Asks for the token if it is away and needed: to send, or to have a gap repeated.
    pub(crate) fn ask_for_token(&mut self, core: &mut Core, to_send: bool) {
        // One that never rests comes by itself.
        if !matches!(self.place, Place::Away) || core.config.timing.rest_max.is_zero() {
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
            core.transmit(Destination::Each, &Packet::Request(request));
            core.counters.token_requests += 1;
            self.request_at = Some(core.now + core.patient(self.request_pause));
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
        let Some(resend) = &mut self.resend else { return };
        if resend.at.since(core.now) + RESEND_MIN <= resend.pause {
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
        self.send_again(core);
    }

    fn send_again(&self, core: &mut Core) {
        let Some(resend) = &self.resend else { return };
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
