//! A node that comes for the first time when the others have worked for a while. Then a minority of
//! those ends, and comes back, and the rest are cut off, so that most of who is there has no memory
//! of what the others may have acknowledged.
//!
//! Invariant: no more nodes lose their memory than promises cover.

use crate::event::Event;
use crate::world::{World, ms, us};

impl World {
    pub(crate) fn delay_latecomer(&mut self, latecomer: usize) {
        for node in (0..self.plan.nodes).filter(|node| *node != latecomer) {
            let wait = us(self.rng.below(5_000));
            self.plan_boot(node, wait);
        }
        let wait = ms(self.rng.between(300, 1_200));
        self.plan_boot(latecomer, wait);
        let moment = wait + us(self.rng.below(80_000));
        self.queue.push(self.now + moment, Event::Bereave { latecomer });
    }

    pub(crate) fn bereave(&mut self, latecomer: usize) {
        if self.peace {
            return;
        }
        let mut others: Vec<usize> =
            (0..self.plan.nodes).filter(|node| *node != latecomer).collect();
        self.rng.shuffle(&mut others);
        let mut with_it = 1 << latecomer;
        for node in others.into_iter().take((self.plan.nodes - 1) / 2) {
            if self.may_crash(node) {
                self.crash(node, false);
                let wait = us(self.rng.between(10, 300_000));
                self.plan_boot(node, wait);
                with_it |= 1 << node;
            }
        }
        self.say(|| format!("FAULT n{latecomer} is left with those that ended: {with_it:b}"));
        self.network.part(with_it);
    }
}
