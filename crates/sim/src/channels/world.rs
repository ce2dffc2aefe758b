//! One event service in virtual time: who calls whom, how long that takes, and what gets lost.
//!
//! What it is not: the judge. Invariant: whatever happens next is drawn from the seed.

use super::check;
use super::driver::{Member, Wish};
use super::operation::{CHANNEL, CONSUMERS, Op, Reply};
use super::past::Taken;
use super::peers::{Consumer, Pushed, Source, Stage, Supplier};
use super::plan::{ChannelsPlan, Kind, Wants};
use crate::ordered::{Faults, Group, Happening, Judged, Name, Ordered, Waiting};
use crate::rng::Rng;
use crate::transcript::Transcript;
use quorba_corba::giop::ExceptionKind;
use quorba_corba::{Any, Local};
use quorba_events::{Decision, Delivery, Outcome};
use std::collections::BTreeSet;

/// Before a call that failed is made again.
pub(crate) const AGAIN_US: u64 = 20_000;
/// Numbers of events begin at so many times who pushed them; the pulled supplier's come last.
pub(crate) const EACH: u32 = 100_000;

/// Who waits for the answer to a call.
pub(crate) enum Waiter {
    Decision(usize, u64, Decision),
    Fence(usize, u64, Vec<Delivery>),
    Push(usize, usize),
    Pull(usize),
    Join(usize),
    Leave(usize),
}

/// What happens.
pub(crate) enum Event {
    Group(Happening<Reply>),
    /// A call is made again.
    Again(Box<(Op, Option<Name>, Waiter)>),
    Due(usize, u64),
    Arrive(usize, (u64, u64), Box<Delivery>),
    Outcome(usize, (u64, u64), Box<(Delivery, Vec<u32>)>, Outcome),
    /// A call past the order comes to who leads, and its reply goes back.
    Past(Box<(Op, Waiter)>),
    Replied(usize, u64, Box<(Op, Waiter, Reply)>),
    Asked(usize, u64, u64, u64),
    Answered(usize, u64, u64, u64, Option<u32>),
    Supply(usize),
    Draw(usize),
    Come(usize),
    Go(usize),
    Fault,
}

/// See the module's text.
pub(crate) struct World {
    pub(crate) group: Group<Self>,
    pub(crate) plan: ChannelsPlan,
    pub(crate) members: Vec<Member>,
    pub(crate) consumers: Vec<Consumer>,
    pub(crate) suppliers: Vec<Supplier>,
    pub(crate) source: Source,
    pub(crate) pushed: Vec<Pushed>,
    /// Pushes whose taking was told to who made them.
    taken: BTreeSet<((u64, u64), u64, u64)>,
    /// Pushes that members have taken past the order.
    pub(crate) taken_past: Vec<Taken>,
    /// Which events a member in that life knew a consumer to have.
    pub(crate) known: BTreeSet<((u64, u64), usize, u32)>,
    pub(crate) mute_until_us: u64,
    /// Nothing more is wanted of members.
    pub(crate) is_over: bool,
    /// Members that led and ended.
    pub(crate) leader_ends: usize,
    deliveries: u64,
}

impl World {
    pub(crate) fn new(seed: u64, plan: ChannelsPlan, transcript: Transcript) -> Self {
        let mut rng = Rng::new(seed).fork(0x4348);
        let members = (0..plan.members).map(|boot| Member::new(boot as u64)).collect();
        let wanted = |rng: &mut Rng| rng.pick(&[None, Some(1), Some(2), Some(3)]);
        let consumers = plan.consumers.iter().zip(&plan.wants).map(|(kind, wants)| {
            let type_only = wanted(&mut rng).map_or(Wants::All, Wants::Type);
            Consumer::new(*kind, wants.unwrap_or(type_only))
        });
        let consumers = consumers.collect();
        let mut world = Self {
            group: Group::new(plan.members, plan.order_us, rng, transcript),
            members,
            consumers,
            suppliers: Vec::new(),
            source: Source::default(),
            pushed: Vec::new(),
            taken: BTreeSet::new(),
            taken_past: Vec::new(),
            known: BTreeSet::new(),
            mute_until_us: 0,
            is_over: false,
            leader_ends: 0,
            deliveries: 0,
            plan,
        };
        world.set_up();
        world
    }

