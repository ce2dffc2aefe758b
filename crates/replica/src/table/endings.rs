//! Requests that servers did not answer: what members report of them, and what the group concludes.
//!
//! Replicas are deterministic, so what one server does with a request all do, and nobody is at
//! fault for what all did. A member whose server does not reply says so in the order; whoever
//! executed the same request says what it saw, and the place of the last word decides. If nobody
//! replied, the *request* has ended without a reply, and the members stay in. If somebody replied,
//! those that did not are at fault. A server process that ends at a request takes its member down
//! as ever; when two have ended at the same one, no server executes it any more.
//!
//! What it is not: what servers do, which the executor sees, nor who is in, which the table knows.
//! Invariants: part of the replicated table, so a pure function of what was delivered; a member is
//! never at fault alone in its group; a request that somebody who is in has answered ends no other
//! way.

mod agreed;
mod behind;
mod codec;
mod states;

pub(crate) use self::agreed::{Agreed, ROUNDS};
pub(crate) use self::behind::EndsBehindRequest;
pub(crate) use self::codec::{put_named, take_named};
pub(crate) use self::states::States;
use crate::table::DownReason;
use crate::words::history::History;
use crate::words::ids::{GroupId, RequestKey};
use crate::words::node_map::NodeMap;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet, canary};

/// Requests that are inquired into at the same time, and ends that are remembered; the oldest go.
const OPEN_MAX: usize = 256;
pub(crate) const ENDED_MAX: usize = 1024;
/// So many processes may end at a request before no server executes it any more.
const PROCESS_ENDS_MAX: u8 = 2;
/// Not the number of a comparison: a server has been given a log with such requests in it, and may
/// have done with them what another one, whose state went on, has not.
pub(crate) const REPLAYED: u64 = ROUNDS - 1;

/// What a server whose process lives did with a request instead of replying.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NoReply {
    /// It ended the connection.
    ConnectionEnded,
    /// It sent something that is no reply.
    NotAReply,
    /// It answered with MessageError: it cannot read the request.
    Rejected,
    /// It closed the connection in good order, each time the request was sent (GIOP §15.5.1.1).
    NeverTaken,
}

impl NoReply {
    /// What is said of a member whose server did so alone.
    pub(crate) fn fault(self) -> DownReason {
        match self {
            Self::ConnectionEnded | Self::NeverTaken => DownReason::ConnectionLost,
            Self::NotAReply | Self::Rejected => DownReason::ServerProtocol,
        }
    }
}

/// How a request ended that has no reply of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequestEnd {
    /// All members that executed it saw the same.
    NoReply(NoReply),
    /// Server processes ended at it; it is not executed again.
    EndsServers,
    /// An operator, or the group's own limit, gave it up; it is not executed again.
    Skipped,
}

impl RequestEnd {
    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoReply(NoReply::ConnectionEnded) => {
                "every server that executed it closed the connection, and still runs"
            }
            Self::NoReply(NoReply::NotAReply) => {
                "every server that executed it sent something that is no reply, and still runs"
            }
            Self::NoReply(NoReply::Rejected) => "the servers cannot read it",
            Self::NoReply(NoReply::NeverTaken) => {
                "the servers closed the connection each time it was sent to them"
            }
            Self::EndsServers => "server processes ended at it; it is not executed again",
            Self::Skipped => "it was given up; it is not executed again",
        }
    }

    /// Whether nobody may execute it from here on. What no server has taken, none has executed.
    pub(crate) fn forbids_execution(self) -> bool {
        match self {
            Self::NoReply(NoReply::ConnectionEnded | NoReply::NotAReply | NoReply::Rejected) => {
                false
            }
            Self::NoReply(NoReply::NeverTaken) | Self::EndsServers | Self::Skipped => true,
        }
    }
}

/// What a member says of a request that is inquired into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    /// Its server replied.
    Replied,
    /// Its server has not been given the request, and is not until this is decided.
    NotStarted,
    /// Its server has it for longer than is usual.
    Late,
    /// Its server has had it for as long as the group lets a server have a request.
    GivenUp,
    /// Its server has caught up: it is late with nothing.
    CaughtUp,
    /// Its server did not reply, and lives.
    NoReply(NoReply),
}

