//! One fault notifier in virtual time: who calls whom, how long that takes, and what gets lost.
//!
//! What it is not: the judge. Invariant: whatever happens next is drawn from the seed.

use super::check;
use super::consumers::{Consumer, Life, Manager, Stage, Taken};
use super::fault::{By, GROUPS, Told, Want, identity_of};
use super::member::Member;
use super::nodes::Nodes;
use super::operation::{CONSUMERS, Op, Reply};
use super::plan::{Fate, ReportsPlan};
use crate::ordered::{Group, Happening, Judged, Name, Ordered, Waiting};
use crate::rng::Rng;
use crate::transcript::Transcript;
use quorba_idl::quorba::{NewsItem, Pending};
use quorba_notifier::{Errand, MANAGER, NotTaken, PATIENCE};
use std::collections::BTreeSet;
use std::time::Duration;

/// Before a call that failed is made again.
const AGAIN_US: u64 = 20_000;
/// How long a consumer may take that answers nothing.
const PUSH_WITHIN_US: u64 = 5_000_000;
/// How often is looked at what waits.
const LOOK_US: u64 = 20_000;

/// Who waits for the answer to a call.
pub(crate) enum Waiter {
    /// A member's process tells the news of its node.
    News(usize, u64),
    /// It says something of a consumer.
    Said(usize, u64, u64),
    Client(usize),
    Join(usize),
    Leave(usize),
    Change(usize),
    Nobody,
}

/// What happens.
pub(crate) enum Event {
    Group(Happening<Reply>),
    /// A call is made again.
    Again(Box<(Op, Option<Name>, Waiter)>),
    Due(usize, u64),
    /// A node sees something.
    News(usize, u64, NewsItem),
    /// A push comes to a consumer.
    Arrive(Life, Box<Pending>),
    /// A consumer was called that is cut off.
    Parted(Life, u64),
    /// The member hears of it.
    Outcome(Life, Box<Pending>, Result<(), NotTaken>),
    Report(usize),
    Come(usize),
    Go(usize),
    Change(usize),
    NodeBack(usize),
    CutAhead(usize),
    Fault,
}

/// See the module's text.
pub(crate) struct World {
    pub(crate) group: Group<Self>,
    pub(crate) plan: ReportsPlan,
    pub(crate) members: Vec<Member>,
    pub(crate) nodes: Nodes,
    pub(crate) consumers: Vec<Consumer>,
    pub(crate) manager: Manager,
    /// Of each client: how many reports it has made, and whether one is under way.
    clients: Vec<(u32, bool)>,
    serial: u32,
    taken: Taken,
    /// Connections of which whoever had them was told that they are cut off, or could not be.
    pub(crate) parted: BTreeSet<u64>,
    /// Who was to be cut off: the connection, and whose it was.
    pub(crate) meant: BTreeSet<(u64, usize)>,
    pub(crate) mute_until_us: u64,
    /// Nothing more is wanted of members.
    pub(crate) is_over: bool,
    deliveries: u64,
}

impl World {
    pub(crate) fn new(seed: u64, plan: ReportsPlan, transcript: Transcript) -> Self {
        let mut rng = Rng::new(seed).fork(0x5250);
        let new = |boot| Member::new(boot as u64, plan.waiting_max);
        let consumers = plan.consumers.iter().map(|kind| {
            let fate_us = rng.below(plan.safety_us);
            Consumer::new(*kind, fate_us, Want::All)
        });
        let consumers = consumers.collect();
        let mut world = Self {
            members: (0..plan.members).map(new).collect(),
            nodes: Nodes::new(plan.members, plan.others),
            consumers,
            manager: Manager::default(),
            clients: vec![(0, false); plan.clients.len()],
            serial: 0,
            taken: Taken::default(),
            parted: BTreeSet::new(),
            meant: BTreeSet::new(),
            mute_until_us: 0,
            is_over: false,
            deliveries: 0,
            group: Group::new(plan.members, plan.order_us, rng, transcript),
            plan,
        };
        world.set_up();
        world
    }