    /// The channel, who is there from the beginning, and when the others come.
    fn set_up(&mut self) {
        let (events, batch) = (self.plan.queue_events, self.plan.batch);
        let reliable = self.plan.is_reliable;
        let settings = format!(
            "reliable={reliable} full=back-pressure queue_events={events} batch={batch} \
             retry_ms=20 pull_ms=5"
        );
        self.at_all(Op::Create(settings));
        for index in 0..self.consumers.len() {
            let (kind, wants) = (self.consumers[index].kind, self.consumers[index].wants);
            if index < self.plan.early {
                let Reply::Name(name) = self.at_all(Op::Join(kind, index, wants)) else {
                    panic!("a consumer connects")
                };
                self.consumers[index].stage = Stage::In(name);
                self.consumers[index].from = 0;
                self.after(1_000, Event::Draw(index));
            } else {
                let at = self.group.rng.below(self.plan.safety_us);
                self.after(at, Event::Come(index));
            }
            if self.group.rng.per_mille(self.plan.leave) {
                let at = self.group.rng.below(self.plan.safety_us);
                self.after(at, Event::Go(index));
            }
        }
        for (index, repeats) in self.plan.suppliers.clone().into_iter().enumerate() {
            let Reply::Name(id) = self.at_all(Op::Offer(self.plan.is_facade)) else {
                panic!("a supplier connects")
            };
            let gateway = self.group.rng.index(self.plan.members);
            let supplier = Supplier { repeats, id, pushed: 0, is_waiting: false, gateway };
            self.suppliers.push(supplier);
            self.after(500, Event::Supply(index));
        }
        if self.plan.stock > 0 {
            self.source.left = self.plan.stock;
            self.at_all(Op::Source);
        }
        (0..self.members.len()).for_each(|member| self.tell_soon(member));
        self.after(self.plan.fault_every_us, Event::Fault);
    }

    fn make_again(&mut self, op: Op, name: Option<Name>, waiter: Waiter) {
        let gateway = self.group.rng.index(self.members.len());
        match waiter {
            Waiter::Decision(member, boot, decision) => {
                if !self.is_now(member, boot) {
                    return;
                }
                let one = &mut self.members[member];
                if decision.is_pulled() || one.service.leads() {
                    let waiter = Waiter::Decision(member, boot, decision);
                    return self.call(member, op, name, waiter);
                }
                one.decisions.done(&decision);
                one.is_deciding = false;
                self.drive(member);
            }
            Waiter::Fence(member, boot, pushes) => {
                if !self.is_now(member, boot) {
                    return;
                }
                if self.members[member].service.leads() {
                    return self.call(member, op, name, Waiter::Fence(member, boot, pushes));
                }
                self.fence_ended(member, pushes, false);
            }
            Waiter::Push(supplier, _) if !self.suppliers[supplier].repeats => {
                self.suppliers[supplier].is_waiting = false;
                self.after(self.plan.push_every_us, Event::Supply(supplier));
            }
            Waiter::Push(..) => self.call_events(gateway, op, name, waiter),
            Waiter::Join(_) | Waiter::Leave(_) => self.call(gateway, op, name, waiter),
            Waiter::Pull(consumer) if !self.plan.is_reliable => self.draw(consumer),
            Waiter::Pull(consumer) => {
                // A reply that is lost between a client and a gateway that both go on is lost.
                let others = self.members.len() as u64 - 1;
                let caller = self.consumers[consumer].caller;
                let next = caller + 1 + self.group.rng.below(others) as usize;
                self.consumers[consumer].moves(next % self.members.len());
                self.draw(consumer);
            }
        }
    }

