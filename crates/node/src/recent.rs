//! What a group was delivered lately, from the engine's words to those of the admin API.
//!
//! What it is not: live state; see [`quorba_admin::requests`]. Invariants: as there.

use crate::report::end_kind;
use quorba_admin::requests::{Messages, OrderedRequest, Outcome, Requests, status_text};
use quorba_base::{Duration as Span, Instant, NodeId};
use quorba_config::Domain;
use quorba_engine::replica::{
    Moment, RecentOutcome, RecentPage, RecentQuery, RecentRequest, RecordedRequest,
    RequestEnvelope, Short, request_names,
};
use quorba_giop::context::TIME_T_OF_UNIX_EPOCH;
use quorba_giop::corbaloc::EscapedKey;

/// Octets of whole messages that one answer has, save for a larger one.
const PAGE_BYTES_MAX: usize = 8 << 20;

/// How long a recording goes on after it was asked for last.
const RECORD_FOR: Span = Span::from_secs(5);

/// The question in the words of the engine.
pub(crate) fn query(now: Instant, after: u64, record: bool) -> RecentQuery {
    let record_until = record.then(|| now + RECORD_FOR);
    RecentQuery { after, record_until, bytes_max: PAGE_BYTES_MAX }
}

/// The answer in words.
pub(crate) fn answer(domain: &Domain, me: NodeId, now: Instant, page: RecentPage) -> Requests {
    let name = |node| domain.node(node).map_or_else(String::new, |node| node.name.clone());
    Requests {
        node: name(me),
        requests: page.requests.iter().map(|one| ordered(one, now, name)).collect(),
        messages: page.recorded.into_iter().map(messages).collect(),
    }
}

fn ordered(one: &RecentRequest, now: Instant, name: impl Fn(NodeId) -> String) -> OrderedRequest {
    let us = |span: Span| u64::try_from(span.as_nanos() / 1_000).unwrap_or(u64::MAX);
    let outcome = match one.outcome {
        RecentOutcome::Open => Outcome::Open,
        RecentOutcome::Repetition => Outcome::Repetition,
        RecentOutcome::Executed { after, status, reply_bytes } => Outcome::Executed {
            latency_us: us(after),
            status: status_text(status).into(),
            reply_bytes: reply_bytes.into(),
        },
        RecentOutcome::Ended(end) => Outcome::Ended { how: end_kind(end) },
    };
    OrderedRequest {
        number: one.index,
        unix_us: unix_us(one.stamp),
        group_us: one.clock / 10,
        gateway: name(one.gateway.0),
        client: one.client.map(|(id, retention)| format!("{} {retention}", escaped(&id))),
        operation: escaped(&one.operation),
        key: escaped_key(&one.object_key),
        request_bytes: one.request_bytes.into(),
        outcome,
        age_ms: us(now.since(one.at)) / 1_000,
    }
}

/// A request of the durable log in short; what became of it is not in the log.
pub(crate) fn described(one: &RequestEnvelope, moment: Moment, gateway: &str) -> OrderedRequest {
    let (operation, object_key) = request_names(&one.giop);
    let client = one.ft.as_ref();
    OrderedRequest {
        number: moment.number,
        unix_us: unix_us(one.stamp),
        gateway: gateway.into(),
        client: client
            .map(|ft| format!("{} {}", escaped(&Short::new(&ft.client_id)), ft.retention_id)),
        operation: escaped(&operation),
        key: escaped_key(&object_key),
        request_bytes: one.giop.len() as u64,
        ..OrderedRequest::default()
    }
}

/// TimeT in µs since 1970.
fn unix_us(time: u64) -> u64 {
    time.saturating_sub(TIME_T_OF_UNIX_EPOCH) / 10
}

/// What stands for the octets that were left out.
fn more(short: &Short) -> &'static str {
    if short.total as usize > short.octets().len() { "..." } else { "" }
}

pub(crate) fn escaped(short: &Short) -> String {
    format!("{}{}", short.octets().escape_ascii(), more(short))
}

/// As the domain file and a corbaloc write it.
pub(crate) fn escaped_key(short: &Short) -> String {
    format!("{}{}", EscapedKey(short.octets()), more(short))
}

/// What the server may be told of a request that was recorded.
#[must_use]
pub const fn moment(messages: &Messages) -> Moment {
    Moment { number: messages.number, time: messages.time, seed: messages.seed }
}

/// A recorded request as the admin API gives it.
fn messages(recorded: RecordedRequest) -> Messages {
    let RecordedRequest { index, giop, code_sets, moment, reply } = recorded;
    let Moment { time, seed, .. } = moment;
    Messages { number: index, request: giop, code_sets, time, seed, reply }
}
