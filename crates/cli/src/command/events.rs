//! `quorba events`: the domain's event channels, for people and scripts.
//!
//! What it is not: tied to the domain's own service. With `--at` it asks any gateway of one.
//!
//! Invariants: calls are repeated under one identity until they are answered or the deadline
//! passes, so none is executed twice; a channel that is not there is a failure.

mod bridge;
mod ending;
mod input;
mod publish;
mod source;
mod subscribe;
mod value;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use quorba_base::channel::ChannelRule;
use quorba_config::Service;
use quorba_corba::Object;
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_events::SERVICE_KEY;
use quorba_giop::corbaloc::{Corbaloc, HostPort};
use quorba_giop::{CodeSets, Endian};
use quorba_idl::quorba_events::channels::{
    ChannelError, CreateError, DisconnectError, EndedError, RemoveError, ShowError,
};
use quorba_idl::quorba_events::{
    ChannelInfo, ChannelsStub, EndFigures, EndedProxy, Missing, ProxyInfo,
};
use quorba_orb::{Client, ClientOptions, Reference, Repeat, time_t};
use serde_json::{Value, json};

use self::ending::Ending;
use super::ior;
use super::serve::is_passing;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;
use crate::text::{grouped, table};

const DEADLINE: Duration = Duration::from_secs(30);

/// What to do about an event that is larger than one may be.
const TOO_LARGE: &str = "an event has at most 4 MiB where the ring makes the order, and 879,520 \
                         octets where Corosync does: push less at once, or where it can be read";

/// Show and use the domain's event channels
#[derive(Debug, Args)]
pub struct Events {
    #[command(subcommand)]
    action: Action,

    /// An event service that is not the domain's: HOST:PORT,... of its gateways
    #[arg(long, global = true, value_name = "HOST:PORT,...")]
    at: Option<String>,

    /// The domain file
    #[arg(short, long, global = true, value_name = "FILE", env = "QUORBA_CONFIG")]
    #[arg(hide_env_values = true, default_value = "quorba.toml")]
    config: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the channels
    Ls,
    /// Show a channel: its settings, and who is connected to it
    Show {
        /// The channel
        name: String,
    },
    /// Show what a channel does: events per second, and what waits
    Stats {
        /// The channel [default: all of them]
        name: Option<String>,

        /// How long to look
        #[arg(long = "for", value_name = "TIME", default_value = "1s")]
        #[arg(value_parser = crate::args::duration)]
        span: Duration,
    },
    /// Print the events of a channel as they come
    Sub(subscribe::Subscribe),
    /// Push events to a channel
    Pub(publish::Publish),
    /// Pass the events of one channel on to another one, also of another event service
    Bridge(bridge::Bridge),
    /// Make a channel
    ///
    /// To make it again with the same settings changes nothing.
    Create {
        /// The channel
        name: String,

        /// As in the domain file, such as reliable=true queue_events=100
        #[arg(value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// End a channel that is not in the domain file; everybody connected is told
    Rm {
        /// The channel
        name: String,
    },
    /// End a proxy of a channel, whose client has gone for good
    ///
    /// If somebody is still connected to it they are told by their disconnect operation, and what
    /// waits for them is gone.
    Disconnect {
        /// The channel
        #[arg(value_name = "CHANNEL")]
        name: String,

        /// The number of the proxy, as quorba events show has it
        proxy: u64,
    },
}

impl Events {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let mut service = Channels::find(context, self.at.as_deref(), &self.config)?;
        match self.action {
            Action::Ls => ls(context, &mut service),
            Action::Show { name } => show(context, &mut service, &name),
            Action::Stats { name, span } => stats(context, &mut service, name.as_deref(), span),
            Action::Sub(subscribe) => {
                let ending = Ending::watch(context)?;
                ending.after(subscribe.run(context, &mut service, &ending))
            }
            Action::Pub(publish) => {
                let ending = Ending::watch(context)?;
                ending.after(publish.run(context, &mut service, &ending))
            }
            Action::Bridge(bridge) => {
                let ending = Ending::watch(context)?;
                ending.after(bridge.run(context, &mut service, &ending))
            }
            Action::Create { name, settings } => {
                create(context, &mut service, &name, &settings.join(" "))
            }
            Action::Rm { name } => remove(context, &mut service, &name),
            Action::Disconnect { name, proxy } => disconnect(context, &mut service, &name, proxy),
        }
    }
}

