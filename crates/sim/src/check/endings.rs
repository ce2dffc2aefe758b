//! Requests that servers did not answer: what callers were told of them, and at which processes
//! ended.
//!
//! What it is not: the engine's opinion of either. Invariants looked at: a request that has ended
//! without a reply has ended so for everybody who asks; one at which processes ended is executed
//! by few, and by nobody when its caller was told; no server is ended by its node that lives and
//! has what nobody else has.

use super::acknowledged_calls;
use crate::fault::Fault;
use crate::ledger::Call;
use crate::names::{group_id, index_of};
use crate::servant::{Log, Operation, Reference, Wish};
use crate::server::Work;
use crate::world::{World, ms, node_id};
use quorba_base::{Duration, Instant, NodeId};
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::{
    Concurrency, DownReason, Event as ReplicaEvent, GroupId, GroupSnapshot, Lacks, MemberState,
    PrimaryStatus, RequestEnd, Style,
};
use quorba_giop::{MinorCode, QUORBA_VMCID, SystemException};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A node that is lost within this time after its server ended may not have told of that.
const TELLS_WITHIN: Duration = Duration::from_secs(5);
/// A node may stand still with a request that others have long given up.
const STANDS_STILL: Duration = Duration::from_secs(10);
/// A group whose last server is ended is lost within this time.
const LOST_WITHIN: Duration = Duration::from_secs(1);
/// So many connections to one server are made within this time, and not more.
const CONNECTS_MAX: usize = 12;
const STORM: Duration = Duration::from_millis(20);
/// When all is quiet, what is decided is known to all after this time.
const KNOWN_AFTER: Duration = Duration::from_secs(1);

/// A process ended at a request.
#[derive(Clone, Copy, Debug)]
struct Death {
    node: usize,
    at: Instant,
    /// Its member was in: the group hears of it.
    is_in: bool,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Endings {
    deaths: BTreeMap<Reference, Vec<Death>>,
    /// When nodes ended, or were not part of what went on.
    absences: Vec<(usize, Instant)>,
    /// When callers were told of an end, and of which.
    told: BTreeMap<Reference, (Instant, MinorCode)>,
    /// By node and group: when connections to its server were made lately, while it had executed
    /// that many calls.
    connects: BTreeMap<(usize, usize), (u64, VecDeque<Instant>)>,
    /// By group: whose server was ended, though nobody else was known to have its state, and when.
    pub(super) last_servers: BTreeMap<usize, LastServer>,
    /// Nodes and groups: members that are to be given another one's state.
    given_up: BTreeSet<(usize, usize)>,
    /// Calls at which some server was.
    pub(crate) odd: BTreeSet<Reference>,
    /// Processes that ended, for whatever reason, at each call that they were at.
    ends_at: BTreeMap<Reference, u32>,
    /// Members whose servers were odd alone.
    pub(crate) strange: BTreeSet<(usize, usize)>,
    /// By group: servers that had failed, and were all that it had, when it ended a request because
    /// of them. What they have replied since holds as long as somebody has their state.
    alone: BTreeMap<usize, BTreeSet<usize>>,
    /// Groups that call one whose replies are lost like that: a replica may have heard one before,
    /// and another one hears what is left (seed 400876 of `calls`).
    callers_of_lost: BTreeSet<usize>,
    /// By group and number: requests that an operator gives up, and the calls that servers were at
    /// then. What is called in one that has been given up is refused.
    skips: BTreeMap<(usize, u64), BTreeSet<Reference>>,
    abandoned: BTreeSet<Reference>,
    /// Groups that have given requests up, and calls that were answered while their members might
    /// differ because of that.
    skipped: BTreeSet<usize>,
    /// By group: when a member was found to differ. Its replies may still be on their way.
    differed_at: BTreeMap<usize, Instant>,
    pub(super) doubtful: BTreeSet<Reference>,
    /// Those of them that were answered in that time.
    answered_in_doubt: BTreeSet<Reference>,
    /// Calls that had one, servers that died at one, and requests that nodes ended for.
    pub(crate) ended: u64,
    pub(crate) died: u64,
    pub(crate) faults: u64,
}

/// Which end an exception tells of, if any.
pub(crate) fn end_of(exception: &SystemException) -> Option<MinorCode> {
    use MinorCode::{EndsServers, NeverTaken, NoReply, Skipped};
    let is = |code: &MinorCode| exception.minor == QUORBA_VMCID | code.number();
    [NoReply, EndsServers, Skipped, NeverTaken].into_iter().find(|code| is(code))
}

/// Whether the local member takes part, and keeps all that its next server is to be given.
fn waits_for_server(table: &GroupSnapshot) -> bool {
    table.local == Some("starting its server")
}

/// A node ended a server that was the last one of its group that had all.
#[derive(Debug)]
pub(super) struct LastServer {
    pub(super) node: usize,
    pub(super) server: usize,
    pub(super) at: Instant,
}

impl Endings {
    /// A node's process ended.
    pub(super) fn absent(&mut self, node: usize, at: Instant) {
        self.absences.push((node, at));
    }