impl Report {
    /// The server may still reply, and then that is to be said.
    fn is_provisional(self) -> bool {
        matches!(self, Self::Late | Self::GivenUp)
    }
}

/// A request that somebody has not answered.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Inquiry {
    /// What the group was delivered with it.
    at: History,
    reports: BTreeMap<NodeId, Report>,
    /// Server processes that were seen to end at it.
    process_ends: u8,
    /// A leader that was late with it was followed by another one.
    handed_over: bool,
    /// So many have replied to it as it takes to answer it; they need not be in any more.
    answered: bool,
}

impl Inquiry {
    fn new(at: History) -> Self {
        let (process_ends, handed_over, answered) = (0, false, false);
        Self { at, reports: BTreeMap::new(), process_ends, handed_over, answered }
    }

    fn who(&self, says: impl Fn(Report) -> bool) -> NodeSet {
        let of = |(node, report): (&NodeId, &Report)| says(*report).then_some(*node);
        self.reports.iter().filter_map(of).collect()
    }

    fn replied(&self) -> NodeSet {
        self.who(|report| report == Report::Replied)
    }

    fn ended(&self) -> NodeSet {
        self.who(|report| matches!(report, Report::NoReply(_)))
    }

    /// What these members' servers did with it; `are_all`: nobody else can have been given it. That
    /// it was never taken is promised to its caller, and so only if all of them say that.
    fn how(&self, ended: NodeSet, are_all: bool) -> Option<NoReply> {
        let hows = ended.iter().filter_map(|node| match self.reports.get(&node) {
            Some(Report::NoReply(how)) => Some(*how),
            _ => None,
        });
        match hows.min_by_key(|how| *how == NoReply::NeverTaken)? {
            NoReply::NeverTaken if !are_all => Some(NoReply::ConnectionEnded),
            how => Some(how),
        }
    }

    /// Members must say what they know of it.
    fn wants_reports(&self) -> bool {
        !self.reports.is_empty() || self.is_held()
    }

    /// Nobody may begin it before this is decided.
    fn is_held(&self) -> bool {
        self.process_ends >= PROCESS_ENDS_MAX
    }
}

/// What follows from reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Conclusion {
    /// The request has ended.
    Ended { key: RequestKey, at: History, end: RequestEnd },
    /// This member's server did something else with a request than another one.
    AtFault { node: NodeId, reason: DownReason, at: History },
    /// A call has ended that somebody who is gone had answered: one replica of its caller may have
    /// heard the reply, and another one hears of the end.
    CallersMayDiffer { caller: GroupId, during: History },
}

/// What a member had when it came in, as a count of the group's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JoinedWith {
    /// Its server had been given these, and may be at them still.
    Requests(u64),
    /// Its server is through with these, or was given the state behind them.
    State(u64),
}

impl JoinedWith {
    fn count(self) -> u64 {
        let (Self::Requests(count) | Self::State(count)) = self;
        count
    }
}

/// Who is in, as far as it matters here.
pub(crate) struct Electorate<'a> {
    /// Members that are in.
    pub(crate) inside: NodeSet,
    /// Those of them that execute requests, and for each what it was brought in with.
    pub(crate) executing: NodeSet,
    pub(crate) joined: &'a dyn Fn(NodeId) -> JoinedWith,
    /// What most reply counts, not what anybody does.
    pub(crate) votes: bool,
    /// What was answered is on disks, whoever is gone.
    pub(crate) durable: bool,
    /// Where only one executes: all up to this one another one may have answered before.
    pub(crate) led_from: u64,
    /// A server has one request at a time, so that it has replied to all before the one it is at.
    pub(crate) in_sequence: bool,
    /// Whoever leads keeps what it executes from, for another server.
    pub(crate) begins_anew: bool,
}