/// Whose event service it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// One of Quorba, whose gateways know a call again that is repeated.
    Ours,
    /// Any other: no call to it is repeated.
    Foreign,
}

/// The service's object that knows all channels.
struct Channels {
    client: Client,
    options: ClientOptions,
}

impl Channels {
    fn find(
        context: &Context,
        at: Option<&str>,
        config: &std::path::Path,
    ) -> Result<Self, Failure> {
        let deadline = context.deadline(DEADLINE);
        let code_sets = Some(CodeSets::UTF);
        let options = ClientOptions {
            call_timeout: Some(deadline.left()),
            code_sets,
            repeat: Some(Repeat::new("quorba-events", 0)),
            // The group may want more members than are in for a subscription; who only looks, or
            // ends something, is not to be refused for that.
            transaction_depth: Some(1),
            ..ClientOptions::default()
        };
        let reference = match at {
            Some(at) => {
                let places: Vec<String> =
                    at.split(',').map(|place| format!("iiop:1.2@{place}")).collect();
                let text = format!("corbaloc:{}/{SERVICE_KEY}", places.join(","));
                Reference::parse(&text).map_err(|error| {
                    let what = format!("--at {at}: {error}");
                    let next = "give hosts and ports, such as n1:2812,n2:2812";
                    Failure::new(codes::REFERENCE, Exit::Usage, what, next)
                })?
            }
            None => of_domain(context, config)?,
        };
        Ok(Self { client: Client::new(&reference, options.clone()), options })
    }

    fn stub(&mut self) -> ChannelsStub<'_> {
        ChannelsStub(&mut self.client)
    }

    /// A way to an object by which what this program has there is ended: not refused because too
    /// few members are in for something new, and not waited for for long.
    fn way_to_end(&self, object: &Object, whose: Whose) -> Result<Client, Failure> {
        let transaction_depth = (whose == Whose::Ours).then_some(1);
        let mut client = self.way_with(object, whose, transaction_depth)?;
        client.limit(Some(ending::END_WITHIN));
        Ok(client)
    }

    /// A way to an object of an event service.
    fn way(&self, object: &Object, whose: Whose) -> Result<Client, Failure> {
        self.way_with(object, whose, None)
    }

    fn way_with(
        &self,
        object: &Object,
        whose: Whose,
        transaction_depth: Option<u32>,
    ) -> Result<Client, Failure> {
        let reference = Reference::from_ior(&object.0).map_err(|error| {
            let what = format!("the event service gave a reference without an address: {error}");
            let next = match whose {
                Whose::Ours => "look at the `host` of each node",
                Whose::Foreign => "look at the address that the other event service publishes",
            };
            Failure::new(codes::EVENTS, Exit::Failed, what, next)
        })?;
        let options = ClientOptions { transaction_depth, ..self.options.clone() };
        Ok(Client::new(
            &reference,
            match whose {
                Whose::Ours => {
                    let repeat = Some(Repeat::new("quorba-events", 0));
                    ClientOptions { repeat, ..options }
                }
                Whose::Foreign => {
                    let code_sets = reference::code_sets(&object.0);
                    ClientOptions { repeat: None, code_sets, ..options }
                }
            },
        ))
    }

    /// A channel in the standard's form.
    fn channel(&mut self, name: &str) -> Result<Object, Failure> {
        self.stub().channel(&name.to_owned()).map_err(|error| match error {
            ChannelError::NoSuchChannel(_) => no_such(name),
            ChannelError::System(raised) => not_done(&raised),
        })
    }
}

