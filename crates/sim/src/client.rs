//! A virtual client ORB: plain GIOP to one gateway after the other.
//!
//! Two kinds. One is like any ORB that knows nothing of fault tolerance: a connection that breaks
//! leaves its calls with an unknown outcome (COMM_FAILURE, COMPLETED_MAYBE). The other names its
//! requests (FT_REQUEST) and repeats them under the same name until a reply comes.
//!
//! Invariants: a call is repeated only if that is allowed: it has a name, or it was surely not
//! executed (COMPLETED_NO, CloseConnection, connection refused); references are never reused.

mod hear;

use crate::event::Event;
use crate::ledger::{Call, Outcome};
use crate::names::group_id;
use crate::plan::ClientPlan;
use crate::rng::Rng;
use crate::servant::{self, Dialect, Reference, Wish};
use crate::stream::{Callee, Caller, Segment, Side, StreamId};
use crate::world::{World, ms, us};
use quorba_base::{Duration, Instant};
use quorba_engine::replica::Concurrency;
use quorba_giop::{Endian, Framer, FtRequest, TransactionDepth, Version, context};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_millis(700);

/// After so many calls a client takes a breath: load without end only costs time.
const BURST: u32 = 64;
const BREATH: Duration = Duration::from_millis(150);

/// Where a client stands.
enum Link {
    /// Not connected; tries again at the time.
    Down { again: Instant },
    /// On the way.
    Connecting { stream: StreamId, until: Instant },
    /// Connected.
    Up { stream: StreamId, framer: Framer },
}

/// A call that waits for its reply, or to be sent (again).
#[derive(Clone, Debug)]
struct Task {
    reference: Reference,
    wish: Wish,
    padding: usize,
    /// When it gives up waiting for this attempt.
    until: Instant,
    /// It was told that it has ended without a reply, and asks once more.
    doubts: bool,
    /// So many members must have it; 0: it says nothing.
    depth: u32,
}

/// See the module's text.
pub(crate) struct Client {
    index: usize,
    pub(crate) plan: ClientPlan,
    rng: Rng,
    link: Link,
    /// Gateways in the order of the reference's profiles, and the one in use.
    gateways: Vec<usize>,
    gateway: usize,
    next_request_id: u32,
    /// Sent, by request id.
    open: BTreeMap<u32, Task>,
    /// Cancelled: a reply may still come.
    cancelled: BTreeSet<u32>,
    /// To be sent, not before the time.
    waiting: VecDeque<(Instant, Task)>,
    issued: u32,
    next_issue: Instant,
    serial: u64,
    woken_at: Option<Instant>,
}

