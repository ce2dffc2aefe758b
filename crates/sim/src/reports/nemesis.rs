//! What goes wrong around the fault notifier, and with its members.
//!
//! Invariant: at peace nothing does, but for consumers that hang or have ended.

use super::fault::GROUPS;
use super::operation::Op;
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
        let leader = self.leader().unwrap_or(somebody);
        match fault {
            Fault::Crash => self.end(somebody),
            Fault::CrashLeader => self.end(leader),
            Fault::CrashAhead => {
                if let Some(ahead) = self.ahead() {
                    self.end(ahead);
                }
            }
            Fault::EndNode => {
                if self.crash(somebody) {
                    self.end_node(somebody);
                }
            }
            Fault::EndOther => self.end_other(),
            Fault::EndServer => {
                let node = self.group.rng.index(self.nodes.all.len());
                let group = self.group.rng.between(1, GROUPS);
                self.end_server(node, group);
            }
            Fault::Cut => self.part(somebody),
            Fault::CutLeader => self.part(leader),
            Fault::CutAhead => {
                let told = vec![self.something()];
                self.call(leader, Op::Report(told), None, Waiter::Nobody);
                let most = 2 * self.plan.call_us.1 + 1_000;
                let soon = self.group.rng.below(most);
                self.after(soon, Event::CutAhead(leader));
            }
            Fault::Blink => self.blink(),
            Fault::Away => {
                let index = self.group.rng.index(self.consumers.len());
                let until = self.group.now_us + self.group.rng.between(5_000, 4_000_000);
                self.say(|| format!("consumer {index} is away"));
                self.consumers[index].away_until_us = until;
            }
            Fault::Mute => {
                self.mute_until_us = self.group.now_us + self.group.rng.between(5_000, 100_000);
            }
            Fault::NoManager => {
                let until = self.group.now_us + self.group.rng.between(5_000, 2_000_000);
                self.manager.away_until_us = until;
            }
        }
    }

    fn end(&mut self, member: usize) {
        self.crash(member);
    }

    /// A member is cut off, if it has what no other one has.
    pub(crate) fn cut_ahead(&mut self, member: usize) {
        if self.ahead() == Some(member) && !self.group.is_peace {
            self.part(member);
        }
    }

    fn part(&mut self, member: usize) {
        if self.cut(member) {
            self.new_view(member, false);
        }
    }

    fn end_other(&mut self) {
        let first = self.members.len();
        let up = |node: &usize| self.nodes.all[*node].is_up;
        let up: Vec<usize> = (first..self.nodes.all.len()).filter(up).collect();
        if up.is_empty() {
            return;
        }
        let node = self.group.rng.pick(&up);
        self.end_node(node);
        let back = self.group.rng.between(5_000, 500_000);
        self.after(back, Event::NodeBack(node));
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&mut self) {
        self.say(|| "peace".to_owned());
        self.group.is_peace = true;
        self.mute_until_us = 0;
        self.manager.away_until_us = 0;
        self.consumers.iter_mut().for_each(|one| one.away_until_us = 0);
        for index in 0..self.consumers.len() {
            self.after(0, Event::Come(index));
        }
    }
}
