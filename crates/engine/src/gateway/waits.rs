//! Calls that wait until there is something to answer: `pull` of an event channel.
//!
//! A servant cannot wait: it would keep its group waiting. So the gateway holds such a call, and
//! tries again after a pause that grows, and that is the longer the more are held. Where the call
//! goes past the order it is called again; where it is ordered, the leader is asked past the order
//! whether there is something, and only then it is ordered.
//!
//! What it is not: a bound. Who calls says how long it waits: by its connection, by a
//! CancelRequest, by the expiration in FT_REQUEST. Invariants: a call that is held is with nobody
//! else and in no queue; each attempt has a number of its own, so none is answered from what is
//! remembered of the one before; an answer that there is nothing counts when it is as safe as any
//! other one; what nobody waits for any more is tried no more.

use super::Gateway;
use super::requests::is_late_by;
use crate::answers;
use crate::output::ConnectionId;
use crate::pending::{Disks, Kind, Outcome, Pending, Stage, Waiter};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Body, Completion, ExceptionKind, Message, MinorCode, ReplyStatus, Request, ResponseFlags,
};
use quorba_replica::{GroupId, RequestEnvelope, RequestNumber, WaitRule};

/// The first pause, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The pause is no shorter than this for each call that is held.
const PAUSE_PER_CALL: Duration = Duration::from_millis(1);
/// Of what the gateway may hold for clients, one part in so many may be such calls.
const SHARE: usize = 4;
/// Octets of an object's key; objects that wait have shorter ones.
const KEY_BYTES_MAX: usize = 256;
/// Octets of such a call, which has no arguments: an attempt is to cost little.
const CALL_BYTES_MAX: usize = 4 << 10;
/// How long only questions are asked. What another gateway has lost a question does not find, and
/// after this time it is given to whoever pulls here.
const ASKED_MAX: Duration = Duration::from_secs(10);
/// So many questions in a row that nobody took; then the call is ordered without one.
const UNTAKEN_MAX: u8 = 20;

/// What a call that waits has besides.
#[derive(Debug)]
pub(crate) struct Wait {
    /// The object that is called.
    object_key: Bytes,
    /// It goes past the order; else a question does.
    is_read: bool,
    /// Before the next attempt.
    pause: Duration,
    /// It is held until then; none: an attempt is under way.
    until: Option<Instant>,
    /// This attempt is a question, whether there is something.
    asks: bool,
    /// Questions since the last one that was taken.
    untaken: u8,
    /// When the call itself was made last.
    called_at: Instant,
}

impl Wait {
    /// One that is held.
    const fn is_held(&self) -> bool {
        self.until.is_some()
    }

    /// This attempt is a question, whether there is something.
    pub(super) const fn asks(&self) -> bool {
        self.asks
    }

    /// Until when it is held.
    pub(super) const fn until(&self) -> Option<Instant> {
        self.until
    }
}

/// What an attempt was answered.
enum Heard {
    /// There is nothing.
    Nothing,
    /// There is something: the call is to be made.
    Something,
    /// What its client is to be told.
    Answer,
}

impl Heard {
    /// Of a reply that came past the order, to a question or to the call, or through it.
    fn of(reply: &Bytes, asks: bool, is_past: bool) -> Self {
        let Ok(message) = Message::from_bytes(reply.clone()) else { return Self::Answer };
        let Ok(Body::Reply(reply)) = message.parse() else { return Self::Answer };
        if asks && reply.status() == ReplyStatus::NoException {
            let has_something = reply.reader().read_bool("answer").unwrap_or(true);
            return if has_something { Self::Something } else { Self::Nothing };
        }
        match reply.system_exception() {
            // Who is called past the order may not know yet that it leads.
            Some(Ok(raised))
                if is_past
                    && raised.kind == ExceptionKind::Transient
                    && raised.completed == Completion::No =>
            {
                Self::Nothing
            }
            Some(Ok(raised)) if MinorCode::from_minor(raised.minor) == NOTHING => Self::Nothing,
            _ if asks => Self::Something,
            _ => Self::Answer,
        }
    }
}

const NOTHING: Option<MinorCode> = Some(MinorCode::NothingYet);

impl Pending {
    /// Whether it is a question, and not the call itself.
    pub(super) fn asks(&self) -> bool {
        self.wait.as_ref().is_some_and(|wait| wait.asks)
    }

    pub(super) fn is_held(&self) -> bool {
        self.wait.as_ref().is_some_and(|wait| wait.is_held())
    }

    /// What is sent to the leader past the order; nothing if no question can be made of it.
    pub(super) fn past_the_order(&self, rule: Option<&WaitRule>) -> Option<Bytes> {
        match self.asks() {
            true => rule.and_then(|rule| question(&self.request, rule)),
            false => Some(self.request.giop.clone()),
        }
    }
}

/// The question whether a call would be answered.
fn question(request: &RequestEnvelope, rule: &WaitRule) -> Option<Bytes> {
    let message = Message::from_bytes(request.giop.clone()).ok()?;
    let Ok(Body::Request(request)) = message.parse() else { return None };
    let head = RequestHead {
        version: message.version(),
        endian: message.endian(),
        request_id: 0,
        response_flags: ResponseFlags::WithTarget,
        object_key: request.object_key()?,
        operation: &rule.question,
        contexts: &[],
    };
    Some(build::request(&head, |_| {}).bytes().clone())
}

