//! What goes wrong, and how it comes right again.
//!
//! Invariant: a majority of the members stays: what a group without one does is not the event
//! service's business.

use super::driver::Member;
use super::plan::Fault;
use super::world::{Event, World};

impl World {
    /// Something goes wrong, unless there is peace.
    pub(crate) fn fault(&mut self) {
        if self.is_peace || self.plan.faults.is_empty() {
            return;
        }
        let pause = self.rng.between(self.plan.fault_every_us / 2, self.plan.fault_every_us * 2);
        self.after(pause, Event::Fault);
        let fault = self.rng.pick(&self.plan.faults.clone());
        let among = self.order.line.len();
        let somebody = self.order.line[self.rng.index(among)];
        match fault {
            Fault::Crash => self.crash(somebody),
            Fault::CrashLeader => self.crash(self.order.line[0]),
            Fault::CrashAhead => {
                if let Some(ahead) = self.ahead() {
                    self.crash(ahead);
                }
            }
            Fault::Cut => self.cut(somebody),
            Fault::CutLeader => self.cut(self.order.line[0]),
            Fault::Blink => {
                self.say(|| "nobody is told who leads".to_owned());
                for member in self.order.line.clone() {
                    let boot = self.members[member].boot;
                    self.after(0, Event::Told(member, boot, true));
                    self.tell_soon(member);
                }
            }
            Fault::Away => {
                let index = self.rng.index(self.consumers.len());
                let until = self.now_us + self.rng.between(5_000, 300_000);
                self.say(|| format!("consumer {index} is away"));
                self.consumers[index].away_until_us = until;
            }
            Fault::Mute => self.mute_until_us = self.now_us + self.rng.between(5_000, 100_000),
        }
    }

    /// A member that has what no other one has.
    fn ahead(&self) -> Option<usize> {
        let received = |member: &usize| self.order.places[*member].received;
        let most = self.order.line.iter().map(received).max()?;
        let mut ahead = self.order.line.iter().filter(|member| received(member) == most);
        let first = *ahead.next()?;
        ahead.next().is_none().then_some(first)
    }

    /// Its process ends.
    fn crash(&mut self, member: usize) {
        if !self.order.can_lose_one() {
            return;
        }
        self.say(|| format!("n{member} ends"));
        // Who led until a moment ago may have something under way.
        self.leader_ends += usize::from(self.members[member].term > 0);
        self.order.places[member].is_up = false;
        self.go_without(member);
        let back = self.rng.between(2_000, 150_000);
        self.after(back, Event::Back(member));
    }

    /// The others have it among them no more; it finds out later.
    fn cut(&mut self, member: usize) {
        if !self.order.can_lose_one() {
            return;
        }
        self.say(|| format!("n{member} is cut off"));
        self.cuts += 1;
        self.go_without(member);
        let (notices, boot) = (self.rng.between(0, 40_000), self.members[member].boot);
        self.after(notices, Event::Told(member, boot, true));
        let back = notices + self.rng.between(1_000, 150_000);
        self.after(back, Event::Back(member));
    }

    fn go_without(&mut self, member: usize) {
        let boot = self.members[member].boot;
        let lost: Vec<u64> = self
            .calls
            .iter()
            .filter(|(_, call)| call.gateway == (member, boot) && !call.is_ending)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            if let Some(call) = self.calls.get_mut(&id) {
                call.is_ending = true;
            }
            let after = self.rng.between(500, 20_000);
            self.after(after, Event::End(id, None));
        }
        let left = self.order.leave(member);
        for other in self.order.line.clone() {
            self.receive(other, left);
            self.tell_soon(other);
        }
        self.answer_held();
    }

    /// It hears in a moment who leads, and perhaps before that that nobody does.
    pub(crate) fn tell_soon(&mut self, member: usize) {
        let boot = self.members[member].boot;
        let first = self.rng.between(100, 3_000);
        if self.rng.per_mille(500) {
            self.after(first, Event::Told(member, boot, true));
        }
        let then = first + self.rng.between(1, 15_000);
        self.after(then, Event::Told(member, boot, false));
    }

    /// It is given what another one has, as a new process or as the one that was cut off.
    pub(crate) fn come_back(&mut self, member: usize) {
        if self.order.places[member].is_in {
            return;
        }
        let giver = self.order.line[self.rng.index(self.order.line.len())];
        let (state, received) =
            (self.members[giver].service.state(), self.order.places[giver].received);
        if !self.order.places[member].is_up {
            self.members[member] = Member::new(self.boots);
            self.boots += 1;
        }
        self.say(|| format!("n{member} is back, with the state of n{giver}"));
        self.members[member].service.take_over(&state).expect("a state");
        self.order.join(member, received);
        // What others have more of comes as everything does.
        let boot = self.members[member].boot;
        self.after(200, Event::Receive(member, boot, self.order.log.len()));
        for other in self.order.line.clone() {
            self.tell_soon(other);
        }
    }

    /// From now on nothing goes wrong.
    pub(crate) fn make_peace(&mut self) {
        self.say(|| "peace".to_owned());
        self.is_peace = true;
        self.mute_until_us = 0;
        self.consumers.iter_mut().for_each(|one| one.away_until_us = 0);
        for index in 0..self.consumers.len() {
            self.after(0, Event::Come(index));
        }
    }
}