impl Client {
    pub(crate) fn new(index: usize, plan: ClientPlan, nodes: usize, mut rng: Rng) -> Self {
        let mut gateways: Vec<usize> = (0..nodes).collect();
        rng.shuffle(&mut gateways);
        Self {
            index,
            plan,
            rng,
            link: Link::Down { again: Instant::ZERO },
            gateways,
            gateway: 0,
            next_request_id: 0,
            open: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            waiting: VecDeque::new(),
            issued: 0,
            next_issue: Instant::ZERO,
            serial: 0,
            woken_at: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn stream(&self) -> Option<StreamId> {
        match self.link {
            Link::Up { stream, .. } => Some(stream),
            _ => None,
        }
    }

    /// A line for people about what it waits for.
    pub(crate) fn describe(&self) -> String {
        let link = match &self.link {
            Link::Down { .. } => "not connected".to_owned(),
            Link::Connecting { .. } => "connecting".to_owned(),
            Link::Up { stream, .. } => format!("connected by s{}", stream.0),
        };
        let open: Vec<_> = self.open.values().map(|t| format!("{:x}", t.reference.0)).collect();
        format!("c{} {link}, open {open:?}, {} waiting", self.index, self.waiting.len())
    }

    fn dialect(&self) -> Dialect {
        let version = [Version::V1_0, Version::V1_1, Version::V1_2];
        let version = version[usize::from(self.plan.minor_version)];
        let endian = if self.plan.big_endian { Endian::Big } else { Endian::Little };
        Dialect { version, endian }
    }

    fn draw_task(&mut self) -> Task {
        self.issued += 1;
        let dice = self.rng.below(1000);
        let wish = if dice < self.plan.peek {
            Wish::Peek
        } else if dice < self.plan.peek + self.plan.note {
            Wish::Note
        } else if dice < self.plan.peek + self.plan.note + self.plan.last {
            Wish::Last
        } else {
            Wish::Append
        };
        let reference = Reference((self.index as u64 + 1) << 32 | u64::from(self.issued));
        let padding = self.rng.below(self.plan.padding_max as u64 + 1) as usize;
        let asks = self.plan.depths > 0 && self.rng.per_mille(self.plan.depths);
        let depth = if asks { self.rng.between(1, 4) as u32 } else { 0 };
        Task { reference, wish, padding, until: Instant::FAR_FUTURE, doubts: false, depth }
    }

    fn next_gateway(&mut self) {
        self.gateway = (self.gateway + 1) % self.gateways.len();
    }
}

impl World {
    /// Plans the client's next look at things.
    pub(crate) fn wake_client(&mut self, client: usize, wait: Duration) {
        let at = self.now + wait;
        let target = &mut self.clients[client];
        if target.woken_at.is_some_and(|planned| planned <= at && planned > self.now) {
            return;
        }
        target.serial += 1;
        target.woken_at = Some(at);
        let serial = target.serial;
        self.queue.push(at, Event::Client { client, serial });
    }

    pub(crate) fn client_woken(&mut self, client: usize, serial: u64) {
        if self.clients[client].serial == serial {
            self.clients[client].woken_at = None;
            self.step_client(client);
        }
    }

    fn step_client(&mut self, client: usize) {
        self.give_up_late_calls(client);
        let (peace, now) = (self.peace, self.now);
        let target = &mut self.clients[client];
        let room = target.open.len() + target.waiting.len() < target.plan.window;
        if !peace && room && target.next_issue <= now {
            let think = us(target.plan.think_us);
            target.next_issue = now + us(target.rng.below(2 * think.as_micros() as u64 + 200));
            let task = target.draw_task();
            if target.issued.is_multiple_of(BURST) {
                target.next_issue = target.next_issue.max(now + BREATH);
            }
            self.issue(client, task);
        }
        self.connect_client(client);
        self.send_waiting(client);
        self.plan_client(client);
    }

    fn issue(&mut self, client: usize, task: Task) {
        let target = &mut self.clients[client];
        let call = Call {
            client,
            group: target.plan.group,
            wish: task.wish,
            named: target.plan.names_requests && task.wish != Wish::Note,
            invoked: self.now,
            outcome: Outcome::Open,
            sent: 0,
        };
        self.ledger.open(task.reference, call);
        target.waiting.push_back((self.now, task));
    }

    /// When to look again.
    fn plan_client(&mut self, client: usize) {
        let target = &self.clients[client];
        let mut times: Vec<Instant> = target.open.values().map(|task| task.until).collect();
        match target.link {
            Link::Down { again } if !target.waiting.is_empty() => times.push(again),
            Link::Connecting { until, .. } => times.push(until),
            Link::Up { .. } => times.extend(target.waiting.iter().map(|(at, _)| *at).min()),
            Link::Down { .. } => {}
        }
        if !self.peace && target.open.len() + target.waiting.len() < target.plan.window {
            times.push(target.next_issue);
        }
        if let Some(at) = times.into_iter().min() {
            let at = at.max(self.now + us(1));
            self.wake_client(client, at.since(self.now));
        }
    }

    fn connect_client(&mut self, client: usize) {
        let now = self.now;
        let target = &mut self.clients[client];
        match target.link {
            Link::Down { again } if again <= now && !target.waiting.is_empty() => {
                let node = target.gateways[target.gateway];
                let group = group_id(target.plan.group);
                let chopped = target.plan.chopped;
                let callee = Callee::Gateway { node, boot: None, group };
                let stream = self.connect(Caller::Client(client), callee, chopped);
                let until = now + CONNECT_WITHIN;
                self.clients[client].link = Link::Connecting { stream, until };
            }
            Link::Connecting { stream, until } if until <= now => {
                self.streams.remove(&stream);
                self.move_on(client);
            }
            _ => {}
        }
    }

    /// The next gateway, in a moment.
    fn move_on(&mut self, client: usize) {
        let now = self.now;
        let target = &mut self.clients[client];
        target.next_gateway();
        let wait = us(target.rng.between(500, 20_000));
        target.link = Link::Down { again: now + wait };
    }

    fn send_waiting(&mut self, client: usize) {
        let now = self.now;
        loop {
            let target = &mut self.clients[client];
            let Link::Up { stream, .. } = target.link else { return };
            let Some(due) = target.waiting.iter().position(|(at, _)| *at <= now) else { return };
            let (_, task) = target.waiting.remove(due).expect("just found");
            self.send_task(client, stream, task);
        }
    }

    fn send_task(&mut self, client: usize, stream: StreamId, mut task: Task) {
        if self.is_too_late(client, &task) {
            return self.ledger.close(task.reference, Outcome::Unknown);
        }
        let target = &mut self.clients[client];
        target.next_request_id += 1;
        let request_id = target.next_request_id;
        let dialect = target.dialect();
        task.until = self.now + ms(target.plan.patience_ms);
        let call = self.ledger.calls.get_mut(&task.reference).expect("it was issued");
        if call.sent == 0 {
            call.invoked = self.now;
        }
        call.sent += 1;
        let named = call.named;
        self.note_sent(task.reference);
        let name = FtRequest {
            client_id: format!("client-{client}").into_bytes(),
            retention_id: task.reference.0 as u32 as i32,
            expiration_time: 0,
        };
        let data = name.encode(dialect.endian);
        let depth = TransactionDepth(task.depth).encode(dialect.endian);
        let all = [(context::FT_TRANSACTION_DEPTH, &*depth), (context::FT_REQUEST, &*data)];
        let contexts = &all[usize::from(task.depth == 0)..1 + usize::from(named)];
        let group = self.clients[client].plan.group;
        let in_parts = self.plan.groups[group].concurrency == Concurrency::PerObject;
        let message = servant::request(
            dialect,
            request_id,
            task.wish,
            task.reference,
            task.padding,
            contexts,
            in_parts,
        );
        let reference = task.reference;
        self.transcript.whisper(self.now, || {
            format!("c{client} sends {:x} as {request_id} on s{}", reference.0, stream.0)
        });
        if task.wish == Wish::Note {
            self.ledger.close(task.reference, Outcome::Unknown);
        } else {
            self.clients[client].open.insert(request_id, task);
        }
        self.send(stream, Side::Caller, Segment::Bytes(message.bytes().clone()));
    }

    /// Calls whose reply did not come in time.
    fn give_up_late_calls(&mut self, client: usize) {
        let now = self.now;
        let target = &self.clients[client];
        let late = target.open.values().any(|task| task.until <= now);
        if !late {
            return;
        }
        if let Link::Up { stream, .. } = self.clients[client].link {
            // Without an answer the connection is worth nothing.
            self.send(stream, Side::Caller, Segment::Reset);
            if let Some(stream) = self.streams.get_mut(&stream) {
                stream.hear_no_more(Side::Caller);
            }
        }
        self.client_lost(client, false);
    }

    /// The connection is over. `surely_not_executed`: the gateway said so by CloseConnection.
    pub(crate) fn client_lost(&mut self, client: usize, surely_not_executed: bool) {
        self.move_on(client);
        let open = std::mem::take(&mut self.clients[client].open);
        for task in open.into_values() {
            let call = &self.ledger.calls[&task.reference];
            if call.named || surely_not_executed {
                self.repeat(client, task);
            } else {
                self.ledger.close(task.reference, Outcome::Unknown);
            }
        }
    }

    /// A client repeats only as long as its request is surely remembered: what it sends last may
    /// wait at a gateway, and in the order.
    fn is_too_late(&self, client: usize, task: &Task) -> bool {
        let call = &self.ledger.calls[&task.reference];
        let group = &self.plan.groups[self.clients[client].plan.group];
        call.named && call.sent > 0 && self.now > call.invoked + ms(group.retention_ms / 2)
    }

    fn repeat(&mut self, client: usize, task: Task) {
        let now = self.now;
        let target = &mut self.clients[client];
        let wait = us(target.rng.between(1_000, 100_000));
        target.waiting.push_back((now + wait, task));
    }

    /// A client that names its requests does not wait for the answer: it closes the connection and
    /// repeats what is open at the next gateway, at once.
    pub(crate) fn hurry_client(&mut self, client: usize) {
        let target = &self.clients[client];
        let Some(stream) = target.stream().filter(|_| target.plan.names_requests) else { return };
        self.say(|| format!("FAULT c{client} repeats its calls elsewhere"));
        self.send(stream, Side::Caller, Segment::End);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.hear_no_more(Side::Caller);
        }
        self.client_lost(client, false);
        let now = self.now;
        let target = &mut self.clients[client];
        target.link = Link::Down { again: now };
        target.waiting.iter_mut().for_each(|(at, _)| *at = now);
        self.wake_client(client, us(1));
    }
}