    pub(crate) fn answered(&mut self, waiter: Waiter, reply: Reply) {
        match waiter {
            Waiter::Decision(member, boot, decision) => {
                if !self.is_now(member, boot) {
                    return;
                }
                let one = &mut self.members[member];
                match reply {
                    Reply::Done => one.service.decided(&decision),
                    _ => one.service.left_out(&decision),
                }
                one.decisions.done(&decision);
                one.is_deciding = false;
                self.drive(member);
            }
            Waiter::Fence(member, boot, pushes) => {
                if self.is_now(member, boot) {
                    let leads = self.members[member].service.leads();
                    self.fence_ended(member, pushes, leads);
                }
            }
            Waiter::Push(supplier, index) => {
                assert_eq!(reply, Reply::Done, "a push");
                self.pushed[index].is_acknowledged = true;
                self.suppliers[supplier].is_waiting = false;
                self.after(self.plan.push_every_us, Event::Supply(supplier));
            }
            Waiter::Pull(consumer) => {
                let Reply::Given(given) = reply else { panic!("a pull: {reply:?}") };
                self.say(|| format!("consumer {consumer} pulls {given:?}"));
                self.consumers[consumer].got.extend(given);
                self.consumers[consumer].pulls += u32::from(given.is_some());
                let after = if given.is_some() { 200 } else { 8_000 };
                self.after(after, Event::Draw(consumer));
            }
            Waiter::Join(consumer) => {
                let Reply::Name(name) = reply else { panic!("a consumer: {reply:?}") };
                self.consumers[consumer].stage = Stage::In(name);
                self.consumers[consumer].from = self.pushed.len() as u64;
                self.say(|| format!("consumer {consumer} is connected"));
                self.after(100, Event::Draw(consumer));
            }
            Waiter::Leave(consumer) => {
                assert_eq!(reply, Reply::Done, "a consumer leaves");
                self.consumers[consumer].stage = Stage::Left;
                self.consumers[consumer].until = self.pushed.len() as u64;
                self.say(|| format!("consumer {consumer} has left"));
            }
        }
    }

    fn fence_ended(&mut self, member: usize, pushes: Vec<Delivery>, is_held: bool) {
        self.members[member].is_fencing = false;
        for push in pushes {
            let service = &mut self.members[member].service;
            if is_held {
                if service.is_under_way(CHANNEL, &push) {
                    self.send(member, push);
                }
            } else {
                service.pushed(CHANNEL, push.consumer, push.ticket, Outcome::Failed);
            }
        }
        self.drive(member);
    }

    fn send(&mut self, member: usize, delivery: Delivery) {
        let after = self.span(self.plan.call_us);
        let life = (self.members[member].boot, self.members[member].term);
        self.after(after, Event::Arrive(member, life, Box::new(delivery)));
    }

    /// A push comes to a consumer.
    fn arrive(&mut self, member: usize, life: (u64, u64), delivery: Delivery) {
        let port = delivery.to.0.endpoints()[0].port;
        let index = usize::from(port - CONSUMERS);
        let consumer = &mut self.consumers[index];
        let before = consumer.got.len();
        let mut outcome = Outcome::Failed;
        if consumer.away_until_us <= self.group.now_us {
            outcome = delivery.send(&mut Local::new(consumer, b"peer"));
            self.deliveries += 1;
        }
        let new: Vec<u32> = self.consumers[index].got[before..].to_vec();
        let number = delivery.number;
        self.say(|| format!("n{member} pushes {number} to consumer {index}: {new:?}, {outcome:?}"));
        if outcome == Outcome::Taken {
            if let Some(again) = self.given_again(life, index, &new) {
                let text = format!("n{member} pushes {again} to consumer {index} once more");
                self.violate("events once", text);
            }
            let key = (life, delivery.consumer, number);
            if self.plan.is_reliable && self.taken.contains(&key) {
                let text = format!("n{member} pushes {number} to consumer {index} once more");
                self.violate("events once", text);
            }
        }
        let is_muted = self.group.now_us < self.mute_until_us && self.group.rng.per_mille(400);
        if is_muted && outcome == Outcome::Taken {
            // Its answer is lost.
            outcome = Outcome::Unanswered;
        }
        let after = self.span(self.plan.call_us);
        self.after(after, Event::Outcome(member, life, Box::new((delivery, new)), outcome));
    }

    fn push_ended(
        &mut self,
        member: usize,
        life: (u64, u64),
        (delivery, events): &(Delivery, Vec<u32>),
        outcome: Outcome,
    ) {
        if !self.is_now(member, life.0) {
            return;
        }
        // Where events are not kept, what may be there is not given again either.
        let is_over =
            outcome == Outcome::Taken || outcome == Outcome::Unanswered && !self.plan.is_reliable;
        if is_over && self.members[member].term == life.1 {
            self.taken.insert((life, delivery.consumer, delivery.number));
            let port = delivery.to.0.endpoints()[0].port;
            let index = usize::from(port - CONSUMERS);
            self.known.extend(events.iter().map(|number| (life, index, *number)));
        }
        let service = &mut self.members[member].service;
        service.pushed(CHANNEL, delivery.consumer, delivery.ticket, outcome);
        self.drive(member);
    }