impl Electorate<'_> {
    /// Those that have executed a request, or are to.
    fn of(&self, at: History) -> NodeSet {
        let has_a_say = |node: &NodeId| match (self.joined)(*node) {
            // Whatever it came in with, its own server was given it, or is to be.
            JoinedWith::Requests(_) => true,
            JoinedWith::State(count) => count < at.count,
        };
        self.executing.iter().filter(has_a_say).collect()
    }

    /// Those that came in with what was answered to it. A leader may only have kept it.
    fn came_with(&self, at: History) -> NodeSet {
        if self.executing != self.inside || self.inside.len() < 2 {
            return NodeSet::EMPTY;
        }
        let has = |node: &NodeId| match (self.joined)(*node) {
            JoinedWith::State(count) => count >= at.count,
            // Its server may be at it still.
            JoinedWith::Requests(_) => false,
        };
        self.executing.iter().filter(has).collect()
    }
}

/// How a request has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ended {
    at: History,
    end: RequestEnd,
    /// Which of all ends of the group.
    number: u64,
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Endings {
    open: BTreeMap<RequestKey, Inquiry>,
    ended: BTreeMap<RequestKey, Ended>,
    /// Requests that were given up, by their place, and which of all ends each is; it may be that
    /// no member can tell their names.
    skipped: BTreeMap<u64, (History, u64)>,
    /// Ends so far.
    count: u64,
    /// Members that were late with a request when others had replied; others answer for them.
    late: NodeSet,
    /// What members came in with, of those that did not begin with the group.
    joined_with: NodeMap<JoinedWith>,
    /// Members whose servers have replied to a request that had ended without a reply; until the
    /// next conclusion, which follows at the same place.
    strangers: BTreeMap<NodeId, History>,
    /// All requests up to this one were answered by a member that is gone.
    answered: u64,
    /// Whether the members' states are known to be equal behind a request that was not answered.
    pub(crate) states: States,
    /// Processes that ended behind a request, and not at one.
    pub(crate) behind: EndsBehindRequest,
    /// What state they had in common when the group was quiet, of servers that may be others.
    pub(crate) agreed: Agreed,
}

impl Endings {
    /// Members that are late, so that others answer.
    pub(crate) fn late(&self) -> NodeSet {
        self.late
    }

    /// Changes whenever [`Self::ends`] or [`Self::skipped`] does.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Requests at which a leader was at fault, so that another one follows it.
    pub(crate) fn handed_over(&self) -> impl Iterator<Item = &RequestKey> + Clone {
        self.open.iter().filter(|(_, inquiry)| inquiry.handed_over).map(|(key, _)| key)
    }

    /// Whether that request is one of those.
    pub(crate) fn is_handed_over(&self, at: History) -> bool {
        self.open.values().any(|inquiry| inquiry.at == at && inquiry.handed_over)
    }

    /// Whether members must say what they know of requests.
    pub(crate) fn has_questions(&self) -> bool {
        self.open.values().any(Inquiry::wants_reports)
    }