    fn set_up(&mut self) {
        for index in 0..self.consumers.len() {
            self.consumers[index].want = self.want();
            let is_early = index < self.plan.early;
            let at = if is_early { 0 } else { self.group.rng.below(self.plan.safety_us) };
            self.after(at, Event::Come(index));
            if self.consumers[index].kind.fate == Fate::Leaves {
                self.after(self.consumers[index].fate_us, Event::Go(index));
            }
            if self.group.rng.per_mille(self.plan.change) {
                let at = self.group.rng.below(self.plan.safety_us);
                self.after(at, Event::Change(index));
            }
        }
        (0..self.clients.len()).for_each(|client| self.after(1_000, Event::Report(client)));
        (0..self.members.len()).for_each(|member| {
            let boot = self.members[member].boot;
            self.after(50, Self::event(Happening::Told(member, boot, false)));
        });
        self.after(self.plan.fault_every_us, Event::Fault);
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.group.now_us)
    }

    /// Some location: a node, or one that is none.
    fn location(&mut self) -> String {
        let index = self.group.rng.index(self.nodes.all.len() + 1);
        self.nodes.all.get(index).map_or_else(|| "far".to_owned(), |node| node.name.clone())
    }

    fn want(&mut self) -> Want {
        let (location, group) = (self.location(), self.group.rng.between(1, GROUPS));
        match self.group.rng.below(7) {
            0 => Want::At(location),
            1 => Want::Group(group),
            2 => Want::Nodes,
            3 => Want::Either(group, location),
            _ => Want::All,
        }
    }

    /// Does something for a consumer.
    fn run(&mut self, member: usize, errand: Errand) {
        let boot = self.members[member].boot;
        match errand {
            Errand::Push(pending) => {
                let after = self.span(self.plan.call_us);
                let life = self.members[member].life(member);
                self.after(after, Event::Arrive(life, Box::new(pending)));
            }
            Errand::Delivered { consumer, last } => {
                let op = Op::Delivered(consumer, last);
                self.call(member, op, None, Waiter::Said(member, boot, consumer));
            }
            Errand::CutOff { consumer, why } => {
                let op = Op::CutOff(consumer, why);
                self.call(member, op, None, Waiter::Said(member, boot, consumer));
            }
            Errand::Part { consumer, .. } => {
                let after = self.span(self.plan.call_us);
                let life = self.members[member].life(member);
                self.after(after, Event::Parted(life, consumer));
            }
            Errand::Parted { consumer } => {
                let op = Op::Parted(consumer);
                self.call(member, op, None, Waiter::Said(member, boot, consumer));
            }
        }
    }

    /// A push comes to a consumer, or to the manager.
    fn arrive(&mut self, life: Life, pending: Box<Pending>) {
        let all: Vec<String> = pending.events.iter().filter_map(identity_of).collect();
        self.deliveries += 1;
        let (now, id) = (self.group.now_us, pending.consumer);
        let call_us = self.span(self.plan.call_us);
        let not_taken = |text: &str, is_final| Err(NotTaken { text: text.to_owned(), is_final });
        let (after, outcome) = if id == MANAGER {
            if self.manager.away_until_us > now {
                (call_us, not_taken("it is away", false))
            } else {
                self.take(life, id, None, &all);
                (call_us, Ok(()))
            }
        } else {
            let index = usize::from(pending.reference.0.endpoints()[0].port - CONSUMERS);
            let consumer = &self.consumers[index];
            let is_fated = consumer.fate_us <= now;
            match consumer.kind.fate {
                Fate::Ends if is_fated => (call_us, not_taken("it is no more", true)),
                Fate::Hangs if is_fated => (PUSH_WITHIN_US, not_taken("no answer", false)),
                _ if consumer.away_until_us > now => (call_us, not_taken("it is away", false)),
                _ => {
                    let take_us = self.span(consumer.kind.take_us);
                    self.take(life, id, Some(index), &all);
                    if now < self.mute_until_us && self.group.rng.per_mille(400) {
                        (PUSH_WITHIN_US, not_taken("its answer is lost", false))
                    } else {
                        (call_us + take_us, Ok(()))
                    }
                }
            }
        };
        self.after(after, Event::Outcome(life, pending, outcome));
    }

    /// The reports are there.
    fn take(&mut self, life: Life, id: u64, index: Option<usize>, all: &[String]) {
        let who = index.map_or_else(|| "the manager".to_owned(), |at| format!("consumer {at}"));
        self.say(|| format!("n{} gives {who}, {id}: {all:?}", life.0));
        if let Some(again) = all.iter().find(|what| self.taken.has(life, id, what)) {
            let text = format!("n{} gives {who} {again:?} once more", life.0);
            self.violate("reports once", text);
        }
        let got = index.map_or(&mut self.manager.got, |at| &mut self.consumers[at].got);
        got.extend_from_slice(all);
    }

    /// Whoever had a connection was told that it is cut off.
    fn parted(&mut self, (member, boot, _): Life, id: u64) {
        self.parted.insert(id);
        if self.is_now(member, boot) {
            let one = &mut self.members[member];
            if let Some(errand) = one.courier.parted(&one.notifier, id) {
                self.run(member, errand);
            }
        }
    }

    fn push_ended(&mut self, life: Life, pending: &Pending, outcome: Result<(), NotTaken>) {
        let (member, boot, _) = life;
        if !self.is_now(member, boot) {
            return;
        }
        let (id, now, now_us) = (pending.consumer, self.now(), self.group.now_us);
        let is_taken = outcome.is_ok();
        if is_taken {
            for what in pending.events.iter().filter_map(identity_of) {
                self.taken.note(life, id, what);
            }
        }
        let leads = self.leader() == Some(member);
        let one = &mut self.members[member];
        let courier = if id == MANAGER { &mut one.accuser } else { &mut one.courier };
        let next = courier.pushed(&one.notifier, (id, pending.last), outcome, now);
        if id != MANAGER {
            let index = usize::from(pending.reference.0.endpoints()[0].port - CONSUMERS);
            let consumer = &mut self.consumers[index];
            if !is_taken {
                consumer.failing_us.get_or_insert(now_us);
            } else if leads {
                consumer.failing_us = None;
            }
            if matches!(next, Some(Errand::CutOff { .. })) {
                self.note_cut_off(id, index);
            }
        }
        if let Some(errand) = next {
            self.run(member, errand);
        }
        self.drive(member);
    }

    /// A consumer is cut off: it is no more, or has not taken anything for long.
    fn note_cut_off(&mut self, id: u64, index: usize) {
        self.say(|| format!("consumer {index}, {id}, is to be cut off"));
        self.meant.insert((id, index));
        let now_us = self.group.now_us;
        let consumer = &self.consumers[index];
        let is_over = consumer.kind.fate == Fate::Ends && consumer.fate_us <= now_us;
        let failed = consumer.failing_us.map_or(0, |since| now_us - since);
        if !is_over && u128::from(failed) < PATIENCE.as_micros() {
            let text = format!("consumer {index} is cut off and has failed for {failed} us");
            self.violate("cut off", text);
        }
    }

    /// A member's process tells the next news of its node.
    fn tell(&mut self, member: usize) {
        let one = &mut self.members[member];
        if one.is_telling {
            return;
        }
        let Some(item) = self.nodes.all[member].news.get(one.told) else { return };
        one.is_telling = true;
        let waiter = Waiter::News(member, one.boot);
        self.call(member, Op::News(item.clone()), None, waiter);
    }

    fn report(&mut self, client: usize) {
        let (made, is_busy) = self.clients[client];
        if is_busy || made >= self.plan.messages {
            return;
        }
        self.clients[client] = (made + 1, true);
        let how_many = self.group.rng.pick(&[1, 1, 1, 3]);
        let all = (0..how_many).map(|_| self.something()).collect();
        let name = self.plan.clients[client].then_some((client as u64 + 1, made.into()));
        let gateway = self.group.rng.index(self.members.len());
        self.call(gateway, Op::Report(all), name, Waiter::Client(client));
    }

    /// Something to report.
    pub(crate) fn something(&mut self) -> Told {
        self.serial += 1;
        let location = self.location();
        let rng = &mut self.group.rng;
        let by = if rng.per_mille(700) {
            By::Application(self.serial)
        } else {
            By::Detector(self.serial)
        };
        let group = rng.per_mille(750).then(|| rng.between(1, GROUPS));
        Told { by, is_ours: rng.per_mille(850), location, group }
    }

    /// A call of a consumer, under its name.
    fn consumer_calls(&mut self, index: usize, op: Op, waiter: Waiter) {
        let consumer = &mut self.consumers[index];
        consumer.calls += 1;
        consumer.is_calling = true;
        let name = Some((1_000 + index as u64, consumer.calls));
        let gateway = self.group.rng.index(self.members.len());
        self.call(gateway, op, name, waiter);
    }

    fn come(&mut self, index: usize) {
        if self.consumers[index].stage == Stage::Absent {
            self.consumers[index].stage = Stage::Joining;
            let op = Op::Connect(self.consumers[index].kind.is_batch, index);
            self.consumer_calls(index, op, Waiter::Join(index));
        }
    }

    fn go(&mut self, index: usize) {
        let consumer = &mut self.consumers[index];
        match consumer.stage {
            Stage::In(id) if !consumer.is_calling => {
                consumer.stage = Stage::Leaving;
                self.consumer_calls(index, Op::Disconnect(id), Waiter::Leave(index));
            }
            Stage::Left => {}
            // It is not there yet.
            _ => self.after(AGAIN_US, Event::Go(index)),
        }
    }

    fn change(&mut self, index: usize) {
        let consumer = &self.consumers[index];
        match consumer.stage {
            Stage::In(id) if !consumer.is_calling => {
                let want = self.want();
                self.consumers[index].want = want.clone();
                self.consumer_calls(index, Op::Constrain(id, want), Waiter::Change(index));
            }
            _ => {}
        }
    }

    fn answered(&mut self, waiter: Waiter, reply: Option<Reply>) {
        match waiter {
            Waiter::News(member, boot) => {
                if self.is_now(member, boot) {
                    let one = &mut self.members[member];
                    one.is_telling = false;
                    one.told += usize::from(reply.is_some());
                    self.drive(member);
                }
            }
            Waiter::Said(member, boot, id) => {
                if self.is_now(member, boot) {
                    let now = self.now();
                    let one = &mut self.members[member];
                    let courier = if id == MANAGER { &mut one.accuser } else { &mut one.courier };
                    courier.said(id, reply == Some(Reply::Done), now);
                    self.drive(member);
                }
            }
            Waiter::Client(client) => {
                self.clients[client].1 = false;
                let every = self.plan.push_every_us;
                let pause = self.group.rng.between(every / 2, every * 2);
                self.after(pause, Event::Report(client));
            }
            Waiter::Join(index) => {
                let Some(Reply::Connection(id)) = reply else { panic!("a consumer: {reply:?}") };
                let consumer = &mut self.consumers[index];
                (consumer.stage, consumer.is_calling) = (Stage::In(id), false);
                self.say(|| format!("consumer {index} is connected: {id}"));
                let want = self.consumers[index].want.clone();
                if want != Want::All {
                    self.consumer_calls(index, Op::Constrain(id, want), Waiter::Change(index));
                }
            }
            Waiter::Leave(index) => {
                let consumer = &mut self.consumers[index];
                (consumer.stage, consumer.is_calling) = (Stage::Left, false);
                self.say(|| format!("consumer {index} has left"));
            }
            Waiter::Change(index) => self.consumers[index].is_calling = false,
            Waiter::Nobody => {}
        }
    }
}

