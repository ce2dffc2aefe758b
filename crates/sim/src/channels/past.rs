//! Calls past the order, in a channel that keeps no events: the member that leads executes them,
//! and nobody else.
//!
//! What it is not: a place in the order. Invariant: who does not know that it leads executes none.

use super::operation::{Op, Reply};
use super::world::{AGAIN_US, Event, Waiter, World};
use crate::ordered::Ordered;

/// A push that a member has taken while it led.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Its process, and how often it had begun to lead.
    pub(crate) life: (u64, u64),
    pub(crate) number: u32,
    pub(crate) event_type: i32,
    /// Entries of the order that it had executed.
    pub(crate) received: usize,
}

impl World {
    /// A push or a pull, wherever it goes in this channel.
    pub(crate) fn call_events(
        &mut self,
        gateway: usize,
        op: Op,
        name: Option<crate::ordered::Name>,
        waiter: Waiter,
    ) {
        if self.plan.is_reliable {
            return self.call(gateway, op, name, waiter);
        }
        let after = self.span(self.plan.call_us);
        self.after(after, Event::Past(Box::new((op, waiter))));
    }

    /// It comes to the member that leads.
    pub(crate) fn past(&mut self, op: Op, waiter: Waiter) {
        let leads = |member: &usize| {
            let place = self.group.order.places[*member];
            place.is_up && place.is_in && self.members[*member].service.leads()
        };
        let Some(leader) = self.group.order.leader().filter(leads) else {
            return self.after(AGAIN_US, Event::Again(Box::new((op, None, waiter))));
        };
        let now = self.group.now_us * 10;
        let member = &mut self.members[leader];
        member.service.tick(now);
        let reply = op.execute(&mut member.service);
        let (life, boot) = ((member.boot, member.term), member.boot);
        if let (Op::Push(_, event_type, number), Reply::Done) = (&op, &reply) {
            let received = self.group.order.places[leader].received;
            let (event_type, number) = (*event_type, *number);
            self.taken_past.push(Taken { life, number, event_type, received });
        }
        if let (Waiter::Pull(consumer), Reply::Given(Some(number))) = (&waiter, &reply) {
            let (consumer, number) = (*consumer, *number);
            if self.given_again(life, consumer, &[number]).is_some() {
                let text = format!("n{leader} gives {number} to consumer {consumer} once more");
                self.violate("events once", text);
            }
            self.known.insert((life, consumer, number));
        }
        self.drive(leader);
        // It may not know yet who is connected.
        if matches!(reply, Reply::Raised(_)) {
            return self.after(AGAIN_US, Event::Again(Box::new((op, None, waiter))));
        }
        let after = self.span(self.plan.call_us);
        self.after(after, Event::Replied(leader, boot, Box::new((op, waiter, reply))));
    }

    /// Its reply, if who gave it is still there.
    pub(crate) fn replied(
        &mut self,
        leader: usize,
        boot: u64,
        (op, waiter, reply): (Op, Waiter, Reply),
    ) {
        if self.is_now(leader, boot) && self.group.order.places[leader].is_in {
            return self.answered(waiter, reply);
        }
        self.after(AGAIN_US, Event::Again(Box::new((op, None, waiter))));
    }

    /// A consumer was given these of one delivery, by a member in that life: whether one of them is
    /// there once more, although that member knew that the consumer has it.
    pub(crate) fn given_again(
        &self,
        life: (u64, u64),
        consumer: usize,
        numbers: &[u32],
    ) -> Option<u32> {
        let is_once = |number: u32| {
            let its = self.taken_past.iter().filter(|one| one.number == number);
            its.count() <= 1
        };
        let known = |number: &&u32| self.known.contains(&(life, consumer, **number));
        numbers.iter().filter(known).copied().find(|number| is_once(*number))
    }
}