    /// Requests that have ended without a reply, newest last: their names, places and ends.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (&RequestKey, History, RequestEnd)> {
        let mut ends: Vec<_> = self.ended.iter().collect();
        ends.sort_by_key(|(_, ended)| ended.number);
        ends.into_iter().map(|(key, ended)| (key, ended.at, ended.end))
    }

    /// How a request has ended that no server executes any more.
    pub(crate) fn end_of(&self, key: &RequestKey) -> Option<RequestEnd> {
        let (known, ended) = self.ended.get_key_value(key)?;
        let end = Some(ended.end).filter(|end| end.forbids_execution());
        end.filter(|_| known.is_repeated_by(key))
    }

    /// The last request that ended without a reply, and that somebody may have executed.
    pub(crate) fn last_in_doubt(&self) -> Option<u64> {
        let ended = self.ended.values().filter(|ended| ended.end != RequestEnd::EndsServers);
        let skipped = self.skipped.values().map(|(at, _)| at.count);
        ended.map(|ended| ended.at.count).chain(skipped).max()
    }

    /// Requests that were given up.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = History> + '_ {
        self.skipped.values().map(|(at, _)| *at)
    }

    /// What the member on `node` says of a request.
    pub(crate) fn hear(&mut self, node: NodeId, (key, at): (RequestKey, History), report: Report) {
        if report == Report::CaughtUp {
            self.late.remove(node);
            return;
        }
        if let Some(ended) = self.ended.get(&key)
            && report == Report::Replied
            && ended.at == at
            && !ended.end.forbids_execution()
        {
            self.strangers.insert(node, at);
        }
        if self.ended.contains_key(&key) || self.is_skipped(at) {
            return;
        }
        let inquiry = self.inquiry(key, at);
        let others_replied = !inquiry.replied().difference(NodeSet::EMPTY.with(node)).is_empty();
        inquiry.reports.insert(node, report);
        match report {
            Report::Late | Report::GivenUp if others_replied => self.late.insert(node),
            Report::Replied => self.late.remove(node),
            _ => {}
        }
    }

    /// The server process of a member has ended at these requests, of which it worked on several at
    /// the same time if there are some; all up to `answered` were answered by it.
    pub(crate) fn process_ended(&mut self, at: &[(RequestKey, History)], answered: u64) {
        self.answered = self.answered.max(answered);
        self.behind.process_ended(self.executed_last(answered));
        for (key, at) in at {
            let is_over = self.ended.contains_key(key) || at.count <= self.answered;
            // A stranger's request under the name of this one says nothing of it.
            let open = self.open.get_key_value(key);
            if is_over || open.is_some_and(|(known, _)| !known.is_repeated_by(key)) {
                continue;
            }
            let counted = u8::from(!canary!(ForgetsProcessEnds));
            let inquiry = self.inquiry(key.clone(), *at);
            inquiry.process_ends = inquiry.process_ends.saturating_add(counted);
        }
    }

    /// The last of these that servers executed, as far as that is known.
    fn executed_last(&self, answered: u64) -> u64 {
        let ended = self.ended.values().filter(|ended| ended.end.forbids_execution());
        let ended = ended.map(|ended| ended.at.count).chain(self.skipped.keys().copied());
        let not_executed: BTreeSet<u64> = ended.collect();
        (0..=answered).rev().find(|count| !not_executed.contains(count)).unwrap_or(0)
    }

    fn inquiry(&mut self, key: RequestKey, at: History) -> &mut Inquiry {
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&key) {
            let oldest = self.open.iter().min_by_key(|(_, inquiry)| inquiry.at.count);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.open.remove(&oldest);
            }
        }
        let inquiry = self.open.entry(key).or_insert_with(|| Inquiry::new(at));
        if inquiry.at != at {
            // It was delivered once more, behind another past: what was reported is of before.
            let process_ends = inquiry.process_ends;
            *inquiry = Inquiry { process_ends, ..Inquiry::new(at) };
        }
        inquiry
    }

    /// A member comes in, or joins, with this; `is_given`: another one's state.
    pub(crate) fn join(&mut self, node: NodeId, joined_with: JoinedWith, is_given: bool) {
        self.joined_with.insert(node, joined_with);
        if is_given {
            self.states.is_given_a_state(node);
        }
    }

    /// So many requests a member came in with.
    pub(crate) fn joined_with_count(&self, node: NodeId) -> Option<u64> {
        self.joined_with.get(node).map(|joined_with| joined_with.count())
    }

    /// What members came in with, of those that did not begin with the group.
    pub(crate) fn all_joined_with(&self) -> NodeMap<JoinedWith> {
        self.joined_with.clone()
    }

    /// A member is not in any more, or comes in anew: what it said does not count.
    pub(crate) fn leave(&mut self, node: NodeId) {
        self.late.remove(node);
        for inquiry in self.open.values_mut() {
            inquiry.reports.remove(&node);
        }
    }

    /// The group has another past from here on: only what ended for good is known.
    pub(crate) fn begin_anew(&mut self) {
        self.late = NodeSet::EMPTY;
        self.joined_with.clear();
        self.answered = 0;
        self.open.retain(|_, inquiry| inquiry.process_ends > 0);
        for inquiry in self.open.values_mut() {
            inquiry.reports.clear();
            inquiry.answered = false;
        }
        self.states = States::default();
    }

    /// Whether a request can be given up: it has not ended, and nobody who is in has answered it,
    /// as far as that was said, nor anybody who is gone, if disks have it.
    pub(crate) fn may_skip(&self, at: History, electorate: &Electorate<'_>) -> bool {
        let is_answered =
            self.open.values().any(|inquiry| inquiry.at == at && !inquiry.replied().is_empty());
        let is_answered = is_answered || self.is_kept(at, electorate);
        !is_answered && !self.has_ended(at)
    }

    /// Whether that request is known to have ended without a reply.
    pub(crate) fn has_ended(&self, at: History) -> bool {
        self.ended.values().any(|ended| ended.at == at) || self.is_skipped(at)
    }

    fn is_skipped(&self, at: History) -> bool {
        self.skipped.get(&at.count).is_some_and(|(of, _)| *of == at)
    }

    /// Whether one of the first requests, as many as `count`, has ended without a reply since there
    /// were that many `ends`. Whoever heard of none of it may have a server that replied.
    pub(crate) fn has_ended_since(&self, ends: u64, count: u64) -> bool {
        let ended = self.ended.values().map(|ended| (ended.at, ended.number));
        let mut all = ended.chain(self.skipped.values().copied());
        all.any(|(at, number)| at.count <= count && number > ends)
    }

    /// A member executes again what ended without a reply, or replied to it meanwhile, and is all
    /// that the group has: whoever did so before may have done otherwise, and has heard of an
    /// earlier end (seed 101302 of the simulator's `calls`). `is_so`: of which, by place and
    /// number. Gives the first of them.
    pub(crate) fn end_again(
        &mut self,
        is_so: impl Fn(u64, u64) -> bool,
    ) -> Option<(History, RequestEnd)> {
        let is_again = |e: &&mut Ended| !e.end.forbids_execution() && is_so(e.at.count, e.number);
        let mut again: Vec<&mut Ended> = self.ended.values_mut().filter(is_again).collect();
        again.sort_by_key(|ended| ended.number);
        for ended in &mut again {
            self.count += 1;
            ended.number = self.count;
        }
        let first = again.into_iter().min_by_key(|ended| ended.at.count)?;
        Some((first.at, first.end))
    }

    /// Whether a request behind the first `count` was given up. Those that had it may have executed
    /// it, and whoever has not leaves it out.
    pub(crate) fn is_any_skipped_behind(&self, count: u64) -> bool {
        self.given_up().any(|at| at.count > count)
    }

    /// Whether somebody of the electorate may have executed a request that was given up. Whoever
    /// executes everything again leaves it out.
    pub(crate) fn may_have_executed_skipped(&self, electorate: &Electorate<'_>) -> bool {
        self.given_up().any(|at| !electorate.of(at).is_empty())
    }

    /// Where requests were that were given up: those with a name, and those that only have a place.
    fn given_up(&self) -> impl Iterator<Item = History> {
        let ended = self.ended.values().filter(|ended| ended.end == RequestEnd::Skipped);
        ended.map(|ended| ended.at).chain(self.skipped())
    }

    /// Gives a request up.
    pub(crate) fn skip(&mut self, at: History) {
        self.count += 1;
        self.skipped.insert(at.count, (at, self.count));
        while self.skipped.len() > ENDED_MAX {
            self.skipped.pop_first();
        }
        self.open.retain(|_, inquiry| inquiry.at != at);
    }

    /// Requests of which the member on `node` has not said for good what it must, and whether it
    /// may not begin them.
    pub(crate) fn asked_of(
        &self,
        node: NodeId,
        electorate: &Electorate<'_>,
    ) -> Vec<(RequestKey, History, bool)> {
        let is_asked = |inquiry: &Inquiry| {
            inquiry.wants_reports()
                && electorate.of(inquiry.at).contains(node)
                && inquiry.reports.get(&node).is_none_or(|report| report.is_provisional())
        };
        let asked = self.open.iter().filter(|(_, inquiry)| is_asked(inquiry));
        asked.map(|(key, inquiry)| (key.clone(), inquiry.at, inquiry.is_held())).collect()
    }

    /// Requests that no member may begin, whether it is asked or not: a leader that was relieved
    /// still has what it was given (seed 300022 of the simulator's `calls`).
    pub(crate) fn held(&self) -> BTreeSet<RequestKey> {
        let held = self.open.iter().filter(|(_, inquiry)| inquiry.is_held());
        held.map(|(key, _)| key.clone()).collect()
    }

    /// Whether a request was answered, by whomever, and is kept: on disks, or in the logs of those
    /// that stand by. Then it is executed, and a server that does not can be ended.
    pub(crate) fn is_kept(&self, at: History, electorate: &Electorate<'_>) -> bool {
        let mut of_it = self.open.values().filter(|inquiry| inquiry.at == at);
        // Of votes one that is gone does not tell how they went.
        let is_behind = at.count <= self.answered && !electorate.votes;
        let stand_by = electorate.inside != electorate.executing;
        (electorate.durable || stand_by) && (is_behind || of_it.any(|inquiry| inquiry.answered))
    }

    /// Whether somebody who is in, but for `node`, has replied to a request.
    pub(crate) fn is_answered_elsewhere(
        &self,
        node: NodeId,
        at: History,
        electorate: &Electorate<'_>,
    ) -> bool {
        let came_with = electorate.came_with(at);
        let mut of_it = self.open.values().filter(|inquiry| inquiry.at == at);
        of_it.any(|inquiry| inquiry.replied().union(came_with).iter().any(|other| other != node))
    }

    /// Nothing can follow from what is known now.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.is_empty() && self.strangers.is_empty()
    }

    /// What follows from what is known now.
    pub(crate) fn conclude(&mut self, electorate: &Electorate<'_>) -> Vec<Conclusion> {
        let mut found = Vec::new();
        for (node, at) in core::mem::take(&mut self.strangers) {
            // Where it alone executes, what it does counts.
            if electorate.executing != NodeSet::EMPTY.with(node) {
                let reason = DownReason::Diverged;
                found.push(Conclusion::AtFault { node, reason, at });
            }
        }
        let keys: Vec<RequestKey> = self.open.keys().cloned().collect();
        for key in keys {
            self.conclude_one(&key, electorate, &mut found);
        }
        for conclusion in &found {
            if let Conclusion::AtFault { node, at, .. } = conclusion
                && electorate.in_sequence
                && electorate.executing.contains(*node)
            {
                // Its server goes, and with it what it has replied.
                self.answered = self.answered.max(at.count.saturating_sub(1));
            }
        }
        found
    }

    fn conclude_one(
        &mut self,
        key: &RequestKey,
        electorate: &Electorate<'_>,
        found: &mut Vec<Conclusion>,
    ) {
        let Some(at) = self.open.get(key).map(|inquiry| inquiry.at) else { return };
        let is_kept = self.is_kept(at, electorate);
        // Whose server hangs has what the others have executed only if somebody gives it that.
        let stand_by = electorate.inside.difference(electorate.executing).difference(self.late);
        let Some(inquiry) = self.open.get_mut(key) else { return };
        let electors = electorate.of(at);
        let replied = inquiry.replied().intersection(electorate.inside);
        let replied = replied.union(electorate.came_with(at));
        let have_most = !electorate.votes || replied.len() * 2 >= electors.len();
        inquiry.answered |= !replied.is_empty() && have_most;
        let is_answered = is_kept || inquiry.answered;
        if replied.is_empty() && inquiry.is_held() && !is_kept {
            let have_not = inquiry.who(|report| report == Report::NotStarted);
            if electors.is_subset(have_not.union(inquiry.ended())) {
                self.end(key, at, RequestEnd::EndsServers, found);
            }
            return;
        }
        if !replied.is_empty() || is_kept {
            // Whoever ended at it did so for another reason, and who waits may begin.
            inquiry.process_ends = 0;
            inquiry.reports.retain(|_, report| *report != Report::NotStarted);
        }
        if canary!(OddIsFault) {
            return found.extend(inquiry.at_fault());
        }
        let ended = inquiry.ended().intersection(electors);
        let all_ended = !electors.is_empty() && electors.is_subset(ended) && replied.is_empty();
        let all_ended = all_ended && !is_kept;
        let most_ended = electorate.votes && ended.len() * 2 > electors.len();
        if all_ended && let Some(fault) = inquiry.is_tried_once_more(stand_by, electorate) {
            return found.push(fault);
        }
        if all_ended || most_ended {
            if let Some(how) = inquiry.how(ended, all_ended) {
                self.end(key, at, RequestEnd::NoReply(how), found);
                let differ = replied.intersection(electors).iter();
                let reason = DownReason::Diverged;
                found.extend(differ.map(|node| Conclusion::AtFault { node, reason, at }));
            }
            return;
        }
        if !replied.is_empty() && have_most {
            found.extend(inquiry.at_fault());
            if electors.is_subset(replied) {
                self.open.remove(key);
            }
            return;
        }
        if is_kept {
            found.extend(inquiry.at_fault());
        }
        let given_up = inquiry.who(|report| report == Report::GivenUp);
        if !electors.is_empty() && electors.is_subset(given_up) && !is_answered {
            self.end(key, at, RequestEnd::Skipped, found);
            return;
        }
        found.extend(inquiry.hand_over(stand_by, electorate));
    }

    fn end(&mut self, key: &RequestKey, at: History, end: RequestEnd, found: &mut Vec<Conclusion>) {
        let is_answered = self.open.remove(key).is_some_and(|inquiry| inquiry.answered);
        self.count += 1;
        self.ended.insert(key.clone(), Ended { at, end, number: self.count });
        while self.ended.len() > ENDED_MAX {
            let oldest = self.ended.iter().min_by_key(|(_, ended)| ended.number);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.ended.remove(&oldest);
        }
        found.push(Conclusion::Ended { key: key.clone(), at, end });
        if let RequestKey::Nested(call) = key
            && (is_answered || at.count <= self.answered)
        {
            let (caller, during) = (call.caller, call.during);
            found.push(Conclusion::CallersMayDiffer { caller, during });
        }
    }
}

