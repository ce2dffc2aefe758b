//! What servers are told of the request that they execute: the same at all members, and time that
//! does not go back from one request of a history to a later one.
//!
//! What it is not: a check of who executes what. A moment's seed names a place in one history of a
//! group, for it is the digest of all that was delivered before.

use crate::names::index_of;
use crate::servant::Operation;
use crate::world::World;
use bytes::Bytes;
use quorba_base::Instant;
use quorba_engine::replica::{GroupId, Moment};
use quorba_giop::{Body, Message};
use std::collections::BTreeMap;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Moments {
    told: BTreeMap<(GroupId, u64), Told>,
    /// When a group with `on_total_loss = "fresh"` was last seen without a history: what is told
    /// from there on may be of another history that begins in the same way.
    began: BTreeMap<GroupId, Instant>,
    /// The last of each server since it was given a state.
    last: BTreeMap<(GroupId, usize), Moment>,
}

struct Told {
    moment: Moment,
    operation: Operation,
    at: Instant,
}

impl Moments {
    /// Somebody saw the group begin from nothing.
    pub(super) fn begins(&mut self, now: Instant, group: GroupId) {
        self.began.insert(group, now);
    }

    /// A history ended, in a way that the fault model excuses.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.told.retain(|(of, _), _| *of != group);
        self.last.retain(|(of, _), _| *of != group);
    }

    /// A server gets a request, and would be told this.
    pub(crate) fn note(
        &mut self,
        at: Instant,
        (group, server): (GroupId, usize),
        moment: Moment,
        operation: Operation,
    ) -> Option<String> {
        let key = (group, moment.seed);
        let began = self.began.get(&group);
        let is_former = |told: &Told| began.is_some_and(|began| *began > told.at);
        if let Some(told) = self.told.get(&key)
            && (told.moment, &told.operation) != (moment, &operation)
            && !is_former(told)
        {
            let Told { moment: known, operation: same, .. } = told;
            let text = format!(
                "g{}: {operation:?} at {moment:?}, and {same:?} at {known:?}",
                index_of(group)
            );
            return Some(text);
        }
        self.told.insert(key, Told { moment, operation, at });
        let last = self.last.insert((group, server), moment);
        let earlier = last.filter(|last| last.number < moment.number && last.time > moment.time)?;
        Some(format!("g{}: {moment:?} comes behind {earlier:?}", index_of(group)))
    }
}

impl World {
    /// A node sends `bytes` to its server of `group`.
    pub(crate) fn note_moment(&mut self, node: usize, group: GroupId, bytes: &Bytes) {
        let Some(supervisor) = self.hosts[node].supervisors[index_of(group)] else { return };
        let Some(server) = supervisor.server else { return };
        let Ok(message) = Message::from_bytes(bytes.clone()) else { return };
        let Ok(Body::Request(request)) = message.parse() else { return };
        let operation = Operation::of(&request, message.endian());
        if matches!(operation, Operation::SetState(_)) {
            // What it had executed may not have counted.
            self.checks.moments.last.remove(&(group, server));
        }
        let engine = self.hosts[node].node.as_ref();
        let Some(moment) = engine.and_then(|engine| engine.moment(group)) else { return };
        if let Some(text) = self.checks.moments.note(self.now, (group, server), moment, operation) {
            self.checks.violate("moments", self.now, format!("n{node} {text}"));
        }
    }
}