fn of_domain(context: &Context, config: &std::path::Path) -> Result<Reference, Failure> {
    let domain = context.load(config)?;
    let ior = ior::of_group(context, &domain, Service::Events.as_str(), None);
    let ior = ior.map_err(|failure| match failure.code {
        codes::NOT_IN_DOMAIN => {
            let what = format!("domain {} has no event service", domain.id);
            let next = "write [service.events] into the domain file and run quorba config apply; \
                        or name the gateways of another one with --at";
            Failure::new(codes::NOT_IN_DOMAIN, failure.exit, what, next)
        }
        _ => failure,
    })?;
    Reference::from_ior(&ior).map_err(|error| {
        let what = format!("the event service has no address: {error}");
        Failure::new(codes::REFERENCE, Exit::Failed, what, "look at [service.events]")
    })
}

fn no_such(name: &str) -> Failure {
    let what = format!("there is no channel {name:?}");
    Failure::new(codes::EVENTS, Exit::Failed, what, "quorba events ls shows those that there are")
}

fn not_done(raised: &SystemException) -> Failure {
    refused(Whose::Ours, raised)
}

/// The same of any event service.
fn refused(whose: Whose, raised: &SystemException) -> Failure {
    use ExceptionKind::{BadOperation, ImpLimit, ObjectNotExist};
    let (who, next) = match (whose, raised.kind) {
        (Whose::Ours, ImpLimit) => (
            "the event service",
            "one of its bounds is reached: docs/how-to/events.md has them all",
        ),
        (Whose::Ours, ObjectNotExist | BadOperation) => (
            "the event service",
            "look whether --at names the gateways of an event service, and whether the channel \
             is still there: quorba events ls",
        ),
        (Whose::Ours, _) => {
            ("the event service", "quorba status shows whether its group takes requests")
        }
        (Whose::Foreign, kind) if is_passing(kind) => (
            "the other event service",
            "look whether it runs, and whether the reference is of the one that runs now",
        ),
        (Whose::Foreign, _) => (
            "the other event service",
            "give the reference of a CosEventChannelAdmin::EventChannel",
        ),
    };
    let what = format!("{who} answers with {raised}");
    Failure::new(codes::NO_REPLY, Exit::Failed, what, next)
}

/// A proxy that was made for this program has somebody else.
fn connected_already() -> Failure {
    let what = "somebody else has connected to the proxy that was made for this program";
    Failure::new(codes::EVENTS, Exit::Failed, what.to_owned(), "run it again: it gets another one")
}

fn rule(info: &ChannelInfo) -> Option<ChannelRule> {
    ChannelRule::parse(&info.settings).ok()
}

fn as_json(info: &ChannelInfo) -> Value {
    let settings: serde_json::Map<String, Value> = info
        .settings
        .split_ascii_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| {
            let read = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            (key.to_owned(), read)
        })
        .collect();
    json!({
        "name": info.name,
        "settings": settings,
        "in_domain_file": info.is_filed,
        "changes": info.changes,
        "consumers": info.consumers,
        "suppliers": info.suppliers,
        "pushed": info.pushed,
        "refused": info.refused,
        "left_out": info.left_out,
        "delivered": info.delivered,
        "dropped": info.dropped,
        "waiting": info.waiting,
        "waiting_bytes": info.waiting_bytes,
        "ior": info.channel.0.stringify(Endian::Big),
    })
}

/// What is said of each channel, here and in the status.
pub(super) const HEADINGS: [&str; 9] = [
    "CHANNEL",
    "RELIABLE",
    ">CONSUMERS",
    ">SUPPLIERS",
    ">PUSHED",
    ">REFUSED",
    ">DELIVERED",
    ">DROPPED",
    ">WAITING",
];