impl Gateway {
    /// What a client's call has besides, if it is one that waits. `is_named`: by its client, so
    /// that the group remembers what the first one was answered that is ordered.
    pub(super) fn wait_of(
        &self,
        (id, group): (ConnectionId, GroupId),
        request: &Request<'_>,
        is_named: bool,
    ) -> Option<Box<Wait>> {
        let rule = self.groups[group].rules.reads.waits()?;
        let connection = self.connections.get(&id).filter(|it| it.caller.is_none())?;
        let object_key = request.object_key().filter(|key| key.len() <= KEY_BYTES_MAX)?;
        let waits = request.response_expected() && rule.has(request.operation(), Some(object_key));
        let is_small = request.body().is_empty() && request.body_offset() <= CALL_BYTES_MAX;
        if !waits || !is_small {
            return None;
        }
        let is_read = self.is_read(group, request);
        // Who pulls here for the first time may be given again what was lost on its way through
        // another gateway: only the call itself can tell.
        let is_known = connection.pulled_last.as_deref() == Some(object_key);
        Some(Box::new(Wait {
            object_key: Bytes::copy_from_slice(object_key),
            is_read,
            pause: PAUSE_MIN,
            until: None,
            asks: !is_read && (is_named || is_known),
            untaken: 0,
            called_at: self.now,
        }))
    }

    /// Whether it is the question that only gateways ask.
    pub(super) fn is_question(&self, group: GroupId, request: &Request<'_>) -> bool {
        let rule = self.groups[group].rules.reads.waits();
        rule.is_some_and(|rule| rule.is_question(request.operation(), request.object_key()))
    }

    /// A reply to what went past the order. Whether nobody is to be told it: the call is held, or
    /// it is ordered now.
    pub(super) fn keeps(&mut self, group: GroupId, number: RequestNumber, reply: &Bytes) -> bool {
        let Some(pending) = self.group(group).book.get_mut(number) else { return false };
        let Some(wait) = pending.wait.as_mut().filter(|wait| !wait.is_held()) else { return false };
        wait.untaken = 0;
        match Heard::of(reply, wait.asks, true) {
            Heard::Answer => return false,
            Heard::Something if self.is_awaited(group, number) => {
                self.group(group).order_read(number);
            }
            Heard::Nothing | Heard::Something => self.hold(group, number),
        }
        true
    }

    /// An ordered call was answered, as safely as its group asks. Whether it is held, because there
    /// is nothing yet. What its client has named is answered always the same.
    pub(super) fn goes_on(&mut self, group: GroupId, number: RequestNumber) -> bool {
        let Some(pending) = self.group(group).book.get(number) else { return false };
        let Outcome::Reply(reply) = &pending.outcome else { return false };
        let waits = pending.wait.is_some() && !pending.is_read() && pending.request.ft.is_none();
        let is_past = pending.wait.as_ref().is_some_and(|wait| wait.is_read);
        if !waits || !matches!(Heard::of(reply, false, is_past), Heard::Nothing) {
            return false;
        }
        self.hold(group, number);
        true
    }