impl Ordered for World {
    type Op = Op;
    type Reply = Reply;
    type Waiter = Waiter;
    type Event = Event;

    fn group(&self) -> &Group<Self> {
        &self.group
    }

    fn group_mut(&mut self) -> &mut Group<Self> {
        &mut self.group
    }

    fn event(happening: Happening<Reply>) -> Event {
        Event::Group(happening)
    }

    /// The first node whose member is in.
    fn leader(&self) -> Option<usize> {
        let order = &self.group.order;
        order.line.iter().min().copied().filter(|_| order.is_primary())
    }

    fn away_us(&self) -> (u64, u64) {
        self.plan.away_us
    }

    fn boot(&self, member: usize) -> u64 {
        self.members[member].boot
    }

    fn execute(&mut self, member: usize, at: usize) -> Option<Reply> {
        Some(self.group.order.log[at].op.execute(&mut self.members[member].notifier))
    }

    fn give(&mut self, giver: usize, member: usize, new: Option<u64>) {
        let state = self.members[giver].notifier.state();
        if let Some(boot) = new {
            self.members[member] = Member::new(boot, self.plan.waiting_max);
        }
        self.members[member].take_over(&state);
        if !self.nodes.all[member].is_up {
            self.begin_node(member);
        } else if new.is_none() {
            self.new_view(member, true);
        }
    }

