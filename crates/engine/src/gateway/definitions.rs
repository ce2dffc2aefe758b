//! Groups that come, change and go, and the port that those share which have none of their own.
//!
//! On that port each request says in its object key to which group it goes, and under which key the
//! server knows the object ([`quorba_giop::split_shared_key`]).
//!
//! What it is not: what definitions say. Invariants: of a group that is no more nothing is kept,
//! and whoever waited for it was told so; a request that goes to a server has the key that the
//! server gave out.

use super::{Gateway, GroupBook, Rules};
use crate::answers;
use crate::config::GroupSettings;
use crate::output::{CloseReason, ConnectionId, Output};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::{ExceptionKind, Message, MinorCode, Request, split_shared_key};
use quorba_replica::{GroupId, RequestNumber};

/// Why a request is no use to anybody.
const NO_SUCH_GROUP: super::intake::Refusal =
    (ExceptionKind::ObjectNotExist, MinorCode::NoSuchGroup);

impl GroupBook {
    /// Whether addresses are remembered that were served lately.
    pub(super) fn remembers_somebody(&self) -> bool {
        self.parked.remembers_somebody() || self.reads.remembers_somebody()
    }
}

impl Gateway {
    /// There is a server outside, which local servers call.
    pub(crate) fn define_outside(&mut self, id: GroupId) {
        if self.groups.get_mut(id).is_none() {
            self.groups.insert(id, GroupBook::new(Rules::outside()));
        }
    }

    /// There is a group, or it has other rules from here on. `counted`: how often its references
    /// have become others.
    pub(crate) fn define(
        &mut self,
        (id, counted): (GroupId, u32),
        name: &Arc<str>,
        mut settings: GroupSettings,
    ) {
        self.initial.retain(|(_, group)| *group != id);
        let keys = core::mem::take(&mut settings.initial_keys);
        self.initial.extend(keys.into_iter().map(|key| (key, id)));
        let rules = Rules::of(settings, counted);
        if let Some(book) = self.groups.get_mut(id) {
            book.rules = rules;
            return;
        }
        self.names.insert(Arc::clone(name), id);
        self.groups.insert(id, GroupBook::new(rules));
    }

    /// The references to a group have become others so often.
    pub(crate) fn renumber(&mut self, id: GroupId, counted: u32) {
        if let Some(book) = self.groups.get_mut(id) {
            book.rules.references_counted = counted;
        }
    }

    /// There is no such group, or server outside, any more: its calls end, and connections to a
    /// port of its own.
    pub(crate) fn dissolve(&mut self, id: GroupId) {
        let Some(books) = self.groups.get_mut(id) else { return };
        let calls: Vec<RequestNumber> = books.book.iter().map(|(number, _)| number).collect();
        for number in calls {
            let Some(pending) = self.forget(id, number) else { continue };
            if let Some(client) = pending.waiter.client() {
                self.send(&client, answers::deleted(&client, pending.may_be_executed()));
            }
        }
        let is_its = |group: GroupId, caller: Option<GroupId>| group == id || caller == Some(id);
        let connections = self.connections.iter();
        let its: Vec<ConnectionId> = connections
            .filter(|(_, connection)| is_its(connection.group, connection.caller))
            .map(|(connection, _)| *connection)
            .collect();
        for connection in its {
            self.close(connection, CloseReason::Deleted);
        }
        self.forget_marks_of(id);
        self.awaiting_held.retain(|(_, group, _)| *group != id);
        self.awaiting_stable.retain(|(_, group, _)| *group != id);
        self.names.retain(|_, group| *group != id);
        self.initial.retain(|(_, group)| *group != id);
        self.groups.remove(id);
    }

    /// To which group a request on the shared port goes, and the object key that its servers know.
    pub(super) fn addressed<'r>(&self, request: &'r Request<'_>) -> Option<(GroupId, &'r [u8])> {
        self.named(request.target().object_key()?)
    }

    /// To which group a request goes that came to the port of `group`: what one service is known by
    /// is found at the ports of all. A server calls whom its group says that it calls.
    pub(super) fn known_by(
        &self,
        id: ConnectionId,
        group: GroupId,
        request: &Request<'_>,
    ) -> GroupId {
        let is_server = || self.connections.get(&id).is_some_and(|one| one.caller.is_some());
        if self.initial.iter().all(|(_, its)| *its != group) || is_server() {
            return group;
        }
        let Some(asked) = request.target().object_key() else { return group };
        let is_below = |key: &Bytes| {
            asked.strip_prefix(&key[..]).is_some_and(|rest| rest.first().is_none_or(|c| *c == b'/'))
        };
        let mut initial = self.initial.iter();
        initial.find(|(key, _)| is_below(key)).map_or(group, |(_, its)| *its)
    }

    /// A request on the shared port goes to no group: whether it exists is answered, everything
    /// else refused.
    pub(super) fn no_such_group(
        &mut self,
        id: ConnectionId,
        group: GroupId,
        message: &Message,
        request: &Request<'_>,
    ) {
        let awaited = request.response_expected().then_some(request.request_id());
        match awaited {
            Some(request_id) if answers::asks_for_existence(request) => {
                self.charge_answer(id);
                let bytes = answers::gone(message, request_id);
                self.out.push_back(Output::ClientSend { connection: id, bytes });
            }
            _ => self.refuse(id, group, message, awaited, NO_SUCH_GROUP),
        }
    }

    /// The same of an object key.
    pub(super) fn named<'k>(&self, object_key: &'k [u8]) -> Option<(GroupId, &'k [u8])> {
        let (name, own) = split_shared_key(object_key)?;
        Some((*self.names.get(name)?, own))
    }
}