fn row(info: &ChannelInfo) -> Vec<String> {
    let is_reliable = rule(info).is_some_and(|rule| rule.reliable);
    vec![
        info.name.clone(),
        if is_reliable { "yes" } else { "no" }.to_owned(),
        info.consumers.to_string(),
        info.suppliers.to_string(),
        grouped(info.pushed),
        grouped(info.refused),
        grouped(info.delivered),
        grouped(info.dropped),
        grouped(info.waiting),
    ]
}

fn ls(context: &Context, service: &mut Channels) -> Result<Exit, Failure> {
    let all = service.stub().list().map_err(|raised| not_done(&raised))?;
    if context.is_json() {
        for info in &all {
            context.print_json(&as_json(info))?;
        }
    } else if !all.is_empty() {
        context.print(&table(&HEADINGS, all.iter().map(row).collect()))?;
    }
    for Missing { name, why } in service.stub().missing().map_err(|raised| not_done(&raised))? {
        match context.is_json() {
            true => context.print_json(&json!({ "name": name, "missing": why }))?,
            false => context.print(&format!("missing: {name}: {why}\n"))?,
        }
    }
    Ok(Exit::Ok)
}

fn info(service: &mut Channels, name: &str) -> Result<(ChannelInfo, Vec<ProxyInfo>), Failure> {
    service.stub().show(&name.to_owned()).map_err(|error| match error {
        ShowError::NoSuchChannel(_) => no_such(name),
        ShowError::System(raised) => not_done(&raised),
    })
}

/// Which proxies the channel has ended; nothing if the service is of a version that does not say.
fn ended(service: &mut Channels, name: &str) -> Result<Option<EndFigures>, Failure> {
    match service.stub().ended(&name.to_owned()) {
        Ok(figures) => Ok(Some(figures)),
        Err(EndedError::NoSuchChannel(_)) => Err(no_such(name)),
        Err(EndedError::System(raised)) if raised.kind == ExceptionKind::BadOperation => Ok(None),
        Err(EndedError::System(raised)) => Err(not_done(&raised)),
    }
}

fn ended_as_json(figures: &EndFigures) -> Value {
    let last = figures.last.iter().map(|one| {
        json!({
            "id": one.id,
            "is": if one.is_consumer { "consumer" } else { "supplier" },
            "peer": one.place,
            "why": one.why,
            "ago_ms": ago(one).as_millis() as u64,
        })
    });
    let mut counts = end_counts_as_json(figures);
    counts["last"] = last.collect();
    counts
}

fn end_counts_as_json(figures: &EndFigures) -> Value {
    json!({
        "too_slow": figures.too_slow,
        "holds_too_much": figures.holds_too_much,
        "too_large": figures.too_large,
        "gone": figures.gone,
        "raises": figures.raising,
    })
}

/// How many the channel has ended, for whatever reason.
const fn all_ended(figures: &EndFigures) -> u64 {
    let EndFigures { too_slow, holds_too_much, too_large, gone, raising, .. } = figures;
    *too_slow + *holds_too_much + *too_large + *gone + *raising
}

fn ago(one: &EndedProxy) -> Duration {
    Duration::from_micros(time_t().saturating_sub(one.at) / 10)
}

fn show_ended(context: &Context, figures: &EndFigures) -> Result<(), Failure> {
    for one in &figures.last {
        let whose = if one.is_consumer { "consumer" } else { "supplier" };
        let EndedProxy { id, place, why, .. } = one;
        let seconds = ago(one).as_secs();
        context.print(&format!("ended {seconds} s ago: {whose} {id} ({place}): {why}\n"))?;
    }
    let EndFigures { too_slow, holds_too_much, too_large, gone, raising, .. } = figures;
    if all_ended(figures) > figures.last.len() as u64 {
        context.print(&format!(
            "ended in all: {too_slow} too-slow, {holds_too_much} holds-too-much, {too_large} \
             too-large, {gone} gone, {raising} raises\n"
        ))?;
    }
    Ok(())
}

