//! Servers that somebody else runs and that are not there: looked for at their addresses, until
//! they are.
//!
//! What it is not: who watches one that is there; that is lost when its connection is. Invariants:
//! all who look for a server at one address share one look; in all, no more than
//! [`LOOKS_PER_SECOND`] are begun, so that what it costs when all are away is bounded; one that
//! went away a moment ago comes before those that have been away for long.

mod place;

use self::place::{Place, Round, Told};
use super::reactor::Source;
use super::{Key, SupervisorMessage};
use crate::endpoint::ServerEndpoint;
use crate::ready::Look;
use crate::resolve::resolve;
use crate::wake::MailboxSender;
use crate::workers::Workers;
use quorba_config::{Endpoint, Group, Host};
use quorba_net::Poller;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Looks that are begun, in all.
const LOOKS_PER_SECOND: u32 = 200;
/// So many of them may be made up for at once.
const LOOKS_AT_ONCE: u32 = 20;
/// How long it waits when it has begun as many as it may.
const NEXT_LOOKS: Duration = Duration::from_millis(50);
/// For so long a server that went away is looked for every [`SOON`].
const QUICK_FOR: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_millis(200);
/// Afterwards pauses double up to this one.
const SELDOM: Duration = Duration::from_secs(5);

/// What came of a look.
pub(super) enum LookResult {
    /// It serves here.
    Found(ServerEndpoint),
    /// It does not serve yet.
    Not(ServerEndpoint, Look),
    /// Nobody could look.
    Failed(String),
}

/// Why a place is due, in the order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Urgency {
    /// A look that is under way has had its time.
    UnderWay,
    /// What is looked for went away a moment ago.
    Quick,
    Slow,
}

/// See the module's text.
pub(super) struct Places {
    numbers: BTreeMap<Endpoint, u64>,
    all: BTreeMap<u64, Place>,
    last: u64,
    due: BTreeSet<(Urgency, Instant, u64)>,
    /// Looks that may be begun now.
    credit: u32,
    refilled: Instant,
    /// Nothing was due before.
    began: Instant,
    resolvers: Workers,
    messages: MailboxSender<SupervisorMessage>,
    /// What came of looks, for whom.
    found: Vec<(Key, LookResult)>,
}

impl Places {
    /// `resolvers`: for names; what comes of them is a message.
    pub(super) fn new(
        resolvers: Workers,
        messages: MailboxSender<SupervisorMessage>,
        now: Instant,
    ) -> Self {
        Self {
            numbers: BTreeMap::new(),
            all: BTreeMap::new(),
            last: 0,
            due: BTreeSet::new(),
            credit: LOOKS_AT_ONCE,
            refilled: now,
            began: now,
            resolvers,
            messages,
            found: Vec::new(),
        }
    }

    /// A server of `group` is looked for there, from now on and at once.
    pub(super) fn seek(&mut self, at: &Endpoint, key: Key, group: &Arc<Group>, now: Instant) {
        let number = match self.numbers.get(at) {
            Some(number) => *number,
            None => {
                self.last += 1;
                self.numbers.insert(at.clone(), self.last);
                self.all.insert(self.last, Place::new(at.clone(), now));
                self.last
            }
        };
        self.place(number).seekers.insert(key, Arc::clone(group));
        self.hurry(at, now);
    }

    fn place(&mut self, number: u64) -> &mut Place {
        self.all.get_mut(&number).expect("a place that has a number is there")
    }

    /// It is not looked for any more.
    pub(super) fn leave(&mut self, at: &Endpoint, key: Key) {
        let Some(number) = self.numbers.get(at).copied() else { return };
        let place = self.place(number);
        place.seekers.remove(&key);
        self.forget_if_left(number);
    }

    fn forget_if_left(&mut self, number: u64) {
        if self.all.get(&number).is_some_and(|place| place.seekers.is_empty())
            && let Some(place) = self.all.remove(&number)
        {
            self.numbers.remove(&place.at);
            if let Some((urgency, at)) = place.due {
                self.due.remove(&(urgency, at, number));
            }
        }
    }

    /// Somebody believes that it is there now.
    pub(super) fn hurry(&mut self, at: &Endpoint, now: Instant) {
        let Some(number) = self.numbers.get(at).copied() else { return };
        let place = self.place(number);
        place.since = now;
        place.pause = SOON;
        if place.is_resting() {
            self.set_due(number, Some((Urgency::Quick, now)));
        }
    }

    fn set_due(&mut self, number: u64, due: Option<(Urgency, Instant)>) {
        let Some(place) = self.all.get_mut(&number) else { return };
        let before = std::mem::replace(&mut place.due, due);
        if let Some((urgency, at)) = before {
            self.due.remove(&(urgency, at, number));
        }
        self.due.extend(due.map(|(urgency, at)| (urgency, at, number)));
    }

    fn first(&self, urgency: Urgency) -> Option<(Instant, u64)> {
        // Not by going through those before it: all may be due a moment after the start.
        let (of, at, number) = self.due.range((urgency, self.began, 0)..).next()?;
        (*of == urgency).then_some((*at, *number))
    }

