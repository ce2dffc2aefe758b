//! What servers do with some requests instead of replying, or beside it.
//!
//! Which request leads to what is a function of its reference and of the group's plan, so that all
//! replicas do it alike; a fault makes one server do it to some call.
//!
//! What it is not: what follows for group and client, which is judged in `check::endings`.
//! Invariants: a plan without odd reactions is what it was before there were any; what says that
//! it has not executed a request has not.

use crate::fault::Fault;
use crate::names::index_of;
use crate::plan::Plan;
use crate::rng::{Rng, finish};
use crate::servant::{LOG_KEY, Operation, Reference, bad_param};
use crate::server::{Misdeed, Work};
use crate::stream::{Segment, Side, StreamId};
use crate::world::{World, ms};
use bytes::Bytes;
use quorba_base::Duration;
use quorba_engine::replica::{Concurrency, Style};
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, ResponseFlags, Version};
use std::collections::BTreeMap;

/// Domains of a thousand whose servers are odd.
const CHANCE: u64 = 250;
/// Longer than four servers need to begin again.
const PATIENCE_AT_DEATHS_MS: u64 = 40_000;
/// Domains of a thousand with staggered execution.
const STAGGERED: u64 = 150;
/// A fragment of a message that nobody began, in GIOP 1.2.
const FRAGMENT: &[u8] = b"GIOP\x01\x02\x01\x07\x06\x00\x00\x00\x09\x00\x00\x00xy";
/// No GIOP at all.
const NOISE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

/// A call of a server on the connection on which it is called.
fn call_back(endian: Endian) -> RequestHead<'static> {
    RequestHead {
        version: Version::V1_2,
        endian,
        request_id: 4_000_000_000,
        response_flags: ResponseFlags::WithTarget,
        object_key: LOG_KEY,
        operation: b"call_back",
        contexts: &[],
    }
}

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reaction {
    /// It ends the connection, and lives.
    Ends { executed: bool, reset: bool },
    /// It executes, sends half of the reply and ends the connection.
    Half,
    /// It sends what is no GIOP.
    Noise { executed: bool },
    /// It closes the connection as GIOP wants it, each time.
    Goodbye,
    /// It answers twice.
    Twice,
    /// Before its reply it sends a fragment of nothing.
    Fragment,
    /// Before its reply it calls whoever called.
    Calls,
    /// Before its reply it asks whoever called for an object.
    Asks,
    /// It takes longer than is allowed.
    Late,
    /// It never answers.
    Silent { executed: bool },
    /// It answers another call than this one.
    OtherId,
    /// Its process ends.
    Dies { executed: bool },
}

impl Reaction {
    fn executes(self) -> bool {
        match self {
            Self::Ends { executed, .. }
            | Self::Noise { executed }
            | Self::Silent { executed }
            | Self::Dies { executed } => executed,
            Self::Goodbye | Self::OtherId => false,
            Self::Half | Self::Twice | Self::Fragment | Self::Calls | Self::Asks | Self::Late => {
                true
            }
        }
    }

    /// Whether all goes on as if it had not been.
    fn is_harmless(self) -> bool {
        matches!(self, Self::Twice | Self::Fragment | Self::Calls | Self::Asks)
    }
}

/// How a group's servers are odd.
#[derive(Clone, Debug)]
pub(crate) struct OddPlan {
    salt: u64,
    /// One of so many requests.
    one_of: u64,
    /// Leads to one of these.
    often: Vec<Reaction>,
    /// What costs much, and to what it happens.
    rarely: BTreeMap<Reference, Reaction>,
    /// When the group gives a request up by itself.
    pub(crate) abandon_ms: Option<u64>,
}

impl OddPlan {
    pub(crate) fn reaction(&self, reference: Reference) -> Option<Reaction> {
        if let Some(reaction) = self.rarely.get(&reference) {
            return Some(*reaction);
        }
        let hash = finish(reference.0 ^ self.salt);
        let is_odd = hash.is_multiple_of(self.one_of) && !self.often.is_empty();
        is_odd.then(|| self.often[(hash >> 32) as usize % self.often.len()])
    }
}

