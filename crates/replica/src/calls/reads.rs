//! Reads: operations that change nothing, executed by one member without a place of their own in
//! the order.
//!
//! The node whose member executes them orders a *read mark*, a tiny message that serves all reads
//! that waited when it was submitted. Where it is delivered, they go into the queue of the member;
//! what they find is everything delivered before the mark and nothing behind it. Their replies
//! leave when the mark is as safe as the group asks of a request (promise 1).
//!
//! Why that is linearizable. A mark is submitted after its reads were called. *Nothing answered is
//! missed*: a request that was answered before a read was called was held by a majority then. If
//! the mark gets its place in the same ring, that is behind the request. If it does not, because
//! the reader's node was being left behind, some node that holds the mark's ring back then was
//! also in the one that went on, as two majorities meet; it acknowledged nothing of the old ring
//! after it had left it, and so not the mark, which is younger: the mark is never held, and the
//! reply never leaves. *Nothing is seen that can be lost*: all that stands before a mark is held
//! with it. *The member's state is the group's*: it is asked whether the member is in at the mark's
//! place, so if it was expelled before, that was delivered before; and if it is expelled later,
//! what it read was the group's state at the mark.
//!
//! A group with `readonly_consistency = "sequential"` lets the member on the gateway's own node
//! execute at once, behind everything that has been delivered here, which all replies that this
//! gateway has passed on are part of: so its clients read what they wrote, and never see less than
//! before. What a read finds must not be lost either, so its reply waits for a mark behind it,
//! unless nothing was delivered to the group since the last mark that is held. What it may miss is
//! what other gateways have answered meanwhile.
//!
//! Whatever goes wrong (a link, a server, a view ends; a read is too long for a message) ends the
//! attempt, and the gateway has the read ordered like any request: it changes nothing, so it may be
//! executed again.
//!
//! A reply that is too long for a message between nodes goes through the order, to the boot that
//! has asked. What only the leader has may be changed by a read (an event is taken out of its
//! channel), and would be lost if the read were executed again for that.
//!
//! What it is not: the wire, nor who is in. Invariants: nothing that is replicated changes because
//! of a read; every read that was taken is answered or given back; the mark is submitted after its
//! reads came in.

use crate::calls::stateless::Load;
use crate::words::ids::{GatewayKey, RequestNumber};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{NodeId, NodeSet, canary};

/// A read for the local member.
pub(crate) struct Read {
    /// Whose it is.
    pub(crate) asker: GatewayKey,
    pub(crate) giop: Bytes,
    pub(crate) code_sets: Option<Bytes>,
}

impl Read {
    /// How long it is, but for what it is wrapped in.
    pub(crate) fn bytes(&self) -> usize {
        self.giop.len() + self.code_sets.as_ref().map_or(0, Bytes::len)
    }
}

/// A read's name at the executor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ReadId(pub(crate) u64);

/// A read that is with the server. `behind`: the mark that must be safe before the reply leaves.
struct Running {
    asker: GatewayKey,
    /// Where it is counted: here, if it is of this node's gateway.
    counted: Option<NodeId>,
    behind: u64,
}

/// A read of this node's gateway that another node executes.
struct Away {
    at: NodeId,
    /// It went through the order, and so does its reply, whatever becomes of links.
    ordered: bool,
}

/// What went through the order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordered {
    /// The call, so its reply is to, as well.
    Call,
    /// The reply, although the call did not. Where it does not count it is said again.
    Reply,
}

/// A read that was executed.
struct Done {
    asker: GatewayKey,
    behind: u64,
    reply: Bytes,
}

/// The reads of one group at one node; see the module's text.
#[derive(Default)]
pub(crate) struct Reads {
    /// What the members have to do for this gateway.
    pub(crate) load: Load,
    /// Nodes that messages pass to and from.
    links: NodeSet,
    /// Nodes that may wait for answers that were dropped.
    untold: NodeSet,
    /// Reads of this node's gateway that other nodes execute.
    away: BTreeMap<RequestNumber, Away>,
    /// Of whom something went through the order that usually does not.
    pub(crate) ordered: BTreeMap<GatewayKey, Ordered>,
    /// Reads for the next mark.
    waiting: Vec<Read>,
    /// The mark that was submitted last, if it has not been delivered, and its reads.
    marked: Option<(u64, Vec<Read>)>,
    running: BTreeMap<ReadId, Running>,
    /// Who is answered by those.
    askers: BTreeSet<GatewayKey>,
    done: VecDeque<Done>,
    /// Marks that were delivered and are not known to be safe, with the requests before each.
    delivered: VecDeque<(u64, u64)>,
    /// A reply waits for a mark that nobody has asked for yet.
    wanted: bool,
    last_mark: u64,
    safe_mark: u64,
    /// Of a durable group: the last one that is held, and the last one that enough disks have.
    /// It is safe when it is both.
    held_mark: u64,
    logged_mark: u64,
    /// Requests before the last mark that is safe.
    safe_requests: Option<u64>,
    last_read: u64,
    /// Which executions count; see [`crate::server::executor::Executor::epoch`]. `None`: there is
    /// no member.
    epoch: Option<u64>,
    executed: u64,
    marks: u64,
}

