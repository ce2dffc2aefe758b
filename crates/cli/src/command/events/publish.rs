//! `quorba events pub`: pushes values to a channel.
//!
//! Invariant: an event that was taken is counted; the first that is not ends it, and says how many
//! were.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ::quorba_events::Limits;
use clap::Args;
use quorba_corba::{Any, Object};
use quorba_giop::{ExceptionKind, MinorCode, QUORBA_VMCID};
use quorba_idl::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use quorba_idl::cos_event_channel_admin::{
    EventChannelStub, ProxyPushConsumerStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use serde_json::json;

use super::ending::{End, Ending};
use super::{Channels, DEADLINE, TOO_LARGE, Whose, connected_already, input, not_done, refused};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::size;

/// Before a channel is tried again whose consumers have no room.
const AGAIN: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub(super) struct Publish {
    /// The channel
    name: String,

    /// Events: JSON, or texts that are no JSON
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    #[arg(allow_negative_numbers = true)]
    events: Vec<String>,

    /// A file with one event of JSON on each line that is not empty; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Connects a supplier to a channel, that calls and is not called: the proxy to which it pushes. A
/// signal ends it.
pub(super) fn connect(
    service: &Channels,
    channel: &Object,
    whose: Whose,
    ending: &Ending,
) -> Result<Object, Failure> {
    let admin = EventChannelStub(&mut service.way(channel, whose)?).for_suppliers();
    let admin = admin.map_err(|raised| refused(whose, &raised))?;
    let mut admin = service.way(&admin, whose)?;
    let proxy = ending.open(|| {
        let proxy = SupplierAdminStub(&mut admin).obtain_push_consumer();
        let proxy = proxy.map_err(|raised| refused(whose, &raised))?;
        let mut client = service.way_to_end(&proxy, whose)?;
        let end: End = Box::new(move || {
            let _ = ProxyPushConsumerStub(&mut client).disconnect_push_consumer();
        });
        Ok((proxy, end))
    })?;
    let mut client = service.way(&proxy, whose)?;
    match ProxyPushConsumerStub(&mut client).connect_push_supplier(&Object::nil()) {
        Ok(()) => Ok(proxy),
        Err(ConnectPushSupplierError::System(raised)) => Err(refused(whose, &raised)),
        Err(ConnectPushSupplierError::AlreadyConnected(_)) => Err(connected_already()),
    }
}

impl Publish {
    pub(super) fn run(
        self,
        context: &Context,
        service: &mut Channels,
        ending: &Ending,
    ) -> Result<Exit, Failure> {
        let events = match &self.file {
            Some(path) => input::file(path)?,
            None => input::arguments(&self.events),
        };
        let channel = service.channel(&self.name)?;
        let proxy = connect(service, &channel, Whose::Ours, ending)?;
        let mut client = service.way(&proxy, Whose::Ours)?;
        let mut stub = ProxyPushConsumerStub(&mut client);
        let mut taken = 0_u64;
        for event in events {
            // What is open, the proxy too, is ended after a failure.
            event.and_then(|event| push(context, &mut stub, &event)).map_err(|mut failure| {
                if taken > 0 {
                    failure.what += &format!("; {taken} were pushed before it");
                }
                failure.data(json!({ "pushed": taken }))
            })?;
            taken += 1;
        }
        // The proxy would stay.
        let mut client = service.way_to_end(&proxy, Whose::Ours)?;
        let _ = ProxyPushConsumerStub(&mut client).disconnect_push_consumer();
        match context.is_json() {
            true => context.print_json(&json!({ "name": self.name, "pushed": taken }))?,
            false => context.print(&format!("pushed: {taken}\n"))?,
        }
        Ok(Exit::Ok)
    }
}

/// An event that is larger than any may be, or than this service takes.
fn too_large(event: &Any) -> Failure {
    let what = format!("an event of {} is larger than one may be", size(event.size() as u64));
    Failure::new(codes::EVENTS, Exit::Failed, what, TOO_LARGE)
}

/// Pushes until there is room for it, or the deadline passes.
fn push(
    context: &Context,
    proxy: &mut ProxyPushConsumerStub<'_>,
    event: &Any,
) -> Result<(), Failure> {
    // A gateway might not even read it.
    if event.size() > Limits::default().event_bytes_max {
        return Err(too_large(event));
    }
    let full = QUORBA_VMCID | MinorCode::ConsumerFull.number();
    loop {
        match proxy.push(event) {
            Ok(()) => return Ok(()),
            Err(PushError::System(raised))
                if raised.kind == ExceptionKind::Transient && raised.minor == full =>
            {
                if context.deadline(DEADLINE).has_passed() {
                    let what = "the deadline passed while a consumer had no room";
                    let next = "quorba events show says which; --timeout waits longer";
                    return Err(Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next));
                }
                thread::sleep(AGAIN);
            }
            // Between two attempts.
            Err(PushError::System(raised)) if raised.kind == ExceptionKind::Timeout => {
                let what = format!("the deadline passed before an event was taken: {raised}");
                let next = "quorba events show says whether a consumer has no room, quorba status \
                            whether the group takes requests; --timeout waits longer";
                return Err(Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next));
            }
            Err(PushError::System(raised)) if raised.kind == ExceptionKind::ImpLimit => {
                return Err(too_large(event));
            }
            Err(PushError::System(raised)) => return Err(not_done(&raised)),
            Err(PushError::Disconnected(_)) => {
                let what = "the channel has ended the connection";
                return Err(Failure::new(codes::EVENTS, Exit::Failed, what, "try again"));
            }
        }
    }
}
