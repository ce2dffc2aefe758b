//! Servers that call other groups while they execute an `append`.
//!
//! Which calls an `append` leads to is a function of its reference, so that every replica makes the
//! same; what came of each is appended to the log of whoever called at once, and the reference
//! itself behind all of it. Some calls of groups that have declared it only look: one that closes a
//! cycle finds what has been heard so far.
//! Logs that are equal thus mean replicas that heard the same.
//!
//! What it is not: the checks of what was heard, which are in `check::calls`. Invariants: a call
//! has one reference, whoever makes it and how often; a server makes one call at a time.

use crate::check::endings::end_of;
use crate::ledger::{Call, Outcome, SERVERS};
use crate::names::index_of;
use crate::rng::finish;
use crate::servant::{self, Dialect, Mark, Operation, Reference, Wish};
use crate::server::{Misdeed, Server};
use crate::stream::{Callee, Caller, Segment, Side, StreamId};
use crate::world::World;
use bytes::Bytes;
use quorba_giop::{
    Body, Endian, Framer, Message, MinorCode, QUORBA_VMCID, ReplyStatus, SystemException, Version,
};
use std::collections::BTreeMap;

/// References of calls that servers make, and of what came of them.
const INNER: u64 = 0b10 << 62;
const HEARD: u64 = 0b11 << 62;
const DEPTH_SHIFT: u32 = 60;
/// Calls lead to calls so often.
const DEPTH_MAX: u64 = 3;

impl Reference {
    /// It stands for what a server heard, and not for a call.
    pub(crate) fn is_heard(self) -> bool {
        self.0 >> 62 == HEARD >> 62
    }

    /// A server made the call.
    pub(crate) fn is_inner(self) -> bool {
        self.0 >> 62 == INNER >> 62
    }

    fn depth(self) -> u64 {
        if self.is_inner() { (self.0 >> DEPTH_SHIFT) & 0b11 } else { 0 }
    }

    /// The calls that it leads to, where these groups can be called.
    fn calls(self, targets: &[usize]) -> u64 {
        if targets.is_empty() || self.depth() >= DEPTH_MAX {
            return 0;
        }
        [0, 1, 1, 2, 3][(finish(self.0 ^ 0xca11) % 5) as usize]
    }

    /// One of these calls, and the group that it is for.
    fn call(self, number: u64, targets: &[usize]) -> (Self, usize) {
        let hash = finish(self.0.rotate_left(7) ^ number);
        let target = targets[(hash % targets.len() as u64) as usize];
        let low = finish(hash) & ((1 << DEPTH_SHIFT) - 1);
        (Self(INNER | (self.depth() + 1) << DEPTH_SHIFT | low), target)
    }

    /// Of a server's calls, whether it only looks, where that may be told.
    pub(crate) fn looks(self) -> bool {
        finish(self.0 ^ 0x100c) % 5 < 2
    }

    /// What stands in a log for this call, and what came of it.
    fn heard(self, what: Heard) -> Self {
        let of = match what {
            Heard::Done(mark) => mark.digest ^ mark.length.rotate_left(40),
            Heard::Refused => 1,
            Heard::Doubt => 3,
            Heard::Void => 2,
        };
        Self(HEARD | finish(self.0 ^ finish(of)) >> 2)
    }
}

/// What came of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// Its reply.
    Done(Mark),
    /// It was refused.
    Refused,
    /// It was made outside, and nobody knows whether it was executed.
    Doubt,
    /// Whoever called does not count.
    Void,
}

/// All that servers have heard.
#[derive(Default)]
pub(crate) struct Hearsay {
    /// By what stands in the log: which call, and what came of it.
    pub(crate) heard: BTreeMap<Reference, (Reference, Heard)>,
    /// In which call each was made.
    pub(crate) made_in: BTreeMap<Reference, Reference>,
    /// Calls to the outside: whom, and whose.
    pub(crate) outside: BTreeMap<Reference, (usize, usize)>,
    pub(crate) made: u64,
    pub(crate) refused: u64,
    pub(crate) doubts: u64,
    /// Reads that servers began while they waited.
    pub(crate) beside: u64,
}

/// What a server is calling.
pub(crate) struct Calling {
    /// Of the call that it executes.
    serial: u64,
    outer: Reference,
    /// Calls that were begun.
    made: u64,
    inner: Reference,
    stream: StreamId,
    message: Bytes,
    framer: Framer,
}