    /// A group has a member, whoever's server was ended before.
    pub(super) fn goes_on(&mut self, group: usize) {
        self.last_servers.remove(&group);
    }

    /// Whether a member may differ from others.
    pub(super) fn may_differ(&self, node: NodeId, group: GroupId) -> bool {
        self.strange.contains(&(usize::from(node.index()), index_of(group)))
    }

    /// Whether a group may have ended a call without a reply.
    pub(super) fn may_end(&self, call: Reference) -> bool {
        let is_poison = self.ends_at.get(&call).is_some_and(|ends| *ends >= 2);
        is_poison || self.odd.contains(&call) || self.abandoned.contains(&call)
    }

    /// `stateless`: the node whose client has the call counts. It is told on its link to the
    /// other, which need not be up again when both are in (seed 9100320 of `styles`).
    fn may_be_unknown(&self, death: &Death, stateless: bool) -> bool {
        let until = death.at + TELLS_WITHIN;
        let mut of_it = self.absences.iter().filter(|(node, _)| stateless || *node == death.node);
        !death.is_in || of_it.any(|(_, at)| *at + ms(1_000) >= death.at && *at <= until)
    }
}

impl World {
    /// An operator gives up a request that servers are late with, though they need not be odd: they
    /// wait for others (seed 650324 of `calls`).
    pub(crate) fn note_skip(&mut self, group: usize, number: u64) {
        let calls: BTreeSet<Reference> = self.calling_in(group).collect();
        self.checks.endings.skips.entry((group, number)).or_default().extend(calls);
    }

    /// Nodes that are not part of a component, as one of those that are says.
    pub(super) fn note_absences(&mut self, node: usize, event: &ReplicaEvent) {
        let now = self.now;
        match event {
            ReplicaEvent::Member { group, node: member, state, .. } if *member == node_id(node) => {
                let given_up = &mut self.checks.endings.given_up;
                match state {
                    MemberState::Joining { lacks: Lacks::State, .. } => {
                        given_up.insert((node, index_of(*group)));
                    }
                    MemberState::In { .. } => {
                        given_up.remove(&(node, index_of(*group)));
                    }
                    _ => {}
                }
            }
            ReplicaEvent::Primary { current, .. } => {
                for other in (0..self.plan.nodes).filter(|other| !current.contains(node_id(*other)))
                {
                    self.checks.endings.absent(other, now);
                }
            }
            ReplicaEvent::Blocked { .. } => self.checks.endings.absent(node, now),
            ReplicaEvent::AtFault { group, node: member, reason, .. } => {
                self.checks.endings.faults += 1;
                if *reason == DownReason::ServerHung {
                    self.note_given_up(*group, *member);
                }
            }
            ReplicaEvent::Member { group, state: MemberState::Down(_), .. } => {
                self.leaves_in_doubt(index_of(*group));
            }
            ReplicaEvent::Diverged { group, .. } => {
                self.checks.endings.differed_at.insert(index_of(*group), now);
            }
            ReplicaEvent::RequestEnded { group, request, end }
                if *end != RequestEnd::EndsServers =>
            {
                if *end == RequestEnd::Skipped {
                    let endings = &mut self.checks.endings;
                    endings.skipped.insert(index_of(*group));
                    let calls = endings.skips.remove(&(index_of(*group), *request));
                    endings.abandoned.extend(calls.into_iter().flatten());
                }
                self.note_request_end(node, *group);
            }
            _ => {}
        }
    }

