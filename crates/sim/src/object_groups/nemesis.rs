//! What goes wrong around the replication manager, and with its members.
//!
//! Invariant: at peace nothing does.

use super::domain::Chances;
use super::operation::{Heard, Op, Reply};
use super::plan::Fault;
use super::world::{Event, Waiter, World};
use crate::ordered::{Faults, Ordered};

impl World {
    /// Something goes wrong, unless there is peace.
    pub(crate) fn fault(&mut self) {
        if self.group.is_peace || self.plan.faults.is_empty() {
            return;
        }
        let every = self.plan.fault_every_us;
        let pause = self.group.rng.between(every / 2, every * 2);
        self.after(pause, Event::Fault);
        let fault = self.group.rng.pick(&self.plan.faults.clone());
        let somebody = self.somebody();
        match fault {
            Fault::Crash => drop(self.crash(somebody)),
            Fault::CrashMidway => self.dies_at = Some(self.group.rng.below(6) as usize),
            Fault::CrashAhead => {
                if let Some(ahead) = self.ahead() {
                    self.crash(ahead);
                }
            }
            Fault::EndNode => {
                if self.crash(somebody) {
                    self.end_node(somebody);
                }
            }
            Fault::EndOther => self.end_other(),
            Fault::EndServer => self.end_some_server(),
            Fault::Cut => {
                if self.cut(somebody) {
                    self.part_node(somebody);
                }
            }
            Fault::EndAll => {
                let is_seldom = self.group.rng.per_mille(300);
                if is_seldom {
                    self.end_all_members();
                }
            }
            Fault::Slander => {
                let op = self.slander();
                let gateway = self.group.rng.index(self.members.len());
                self.call(gateway, op, None, Waiter::Nobody);
            }
            Fault::Fail | Fault::Busy | Fault::Never | Fault::Broken | Fault::Poor => {
                self.fail_for_a_while(fault);
            }
        }
    }

    fn fail_for_a_while(&mut self, fault: Fault) {
        self.say(|| format!("{fault:?} begins"));
        let node = self.some_node();
        let factory = self.group.rng.between(1, self.plan.factories.into()) as u16;
        let mut around = self.around.borrow_mut();
        match fault {
            Fault::Fail => drop(around.table.failing.insert(node)),
            Fault::Busy => around.table.busy = true,
            Fault::Never => around.table.never = true,
            Fault::Broken => drop(around.table.broken.insert(factory)),
            _ => around.chances = self.plan.poor,
        }
        drop(around);
        let until = self.span(self.plan.while_us);
        self.after(until, Event::Calm(fault));
    }

    /// What went wrong for a while does so no more.
    pub(crate) fn calm(&mut self, fault: Fault) {
        let mut around = self.around.borrow_mut();
        match fault {
            Fault::Fail => around.table.failing.clear(),
            Fault::Busy => around.table.busy = false,
            Fault::Never => around.table.never = false,
            Fault::Broken => around.table.broken.clear(),
            _ if self.group.is_peace => around.chances = Chances::default(),
            _ => around.chances = self.plan.usual,
        }
    }

    fn end_other(&mut self) {
        let first = self.members.len();
        let up = |node: &usize| self.nodes.all[*node].is_up;
        let up: Vec<usize> = (first..self.nodes.all.len()).filter(up).collect();
        if !up.is_empty() {
            let node = self.group.rng.pick(&up);
            self.end_node(node);
        }
    }

    fn end_some_server(&mut self) {
        let around = self.around.borrow();
        let mut all: Vec<(u64, usize, String)> = Vec::new();
        for (name, group) in &around.table.groups {
            let Some(id) = name.strip_prefix("object-").and_then(|id| id.parse().ok()) else {
                continue;
            };
            let type_id = group.keys.get("type_id").map_or("", |text| text.trim_matches('"'));
            for at in group.members() {
                if let Some(node) = self.nodes.all.iter().position(|node| node.name == at) {
                    all.push((id, node, type_id.to_owned()));
                }
            }
        }
        drop(around);
        if !all.is_empty() {
            let index = self.group.rng.index(all.len());
            let (group, node, type_id) = all.swap_remove(index);
            self.end_server(node, group, &type_id);
        }
    }

    /// All processes of members end.
    pub(crate) fn end_all_members(&mut self) {
        self.restarts += 1;
        let reply = Reply { heard: Heard::Done, state: 0 };
        self.end_all(Op::Restart, reply);
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&mut self) {
        self.say(|| "peace".to_owned());
        self.group.is_peace = true;
        self.dies_at = None;
        for fault in [Fault::Fail, Fault::Busy, Fault::Never, Fault::Broken, Fault::Poor] {
            self.calm(fault);
        }
    }
}