impl World {
    /// In which calls servers of a group are calling now.
    pub(crate) fn calling_in(&self, group: usize) -> impl Iterator<Item = Reference> + '_ {
        let servers = self.servers.iter().filter(move |server| index_of(server.group) == group);
        servers.filter_map(|server| server.calling.as_ref()).map(|calling| calling.outer)
    }

    /// Begins the calls that a server makes in what it executes; gives whether there are any.
    pub(crate) fn begin_calls(&mut self, server: usize, serial: u64) -> bool {
        let target = &self.servers[server];
        let is_wrong = |m: &Misdeed| matches!(m, Misdeed::Garbage | Misdeed::WrongId);
        if target.misdeed.as_ref().is_some_and(is_wrong) {
            return false;
        }
        let Some(work) = target.running.get(&serial) else { return false };
        let Operation::Append(outer) = work.operation else { return false };
        if outer.calls(&self.plan.groups[index_of(target.group)].calls) == 0 {
            return false;
        }
        self.call(server, Calling::new(serial, outer));
        true
    }

    fn call(&mut self, server: usize, mut calling: Calling) {
        let target = &self.servers[server];
        let (node, caller) = (target.node, target.group);
        let targets = &self.plan.groups[index_of(caller)].calls;
        let (inner, group) = calling.outer.call(calling.made, targets);
        calling.made += 1;
        calling.inner = inner;
        let dialect = Dialect { version: Version::V1_2, endian: Endian::Little };
        let id = calling.made as u32;
        let may_look = self.plan.groups.get(group).is_some_and(|group| group.reads.is_some());
        let wish = if may_look && inner.looks() { Wish::Peek } else { Wish::Append };
        let message = servant::request(dialect, id, wish, inner, 0, &[], false);
        calling.message = message.bytes().clone();
        let callee = Callee::Gateway { node, boot: None, group: self.plan.callee_id(group) };
        let stream = self.connect(Caller::Server { server, group: caller }, callee, false);
        calling.stream = stream;
        calling.framer = Server::framer();
        self.hearsay.made += 1;
        self.hearsay.made_in.insert(inner, calling.outer);
        let outer = calling.outer.0;
        self.transcript.whisper(self.now, || {
            format!("n{node} server {server} calls g{group} {:x} in {outer:x}", inner.0)
        });
        if let Some(outsider) = group.checked_sub(self.plan.groups.len()) {
            self.hearsay.outside.insert(inner, (outsider, index_of(caller)));
        } else if !self.ledger.calls.contains_key(&inner) {
            let call = Call {
                client: SERVERS,
                group,
                wish,
                named: true,
                invoked: self.now,
                outcome: Outcome::Open,
                sent: 1,
            };
            self.ledger.open(inner, call);
        }
        self.servers[server].calling = Some(calling);
    }

    /// A server hears something on the connection of a call.
    pub(crate) fn caller_hears(&mut self, id: StreamId, server: usize, segment: Segment) {
        let target = &mut self.servers[server];
        let calling = target.calling.as_mut().filter(|calling| calling.stream == id);
        let Some(calling) = calling.filter(|_| target.alive && !target.hangs) else {
            if matches!(segment, Segment::End | Segment::Reset | Segment::Refused) {
                self.streams.remove(&id);
            }
            return;
        };
        match segment {
            Segment::Accepted => {
                let message = calling.message.clone();
                self.send(id, Side::Caller, Segment::Bytes(message));
            }
            Segment::Bytes(bytes) => {
                calling.framer.push(&bytes);
                if let Ok(Some(message)) = calling.framer.next() {
                    self.answered(server, &message);
                }
            }
            Segment::Refused | Segment::End | Segment::Reset => {
                self.streams.remove(&id);
                let node = target.node;
                // Its server ends with it, in a moment.
                if self.hosts[node].is_up() {
                    let text = format!("n{node} closes a call of its own server {server}");
                    self.checks.violate("calls", self.now, text);
                }
            }
            Segment::Open => {}
        }
    }

    fn answered(&mut self, server: usize, message: &Message) {
        let calling = self.servers[server].calling.take().expect("the caller has it");
        self.send(calling.stream, Side::Caller, Segment::End);
        if let Some(stream) = self.streams.get_mut(&calling.stream) {
            stream.hear_no_more(Side::Caller);
        }
        let inner = calling.inner;
        let what = match message.parse() {
            Ok(Body::Reply(reply)) if reply.status() == ReplyStatus::NoException => {
                let mut reader = reply.reader();
                let length = reader.read_u64("length").unwrap_or(u64::MAX);
                let digest = reader.read_u64("digest").unwrap_or(0);
                Some(Heard::Done(Mark { length, digest }))
            }
            Ok(Body::Reply(reply)) => match reply.system_exception() {
                Some(Ok(exception)) => meaning_of(&exception),
                _ => None,
            },
            _ => None,
        };
        let Some(what) = what else {
            let text = format!("server {server} got a reply to {:x} that nobody gives", inner.0);
            return self.checks.violate("calls", self.now, text);
        };
        let node = self.servers[server].node;
        self.transcript.whisper(self.now, || {
            format!("n{node} server {server} hears of {:x}: {what:?}", inner.0)
        });
        self.note_heard(inner, what);
        let heard = inner.heard(what);
        self.hearsay.heard.insert(heard, (inner, what));
        self.servers[server].log.append(heard);
        let target = &self.servers[server];
        let targets = &self.plan.groups[index_of(target.group)].calls;
        if calling.made < calling.outer.calls(targets) {
            return self.call(server, calling);
        }
        self.server_ends(server, calling.serial);
    }

    /// The first who hears something of a call speaks for all.
    fn note_heard(&mut self, inner: Reference, what: Heard) {
        if self.hearsay.outside.contains_key(&inner) {
            self.hearsay.refused += u64::from(what == Heard::Refused);
            self.hearsay.doubts += u64::from(what == Heard::Doubt);
            return;
        }
        let now = self.now;
        let call = self.ledger.calls[&inner].clone();
        match what {
            Heard::Done(mark) if call.outcome == Outcome::Open => {
                self.ledger.close(inner, Outcome::Acknowledged { mark, at: now });
                self.note_beginning(call.group, mark);
                if !self.is_doubtful(inner, call.group) {
                    self.checks.acknowledged(now, inner, &call, mark, None);
                }
            }
            Heard::Refused => {
                self.hearsay.refused += u64::from(call.outcome == Outcome::Open);
                self.ledger.close(inner, Outcome::Refused);
            }
            Heard::Done(_) | Heard::Doubt | Heard::Void => {}
        }
    }

    /// Whether a read was executed in the middle of a request of its own group that may end
    /// without having been executed: what it saw is in no history then (seed 60024 of `calls`).
    pub(crate) fn is_in_odd_request(&self, inner: Reference) -> bool {
        let Some(group) = self.ledger.calls.get(&inner).map(|call| call.group) else {
            return false;
        };
        let Some(odd) = &self.plan.groups[group].odd else { return false };
        let outer = |of: &Reference| self.hearsay.made_in.get(of).copied();
        let of_it = |of: &Reference| self.ledger.calls.get(of).is_some_and(|c| c.group == group);
        std::iter::successors(outer(&inner), outer)
            .any(|request| of_it(&request) && odd.reaction(request).is_some())
    }

    /// A server has ended: nobody waits for what it called.
    pub(crate) fn end_calls(&mut self, server: usize) {
        if let Some(calling) = self.servers[server].calling.take() {
            self.send(calling.stream, Side::Caller, Segment::Reset);
            if let Some(stream) = self.streams.get_mut(&calling.stream) {
                stream.hear_no_more(Side::Caller);
            }
        }
    }
}

impl Calling {
    fn new(serial: u64, outer: Reference) -> Self {
        Self {
            serial,
            outer,
            made: 0,
            inner: outer,
            stream: StreamId(0),
            message: Bytes::new(),
            framer: Server::framer(),
        }
    }
}

/// What an exception says of a call.
fn meaning_of(exception: &SystemException) -> Option<Heard> {
    let is = |code: MinorCode| exception.minor == QUORBA_VMCID | code.number();
    let refusals = [
        MinorCode::CallCycle,
        MinorCode::CalleeGone,
        MinorCode::CircleUnanswered,
        MinorCode::OutsideNotReached,
        MinorCode::NoRoom,
    ];
    if let Some(end) = end_of(exception) {
        return Some(if end == MinorCode::NeverTaken { Heard::Refused } else { Heard::Doubt });
    }
    if refusals.into_iter().any(is) {
        Some(Heard::Refused)
    } else if is(MinorCode::OutsideInDoubt) || is(MinorCode::ReplicasDisagree) {
        // Whether they may disagree is judged by itself.
        Some(Heard::Doubt)
    } else if is(MinorCode::CallOutsideRequest) {
        Some(Heard::Void)
    } else {
        None
    }
}
