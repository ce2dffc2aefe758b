//! What goes wrong around the event service, and with its members.
//!
//! Invariant: at peace nothing does.

use super::plan::Fault;
use super::world::{Event, World};
use crate::ordered::{Faults, Ordered};

impl World {
    /// Something goes wrong, unless there is peace.
    pub(crate) fn fault(&mut self) {
        if self.group.is_peace || self.plan.faults.is_empty() {
            return;
        }
        let pause =
            self.group.rng.between(self.plan.fault_every_us / 2, self.plan.fault_every_us * 2);
        self.after(pause, Event::Fault);
        let fault = self.group.rng.pick(&self.plan.faults.clone());
        let somebody = self.somebody();
        match fault {
            Fault::Crash => self.end(somebody),
            Fault::CrashLeader => self.end(self.group.order.line[0]),
            Fault::CrashAhead => {
                if let Some(ahead) = self.ahead() {
                    self.end(ahead);
                }
            }
            Fault::Cut | Fault::CutLeader => {
                let is_any = fault == Fault::Cut;
                self.cut(if is_any { somebody } else { self.group.order.line[0] });
            }
            Fault::Blink => self.blink(),
            Fault::Away => {
                let index = self.group.rng.index(self.consumers.len());
                let until = self.group.now_us + self.group.rng.between(5_000, 300_000);
                self.say(|| format!("consumer {index} is away"));
                self.consumers[index].away_until_us = until;
            }
            Fault::Mute => {
                self.mute_until_us = self.group.now_us + self.group.rng.between(5_000, 100_000)
            }
        }
    }

    /// Its process ends. Who led until a moment ago may have something under way.
    fn end(&mut self, member: usize) {
        self.leader_ends += usize::from(self.crash(member) && self.members[member].term > 0);
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&mut self) {
        self.say(|| "peace".to_owned());
        self.group.is_peace = true;
        self.mute_until_us = 0;
        self.consumers.iter_mut().for_each(|one| one.away_until_us = 0);
        for index in 0..self.consumers.len() {
            self.after(0, Event::Come(index));
        }
    }
}
