//! What all members of the event service must know: it is called at the group's own gateway, so
//! that it has a place in the order.
//!
//! Invariants: what waits is there once, and has a bound; events of suppliers are ordered as they
//! came; a decision that cannot be ordered is left out, counted and logged, and keeps no other one
//! waiting; what waits when another member leads is forgotten, for that one decides for itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use quorba_base::channel::Bounds;
use quorba_corba::giop::SystemException;
use quorba_events::{DECISIONS_KEY, Proposal, Reason};
use quorba_giop::CodeSets;
use quorba_idl::quorba_events::{Acknowledgement, Bounds as Together, DecisionsStub, Filed};
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::super::insist::{Ended, insist};
use super::{Core, Surroundings};

/// How long one call may take, repetitions included.
const WITHIN: Duration = Duration::from_secs(10);
/// Proposals that wait; beyond, no supplier is pulled and nobody is ended until some were ordered.
const PROPOSALS_MAX: usize = 4_096;
/// Octets of events that wait to be ordered; the same beyond.
const BYTES_MAX: usize = 64 << 20;
/// Acknowledgements in one call.
const TOGETHER_MAX: usize = 1_000;

/// Something to be ordered.
#[derive(Debug, PartialEq)]
enum Decision {
    /// The channels of the domain file.
    Configure(Vec<Filed>, Bounds),
    /// Of a channel.
    Proposal(String, Proposal),
    /// The time of a channel.
    Look(String),
    /// Acknowledgements of several, put together.
    Acknowledge(Vec<Acknowledgement>),
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configure(..) => write!(f, "which channels the domain file has"),
            Self::Look(channel) => write!(f, "the time of the channel {channel}"),
            Self::Acknowledge(all) => write!(f, "what {} consumers acknowledge", all.len()),
            Self::Proposal(channel, proposal) => match proposal {
                Proposal::EndConsumer { consumer, .. } => {
                    write!(f, "the end of consumer {consumer} of the channel {channel}")
                }
                Proposal::EndSupplier { supplier, .. } => {
                    write!(f, "the end of supplier {supplier} of the channel {channel}")
                }
                Proposal::Pulled { supplier, data } => {
                    let bytes = data.size();
                    write!(
                        f,
                        "an event of {bytes} bytes that was pulled from supplier {supplier} "
                    )?;
                    write!(f, "of the channel {channel}")
                }
                Proposal::Acknowledge { consumer, .. } => {
                    write!(f, "what consumer {consumer} of the channel {channel} acknowledges")
                }
            },
        }
    }
}

/// What waits to be ordered.
#[derive(Default)]
struct Waiting {
    filed: Option<(Vec<Filed>, Bounds)>,
    proposals: VecDeque<(String, Proposal)>,
    /// Octets of events among them, and of the one that is being ordered.
    bytes: usize,
    /// Somebody waits for room.
    is_awaited: bool,
    looks: BTreeSet<String>,
    /// The last number of each consumer.
    acknowledged: BTreeMap<(String, u64), u64>,
    /// Whose turn it is.
    turn: usize,
}