impl Reads {
    /// Reads executed here, and marks delivered for them.
    pub(crate) fn figures(&self) -> (u64, u64) {
        (self.executed, self.marks)
    }

    /// Whether nothing waits for time, a mark or another node, with the executor in this epoch.
    pub(crate) fn is_quiet(&self, epoch: Option<u64>) -> bool {
        let has_calls = !(self.away.is_empty() && self.waiting.is_empty() && self.done.is_empty());
        !has_calls && !self.wanted && self.epoch == epoch && self.load.avoids_nobody()
    }

    // -- links ------------------------------------------------------------------------------

    /// Of `nodes` the one to ask.
    pub(crate) fn reachable(&self, nodes: NodeSet, here: NodeId) -> Option<NodeId> {
        let mut linked = nodes.intersection(self.links);
        linked.remove(here);
        linked.successor(here)
    }

    /// Nodes that messages pass to.
    pub(crate) const fn links(&self) -> NodeSet {
        self.links
    }

    /// Of `nodes` those that messages pass to, and this one.
    pub(crate) fn linked(&self, nodes: NodeSet, here: NodeId) -> NodeSet {
        nodes.intersection(self.links.with(here))
    }

    /// Messages pass to a node again. True: it must be told that answers may be lost.
    pub(crate) fn link_up(&mut self, node: NodeId) -> bool {
        self.links.insert(node);
        let untold = self.untold.contains(node);
        self.untold.remove(node);
        untold
    }

    /// Messages to a node are lost; the reads that were given to it in messages are given back.
    pub(crate) fn link_down(&mut self, node: NodeId) -> Vec<RequestNumber> {
        self.links.remove(node);
        self.untold.insert(node);
        self.lost_where(|away| away.at == node && !away.ordered)
    }

    /// The reads that were given to a node are given back.
    pub(crate) fn lost_at(&mut self, node: NodeId) -> Vec<RequestNumber> {
        self.lost_where(|away| away.at == node)
    }

    /// Those that were given to nodes that are not of `able`.
    pub(crate) fn keep_at(&mut self, able: NodeSet) -> Vec<RequestNumber> {
        self.lost_where(|away| !able.contains(away.at))
    }

    fn lost_where(&mut self, is_lost: impl Fn(&Away) -> bool) -> Vec<RequestNumber> {
        let lost = self.away.iter().filter(|(_, away)| is_lost(away)).map(|(number, _)| *number);
        let lost: Vec<RequestNumber> = lost.collect();
        for number in &lost {
            if let Some(away) = self.away.remove(number) {
                self.load.end(away.at);
            }
        }
        lost
    }

    /// A read goes to another node, in a message or through the order.
    pub(crate) fn sent(&mut self, number: RequestNumber, to: NodeId, ordered: bool) {
        self.load.add(to);
        if let Some(before) = self.away.insert(number, Away { at: to, ordered }) {
            self.load.end(before.at);
        }
    }

    /// Another node's word on a read. False if it is not awaited from there any more.
    pub(crate) fn answered(&mut self, number: RequestNumber, by: NodeId) -> bool {
        let is_awaited = self.away.get(&number).is_some_and(|away| away.at == by);
        if is_awaited {
            self.away.remove(&number);
            self.load.end(by);
        }
        is_awaited
    }

    /// A reply of another node, through the order. Whether it is one to what that was given in a
    /// message, so that nothing of it was ordered before.
    pub(crate) fn answered_by_order(&mut self, number: RequestNumber, by: NodeId) -> bool {
        let was_sent = self.away.get(&number).is_some_and(|away| !away.ordered);
        self.answered(number, by) && was_sent
    }

    /// A call came from a node that answers cannot go to.
    pub(crate) fn called_by(&mut self, node: NodeId) {
        if !self.links.contains(node) {
            self.untold.insert(node);
        }
    }

    // -- marks ------------------------------------------------------------------------------

    /// A read for the next mark.
    pub(crate) fn wait(&mut self, read: Read) {
        self.waiting.push(read);
    }

    /// The mark to submit now, if one is wanted: one at a time.
    pub(crate) fn next_mark(&mut self) -> Option<u64> {
        if self.marked.is_some() || (self.waiting.is_empty() && !self.wanted) {
            return None;
        }
        self.last_mark += 1;
        self.wanted = false;
        self.marked = Some((self.last_mark, core::mem::take(&mut self.waiting)));
        Some(self.last_mark)
    }

