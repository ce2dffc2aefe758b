//! One event service in virtual time: who calls whom, how long that takes, and what gets lost.
//!
//! What it is not: the judge. Invariant: whatever happens next is drawn from the seed.

use super::driver::{Member, Wish};
use super::operation::{CHANNEL, CONSUMERS, Op, Reply};
use super::order::{Entry, Name, Order};
use super::peers::{Consumer, Pushed, Source, Stage, Supplier};
use super::plan::{ChannelsPlan, Kind};
use crate::report::Violation;
use crate::rng::Rng;
use crate::transcript::Transcript;
use quorba_base::Instant;
use quorba_corba::giop::ExceptionKind;
use quorba_corba::{Any, Local};
use quorba_events::{Decision, Delivery, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Before a call that failed is made again.
const AGAIN_US: u64 = 20_000;
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

/// A call that was made at a member.
pub(crate) struct Waiting {
    op: Op,
    name: Option<Name>,
    pub(crate) gateway: (usize, u64),
    /// Its place in the order; none if it has none.
    place: Option<usize>,
    pub(crate) is_ending: bool,
    waiter: Waiter,
}

/// What happens.
pub(crate) enum Event {
    Receive(usize, u64, usize),
    /// A call ends, with a reply or without.
    End(u64, Option<Reply>),
    /// A call is made again.
    Again(Box<(Op, Option<Name>, Waiter)>),
    /// A member hears who leads; nobody, for a moment.
    Told(usize, u64, bool),
    Back(usize),
    Due(usize, u64),
    Arrive(usize, (u64, u64), Box<Delivery>),
    Outcome(usize, (u64, u64), Box<Delivery>, Outcome),
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
    pub(crate) now_us: u64,
    pub(crate) plan: ChannelsPlan,
    pub(crate) rng: Rng,
    pub(crate) transcript: Transcript,
    pub(crate) violations: Vec<Violation>,
    pub(crate) order: Order,
    pub(crate) members: Vec<Member>,
    pub(crate) consumers: Vec<Consumer>,
    pub(crate) suppliers: Vec<Supplier>,
    pub(crate) source: Source,
    pub(crate) pushed: Vec<Pushed>,
    pub(crate) calls: BTreeMap<u64, Waiting>,
    /// Pushes whose taking was told to who made them.
    taken: BTreeSet<((u64, u64), u64, u64)>,
    pub(crate) mute_until_us: u64,
    pub(crate) is_peace: bool,
    /// Nothing more is wanted of members.
    pub(crate) is_over: bool,
    pub(crate) boots: u64,
    /// Members that led and ended.
    pub(crate) leader_ends: usize,
    pub(crate) cuts: usize,
    queue: BTreeMap<(u64, u64), Event>,
    serial: u64,
    deliveries: u64,
}

impl World {
    pub(crate) fn new(seed: u64, plan: ChannelsPlan, transcript: Transcript) -> Self {
        let mut rng = Rng::new(seed).fork(0x4348);
        let members = (0..plan.members).map(|boot| Member::new(boot as u64)).collect();
        let wanted = |rng: &mut Rng| rng.pick(&[None, Some(1), Some(2), Some(3)]);
        let consumers =
            plan.consumers.iter().map(|kind| Consumer::new(*kind, wanted(&mut rng))).collect();
        let boots = plan.members as u64;
        let mut world = Self {
            now_us: 0,
            rng,
            transcript,
            violations: Vec::new(),
            order: Order::new(plan.members),
            members,
            consumers,
            suppliers: Vec::new(),
            source: Source::default(),
            pushed: Vec::new(),
            calls: BTreeMap::new(),
            taken: BTreeSet::new(),
            mute_until_us: 0,
            is_peace: false,
            is_over: false,
            boots,
            leader_ends: 0,
            cuts: 0,
            queue: BTreeMap::new(),
            serial: 0,
            deliveries: 0,
            plan,
        };
        world.set_up();
        world
    }

    /// The channel, who is there from the beginning, and when the others come.
    fn set_up(&mut self) {
        let (events, batch) = (self.plan.queue_events, self.plan.batch);
        let settings = format!(
            "reliable=true full=back-pressure queue_events={events} batch={batch} retry_ms=20 \
             pull_ms=5"
        );
        self.at_all(Op::Create(settings));
        for index in 0..self.consumers.len() {
            let (kind, wanted) = (self.consumers[index].kind, self.consumers[index].wanted);
            if index < self.plan.early {
                let Reply::Name(name) = self.at_all(Op::Join(kind, index, wanted)) else {
                    panic!("a consumer connects")
                };
                self.consumers[index].stage = Stage::In(name);
                self.consumers[index].from = 0;
                self.after(1_000, Event::Draw(index));
            } else {
                let at = self.rng.below(self.plan.safety_us);
                self.after(at, Event::Come(index));
            }
            if self.rng.per_mille(self.plan.leave) {
                let at = self.rng.below(self.plan.safety_us);
                self.after(at, Event::Go(index));
            }
        }
        for (index, repeats) in self.plan.suppliers.clone().into_iter().enumerate() {
            let Reply::Name(id) = self.at_all(Op::Offer(self.plan.is_facade)) else {
                panic!("a supplier connects")
            };
            let gateway = self.rng.index(self.plan.members);
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

    /// All members execute it.
    fn at_all(&mut self, op: Op) -> Reply {
        let entry = Entry { op, name: None, time: self.now_us * 10, caller: 0, reply: None };
        let place = self.order.place(entry);
        (0..self.members.len()).for_each(|member| self.receive(member, place + 1));
        self.order.log[place].reply.clone().expect("it was executed")
    }

    pub(crate) fn violate(&mut self, invariant: &'static str, text: String) {
        let at_ns = self.now_us * 1_000;
        self.say(|| format!("BROKEN {invariant}: {text}"));
        self.violations.push(Violation { invariant, at_ns, text });
    }

    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        self.transcript.say(Instant::from_nanos(self.now_us * 1_000), line);
    }

    pub(crate) fn after(&mut self, us: u64, event: Event) {
        self.serial += 1;
        self.queue.insert((self.now_us + us, self.serial), event);
    }

    fn span(&mut self, (least, most): (u64, u64)) -> u64 {
        self.rng.between(least, most)
    }

    pub(crate) fn figures(&self) -> Vec<(&'static str, u64)> {
        let got = self.consumers.iter().map(|one| one.got.len() as u64).sum();
        let acknowledged = self.pushed.iter().filter(|one| one.is_acknowledged).count() as u64;
        vec![
            ("calls", self.order.log.len() as u64),
            ("pushed", self.pushed.len() as u64),
            ("acknowledged", acknowledged),
            ("pulled", self.source.given.into()),
            ("deliveries", self.deliveries),
            ("events given", got),
            ("leaders' ends", self.leader_ends as u64),
            ("cut off", self.cuts as u64),
        ]
    }

    pub(crate) fn run_until(&mut self, until_us: u64) {
        while self.violations.is_empty()
            && let Some(((at, _), _)) = self.queue.first_key_value()
            && *at <= until_us
        {
            let ((at, _), event) = self.queue.pop_first().expect("it is there");
            self.now_us = at;
            self.happen(event);
        }
        self.now_us = self.now_us.max(until_us);
    }

    fn is_now(&self, member: usize, boot: u64) -> bool {
        self.order.places[member].is_up && self.members[member].boot == boot
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Receive(member, boot, upto) => {
                if self.is_now(member, boot) && self.order.places[member].is_in {
                    self.receive(member, upto.min(self.order.log.len()));
                    self.answer_held();
                }
            }
            Event::End(id, reply) => self.end_call(id, reply),
            Event::Again(call) => {
                let (op, name, waiter) = *call;
                self.make_again(op, name, waiter);
            }
            Event::Told(member, boot, is_blank) => {
                if self.is_now(member, boot) {
                    let is_in = self.order.places[member].is_in;
                    let leads = is_in && !is_blank && self.order.leader() == Some(member);
                    self.say(|| format!("n{member} is told that it leads: {leads}"));
                    self.members[member].service.tick(self.now_us * 10);
                    self.members[member].leads(leads);
                    self.drive(member);
                }
            }
            Event::Back(member) => self.come_back(member),
            Event::Due(member, boot) => {
                if self.is_now(member, boot) {
                    self.members[member].due_us = u64::MAX;
                    self.drive(member);
                }
            }
            Event::Arrive(member, life, delivery) => self.arrive(member, life, delivery),
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
            Event::Supply(supplier) => self.supply(supplier),
            Event::Draw(consumer) => self.draw(consumer),
            Event::Come(consumer) => self.come(consumer),
            Event::Go(consumer) => self.go(consumer),
            Event::Fault => self.fault(),
        }
    }

    /// A member has that many entries, and executes those that are new.
    pub(crate) fn receive(&mut self, member: usize, upto: usize) {
        while self.order.places[member].received < upto {
            let at = self.order.places[member].received;
            let entry = &self.order.log[at];
            let (time, caller) = (entry.time, entry.caller);
            let one = &mut self.members[member];
            one.tell(time, caller);
            one.service.tick(self.now_us * 10);
            let reply = entry.op.execute(&mut one.service);
            self.order.places[member].received = at + 1;
            match self.order.log[at].reply.clone() {
                None => self.order.log[at].reply = Some(reply),
                Some(first) if first == reply => {}
                Some(first) => {
                    let op = format!("{:?}", self.order.log[at].op);
                    let text = format!("{op} at {at}: {first:?}, and n{member}: {reply:?}");
                    self.violate("equality", text);
                }
            }
        }
        self.drive(member);
    }

    /// Makes a call at a member's gateway.
    pub(crate) fn call(&mut self, gateway: usize, op: Op, name: Option<Name>, waiter: Waiter) {
        self.serial += 1;
        let id = self.serial;
        let boot = self.members[gateway].boot;
        let place = self.order.places[gateway];
        let is_served = place.is_up && place.is_in && self.order.is_primary();
        let waiting = Waiting {
            op: op.clone(),
            name,
            gateway: (gateway, boot),
            place: None,
            is_ending: !is_served,
            waiter,
        };
        self.calls.insert(id, waiting);
        if !is_served {
            let after = self.span((500, 30_000));
            return self.after(after, Event::End(id, None));
        }
        let time = self.now_us * 10;
        let caller = gateway as u64 + 1 + boot * 100;
        let at = self.order.place(Entry { op, name, time, caller, reply: None });
        if let Some(waiting) = self.calls.get_mut(&id) {
            waiting.place = Some(at);
        }
        let others: Vec<usize> = self.order.line.clone();
        for other in others.into_iter().filter(|other| *other != gateway) {
            let after = self.span(self.plan.order_us);
            let boot = self.members[other].boot;
            self.after(after, Event::Receive(other, boot, at + 1));
        }
        self.receive(gateway, at + 1);
        self.answer_held();
    }

    /// Answers what a majority has by now.
    pub(crate) fn answer_held(&mut self) {
        let held = self.order.held();
        let ready = |one: &Waiting| !one.is_ending && one.place.is_some_and(|at| at < held);
        let ready: Vec<u64> =
            self.calls.iter().filter(|(_, one)| ready(one)).map(|(id, _)| *id).collect();
        for id in ready {
            let Some(waiting) = self.calls.get_mut(&id) else { continue };
            waiting.is_ending = true;
            let at = waiting.place.expect("it is ready");
            let reply = self.order.log[at].reply.clone();
            let after = self.span((10, 300));
            self.after(after, Event::End(id, reply));
        }
    }

    fn end_call(&mut self, id: u64, reply: Option<Reply>) {
        let Some(call) = self.calls.remove(&id) else { return };
        let (gateway, boot) = call.gateway;
        let is_there = self.is_now(gateway, boot) && self.order.places[gateway].is_in;
        let passing = Reply::Raised(ExceptionKind::Transient);
        match reply.filter(|_| is_there) {
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

    fn make_again(&mut self, op: Op, name: Option<Name>, waiter: Waiter) {
        let gateway = self.rng.index(self.members.len());
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
            Waiter::Push(..) | Waiter::Join(_) | Waiter::Leave(_) => {
                self.call(gateway, op, name, waiter);
            }
            Waiter::Pull(consumer) => {
                // A reply that is lost between a client and a gateway that both go on is lost.
                let others = self.members.len() as u64 - 1;
                let caller = self.consumers[consumer].caller;
                let next = caller + 1 + self.rng.below(others) as usize;
                self.consumers[consumer].moves(next % self.members.len());
                self.draw(consumer);
            }
        }
    }

    fn answered(&mut self, waiter: Waiter, reply: Reply) {
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

    /// Does what a member wants done.
    pub(crate) fn drive(&mut self, member: usize) {
        if self.is_over || !self.order.places[member].is_up {
            return;
        }
        let (now_us, boot) = (self.now_us, self.members[member].boot);
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

    /// A push comes to a consumer.
    fn arrive(&mut self, member: usize, life: (u64, u64), delivery: Box<Delivery>) {
        let port = delivery.to.0.endpoints()[0].port;
        let index = usize::from(port - CONSUMERS);
        let consumer = &mut self.consumers[index];
        let before = consumer.got.len();
        let mut outcome = Outcome::Failed;
        if consumer.away_until_us <= self.now_us {
            outcome = delivery.send(&mut Local::new(consumer, b"peer"));
            self.deliveries += 1;
        }
        let new: Vec<u32> = self.consumers[index].got[before..].to_vec();
        let number = delivery.number;
        self.say(|| format!("n{member} pushes {number} to consumer {index}: {new:?}, {outcome:?}"));
        if outcome == Outcome::Taken {
            let key = (life, delivery.consumer, number);
            if self.taken.contains(&key) {
                let text = format!("n{member} pushes {number} to consumer {index} once more");
                self.violate("events once", text);
            }
        }
        if self.now_us < self.mute_until_us && self.rng.per_mille(400) {
            outcome = Outcome::Failed;
        }
        let after = self.span(self.plan.call_us);
        self.after(after, Event::Outcome(member, life, delivery, outcome));
    }

    fn push_ended(
        &mut self,
        member: usize,
        life: (u64, u64),
        delivery: &Delivery,
        outcome: Outcome,
    ) {
        if !self.is_now(member, life.0) {
            return;
        }
        if outcome == Outcome::Taken && self.members[member].term == life.1 {
            self.taken.insert((life, delivery.consumer, delivery.number));
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
        let event_type = if is_facade { self.rng.between(1, 3) as i32 } else { 0 };
        let supplier = &mut self.suppliers[index];
        supplier.pushed += 1;
        supplier.is_waiting = true;
        let number = index as u32 * EACH + supplier.pushed;
        let name = supplier.repeats.then_some((index as u64 + 1, u64::from(supplier.pushed)));
        let (op, gateway) = (Op::Push(supplier.id.clone(), event_type, number), supplier.gateway);
        let waiter = Waiter::Push(index, self.pushed.len());
        self.pushed.push(Pushed { number, event_type, is_acknowledged: false });
        self.call(gateway, op, name, waiter);
    }

    fn draw(&mut self, index: usize) {
        let consumer = &self.consumers[index];
        let Stage::In(name) = &consumer.stage else { return };
        if consumer.kind == Kind::Pull {
            self.call(consumer.caller, Op::Pull(name.clone()), None, Waiter::Pull(index));
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
        let op = Op::Join(self.consumers[index].kind, index, self.consumers[index].wanted);
        self.consumers[index].stage = Stage::Joining;
        let (name, gateway) = (self.name_of(index), self.rng.index(self.members.len()));
        self.call(gateway, op, name, Waiter::Join(index));
    }

    fn go(&mut self, index: usize) {
        let Stage::In(name) = &self.consumers[index].stage else { return };
        let op = Op::Leave(self.consumers[index].kind, name.clone());
        self.consumers[index].stage = Stage::Leaving;
        let (name, gateway) = (self.name_of(index), self.rng.index(self.members.len()));
        self.call(gateway, op, name, Waiter::Leave(index));
    }

    /// What is still to come, once there are no more faults.
    pub(crate) fn unsettled(&self) -> Option<String> {
        if self.order.line.len() < self.members.len() {
            return Some(format!("members: {:?}", self.order.line));
        }
        let busy =
            self.suppliers.iter().position(|one| one.is_waiting || one.pushed < self.plan.messages);
        if let Some(busy) = busy {
            return Some(format!("supplier {busy} has more"));
        }
        let leader = self.order.leader().filter(|leader| self.members[*leader].service.leads());
        let Some(leader) = leader else { return Some("nobody leads".to_owned()) };
        let moving =
            |one: &&Consumer| matches!(one.stage, Stage::Absent | Stage::Joining | Stage::Leaving);
        let moving = self.consumers.iter().filter(moving).count();
        if moving > 0 {
            return Some(format!("{moving} consumers are neither in nor out"));
        }
        match (self.members[leader].waiting(), self.source.left) {
            (0, 0) => None,
            (waiting, left) => Some(format!("{waiting} sets wait, {left} are to be pulled")),
        }
    }
}
