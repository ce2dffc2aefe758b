//! A look at a server that the supervisor's poller waits for.
//!
//! Invariant: what the poller cannot be told to wait for is seen when its time is up.

use crate::endpoint::ServerEndpoint;
use crate::ready::{Look, Probe};
use quorba_net::{Interest, Poller};
use std::io;
use std::time::Instant;

/// See the module's text.
pub(super) struct Looker {
    probe: Probe,
    token: u64,
    /// What the poller waits for.
    awaited: Option<Interest>,
}

impl Looker {
    /// Begins one, of which [`Self::step`] tells what came; or what came of it at once.
    ///
    /// # Errors
    /// This node has no descriptor left to look with.
    pub(super) fn begin(
        endpoint: &ServerEndpoint,
        key: Option<&[u8]>,
        token: u64,
        now: Instant,
    ) -> io::Result<Result<Self, Look>> {
        let probe = Probe::begin(endpoint, key, now)?;
        Ok(probe.map(|probe| Self { probe, token, awaited: None }))
    }

    /// The socket may be ready, or the time up: what came of the look, if it is over.
    pub(super) fn step(&mut self, now: Instant, poller: &Poller) -> Option<Look> {
        let look = self.probe.step(now);
        let interest = self.probe.interest();
        if look.is_none() && self.awaited != Some(interest) {
            let (socket, token) = (self.probe.socket(), self.token);
            let told = match self.awaited {
                None => poller.add(socket, token, interest),
                Some(_) => poller.modify(socket, token, interest),
            };
            self.awaited = told.ok().map(|()| interest);
        }
        look
    }

    /// Asks for another object on the same connection.
    pub(super) fn ask(&mut self, key: &[u8], now: Instant) {
        self.probe.ask(key, now);
    }

    pub(super) const fn until(&self) -> Instant {
        self.probe.until()
    }
}