    /// A mark of this node was delivered, behind so many requests; its reads.
    pub(crate) fn mark_delivered(&mut self, mark: u64, requests: u64) -> Vec<Read> {
        let Some((_, reads)) = self.marked.take_if(|(number, _)| *number == mark) else {
            // Of before a view change.
            return Vec::new();
        };
        self.marks += 1;
        if mark <= self.safe_mark {
            self.safe_requests = Some(requests);
        } else {
            self.delivered.push_back((mark, requests));
        }
        reads
    }

    /// A mark of a durable group, and all before it, is as safe as a request there: a read tells
    /// of nothing that the end of all nodes takes away.
    pub(crate) fn mark_held(&mut self, mark: u64) {
        self.held_mark = self.held_mark.max(mark);
        if canary!(ReadsBeforeLogged) {
            self.logged_mark = self.held_mark;
        }
        self.mark_safe(self.held_mark.min(self.logged_mark));
    }

    /// Enough disks have the mark of a durable group, and all before it.
    pub(crate) fn mark_logged(&mut self, mark: u64) {
        self.logged_mark = self.logged_mark.max(mark);
        self.mark_safe(self.held_mark.min(self.logged_mark));
    }

    /// The mark, and all before it, is as safe as the group asks.
    pub(crate) fn mark_safe(&mut self, mark: u64) {
        self.safe_mark = self.safe_mark.max(mark);
        while let Some((_, requests)) =
            self.delivered.pop_front_if(|(delivered, _)| *delivered <= mark)
        {
            self.safe_requests = Some(requests);
        }
    }

    /// The mark behind all that has been delivered, `requests` of the group with it; 0 if that is
    /// safe already.
    pub(crate) fn mark_behind(&mut self, requests: u64) -> u64 {
        if self.safe_requests == Some(requests) {
            return 0;
        }
        match &self.marked {
            Some((mark, _)) => *mark,
            None => {
                self.wanted = true;
                self.last_mark + 1
            }
        }
    }

    // -- executions -------------------------------------------------------------------------

    /// Whether the executor has this one. Whoever asks again, because a message may be lost, gets
    /// the reply of that: else a server would have the more to do the less it gets done.
    pub(crate) fn is_running(&self, asker: &GatewayKey) -> bool {
        self.askers.contains(asker)
    }

    /// A read is given to the executor.
    pub(crate) fn started(&mut self, asker: GatewayKey, behind: u64, here: NodeId) -> ReadId {
        let counted = (asker.node == here).then_some(here);
        counted.into_iter().for_each(|node| self.load.add(node));
        self.last_read += 1;
        let id = ReadId(self.last_read);
        self.running.insert(id, Running { asker, counted, behind });
        self.askers.insert(asker);
        id
    }

    /// The server has answered. What is returned can have no reply.
    pub(crate) fn executed(&mut self, id: ReadId, reply: Option<Bytes>) -> Option<GatewayKey> {
        let running = self.running.remove(&id)?;
        self.ended(&running);
        let Running { asker, behind, .. } = running;
        let Some(reply) = reply else { return Some(asker) };
        self.executed += 1;
        self.done.push_back(Done { asker, behind, reply });
        None
    }

    /// A reply that may leave.
    pub(crate) fn next_reply(&mut self) -> Option<(GatewayKey, Bytes)> {
        let may_leave =
            |done: &Done| done.behind <= self.safe_mark || canary!(ReadsBeforeMarkIsHeld);
        let index = self.done.iter().position(may_leave)?;
        self.done.remove(index).map(|done| (done.asker, done.reply))
    }

    /// The executor is in this epoch, if there is one: reads that it forgot, or that went with it,
    /// are given back.
    pub(crate) fn in_epoch(&mut self, epoch: Option<u64>) -> Vec<GatewayKey> {
        if core::mem::replace(&mut self.epoch, epoch) == epoch {
            return Vec::new();
        }
        self.end_running(|_| true)
    }

    fn ended(&mut self, running: &Running) {
        self.askers.remove(&running.asker);
        running.counted.into_iter().for_each(|node| self.load.end(node));
    }

    fn end_running(&mut self, ends: impl Fn(&Running) -> bool) -> Vec<GatewayKey> {
        let all = core::mem::take(&mut self.running).into_iter();
        let (ended, running): (Vec<_>, Vec<_>) = all.partition(|(_, running)| ends(running));
        self.running = running.into_iter().collect();
        ended.iter().for_each(|(_, running)| self.ended(running));
        ended.into_iter().map(|(_, running)| running.asker).collect()
    }

    /// The local member cannot read now: what waits for it is given back.
    pub(crate) fn refuse_waiting(&mut self) -> Vec<GatewayKey> {
        core::mem::take(&mut self.waiting).into_iter().map(|read| read.asker).collect()
    }