    /// A member was given up, for its server was late. If that had just ended by itself, its node
    /// had no time to say so (seed 50060 of `calls`).
    fn note_given_up(&mut self, group: GroupId, member: NodeId) {
        let (now, index) = (self.now, index_of(group));
        let calls = &self.ledger.calls;
        for (reference, deaths) in &mut self.checks.endings.deaths {
            if calls.get(reference).is_none_or(|call| call.group != index) {
                continue;
            }
            let of_it = deaths.iter_mut().filter(|death| node_id(death.node) == member);
            of_it.filter(|death| death.at + ms(10) >= now).for_each(|death| death.is_in = false);
        }
    }

    /// Whether the server of a member has executed something else than another one: each may have
    /// begun something else of what was with it together with a request that had no reply, or has
    /// executed what was given up. Whether the group had said so, others judge.
    pub(super) fn differs(&mut self, member: NodeId, group: GroupId) -> bool {
        let index = index_of(group);
        let node = usize::from(member.index());
        if self.checks.endings.may_differ(member, group) {
            return true;
        }
        let in_parts = self.plan.groups[index].concurrency == Concurrency::PerObject;
        let Some(server) = self.server_of(node, index).filter(|_| !in_parts) else { return false };
        let (snapshots, log) = (self.snapshots(), &self.servers[server].log);
        let is_another = |other: &Log| {
            let common = log.len().min(other.len());
            log.mark(common) != other.mark(common)
        };
        let serving = self.serving(&snapshots, index);
        // Those whose replies were others are gone (seed 9800220 of `styles`).
        let is_alone = serving.iter().all(|other| other.node == node);
        if is_alone && self.plan.groups[index].odd.is_some() {
            return true;
        }
        // Most have failed in the same way, and have the vote (seed 50093 of `styles`).
        let have_failed = serving.iter().filter(|other| self.servers[other.server].was_strange);
        let are_outvoted = self.may_vote(index) && have_failed.count() * 2 > serving.len();
        // A node that ends a connection at what is no reply cuts off what its server has not begun
        // behind it, and another one has: it ends without a reply, too (styles 300935).
        let next_of = |other: &Log| other.references().get(log.references().len()).copied();
        let has_ended = |call| self.checks.endings.told.contains_key(&call);
        let is_pipelined = self.plan.groups[index].concurrency == Concurrency::Pipelined;
        let lacks =
            is_pipelined && serving.iter().filter_map(|other| next_of(other.log)).any(has_ended);
        let differs = lacks || are_outvoted || serving.iter().any(|other| is_another(other.log));
        if differs {
            // Other nodes say so later.
            self.checks.endings.strange.insert((node, index));
        }
        differs
    }

    fn may_vote(&self, group: usize) -> bool {
        self.plan.groups[group].style == Style::ActiveWithVoting || self.may_change_style()
    }

    fn may_change_style(&self) -> bool {
        self.plan.faults.contains(&Fault::StyleChange)
    }

    /// Whether any of them has.
    pub(super) fn any_differs(&mut self, group: GroupId) -> bool {
        (0..self.plan.nodes).any(|node| self.differs(node_id(node), group))
    }

