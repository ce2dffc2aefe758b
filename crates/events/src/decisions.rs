//! What the replica that leads wants ordered: it waits here, and is ordered one after the other.
//!
//! What it is not: the caller. Who drives a service asks what is next, calls it at the group, and
//! says how that ended.
//!
//! Invariants: what waits is there once, and has a bound; events of suppliers are ordered as they
//! came; the kinds take turns; what waits when another replica leads is forgotten, for that one
//! decides for itself. Only what was pulled of a supplier stays: it is nowhere else.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use quorba_base::canary;
use quorba_base::channel::Bounds;
use quorba_corba::Transport;
use quorba_corba::giop::SystemException;
use quorba_idl::quorba_events::{Bounds as Together, DecisionsStub, Filed, Taken};

use crate::outgoing::Proposal;
use crate::service::EventService;

/// Proposals that wait; beyond, no supplier is pulled and nobody is ended until some were ordered.
const PROPOSALS_MAX: usize = 4_096;
/// Octets of events that wait to be ordered; the same beyond.
const BYTES_MAX: usize = 64 << 20;
/// Acknowledgements in one call.
const TOGETHER_MAX: usize = 1_000;

/// Something to be ordered.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The channels of the domain file.
    Configure(Vec<Filed>, Bounds),
    /// Of a channel.
    Proposal(String, Proposal),
    /// The time of a channel.
    Look(String),
    /// Acknowledgements of several, put together.
    Acknowledge(Vec<Taken>),
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
                Proposal::EndObserver { observer } => {
                    write!(f, "the end of observer {observer} of the channel {channel}")
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

impl Decision {
    /// Whether it is an event that nobody else has: it is to be ordered whoever leads.
    #[must_use]
    pub const fn is_pulled(&self) -> bool {
        matches!(self, Self::Proposal(_, proposal) if proposal.is_pulled())
    }

    /// Calls it at the service's object for decisions.
    ///
    /// # Errors
    /// What the group, or the way to it, answers.
    pub fn call(&self, group: &mut impl Transport) -> Result<(), SystemException> {
        let mut decisions = DecisionsStub(group);
        match self {
            Self::Configure(filed, bounds) => {
                let Bounds { channels_bytes, reliable_bytes } = *bounds;
                let together = Together { channels_bytes, reliable_bytes };
                decisions.configure(filed, &together)
            }
            Self::Acknowledge(all) => decisions.taken(all),
            Self::Look(channel) => decisions.look(channel),
            Self::Proposal(channel, proposal) => match proposal {
                Proposal::EndConsumer { consumer: proxy, connection, why }
                | Proposal::EndSupplier { supplier: proxy, connection, why } => {
                    decisions.end_proxy(channel, proxy, connection, &why.decided())
                }
                Proposal::EndObserver { observer } => decisions.end_observer(channel, observer),
                Proposal::Pulled { supplier, data } => decisions.pulled(channel, supplier, data),
                // They come together.
                Proposal::Acknowledge { .. } => Ok(()),
            },
        }
    }
}

fn bytes_of(proposal: &Proposal) -> usize {
    match proposal {
        Proposal::Pulled { data, .. } => data.size(),
        _ => 0,
    }
}

/// See the module's text.
#[derive(Default)]
pub struct Decisions {
    filed: Option<(Vec<Filed>, Bounds)>,
    proposals: VecDeque<(String, Proposal)>,
    /// Octets of events among them, and of the one that is being ordered.
    bytes: usize,
    looks: BTreeSet<String>,
    /// The last number of each consumer, and when that came.
    acknowledged: BTreeMap<(String, u64), (u64, u64)>,
    /// Whose turn it is.
    turn: usize,
}

impl Decisions {
    /// These are the channels of the domain file.
    pub fn configure(&mut self, filed: Vec<Filed>, bounds: Bounds) {
        self.filed = Some((filed, bounds));
    }

    /// A reliable channel's time has come.
    pub fn look(&mut self, channel: String) {
        self.looks.insert(channel);
    }

    /// Of a channel. Of acknowledgements the last one of each consumer counts.
    pub fn propose(&mut self, channel: String, proposal: Proposal) {
        match proposal {
            Proposal::Acknowledge { consumer, number, came } => {
                let known = self.acknowledged.entry((channel, consumer)).or_default();
                *known = (*known).max((number, came));
            }
            other => {
                self.bytes += bytes_of(&other);
                self.proposals.push_back((channel, other));
            }
        }
    }

    /// Whether more may be proposed.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.proposals.len() < PROPOSALS_MAX && self.bytes < BYTES_MAX
    }

    /// What is next to be ordered. One is under way at a time.
    pub fn poll(&mut self) -> Option<Decision> {
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
        let mut all = Vec::new();
        while all.len() < TOGETHER_MAX
            && let Some(((channel, consumer), (last, came))) = self.acknowledged.pop_first()
        {
            all.push(Taken { channel, consumer, last, came });
        }
        (!all.is_empty()).then_some(Decision::Acknowledge(all))
    }

    /// That is not to be ordered any more, however it ended.
    pub fn done(&mut self, decision: &Decision) {
        if let Decision::Proposal(_, proposal) = decision {
            self.bytes = self.bytes.saturating_sub(bytes_of(proposal));
        }
    }

    /// Another replica leads.
    pub fn forget(&mut self) {
        let old = core::mem::take(self);
        let pulled =
            |(_, it): &(String, Proposal)| it.is_pulled() && !canary!(ForgetsWhatWasPulled);
        self.proposals.extend(old.proposals.into_iter().filter(pulled));
        // One of them may be under way.
        self.bytes = old.bytes;
    }
}

