//! A server that somebody else runs, and what is looked at in one that serves, whoever runs it.
//!
//! What it is not: how it is looked for; that is shared with others. Invariant: what is told of it
//! is what was found last.

use super::{Server, Stage};
use crate::endpoint::ServerEndpoint;
use crate::launch::wanted_key;
use crate::supervise::object::{Found, ObjectLook};
use crate::supervise::places::LookResult;
use crate::supervise::reactor::{Reactor, Source};
use crate::supervise::{Life, ServerNews};
use quorba_admin::health::NOT_THERE;
use quorba_giop::corbaloc::EscapedKey;
use std::time::Instant;

impl Server {
    /// It was looked for.
    pub(in crate::supervise) fn sought(
        &mut self,
        sought: LookResult,
        now: Instant,
        reactor: &mut Reactor,
    ) {
        let Stage::Seeking { began, at, last } = &mut self.stage else { return };
        match sought {
            LookResult::Found(endpoint) => {
                let began = *began;
                self.serves(endpoint.port(), reactor);
                let life = Life { key: self.key, stops: self.supervision.stops() };
                (reactor.tell)(self.id, life, ServerNews::Up(endpoint.clone()));
                self.supervision.is_elsewhere();
                let object = ObjectLook::begin(&self.of.group, now);
                reactor.timers.set(self.key, object.due());
                self.stage = Stage::Connected { began, endpoint: Some(endpoint), object };
            }
            // What was told is what is the case.
            LookResult::Not(_, found) if *last == Some(found) => {}
            LookResult::Not(endpoint, found) => {
                *last = Some(found);
                let text = found.text(&endpoint, wanted_key(&self.of.group));
                let reason = format!("{at} {NOT_THERE}: it {text}");
                self.fail(reason, reactor);
            }
            LookResult::Failed(reason) => {
                *last = None;
                self.fail(reason, reactor);
            }
        }
    }

    /// Whether the object that references name is there.
    pub(super) fn look_for_object(
        &self,
        endpoint: Option<&ServerEndpoint>,
        mut object: ObjectLook,
        now: Instant,
        reactor: &mut Reactor,
    ) -> ObjectLook {
        let Some((endpoint, key)) = endpoint.zip(self.of.group.object_key.as_deref()) else {
            return ObjectLook::default();
        };
        let token = Source::Look(self.key).token();
        let found = object.step((endpoint, key), token, now, &reactor.poller);
        match found {
            Some(Found::Here) => {
                reactor.update(self.id, self.key, |known| known.missing_object = None);
            }
            Some(Found::Missing) => {
                let key = EscapedKey(key).to_string();
                reactor.update(self.id, self.key, |known| known.missing_object = Some(key.into()));
            }
            Some(Found::Unknown) | None => {}
        }
        reactor.timers.set(self.key, object.due());
        object
    }
}