    /// A request has ended without a reply. Who has not answered it alone is a server that has
    /// failed: where those that have are gone, nothing is left of what they did with it.
    fn note_request_end(&mut self, node: usize, group: GroupId) {
        let index = index_of(group);
        let has_failed = |node: usize| {
            self.server_of(node, index).filter(|server| self.servers[*server].was_strange)
        };
        let Some(snapshot) = self.hosts[node].node.as_ref().map(|node| node.snapshot()) else {
            return;
        };
        let Some(table) = snapshot.groups.get(group_id(index)) else { return };
        let members = table.members.iter();
        let inside = members.filter(|(_, state)| matches!(state, MemberState::In { .. }));
        let failed: Vec<_> =
            inside.map(|(member, _)| has_failed(usize::from(member.index()))).collect();
        if !failed.is_empty() && failed.iter().all(Option::is_some) {
            self.lost_with_callers(index, &mut BTreeSet::new());
            let failed = failed.into_iter().flatten().collect();
            self.checks.endings.alone.insert(index, failed);
        }
    }

    pub(super) fn server_of(&self, node: usize, group: usize) -> Option<usize> {
        self.hosts[node].supervisors[group].as_ref()?.server
    }

    /// A member comes in, as `node` says: with the state of servers that had failed alone, or the
    /// group goes on without it, and executes what those had not.
    pub(super) fn note_state_of(&mut self, node: usize, member: NodeId, group: usize) {
        let Some(alone) = self.checks.endings.alone.get(&group) else { return };
        let Some(own) = self.hosts[node].node.as_ref().map(|node| node.snapshot()) else { return };
        let has_it = |member: NodeId| {
            let server = self.server_of(usize::from(member.index()), group);
            server.is_some_and(|server| alone.contains(&server) && self.servers[server].alive)
        };
        let Some(table) = own.groups.get(group_id(group)) else { return };
        let members = table.members.iter();
        let mut inside = members.filter(|(_, state)| matches!(state, MemberState::In { .. }));
        if inside.any(|(member, _)| has_it(*member)) {
            if !has_it(member) {
                self.checks.endings.alone.remove(&group);
            }
            return;
        }
        self.checks.endings.alone.remove(&group);
        self.lost_with_callers(group, &mut BTreeSet::new());
    }

    /// What its callers have heard of a group is lost with it, where it is heard again.
    fn lost_with_callers(&mut self, group: usize, seen: &mut BTreeSet<usize>) {
        if !seen.insert(group) {
            return;
        }
        self.checks.lost(self.now, group);
        for caller in 0..self.plan.groups.len() {
            if self.plan.groups[caller].calls.contains(&group) {
                self.checks.endings.callers_of_lost.insert(caller);
                self.lost_with_callers(caller, seen);
            }
        }
    }

    /// Whether this stands in a log for what a server heard of a group in which an operator gave up
    /// a request, or of one that calls such a group.
    pub(super) fn was_heard_of_one_that_skipped(&self, heard: Reference) -> bool {
        let call =
            self.hearsay.heard.get(&heard).and_then(|(inner, _)| self.ledger.calls.get(inner));
        let Some(callee) = call.map(|call| call.group) else { return false };
        let (mut seen, mut next) = (BTreeSet::from([callee]), vec![callee]);
        while let Some(caller) = next.pop() {
            let calls = self.plan.groups[caller].calls.iter().copied();
            next.extend(calls.filter(|of| *of < self.plan.groups.len() && seen.insert(*of)));
        }
        seen.iter().any(|callee| self.checks.endings.skipped.contains(callee))
    }

    /// Whether both stand for what servers heard of one call, which was answered while the members
    /// of the group that they called might differ: each heard the member of its own node (seed
    /// 81850 of `calls`).
    pub(super) fn were_heard_in_doubt(&self, heard: [Reference; 2]) -> bool {
        let calls = heard.map(|heard| self.hearsay.heard.get(&heard).map(|(inner, _)| *inner));
        match calls {
            [Some(one), Some(other)] => {
                one == other && self.checks.endings.answered_in_doubt.contains(&one)
            }
            _ => false,
        }
    }