    /// Nobody could be asked, or has answered: the read is ordered, and a question asked again.
    pub(super) fn order_instead(&mut self, group: GroupId, number: RequestNumber) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        if let Some(wait) = pending.wait.as_mut().filter(|wait| wait.asks) {
            wait.untaken = wait.untaken.saturating_add(1);
            if wait.untaken < UNTAKEN_MAX {
                return self.hold(group, number);
            }
        }
        self.group(group).order_read(number);
    }

    /// It is answered: its client pulls there.
    pub(super) fn note_pulled(&mut self, pending: &Pending) {
        if let Some(wait) = &pending.wait
            && let Some(connection) = self.connections.get_mut(&pending.connection)
        {
            connection.pulled_last = Some(wait.object_key.clone());
        }
    }

    /// Whether somebody is there to be answered.
    fn is_awaited(&self, group: GroupId, number: RequestNumber) -> bool {
        let client = self.groups[group].book.get(number).and_then(|one| one.waiter.client());
        let connection = client.and_then(|client| self.connections.get(&client.connection));
        connection.is_some_and(|connection| !connection.half_closed)
    }

    /// The call is held, as a new one, until it is tried again.
    fn hold(&mut self, group: GroupId, number: RequestNumber) {
        let is_awaited = self.is_awaited(group, number);
        let Some(mut pending) = self.forget(group, number) else { return };
        let Some(client) = pending.waiter.client() else { return };
        let held = self.waiting.len();
        if self.stopping {
            return self.leave_unanswered(client.connection, client.request_id);
        }
        let has_room = self.has_room_for_held(held, &pending, client.connection);
        let Some(wait) = pending.wait.as_mut().filter(|_| is_awaited && has_room) else {
            return self.send(&client, answers::nothing_yet(&client));
        };
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        let at = self.now + wait.pause.max(PAUSE_PER_CALL.saturating_mul(held));
        (wait.until, wait.pause) = (Some(at), (wait.pause * 2).min(PAUSE_MAX));
        let is_long_asked = at.since(wait.called_at) >= ASKED_MAX && pending.request.ft.is_none();
        wait.asks = !wait.is_read && !is_long_asked;
        if !wait.asks {
            wait.called_at = at;
        }
        let request_max = self.limits.request;
        let books = self.group(group);
        let number = books.book.next();
        pending.request.number = number;
        pending.request.ended_process = false;
        (pending.kind, pending.stage, pending.outcome) =
            (Kind::Read, Stage::Unsubmitted, Outcome::Open);
        (pending.demand, pending.is_short) = (None, false);
        (pending.submissions, pending.process_ends, pending.charged) = (0, 0, 0);
        pending.disks = Disks::of(books.rules.durable);
        (pending.deadline, pending.wait_until) = (at + request_max, at + request_max);
        books.book.add(*pending);
        self.groups.begins(group);
        self.charge(group, number);
        self.pending += 1;
        self.waiting.insert((at, group, number));
        if let Some(connection) = self.connections.get_mut(&client.connection) {
            connection.pending.insert(client.request_id, (group, number));
        }
    }

    /// Whether one more may be held: the last quarter of the places is for addresses that have few
    /// calls, and that of each connection for calls that do not wait.
    fn has_room_for_held(&self, held: usize, pending: &Pending, id: ConnectionId) -> bool {
        let most = self.limits.pending / SHARE;
        let has_few = || pending.source.is_none_or(|address| self.peers.has_few(address));
        let calls = self.connections.get(&id).map_or(0, |connection| connection.calls);
        let is_alone = calls < self.limits.pending_per_connection.div_ceil(4) * 3;
        is_alone && (held < most / 4 * 3 || held < most && has_few())
    }

    /// Calls whose pause is over are tried again.
    pub(super) fn wake(&mut self, now: Instant) {
        let stamp = self.wall_clock_origin.saturating_add(now.as_nanos() / 100);
        while let Some((at, group, number)) = self.waiting.first().copied() {
            if at > now {
                return;
            }
            self.waiting.pop_first();
            let request_max = self.limits.request;
            let books = self.group(group);
            let wait_until = now + books.rules.unavailable_wait;
            let Some(pending) = books.book.get_mut(number) else { continue };
            let Some(wait) = &mut pending.wait else { continue };
            wait.until = None;
            pending.request.stamp = stamp;
            (pending.deadline, pending.wait_until) = (now + request_max, wait_until);
            let deadline = pending.deadline.min(wait_until);
            let expiration = pending.request.ft.as_ref().map(|ft| ft.expiration);
            let is_over = expiration.is_some_and(|expiration| is_late_by(stamp, expiration, 0));
            if is_over && wait.is_read {
                self.give_up(group, number);
                continue;
            }
            // What a client has named may have been executed for another gateway: the order knows.
            wait.asks &= !is_over;
            let is_ordered = !wait.is_read && !wait.asks;
            self.deadlines.insert((deadline, group, number));
            match is_ordered {
                true => self.group(group).order_read(number),
                false => self.park(group, number),
            }
        }
    }

    /// Its client is told that there is nothing.
    fn give_up(&mut self, group: GroupId, number: RequestNumber) {
        let Some(pending) = self.forget(group, number) else { return };
        if let Some(client) = pending.waiter.client() {
            self.send(&client, answers::nothing_yet(&client));
        }
    }

    fn held_of(&self, id: ConnectionId) -> Vec<(GroupId, RequestNumber)> {
        let Some(connection) = self.connections.get(&id) else { return Vec::new() };
        let calls = connection.pending.values().copied();
        let is_held = |(group, number): &(GroupId, RequestNumber)| {
            self.groups[*group].book.get(*number).is_some_and(Pending::is_held)
        };
        calls.filter(is_held).collect()
    }

    /// A client has ended its sending, as the end of a process does: what comes is not to be taken
    /// for it.
    pub(super) fn end_held_of(&mut self, id: ConnectionId) {
        for (group, number) in self.held_of(id) {
            self.give_up(group, number);
        }
    }

    /// Its client wants no reply any more.
    pub(super) fn cancel_held(&mut self, group: GroupId, number: RequestNumber) {
        let pending = self.group(group).book.get(number);
        if pending.is_some_and(|one| one.is_held() && matches!(one.waiter, Waiter::Gone)) {
            self.forget(group, number);
        }
    }

    /// The node stops: who waits is told nothing, and so calls another gateway when its connection
    /// ends, as for any call that was not executed (GIOP §15.5.1).
    pub(super) fn leave_held(&mut self) {
        for (_, group, number) in core::mem::take(&mut self.waiting) {
            let Some(pending) = self.forget(group, number) else { continue };
            if let Some(client) = pending.waiter.client() {
                self.leave_unanswered(client.connection, client.request_id);
            }
        }
    }

    fn leave_unanswered(&mut self, id: ConnectionId, request_id: u32) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.pending.remove(&request_id);
        }
    }
}