    fn supply(&mut self, index: usize) {
        let supplier = &self.suppliers[index];
        if supplier.is_waiting || supplier.pushed >= self.plan.messages {
            return;
        }
        let is_facade = self.plan.is_facade;
        let event_type = if is_facade { self.group.rng.between(1, 3) as i32 } else { 0 };
        let supplier = &mut self.suppliers[index];
        supplier.pushed += 1;
        supplier.is_waiting = true;
        let number = index as u32 * EACH + supplier.pushed;
        let name = supplier.repeats.then_some((index as u64 + 1, u64::from(supplier.pushed)));
        let (op, gateway) = (Op::Push(supplier.id.clone(), event_type, number), supplier.gateway);
        let waiter = Waiter::Push(index, self.pushed.len());
        self.pushed.push(Pushed { number, event_type, is_acknowledged: false });
        self.call_events(gateway, op, name, waiter);
    }

    fn draw(&mut self, index: usize) {
        let consumer = &self.consumers[index];
        let Stage::In(name) = &consumer.stage else { return };
        if consumer.kind == Kind::Pull {
            let (gateway, op) = (consumer.caller, Op::Pull(name.clone()));
            self.call_events(gateway, op, None, Waiter::Pull(index));
        }
    }

    /// The name of a consumer's next call.
    fn name_of(&mut self, index: usize) -> Option<Name> {
        self.consumers[index].calls += 1;
        Some((1_000 + index as u64, self.consumers[index].calls))
    }

    fn come(&mut self, index: usize) {
        if self.consumers[index].stage != Stage::Absent {
            return;
        }
        let op = Op::Join(self.consumers[index].kind, index, self.consumers[index].wants);
        self.consumers[index].stage = Stage::Joining;
        let (name, gateway) = (self.name_of(index), self.group.rng.index(self.members.len()));
        self.call(gateway, op, name, Waiter::Join(index));
    }