    /// A caller hears how its call has ended. `call`: as it was before.
    pub(crate) fn note_end(&mut self, reference: Reference, call: &Call, code: MinorCode) {
        let facts = &self.checks.groups[call.group];
        let counts = facts.has_history() && facts.counts(call);
        let before = self.checks.endings.told.insert(reference, (self.now, code));
        self.checks.endings.ended += u64::from(before.is_none());
        let is_read = self.is_read(call);
        if let Some((_, before)) = before.filter(|(_, before)| counts && *before != code)
            && !is_read
        {
            let text = format!("{:x} ended with {before:?}, and now with {code:?}", reference.0);
            self.checks.violate("endings", self.now, text);
        }
        if counts && call.is_acknowledged() && !is_read {
            let text = format!("{:x} was acknowledged, and ends with {code:?}", reference.0);
            self.checks.violate("endings", self.now, text);
        }
    }

    /// Nobody remembers what reads were told.
    fn is_read(&self, call: &Call) -> bool {
        let past_the_order = self.plan.groups[call.group].reads.is_some();
        past_the_order && matches!(call.wish, Wish::Peek | Wish::Last)
    }

    /// Whether members of a group may differ behind a request without a reply: it has given one up,
    /// a server was odd alone at one, servers had several at once (seed 394 of `domain`), or what
    /// it was told of another group is lost there.
    fn may_be_split(&self, group: usize) -> bool {
        let endings = &self.checks.endings;
        // Of what was with a server together one may have begun something else than another.
        let has_several = self.plan.groups[group].concurrency != Concurrency::Sequential;
        has_several
            || endings.skipped.contains(&group)
            || endings.callers_of_lost.contains(&group)
            || endings.strange.iter().any(|(_, of)| *of == group)
    }

    /// Whether a node says so, besides. Until that is decided, replies may be of any of them.
    pub(super) fn is_split(&self, snapshot: &NodeSnapshot, group: usize) -> bool {
        let table = snapshot.groups.get(group_id(group));
        table.is_some_and(|table| table.endings.doubt.is_some()) && self.may_be_split(group)
    }

    /// A call is answered: whether its reply may be of a member that differs from the others.
    pub(crate) fn is_doubtful(&mut self, reference: Reference, group: usize) -> bool {
        if self.is_in_odd_request(reference) {
            return self.checks.endings.doubtful.insert(reference);
        }
        if !self.may_be_split(group) {
            return false;
        }
        let snapshots = self.snapshots();
        let is_split = snapshots.iter().flatten().any(|node| self.is_split(node, group));
        let differed_at = self.checks.endings.differed_at.get(&group);
        let is_split = is_split || differed_at.is_some_and(|at| *at + ms(1_000) >= self.now);
        if is_split {
            self.checks.endings.doubtful.insert(reference);
            self.checks.endings.answered_in_doubt.insert(reference);
        }
        is_split
    }

    /// A member goes before states were compared: those that stay may differ from what it replied
    /// (seed 9000533 of `domain`). What was acknowledged must be in theirs all the same.
    fn leaves_in_doubt(&mut self, group: usize) {
        if !self.may_be_split(group) {
            return;
        }
        let snapshots = self.snapshots();
        if snapshots.iter().flatten().any(|node| self.is_split(node, group)) {
            let replied: Vec<_> = acknowledged_calls(self, group).map(|(of, ..)| of).collect();
            self.checks.endings.doubtful.extend(replied);
        }
    }