    fn told(&mut self, member: usize, leads: bool) {
        // Who is cut off sees only itself, which is the first one then.
        let is_in = self.group.order.places[member].is_in;
        self.members[member].leads = leads || !is_in;
    }

    fn ended(&mut self, call: Waiting<Self>, reply: Option<Reply>) {
        let is_for_ever = match &call.waiter {
            Waiter::News(..) | Waiter::Said(..) | Waiter::Nobody => false,
            Waiter::Client(client) => self.plan.clients[*client],
            Waiter::Join(_) | Waiter::Leave(_) | Waiter::Change(_) => true,
        };
        match (reply, call.waiter) {
            (None, waiter) if is_for_ever => {
                self.after(AGAIN_US, Event::Again(Box::new((call.op, call.name, waiter))));
            }
            (None, Waiter::News(member, boot)) => {
                let pause = self.group.rng.between(20_000, 200_000);
                let again = Event::Again(Box::new((call.op, None, Waiter::News(member, boot))));
                self.after(pause, again);
            }
            (reply, waiter) => self.answered(waiter, reply),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Group(happening) => self.happen_to_group(happening),
            Event::Again(call) => {
                let (op, name, waiter) = *call;
                match waiter {
                    Waiter::News(member, boot) => {
                        if self.is_now(member, boot) {
                            self.call(member, op, None, waiter);
                        }
                    }
                    _ => {
                        let gateway = self.group.rng.index(self.members.len());
                        self.call(gateway, op, name, waiter);
                    }
                }
            }
            Event::Due(member, boot) => {
                if self.is_now(member, boot) {
                    self.members[member].is_due = false;
                    self.drive(member);
                }
            }
            Event::News(observer, boot, item) => self.seen(observer, boot, item),
            Event::Arrive(life, pending) => self.arrive(life, pending),
            Event::Parted(life, id) => self.parted(life, id),
            Event::Outcome(life, pending, outcome) => self.push_ended(life, &pending, outcome),
            Event::Report(client) => self.report(client),
            Event::Come(index) => self.come(index),
            Event::Go(index) => self.go(index),
            Event::Change(index) => self.change(index),
            Event::NodeBack(node) => self.begin_node(node),
            Event::CutAhead(member) => self.cut_ahead(member),
            Event::Fault => self.fault(),
        }
    }

