//! Replies on their way back, and the time that everything may take.
//!
//! Invariant: a reply leaves when promise 1 holds for its request and not before.

use super::{Gateway, GroupBook, SCAN};
use crate::answers::{self, ReplyPieces};
use crate::connection::Connection;
use crate::fair::Source;
use crate::output::{CloseReason, ConnectionId, Output};
use crate::pending::{Client, Executed, Outcome, Pending};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorba_base::{Duration, Instant, canary};
use quorba_giop::Endian;
use quorba_replica::{Availability, GroupId, Released, RequestNumber};

/// How long a request that was delivered while nobody was in waits at least for somebody.
const DROPPED_WAIT_MIN: Duration = Duration::from_millis(100);

/// So many bytes of replies that members may keep without need are told to them at once, and so
/// many after a while.
const ANNOUNCED_BYTES: usize = 4 << 20;
const UNRELEASED_BYTES: usize = 64 << 10;

impl Gateway {
    /// The group's reply, under the server's request id; `tells_end`: it says how the request has
    /// ended without one of a server.
    pub(crate) fn replied(
        &mut self,
        group: GroupId,
        number: RequestNumber,
        giop: Option<Bytes>,
        tells_end: bool,
    ) {
        self.ends(group, number, giop.as_ref().map_or(0, Bytes::len));
        let books = self.group(group);
        let pending = books.book.get_mut(number);
        let Some(giop) = giop else {
            if pending.is_some_and(|one| one.outcome.reply().is_none()) {
                // The client of a oneway waits for nothing.
                self.forget(group, number);
            }
            return;
        };
        let bytes = giop.len();
        // Of several members that reply the first counts.
        if !pending.is_some_and(|one| one.outcome.take(giop, tells_end)) {
            books.counters.replies_dropped += 1;
            return;
        }
        if !self.release(group, number) {
            self.charge_reply(group, number, bytes);
            self.shed();
        }
    }

    /// The request was delivered while no member was in: this submission of it was executed
    /// nowhere. It waits for a member again.
    pub(crate) fn dropped(&mut self, now: Instant, group: GroupId, number: RequestNumber) {
        let books = self.group(group);
        let wait_until = now + books.rules.unavailable_wait.max(DROPPED_WAIT_MIN);
        let Some(pending) = books.book.get_mut(number) else { return };
        if pending.outcome.awaits_end() {
            // Nothing is to be executed any more.
            return;
        }
        pending.submissions = pending.submissions.saturating_sub(1);
        pending.begin_again();
        // It waits from now on: the time that it had before does not end it.
        let before = pending.wait_until.min(pending.deadline);
        pending.wait_until = wait_until;
        let deadline = pending.deadline.min(wait_until);
        pending.insist(false);
        let is_nested = pending.is_nested();
        if let Some(entered) = pending.entered.take() {
            books.window.leave(entered);
        }
        if !is_nested {
            self.park(group, number);
        } else if !books.calls.contains(&number) {
            books.calls.push_back(number);
        }
        self.deadlines.remove(&(before, group, number));
        self.deadlines.insert((deadline, group, number));
    }

