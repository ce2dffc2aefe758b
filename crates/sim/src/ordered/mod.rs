//! A service alone: its members, the order of its calls, and members that end, are cut off and come
//! back. What scopes of one service have in common.
//!
//! What it is not: a group of the engine; the order of calls is a list here, of which each member
//! has a part and a majority holds a part. The other scopes prove that the engine's order is such a
//! one. Who calls whom is each scope's own.
//!
//! Invariants: a majority of the members stays, for what a group without one does is not its
//! service's business; whatever happens next is drawn from the seed.

mod faults;
mod order;
mod play;

pub(crate) use faults::Faults;
pub(crate) use order::{Entry, Name, Order};
pub(crate) use play::{Judged, play};

use crate::report::Violation;
use crate::rng::Rng;
use crate::transcript::Transcript;
use quorba_base::Instant;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A call that was made at a member.
pub(crate) struct Waiting<W: Ordered> {
    pub(crate) op: W::Op,
    pub(crate) name: Option<Name>,
    /// The member, and the boot of its process.
    gateway: (usize, u64),
    /// Its place in the order; none if it has none.
    place: Option<usize>,
    is_ending: bool,
    pub(crate) waiter: W::Waiter,
}

/// What happens to any group.
pub(crate) enum Happening<R> {
    /// A member has that many entries of the order.
    Receive(usize, u64, usize),
    /// A call ends, with a reply or without.
    End(u64, Option<R>),
    /// A member hears who leads; nobody, for a moment.
    Told(usize, u64, bool),
    /// A member comes back.
    Back(usize),
}

/// The group, and the time around it.
pub(crate) struct Group<W: Ordered> {
    pub(crate) now_us: u64,
    pub(crate) rng: Rng,
    pub(crate) transcript: Transcript,
    pub(crate) violations: Vec<Violation>,
    pub(crate) order: Order<W::Op, W::Reply>,
    pub(crate) is_peace: bool,
    /// No two processes have the same boot.
    pub(crate) boots: u64,
    pub(crate) cuts: usize,
    /// Calls that had a place in the order and lost it.
    pub(crate) lost: Vec<W::Op>,
    calls: BTreeMap<u64, Waiting<W>>,
    queue: BTreeMap<(u64, u64), W::Event>,
    serial: u64,
    /// How long an entry of the order takes to another member, in microseconds.
    order_us: (u64, u64),
}

impl<W: Ordered> Group<W> {
    pub(crate) fn new(
        members: usize,
        order_us: (u64, u64),
        rng: Rng,
        transcript: Transcript,
    ) -> Self {
        Self {
            now_us: 0,
            rng,
            transcript,
            violations: Vec::new(),
            order: Order::new(members),
            is_peace: false,
            boots: members as u64,
            cuts: 0,
            lost: Vec::new(),
            calls: BTreeMap::new(),
            queue: BTreeMap::new(),
            serial: 0,
            order_us,
        }
    }

    /// Takes the next event, if it is not later than that.
    pub(crate) fn next(&mut self, until_us: u64) -> Option<W::Event> {
        let ((at, _), _) = self.queue.first_key_value()?;
        if *at > until_us || !self.violations.is_empty() {
            self.now_us = self.now_us.max(until_us);
            return None;
        }
        let ((at, _), event) = self.queue.pop_first()?;
        self.now_us = at;
        Some(event)
    }
}

/// A service that is simulated alone.
pub(crate) trait Ordered: Sized {
    type Op: Clone + Debug;
    type Reply: Clone + PartialEq + Debug;
    type Waiter;
    type Event;

    fn group(&self) -> &Group<Self>;
    fn group_mut(&mut self) -> &mut Group<Self>;
    fn event(happening: Happening<Self::Reply>) -> Self::Event;
    /// Who leads, if it is so.
    fn leader(&self) -> Option<usize> {
        self.group().order.leader()
    }

    /// How long a member is away at least and at most, in microseconds.
    fn away_us(&self) -> (u64, u64) {
        (2_000, 150_000)
    }

    /// The boot of a member's process.
    fn boot(&self, member: usize) -> u64;
    /// A member executes what is at that place; nothing: its process ends meanwhile, which may be
    /// only if one can be lost.
    fn execute(&mut self, member: usize, at: usize) -> Option<Self::Reply>;
    /// Does what a member wants done.
    fn drive(&mut self, member: usize);
    /// A member is given what another one has; as a new process, if there is a boot for it.
    fn give(&mut self, giver: usize, member: usize, new: Option<u64>);
    /// A member's process begins without anything, after all have ended.
    fn begin_anew(&mut self, _member: usize, _boot: u64) {
        unreachable!("in this scope all never end at once");
    }

    /// It is told whether it leads.
    fn told(&mut self, member: usize, leads: bool);
    /// A call has ended, with a reply that its gateway could pass on, or without.
    fn ended(&mut self, call: Waiting<Self>, reply: Option<Self::Reply>);
    /// Something happens.
    fn happen(&mut self, event: Self::Event);

    fn violate(&mut self, invariant: &'static str, text: String) {
        let at_ns = self.group().now_us * 1_000;
        self.say(|| format!("BROKEN {invariant}: {text}"));
        self.group_mut().violations.push(Violation { invariant, at_ns, text });
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        let now = Instant::from_nanos(self.group().now_us * 1_000);
        self.group_mut().transcript.say(now, line);
    }

    fn after(&mut self, us: u64, event: Self::Event) {
        let group = self.group_mut();
        group.serial += 1;
        group.queue.insert((group.now_us + us, group.serial), event);
    }

    fn span(&mut self, (least, most): (u64, u64)) -> u64 {
        self.group_mut().rng.between(least, most)
    }

