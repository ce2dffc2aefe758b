//! `quorba group log`: what a group was delivered lately.
//!
//! What it is not: an audit. A node remembers its last requests in short and only while it runs;
//! the durable log has all of a durable group.
//!
//! Invariant: that requests may be missing between two that are shown is said.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use quorba_admin::requests::{Messages, OrderedRequest, Outcome, Requests};
use quorba_admin::status::MemberState;
use quorba_admin::{AdminError, Client, Wanted};
use quorba_config::{Domain, Node};
use quorba_node::logged;

use crate::ask;
use crate::catalog;
use crate::command::group::refused;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::{grouped, size, span_us};

/// Pause between two questions.
pub(super) const AGAIN: Duration = Duration::from_millis(100);
/// One answer is not waited for longer than this.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A request that is not executed after this long is shown all the same, in ms.
pub(super) const SHOWN_AFTER_MS: u64 = 2_000;

/// The node that knows most of a group.
pub(super) struct Asked {
    pub(super) name: String,
    client: Client,
}

impl Asked {
    /// The leader's node, or one whose member is in; `node` if somebody named one.
    pub(super) fn find(
        domain: &Domain,
        group: &str,
        node: Option<&str>,
        deadline: Deadline,
    ) -> Result<Self, Failure> {
        if let Some(name) = node {
            ask::require_node(domain, name)?;
        }
        let answers = ask::everyone(domain, deadline.left());
        let rank = |answer: &&ask::Answer| {
            let status = answer.status.as_ref().ok()?;
            let group = status.groups.iter().find(|one| one.name == group)?;
            let is_in = |member: &quorba_admin::status::MemberStatus| {
                member.node == status.node && member.state == MemberState::In
            };
            let is_member = group.members.iter().any(|member| member.node == status.node);
            let leads = group.leader.as_ref() == Some(&status.node);
            Some((leads, group.members.iter().any(is_in), is_member))
        };
        let is_meant = |answer: &&ask::Answer| node.is_none_or(|name| answer.node == name);
        // Of equals the first.
        let able = answers.iter().rev().filter(is_meant).filter(|answer| rank(answer).is_some());
        let found = able.max_by_key(rank);
        let found = found.ok_or_else(|| ask::no_word(domain, &answers, group, node))?;
        Ok(Self { name: found.node.clone(), client: found.client.clone() })
    }

    pub(super) fn ask(&self, group: &str, after: u64, messages: bool) -> Result<Requests, Failure> {
        let answer = self.client.requests(group, Wanted { after, messages }, ANSWER_WITHIN);
        answer.map_err(|error: AdminError| refused(&self.name, group, &error))
    }

    /// How many requests there were between the numbers `last` and `next`, at the most: changes of
    /// the group, such as a restore, have numbers, too, and are told apart only as long as the
    /// node remembers `last`.
    pub(super) fn between(&self, group: &str, last: u64, next: u64) -> Result<u64, Failure> {
        if next <= last + 1 {
            return Ok(0);
        }
        let found = self.ask(group, last.saturating_sub(1), false)?.requests;
        if !found.iter().any(|one| one.number == last) {
            return Ok(next - last - 1);
        }
        let between = found.iter().filter(|one| (last + 1..next).contains(&one.number));
        Ok(between.count() as u64)
    }
}

/// What `quorba group log` was asked for.
pub struct Log<'a> {
    pub group: &'a str,
    pub node: Option<&'a str>,
    pub disk: bool,
    pub last: usize,
    pub follow: bool,
}

