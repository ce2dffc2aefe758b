//! What all members of the event service must know: it is called at the group's own gateway, so
//! that it has a place in the order.
//!
//! Invariants: one decision is under way at a time; one that cannot be ordered is left out, counted
//! and logged, and keeps no other one waiting.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use quorba_corba::giop::SystemException;
use quorba_events::{DECISIONS_KEY, Decision, Decisions};
use quorba_giop::CodeSets;
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

use super::super::insist::{Ended, insist};
use super::{Core, Surroundings};

/// How long one call may take, repetitions included.
pub(super) const WITHIN: Duration = Duration::from_secs(10);
/// The same of an event that was pulled: all that time it has one name, so that it is ordered once,
/// and it is not called again under another one.
const PULLED_WITHIN: Duration = Duration::from_mins(4);

/// Where decisions go.
#[derive(Clone, Default)]
pub(super) struct Decider(Arc<(Mutex<Waiting>, Condvar)>);

/// What waits to be ordered.
#[derive(Default)]
struct Waiting {
    decisions: Decisions,
    /// Somebody waits for room.
    is_awaited: bool,
}

impl Decider {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds something to be ordered.
    pub(super) fn add(&self, add: impl FnOnce(&mut Decisions)) {
        add(&mut self.lock().decisions);
        self.0.1.notify_one();
    }

    /// Whether more may be proposed; who hears no is woken when there is room.
    pub(super) fn has_room(&self) -> bool {
        let mut waiting = self.lock();
        let has_room = waiting.decisions.has_room();
        waiting.is_awaited |= !has_room;
        has_room
    }

    /// That is not to be ordered any more. Whether somebody has waited for room.
    fn is_done(&self, decision: &Decision) -> bool {
        let mut waiting = self.lock();
        waiting.decisions.done(decision);
        std::mem::take(&mut waiting.is_awaited)
    }

    fn wait(&self) -> Decision {
        let mut waiting = self.lock();
        loop {
            if let Some(next) = waiting.decisions.poll() {
                return next;
            }
            waiting = self.0.1.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A client of the group's own gateway, which repeats its calls under their names; none if the
/// node has told no gateway that can be one.
pub(super) fn client(around: &Surroundings, name: &str, within: Duration) -> Option<Client> {
    let text = format!("corbaloc:iiop:1.2@{}/{DECISIONS_KEY}", around.gateway);
    let reference = Reference::parse(&text).ok()?;
    let repeat = Some(Repeat::new(&format!("{name}-{}-", around.node), 0));
    let options = ClientOptions {
        call_timeout: Some(within),
        request_duration: (within > WITHIN).then_some(within),
        code_sets: Some(CodeSets::UTF),
        repeat,
        // Whatever the file wants of clients: what one member has must be possible to decide.
        transaction_depth: Some(1),
        ..ClientOptions::default()
    };
    Some(Client::new(&reference, options))
}

pub(super) fn start(around: &Surroundings, core: &Arc<Core>) -> Decider {
    let decider = Decider::default();
    let (core, decides) = (Arc::clone(core), decider.clone());
    let clients = (client(around, "events", WITHIN), client(around, "pulled", PULLED_WITHIN));
    thread::spawn(move || {
        // A node writes it.
        let (Some(mut client), Some(mut of_pulled)) = clients else { return };
        loop {
            let decision = decides.wait();
            let client = if decision.is_pulled() { &mut of_pulled } else { &mut client };
            order(&core, &decision, &mut |decision| decision.call(client));
            if decides.is_done(&decision) {
                core.wake();
            }
        }
    });
    decider
}

/// Has a decision ordered, if that can be done while this member leads. What was pulled of a
/// supplier is ordered whoever leads: it is nowhere else. It is called once, for the next call
/// would have another name, and the group may have the first one.
fn order(
    core: &Core,
    decision: &Decision,
    call: &mut dyn FnMut(&Decision) -> Result<(), SystemException>,
) {
    let is_wanted = || !decision.is_pulled() && core.lock().leads();
    let ended = insist(decision, || call(decision), is_wanted, thread::sleep);
    let mut service = core.lock();
    match ended {
        Ended::Heard => service.decided(decision),
        Ended::LeftOut => service.left_out(decision),
        Ended::Unwanted if decision.is_pulled() => {
            eprintln!(
                "{decision} is given up: the group did not answer; quorba status shows whether it \
                 serves"
            );
            service.left_out(decision);
        }
        Ended::Unwanted => {}
    }
    drop(service);
    core.wake();
}

#[cfg(test)]
mod tests {
    use super::super::tests::core;
    use super::*;
    use quorba_corba::{Any, raise_system};
    use quorba_events::Proposal;
    use quorba_giop::ExceptionKind;

    fn pulled(number: u32) -> Proposal {
        Proposal::Pulled { supplier: 1, data: Any::new(&number).expect("a value") }
    }

    #[test]
    fn a_decision_that_can_never_be_ordered_keeps_no_other_channel_waiting() {
        let core = core(&["bad", "good"]);
        let decider = Decider::default();
        decider.add(|waiting| waiting.propose("bad".to_owned(), pulled(1)));
        decider.add(|waiting| waiting.propose("good".to_owned(), pulled(2)));
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
    fn a_pulled_event_is_called_once_and_others_as_long_as_this_member_leads() {
        let core = core(&["a"]);
        let decision = |proposal| Decision::Proposal("a".to_owned(), proposal);
        let mut calls = 0;
        let mut silent = |_: &Decision| {
            calls += 1;
            if calls > 3 { Ok(()) } else { Err(raise_system(ExceptionKind::Timeout)) }
        };
        order(&core, &decision(pulled(1)), &mut silent);
        let totals = core.lock().channel("a").expect("it is there").totals();
        assert_eq!((totals.left_out, totals.refused), (1, 1));
        order(&core, &Decision::Look("a".to_owned()), &mut silent);
        assert_eq!(calls, 4);
    }
}
