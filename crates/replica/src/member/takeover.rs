//! What a leader executes from, until its server is through with what it took over.
//!
//! The leader before it may have answered that. Should its own server not do so, and nobody else be
//! in, the next one is given the same once more.
//!
//! What it is not: a judgement; whether it was the server or the request is the group's to say
//! ([`crate::table::endings`]). Invariant: base and log are together all that the group was
//! delivered.

use super::{Member, Server, Stage};
use crate::state::passive::{Base, Logged, RequestLog};
use crate::words::history::History;
use crate::words::style::Duty;
use alloc::boxed::Box;
use bytes::Bytes;

/// See the module's text.
pub(super) struct Takeover {
    base: Base,
    /// What is behind it.
    log: RequestLog,
    /// The last request that was taken over, and how many of them the server is not through with.
    last: u64,
    left: usize,
}

impl Takeover {
    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// One more was delivered.
    pub(super) fn add(&mut self, request: Logged) {
        self.log.push(request);
    }

    /// The server is through with that request: whether it is with all that was taken over.
    pub(super) fn is_over_with(&mut self, request: History) -> bool {
        if request.count <= self.last {
            self.left = self.left.saturating_sub(1);
        }
        self.left == 0
    }

    /// The server has given its state behind the first requests, or what changed since the last.
    pub(super) fn has_state(&mut self, up_to: History, update: bool, state: &Bytes) {
        if update {
            // Only a server that goes on has what it changes.
            return;
        }
        self.base = Base { at: up_to, state: Some(state.clone()), updates: [].into() };
        self.log.drop_up_to(up_to.count);
    }
}

impl Member {
    /// Its server is about to be given this, and the log behind it.
    pub(super) fn takes_over(&self, base: &Base) -> Option<Box<Takeover>> {
        if self.duty != Duty::Lead || self.durable {
            return None;
        }
        let mut log = RequestLog::default();
        self.log.copies().into_iter().for_each(|entry| log.push(entry));
        let (last, left) = (log.requests().last()?, log.len());
        Some(Box::new(Takeover { base: base.clone(), log, last, left }))
    }

    /// The next server is given what this one executed from. Whether that is kept.
    pub(crate) fn begins_anew(&mut self) -> bool {
        let serves = matches!(self.stage, Stage::Serving { .. });
        let is_asked = self.is_asked_for_updates();
        // What only this server did with a request the next one may do otherwise.
        let is_whole = !is_asked && !self.statements.is_unshared();
        let is_of_use = serves && self.executes_now() && is_whole;
        let Some(takeover) = self.takeover.take_if(|_| is_of_use) else { return false };
        let Takeover { base, log, .. } = *takeover;
        self.takes_back_behind(base, log);
        // Updates of the next server go on from nothing that others have.
        self.want_checkpoint();
        self.server = Server::Replacing;
        self.executor.reset();
        self.executor.forget_not_given();
        true
    }

    /// What it said of its server does not count any more: it says the same again.
    pub(crate) fn says_again(&mut self) {
        self.executor.tell_anew();
    }
}