/// Of a thousand domains so many remember requests for a few seconds only.
const EXPIRING: u64 = 150;

impl Plan {
    /// In some domains one member of a group goes ahead of the others.
    pub(crate) fn staggered(mut self, seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x57a6);
        if rng.per_mille(STAGGERED) {
            for group in &mut self.groups {
                group.staggered = rng.per_mille(700) && group.concurrency != Concurrency::PerObject;
            }
        }
        self
    }

    /// In some domains requests are forgotten while clients still call. No gateway keeps a request
    /// for as long.
    pub(crate) fn expiring(mut self, seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0xe8f1);
        if rng.per_mille(EXPIRING) {
            for group in &mut self.groups {
                group.retention_ms = rng.pick(&[2_000, 2_000, 4_000, 10_000]);
                self.request_ms = self.request_ms.min(group.retention_ms / 4);
            }
        }
        self
    }

    /// Some domains have servers that are odd.
    pub(crate) fn with_odd(mut self, seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x0dd5);
        if self.lies || !rng.per_mille(CHANCE) {
            return self;
        }
        for group in 0..self.groups.len() {
            // Nobody judges what became of calls where each server has a past of its own.
            if !self.groups[group].foreign && !self.groups[group].by_application {
                self.draw_odd(group, &mut rng);
            }
        }
        for fault in [Fault::ServerEndsCall, Fault::ServerSilent] {
            if rng.per_mille(400) {
                self.faults.push(fault);
            }
        }
        self
    }

    /// Nobody remembers what was answered to who had gone, in a group without a state.
    fn leave_out_forgotten(
        &self,
        index: usize,
        often: &mut Vec<Reaction>,
        rare: &mut Vec<Reaction>,
    ) {
        let group = &self.groups[index];
        if group.style != Style::Stateless {
            return;
        }
        rare.retain(|reaction| *reaction != Reaction::Late);
        // Nor how often a call was closed on whose client begins anew sooner than that is over.
        let mut clients = self.clients.iter().filter(|client| client.group == index);
        let is_hasty = clients.any(|client| client.patience_ms < 3_000);
        often.retain(|reaction| !is_hasty || *reaction != Reaction::Goodbye);
        // Who is told that its time is over, and asks again, is another one. An operator ends two
        // servers that are silent before that, or nobody is.
        let is_ended = self.request_ms > 4 * group.server_reply_ms + 6_000;
        rare.retain(|reaction| is_ended || !matches!(reaction, Reaction::Silent { .. }));
    }

    fn draw_odd(&mut self, index: usize, rng: &mut Rng) {
        let mut often = Vec::new();
        for executed in [false, true] {
            for reset in [false, true] {
                often.push(Reaction::Ends { executed, reset });
            }
            often.push(Reaction::Noise { executed });
        }
        often.push(Reaction::Goodbye);
        often.push(Reaction::Half);
        often.extend([Reaction::Twice, Reaction::Fragment, Reaction::Calls, Reaction::Asks]);
        let share = rng.pick(&[150, 400, 1_000]);
        often.retain(|_| rng.per_mille(share));
        let mut rare: Vec<Reaction> = Vec::new();
        for executed in [false, true] {
            rare.push(Reaction::Silent { executed });
        }
        rare.extend([Reaction::Late, Reaction::Late, Reaction::OtherId]);
        rng.shuffle(&mut rare);
        rare.truncate(rng.pick(&[0, 0, 1, 2]));
        let group = &self.groups[index];
        self.leave_out_forgotten(index, &mut often, &mut rare);
        let deaths = rng.pick(&[0, 0, 1, 2, 3]);
        // Without a log on disk, nothing is left of a group whose processes all end.
        let may_die = group.durable || group.style.is_passive() || group.style == Style::Stateless;
        if may_die | rng.per_mille(150) {
            rare.extend((0..deaths).map(|_| Reaction::Dies { executed: rng.per_mille(500) }));
        }
        match group.concurrency {
            Concurrency::Sequential => {}
            // It may not say goodbye while it answers others, and what is late may be given up.
            Concurrency::Pipelined => {
                often.retain(|reaction| *reaction != Reaction::Goodbye);
                // What was behind an odd call on its connection a log cannot tell, nor can anybody
                // where no states can be compared.
                let can_tell = group.state_object && !group.durable;
                often.retain(|reaction| reaction.is_harmless() || can_tell);
                rare.retain(|reaction| *reaction != Reaction::Late);
                rare.retain(|reaction| matches!(reaction, Reaction::Dies { .. }) || can_tell);
            }
            // Nobody can tell whether their states are equal.
            Concurrency::PerObject => {
                often.retain(|reaction| reaction.is_harmless());
                rare.retain(|reaction| *reaction == Reaction::Late);
            }
        }
        let clients: Vec<usize> =
            (0..self.clients.len()).filter(|client| self.clients[*client].group == index).collect();
        let mut rarely = BTreeMap::new();
        for reaction in rare {
            if !clients.is_empty() {
                let client = clients[rng.index(clients.len())] as u64;
                let number = rng.between(3, 100);
                rarely.insert(Reference((client + 1) << 32 | number), reaction);
            }
        }
        let group = &mut self.groups[index];
        let abandons = rng.per_mille(400) && group.concurrency == Concurrency::Sequential;
        let abandon_ms = abandons.then(|| rng.pick(&[2_000, 4_000]));
        let one_of = rng.pick(&[16, 64, 64, 200]);
        group.odd = Some(OddPlan { salt: rng.next(), one_of, often, rarely, abandon_ms });
        self.be_patient_at_deaths(index);
    }

    /// Where the style is `stateless` nobody remembers that processes have ended at a request, and
    /// servers begin again more and more slowly: who repeats it sooner has it executed for ever
    /// (backups 310139).
    fn be_patient_at_deaths(&mut self, index: usize) {
        let group = &self.groups[index];
        let mut reactions = group.odd.iter().flat_map(|odd| odd.rarely.values());
        let some_die = reactions.any(|reaction| matches!(reaction, Reaction::Dies { .. }));
        if group.style != Style::Stateless || !some_die {
            return;
        }
        for client in self.clients.iter_mut().filter(|client| client.group == index) {
            client.patience_ms = client.patience_ms.max(PATIENCE_AT_DEATHS_MS);
        }
    }
}

