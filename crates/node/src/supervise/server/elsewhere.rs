//! A server that somebody else runs, and what is looked at in one that serves, whoever runs it.
//!
//! What it is not: how it is looked for; that is shared with others. Invariant: what is told of it
//! is what was found last.

use super::{Server, Stage};
use crate::endpoint::ServerEndpoint;
use crate::health::NOT_THERE;
use crate::launch::wanted_key;
use crate::supervise::hands::{Hands, Source};
use crate::supervise::object::{Found, ObjectLook};
use crate::supervise::places::Sought;
use crate::supervise::{Life, ServerNews};
use quorba_giop::corbaloc::EscapedKey;
use std::time::Instant;

impl Server {
    /// It was looked for.
    pub(in crate::supervise) fn sought(&mut self, sought: Sought, now: Instant, hands: &mut Hands) {
        let Stage::Seeking { began, at, last } = &mut self.stage else { return };
        match sought {
            Sought::Found(endpoint) => {
                let began = *began;
                self.serves(endpoint.port(), hands);
                let life = Life { key: self.key, stops: self.supervision.stops() };
                (hands.tell)(self.id, life, ServerNews::Up(endpoint.clone()));
                self.supervision.is_elsewhere();
                let object = ObjectLook::begin(&self.of.group, now);
                hands.timers.set(self.key, object.due());
                self.stage = Stage::Connected { began, endpoint: Some(endpoint), object };
            }
            // What was told is what is the case.
            Sought::Not(_, found) if *last == Some(found) => {}
            Sought::Not(endpoint, found) => {
                *last = Some(found);
                let text = found.text(&endpoint, wanted_key(&self.of.group));
                let reason = format!("{at} {NOT_THERE}: it {text}");
                self.fail(reason, hands);
            }
            Sought::Failed(reason) => {
                *last = None;
                self.fail(reason, hands);
            }
        }
    }

    /// Whether the object that references name is there.
    pub(super) fn look_for_object(
        &self,
        endpoint: Option<&ServerEndpoint>,
        mut object: ObjectLook,
        now: Instant,
        hands: &mut Hands,
    ) -> ObjectLook {
        let Some((endpoint, key)) = endpoint.zip(self.of.group.object_key.as_deref()) else {
            return ObjectLook::default();
        };
        let token = Source::Look(self.key).token();
        let found = object.step((endpoint, key), token, now, &hands.poller);
        match found {
            Some(Found::Here) => {
                hands.update(self.id, self.key, |known| known.missing_object = None);
            }
            Some(Found::Missing) => {
                let key = EscapedKey(key).to_string();
                hands.update(self.id, self.key, |known| known.missing_object = Some(key.into()));
            }
            Some(Found::Unknown) | None => {}
        }
        hands.timers.set(self.key, object.due());
        object
    }
}
