//! A member of the service, and what its process does beside: what is to be called is handed out,
//! one decision at a time is being ordered, and numbered pushes wait until they are held.
//!
//! What it is not: threads. Invariant: nothing of a process outlives it.

use super::operation::{CHANNEL, home};
use crate::ordered::Name;
use quorba_events::{Decisions, Delivery, EventService, Outgoing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a member wants done.
pub(crate) enum Wish {
    /// Push it.
    Push(Delivery),
    /// Pull a supplier: which, and the name of the attempt.
    Pull(u64, u64),
}

/// See the module's text.
pub(crate) struct Member {
    pub(crate) service: EventService,
    /// The time of the call that is being executed, and whose it is.
    told: Arc<(AtomicU64, AtomicU64)>,
    /// No other process has it.
    pub(crate) boot: u64,
    /// How often it has begun to lead.
    pub(crate) term: u64,
    pub(crate) decisions: Decisions,
    pub(crate) is_deciding: bool,
    /// Pushes that wait until their events are held.
    pub(crate) fenced: Vec<Delivery>,
    pub(crate) is_fencing: bool,
    /// When it is looked at again.
    pub(crate) due_us: u64,
    names: u64,
}

impl Member {
    pub(crate) fn new(boot: u64) -> Self {
        let told = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let (time, caller) = (Arc::clone(&told), Arc::clone(&told));
        let service = EventService::new(home())
            .with_clock(Box::new(move || Some(time.0.load(Ordering::Relaxed))))
            .with_caller(Box::new(move || Some(caller.1.load(Ordering::Relaxed))));
        Self {
            service,
            told,
            boot,
            term: 0,
            decisions: Decisions::default(),
            is_deciding: false,
            fenced: Vec::new(),
            is_fencing: false,
            due_us: u64::MAX,
            names: 0,
        }
    }

    /// The call that comes next has that time and that caller.
    pub(crate) fn tell(&self, time: u64, caller: u64) {
        self.told.0.store(time, Ordering::Relaxed);
        self.told.1.store(caller, Ordering::Relaxed);
    }

    /// A name for a call of its own.
    pub(crate) fn name(&mut self) -> Name {
        self.names += 1;
        (1_000_000 + self.boot, self.names)
    }

    /// It is told whether it leads.
    pub(crate) fn leads(&mut self, is_so: bool) {
        if is_so == self.service.leads() {
            return;
        }
        if is_so {
            self.term += 1;
            self.service.lead();
        } else {
            self.service.follow_another();
            self.decisions.forget();
        }
    }

    /// What it wants done now; what it wants ordered waits in it.
    pub(crate) fn poll(&mut self) -> Vec<Wish> {
        let mut wishes = Vec::new();
        while let Some((_, delivery)) = self.service.poll_push() {
            if delivery.is_to_be_held() {
                self.fenced.push(delivery);
            } else {
                wishes.push(Wish::Push(delivery));
            }
        }
        while self.decisions.has_room()
            && let Some((channel, outgoing)) = self.service.poll()
        {
            match outgoing {
                Outgoing::Propose(proposal) => self.decisions.propose(channel, proposal),
                Outgoing::Pull { supplier, ticket, .. } => {
                    wishes.push(Wish::Pull(supplier, ticket));
                }
                // Nobody here wants to hear it.
                Outgoing::Disconnect { .. }
                | Outgoing::Ended(_)
                | Outgoing::TooLarge(_)
                | Outgoing::ObserverEnded { .. }
                | Outgoing::Update { .. } => {}
            }
        }
        for channel in self.service.overdue() {
            self.decisions.look(channel);
        }
        wishes
    }

    /// Sets that wait for consumers.
    pub(crate) fn waiting(&self) -> usize {
        let channel = self.service.channel(CHANNEL);
        channel.map_or(0, |channel| channel.consumers().map(|one| one.waiting).sum())
    }
}
