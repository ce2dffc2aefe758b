//! `quorba events sub`: a consumer that prints what it is pushed.
//!
//! Invariants: what a reliable channel gives is printed once, when it comes; who calls never waits
//! for the printing; at the end the channel is told that nobody is there any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use clap::Args;
use quorba_corba::Any;
use quorba_idl::cos_event_comm;
use quorba_idl::cos_event_comm::push_consumer::PushError;
use serde_json::json;

use super::ending::Ending;
use super::source::{Arrival, Listen, Source, Taker, later};
use super::{Channels, value};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Events that wait to be printed; beyond, the channel keeps them, and calls again.
const WAITING: usize = 64;
/// How often is looked whether somebody still reads.
pub(super) const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(super) struct Subscribe {
    /// The channel
    name: String,

    #[command(flatten)]
    until: Until,

    #[command(flatten)]
    listen: Listen,
}

/// When a consumer ends by itself.
#[derive(Debug, Args)]
pub(super) struct Until {
    /// End after so many events
    #[arg(long, value_name = "COUNT")]
    pub(super) count: Option<u64>,

    /// End after so long [default: when it is interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = crate::args::duration)]
    span: Option<Duration>,
}

impl Until {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.span.map(|span| Instant::now() + span)
    }

    /// The time is over before all events came.
    pub(super) fn too_early(seen: u64) -> Failure {
        let what = format!("{seen} events came in time");
        Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, "--for waits longer")
    }
}

enum FromChannel {
    Event(Any),
    End,
}

struct Printer {
    events: SyncSender<FromChannel>,
    has_ended: Arc<AtomicBool>,
}

impl Taker for Printer {
    fn take(&mut self, event: Arrival, _: Instant) -> Result<(), PushError> {
        self.events.try_send(FromChannel::Event(event.data)).map_err(|error| match error {
            // The channel keeps it. To wait here would keep its call waiting until that has no
            // time left, and then the event comes again, though it is printed.
            TrySendError::Full(_) => PushError::System(later()),
            TrySendError::Disconnected(_) => cos_event_comm::Disconnected {}.into(),
        })
    }

    fn ended(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        // If there is no room whoever prints sees it behind what waits.
        let _ = self.events.try_send(FromChannel::End);
    }
}

impl Subscribe {
    pub(super) fn run(
        self,
        context: &Context,
        service: &mut Channels,
        ending: &Ending,
    ) -> Result<Exit, Failure> {
        let source = Source::find(service, &self.name)?;
        let (events, said) = sync_channel(WAITING);
        let has_ended = Arc::new(AtomicBool::new(false));
        let printer = Printer { events, has_ended: Arc::clone(&has_ended) };
        let mut subscription = source.connect(service, &self.listen, printer, ending)?;
        context.tell(format!("note: subscribed to {}", self.name));
        let ended = self.print(context, &said, &has_ended);
        // What comes now is refused.
        drop(said);
        if !matches!(ended, Ok(End::OfChannel)) {
            subscription.end();
        }
        match ended? {
            End::OfChannel => {
                let what = format!("the channel {} has ended the subscription", self.name);
                let next = "quorba events show says whether it is there; it ends consumers that \
                            cannot be called or have no room";
                Err(Failure::new(codes::EVENTS, Exit::Failed, what, next))
            }
            End::Wanted => Ok(Exit::Ok),
            End::TooEarly(seen) => Err(Until::too_early(seen)),
        }
    }

    /// Prints what comes, until there is a reason to end.
    fn print(
        &self,
        context: &Context,
        said: &Receiver<FromChannel>,
        has_ended: &AtomicBool,
    ) -> Result<End, Failure> {
        let (until, count) = (self.until.deadline(), self.until.count);
        let mut seen = 0_u64;
        loop {
            if count.is_some_and(|count| seen >= count) {
                return Ok(End::Wanted);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(if count.is_some() { End::TooEarly(seen) } else { End::Wanted });
            }
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            match said.recv_timeout(left.min(LOOK)) {
                Ok(FromChannel::Event(event)) => {
                    seen += 1;
                    let value = value::shown(&event);
                    match context.is_json() {
                        true => context.print_json(&json!({ "number": seen, "event": value }))?,
                        false => context.print(&format!("{value}\n"))?,
                    }
                }
                Ok(FromChannel::End) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(End::OfChannel);
                }
                Err(RecvTimeoutError::Timeout) if has_ended.load(Ordering::SeqCst) => {
                    return Ok(End::OfChannel);
                }
                Err(RecvTimeoutError::Timeout) if context.nobody_reads() => return Ok(End::Wanted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Why no more is printed.
enum End {
    Wanted,
    OfChannel,
    TooEarly(u64),
}