    fn run_until(&mut self, until_us: u64) {
        while let Some(event) = self.group_mut().next(until_us) {
            self.happen(event);
        }
        let group = self.group_mut();
        group.now_us = group.now_us.max(until_us);
    }

    /// Whether that process of a member lives.
    fn is_now(&self, member: usize, boot: u64) -> bool {
        self.group().order.places[member].is_up && self.boot(member) == boot
    }

    fn happen_to_group(&mut self, happening: Happening<Self::Reply>) {
        match happening {
            Happening::Receive(member, boot, upto) => {
                if self.is_now(member, boot) && self.group().order.places[member].is_in {
                    self.receive(member, upto.min(self.group().order.log.len()));
                    self.answer_held();
                }
            }
            Happening::End(id, reply) => {
                let Some(call) = self.group_mut().calls.remove(&id) else { return };
                let (gateway, boot) = call.gateway;
                let is_there =
                    self.is_now(gateway, boot) && self.group().order.places[gateway].is_in;
                self.ended(call, reply.filter(|_| is_there));
            }
            Happening::Told(member, boot, is_blank) => {
                if self.is_now(member, boot) {
                    let is_in = self.group().order.places[member].is_in;
                    let leads = is_in && !is_blank && self.leader() == Some(member);
                    self.say(|| format!("n{member} is told that it leads: {leads}"));
                    self.told(member, leads);
                    self.drive(member);
                }
            }
            Happening::Back(member) => faults::come_back(self, member),
        }
    }

    /// A member has that many entries, and executes those that are new.
    fn receive(&mut self, member: usize, upto: usize) {
        while self.group().order.places[member].received < upto {
            let at = self.group().order.places[member].received;
            let Some(reply) = self.execute(member, at) else {
                self.crash(member);
                return;
            };
            let order = &mut self.group_mut().order;
            order.places[member].received = at + 1;
            match order.log[at].reply.clone() {
                None => order.log[at].reply = Some(reply),
                Some(first) if first == reply => {}
                Some(first) => {
                    let op = format!("{:?}", order.log[at].op);
                    let text = format!("{op} at {at}: {first:?}, and n{member}: {reply:?}");
                    self.violate("equality", text);
                }
            }
        }
        self.drive(member);
    }

    /// All members execute it.
    fn at_all(&mut self, op: Self::Op) -> Self::Reply {
        let group = self.group_mut();
        let entry = Entry { op, name: None, time: group.now_us * 10, caller: 0, reply: None };
        let place = group.order.place(entry);
        let members = group.order.places.len();
        (0..members).for_each(|member| self.receive(member, place + 1));
        self.group().order.log[place].reply.clone().expect("it was executed")
    }

    /// Makes a call at a member's gateway.
    fn call(&mut self, gateway: usize, op: Self::Op, name: Option<Name>, waiter: Self::Waiter) {
        let boot = self.boot(gateway);
        let group = self.group_mut();
        group.serial += 1;
        let id = group.serial;
        let place = group.order.places[gateway];
        let is_served = place.is_up && place.is_in && group.order.is_primary();
        let waiting = Waiting {
            op: op.clone(),
            name,
            gateway: (gateway, boot),
            place: None,
            is_ending: !is_served,
            waiter,
        };
        group.calls.insert(id, waiting);
        if !is_served {
            let after = self.span((500, 30_000));
            return self.after(after, Self::event(Happening::End(id, None)));
        }
        let time = group.now_us * 10;
        let caller = gateway as u64 + 1 + boot * 100;
        let at = group.order.place(Entry { op, name, time, caller, reply: None });
        if let Some(waiting) = group.calls.get_mut(&id) {
            waiting.place = Some(at);
        }
        let others: Vec<usize> = group.order.line.clone();
        let order_us = group.order_us;
        for other in others.into_iter().filter(|other| *other != gateway) {
            let after = self.span(order_us);
            let receive = Happening::Receive(other, self.boot(other), at + 1);
            self.after(after, Self::event(receive));
        }
        self.receive(gateway, at + 1);
        self.answer_held();
    }

    /// Answers what a majority has by now.
    fn answer_held(&mut self) {
        let group = self.group_mut();
        let held = group.order.held();
        let ready = |one: &Waiting<Self>| !one.is_ending && one.place.is_some_and(|at| at < held);
        let ready: Vec<u64> =
            group.calls.iter().filter(|(_, one)| ready(one)).map(|(id, _)| *id).collect();
        for id in ready {
            let group = self.group_mut();
            let Some(waiting) = group.calls.get_mut(&id) else { continue };
            waiting.is_ending = true;
            let at = waiting.place.expect("it is ready");
            let reply = group.order.log[at].reply.clone();
            let after = self.span((10, 300));
            self.after(after, Self::event(Happening::End(id, reply)));
        }
    }

    /// The member that leads, and knows it, or what is missing.
    fn leader_that(&self, knows: impl Fn(usize) -> bool) -> Result<usize, String> {
        let order = &self.group().order;
        if order.line.len() < order.places.len() {
            return Err(format!("members: {:?}", order.line));
        }
        self.leader().filter(|leader| knows(*leader)).ok_or_else(|| "nobody leads".to_owned())
    }

    /// All that was ordered comes to everybody.
    fn catch_up(&mut self) {
        let all = self.group().order.log.len();
        let members = self.group().order.places.len();
        (0..members).for_each(|member| self.receive(member, all));
    }

    /// Members that have executed the same are equal to the octet.
    fn alike(&self, state: impl Fn(usize) -> Vec<u8>) -> Option<(&'static str, String)> {
        let places = &self.group().order.places;
        let (first, same) = (places[0].received, state(0));
        let other = (1..places.len())
            .find(|member| places[*member].received != first || state(*member) != same)?;
        Some(("equality", format!("n0 and n{other} differ at {first}")))
    }
}