fn peer(proxy: &ProxyInfo) -> String {
    match (proxy.is_connected, proxy.peer.is_nil()) {
        (false, _) => "nobody yet".to_owned(),
        (true, true) => "connected, not called".to_owned(),
        (true, false) => {
            let place = proxy.peer.0.endpoints().into_iter().next();
            place.map_or_else(String::new, |one| HostPort(&one.host, one.port).to_string())
        }
    }
}

fn show(context: &Context, service: &mut Channels, name: &str) -> Result<Exit, Failure> {
    let (info, proxies) = info(service, name)?;
    let ended = ended(service, name)?;
    if context.is_json() {
        let mut shown = as_json(&info);
        shown["ended"] = ended.as_ref().map_or(Value::Null, ended_as_json);
        let list = proxies.iter().map(|proxy| {
            json!({
                "id": proxy.id,
                "is": if proxy.is_consumer { "consumer" } else { "supplier" },
                "form": proxy.form,
                "connected": proxy.is_connected,
                "suspended": proxy.is_suspended,
                "peer": peer(proxy),
                "delivered": proxy.delivered,
                "dropped": proxy.dropped,
                "failed": proxy.failed,
                "waiting": proxy.waiting,
                "waiting_bytes": proxy.waiting_bytes,
            })
        });
        shown["proxies"] = list.collect();
        context.print_json(&shown)?;
        return Ok(Exit::Ok);
    }
    context.print(&table(&HEADINGS, vec![row(&info)]))?;
    context.print(&format!("settings: {}\n", info.settings))?;
    if let Some(place) = Corbaloc::from_ior(&info.channel.0) {
        context.print(&format!("channel: {place}\n"))?;
    }
    if !proxies.is_empty() {
        let headings =
            [">PROXY", "IS", "FORM", "AT", ">DELIVERED", ">DROPPED", ">FAILED", ">WAITING"];
        let rows = proxies.iter().map(|proxy| {
            vec![
                proxy.id.to_string(),
                if proxy.is_consumer { "consumer" } else { "supplier" }.to_owned(),
                format!("{}{}", proxy.form, if proxy.is_suspended { ", suspended" } else { "" }),
                peer(proxy),
                grouped(proxy.delivered),
                grouped(proxy.dropped),
                grouped(proxy.failed),
                grouped(proxy.waiting),
            ]
        });
        context.print(&table(&headings, rows.collect()))?;
    }
    if let Some(ended) = &ended {
        show_ended(context, ended)?;
    }
    Ok(Exit::Ok)
}

fn stats(
    context: &Context,
    service: &mut Channels,
    name: Option<&str>,
    span: Duration,
) -> Result<Exit, Failure> {
    let mut look = || -> Result<Vec<ChannelInfo>, Failure> {
        match name {
            Some(name) => Ok(vec![info(service, name)?.0]),
            None => service.stub().list().map_err(|raised| not_done(&raised)),
        }
    };
    let (before, begin) = (look()?, Instant::now());
    thread::sleep(span);
    let (after, seconds) = (look()?, begin.elapsed().as_secs_f64());
    let ends = |name: &str, service: &mut Channels| match ended(service, name) {
        Ok(figures) => Ok(figures),
        // It has ended meanwhile.
        Err(failure) if failure.code == codes::EVENTS => Ok(None),
        Err(failure) => Err(failure),
    };
    let mut rows = Vec::new();
    for info in &after {
        let Some(old) = before.iter().find(|old| old.name == info.name) else { continue };
        // Another member that leads begins to count anew.
        let rate = |new: u64, old: u64| (new.saturating_sub(old) as f64 / seconds).round() as u64;
        let pushed = rate(info.pushed, old.pushed);
        let delivered = rate(info.delivered, old.delivered);
        let dropped = rate(info.dropped, old.dropped);
        let ended = ends(&info.name, service)?;
        if context.is_json() {
            context.print_json(&json!({
                "name": info.name,
                "seconds": seconds,
                "pushed_per_second": pushed,
                "delivered_per_second": delivered,
                "dropped_per_second": dropped,
                "waiting": info.waiting,
                "waiting_bytes": info.waiting_bytes,
                "ended": ended.as_ref().map_or(Value::Null, end_counts_as_json),
            }))?;
        }
        let figures = [pushed, delivered, dropped, info.waiting, info.waiting_bytes].map(grouped);
        let ended = ended.as_ref().map_or_else(|| "-".to_owned(), |it| grouped(all_ended(it)));
        rows.push([info.name.clone()].into_iter().chain(figures).chain([ended]).collect());
    }
    if !context.is_json() && !rows.is_empty() {
        let headings =
            ["CHANNEL", ">PUSHED/S", ">DELIVERED/S", ">DROPPED/S", ">WAITING", ">BYTES", ">ENDED"];
        context.print(&table(&headings, rows))?;
    }
    Ok(Exit::Ok)
}

