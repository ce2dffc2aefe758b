//! `quorba group log` and `quorba group record`: what a group was delivered lately.
//!
//! What it is not: an audit. A node remembers its last requests in short and only while it runs;
//! the durable log has all of a durable group.
//!
//! Invariant: what is missing between two requests that are shown is said.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorba_config::Domain;
use quorba_node::admin::{AdminError, Client, Wanted};
use quorba_node::logged::{self, GroupId};
use quorba_node::recent::{Messages, OrderedRequest, Outcome, Requests};
use quorba_node::status::MemberState;

use crate::ask;
use crate::command::doctor::recording;
use crate::command::group::refused;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::{grouped, size, span_us};

/// Pause between two questions.
const AGAIN: Duration = Duration::from_millis(100);
/// One answer is not waited for longer than this.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A request that is not executed after this long is shown all the same, in ms.
const SHOWN_AFTER_MS: u64 = 2_000;

/// The node that knows most of a group.
struct Asked {
    name: String,
    client: Client,
}

impl Asked {
    /// The leader's node, or one whose member is in; `node` if somebody named one.
    fn find(
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
            let is_in = |member: &quorba_node::status::MemberStatus| {
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
        let node = domain.nodes.iter().find(|node| node.name == found.node).expect("it was asked");
        let client = Client::new(node.admin, node.admin_token_file());
        Ok(Self { name: node.name.clone(), client })
    }

    fn ask(&self, group: &str, after: u64, messages: bool) -> Result<Requests, Failure> {
        let answer = self.client.requests(group, Wanted { after, messages }, ANSWER_WITHIN);
        answer.map_err(|error: AdminError| refused(&self.name, group, &error))
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
        found.drain(..found.len().saturating_sub(self.last));
        if !context.is_json() {
            context.print(HEADINGS)?;
        }
        let mut shown = found.first().map(|first| first.number - 1);
        show(context, &found, &mut shown)?;
        if !self.follow {
            return Ok(Exit::Ok);
        }
        // Followed until its time is over, or somebody ends it.
        while context.timeout.is_none() || !deadline.has_passed() {
            thread::sleep(AGAIN);
            let after = shown.unwrap_or(0);
            let mut found = asked.ask(self.group, after, false)?.requests;
            let waits =
                |one: &OrderedRequest| one.outcome == Outcome::Open && one.age_ms < SHOWN_AFTER_MS;
            let settled = found.iter().position(waits).unwrap_or(found.len());
            found.truncate(settled);
            show(context, &found, &mut shown)?;
        }
        Ok(Exit::Ok)
    }
    /// What is on a node's disk.
    fn read_from_disk(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        let mut found = VecDeque::new();
        read_disk(context, domain, self.group, self.node, |one, _| {
            if found.len() == self.last {
                found.pop_front();
            }
            found.push_back(one);
        })?;
        if !context.is_json() {
            context.print(HEADINGS)?;
        }
        show(context, found.make_contiguous(), &mut None)?;
        Ok(Exit::Ok)
    }
}

/// Reads the durable log of `node`, or of the group's first member.
fn read_disk(
    context: &Context,
    domain: &Domain,
    group: &str,
    node: Option<&str>,
    take: impl FnMut(OrderedRequest, Messages),
) -> Result<String, Failure> {
    let index = domain.groups.iter().position(|one| one.name == group).expect("it was looked for");
    let first = domain.groups[index].members.lowest().and_then(|node| domain.node(node));
    let node = match node {
        Some(name) => ask::require_node(domain, name)?,
        None => first.expect("a group has members"),
    };
    let id = GroupId(u16::try_from(index).expect("groups are few"));
    let faults = logged::requests(domain, node, id, take).map_err(|error| {
        let what = format!("the durable log of node {}: {error}", node.name);
        let next = "run this on the node's machine, by a user who may read its state_dir";
        Failure::new(codes::FILE, Exit::Failed, what, next)
    })?;
    for fault in faults {
        context.tell(fault);
    }
    Ok(node.name.clone())
}

const HEADINGS: &str = concat!(
    "NUMBER     TIME (UTC)    GATEWAY   OPERATION            KEY                 REQUEST  ",
    "REPLY             LATENCY    CLIENT\n",
);

/// Prints requests; `shown` is the number of the last one that was.
fn show(
    context: &Context,
    requests: &[OrderedRequest],
    shown: &mut Option<u64>,
) -> Result<(), Failure> {
    let mut text = String::new();
    for one in requests {
        if let Some(before) = *shown
            && one.number > before + 1
        {
            let count = one.number - before - 1;
            context.tell(format!("({} requests were too fast to be seen)", grouped(count)));
        }
        *shown = Some(one.number);
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

/// What `quorba group record` was asked for.
pub struct Record<'a> {
    pub group: &'a str,
    pub node: Option<&'a str>,
    pub disk: bool,
    pub for_: Duration,
    pub to: &'a Path,
}

impl Record<'_> {
    pub fn run(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        if self.disk {
            return self.read_from_disk(context, domain);
        }
        let deadline = context.deadline(self.for_ + ANSWER_WITHIN);
        let asked = Asked::find(domain, self.group, self.node, deadline)?;
        let unwritable = |error| self.unwritable(&error);
        // The first question begins the recording; what it finds is from before.
        let begun = asked.ask(self.group, 0, true)?;
        let file = File::options().write(true).create_new(true).open(self.to);
        let mut file = BufWriter::new(file.map_err(unwritable)?);
        let head = recording::Head::new(domain, self.group, &asked.name, now_us());
        recording::write(&mut file, &head).map_err(unwritable)?;
        let last = begun.requests.last().map(|last| last.number);
        let mut tally = Tally { last, ..Tally::default() };
        let end = Instant::now() + self.for_.min(deadline.left());
        loop {
            let is_over = Instant::now() >= end;
            let found = asked.ask(self.group, tally.last.unwrap_or(0), true)?;
            let count = tally.requests;
            for messages in tally.take(found, is_over) {
                recording::write(&mut file, &messages).map_err(unwritable)?;
            }
            file.flush().map_err(unwritable)?;
            if is_over && (count == tally.requests || Instant::now() >= end + ANSWER_WITHIN) {
                break;
            }
            if !is_over {
                thread::sleep(AGAIN.min(end.saturating_duration_since(Instant::now())));
            }
        }
        let foot = recording::Foot { requests: tally.requests, missing: tally.missing };
        recording::write(&mut file, &foot).map_err(unwritable)?;
        file.into_inner().map_err(|error| unwritable(error.into_error()))?;
        self.tell(context, &asked.name, &tally)
    }

    fn unwritable(&self, error: &std::io::Error) -> Failure {
        let what = format!("{} cannot be written: {error}", self.to.display());
        let next = "name a file that is not there, on a disk that has room";
        Failure::new(codes::FILE, Exit::Failed, what, next)
    }

    /// All that a node's disk has, without replies.
    fn read_from_disk(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        let unwritable = |error| self.unwritable(&error);
        let file = File::options().write(true).create_new(true).open(self.to);
        let mut file = BufWriter::new(file.map_err(unwritable)?);
        let head = recording::Head::new(domain, self.group, self.node.unwrap_or(""), now_us());
        let mut written = recording::write(&mut file, &head);
        let mut tally = Tally::default();
        let node = read_disk(context, domain, self.group, self.node, |one, messages| {
            if one.outcome == Outcome::Repetition {
                tally.repetitions += 1;
            } else if written.is_ok() {
                tally.requests += 1;
                written = recording::write(&mut file, &messages);
            }
        })?;
        let foot = recording::Foot { requests: tally.requests, missing: 0 };
        written.and_then(|()| recording::write(&mut file, &foot)).map_err(unwritable)?;
        file.into_inner().map_err(|error| unwritable(error.into_error()))?;
        self.tell(context, &node, &tally)
    }

    fn tell(&self, context: &Context, node: &str, tally: &Tally) -> Result<Exit, Failure> {
        let Tally { requests, repetitions, missing, .. } = *tally;
        if context.is_json() {
            context.print_json(&serde_json::json!({
                "group": self.group,
                "node": node,
                "file": self.to,
                "requests": requests,
                "repetitions": repetitions,
                "missing": missing,
            }))?;
        } else {
            let (file, requests) = (self.to.display(), grouped(requests));
            context.print(&format!("{requests} requests of group {} in {file}\n", self.group))?;
            if missing > 0 {
                let missing = grouped(missing);
                context.tell(format!("{missing} requests came faster than they were fetched"));
            }
        }
        Ok(Exit::Ok)
    }
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// What has been written.
#[derive(Default)]
struct Tally {
    last: Option<u64>,
    requests: u64,
    repetitions: u64,
    missing: u64,
}

impl Tally {
    /// The messages to write now: those that are executed, and all at the end.
    fn take(&mut self, found: Requests, is_over: bool) -> Vec<Messages> {
        let outcome = |number| found.requests.iter().find(|one| one.number == number);
        let mut taken = Vec::new();
        for messages in &found.messages {
            // One that is not told in short any more is long executed.
            let outcome = outcome(messages.number).map(|one| (&one.outcome, one.age_ms));
            if !is_over && matches!(outcome, Some((Outcome::Open, age)) if age < SHOWN_AFTER_MS) {
                break;
            }
            if let Some(last) = self.last {
                self.missing += messages.number.saturating_sub(last + 1);
            }
            self.last = Some(messages.number);
            if matches!(outcome, Some((Outcome::Repetition, _))) {
                self.repetitions += 1;
            } else {
                self.requests += 1;
                taken.push(messages.clone());
            }
        }
        taken
    }
}