impl Inquiry {
    /// Others have replied: those whose servers did not are at fault.
    fn at_fault(&self) -> Vec<Conclusion> {
        let at = self.at;
        let fault = |(node, report): (&NodeId, &Report)| match report {
            Report::NoReply(how) => {
                Some(Conclusion::AtFault { node: *node, reason: how.fault(), at })
            }
            _ => None,
        };
        self.reports.iter().filter_map(fault).collect()
    }

    /// Only one member executes, and has no reply to what the one before it may have answered. If
    /// the next one, which has kept it, has none either, it is the request.
    fn is_tried_once_more(
        &mut self,
        others: NodeSet,
        electorate: &Electorate<'_>,
    ) -> Option<Conclusion> {
        // Where nobody else is in, its own next server is that one (seed 100185 of the simulator's
        // `styles`).
        let begins_anew = electorate.begins_anew && electorate.inside == electorate.executing;
        let is_any = !others.is_empty() || begins_anew;
        if !is_any || self.at.count > electorate.led_from {
            return None;
        }
        let fault = self.at_fault().into_iter().next()?;
        let is_first = !core::mem::replace(&mut self.handed_over, true);
        is_first.then_some(fault)
    }

    /// Only one member executes, and is late: another one, which has kept what it needs for that,
    /// tries once. If that is late, too, it is the request.
    fn hand_over(&mut self, others: NodeSet, electorate: &Electorate<'_>) -> Option<Conclusion> {
        let is_late = |node: &NodeId| self.reports.get(node) == Some(&Report::Late);
        let node = electorate.executing.iter().find(is_late)?;
        if others.is_empty() || core::mem::replace(&mut self.handed_over, true) {
            return None;
        }
        Some(Conclusion::AtFault { node, reason: DownReason::ServerHung, at: self.at })
    }
}

#[cfg(test)]
mod tests;
