//! `quorba faults`: what the domain's fault notifier has reported lately, what it reports, and to
//! whom.
//!
//! What it is not: a consumer. It asks, so that it costs the notifier nothing when it is slow.
//!
//! Invariant: reports are shown once, in their order; those that were forgotten meanwhile are told
//! of.

mod consumers;

use std::thread;
use std::time::Duration;

use clap::Args;
use quorba_config::Service;
use quorba_giop::SystemException;
use quorba_idl::quorba::{FaultDeliveryStub, FaultReport};
use quorba_notifier::DELIVERY_KEY;
use quorba_notifier::event::Report;
use quorba_orb::{Client, ClientOptions, Reference};
use serde_json::json;

use super::ior;
use crate::args::DomainFile;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::table;

const DEADLINE: Duration = Duration::from_secs(30);
/// Between two questions.
const AGAIN: Duration = Duration::from_millis(200);
/// Reports in one answer.
const PAGE: u32 = 100;

/// Show the faults that the domain's fault notifier has reported
///
/// It keeps the last thousand. A fault is of a node, or of one member of a group.
#[derive(Debug, Args)]
pub struct Faults {
    /// Go on with those that come, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// Instead of faults, show who is connected, what waits, and who was cut off and why
    #[arg(long, conflicts_with = "follow")]
    consumers: bool,

    #[command(flatten)]
    domain: DomainFile,
}

impl Faults {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let mut client = self.client(context)?;
        if self.consumers {
            return consumers::show(context, &mut client);
        }
        let mut last = 0;
        let (mut is_first, mut is_away) = (true, false);
        loop {
            let reports = match FaultDeliveryStub(&mut client).reports(&last, &PAGE) {
                Ok(reports) => reports,
                Err(raised) => {
                    let failure = no_reply(raised);
                    if is_first || !self.follow {
                        return Err(failure);
                    }
                    // Its nodes may be away for a while; what it remembers comes afterwards.
                    if !is_away {
                        let what = failure.what;
                        context.tell(format!("note: {what}; it is asked again until it answers"));
                    }
                    is_away = true;
                    thread::sleep(AGAIN);
                    continue;
                }
            };
            if is_away {
                context.tell("note: the fault notifier answers again".to_owned());
            }
            is_away = false;
            if let Some(first) = reports.first().filter(|one| one.number > last + 1 && !is_first) {
                let count = first.number - last - 1;
                context.tell(format!("note: {count} reports came and were forgotten meanwhile"));
            }
            let is_page = reports.len() == PAGE as usize;
            last = reports.last().map_or(last, |report| report.number);
            show(context, &reports, is_first)?;
            is_first = false;
            if is_page {
                continue;
            }
            if !self.follow {
                return Ok(Exit::Ok);
            }
            thread::sleep(AGAIN);
        }
    }

    fn client(&self, context: &Context) -> Result<Client, Failure> {
        let domain = context.load(&self.domain.config)?;
        let service = Service::FaultNotifier.as_str();
        let ior = ior::of_group(context, &domain, service, None).map_err(|failure| {
            if failure.code != codes::NOT_IN_DOMAIN {
                return failure;
            }
            let what = format!("domain {} has no fault notifier", domain.id);
            let next =
                "write [service.fault-notifier] into the domain file and run quorba config apply";
            Failure::new(codes::NOT_IN_DOMAIN, failure.exit, what, next)
        })?;
        let places = ior.endpoints().into_iter().map(|one| format!("iiop:1.2@{}", address(&one)));
        let places = places.collect::<Vec<_>>().join(",");
        let reference = Reference::parse(&format!("corbaloc:{places}/{DELIVERY_KEY}"));
        let reference = reference.map_err(|error| {
            let what = format!("the fault notifier has no address: {error}");
            Failure::new(codes::REFERENCE, Exit::Failed, what, "look at [service.fault-notifier]")
        })?;
        let options = ClientOptions { call_timeout: Some(DEADLINE), ..ClientOptions::default() };
        Ok(Client::new(&reference, options))
    }
}

fn no_reply(raised: SystemException) -> Failure {
    let what = format!("the fault notifier answers with {raised}");
    let next = "quorba status shows whether its group takes requests";
    Failure::new(codes::NO_REPLY, Exit::Failed, what, next)
}

fn address(endpoint: &quorba_giop::ior::Endpoint) -> String {
    quorba_giop::corbaloc::HostPort(&endpoint.host, endpoint.port).to_string()
}

/// What somebody has said, as it is shown to people.
fn plain(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).collect()
}

fn show(context: &Context, reports: &[FaultReport], is_first: bool) -> Result<(), Failure> {
    let read = |one: &FaultReport| (one.number, Report::of_event(&one.event));
    if context.is_json() {
        for (number, report) in reports.iter().map(read) {
            context.print_json(&json!({
                "number": number,
                "node": report.as_ref().map(|report| &report.location),
                "type_id": report.as_ref().and_then(|report| report.type_id.as_ref()),
                "object_group": report.as_ref().and_then(|report| report.group),
            }))?;
        }
        return Ok(());
    }
    let mut rows = Vec::new();
    for (number, report) in reports.iter().map(read) {
        let report = report.as_ref();
        let group = match report.map(|report| report.group) {
            None => "an event of another kind".to_owned(),
            Some(None) => "the node".to_owned(),
            Some(Some(group)) => group.to_string(),
        };
        rows.push(vec![
            number.to_string(),
            plain(report.map_or("", |report| &report.location)),
            group,
            plain(report.and_then(|report| report.type_id.as_deref()).unwrap_or_default()),
        ]);
    }
    if rows.is_empty() && !is_first {
        return Ok(());
    }
    let shown = table(&[">NUMBER", "NODE", "OBJECT GROUP", "TYPE"], rows);
    // Later ones come below the same headings.
    let skipped = if is_first { 0 } else { 1 };
    let lines: Vec<&str> = shown.lines().skip(skipped).collect();
    context.print(&format!("{}\n", lines.join("\n")))
}
