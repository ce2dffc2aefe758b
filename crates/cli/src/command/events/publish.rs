//! `quorba events pub`: pushes values to a channel.
//!
//! Invariant: an event that was taken is counted; the first that is not ends it, and says how many
//! were.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use quorba_corba::{Any, Object};
use quorba_giop::{ExceptionKind, MinorCode, QUORBA_VMCID};
use quorba_idl::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use quorba_idl::cos_event_channel_admin::{
    EventChannelStub, ProxyPushConsumerStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use serde_json::{Value, json};

use super::ending::{End, Ending};
use super::{Channels, DEADLINE, Whose, connected_already, not_done, value};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// Before a channel is tried again whose consumers have no room.
const AGAIN: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub(super) struct Publish {
    /// The channel
    name: String,

    /// Events: JSON, or texts that are no JSON
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    events: Vec<String>,

    /// A file with one event of JSON on each line; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A text that is no JSON is itself.
fn event(text: &str) -> Option<Any> {
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    value::read(&value)
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(file))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let what = format!("{} cannot be read: {}", path.display(), system_reason(error));
    Failure::new(codes::FILE, Exit::Failed, what, "give a file with one event on each line")
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
    let admin = admin.map_err(|raised| not_done(&raised))?;
    let mut admin = service.way(&admin, whose)?;
    let proxy = ending.open(|| {
        let proxy = SupplierAdminStub(&mut admin).obtain_push_consumer();
        let proxy = proxy.map_err(|raised| not_done(&raised))?;
        let mut client = service.way_to_end(&proxy, whose)?;
        let end: End = Box::new(move || {
            let _ = ProxyPushConsumerStub(&mut client).disconnect_push_consumer();
        });
        Ok((proxy, end))
    })?;
    let mut client = service.way(&proxy, whose)?;
    match ProxyPushConsumerStub(&mut client).connect_push_supplier(&Object::nil()) {
        Ok(()) => Ok(proxy),
        Err(ConnectPushSupplierError::System(raised)) => Err(not_done(&raised)),
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
        let channel = service.channel(&self.name)?;
        let proxy = connect(service, &channel, Whose::Ours, ending)?;
        let mut client = service.way(&proxy, Whose::Ours)?;
        let mut stub = ProxyPushConsumerStub(&mut client);
        let (mut taken, mut failed) = (0_u64, None);
        for text in self.texts()? {
            match text.and_then(|text| push(context, &mut stub, &text)) {
                Ok(()) => taken += 1,
                Err(failure) => {
                    failed = Some(failure.data(json!({ "pushed": taken })));
                    break;
                }
            }
        }
        // The proxy would stay.
        let mut client = service.way_to_end(&proxy, Whose::Ours)?;
        let _ = ProxyPushConsumerStub(&mut client).disconnect_push_consumer();
        if let Some(failure) = failed {
            return Err(failure);
        }
        match context.is_json() {
            true => context.print_json(&json!({ "name": self.name, "pushed": taken }))?,
            false => context.print(&format!("pushed: {taken}\n"))?,
        }
        Ok(Exit::Ok)
    }

    fn texts(&self) -> Result<Box<dyn Iterator<Item = Result<String, Failure>> + '_>, Failure> {
        let Some(path) = &self.file else {
            return Ok(Box::new(self.events.iter().cloned().map(Ok)));
        };
        let lines = BufReader::new(open(path)?).lines();
        Ok(Box::new(lines.map(|line| line.map_err(|error| unreadable(path, &error)))))
    }
}

/// Pushes until there is room for it, or the deadline passes.
fn push(
    context: &Context,
    proxy: &mut ProxyPushConsumerStub<'_>,
    text: &str,
) -> Result<(), Failure> {
    let data = event(text).ok_or_else(|| {
        let what = format!("{text:.80} cannot be an event");
        let next = "an event is JSON of at most 24 levels; its whole numbers have at most 64 bits, \
                    its objects a member at least, whose names have a character at least and \
                    take 64 KiB at most, and neither names nor texts have a zero";
        Failure::new(codes::USAGE, Exit::Usage, what, next)
    })?;
    let full = QUORBA_VMCID | MinorCode::ConsumerFull.number();
    loop {
        match proxy.push(&data) {
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
            Err(PushError::System(raised)) => return Err(not_done(&raised)),
            Err(PushError::Disconnected(_)) => {
                let what = "the channel has ended the connection";
                return Err(Failure::new(codes::EVENTS, Exit::Failed, what, "try again"));
            }
        }
    }
}
