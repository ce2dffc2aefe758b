//! One address at which servers of groups are looked for, and a look at it.
//!
//! Invariant: with one connection everybody who looks for a server there is told, unless the server
//! does not answer; then the next look begins with those who were not.

use super::LookResult;
use crate::endpoint::ServerEndpoint;
use crate::launch::wanted_key;
use crate::ready::Look;
use crate::supervise::Key;
use crate::supervise::looker::Looker;
use quorba_config::{Endpoint, Group};
use quorba_net::Poller;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the module's text.
pub(super) struct Place {
    pub(super) at: Endpoint,
    pub(super) seekers: BTreeMap<Key, Arc<Group>>,
    /// When somebody began to look, or hurried.
    pub(super) since: Instant,
    pub(super) pause: Duration,
    pub(super) due: Option<(super::Urgency, Instant)>,
    pub(super) stage: Stage,
    /// The object that was asked for last without an answer.
    unanswered: Option<Box<[u8]>>,
}

pub(super) enum Stage {
    Rests,
    /// Its name is looked up.
    Resolving,
    Looks(Box<Round>),
}

/// A look.
pub(super) struct Round {
    endpoint: ServerEndpoint,
    step: Step,
}

enum Step {
    /// There was no connection.
    Deaf,
    Connecting(Looker),
    Asking(Looker, Asked),
}

/// Objects by their keys, and who wants each.
struct Asked {
    key: Box<[u8]>,
    by: Vec<Key>,
    rest: Vec<(Box<[u8]>, Vec<Key>)>,
}

/// What came of a step of a look.
pub(super) enum Told {
    /// It goes on; the next step is due then, at the latest.
    NotYet(Instant),
    /// It is over, and there was more to be asked.
    Some,
    /// It is over.
    All,
}

impl Round {
    /// # Errors
    /// This node has no descriptor left to look with.
    pub(super) fn begin(
        endpoint: ServerEndpoint,
        token: u64,
        now: Instant,
    ) -> io::Result<Box<Self>> {
        let step = match Looker::begin(&endpoint, None, token, now)? {
            Ok(looker) => Step::Connecting(looker),
            Err(_) => Step::Deaf,
        };
        Ok(Box::new(Self { endpoint, step }))
    }
}

impl Place {
    pub(super) fn new(at: Endpoint, now: Instant) -> Self {
        Self {
            at,
            seekers: BTreeMap::new(),
            since: now,
            pause: Duration::ZERO,
            due: None,
            stage: Stage::Rests,
            unanswered: None,
        }
    }

    pub(super) const fn is_resting(&self) -> bool {
        matches!(self.stage, Stage::Rests)
    }

    /// Something may have come, or be due: tells who looks what was `found`; nothing if no look is
    /// under way.
    pub(super) fn step(
        &mut self,
        now: Instant,
        poller: &Poller,
        found: &mut Vec<(Key, LookResult)>,
    ) -> Option<Told> {
        let round = match std::mem::replace(&mut self.stage, Stage::Rests) {
            Stage::Looks(round) => round,
            other => {
                self.stage = other;
                return None;
            }
        };
        let Round { endpoint, mut step } = *round;
        loop {
            step = match step {
                Step::Deaf => {
                    self.tell_all(&endpoint, Look::Deaf, found);
                    return Some(Told::All);
                }
                Step::Connecting(mut looker) => match looker.step(now, poller) {
                    None => return self.wait(endpoint, looker.until(), Step::Connecting(looker)),
                    Some(Look::Ready) => match self.connected(&endpoint, found) {
                        None => return Some(Told::All),
                        Some(asked) => {
                            looker.ask(&asked.key, now);
                            Step::Asking(looker, asked)
                        }
                    },
                    Some(_) => Step::Deaf,
                },
                Step::Asking(mut looker, mut asked) => {
                    let Some(look) = looker.step(now, poller) else {
                        return self.wait(endpoint, looker.until(), Step::Asking(looker, asked));
                    };
                    self.tell(&asked.by, &endpoint, look, found);
                    if matches!(look, Look::Silent | Look::Strange) {
                        // Those before it have had their turn.
                        let goes_on = asked.rest.last().is_some_and(|(key, _)| *key > asked.key);
                        self.unanswered = Some(asked.key);
                        return Some(if goes_on { Told::Some } else { Told::All });
                    }
                    let Some((key, by)) = asked.rest.pop() else {
                        self.unanswered = None;
                        return Some(Told::All);
                    };
                    (asked.key, asked.by) = (key, by);
                    looker.ask(&asked.key, now);
                    Step::Asking(looker, asked)
                }
            };
        }
    }

    fn wait(&mut self, endpoint: ServerEndpoint, until: Instant, step: Step) -> Option<Told> {
        self.stage = Stage::Looks(Box::new(Round { endpoint, step }));
        Some(Told::NotYet(until))
    }

    /// There is a connection, which is enough for who wants no object. Which objects are asked for,
    /// if any: first those behind the one that was not answered.
    fn connected(
        &mut self,
        endpoint: &ServerEndpoint,
        found: &mut Vec<(Key, LookResult)>,
    ) -> Option<Asked> {
        let (mut content, mut by_key) = (Vec::new(), BTreeMap::<Box<[u8]>, Vec<Key>>::new());
        for (key, group) in &self.seekers {
            match wanted_key(group) {
                None => content.push(*key),
                Some((_, object)) => by_key.entry(object.into()).or_default().push(*key),
            }
        }
        self.tell(&content, endpoint, Look::Ready, found);
        let unanswered = self.unanswered.clone();
        let is_behind = |key: &[u8]| unanswered.as_deref().is_none_or(|last| key > last);
        // Taken from the end.
        let mut rest: Vec<_> = by_key.into_iter().rev().collect();
        rest.sort_by_key(|(key, _)| is_behind(key));
        let (key, by) = rest.pop()?;
        Some(Asked { key, by, rest })
    }

    fn tell_all(
        &mut self,
        endpoint: &ServerEndpoint,
        look: Look,
        found: &mut Vec<(Key, LookResult)>,
    ) {
        let sought = |key: &Key| (*key, LookResult::Not(endpoint.clone(), look));
        found.extend(self.seekers.keys().map(sought));
    }

    /// Those who have found it look no more.
    fn tell(
        &mut self,
        keys: &[Key],
        endpoint: &ServerEndpoint,
        look: Look,
        found: &mut Vec<(Key, LookResult)>,
    ) {
        for key in keys.iter().filter(|key| self.seekers.contains_key(key)) {
            found.push((
                *key,
                match look {
                    Look::Ready => LookResult::Found(endpoint.clone()),
                    look => LookResult::Not(endpoint.clone(), look),
                },
            ));
        }
        if look == Look::Ready {
            keys.iter().for_each(|key| _ = self.seekers.remove(key));
        }
    }
}
