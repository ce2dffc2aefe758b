//! `quorba events bridge`: passes the events of one channel on to another one, of whatever event
//! service.
//!
//! What it is not: a link that sends events back; two bridges do that, and an event goes round
//! between them for ever.
//!
//! Invariants: an event is taken only when the other channel has taken it, so as long as the bridge
//! runs what a reliable channel gives is not lost; a push of unknown outcome is repeated under the
//! name that it had, so where both channels are Quorba's and reliable none comes twice. Where the
//! source has no numbers the event that comes again is known by its octets: see [`Doubt`]. A bridge
//! that begins anew is another consumer: it is given what is pushed from then on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use quorba_corba::Object;
use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_giop::{MinorCode, QUORBA_VMCID};
use quorba_idl::cos_event_channel_admin::ProxyPushConsumerStub;
use quorba_idl::cos_event_comm;
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_orb::Client;
use serde_json::json;

use super::ending::Ending;
use super::source::{Arrival, Listen, Source, Taker, later};
use super::subscribe::{LOOK, Until};
use super::{Channels, TOO_LARGE, publish};
use crate::command::serve::is_passing;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;

/// Before a channel is tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// How often is told how many have passed.
const TELL: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct Bridge {
    /// Where events come from: a channel, or the reference of one of another service
    ///
    /// A reference begins with IOR: or corbaloc: and is that of a
    /// CosEventChannelAdmin::EventChannel, such as one of omniEvents. Such a channel, as one that
    /// is not reliable, does not number its events: after a failure two equal ones in a row may be
    /// taken for one.
    from: String,

    /// Where they go
    to: String,

    #[command(flatten)]
    until: Until,

    #[command(flatten)]
    listen: Listen,
}

/// A channel, and how it is spoken to.
struct Side {
    name: String,
    channel: Source,
}

impl Side {
    fn find(service: &mut Channels, name: &str) -> Result<Self, Failure> {
        if !reference::is_reference(name) {
            let channel = Source::find(service, name)?;
            return Ok(Self { name: name.to_owned(), channel });
        }
        let channel = Source::foreign(reference::resolve(name).map(Object)?);
        Ok(Self { name: format!("{name:.60}"), channel })
    }
}

/// What the servant has to say.
enum Over {
    FromEnded,
    ToEnded,
    Counted,
}

/// The event of the last push, if nobody knows whether it was executed.
#[derive(Default)]
struct Doubt(Option<Arrival>);

impl Doubt {
    /// Whether this is that event, come again. Of two that are equal the number tells it. Where
    /// there are no numbers an equal event is taken for the same: the channel was told to come
    /// again with it, and if it has given that one up instead, one of the two is lost either way.
    fn is_of(&self, event: &Arrival) -> bool {
        self.0.as_ref() == Some(event)
    }

    /// An event was pushed, and that was answered.
    fn after(&mut self, event: &Arrival, pushed: Result<(), SystemException>) {
        self.0 = match pushed {
            Err(raised) if raised.completed == Completion::Maybe && raised.minor != FULL => {
                Some(event.clone())
            }
            Ok(()) | Err(_) => None,
        };
    }

    /// The channel is not told to come again with the event: an equal one is the next, unless its
    /// number says that it is not.
    fn passed_on(&mut self) {
        self.0.take_if(|event| event.number.is_none());
    }
}

/// What the other channel has refused an event with, the last time.
type Refusal = Arc<Mutex<Option<SystemException>>>;

fn lock(refusal: &Refusal) -> MutexGuard<'_, Option<SystemException>> {
    refusal.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Passing {
    to: Client,
    passed: Arc<AtomicU64>,
    count: Option<u64>,
    said: SyncSender<Over>,
    doubt: Doubt,
    refusal: Refusal,
}

/// The other channel's consumers have no room: it was certainly not taken.
const FULL: u32 = QUORBA_VMCID | MinorCode::ConsumerFull.number();

impl Passing {
    fn offer(&mut self, event: &Arrival) -> Result<(), PushError> {
        if self.doubt.is_of(event) {
            self.to.once_more();
        }
        let offered = ProxyPushConsumerStub(&mut self.to).push(&event.data);
        let pushed = match &offered {
            Err(PushError::System(raised)) => Err(*raised),
            Ok(()) | Err(PushError::Disconnected(_)) => Ok(()),
        };
        self.doubt.after(event, pushed);
        offered
    }
}

impl Taker for Passing {
    fn take(&mut self, event: Arrival, until: Instant) -> Result<(), PushError> {
        if self.count.is_some_and(|count| self.passed.load(Ordering::Relaxed) >= count) {
            return Err(cos_event_comm::Disconnected {}.into());
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(later().into());
            }
            self.to.limit(Some(left));
            match self.offer(&event) {
                Ok(()) => break,
                Err(PushError::System(raised)) if is_passing(raised.kind) => {
                    thread::sleep(AGAIN.min(left));
                }
                // The bridge's proxy, or the channel, is no more.
                Err(PushError::System(raised)) if raised.kind == ExceptionKind::ObjectNotExist => {
                    let _ = self.said.try_send(Over::ToEnded);
                    return Err(later().into());
                }
                Err(PushError::System(raised)) => {
                    self.doubt.passed_on();
                    *lock(&self.refusal) = Some(raised);
                    return Err(PushError::System(raised));
                }
                Err(PushError::Disconnected(gone)) => {
                    let _ = self.said.try_send(Over::ToEnded);
                    return Err(gone.into());
                }
            }
        }
        *lock(&self.refusal) = None;
        let passed = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
        if self.count.is_some_and(|count| passed >= count) {
            let _ = self.said.try_send(Over::Counted);
        }
        Ok(())
    }

    fn ended(&mut self) {
        let _ = self.said.try_send(Over::FromEnded);
    }
}