    /// A majority has the request on disk.
    pub(crate) fn logged(&mut self, group: GroupId, number: RequestNumber) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        pending.disks.reach();
        self.release(group, number);
    }

    /// So many members have executed the request as its caller wants, or (`is_short`) so many are
    /// not in any more.
    pub(crate) fn executed(&mut self, group: GroupId, number: RequestNumber, is_short: bool) {
        let Some(pending) = self.group(group).book.get_mut(number) else { return };
        if pending.executed != Executed::Awaited {
            return;
        }
        pending.executed = Executed::Known;
        pending.is_short |= is_short;
        self.release(group, number);
    }

    /// Sends the reply if it is there and may leave; whether it is gone.
    pub(super) fn release(&mut self, group: GroupId, number: RequestNumber) -> bool {
        let Some(pending) = self.group(group).book.get_mut(number) else { return true };
        let is_safe = pending.is_safe() || canary!(RepliesBeforeHeld);
        let is_deep = pending.is_deep() || canary!(RepliesBeforeDepth);
        if !is_safe || !is_deep || !pending.is_on_disk() || matches!(pending.outcome, Outcome::Open)
        {
            return false;
        }
        if let Some(is_gone) = self.end_is_told(group, number) {
            return is_gone;
        }
        if self.goes_on(group, number) {
            return true;
        }
        let pending = self.forget(group, number).expect("just looked up");
        let Some(client) = pending.waiter.client() else { return true };
        self.note_pulled(&pending);
        if pending.is_short && matches!(pending.outcome, Outcome::Reply(_)) {
            self.group(group).counters.replies += 1;
            self.send(&client, answers::depth_not_met(&client));
            return true;
        }
        let giop = pending.outcome.into_reply().expect("who has ended silently was told above");
        let books = self.group(group);
        books.counters.replies += 1;
        let newer = books.rules.references.as_ref().filter(|_| client.is_outdated);
        let giop = match newer {
            Some(references) => {
                let counted = books.rules.references_counted;
                answers::with_reference(giop, &references.reference(counted))
            }
            None => giop,
        };
        match answers::reply_pieces(giop, &client) {
            ReplyPieces::One(bytes) => self.send(&client, bytes),
            ReplyPieces::Several(pieces) => {
                let connection = client.connection;
                let send = |bytes| Output::ClientSend { connection, bytes };
                if self.connections.contains_key(&connection) {
                    self.out.extend(pieces.into_iter().map(send));
                }
                self.answered(&client);
            }
        }
        true
    }

    pub(super) fn send(&mut self, client: &Client, bytes: Bytes) {
        if self.connections.contains_key(&client.connection) {
            self.out.push_back(Output::ClientSend { connection: client.connection, bytes });
            self.answered(client);
        }
    }

    fn answered(&mut self, client: &Client) {
        let Some(connection) = self.connections.get_mut(&client.connection) else { return };
        connection.pending.remove(&client.request_id);
        if connection.half_closed {
            self.end_if_owed_nothing(client.connection);
        }
    }

    pub(super) fn forget(&mut self, group: GroupId, number: RequestNumber) -> Option<Box<Pending>> {
        let books = self.group(group);
        let mut pending = books.book.remove(number)?;
        let GroupBook { window, read_window, parked, reads, .. } = books;
        let is_read = pending.is_read();
        let (window, queue) = if is_read { (read_window, reads) } else { (window, parked) };
        if let Some(entered) = pending.entered.take() {
            if is_read {
                books.given_up.insert(number, (pending.source, entered));
            } else {
                window.leave(entered);
            }
        } else if !pending.is_nested() {
            queue.remove(pending.source, number);
        }
        let unreleased = books.book.unreleased_bytes();
        if unreleased >= ANNOUNCED_BYTES {
            self.groups.announces(group, true);
        }
        self.groups.ended(group);
        if unreleased >= UNRELEASED_BYTES && !self.has_unreleased {
            self.has_unreleased = true;
            self.next_scan = self.next_scan.min(self.now + SCAN);
        }
        self.discharge(group, &pending);
        self.pending -= 1;
        self.servers.forget(&pending);
        self.deadlines.remove(&(pending.deadline, group, number));
        self.deadlines.remove(&(pending.wait_until.min(pending.deadline), group, number));
        if let Some(until) = pending.wait.as_ref().and_then(|wait| wait.until()) {
            self.waiting.remove(&(until, group, number));
        }
        Some(pending)
    }

    /// What the members of a group are to be told of replies that nobody will ask for again: they
    /// hear it with each request, and these may be long in coming.
    pub(crate) fn next_announcement(
        &mut self,
        available: impl Fn(GroupId) -> Availability,
    ) -> Option<(GroupId, Released)> {
        let group = self.groups.announcing().find(|id| available(*id) == Availability::Ready)?;
        let book = &mut self.groups[group].book;
        let released = book.announce();
        let has_more = book.unreleased_bytes() > 0;
        self.groups.announces(group, has_more);
        Some((group, released))
    }

    // -- time -------------------------------------------------------------------------------

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(at, _, _)| *at);
        let paused = self.paused.iter().filter_map(|id| self.connections.get(id));
        let throttle = paused.filter_map(|connection| connection.throttled_until).min();
        let is_watched =
            !self.connections.is_empty() || self.peers.has_absent() || self.has_unreleased;
        let scan = is_watched.then_some(self.next_scan);
        let held = self.waiting.first().map(|(at, _, _)| *at);
        [deadline, throttle, scan, self.look_again, held].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        available: impl Fn(GroupId) -> Availability,
    ) {
        self.now = now;
        while let Some((at, group, number)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            self.overdue(now, group, number, available(group));
        }
        self.look_again = self.look_again.filter(|at| *at > now);
        self.wake(now);
        self.resume(now);
        if self.next_scan <= now {
            self.scan(now);
        }
    }

    fn overdue(
        &mut self,
        now: Instant,
        group: GroupId,
        number: RequestNumber,
        available: Availability,
    ) {
        let books = self.group(group);
        let Some(pending) = books.book.get_mut(number) else { return };
        if pending.is_nested() {
            // What becomes of it must be the same at all replicas of the caller.
            pending.insist(true);
            return;
        }
        let waiting = !pending.may_be_executed() && pending.deadline > now;
        if waiting && available == Availability::Ready {
            // It got its turn, and only the order is crowded: wait on for the reply.
            let deadline = pending.deadline;
            self.deadlines.insert((deadline, group, number));
            return;
        }
        if pending.may_be_executed() && pending.deadline > now {
            let deadline = pending.deadline;
            self.deadlines.insert((deadline, group, number));
            return;
        }
        let pending = self.forget(group, number).expect("just looked up");
        let client = pending.waiter.client();
        let is_told = client.is_some() || !pending.may_be_executed();
        self.group(group).counters.refused += u64::from(is_told);
        if pending.may_be_executed() {
            self.name_client(group, number, &pending);
        }
        if let Some(client) = client {
            let bytes = if pending.may_be_executed() && !canary!(RefusesWhatWasOrdered) {
                answers::timed_out(&client)
            } else {
                answers::unavailable(&client, available)
            };
            self.send(&client, bytes);
        }
    }

    /// Connections that waited for room or for their rate are read on, beginning behind the one
    /// that was read on last: what there is for one of them is not always the same one's.
    pub(crate) fn resume(&mut self, now: Instant) {
        let last = self.resumed_last;
        let behind = (Bound::Excluded(last), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Included(last));
        for (from, to) in [behind, before] {
            let mut next = self.paused.range((from, to)).next().copied();
            while let Some(id) = next {
                if !self.must_wait(now, id) {
                    self.resumed_last = id;
                    self.read_on(now, id);
                }
                let rest = (Bound::Excluded(id), to);
                // A range that ends where it begins is none.
                next =
                    if to == Bound::Included(id) { None } else { self.paused.range(rest).next() }
                        .copied();
            }
        }
    }

    fn scan(&mut self, now: Instant) {
        let mut ended = Vec::new();
        let limits = &self.limits;
        for (id, connection) in &mut self.connections {
            let is_late = connection.turned_away && now.since(connection.opened) >= limits.header;
            if connection.is_too_slow(now, limits) || connection.takes_nothing(now, limits.request)
            {
                ended.push((*id, CloseReason::TooSlow));
            } else if is_late {
                ended.push((*id, CloseReason::TooMany));
            } else if connection.is_idle(now, limits.idle) {
                ended.push((*id, CloseReason::Idle));
            }
        }
        for (id, reason) in ended {
            match reason {
                CloseReason::Idle => self.ends_idle(id),
                reason => self.close(id, reason),
            }
        }
        self.peers.forget_absent(now);
        self.poison.expire(now);
        self.has_unreleased = false;
        let peers = &self.peers;
        let is_known = |source: Source| source.is_none_or(|address| peers.knows(address));
        let mut unreleased = Vec::new();
        self.groups.look_at_used(|id, books| {
            // Of calls that waited when their client went, or came back later.
            books.parked.forget_strangers(is_known);
            books.reads.forget_strangers(is_known);
            let is_much = books.book.unreleased_bytes() >= UNRELEASED_BYTES;
            if is_much && !books.rules.is_outside {
                unreleased.push(id);
            }
            books.remembers_somebody() || books.book.unreleased_bytes() > 0
        });
        self.has_unreleased = !unreleased.is_empty();
        unreleased.into_iter().for_each(|id| self.groups.announces(id, true));
        let is_watched = |c: &Connection| c.has_partial() || c.turned_away || c.unsent > 0;
        let is_soon = self.connections.values().any(is_watched)
            || self.peers.has_absent()
            || self.has_unreleased;
        let wait = if is_soon { SCAN } else { (self.limits.idle / 4).max(SCAN) };
        self.next_scan = now + wait;
    }

    /// Whether a connection that ends by our own wish ends without CloseConnection.
    pub(super) fn leaves_without_words(&self, id: ConnectionId, reason: CloseReason) -> bool {
        matches!(reason, CloseReason::Stopping | CloseReason::Idle)
            && self.connections.get(&id).is_some_and(|c| c.endian == Endian::Big)
    }

    /// CloseConnection, which lets clients repeat their unanswered calls elsewhere. Not to clients
    /// that speak big-endian, which on today's machines are Java ORBs: JacORB 3.9, if it is just
    /// sending a request, sends it twice on its next connection (seen on the wire), and a call
    /// that is executed twice is worse than one whose client is told MAYBE. An end without words
    /// is invisible to it while it is idle.
    pub(super) fn say_goodbye(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id)
            && connection.endian == Endian::Little
        {
            let bytes = answers::close_connection(connection.version);
            self.out.push_back(Output::ClientSend { connection: id, bytes });
        }
    }

    /// The node stops: connections without open calls get CloseConnection, which makes clients go
    /// elsewhere without an exception; the others follow when their calls are answered. The
    /// driver has closed its listeners before, else clients would come back at once.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.leave_held();
        let quiet: Vec<ConnectionId> = self
            .connections
            .iter()
            .filter(|(_, c)| c.pending.is_empty() && c.caller.is_none())
            .map(|(id, _)| *id)
            .collect();
        for id in quiet {
            self.say_goodbye(id);
            self.close(id, CloseReason::Stopping);
        }
    }

    /// Whether a connection waits for room.
    pub(crate) fn is_crowded(&self) -> bool {
        !self.paused.is_empty() && !self.stopping
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }
}