    /// The view ends, and with it what is known of marks: whatever was not answered is given back.
    pub(crate) fn begin_again(&mut self) -> Vec<GatewayKey> {
        let mut askers = self.refuse_waiting();
        let marked = self.marked.take().into_iter().flat_map(|(_, reads)| reads);
        askers.extend(marked.map(|read| read.asker));
        // What waits for no mark has nothing to do with views.
        askers.extend(self.end_running(|running| running.behind > 0));
        askers.extend(self.done.drain(..).map(|done| done.asker));
        self.delivered.clear();
        self.wanted = false;
        self.safe_mark = self.last_mark;
        (self.held_mark, self.logged_mark) = (self.last_mark, self.last_mark);
        self.safe_requests = None;
        askers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::rules::name_fits;

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        for (pattern, name, expected) in [
            ("balance", "balance", true),
            ("balance", "balances", false),
            ("get_*", "get_", true),
            ("get_*", "get_all", true),
            ("get_*", "forget_all", false),
            ("*", "", true),
            ("*_of", "balance_of", true),
            ("*_of", "balance_off", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
            ("*aa*a", "aaa", true),
            ("*aa*a", "aa", false),
        ] {
            assert_eq!(
                name_fits(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }

    fn asker(number: u64) -> GatewayKey {
        let number = RequestNumber(number);
        GatewayKey { node: NodeId::new(0).unwrap(), incarnation: 1, number }
    }

    fn read(number: u64) -> Read {
        Read { asker: asker(number), giop: Bytes::new(), code_sets: None }
    }

    #[test]
    fn one_mark_serves_all_that_wait_and_a_reply_leaves_when_it_is_safe() {
        let mut reads = Reads::default();
        reads.wait(read(1));
        reads.wait(read(2));
        assert_eq!(reads.next_mark(), Some(1));
        reads.wait(read(3));
        assert_eq!(reads.next_mark(), None, "the first one is on its way");
        let first = reads.mark_delivered(1, 7);
        assert_eq!(first.len(), 2);
        assert_eq!(reads.next_mark(), Some(2));
        let id = reads.started(first[0].asker, 1, asker(1).node);
        assert_eq!(reads.executed(id, Some(Bytes::from_static(b"r"))), None);
        assert_eq!(reads.next_reply(), None);
        reads.mark_safe(1);
        assert_eq!(reads.next_reply(), Some((asker(1), Bytes::from_static(b"r"))));
    }

    /// styles 1910412: each message that did not fit had all calls ordered anew, and executed.
    #[test]
    fn what_is_ordered_is_not_lost_with_a_link_and_what_runs_is_not_begun_again() {
        let node = NodeId::new(1).unwrap();
        let mut reads = Reads::default();
        reads.sent(RequestNumber(1), node, false);
        reads.sent(RequestNumber(2), node, true);
        assert_eq!(reads.link_down(node), [RequestNumber(1)]);
        // Its word that it cannot is a message, though.
        assert_eq!(reads.lost_at(node), [RequestNumber(2)]);
        let id = reads.started(asker(1), 0, asker(1).node);
        assert!(reads.is_running(&asker(1)) && !reads.is_running(&asker(2)));
        reads.executed(id, Some(Bytes::new()));
        assert!(!reads.is_running(&asker(1)));
        reads.started(asker(2), 0, asker(2).node);
        assert_eq!(reads.in_epoch(Some(1)), [asker(2)]);
        assert!(!reads.is_running(&asker(2)));
    }

    #[test]
    fn a_read_at_once_waits_for_a_mark_only_if_something_is_not_safe() {
        let mut reads = Reads::default();
        assert_eq!(reads.mark_behind(3), 1);
        assert_eq!(reads.next_mark(), Some(1));
        assert_eq!(reads.mark_behind(4), 1, "it is delivered later");
        assert!(reads.mark_delivered(1, 4).is_empty());
        assert_eq!(reads.mark_behind(4), 2, "not safe yet");
        reads.mark_safe(1);
        assert_eq!(reads.mark_behind(4), 0);
        assert_eq!(reads.mark_behind(5), 2);
    }

    #[test]
    fn a_view_gives_back_what_was_not_answered() {
        let mut reads = Reads::default();
        reads.wait(read(1));
        reads.next_mark();
        reads.wait(read(2));
        let id = reads.started(asker(3), 1, asker(3).node);
        assert_eq!(reads.begin_again(), [asker(2), asker(1), asker(3)]);
        assert_eq!(reads.executed(id, Some(Bytes::new())), None);
        assert_eq!(reads.next_reply(), None);
        assert!(reads.mark_delivered(1, 0).is_empty(), "it is of before");
    }
}
