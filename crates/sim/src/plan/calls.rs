//! Plans of domains whose servers call each other.
//!
//! Invariant: like every plan a function of the seed; cycles are as likely as trees.

use crate::fault::Fault;
use crate::plan::{ClientPlan, GroupPlan, OutsidePlan, Plan};
use crate::rng::Rng;
use quorba_base::Duration;
use quorba_engine::OutsideSettings;
use quorba_engine::replica::{Concurrency, OnDoubt, OutsideConfig, ReadConsistency, Style};

impl Plan {
    /// The plan of a seed with calls between groups.
    pub(crate) fn draw_calls(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        let mut rng = Rng::new(seed).fork(0xca11);
        let count = rng.pick(&[2, 2, 3, 4]);
        while plan.groups.len() < count {
            plan.groups.push(GroupPlan::draw(&mut rng, plan.nodes));
        }
        let groups = plan.groups.into_iter();
        plan.groups = groups.map(|group| group.with_calls(&mut rng)).collect();
        let density = rng.pick(&[200, 500, 900]);
        let count = plan.groups.len();
        for caller in 0..count {
            let targets = 0..count;
            let chance = |target: usize| if target == caller { 30 } else { density };
            let calls = targets.filter(|target| rng.per_mille(chance(*target)));
            plan.groups[caller].calls = calls.collect();
        }
        if plan.groups.iter().all(|group| group.calls.is_empty()) {
            plan.groups[0].calls = vec![1];
        }
        for target in 0..count {
            let is_called = plan.groups.iter().any(|group| group.calls.contains(&target));
            plan.groups[target].is_called = is_called;
        }
        while plan.clients.len() < count {
            plan.clients.push(ClientPlan::draw(&mut rng, count));
        }
        for client in &mut plan.clients {
            client.group = rng.index(count);
            // One `append` is many.
            client.think_us = client.think_us.max(5_000);
            client.window = client.window.min(4);
        }
        let operators = [Fault::Promotion, Fault::StyleChange];
        plan.faults.extend(operators.into_iter().filter(|_| rng.per_mille(300)));
        (plan.catastrophe, plan.lies, plan.disk) = (false, false, None);
        plan.faults.retain(|fault| !fault.needs_catastrophe());
        plan.with_looks(&mut Rng::new(seed).fork(0x100c))
            .with_outside(&mut Rng::new(seed).fork(0x0075))
    }

    /// Some groups declare what changes nothing, and not all of their servers have threads for it.
    fn with_looks(mut self, rng: &mut Rng) -> Self {
        if rng.per_mille(500) {
            return self;
        }
        for group in &mut self.groups {
            let reads = rng.pick(&[None, Some(ReadConsistency::Linearizable)]);
            group.reads = reads;
            group.has_threads = !rng.per_mille(150);
        }
        self
    }

    /// Some domains call servers outside.
    fn with_outside(mut self, rng: &mut Rng) -> Self {
        if !rng.per_mille(500) {
            return self;
        }
        self.outside = (0..rng.pick(&[1, 1, 2])).map(|_| OutsidePlan::draw(rng)).collect();
        let (groups, outside) = (self.groups.len(), self.outside.len());
        for group in &mut self.groups {
            let targets = groups..groups + outside;
            group.calls.extend(targets.filter(|_| rng.per_mille(500)));
        }
        if self.groups.iter().all(|group| group.calls.iter().all(|target| *target < groups)) {
            self.groups[0].calls.push(groups);
        }
        if rng.per_mille(400) {
            let often = 1 + self.faults.len() / 2;
            self.faults.extend(std::iter::repeat_n(Fault::SecretAnswer, often));
        }
        self
    }
}

impl OutsidePlan {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            on_doubt: rng.pick(&[OnDoubt::Fail, OnDoubt::Fail, OnDoubt::Repeat]),
            recognises: rng.per_mille(300),
            execute_us: rng.pick(&[(5, 20), (50, 2_000), (1_000, 40_000)]),
            connect_ms: rng.pick(&[150, 1_000, 3_000]),
            reply_ms: rng.pick(&[100, 1_000, 4_000]),
            faults_every_ms: rng.pick(&[None, Some(300), Some(1_500)]),
        }
    }

    /// As the engine wants it.
    pub(crate) fn settings(&self) -> OutsideSettings {
        OutsideSettings {
            replica: OutsideConfig { on_doubt: self.on_doubt, reply_bytes_max: 4_096 },
            connect: Duration::from_millis(self.connect_ms),
            reply: Duration::from_millis(self.reply_ms),
        }
    }
}

impl GroupPlan {
    /// Any style that calls, or can be called.
    fn with_calls(self, rng: &mut Rng) -> Self {
        let mut group = self.with_style(rng);
        if rng.per_mille(100) {
            group.style = Style::ActiveWithVoting;
        }
        group.concurrency = Concurrency::Sequential;
        (group.foreign, group.fresh_after_loss, group.durable) = (false, false, false);
        group
    }
}
