//! Servers outside of the domain, which replicated servers call: there is one of each, it keeps
//! nothing of what it is asked but that it was, and it dies, hangs and is slow.
//!
//! What it is not: replicated; the checks of what it was asked are in `check::calls`. Invariant:
//! what it has executed it has executed, whether or not anybody hears of it.

use crate::event::Event;
use crate::host::Input;
use crate::names::outsider_index;
use crate::plan::OutsidePlan;
use crate::rng::finish;
use crate::servant::{Mark, Operation, Reference};
use crate::server::Server;
use crate::stream::{Callee, Caller, Segment, Side, StreamId};
use crate::world::{World, ms, us};
use quorba_base::Instant;
use quorba_engine::replica::OnDoubt;
use quorba_engine::{ExternalCommand, ExternalId};
use quorba_giop::{Body, Framer, FtRequest, Message, ReplyStatus, build, context};
use std::collections::{BTreeMap, BTreeSet};

/// See the module's text.
pub(crate) struct Outsider {
    up: bool,
    /// Counts its starts.
    boots: u64,
    hangs_until: Instant,
    slow_until: Instant,
    links: BTreeMap<StreamId, Framer>,
    /// How often it has executed what.
    pub(crate) executed: BTreeMap<Reference, u32>,
    /// What it has answered.
    pub(crate) told: BTreeSet<(Reference, u64)>,
    /// Calls by the names that they came under.
    names: BTreeMap<(Vec<u8>, i32), (Reference, Mark)>,
    count: u64,
}

/// A request that an outsider works on.
#[derive(Debug)]
pub(crate) struct Asked {
    stream: StreamId,
    boot: u64,
    message: Message,
    reference: Reference,
    /// It has executed it already.
    done: Option<Mark>,
}

impl Outsider {
    pub(crate) fn new() -> Self {
        Self {
            up: true,
            boots: 1,
            hangs_until: Instant::ZERO,
            slow_until: Instant::ZERO,
            links: BTreeMap::new(),
            executed: BTreeMap::new(),
            told: BTreeSet::new(),
            names: BTreeMap::new(),
            count: 0,
        }
    }

    fn execute(&mut self, plan: &OutsidePlan, message: &Message, reference: Reference) -> Mark {
        let name = name_of(message).filter(|_| plan.recognises);
        if let Some((_, mark)) = name.as_ref().and_then(|name| self.names.get(name)) {
            return *mark;
        }
        self.count += 1;
        let mark = Mark { length: self.count, digest: finish(reference.0 ^ self.count) };
        *self.executed.entry(reference).or_default() += 1;
        if let Some(name) = name {
            self.names.insert(name, (reference, mark));
        }
        mark
    }
}

fn name_of(message: &Message) -> Option<(Vec<u8>, i32)> {
    let Ok(Body::Request(request)) = message.parse() else { return None };
    let (_, data) = request.contexts().find(|(id, _)| *id == context::FT_REQUEST)?;
    let name = FtRequest::decode(data).ok()?;
    Some((name.client_id, name.retention_id))
}

impl World {
    /// Plans the outsiders' faults.
    pub(crate) fn begin_outside(&mut self) {
        for outsider in 0..self.plan.outside.len() {
            self.plan_outside_fault(outsider);
        }
    }

    fn plan_outside_fault(&mut self, outsider: usize) {
        if let Some(every) = self.plan.outside[outsider].faults_every_ms {
            let wait = ms(self.rng.between(1, 2 * every));
            self.queue.push(self.now + wait, Event::OutsideFault { outsider });
        }
    }

    pub(crate) fn hurt_outside(&mut self, outsider: usize) {
        if self.peace {
            return;
        }
        let until = self.now + ms(self.rng.between(5, 3_000));
        match self.rng.below(3) {
            0 => self.end_outside(outsider, until),
            1 => self.outsiders[outsider].hangs_until = until,
            _ => self.outsiders[outsider].slow_until = until,
        }
        self.plan_outside_fault(outsider);
    }

    fn end_outside(&mut self, outsider: usize, until: Instant) {
        if !std::mem::replace(&mut self.outsiders[outsider].up, false) {
            return;
        }
        self.say(|| format!("outsider {outsider} ends"));
        let links = std::mem::take(&mut self.outsiders[outsider].links);
        for id in links.into_keys() {
            let segment = if self.rng.per_mille(500) { Segment::Reset } else { Segment::End };
            self.send(id, Side::Callee, segment);
        }
        self.queue.push(until, Event::OutsideStart { outsider });
    }

    pub(crate) fn start_outside(&mut self, outsider: usize) {
        let target = &mut self.outsiders[outsider];
        target.up = true;
        target.boots += 1;
        self.say(|| format!("outsider {outsider} starts"));
    }

    pub(crate) fn make_peace_outside(&mut self) {
        for outsider in &mut self.outsiders {
            (outsider.hangs_until, outsider.slow_until) = (Instant::ZERO, Instant::ZERO);
        }
    }

    // -- the outsider's side ------------------------------------------------------------------