impl World {
    /// What a server does with a call, if it is odd.
    pub(crate) fn reaction(&self, server: usize, work: &Work) -> Option<Reaction> {
        let target = &self.servers[server];
        let Operation::Append(reference) = work.operation else {
            // Of states only the end of the connection is worth more than a refusal.
            let ends = work.operation.is_state().then_some(target.misdeed)?;
            return match ends {
                Some(Misdeed::React(reaction @ Reaction::Ends { executed: false, .. })) => {
                    Some(reaction)
                }
                _ => None,
            };
        };
        if let Some(Misdeed::React(reaction)) = target.misdeed {
            return Some(reaction);
        }
        let plan = &self.plan.groups[index_of(target.group)];
        let reaction = plan.odd.as_ref()?.reaction(reference)?;
        // A server in a pipeline that went on behind a call without an answer, which is seen by its
        // next reply, must not end that connection: what was executed on it is blamed on the first
        // call and sent again (seed 80219 of `styles`).
        let goes_on = plan.concurrency == Concurrency::Pipelined
            && target.owes.contains(&work.stream)
            && matches!(reaction, Reaction::Ends { .. } | Reaction::Half);
        (!goes_on).then_some(reaction)
    }

    /// How much longer a call takes than it should.
    pub(crate) fn lateness(&self, server: usize, work: &Work) -> Duration {
        let group = index_of(self.servers[server].group);
        match self.reaction(server, work) {
            Some(Reaction::Late) => ms(self.plan.groups[group].server_reply_ms * 13 / 10 + 100),
            _ => Duration::ZERO,
        }
    }