fn told(context: &Context, name: &str, done: &str, more: Value) -> Result<Exit, Failure> {
    match context.is_json() {
        true => context.print_json(&json!({ "name": name, "done": done, "ior": more }))?,
        false => context.print(&format!("{done}: {name}\n"))?,
    }
    Ok(Exit::Ok)
}

fn create(
    context: &Context,
    service: &mut Channels,
    name: &str,
    settings: &str,
) -> Result<Exit, Failure> {
    let refused =
        |what: String, next: &str| Failure::new(codes::EVENTS, Exit::Failed, what, next.to_owned());
    let made = service.stub().create(&name.to_owned(), &settings.to_owned());
    let object = made.map_err(|error| match error {
        CreateError::AlreadyThere(_) => {
            let what = format!("there is a channel {name:?} with other settings");
            refused(what, "quorba events show says which; quorba events rm ends it")
        }
        CreateError::Invalid(invalid) => {
            let next = "docs/reference/config.md has the settings of a channel";
            refused(format!("the channel cannot be made: {}", invalid.why), next)
        }
        CreateError::System(raised) => not_done(&raised),
    })?;
    told(context, name, "made", json!(object.0.stringify(Endian::Big)))
}

fn remove(context: &Context, service: &mut Channels, name: &str) -> Result<Exit, Failure> {
    let removed = service.stub().remove(&name.to_owned());
    removed.map_err(|error| match error {
        RemoveError::NoSuchChannel(_) => no_such(name),
        RemoveError::IsFiled(_) => {
            let what = format!("the channel {name:?} is in the domain file");
            let next = "take it out of the file, and run quorba config apply";
            Failure::new(codes::EVENTS, Exit::Failed, what, next)
        }
        RemoveError::System(raised) => not_done(&raised),
    })?;
    told(context, name, "ended", Value::Null)
}

fn disconnect(
    context: &Context,
    service: &mut Channels,
    name: &str,
    proxy: u64,
) -> Result<Exit, Failure> {
    let ended = service.stub().disconnect(&name.to_owned(), &proxy);
    ended.map_err(|error| match error {
        DisconnectError::NoSuchChannel(_) => no_such(name),
        DisconnectError::NoSuchProxy(_) => {
            let what = format!("the channel {name:?} has no proxy {proxy}");
            let next = format!("quorba events show {name} has the numbers of those that it has");
            Failure::new(codes::EVENTS, Exit::Failed, what, next)
        }
        DisconnectError::System(raised) => not_done(&raised),
    })?;
    match context.is_json() {
        true => {
            let done = json!({ "name": name, "proxy": proxy, "done": "disconnected" });
            context.print_json(&done)?;
        }
        false => context.print(&format!("disconnected: {proxy} of {name}\n"))?,
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_shown_in_brackets() {
        assert_eq!(HostPort("fd00::2", 2812).to_string(), "[fd00::2]:2812");
        assert_eq!(HostPort("n1", 2812).to_string(), "n1:2812");
    }
}