    /// A caller gets a reply.
    pub(crate) fn note_no_end(&mut self, reference: Reference, call: &Call) {
        let facts = &self.checks.groups[call.group];
        let told = self.checks.endings.told.get(&reference).map(|(_, code)| *code);
        let told = told.filter(|_| !self.is_read(call));
        if let Some(code) = told.filter(|_| facts.has_history() && facts.counts(call)) {
            let text = format!("{:x} had ended with {code:?}, and got a reply", reference.0);
            self.checks.violate("endings", self.now, text);
        }
    }

    /// A server begins a call.
    pub(crate) fn note_begin(&mut self, group: usize, server: usize, work: &Work) {
        let Operation::Append(reference) = work.operation else { return };
        let Some((at, code)) = self.checks.endings.told.get(&reference).copied() else { return };
        if !matches!(code, MinorCode::EndsServers | MinorCode::Skipped) {
            return;
        }
        let facts = &self.checks.groups[group];
        let counts = self.ledger.calls.get(&reference).is_some_and(|call| facts.counts(call));
        let since = self.now.since(at);
        let is_known =
            since > STANDS_STILL || self.is_quiet_since(KNOWN_AFTER) && since > KNOWN_AFTER;
        // What a stateless group forgets, nobody else remembers.
        let sent = self.ledger.calls.get(&reference).map_or(0, |call| call.sent);
        let forgets = facts.stateless && (code == MinorCode::Skipped || sent > 1);
        // A server that was busy then reads on where it stopped.
        let has_it = code == MinorCode::Skipped && work.came <= at;
        if counts && is_known && !forgets && !has_it && !self.is_again(&reference, at) {
            let text =
                format!("{:x} had ended with {code:?}, and server {server} begins it", reference.0);
            self.checks.violate("endings", self.now, text);
        }
    }

    /// A call without a name is another one when its client makes it again.
    fn is_again(&self, reference: &Reference, told: Instant) -> bool {
        let call = &self.ledger.calls[reference];
        !call.named && call.invoked > told
    }

    /// There are no faults any more, and what they have done is known.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_quiet_since(STANDS_STILL)
    }

    fn is_quiet_since(&self, time: Duration) -> bool {
        self.peace_at.is_some_and(|at| self.now.since(at) > time)
    }

    /// A server's process ends, and its node lives.
    pub(crate) fn note_process_end(&mut self, server: usize) {
        for work in self.servers[server].running.values() {
            if let Operation::Append(reference) = work.operation {
                *self.checks.endings.ends_at.entry(reference).or_default() += 1;
            }
        }
    }

    /// A server's process ends at a request.
    pub(crate) fn note_death(&mut self, server: usize, work: &Work) {
        let Operation::Append(reference) = work.operation else { return };
        let (node, at) = (self.servers[server].node, self.now);
        let group = index_of(self.servers[server].group);
        let snapshot = self.hosts[node].node.as_ref().map(|node| node.snapshot());
        let is_in = snapshot.is_some_and(|snapshot| {
            snapshot.groups.get(group_id(group)).is_some_and(|of| super::is_in(of, node))
        });
        self.checks.endings.died += 1;
        self.checks.endings.deaths.entry(reference).or_default().push(Death { node, at, is_in });
    }

    /// Requests at which too many processes ended.
    pub(super) fn too_many_deaths(&self, group: usize) -> Option<String> {
        let plan = &self.plan.groups[group];
        let facts = &self.checks.groups[group];
        let one_at_a_time = plan.style.is_passive() || plan.style == Style::Stateless;
        let most = match one_at_a_time && !self.may_change_style() {
            true => 2,
            false => plan.members.count_ones() as usize,
        };
        let endings = &self.checks.endings;
        endings.deaths.iter().find_map(|(reference, deaths)| {
            let call = self.ledger.calls.get(reference)?;
            if call.group != group || !facts.counts(call) {
                return None;
            }
            let is_known = |death: &&Death| !endings.may_be_unknown(death, facts.stateless);
            let known = deaths.iter().filter(is_known).count();
            let text = || format!("{known} processes ended at {:x}: {deaths:?}", reference.0);
            // What a stateless group has answered is not remembered.
            let most = if facts.stateless { most * call.sent as usize } else { most };
            (known > most).then(text)
        })
    }