impl EventService {
    /// The group has answered that a decision is ordered.
    pub fn decided(&mut self, decision: &Decision) {
        if let Decision::Proposal(name, Proposal::Pulled { supplier, .. }) = decision {
            self.with_channel(name, |channel| channel.settled(*supplier));
        }
    }

    /// A decision can never be ordered.
    pub fn left_out(&mut self, decision: &Decision) {
        match decision {
            Decision::Configure(..) => {}
            Decision::Look(name) => {
                self.with_channel(name, |channel| channel.totals.left_out += 1);
            }
            Decision::Proposal(name, proposal) => {
                self.with_channel(name, |channel| channel.left_out(proposal));
            }
            Decision::Acknowledge(all) => {
                for Taken { channel, consumer, last, came } in all {
                    let (consumer, number, came) = (*consumer, *last, *came);
                    let proposal = Proposal::Acknowledge { consumer, number, came };
                    self.with_channel(channel, |channel| channel.left_out(&proposal));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::Reason;
    use alloc::borrow::ToOwned;
    use alloc::vec;
    use quorba_corba::Any;

    fn pulled(number: u32) -> Proposal {
        Proposal::Pulled { supplier: 1, data: Any::new(&number).expect("a value") }
    }

    #[test]
    fn what_waits_is_there_once_and_all_kinds_have_their_turn() {
        let mut decisions = Decisions::default();
        for number in 1..=3 {
            let taken = Proposal::Acknowledge { consumer: 7, number, came: 10 * number };
            decisions.propose("a".to_owned(), taken);
            decisions.propose("a".to_owned(), pulled(number as u32));
            decisions.look("a".to_owned());
        }
        let five: Vec<Decision> = (0..5).filter_map(|_| decisions.poll()).collect();
        let count = |is: fn(&Decision) -> bool| five.iter().filter(|one| is(one)).count();
        assert_eq!(count(|one| matches!(one, Decision::Proposal(..))), 3);
        assert_eq!(count(|one| matches!(one, Decision::Look(_))), 1);
        let last = Taken { channel: "a".to_owned(), consumer: 7, last: 3, came: 30 };
        assert!(five.contains(&Decision::Acknowledge(vec![last])), "{five:?}");
        assert_eq!(decisions.poll(), None);
    }

    #[test]
    fn what_waits_has_a_bound_and_what_was_pulled_stays_when_another_one_leads() {
        let mut decisions = Decisions::default();
        let large = vec![0_u8; 10 << 20];
        let large = Proposal::Pulled { supplier: 1, data: Any::new(&large).expect("a value") };
        for _ in 0..6 {
            decisions.propose("a".to_owned(), large.clone());
            assert!(decisions.has_room());
        }
        decisions.propose("a".to_owned(), large);
        assert!(!decisions.has_room(), "no more is pulled");
        let first = decisions.poll().expect("it waits");
        assert!(!decisions.has_room(), "it is not ordered yet");
        decisions.done(&first);
        assert!(decisions.has_room());
        decisions.look("a".to_owned());
        let end = Proposal::EndSupplier { supplier: 1, connection: 2, why: Reason::Gone };
        decisions.propose("a".to_owned(), end);
        decisions.forget();
        for _ in 0..6 {
            let kept = decisions.poll().expect("it stays");
            assert!(kept.is_pulled());
            decisions.done(&kept);
        }
        assert_eq!((decisions.poll(), decisions.bytes), (None, 0), "another one decides the rest");
    }
}
