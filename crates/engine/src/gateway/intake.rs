//! What is looked at in a request before it counts, and what is changed in it: all that would be
//! trouble for every server of the group is one client's trouble here.
//!
//! What it is not: who may call what. Invariants: it depends on nothing but the message, so every
//! gateway does the same with it; what needs no change is passed on as the bytes that came.

use super::Gateway;
use super::books::SHARED_PORT;
use crate::answers;
use crate::output::{ConnectionId, Output};
use crate::pending::Client;
use quorba_base::Instant;
use quorba_giop::{
    ExceptionKind, Message, MinorCode, PassedOver, Request, Rewrite, Target, Unaddressed, context,
};
use quorba_replica::GroupId;

/// Why a request is no use to anybody; it was not executed.
pub(super) type Refusal = (ExceptionKind, MinorCode);

const UNADDRESSED: Refusal = (ExceptionKind::ObjectNotExist, MinorCode::TargetUnreadable);

/// The request in the form in which servers get it, if that is another one than the one in which it
/// came: addressed by an object key (GIOP §15.4.2.2 has other ways), and without the offer to be
/// called over its own connection (GIOP §15.8), which is not the server's but the node's.
/// `own_key`: the key under which servers know the object, if that is another one.
///
/// # Errors
/// If a context cannot be read, at which servers have been seen to fail in ways of their own, if
/// the operation's name is none, or if there is no object key.
pub(super) fn plain(
    request: &Request<'_>,
    own_key: Option<&[u8]>,
) -> Result<Option<Message>, Refusal> {
    let mut is_bidirectional = false;
    for (id, data) in request.contexts() {
        let unreadable = (ExceptionKind::Marshal, MinorCode::ContextUnreadable);
        context::check(id, data).map_err(|_| unreadable)?;
        is_bidirectional |= id == context::BI_DIR_IIOP;
    }
    // A server whose ORB reads up to the first zero would execute another operation than the one
    // that was looked at here.
    if request.operation().contains(&0) {
        return Err((ExceptionKind::Marshal, MinorCode::OperationUnreadable));
    }
    let object_key = match request.target() {
        _ if own_key.is_some() => own_key,
        Target::Key(_) => None,
        target => Some(target.object_key().ok_or(UNADDRESSED)?),
    };
    if object_key.is_none() && !is_bidirectional {
        return Ok(None);
    }
    let drop_contexts: &[u32] = if is_bidirectional { &[context::BI_DIR_IIOP] } else { &[] };
    Ok(Some(request.rewrite(&Rewrite { object_key, drop_contexts, ..Rewrite::default() })))
}

impl Gateway {
    /// A request came on a connection. To which group it goes.
    pub(super) fn count_request(&mut self, now: Instant, id: ConnectionId) -> Option<GroupId> {
        let group = self.connections.get(&id)?.group;
        self.charge_rate(now, id);
        self.group(group).counters.requests += 1;
        Some(group)
    }

    /// A request or a question of a client counts against its address's rate.
    pub(super) fn charge_rate(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id).filter(|c| c.caller.is_none()) {
            self.peers.request(now, connection.peer.address);
        }
    }

    /// The gateway deals with a message of a client by itself.
    pub(super) fn charge_answer(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id).filter(|c| c.caller.is_none()) {
            self.peers.answer(self.now, connection.peer.address);
        }
    }

    /// A message is larger than may be taken in. If it is a request, its client is told, and what
    /// comes behind it is read.
    pub(super) fn pass_over(&mut self, id: ConnectionId) -> PassedOver {
        let Some(connection) = self.connections.get_mut(&id) else { return PassedOver::Unreadable };
        let before = connection.framer.buffered_bytes();
        let passed = connection.framer.pass_over();
        self.buffered_bytes -= before - connection.framer.buffered_bytes();
        if let PassedOver::Request { version, endian, awaited } = passed {
            self.peers.answer(self.now, connection.peer.address);
            (connection.version, connection.endian) = (version, endian);
            let counters = &mut self.groups[connection.group].counters;
            counters.requests += 1;
            counters.refused += 1;
            if let Some(request_id) = awaited {
                let client =
                    Client { connection: id, request_id, version, endian, is_outdated: false };
                let bytes = answers::too_large(&client);
                self.out.push_back(Output::ClientSend { connection: id, bytes });
            }
        }
        passed
    }

    /// A message that names its object in a way that cannot be read.
    pub(super) fn unaddressed(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &Message,
        asked: Unaddressed,
    ) {
        let Some(group) = self.count_request(now, id) else { return };
        match asked {
            Unaddressed::Call { request_id } => {
                let refusal = (ExceptionKind::Marshal, MinorCode::TargetUnreadable);
                self.refuse(id, group, message, Some(request_id), refusal);
            }
            Unaddressed::Oneway => self.group(group).counters.refused += 1,
            Unaddressed::Locate { request_id } => self.locate(id, message, request_id, None),
        }
    }

    /// Refuses a request that nobody has been given; one without an id wants no reply.
    pub(super) fn refuse(
        &mut self,
        id: ConnectionId,
        group: GroupId,
        message: &Message,
        request_id: Option<u32>,
        refusal: Refusal,
    ) {
        self.charge_answer(id);
        self.group(group).counters.refused += 1;
        if let Some(request_id) = request_id {
            let bytes = answers::refused(message, request_id, refusal);
            self.out.push_back(Output::ClientSend { connection: id, bytes });
        }
    }

    /// Every object that can be named is here: whether it exists is for the servers to say when it
    /// is called.
    pub(super) fn locate(
        &mut self,
        id: ConnectionId,
        message: &Message,
        request_id: u32,
        object_key: Option<&[u8]>,
    ) {
        self.charge_answer(id);
        let is_shared = self.connections.get(&id).is_some_and(|c| c.group == SHARED_PORT);
        let is_named = object_key.is_some_and(|key| !is_shared || self.named(key).is_some());
        let bytes = answers::located(message, request_id, is_named);
        self.out.push_back(Output::ClientSend { connection: id, bytes });
    }
}