impl Waiting {
    /// What is next; the kinds take turns.
    fn next(&mut self) -> Option<Decision> {
        for _ in 0..4 {
            self.turn = (self.turn + 1) % 4;
            let next = match self.turn {
                0 => self.filed.take().map(|(filed, all)| Decision::Configure(filed, all)),
                1 => self.proposals.pop_front().map(|(name, it)| Decision::Proposal(name, it)),
                2 => self.looks.pop_first().map(Decision::Look),
                _ => self.acknowledgements(),
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn acknowledgements(&mut self) -> Option<Decision> {
        let first = std::iter::from_fn(|| self.acknowledged.pop_first()).take(TOGETHER_MAX);
        let all: Vec<_> = first
            .map(|((channel, consumer), last)| Acknowledgement { channel, consumer, last })
            .collect();
        (!all.is_empty()).then_some(Decision::Acknowledge(all))
    }
}

fn bytes_of(proposal: &Proposal) -> usize {
    match proposal {
        Proposal::Pulled { data, .. } => data.size(),
        _ => 0,
    }
}

/// Whether it is an event that nobody else has.
const fn is_pulled(proposal: &Proposal) -> bool {
    matches!(proposal, Proposal::Pulled { .. })
}

/// Where decisions go.
#[derive(Clone, Default)]
pub(super) struct Decider(Arc<(Mutex<Waiting>, Condvar)>);

impl Decider {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, add: impl FnOnce(&mut Waiting)) {
        add(&mut self.lock());
        self.0.1.notify_one();
    }

    /// These are the channels of the domain file.
    pub(super) fn configure(&self, filed: Vec<Filed>, bounds: Bounds) {
        self.add(|waiting| waiting.filed = Some((filed, bounds)));
    }

    /// A reliable channel's time has come.
    pub(super) fn look(&self, channel: String) {
        self.add(|waiting| waiting.looks.extend([channel]));
    }

    /// Of a channel. Of acknowledgements the last one of each consumer counts.
    pub(super) fn propose(&self, channel: String, proposal: Proposal) {
        self.add(|waiting| match proposal {
            Proposal::Acknowledge { consumer, number } => {
                let known = waiting.acknowledged.entry((channel, consumer)).or_default();
                *known = number.max(*known);
            }
            other => {
                waiting.bytes += bytes_of(&other);
                waiting.proposals.push_back((channel, other));
            }
        });
    }

    /// Whether more may be proposed; who hears no is woken when there is room.
    pub(super) fn has_room(&self) -> bool {
        let mut waiting = self.lock();
        let has_room = waiting.proposals.len() < PROPOSALS_MAX && waiting.bytes < BYTES_MAX;
        waiting.is_awaited |= !has_room;
        has_room
    }

    /// That is not to be ordered any more. Whether somebody has waited for room.
    fn is_done(&self, decision: &Decision) -> bool {
        let Decision::Proposal(_, proposal) = decision else { return false };
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes_of(proposal));
        std::mem::take(&mut waiting.is_awaited)
    }

    /// Another member leads, and decides all anew. What was pulled of a supplier is only here.
    pub(super) fn forget(&self) {
        let mut waiting = self.lock();
        let old = std::mem::take(&mut *waiting);
        waiting.proposals.extend(old.proposals.into_iter().filter(|(_, it)| is_pulled(it)));
        // One of them may be under way.
        (waiting.bytes, waiting.is_awaited) = (old.bytes, old.is_awaited);
    }

    fn wait(&self) -> Decision {
        let mut waiting = self.lock();
        loop {
            if let Some(next) = waiting.next() {
                return next;
            }
            waiting = self.0.1.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A client of the group's own gateway, which repeats its calls under their names; none if the
/// node has told no gateway that can be one.
pub(super) fn client(around: &Surroundings, name: &str) -> Option<Client> {
    let text = format!("corbaloc:iiop:1.2@{}/{DECISIONS_KEY}", around.gateway);
    let reference = Reference::parse(&text).ok()?;
    let repeat = Some(Repeat::new(&format!("{name}-{}-", around.node), 0));
    let (call_timeout, code_sets) = (Some(WITHIN), Some(CodeSets::UTF));
    let options = ClientOptions { call_timeout, code_sets, repeat, ..ClientOptions::default() };
    Some(Client::new(&reference, options))
}

pub(super) fn start(around: &Surroundings, core: &Arc<Core>) -> Decider {
    let decider = Decider::default();
    let (core, decides) = (Arc::clone(core), decider.clone());
    let client = client(around, "events");
    thread::spawn(move || {
        // A node writes it.
        let Some(mut client) = client else { return };
        loop {
            let decision = decides.wait();
            order(&core, &decision, &mut |decision| call(&mut client, decision));
            if decides.is_done(&decision) {
                core.wake();
            }
        }
    });
    decider
}

/// Has a decision ordered, if that can be done while this member leads. What was pulled of a
/// supplier is ordered whoever leads: it is nowhere else.
fn order(
    core: &Core,
    decision: &Decision,
    call: &mut dyn FnMut(&Decision) -> Result<(), SystemException>,
) {
    let is_kept = matches!(decision, Decision::Proposal(_, proposal) if is_pulled(proposal));
    let is_wanted = || is_kept || core.lock().leads();
    let ended = insist(decision, || call(decision), is_wanted, thread::sleep);
    let mut service = core.lock();
    if ended != Ended::LeftOut {
        if let Decision::Proposal(channel, Proposal::Pulled { supplier, .. }) = decision {
            service.settled(channel, *supplier);
            drop(service);
            core.wake();
        }
        return;
    }
    match decision {
        Decision::Configure(..) => {}
        Decision::Look(channel) => service.left_out(channel, None),
        Decision::Proposal(channel, proposal) => service.left_out(channel, Some(proposal)),
        Decision::Acknowledge(all) => {
            for Acknowledgement { channel, consumer, last } in all {
                let proposal = Proposal::Acknowledge { consumer: *consumer, number: *last };
                service.left_out(channel, Some(&proposal));
            }
        }
    }
    drop(service);
    core.wake();
}

fn call(client: &mut Client, decision: &Decision) -> Result<(), SystemException> {
    let mut decisions = DecisionsStub(client);
    match decision {
        Decision::Configure(filed, bounds) => {
            let Bounds { channels_bytes, reliable_bytes } = *bounds;
            let together = Together { channels_bytes, reliable_bytes };
            decisions.configure(filed, &together)
        }
        Decision::Acknowledge(all) => decisions.acknowledge(all),
        Decision::Look(channel) => decisions.look(channel),
        Decision::Proposal(channel, proposal) => match proposal {
            Proposal::EndConsumer { consumer, why } => {
                decisions.end_consumer(channel, consumer, &(*why == Reason::TooSlow))
            }
            Proposal::EndSupplier { supplier, why } => {
                decisions.end_supplier(channel, supplier, &(*why == Reason::TooLarge))
            }
            Proposal::Pulled { supplier, data } => decisions.pulled(channel, supplier, data),
            // They come together.
            Proposal::Acknowledge { .. } => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::core;
    use super::*;
    use quorba_corba::{Any, raise_system};
    use quorba_giop::ExceptionKind;

    fn pulled(number: u32) -> Proposal {
        Proposal::Pulled { supplier: 1, data: Any::new(&number).expect("a value") }
    }

    #[test]
    fn a_decision_that_can_never_be_ordered_keeps_no_other_channel_waiting() {
        let core = core(&["bad", "good"]);
        let decider = Decider::default();
        decider.propose("bad".to_owned(), pulled(1));
        decider.propose("good".to_owned(), pulled(2));
        let mut heard = Vec::new();
        while heard.is_empty() {
            let decision = decider.wait();
            order(&core, &decision, &mut |decision| match decision {
                Decision::Proposal(channel, _) if channel == "bad" => {
                    Err(raise_system(ExceptionKind::ImpLimit))
                }
                other => {
                    heard.push(other.to_string());
                    Ok(())
                }
            });
        }
        assert!(heard[0].ends_with("the channel good"), "{heard:?}");
        let totals = core.lock().channel("bad").expect("it is there").totals();
        assert_eq!((totals.left_out, totals.refused), (1, 1));
    }

    #[test]
    fn what_waits_is_there_once_and_all_kinds_have_their_turn() {
        let decider = Decider::default();
        for number in 1..=3 {
            decider.propose("a".to_owned(), Proposal::Acknowledge { consumer: 7, number });
            decider.propose("a".to_owned(), pulled(number as u32));
            decider.look("a".to_owned());
        }
        let six: Vec<Decision> = (0..5).map(|_| decider.wait()).collect();
        let count = |is: fn(&Decision) -> bool| six.iter().filter(|one| is(one)).count();
        assert_eq!(count(|one| matches!(one, Decision::Proposal(..))), 3);
        assert_eq!(count(|one| matches!(one, Decision::Look(_))), 1);
        let last = Acknowledgement { channel: "a".to_owned(), consumer: 7, last: 3 };
        assert!(six.contains(&Decision::Acknowledge(vec![last])), "{six:?}");
        six.iter().for_each(|one| assert!(!decider.is_done(one), "nobody waits"));
        let large = vec![0_u8; 10 << 20];
        let large = Proposal::Pulled { supplier: 1, data: Any::new(&large).expect("a value") };
        for _ in 0..6 {
            decider.propose("a".to_owned(), large.clone());
            assert!(decider.has_room());
        }
        decider.propose("a".to_owned(), large);
        assert!(!decider.has_room(), "no more is pulled");
        let first = decider.wait();
        assert!(!decider.has_room(), "it is not ordered yet");
        assert!(decider.is_done(&first) && decider.has_room());
        decider.look("a".to_owned());
        decider.forget();
        for _ in 0..6 {
            let kept = decider.lock().next();
            assert!(matches!(&kept, Some(Decision::Proposal(_, it)) if is_pulled(it)), "{kept:?}");
            decider.is_done(&kept.expect("it is there"));
        }
        assert_eq!(decider.lock().next(), None, "another one leads");
        assert_eq!(decider.lock().bytes, 0);
    }
}