    /// When [`Self::run`] is wanted.
    pub(super) fn next(&self) -> Option<Instant> {
        let under_way = self.first_of(Urgency::UnderWay);
        let wanted = [Urgency::Quick, Urgency::Slow].map(|urgency| self.first_of(urgency));
        let wanted = wanted.into_iter().flatten().min();
        let allowed = if self.credit == 0 { self.refilled + NEXT_LOOKS } else { self.refilled };
        [under_way, wanted.map(|at| at.max(allowed))].into_iter().flatten().min()
    }

    fn first_of(&self, urgency: Urgency) -> Option<Instant> {
        self.first(urgency).map(|(at, _)| at)
    }

    fn refill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.refilled).as_millis();
        let gained = since.saturating_mul(LOOKS_PER_SECOND.into()) / 1000;
        if gained > 0 {
            let gained = u32::try_from(gained).unwrap_or(u32::MAX);
            self.credit = self.credit.saturating_add(gained).min(LOOKS_AT_ONCE);
            self.refilled = now;
        }
    }

    /// Does what is due, and gives what came of it since the last time.
    pub(super) fn run(&mut self, now: Instant, poller: &Poller) -> Vec<(Key, LookResult)> {
        while let Some((at, number)) = self.first(Urgency::UnderWay)
            && at <= now
        {
            self.step(number, now, poller);
        }
        self.refill(now);
        while self.credit > 0 {
            let quick = self.first(Urgency::Quick).filter(|(at, _)| *at <= now);
            let next = quick.or_else(|| self.first(Urgency::Slow).filter(|(at, _)| *at <= now));
            let Some((_, number)) = next else { break };
            self.credit -= 1;
            self.look(number, now, poller);
        }
        std::mem::take(&mut self.found)
    }

    /// Begins a look.
    fn look(&mut self, number: u64, now: Instant, poller: &Poller) {
        self.set_due(number, None);
        let place = self.place(number);
        let at = place.at.clone();
        if let Host::Address(address) = at.host {
            return self.look_at(number, SocketAddr::new(address, at.port), now, poller);
        }
        place.stage = place::Stage::Resolving;
        let messages = self.messages.clone();
        let job = move || {
            messages.send(SupervisorMessage::Resolved(number, resolve(&at)));
        };
        if let Err(error) = self.resolvers.run(job) {
            self.fail(number, &error, now);
        }
    }

    /// A name was looked up.
    pub(super) fn resolved(
        &mut self,
        number: u64,
        address: std::io::Result<SocketAddr>,
        now: Instant,
        poller: &Poller,
    ) {
        let waits = |place: &Place| matches!(place.stage, place::Stage::Resolving);
        if !self.all.get(&number).is_some_and(waits) {
            return;
        }
        match address {
            Ok(address) => self.look_at(number, address, now, poller),
            Err(error) => self.fail(number, &error, now),
        }
    }

    fn look_at(&mut self, number: u64, address: SocketAddr, now: Instant, poller: &Poller) {
        let place = self.place(number);
        match Round::begin(ServerEndpoint::Address(address), Source::Place(number).token(), now) {
            Ok(round) => {
                place.stage = place::Stage::Looks(round);
                self.step(number, now, poller);
            }
            Err(error) => self.fail(number, &error, now),
        }
    }

    fn fail(&mut self, number: u64, error: &std::io::Error, now: Instant) {
        if let Some(place) = self.all.get(&number) {
            let text = format!("{}: {error}", place.at);
            let told = place.seekers.keys().map(|key| (*key, LookResult::Failed(text.clone())));
            self.found.extend(told);
        }
        self.rest(number, false, now);
    }

    /// Something may have come, or be due, of a look that is under way.
    pub(super) fn step(&mut self, number: u64, now: Instant, poller: &Poller) {
        let Some(place) = self.all.get_mut(&number) else { return };
        match place.step(now, poller, &mut self.found) {
            None => {}
            Some(Told::NotYet(until)) => self.set_due(number, Some((Urgency::UnderWay, until))),
            Some(over) => {
                self.rest(number, matches!(over, Told::Some), now);
                self.forget_if_left(number);
            }
        }
    }

    /// A look is over; `goes_on`: there was more to be asked.
    fn rest(&mut self, number: u64, goes_on: bool, now: Instant) {
        let Some(place) = self.all.get_mut(&number) else { return };
        place.stage = place::Stage::Rests;
        let due = if goes_on {
            (Urgency::Quick, now)
        } else if now.saturating_duration_since(place.since) < QUICK_FOR {
            (Urgency::Quick, now + SOON)
        } else {
            place.pause = (place.pause * 2).min(SELDOM);
            // A quarter more or less, so that those that went away together part.
            let part = u32::try_from(number.wrapping_mul(0x9e37_79b9) >> 8 & 0xff).unwrap_or(0);
            (Urgency::Slow, now + place.pause * (192 + part / 2) / 256)
        };
        self.set_due(number, Some(due));
    }
}

#[cfg(test)]
mod tests;