    /// A server closes the connection instead of beginning a call. Whether it did.
    pub(crate) fn says_goodbye(&mut self, server: usize, work: &Work) -> bool {
        let says = self.reaction(server, work) == Some(Reaction::Goodbye);
        if says {
            let goodbye = build::close_connection(Version::V1_2).bytes().clone();
            self.send(work.stream, Side::Callee, Segment::Bytes(goodbye));
            self.break_link(server, work.stream, false);
        }
        says
    }

    /// A server reacts to a call in another way than its peers.
    pub(crate) fn note_strange(&mut self, server: usize) {
        let target = &mut self.servers[server];
        target.was_strange = true;
        self.checks.endings.strange.insert((target.node, index_of(target.group)));
    }

    /// A server ends a connection. What came on it and was not begun is forgotten.
    fn break_link(&mut self, server: usize, stream: StreamId, reset: bool) {
        let target = &mut self.servers[server];
        target.queue.retain(|work| work.stream != stream);
        if target.links.remove(&stream).is_some() {
            let end = if reset { Segment::Reset } else { Segment::End };
            self.send(stream, Side::Callee, end);
        }
    }

    /// A server is done with a call, and reacts in its way.
    pub(crate) fn react(&mut self, server: usize, work: &Work, reaction: Reaction) {
        let target = &mut self.servers[server];
        let (node, group) = (target.node, index_of(target.group));
        let concurrency = self.plan.groups[group].concurrency;
        let misdeed = Some(Misdeed::React(reaction));
        let alone = target.misdeed.take_if(|misdeed| *misdeed == Misdeed::React(reaction));
        // It has left a call out that its peers have executed, and must not go on.
        target.hangs |= alone == misdeed
            && concurrency != Concurrency::Sequential
            && !work.operation.is_state();
        if let Operation::Append(reference) = work.operation
            && !reaction.is_harmless()
        {
            self.checks.endings.odd.insert(reference);
        }
        if alone.is_some() {
            self.note_strange(server);
        }
        self.say(|| format!("n{node} server {server} at {:?}: {reaction:?}", work.operation));
        let (version, endian) = (work.message.version(), work.message.endian());
        let reply = reaction.executes().then(|| self.execute(server, work));
        let whole = reply.clone().unwrap_or_default();
        let head = call_back(endian);
        let says: Vec<Bytes> = match reaction {
            Reaction::Ends { .. } | Reaction::Silent { .. } | Reaction::Goodbye => Vec::new(),
            Reaction::Half => vec![whole.slice(..whole.len() / 2)],
            Reaction::Noise { .. } => vec![Bytes::from_static(NOISE)],
            Reaction::Twice => vec![whole.clone(), whole],
            Reaction::Fragment => vec![Bytes::from_static(FRAGMENT), whole],
            Reaction::Calls => vec![build::request(&head, |_| {}).bytes().clone(), whole],
            Reaction::Asks => {
                let asks = build::locate_request(version, endian, 4_000_000_001, LOG_KEY);
                vec![asks.bytes().clone(), whole]
            }
            Reaction::Late => vec![whole],
            Reaction::OtherId => {
                vec![bad_param(version, endian, work.request_id.wrapping_add(7))]
            }
            Reaction::Dies { .. } => {
                self.note_death(server, work);
                return self.end_server(server);
            }
        };
        if work.wants_reply && self.servers[server].links.contains_key(&work.stream) {
            for bytes in says {
                self.transcript.mix_bytes(&bytes);
                self.send(work.stream, Side::Callee, Segment::Bytes(bytes));
            }
        }
        match reaction {
            // It may go on beside what comes on the next connection, and nobody could tell.
            Reaction::Noise { .. } | Reaction::OtherId
                if concurrency != Concurrency::Sequential =>
            {
                self.break_link(server, work.stream, false);
            }
            // Before it was silent it may have called others: it must not be sent again.
            Reaction::Noise { .. } | Reaction::Silent { .. } | Reaction::OtherId => {
                self.servers[server].owes.insert(work.stream);
            }
            Reaction::Ends { reset, .. } => self.break_link(server, work.stream, reset),
            Reaction::Half => self.break_link(server, work.stream, false),
            _ => {}
        }
    }
}