    /// What nodes know of requests without a reply, for people.
    pub(crate) fn tell_of_endings(&mut self) {
        for (node, snapshot) in self.snapshots().into_iter().enumerate() {
            for (id, table) in snapshot.into_iter().flat_map(|s| s.groups) {
                let group = index_of(id);
                let text = self.standing(node, group, &table);
                self.say(|| format!("n{node} g{group}: {text}"));
            }
        }
    }

    fn standing(&self, node: usize, group: usize, table: &GroupSnapshot) -> String {
        let endings = &table.endings;
        let ended: Vec<_> = endings.ended.iter().map(|(number, end, _)| (number, end)).collect();
        let waiting = endings.waiting.as_ref().map(|(number, since, _)| (number, since));
        let supervisor = self.hosts[node].supervisors[group].as_ref();
        let server = supervisor.and_then(|supervisor| supervisor.server).map(|server| {
            let target = &self.servers[server];
            let work = target.running.values().chain(&target.queue);
            let work: Vec<_> = work.map(|work| &work.operation).collect();
            format!("server {server} at {work:?}, strange: {}", target.was_strange)
        });
        format!(
            "{:?}, {} to execute; ended {ended:?}, doubt {:?}, late {:?}, waits {waiting:?}; {}",
            table.local,
            table.queued,
            endings.doubt,
            endings.late,
            server.unwrap_or_default()
        )
    }

    /// A node connects to its server: not again and again without a pause.
    pub(crate) fn note_connect(&mut self, node: usize, group: usize) {
        let server = self.server_of(node, group);
        let executed = server.map_or(0, |server| self.servers[server].log.len());
        let (before, times) = self.checks.endings.connects.entry((node, group)).or_default();
        if std::mem::replace(before, executed) != executed {
            // It has come further, perhaps through many that had no reply.
            times.clear();
        }
        times.push_back(self.now);
        while times.front().is_some_and(|at| self.now.since(*at) > STORM) {
            times.pop_front();
        }
        if times.len() > CONNECTS_MAX {
            let text = format!("n{node} connects to its server of g{group} without a pause");
            self.checks.violate("storm", self.now, text);
        }
    }

    /// A node ends its server, which lives.
    pub(crate) fn note_restart(&mut self, node: usize, group: usize, reason: DownReason) {
        use DownReason::{ConnectionLost, Diverged, ServerHung, ServerProtocol};
        let of_it = matches!(reason, ConnectionLost | Diverged | ServerHung | ServerProtocol);
        let supervisor = self.hosts[node].supervisors[group].as_ref();
        let Some(server) = supervisor.and_then(|s| s.server) else { return };
        let (plan, facts) = (&self.plan.groups[group], &self.checks.groups[group]);
        // What the server of a member that has fallen out had begun may be over in either way.
        let own = self.hosts[node].node.as_ref().map(|node| node.snapshot());
        let fell_out = |state: &MemberState| {
            use DownReason::{NodeLeft, NodeMissedMessages};
            matches!(state, MemberState::Down(NodeLeft | NodeMissedMessages))
        };
        let members = own.iter().filter_map(|own| own.groups.get(group_id(group)));
        let members = members.flat_map(|table| &table.members);
        let mut members = members.filter(|(member, _)| *member == node_id(node));
        let is_given_up = self.checks.endings.given_up.contains(&(node, group));
        if is_given_up || members.any(|(_, state)| fell_out(state)) {
            return;
        }
        let target = &self.servers[server];
        let excused = plan.foreign || plan.durable || !facts.has_history() || facts.dead;
        if !of_it || excused || !target.alive || target.hangs || target.log.len() == 0 {
            return;
        }
        let snapshots = self.snapshots();
        if self.has_other_member(&snapshots, group, node)
            || self.has_strange_member(&snapshots, group, node)
            || self.hangs_unseen(&snapshots, group, node)
            || !self.has_all(group, server)
        {
            return;
        }
        self.checks.endings.last_servers.insert(group, LastServer { node, server, at: self.now });
    }

