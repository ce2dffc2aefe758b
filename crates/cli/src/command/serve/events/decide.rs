//! What all members of the event service must know: it is called at the group's own gateway, so
//! that it has a place in the order.
//!
//! Invariants: decisions are ordered in their order, acknowledgements put together; each is tried
//! until it is answered, or another member leads, which then decides for itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use quorba_corba::giop::SystemException;
use quorba_events::{DECISIONS_KEY, Proposal, Reason};
use quorba_giop::CodeSets;
use quorba_idl::quorba_events::{Acknowledgement, DecisionsStub, Filed};
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::{AGAIN, Core, Surroundings};

/// How long one call may take, repetitions included.
const WITHIN: Duration = Duration::from_secs(10);
/// Acknowledgements in one call.
const TOGETHER_MAX: usize = 1_000;

/// Something to be ordered.
pub(super) enum Decision {
    /// The channels of the domain file.
    Configure(Vec<Filed>),
    /// Of a channel.
    Proposal(String, Proposal),
    /// The time of a channel.
    Look(String),
    /// Acknowledgements of several, put together.
    Acknowledge(Vec<Acknowledgement>),
}

/// Where decisions go.
#[derive(Clone)]
pub(super) struct Decider(Sender<Decision>);

impl Decider {
    pub(super) fn decide(&self, decision: Decision) {
        // The thread that hears it ends with the process.
        let _ = self.0.send(decision);
    }
}

pub(super) fn start(around: &Surroundings, core: &Arc<Core>) -> Decider {
    let (sender, decisions) = mpsc::channel();
    let text = format!("corbaloc:iiop:1.2@{}/{DECISIONS_KEY}", around.gateway);
    let core = Arc::clone(core);
    let name = format!("events-{}-", around.node);
    thread::spawn(move || {
        // A node writes it.
        let Ok(reference) = Reference::parse(&text) else { return };
        let code_sets = Some(CodeSets::UTF);
        let repeat = Some(Repeat::new(&name, 0));
        let call_timeout = Some(WITHIN);
        let options = ClientOptions { call_timeout, code_sets, repeat, ..ClientOptions::default() };
        run(&core, &decisions, Client::new(&reference, options));
    });
    Decider(sender)
}

fn run(core: &Core, decisions: &Receiver<Decision>, mut client: Client) {
    while let Ok(first) = decisions.recv() {
        for step in steps(first, decisions) {
            while let Err(_raised) = call(&mut client, &step) {
                if !core.lock().leads() {
                    break;
                }
                thread::sleep(AGAIN);
            }
        }
    }
}

/// What waits, with acknowledgements put together behind the rest: the last one of a consumer
/// counts.
fn steps(first: Decision, decisions: &Receiver<Decision>) -> Vec<Decision> {
    let mut last: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let mut steps = Vec::new();
    let more = std::iter::from_fn(|| decisions.try_recv().ok());
    for decision in std::iter::once(first).chain(more).take(TOGETHER_MAX) {
        match decision {
            Decision::Proposal(channel, Proposal::Acknowledge { consumer, number }) => {
                let known = last.entry((channel, consumer)).or_default();
                *known = number.max(*known);
            }
            other => steps.push(other),
        }
    }
    let all: Vec<_> = last
        .into_iter()
        .map(|((channel, consumer), last)| Acknowledgement { channel, consumer, last })
        .collect();
    if !all.is_empty() {
        steps.push(Decision::Acknowledge(all));
    }
    steps
}

fn call(client: &mut Client, step: &Decision) -> Result<(), SystemException> {
    let mut decisions = DecisionsStub(client);
    match step {
        Decision::Configure(filed) => decisions.configure(filed),
        Decision::Acknowledge(all) => decisions.acknowledge(all),
        Decision::Look(channel) => decisions.look(channel),
        Decision::Proposal(channel, proposal) => match proposal {
            Proposal::EndConsumer { consumer, why } => {
                decisions.end_consumer(channel, consumer, &(*why == Reason::TooSlow))
            }
            Proposal::EndSupplier { supplier, .. } => decisions.end_supplier(channel, supplier),
            Proposal::Pulled { supplier, data } => decisions.pulled(channel, supplier, data),
            // They come together.
            Proposal::Acknowledge { .. } => Ok(()),
        },
    }
}
