//! One replication manager in virtual time: who calls it, and what its members do beside.
//!
//! What it is not: the judge. Invariant: whatever happens next is drawn from the seed.

use super::check;
use super::domain::{Around, OWN, Way};
use super::nodes::Nodes;
use super::operation::{Heard, Op, Question, Reply, Told, home};
use super::plan::GroupsPlan;
use super::values::{Key, Value};
use crate::ordered::{Group, Happening, Judged, Name, Ordered, Waiting};
use crate::rng::Rng;
use crate::transcript::Transcript;
use quorba_idl::ft;
use quorba_idl::quorba::NewsItem;
use quorba_manager::table::{Defined, Table};
use quorba_manager::{Limits, Lookout, Manager, Tidings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Before a call that failed is made again.
const AGAIN_US: u64 = 20_000;
/// How often is seen whether the manager is to look.
const LOOK_US: u64 = 50_000;
/// A type that nodes start; for the other one factories may be registered.
pub(crate) const TYPES: [&str; 3] =
    ["IDL:Bank/Ledger:1.0", "IDL:Bank/Vault:1.0", "IDL:Bank/Nothing:1.0"];

/// A member of the manager, and what its process knows.
pub(crate) struct Member {
    pub(crate) manager: Manager<Way>,
    lookout: Lookout,
    /// No other process has it.
    pub(crate) boot: u64,
    leads: bool,
    /// How many news of its node were told.
    pub(crate) told: usize,
    is_telling: bool,
    is_due: bool,
}

impl Member {
    fn new(boot: u64, way: Way) -> Self {
        // So that somebody is given up within a run.
        let limits = Limits { replace_ms: 20, ..Limits::default() };
        Self {
            manager: Manager::new(way, OWN, &home(), limits),
            lookout: Lookout::default(),
            boot,
            leads: false,
            told: 0,
            is_telling: false,
            is_due: false,
        }
    }
}

/// Who waits for the answer to a call.
pub(crate) enum Waiter {
    /// A member's process tells the news of its node.
    News(usize, u64),
    /// It has the manager look.
    Looked(usize, u64),
    Client(usize),
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
    Client(usize),
    NodeBack(usize),
    ServerBack(String, String),
    /// What went wrong for a while does so no more.
    Calm(super::plan::Fault),
    Fault,
}

/// See the module's text.
pub(crate) struct World {
    pub(crate) group: Group<Self>,
    pub(crate) plan: GroupsPlan,
    pub(crate) around: Rc<RefCell<Around>>,
    pub(crate) members: Vec<Member>,
    pub(crate) nodes: Nodes,
    /// Of each client: how many calls it has made, and whether one is under way.
    clients: Vec<(u32, bool)>,
    /// Groups that clients know, and their types.
    pub(crate) known: BTreeMap<u64, String>,
    /// Objects that an application had added.
    added: Vec<(u16, String)>,
    /// At which of its calls the next one ends who executes something.
    pub(crate) dies_at: Option<usize>,
    pub(crate) deaths: u64,
    pub(crate) restarts: u64,
    serial: u16,
    pub(crate) is_over: bool,
}

impl World {
    pub(crate) fn new(seed: u64, plan: GroupsPlan, transcript: Transcript) -> Self {
        let rng = Rng::new(seed).fork(0x474d);
        let nodes = Nodes::new(plan.members, plan.others);
        let mut table = Table::default();
        table.nodes.extend(nodes.all.iter().map(|node| (node.name.clone(), true)));
        table.types.extend(TYPES[..2].iter().map(|one| (*one).to_owned()));
        table.groups.insert(OWN.to_owned(), Defined::default());
        let others = nodes.all[plan.members..].iter().map(|node| node.name.clone()).collect();
        let around = Around::new(table, others, Rng::new(seed).fork(0x4152));
        let around = Rc::new(RefCell::new(around));
        let new = |boot| Member::new(boot as u64, Way(Rc::clone(&around)));
        let mut world = Self {
            members: (0..plan.members).map(new).collect(),
            nodes,
            clients: vec![(0, false); plan.clients.len()],
            known: BTreeMap::new(),
            added: Vec::new(),
            dies_at: None,
            deaths: 0,
            restarts: 0,
            serial: 0,
            is_over: false,
            group: Group::new(plan.members, plan.order_us, rng, transcript),
            around,
            plan,
        };
        (0..world.clients.len()).for_each(|client| world.after(1_000, Event::Client(client)));
        (0..world.members.len()).for_each(|member| {
            let boot = world.members[member].boot;
            world.after(50, Self::event(Happening::Told(member, boot, false)));
        });
        world.after(world.plan.fault_every_us, Event::Fault);
        world.around.borrow_mut().chances = world.plan.usual;
        world
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.group.now_us)
    }

    /// A member's process tells the next news of its node.
    fn tell(&mut self, member: usize) {
        if self.members[member].is_telling {
            return;
        }
        let one = &mut self.members[member];
        while let Some(item) = self.nodes.all[member].news.get(one.told) {
            let op = match Tidings::of(item) {
                Some(Tidings::Look) => Op::Look,
                Some(Tidings::Fault) => Op::Report(Told::of(item)),
                None => {
                    one.told += 1;
                    continue;
                }
            };
            one.is_telling = true;
            let waiter = Waiter::News(member, one.boot);
            return self.call(member, op, None, waiter);
        }
    }

    fn client_calls(&mut self, client: usize) {
        let (made, is_busy) = self.clients[client];
        if is_busy || made >= self.plan.calls {
            return;
        }
        self.clients[client] = (made + 1, true);
        let op = self.something();
        let name = self.plan.clients[client].then_some((client as u64 + 1, made.into()));
        let gateway = self.group.rng.index(self.members.len());
        self.call(gateway, op, name, Waiter::Client(client));
    }

    pub(crate) fn some_group(&mut self) -> u64 {
        let known: Vec<u64> = self.known.keys().copied().collect();
        // Nobody has the one that is no number of a group.
        if known.is_empty() || self.group.rng.per_mille(40) {
            return 77_777;
        }
        self.group.rng.pick(&known)
    }

    pub(crate) fn some_node(&mut self) -> String {
        let index = self.group.rng.index(self.nodes.all.len());
        if self.group.rng.per_mille(30) {
            "far".to_owned()
        } else {
            self.nodes.all[index].name.clone()
        }
    }

    fn some_type(&mut self) -> String {
        self.group.rng.pick(&[0, 0, 0, 0, 1, 1, 1, 2].map(|index: usize| TYPES[index])).to_owned()
    }

    fn some_factories(&mut self) -> Vec<(u16, String)> {
        let mut nodes: Vec<String> = self.nodes.all.iter().map(|node| node.name.clone()).collect();
        self.group.rng.shuffle(&mut nodes);
        nodes.truncate(self.group.rng.between(1, 6) as usize);
        let most = u64::from(self.plan.factories);
        nodes.into_iter().map(|node| (self.group.rng.between(1, most) as u16, node)).collect()
    }

    fn value(&mut self, key: Key) -> Value {
        let rng = &mut self.group.rng;
        if rng.per_mille(30) {
            return Value::Number(super::values::WRONG);
        }
        match key {
            Key::Style => Value::Number(rng.pick(&[ft::ACTIVE, ft::WARM_PASSIVE])),
            Key::Membership => {
                Value::Number(rng.pick(&[ft::MEMB_INF_CTRL, ft::MEMB_INF_CTRL, ft::MEMB_APP_CTRL]))
            }
            Key::Monitoring => Value::Number(rng.pick(&[
                ft::PULL,
                ft::PUSH,
                ft::PUSH,
                ft::PUSH,
                ft::NOT_MONITORED,
            ])),
            Key::Granularity => Value::Number(rng.pick(&[ft::MEMB, ft::MEMB, ft::MEMB, ft::LOC])),
            Key::Factories => Value::Factories(self.some_factories()),
            Key::Initial | Key::Minimum => Value::Number(rng.between(1, 4) as u16),
            Key::Times => Value::Times(rng.between(1, 9), rng.between(1, 9)),
            Key::Colour => Value::Number(1),
        }
    }

    /// Properties, each with that chance.
    fn wanted(&mut self, chance: u64) -> Vec<(Key, Value)> {
        let mut said = Vec::new();
        for key in Key::ALL {
            let chance = if key == Key::Colour { chance / 20 } else { chance };
            if self.group.rng.per_mille(chance) {
                let value = self.value(key);
                said.push((key, value));
            }
        }
        said
    }

    fn some_keys(&mut self) -> Vec<Key> {
        Key::ALL.into_iter().filter(|_| self.group.rng.per_mille(150)).collect()
    }

    /// Something that a client wants.
    fn something(&mut self) -> Op {
        let (group, at) = (self.some_group(), self.some_node());
        self.serial += 1;
        let port = 10_000 + self.serial;
        match self.group.rng.below(100) {
            0..30 => {
                let wanted = self.wanted(300);
                let at = self.group.rng.per_mille(80).then_some(at);
                Op::Create { type_id: self.some_type(), wanted, at }
            }
            30..38 => Op::CreateMember { group, type_id: self.some_type(), at },
            38..46 => Op::AddMember { group, at, port },
            46..56 => Op::RemoveMember { group, at },
            56..59 => Op::SetPrimary { group, at },
            59..65 => Op::Delete(group),
            65..68 => Op::SetDefaults(self.wanted(100)),
            68..70 => Op::RemoveDefaults(self.some_keys()),
            70..73 => Op::SetOfType(self.some_type(), self.wanted(100)),
            73..75 => Op::RemoveOfType(self.some_type(), self.some_keys()),
            75..79 => Op::SetDynamically(group, self.wanted(120)),
            79..84 => {
                let all =
                    [Question::Locations, Question::Properties, Question::Id, Question::Reference];
                Op::Ask(group, self.group.rng.pick(&all))
            }
            84..86 => Op::Member(group, at),
            86..88 => Op::GroupsAt(at),
            88..90 => Op::OfType(self.some_type()),
            90..92 => {
                let role = self.group.rng.pick(&["banks", "vaults"]).to_owned();
                let port = self.group.rng.between(1, self.plan.factories.into()) as u16;
                Op::Register { role, type_id: TYPES[1].to_owned(), port, at }
            }
            92..94 => {
                Op::Unregister { role: self.group.rng.pick(&["banks", "vaults"]).to_owned(), at }
            }
            94 => Op::Notifier(port),
            95 => self.slander(),
            96 => Op::Look,
            _ if self.added.is_empty() => Op::Alive(port, at),
            _ => {
                let index = self.group.rng.index(self.added.len());
                let (port, at) = self.added[index].clone();
                Op::Alive(port, at)
            }
        }
    }

    /// A report by somebody who is no node.
    pub(crate) fn slander(&mut self) -> Op {
        let (group, mut node) = (self.some_group(), self.some_node());
        let name = format!("object-{group}");
        let members = self.around.borrow().table.groups.get(&name).map(Defined::members);
        if let Some(members) = members.filter(|members| !members.is_empty()) {
            let index = self.group.rng.index(members.len());
            node.clone_from(&members[index]);
        }
        let type_id = self.known.get(&group).cloned().unwrap_or_else(|| self.some_type());
        let rng = &mut self.group.rng;
        let group = rng.per_mille(700).then_some((type_id, group));
        Op::Report(Told { node, group, incident: None, is_unanswered: rng.per_mille(500) })
    }

    fn answered(&mut self, op: Op, waiter: &Waiter, reply: Option<Reply>) {
        match *waiter {
            Waiter::News(member, boot) => {
                if self.is_now(member, boot) {
                    let one = &mut self.members[member];
                    one.is_telling = false;
                    one.told += 1;
                    self.drive(member);
                }
            }
            Waiter::Looked(member, boot) => {
                if self.is_now(member, boot) {
                    let now = self.now();
                    self.members[member].lookout.looked(now);
                }
            }
            Waiter::Client(client) => {
                self.clients[client].1 = false;
                let heard = reply.map(|reply| reply.heard);
                match (op, heard) {
                    (Op::Create { type_id, .. }, Some(Heard::Group { id, .. })) => {
                        self.known.insert(id, type_id);
                    }
                    (Op::AddMember { at, port, .. }, Some(Heard::Group { .. })) => {
                        self.added.push((port, at));
                    }
                    (Op::Delete(id), Some(Heard::Done)) if self.group.rng.per_mille(700) => {
                        self.known.remove(&id);
                    }
                    _ => {}
                }
                let every = self.plan.call_every_us;
                let pause = self.group.rng.between(every / 2, every * 2);
                self.after(pause, Event::Client(client));
            }
            Waiter::Nobody => {}
        }
    }

    /// What happened in the domain meanwhile.
    fn follow_up(&mut self) {
        let mut around = self.around.borrow_mut();
        let (late, stirred) =
            (std::mem::take(&mut around.late), std::mem::take(&mut around.stirred));
        drop(around);
        for (group, node) in late {
            let after = self.span(self.plan.while_us);
            self.after(after, Event::ServerBack(group, node));
        }
        for name in stirred {
            let node = self.nodes.all.iter().position(|node| node.name == name);
            self.end_node(node.expect("it is one of them"));
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
        let dies_at = self.dies_at.filter(|_| self.group.order.can_lose_one() && !self.is_over);
        self.around.borrow_mut().begin(at, dies_at);
        let op = self.group.order.log[at].op.clone();
        let reply = op.execute(&mut self.members[member].manager);
        let done = self.around.borrow_mut().end();
        if done.has_called {
            let order = &mut self.group.order;
            order.fixed = order.fixed.max(at + 1);
        }
        let wrong = self.around.borrow_mut().wrong.take();
        if let Some(wrong) = wrong {
            self.violate("calls of the domain", format!("n{member} {wrong}"));
        }
        if done.has_died {
            self.say(|| format!("n{member} ends while it executes {op:?} at {at}"));
            self.dies_at = None;
            self.deaths += 1;
            return None;
        }
        if self.group.order.log[at].reply.is_none() {
            let did = self.around.borrow().did(at);
            self.say(|| format!("{at} {op:?}: {:?}, {did:?}", reply.heard));
        }
        Some(reply)
    }

    fn give(&mut self, giver: usize, member: usize, new: Option<u64>) {
        let state = self.members[giver].manager.state();
        if let Some(boot) = new {
            self.members[member] = Member::new(boot, Way(Rc::clone(&self.around)));
        }
        self.members[member].manager.take_over(&state).expect("a state");
        let is_up = self.around.borrow().table.nodes[&self.nodes.all[member].name];
        if !is_up {
            self.begin_node(member);
        }
    }

    fn begin_anew(&mut self, member: usize, boot: u64) {
        self.members[member] = Member::new(boot, Way(Rc::clone(&self.around)));
        let is_up = self.around.borrow().table.nodes[&self.nodes.all[member].name];
        if !is_up {
            self.begin_node(member);
        }
    }

    fn told(&mut self, member: usize, leads: bool) {
        self.members[member].leads = leads;
    }

    fn ended(&mut self, call: Waiting<Self>, reply: Option<Reply>) {
        // What is refused for now is said again by who insists.
        let is_refused = reply.as_ref().is_some_and(|it| it.heard.is_transient());
        let again = match call.waiter {
            Waiter::News(..) => reply.is_none() || is_refused,
            Waiter::Looked(..) | Waiter::Nobody => false,
            Waiter::Client(client) => reply.is_none() && self.plan.clients[client],
        };
        if !again {
            return self.answered(call.op, &call.waiter, reply);
        }
        let again = Event::Again(Box::new((call.op, call.name, call.waiter)));
        self.after(AGAIN_US, again);
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
            Event::Client(client) => self.client_calls(client),
            Event::NodeBack(node) => self.begin_node(node),
            Event::ServerBack(group, node) => {
                self.around.borrow_mut().table.out.remove(&(group, node));
            }
            Event::Calm(fault) => self.calm(fault),
            Event::Fault => self.fault(),
        }
        self.follow_up();
    }

    fn drive(&mut self, member: usize) {
        if self.is_over || !self.group.order.places[member].is_up {
            return;
        }
        self.tell(member);
        let (now, boot) = (self.now(), self.members[member].boot);
        let one = &mut self.members[member];
        if one.leads {
            let late = one.lookout.overdue(&one.manager, now);
            if one.lookout.look(&one.manager, now) {
                self.call(member, Op::Look, None, Waiter::Looked(member, boot));
            }
            if let Some(late) = late {
                let op = Op::Overdue(late.group, late.location);
                self.call(member, op, None, Waiter::Nobody);
            }
        } else {
            one.lookout.follow_another();
        }
        let one = &mut self.members[member];
        if one.leads && !one.is_due {
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
        let around = self.around.borrow();
        vec![
            ("calls", self.group.order.log.len() as u64),
            ("calls lost", self.group.lost.len() as u64),
            ("newcomers late", {
                let log = self.group.order.log.iter();
                log.filter(|entry| matches!(entry.op, Op::Overdue(..))).count() as u64
            }),
            ("groups in the end", around.table.groups.len() as u64 - 1),
            ("objects made", around.table.next_made),
            ("objects left behind", around.left.len() as u64),
            ("failovers in a call", around.failovers),
            ("ends in a call", self.deaths),
            ("ends of all", self.restarts),
        ]
    }

    fn unsettled(&self) -> Option<String> {
        let leader = match self.leader_that(|leader| self.members[leader].leads) {
            Ok(leader) => leader,
            Err(missing) => return Some(missing),
        };
        let is_down = self.around.borrow().table.nodes.values().any(|is_up| !is_up);
        if self.nodes.on_the_way > 0 || is_down {
            return Some("nodes come".to_owned());
        }
        let lags = |at: &usize| self.members[*at].told < self.nodes.all[*at].news.len();
        if let Some(member) = (0..self.members.len()).find(lags) {
            return Some(format!("n{member} has more news"));
        }
        let is_busy = |(made, is_busy): &(u32, bool)| *is_busy || *made < self.plan.calls;
        if let Some(client) = self.clients.iter().position(is_busy) {
            return Some(format!("client {client} has more"));
        }
        let manager = &self.members[leader].manager;
        if !manager.has_memory() || manager.has_debts() {
            return Some("the manager has something left to do".to_owned());
        }
        check::short(self, leader)
    }
}