impl Bridge {
    pub(super) fn run(
        self,
        context: &Context,
        service: &mut Channels,
        ending: &Ending,
    ) -> Result<Exit, Failure> {
        if self.from == self.to {
            let what =
                format!("a bridge from {:.60} to itself passes its events for ever", self.to);
            return Err(Failure::new(codes::USAGE, Exit::Usage, what, "name two channels"));
        }
        let from = Side::find(service, &self.from)?;
        let to = Side::find(service, &self.to)?;
        let (passed, refusal) = (Arc::new(AtomicU64::new(0)), Refusal::default());
        let (said, hears) = sync_channel(4);
        let whose = to.channel.whose;
        let proxy = publish::connect(service, &to.channel.channel, whose, ending)?;
        let passing = Passing {
            to: service.way(&proxy, whose)?,
            passed: Arc::clone(&passed),
            count: self.until.count,
            said,
            doubt: Doubt::default(),
            refusal: Arc::clone(&refusal),
        };
        let mut subscription = from.channel.connect(service, &self.listen, passing, ending)?;
        context.tell(format!("note: events of {} go to {}", from.name, to.name));
        let over = self.wait(context, &hears, &passed);
        if !matches!(over, Some(Over::FromEnded)) {
            subscription.end();
        }
        if !matches!(over, Some(Over::ToEnded)) {
            let mut client = service.way_to_end(&proxy, whose)?;
            let _ = ProxyPushConsumerStub(&mut client).disconnect_push_consumer();
        }
        let passed = passed.load(Ordering::Relaxed);
        let shown = json!({ "from": from.name, "to": to.name, "passed": passed });
        match over {
            Some(Over::FromEnded) => {
                let refused = *lock(&refusal);
                let ended = refused.map_or_else(|| ended(&from), |raised| given_up(&to, &raised));
                return Err(ended.data(shown));
            }
            Some(Over::ToEnded) => return Err(ended(&to).data(shown)),
            None if self.until.count.is_some() => {
                return Err(Until::too_early(passed).data(shown));
            }
            Some(Over::Counted) | None => {}
        }
        match context.is_json() {
            true => context.print_json(&shown)?,
            false => context.print(&format!("passed: {passed}\n"))?,
        }
        Ok(Exit::Ok)
    }

    /// Until it is over; `None`: the time is.
    fn wait(&self, context: &Context, hears: &Receiver<Over>, passed: &AtomicU64) -> Option<Over> {
        let begin = Instant::now();
        let until = self.until.deadline();
        let (mut told, mut told_at) = (0, begin);
        if self.until.count == Some(0) {
            return Some(Over::Counted);
        }
        loop {
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                return None;
            }
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(now));
            match hears.recv_timeout(left.min(LOOK)) {
                Ok(over) => return Some(over),
                Err(RecvTimeoutError::Disconnected) => return Some(Over::FromEnded),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let so_far = passed.load(Ordering::Relaxed);
            if so_far != told && told_at.elapsed() >= TELL {
                context.tell(format!("note: {so_far} events have passed"));
                (told, told_at) = (so_far, Instant::now());
            }
        }
    }
}

fn ended(side: &Side) -> Failure {
    let what = format!("the channel {} has ended the connection", side.name);
    let next = "look whether it is there, and run the bridge again";
    Failure::new(codes::EVENTS, Exit::Failed, what, next)
}

/// The one channel has ended the connection, after the other had refused events.
fn given_up(to: &Side, raised: &SystemException) -> Failure {
    let what = format!("the channel {} refuses an event with {raised}", to.name);
    let next = match raised.kind {
        ExceptionKind::ImpLimit => TOO_LARGE,
        _ => "look into its log; nothing else passes before that event does, or is given up",
    };
    Failure::new(codes::EVENTS, Exit::Failed, what, next)
}

#[cfg(test)]
mod tests {
    use quorba_corba::Any;

    use super::*;

    fn event(number: Option<u64>, text: &str) -> Arrival {
        Arrival { number, data: Any::new(&text.to_owned()).expect("a value") }
    }

    const fn raised(minor: u32, completed: Completion) -> SystemException {
        SystemException { kind: ExceptionKind::Transient, minor, completed }
    }

    #[test]
    fn of_two_equal_events_in_a_row_the_number_says_which_is_in_doubt() {
        let mut doubt = Doubt::default();
        doubt.after(&event(Some(7), "on"), Err(raised(0, Completion::Maybe)));
        assert!(doubt.is_of(&event(Some(7), "on")));
        assert!(!doubt.is_of(&event(Some(8), "on")), "it is another one");
        // Numbers may begin anew.
        assert!(!doubt.is_of(&event(Some(7), "off")));
        doubt.passed_on();
        assert!(doubt.is_of(&event(Some(7), "on")), "a reliable channel comes again in any case");
        doubt.after(&event(Some(7), "on"), Ok(()));
        assert!(!doubt.is_of(&event(Some(7), "on")));
    }

    #[test]
    fn without_numbers_an_equal_event_is_the_same_only_if_the_channel_was_told_to_come_again() {
        let mut doubt = Doubt::default();
        let on = event(None, "on");
        doubt.after(&on, Err(raised(0, Completion::Maybe)));
        assert!(doubt.is_of(&on));
        assert!(!doubt.is_of(&event(None, "off")));
        doubt.passed_on();
        assert!(!doubt.is_of(&on), "nobody told the channel to come again with it");
        for certain in [raised(0, Completion::No), raised(FULL, Completion::Maybe)] {
            doubt.after(&on, Err(certain));
            assert!(!doubt.is_of(&on), "it was not taken: {certain}");
        }
    }
}
