//! `quorba events bridge`: passes the events of one channel on to another one, of whatever event
//! service.
//!
//! What it is not: a link that sends events back; two bridges do that, and an event goes round
//! between them for ever.
//!
//! Invariants: an event is taken only when the other channel has taken it, so as long as the bridge
//! runs what a reliable channel gives is not lost. A bridge that begins anew is another consumer:
//! it is given what is pushed from then on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Object};
use quorba_idl::cos_event_channel_admin::ProxyPushConsumerStub;
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_orb::Client;
use serde_json::json;

use super::subscribe::{self, LOOK, Listen, Until};
use super::{Channels, Whose, publish};
use crate::command::serve::is_passing;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;

/// How long one event is offered before the channel that it comes from is told to come again.
const OFFER: Duration = Duration::from_secs(5);
/// Before a channel is tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// How often is told how many have passed.
const TELL: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct Bridge {
    /// Where events come from: a channel, or the reference of one of another service
    ///
    /// A reference begins with IOR: or corbaloc: and is that of a
    /// CosEventChannelAdmin::EventChannel, such as one of omniEvents.
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
    channel: Object,
    whose: Whose,
}

impl Side {
    fn find(service: &mut Channels, name: &str) -> Result<Self, Failure> {
        if !reference::is_reference(name) {
            let channel = service.channel(name)?;
            return Ok(Self { name: name.to_owned(), channel, whose: Whose::Ours });
        }
        let channel = reference::resolve(name).map(Object)?;
        Ok(Self { name: format!("{name:.60}"), channel, whose: Whose::Foreign })
    }
}

/// What the servant has to say.
enum Over {
    FromEnded,
    ToEnded,
    Counted,
}

struct Passing {
    to: Client,
    passed: Arc<AtomicU64>,
    count: Option<u64>,
    said: SyncSender<Over>,
}

impl PushConsumer for Passing {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        if self.count.is_some_and(|count| self.passed.load(Ordering::Relaxed) >= count) {
            return Err(cos_event_comm::Disconnected {}.into());
        }
        let until = Instant::now() + OFFER;
        loop {
            match ProxyPushConsumerStub(&mut self.to).push(&data) {
                Ok(()) => break,
                Err(PushError::System(raised))
                    if is_passing(raised.kind) && Instant::now() < until =>
                {
                    thread::sleep(AGAIN);
                }
                Err(PushError::System(raised)) => return Err(PushError::System(raised)),
                Err(PushError::Disconnected(gone)) => {
                    let _ = self.said.try_send(Over::ToEnded);
                    return Err(gone.into());
                }
            }
        }
        let passed = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
        if self.count.is_some_and(|count| passed >= count) {
            let _ = self.said.try_send(Over::Counted);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        let _ = self.said.try_send(Over::FromEnded);
        Ok(())
    }
}

impl Bridge {
    pub(super) fn run(self, context: &Context, service: &mut Channels) -> Result<Exit, Failure> {
        let from = Side::find(service, &self.from)?;
        let to = Side::find(service, &self.to)?;
        let passed = Arc::new(AtomicU64::new(0));
        let (said, hears) = sync_channel(4);
        let proxy = publish::connect(service, &to.channel, to.whose)?;
        let passing = Passing {
            to: service.way(&proxy, to.whose)?,
            passed: Arc::clone(&passed),
            count: self.until.count,
            said,
        };
        let (_server, consumer) = self.listen.serve(&from.channel, passing)?;
        let mut subscription = subscribe::connect(service, &from.channel, &consumer, from.whose)?;
        context.tell(format!("note: events of {} go to {}", from.name, to.name));
        let over = self.wait(context, &hears, &passed);
        if !matches!(over, Some(Over::FromEnded)) {
            subscription.end();
        }
        if !matches!(over, Some(Over::ToEnded)) {
            let mut client = service.way(&proxy, to.whose)?;
            let _ = ProxyPushConsumerStub(&mut client).disconnect_push_consumer();
        }
        let passed = passed.load(Ordering::Relaxed);
        let shown = json!({ "from": from.name, "to": to.name, "passed": passed });
        let ended = |side: &Side| {
            let what = format!("the channel {} has ended the connection", side.name);
            let next = "look whether it is there, and run the bridge again";
            Failure::new(codes::EVENTS, Exit::Failed, what, next).data(shown.clone())
        };
        match over {
            Some(Over::FromEnded) => return Err(ended(&from)),
            Some(Over::ToEnded) => return Err(ended(&to)),
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
