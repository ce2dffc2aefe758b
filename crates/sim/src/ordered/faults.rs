//! What goes wrong with members, and how it comes right again.
//!
//! Invariant: a majority of the members stays.

use super::{Entry, Happening, Ordered};

/// What members do, beside what their service does.
pub(crate) trait Faults: Ordered {
    /// A member that has what no other one has.
    fn ahead(&self) -> Option<usize> {
        let order = &self.group().order;
        let received = |member: &usize| order.places[*member].received;
        let most = order.line.iter().map(received).max()?;
        let mut ahead = order.line.iter().filter(|member| received(member) == most);
        let first = *ahead.next()?;
        ahead.next().is_none().then_some(first)
    }

    /// Somebody who is in.
    fn somebody(&mut self) -> usize {
        let among = self.group().order.line.len();
        let index = self.group_mut().rng.index(among);
        self.group().order.line[index]
    }

    /// Its process ends, unless it is needed.
    fn crash(&mut self, member: usize) -> bool {
        if !self.group().order.can_lose_one() {
            return false;
        }
        self.say(|| format!("n{member} ends"));
        self.group_mut().order.places[member].is_up = false;
        self.go_without(member);
        let back = self.span(self.away_us());
        self.after(back, Self::event(Happening::Back(member)));
        true
    }

    /// The others have it among them no more; it finds out later.
    fn cut(&mut self, member: usize) -> bool {
        if !self.group().order.can_lose_one() {
            return false;
        }
        self.say(|| format!("n{member} is cut off"));
        self.group_mut().cuts += 1;
        self.go_without(member);
        let (least, most) = self.away_us();
        let notices = self.group_mut().rng.between(0, most.min(40_000));
        self.after(notices, Self::event(Happening::Told(member, self.boot(member), true)));
        let back = notices + self.span((least / 2, most));
        self.after(back, Self::event(Happening::Back(member)));
        true
    }

    fn go_without(&mut self, member: usize) {
        let boot = self.boot(member);
        let group = self.group_mut();
        let lost: Vec<u64> = group
            .calls
            .iter()
            .filter(|(_, call)| call.gateway == (member, boot) && !call.is_ending)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            if let Some(call) = self.group_mut().calls.get_mut(&id) {
                call.is_ending = true;
            }
            let after = self.group_mut().rng.between(500, 20_000);
            self.after(after, Self::event(Happening::End(id, None)));
        }
        let group = self.group_mut();
        let (left, gone) = group.order.leave(member);
        group.lost.extend(gone.into_iter().map(|entry| entry.op));
        for other in self.group().order.line.clone() {
            // It may have ended at what another one of these had not executed.
            if self.group().order.places[other].is_in {
                self.receive(other, left);
                self.tell_soon(other);
            }
        }
        self.answer_held();
    }

    /// All processes end at once, and with them who has been called what; what somebody has
    /// executed stays done. The members are back at once, without anything, behind that entry.
    fn end_all(&mut self, entry: Self::Op, reply: Self::Reply) {
        self.say(|| "all end".to_owned());
        let group = self.group_mut();
        let gone = group.order.end_all();
        group.lost.extend(gone.into_iter().map(|entry| entry.op));
        let ids: Vec<u64> = group.calls.keys().copied().collect();
        for id in ids {
            if let Some(call) = self.group_mut().calls.get_mut(&id).filter(|it| !it.is_ending) {
                call.is_ending = true;
                let after = self.group_mut().rng.between(500, 20_000);
                self.after(after, Self::event(Happening::End(id, None)));
            }
        }
        let group = self.group_mut();
        let time = group.now_us * 10;
        group.order.place(Entry { op: entry, name: None, time, caller: 0, reply: Some(reply) });
        for member in 0..self.group().order.places.len() {
            let group = self.group_mut();
            let boot = group.boots;
            group.boots += 1;
            group.order.join(member, group.order.log.len());
            self.begin_anew(member, boot);
            self.tell_soon(member);
        }
    }

    /// Nobody is told who leads, for a moment.
    fn blink(&mut self) {
        self.say(|| "nobody is told who leads".to_owned());
        for member in self.group().order.line.clone() {
            self.after(0, Self::event(Happening::Told(member, self.boot(member), true)));
            self.tell_soon(member);
        }
    }

    /// It hears in a moment who leads, and perhaps before that that nobody does.
    fn tell_soon(&mut self, member: usize) {
        let boot = self.boot(member);
        let rng = &mut self.group_mut().rng;
        let first = rng.between(100, 3_000);
        if rng.per_mille(500) {
            self.after(first, Self::event(Happening::Told(member, boot, true)));
        }
        let then = first + self.group_mut().rng.between(1, 15_000);
        self.after(then, Self::event(Happening::Told(member, boot, false)));
    }
}

impl<W: Ordered> Faults for W {}

/// It is given what another one has, as a new process or as the one that was cut off.
pub(super) fn come_back<W: Ordered>(world: &mut W, member: usize) {
    if world.group().order.places[member].is_in {
        return;
    }
    let giver = world.somebody();
    let order = &world.group().order;
    let (received, is_up) = (order.places[giver].received, order.places[member].is_up);
    let group = world.group_mut();
    let new = (!is_up).then_some(group.boots);
    group.boots += u64::from(!is_up);
    world.say(|| format!("n{member} is back, with the state of n{giver}"));
    world.give(giver, member, new);
    world.group_mut().order.join(member, received);
    // What others have more of comes as everything does.
    let all = world.group().order.log.len();
    world.after(200, W::event(Happening::Receive(member, world.boot(member), all)));
    for other in world.group().order.line.clone() {
        world.tell_soon(other);
    }
}