    fn go(&mut self, index: usize) {
        let Stage::In(name) = &self.consumers[index].stage else { return };
        let op = Op::Leave(self.consumers[index].kind, name.clone());
        self.consumers[index].stage = Stage::Leaving;
        let (name, gateway) = (self.name_of(index), self.group.rng.index(self.members.len()));
        self.call(gateway, op, name, Waiter::Leave(index));
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

    fn boot(&self, member: usize) -> u64 {
        self.members[member].boot
    }

    fn execute(&mut self, member: usize, at: usize) -> Option<Reply> {
        let entry = &self.group.order.log[at];
        let one = &mut self.members[member];
        one.tell(entry.time, entry.caller);
        one.service.tick(self.group.now_us * 10);
        Some(entry.op.execute(&mut one.service))
    }

    fn give(&mut self, giver: usize, member: usize, new: Option<u64>) {
        let state = self.members[giver].service.state();
        if let Some(boot) = new {
            self.members[member] = Member::new(boot);
        }
        self.members[member].service.take_over(&state).expect("a state");
    }

    fn told(&mut self, member: usize, leads: bool) {
        self.members[member].service.tick(self.group.now_us * 10);
        self.members[member].leads(leads);
    }

    fn ended(&mut self, call: Waiting<Self>, reply: Option<Reply>) {
        let passing = Reply::Raised(ExceptionKind::Transient);
        match reply {
            Some(reply) if reply != passing => self.answered(call.waiter, reply),
            Some(_) => {
                // It was not executed: the next attempt has another name.
                let name = call.name.map(|(who, number)| (who, number + (1 << 32)));
                self.after(AGAIN_US, Event::Again(Box::new((call.op, name, call.waiter))));
            }
            None => {
                self.after(AGAIN_US, Event::Again(Box::new((call.op, call.name, call.waiter))));
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Group(happening) => self.happen_to_group(happening),
            Event::Again(call) => {
                let (op, name, waiter) = *call;
                self.make_again(op, name, waiter);
            }
            Event::Due(member, boot) => {
                if self.is_now(member, boot) {
                    self.members[member].due_us = u64::MAX;
                    self.drive(member);
                }
            }
            Event::Arrive(member, life, delivery) => self.arrive(member, life, *delivery),
            Event::Outcome(member, life, delivery, outcome) => {
                self.push_ended(member, life, &delivery, outcome);
            }
            Event::Asked(member, boot, supplier, ticket) => {
                let answer = (self.source.left > 0).then(|| {
                    self.source.left -= 1;
                    self.source.given += 1;
                    self.suppliers.len() as u32 * EACH + self.source.given
                });
                self.say(|| format!("n{member} pulls {answer:?}"));
                let after = self.span(self.plan.call_us);
                self.after(after, Event::Answered(member, boot, supplier, ticket, answer));
            }
            Event::Answered(member, boot, supplier, ticket, answer) => {
                if self.is_now(member, boot) {
                    let data = answer.map(|number| Any::new(&number).expect("a value"));
                    self.members[member].service.pulled(CHANNEL, supplier, ticket, Ok(data));
                    self.drive(member);
                }
            }
            Event::Past(call) => self.past(call.0, call.1),
            Event::Replied(leader, boot, call) => self.replied(leader, boot, *call),
            Event::Supply(supplier) => self.supply(supplier),
            Event::Draw(consumer) => self.draw(consumer),
            Event::Come(consumer) => self.come(consumer),
            Event::Go(consumer) => self.go(consumer),
            Event::Fault => self.fault(),
        }
    }

    fn drive(&mut self, member: usize) {
        if self.is_over || !self.group.order.places[member].is_up {
            return;
        }
        let (now_us, boot) = (self.group.now_us, self.members[member].boot);
        self.members[member].service.tick(now_us * 10);
        for wish in self.members[member].poll() {
            match wish {
                Wish::Push(delivery) => self.send(member, delivery),
                Wish::Pull(supplier, ticket) => {
                    let after = self.span(self.plan.call_us);
                    self.after(after, Event::Asked(member, boot, supplier, ticket));
                }
            }
        }
        let one = &mut self.members[member];
        let due = one.service.poll_timeout().map_or(u64::MAX, |due| due / 10);
        let due = due.clamp(now_us + 1_000, now_us + 1_000_000);
        if due < one.due_us {
            one.due_us = due;
            self.after(due - now_us, Event::Due(member, boot));
        }
        let one = &mut self.members[member];
        if !one.is_deciding
            && let Some(decision) = one.decisions.poll()
        {
            one.is_deciding = true;
            let (name, op) = (one.name(), Op::Decide(decision.clone()));
            self.call(member, op, Some(name), Waiter::Decision(member, boot, decision));
        }
        let one = &mut self.members[member];
        if !one.is_fencing && !one.fenced.is_empty() {
            one.is_fencing = true;
            let pushes = std::mem::take(&mut one.fenced);
            let (name, op) = (one.name(), Op::Decide(Decision::Look(CHANNEL.to_owned())));
            self.call(member, op, Some(name), Waiter::Fence(member, boot, pushes));
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
        let got = self.consumers.iter().map(|one| one.got.len() as u64).sum();
        let acknowledged = self.pushed.iter().filter(|one| one.is_acknowledged).count() as u64;
        vec![
            ("calls", self.group.order.log.len() as u64),
            ("pushed", self.pushed.len() as u64),
            ("acknowledged", acknowledged),
            ("pulled", self.source.given.into()),
            ("deliveries", self.deliveries),
            ("events given", got),
            ("leaders' ends", self.leader_ends as u64),
            ("cut off", self.group.cuts as u64),
        ]
    }

    fn unsettled(&self) -> Option<String> {
        let busy =
            self.suppliers.iter().position(|one| one.is_waiting || one.pushed < self.plan.messages);
        if let Some(busy) = busy {
            return Some(format!("supplier {busy} has more"));
        }
        let leader = match self.leader_that(|leader| self.members[leader].service.leads()) {
            Ok(leader) => leader,
            Err(missing) => return Some(missing),
        };
        let moving =
            |one: &&Consumer| matches!(one.stage, Stage::Absent | Stage::Joining | Stage::Leaving);
        let moving = self.consumers.iter().filter(moving).count();
        if moving > 0 {
            return Some(format!("{moving} consumers are neither in nor out"));
        }
        // What nobody wants is not pulled.
        let is_wanted = |one: &Consumer| matches!(one.stage, Stage::In(_)) && one.wants.lets(0);
        let left = if self.consumers.iter().any(is_wanted) { self.source.left } else { 0 };
        match (self.members[leader].waiting(), left) {
            (0, 0) => None,
            (waiting, left) => Some(format!("{waiting} sets wait, {left} are to be pulled")),
        }
    }
}