    fn drive(&mut self, member: usize) {
        if self.is_over || !self.group.order.places[member].is_up {
            return;
        }
        let (now, boot) = (self.now(), self.members[member].boot);
        for errand in self.members[member].errands(now) {
            self.run(member, errand);
        }
        self.tell(member);
        let one = &mut self.members[member];
        if one.leads && !one.is_due && one.has_waiting() {
            one.is_due = true;
            self.after(LOOK_US, Event::Due(member, boot));
        }
    }
}

impl Judged for World {
    fn safety_us(&self) -> u64 {
        self.plan.safety_us
    }

    fn make_peace(&mut self) {
        self.stop_faults();
    }

    fn conclude(&mut self) {
        check::conclude(self);
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let got: usize = self.consumers.iter().map(|one| one.got.len()).sum();
        vec![
            ("calls", self.group.order.log.len() as u64),
            ("calls lost", self.group.lost.len() as u64),
            ("reports of clients", self.serial.into()),
            ("deliveries", self.deliveries),
            ("reports given", got as u64),
            ("told to the manager", self.manager.got.len() as u64),
            ("to be cut off", self.meant.len() as u64),
        ]
    }

    fn unsettled(&self) -> Option<String> {
        let leader = match self.leader_that(|leader| self.members[leader].leads) {
            Ok(leader) => leader,
            Err(missing) => return Some(missing),
        };
        if self.nodes.on_the_way > 0 || self.nodes.all.iter().any(|node| !node.is_up) {
            return Some("nodes come".to_owned());
        }
        let lags = |at: &usize| self.members[*at].told < self.nodes.all[*at].news.len();
        if let Some(member) = (0..self.members.len()).find(lags) {
            return Some(format!("n{member} has more news"));
        }
        let is_busy = |(made, is_busy): &(u32, bool)| *is_busy || *made < self.plan.messages;
        if let Some(client) = self.clients.iter().position(is_busy) {
            return Some(format!("client {client} has more"));
        }
        let moves = |one: &Consumer| {
            one.is_calling || matches!(one.stage, Stage::Absent | Stage::Joining | Stage::Leaving)
        };
        if let Some(consumer) = self.consumers.iter().position(moves) {
            return Some(format!("consumer {consumer} is neither in nor out"));
        }
        self.members[leader].has_waiting().then(|| "reports wait".to_owned())
    }
}