    pub(crate) fn outsider_hears(&mut self, id: StreamId, outsider: usize, segment: Segment) {
        let now = self.now;
        let target = &mut self.outsiders[outsider];
        match segment {
            Segment::Open if target.up && target.hangs_until <= now => {
                target.links.insert(id, Server::framer());
                self.send(id, Side::Callee, Segment::Accepted);
            }
            Segment::Open if target.up => {}
            Segment::Open => self.send(id, Side::Callee, Segment::Refused),
            Segment::Bytes(bytes) => {
                let Some(framer) = target.links.get_mut(&id) else { return };
                framer.push(&bytes);
                while let Some(framer) = self.outsiders[outsider].links.get_mut(&id)
                    && let Ok(Some(message)) = framer.next()
                {
                    self.ask_outside(id, outsider, message);
                }
            }
            Segment::End | Segment::Reset => {
                target.links.remove(&id);
                self.streams.remove(&id);
            }
            Segment::Accepted | Segment::Refused => {}
        }
    }

    fn ask_outside(&mut self, stream: StreamId, outsider: usize, message: Message) {
        let reference = {
            let Ok(Body::Request(request)) = message.parse() else { return };
            let Operation::Append(reference) = Operation::of(&request, message.endian()) else {
                return;
            };
            reference
        };
        let plan = self.plan.outside[outsider].clone();
        let mut at = self.now + us(self.rng.between(plan.execute_us.0, plan.execute_us.1));
        let target = &mut self.outsiders[outsider];
        if target.slow_until > self.now {
            at = at + ms(self.rng.between(1, 2 * plan.reply_ms));
        }
        // If it dies between the two, nobody outside of it knows which it was.
        let is_early = self.rng.per_mille(500);
        let done = is_early.then(|| target.execute(&plan, &message, reference));
        let boot = target.boots;
        self.say(|| format!("outsider {outsider} is asked {:x}, done {done:?}", reference.0));
        let asked = Asked { stream, boot, message, reference, done };
        self.queue.push(at, Event::OutsideDone { outsider, asked });
    }

    pub(crate) fn outside_done(&mut self, outsider: usize, asked: Asked) {
        let plan = self.plan.outside[outsider].clone();
        let target = &mut self.outsiders[outsider];
        if !target.up || target.boots != asked.boot {
            return;
        }
        if target.hangs_until > self.now {
            let at = target.hangs_until;
            return self.queue.push(at, Event::OutsideDone { outsider, asked });
        }
        let Asked { stream, message, reference, done, .. } = asked;
        let mark = done.unwrap_or_else(|| target.execute(&plan, &message, reference));
        target.told.insert((reference, mark.digest));
        let Ok(Body::Request(request)) = message.parse() else { return };
        let (version, endian) = (message.version(), message.endian());
        let good = ReplyStatus::NoException;
        let reply = build::reply(version, endian, request.request_id(), good, |cdr| {
            cdr.write_u64(mark.length);
            cdr.write_u64(mark.digest);
        });
        if self.outsiders[outsider].links.contains_key(&stream) {
            self.send(stream, Side::Callee, Segment::Bytes(reply.bytes().clone()));
        }
    }

    // -- the node's side ----------------------------------------------------------------------

    pub(crate) fn command_external(
        &mut self,
        node: usize,
        connection: ExternalId,
        command: ExternalCommand,
    ) {
        let boot = self.hosts[node].boot;
        let caller = Caller::ExternalCalls { node, boot, connection };
        match command {
            ExternalCommand::Connect { server } => {
                self.connect(caller, Callee::Outsider(outsider_index(server)), false);
            }
            ExternalCommand::Send(bytes) => {
                self.transcript.mix_bytes(&bytes);
                if let Some(id) = self.stream_of(caller) {
                    self.send(id, Side::Caller, Segment::Bytes(bytes));
                }
            }
            ExternalCommand::Close => {
                if let Some(id) = self.stream_of(caller) {
                    self.send(id, Side::Caller, Segment::End);
                    if let Some(stream) = self.streams.get_mut(&id) {
                        stream.hear_no_more(Side::Caller);
                    }
                }
            }
        }
    }

    fn stream_of(&self, caller: Caller) -> Option<StreamId> {
        let is_it = |(id, stream): (&StreamId, &crate::stream::Stream)| {
            (stream.caller == caller && !stream.is_deaf(Side::Caller)).then_some(*id)
        };
        self.streams.iter().find_map(is_it)
    }

    pub(crate) fn external_hears(
        &mut self,
        id: StreamId,
        node: usize,
        connection: ExternalId,
        segment: Segment,
    ) {
        if self.streams[&id].is_deaf(Side::Caller) {
            if matches!(segment, Segment::Refused | Segment::End | Segment::Reset) {
                self.streams.remove(&id);
            }
            return;
        }
        match segment {
            Segment::Accepted => self.deliver(node, Input::ExternalConnected(connection)),
            Segment::Bytes(bytes) => self.deliver(node, Input::ExternalBytes(connection, bytes)),
            Segment::Refused | Segment::End | Segment::Reset => {
                self.streams.remove(&id);
                self.deliver(node, Input::ExternalClosed(connection));
            }
            Segment::Open => {}
        }
    }
}

/// What a call to the outside may lead to, for the checks.
pub(crate) fn is_once(plan: &OutsidePlan) -> bool {
    plan.on_doubt == OnDoubt::Fail || plan.recognises
}