impl Log<'_> {
    pub fn run(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        if self.disk {
            return self.read_from_disk(context, domain);
        }
        let deadline = context.deadline(Duration::from_secs(15));
        let asked = Asked::find(domain, self.group, self.node, deadline)?;
        let mut found = asked.ask(self.group, 0, false)?.requests;
        let newest = found.last().map(|newest| newest.number);
        found.drain(..found.len().saturating_sub(self.last));
        if !context.is_json() {
            context.print(HEADINGS)?;
        }
        show(context, &found)?;
        if !self.follow {
            return Ok(Exit::Ok);
        }
        let mut shown = newest.unwrap_or(0);
        // Followed until its time is over, or somebody ends it.
        while context.timeout.is_none() || !deadline.has_passed() {
            thread::sleep(AGAIN);
            if context.nobody_reads() {
                return Ok(Exit::Ok);
            }
            let mut found = asked.ask(self.group, shown, false)?.requests;
            let waits =
                |one: &OrderedRequest| one.outcome == Outcome::Open && one.age_ms < SHOWN_AFTER_MS;
            let settled = found.iter().position(waits).unwrap_or(found.len());
            found.truncate(settled);
            let (Some(first), Some(last)) = (found.first(), found.last()) else { continue };
            let count = asked.between(self.group, shown, first.number)?;
            if count > 0 {
                let count = grouped(count);
                context.tell(format!("(at most {count} requests were too fast to be seen)"));
            }
            show(context, &found)?;
            shown = last.number;
        }
        Ok(Exit::Ok)
    }

    /// What is on a node's disk.
    fn read_from_disk(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        let mut found = VecDeque::new();
        let log = DiskLog::of(context, domain, (self.group, self.node))?;
        let damage = log.read(context, |one, _| {
            if found.len() == self.last {
                found.pop_front();
            }
            found.push_back(one);
        })?;
        if !context.is_json() {
            context.print(HEADINGS)?;
        }
        show(context, found.make_contiguous())?;
        damage.map_or(Ok(Exit::Ok), Err)
    }
}

/// A group's requests in the durable log of a node.
pub(super) struct DiskLog<'d> {
    domain: &'d Domain,
    pub(super) node: &'d Node,
    group: String,
}

impl<'d> DiskLog<'d> {
    /// That of `node`, or of the group's first member.
    pub(super) fn of(
        context: &Context,
        domain: &'d Domain,
        (group, node): (&str, Option<&str>),
    ) -> Result<Self, Failure> {
        let node = match node {
            Some(name) => ask::require_node(domain, name)?,
            None => {
                let members = catalog::find_group(context, domain, group)?.members;
                let first = members.lowest().and_then(|node| domain.node(node));
                first.expect("a group has members")
            }
        };
        Ok(Self { domain, node, group: group.to_owned() })
    }

    /// Gives what can be read to `take`; then a failure, if there is damage.
    pub(super) fn read(
        &self,
        context: &Context,
        take: impl FnMut(OrderedRequest, Messages),
    ) -> Result<Option<Failure>, Failure> {
        let name = &self.node.name;
        let found = logged::requests(self.domain, self.node, &self.group, take);
        let found = found.map_err(|error| {
            let what = format!("the durable log of node {name}: {error}");
            let next = "run this on the node's machine, by a user who may read its state_dir";
            Failure::new(codes::FILE, Exit::Failed, what, next)
        })?;
        for note in found.notes {
            context.tell(format!("node {name}: {note}"));
        }
        Ok((!found.damage.is_empty()).then(|| {
            let what = format!(
                "the durable log of node {name} is damaged, and requests may be missing: {}",
                found.damage.join("; ")
            );
            let next = "read the log of another node with --node";
            Failure::new(codes::FILE, Exit::Failed, what, next)
        }))
    }
}

const HEADINGS: &str = concat!(
    "NUMBER     TIME (UTC)    GATEWAY   OPERATION            KEY                 REQUEST  ",
    "REPLY             LATENCY    CLIENT\n",
);

fn show(context: &Context, requests: &[OrderedRequest]) -> Result<(), Failure> {
    let mut text = String::new();
    for one in requests {
        if context.is_json() {
            context.print_json(one)?;
        } else {
            text += &line(one);
        }
    }
    context.print(&text)
}

fn line(one: &OrderedRequest) -> String {
    let (reply, latency) = match &one.outcome {
        Outcome::Open => ("-".to_owned(), "-".to_owned()),
        Outcome::Repetition => ("repeats".to_owned(), "-".to_owned()),
        Outcome::Executed { latency_us, status, reply_bytes } => {
            let status = if status == "no-exception" { "ok" } else { status };
            (format!("{status} {}", size(*reply_bytes)), span_us(to_f64(*latency_us)))
        }
        Outcome::Ended { how } => (how.as_str().to_uppercase().replace('-', " "), "-".to_owned()),
    };
    let line = format!(
        "{:<10} {:<13} {:<9} {:<20} {:<18} {:>8}  {:<17} {:<10} {}",
        one.number,
        time_of_day(one.unix_us),
        one.gateway,
        one.operation,
        one.key,
        size(one.request_bytes),
        reply,
        latency,
        one.client.as_deref().unwrap_or("-"),
    );
    format!("{}\n", line.trim_end())
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
const fn to_f64(number: u64) -> f64 {
    number as f64
}

/// `14:03:07.412`, of the gateway's clock.
fn time_of_day(unix_us: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_micros(unix_us);
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.get(11..23).unwrap_or("-").to_owned()
}