    /// Whether somebody beside `node` is in whose server was odd alone, and answers all the same:
    /// what it did is the group's state as well as any.
    fn has_strange_member(
        &self,
        snapshots: &[Option<NodeSnapshot>],
        group: usize,
        node: usize,
    ) -> bool {
        self.others_in(snapshots, group, node).any(|(other, _, server)| {
            let answers = server.is_some_and(|s| s.alive && !s.hangs && !s.owes_some());
            answers && self.membership.stays(group, other)
        })
    }

    /// Whether somebody beside `node` is in whose server hangs, and nobody can know it yet: its
    /// word counted before it did (seed 9700279 of `domain`).
    fn hangs_unseen(&self, snapshots: &[Option<NodeSnapshot>], group: usize, node: usize) -> bool {
        let limit = Duration::from_millis(self.plan.groups[group].server_reply_ms);
        self.others_in(snapshots, group, node).any(|(other, table, server)| {
            let waits = table.endings.waiting.as_ref();
            // A node's clock began with its process, and may have stood still or jumped since
            // (seed 200425 of `domain`).
            let now = self.hosts[other].machine.clock.local(self.now);
            let is_unseen = waits.is_none_or(|(_, since, _)| now.since(*since) < limit);
            server.is_some_and(|s| s.alive && s.hangs) && is_unseen
        })
    }

    /// A node is about to end, and its servers with it. What a member has kept for its next server
    /// ends with the node, and not with the server that it ended before (seed 760053 of `calls`).
    pub(crate) fn note_node_end(&mut self, node: usize) {
        if self.checks.endings.last_servers.values().all(|last| last.node != node) {
            return;
        }
        let Some(own) = self.hosts[node].node.as_ref().map(|node| node.snapshot()) else { return };
        let keeps_it = |group: usize| {
            let table = own.groups.get(group_id(group)).filter(|of| super::is_in(of, node));
            table.is_some_and(waits_for_server)
        };
        let ended = &mut self.checks.endings.last_servers;
        ended.retain(|group, last| last.node != node || !keeps_it(*group));
    }

    /// A group is lost.
    pub(super) fn note_lost(&mut self, group: usize) {
        let Some(ended) = self.checks.endings.last_servers.remove(&group) else { return };
        let LastServer { node, at, .. } = ended;
        // The node kept the state for the next server, and was cut off (seed 563 of `backups`), of
        // which it need not have heard: a member that has given its state up has no server (seed
        // 80714 of `backups`).
        let own = self.hosts[node].node.as_ref().map(|node| node.snapshot());
        let keeps_it = own.is_some_and(|own| {
            let is_blocked = own.primary != PrimaryStatus::Primary;
            let table = own.groups.get(group_id(group)).filter(|of| super::is_in(of, node));
            table.is_some_and(|of| is_blocked || waits_for_server(of))
        });
        if self.now.since(at) < LOST_WITHIN && !keeps_it && !self.has_next_server(group, &ended) {
            let text = format!("n{node} ended the last server of g{group}, and it is lost");
            self.checks.violate("last server", self.now, text);
        }
    }

    /// Whether the node's next server has all: the group was lost with the node's absence, and not
    /// with the server that it ended (seed 400774 of `calls`).
    fn has_next_server(&self, group: usize, ended: &LastServer) -> bool {
        let supervisor = self.hosts[ended.node].supervisors[group].as_ref();
        supervisor.and_then(|s| s.server).is_some_and(|server| {
            let next = &self.servers[server];
            server != ended.server && next.alive && !next.hangs && self.has_all(group, server)
        })
    }
}
