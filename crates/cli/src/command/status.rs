//! `quorba status`: how the domain is, as its nodes see it.

mod channels;
mod unanswered;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use clap::Args;
use quorba_admin::status::{
    GroupStatus, MemberStatus, ServerState, Status as NodeSaid, TransferStatus,
};
use quorba_config::Domain;
use serde_json::{Value, json};

use crate::args::{DomainFile, duration};
use crate::ask::{self, Answer};
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::health::{self, Health, Judgement};
use crate::text::{age, grouped, size, span_us, table};

const DEADLINE: Duration = Duration::from_secs(10);
const WATCH_EVERY: Duration = Duration::from_secs(1);
const WAIT_EVERY: Duration = Duration::from_millis(100);
/// Moves the cursor home and clears what is below (ECMA-48 CUP and ED).
const REDRAW: &str = "\x1b[H\x1b[J";

/// Show the ring, the nodes and the groups
///
/// Asks every node of the domain file: those on this machine, and through them all others. Exits
/// with 2 if the domain is degraded or has no quorum, with 1 if no node answers. With GROUP this is
/// about that group, and about whether there is a quorum; other groups do not count.
#[derive(Debug, Args)]
pub struct Status {
    /// Show this group only, with its members and servers
    group: Option<String>,

    #[command(flatten)]
    domain: DomainFile,

    /// Show it again every second
    #[arg(short, long)]
    watch: bool,

    /// Wait until all nodes are in the view and all members execute; with GROUP, its members
    #[arg(long, value_name = "TIME", value_parser = duration, num_args = 0..=1)]
    #[arg(default_missing_value = "60s", conflicts_with = "watch")]
    wait_healthy: Option<Duration>,
}

impl Status {
    /// What `quorba group show` shows.
    pub fn of_group(group: String, domain: DomainFile) -> Self {
        Self { group: Some(group), domain, watch: false, wait_healthy: None }
    }

    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.domain.config)?;
        if let Some(group) = &self.group {
            crate::catalog::require_known(context, &domain, group)?;
        }
        match self.wait_healthy {
            Some(time) => self.wait(context, &domain, context.deadline(time)),
            None if self.watch => self.watch(context, &domain),
            None => {
                let answers = ask::everyone(&domain, context.deadline(DEADLINE).left());
                self.show(context, &domain, &answers)
            }
        }
    }

    fn watch(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        let deadline = context.timeout.map(|time| context.deadline(time));
        loop {
            let answers = ask::everyone(domain, WATCH_EVERY);
            if context.can_redraw() {
                context.print(REDRAW)?;
            }
            let shown = self.show(context, domain, &answers);
            if let Err(failure) = &shown {
                context.tell_failure(failure);
            }
            let left = deadline.map_or(WATCH_EVERY, |deadline| deadline.left());
            if left.is_zero() || context.nobody_reads() {
                return shown;
            }
            thread::sleep(WATCH_EVERY.min(left));
        }
    }

    fn wait(
        &self,
        context: &Context,
        domain: &Domain,
        deadline: Deadline,
    ) -> Result<Exit, Failure> {
        loop {
            let answers = ask::everyone(domain, deadline.left());
            let judgement = self.judge(&answers);
            if judgement.health == Health::Ok {
                return self.show(context, domain, &answers);
            }
            if deadline.has_passed() {
                if judgement.health != Health::Unknown {
                    self.show(context, domain, &answers)?;
                }
                let what = format!(
                    "domain {} was not healthy within {}: {}",
                    domain.id,
                    age(deadline.time),
                    judgement.reasons().join("; ")
                );
                let next = "quorba status --watch shows how it goes on; the nodes' logs say why";
                return Err(Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next));
            }
            thread::sleep(WAIT_EVERY.min(deadline.left()));
        }
    }

    /// Of one group if one is shown.
    fn judge(&self, answers: &[Answer]) -> Judgement {
        health::judge(answers, self.group.as_deref())
    }

    fn show(
        &self,
        context: &Context,
        domain: &Domain,
        answers: &[Answer],
    ) -> Result<Exit, Failure> {
        let judgement = self.judge(answers);
        if let (Some(best), Some(name)) = (health::best(answers), &self.group)
            && !best.groups.iter().any(|group| group.name == *name)
        {
            return Err(ask::unknown_group(&best.node, name));
        }
        if context.is_json() {
            let group = self.group.as_deref();
            context.print_json(&survey_json(domain, answers, &judgement, group))?;
        }
        let Some(best) = health::best(answers) else {
            return Err(nobody_answers(domain, &judgement));
        };
        if !context.is_json() {
            let text = match &self.group {
                None => domain_text(answers, best, &judgement),
                Some(group) => {
                    let mut text = group_text(domain, answers, best, group);
                    reasons_text(&mut text, &judgement);
                    text
                }
            };
            context.print(&text)?;
        }
        Ok(health::exit(judgement.health))
    }
}

/// Fails if the domain file has no such group.
pub fn require_group<'d>(
    domain: &'d Domain,
    name: &str,
) -> Result<&'d quorba_config::Group, Failure> {
    domain.group(name).ok_or_else(|| {
        let names: Vec<&str> = domain.groups.iter().map(|group| group.name.as_str()).collect();
        let what = format!("domain {} has no group {name:?}", domain.id);
        let next = match names.as_slice() {
            [] => "the file has no [group.NAME]".to_owned(),
            names => format!("groups: {}", names.join(", ")),
        };
        Failure::new(codes::NOT_IN_DOMAIN, Exit::Usage, what, next)
    })
}

fn nobody_answers(domain: &Domain, judgement: &Judgement) -> Failure {
    let what = format!("no node of domain {} answers on this machine", domain.id);
    let next =
        "start them with `quorba up` or `quorba node NAME`, or ask on a machine that has one";
    let mut lines = judgement.reasons().join("\n");
    lines.push('\n');
    Failure::new(codes::NOBODY_ANSWERS, Exit::Failed, what, next)
        .detail(lines)
        .data(json!({ "nodes": judgement.reasons() }))
}

fn domain_text(answers: &[Answer], best: &NodeSaid, judgement: &Judgement) -> String {
    let ring = &best.ring;
    let state = if ring.primary { "PRIMARY" } else { "NOT PRIMARY" };
    let token = ring.rotation_us.map_or("-".to_owned(), span_us);
    let protected = if ring.encrypt { "encrypted" } else { "authenticated" };
    let mut text = format!(
        "DOMAIN {}   view {} ({} of {})   {state}   {} {}   token {token}   {protected}   {}\n",
        best.domain,
        ring.view_seq,
        ring.members.len(),
        best.nodes.len(),
        ring.engine,
        ring.state,
        ring.fanout,
    );
    text.push_str(&node_table(answers, best));
    if !best.groups.is_empty() {
        text.push_str(&group_table(answers, best));
    }
    reasons_text(&mut text, judgement);
    let groups = best.groups.iter().map(|group| group.name.as_str());
    text.push_str(&unanswered::notes(answers, groups));
    warnings_text(&mut text, answers, best);
    text
}

/// What nodes say that an operator should know; of others, what this node does not say, too.
fn warnings_text(text: &mut String, answers: &[Answer], best: &NodeSaid) {
    for warning in &best.warnings {
        text.push_str(&format!("! {warning}\n"));
    }
    for (node, said) in answers.iter().filter_map(|it| Some((&it.node, it.status.as_ref().ok()?))) {
        for warning in said.warnings.iter().filter(|it| !best.warnings.contains(it)) {
            text.push_str(&format!("! {node}: {warning}\n"));
        }
    }
}

fn reasons_text(text: &mut String, judgement: &Judgement) {
    let mut told = BTreeSet::new();
    for finding in judgement.findings.iter().chain(&judgement.notes) {
        let since = finding.since_ms.map(|ms| format!(" (for {})", age(Duration::from_millis(ms))));
        text.push_str(&format!("! {}{}\n", finding.what, since.unwrap_or_default()));
        // Once, if it is the same for several.
        if let Some(next) = finding.next.as_ref().filter(|next| told.insert(next.as_str())) {
            text.push_str(&format!("  next: {next}\n"));
        }
    }
}

fn node_table(answers: &[Answer], best: &NodeSaid) -> String {
    let rows = answers.iter().map(|answer| {
        let seen = best.nodes.iter().find(|node| node.name == answer.node);
        let standing = seen.map_or("unknown", |node| match node.in_view {
            true => "in view",
            false => "OUT",
        });
        let mut row = vec![answer.node.clone(), answer.host.clone(), standing.to_owned()];
        match &answer.status {
            Ok(said) => row.extend([
                said.ring.view_seq.to_string(),
                grouped(said.ring.delivered),
                grouped(said.ring.retransmits),
                age(Duration::from_millis(said.uptime_ms)),
                format!("{:.1} s", said.cpu_ms as f64 / 1000.0),
                size(said.rss_bytes),
                said.version.clone(),
            ]),
            Err(silence) => {
                row.extend(std::iter::repeat_n("-".to_owned(), 6));
                row.push(silence.to_string());
            }
        }
        row
    });
    let headings = [
        "NODE",
        "HOST",
        "STATE",
        ">VIEW",
        ">DELIVERED",
        ">RESENT",
        ">UPTIME",
        ">CPU",
        ">MEMORY",
        "VERSION",
    ];
    table(&headings, rows.collect())
}

/// The same group as each node that answers sees it.
fn seen<'a>(answers: &'a [Answer], name: &'a str) -> impl Iterator<Item = &'a GroupStatus> {
    let statuses = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    statuses.flat_map(move |said| said.groups.iter().filter(move |group| group.name == name))
}

fn group_table(answers: &[Answer], best: &NodeSaid) -> String {
    let rows = best.groups.iter().map(|group| {
        let sum =
            |count: fn(&GroupStatus) -> u64| grouped(seen(answers, &group.name).map(count).sum());
        let executed = seen(answers, &group.name).map(|group| group.executed).max();
        vec![
            group.name.clone(),
            style_text(group),
            members_text(group),
            grouped(executed.unwrap_or(0)),
            sum(|group| group.requests),
            sum(|group| group.pending),
            sum(|group| group.duplicates),
            sum(|group| group.refused),
            sum(|group| group.connections),
            group.last_change.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let headings = [
        "GROUP",
        "STYLE",
        "MEMBERS",
        ">EXECUTED",
        ">REQUESTS",
        ">PENDING",
        ">DUPLICATES",
        ">REFUSED",
        ">CLIENTS",
        "LAST CHANGE",
    ];
    table(&headings, rows.collect())
}

/// The style, and who leads.
fn style_text(group: &GroupStatus) -> String {
    match &group.leader {
        Some(leader) => format!("{} ({leader} leads)", group.style),
        None => group.style.clone(),
    }
}

/// How many are in, of those that take part.
pub(super) fn members_text(group: &GroupStatus) -> String {
    use quorba_admin::status::MemberState;
    let count = |state| group.members.iter().filter(|member| member.state == state).count();
    let (inside, removed) = (count(MemberState::In), count(MemberState::Removed));
    let whole = group.members.len() - removed;
    let mark = if inside < whole { " !" } else { "" };
    let more = if removed > 0 { format!(" ({removed} removed)") } else { String::new() };
    let waits = if !group.waits_for.is_empty() {
        format!(" (waits for {})", group.waits_for.join(", "))
    } else if group.waits_for_members {
        " (takes no requests yet)".to_owned()
    } else {
        String::new()
    };
    format!("{inside}/{whole}{mark}{more}{waits}")
}

fn group_text(domain: &Domain, answers: &[Answer], best: &NodeSaid, name: &str) -> String {
    let group = best.groups.iter().find(|group| group.name == name).expect("it was looked for");
    let executed = seen(answers, name).map(|group| group.executed).max().unwrap_or(0);
    let mut text = format!(
        "GROUP {name}   {}   members {}   executed {}\n",
        style_text(group),
        members_text(group),
        grouped(executed)
    );
    let rows = domain.nodes.iter().map(|node| {
        let member = group.members.iter().find(|member| member.node == node.name);
        let answer = answers.iter().find(|answer| answer.node == node.name);
        let said = answer.and_then(|answer| answer.status.as_ref().ok());
        let here = said.and_then(|said| said.groups.iter().find(|group| group.name == name));
        let mut row = vec![
            node.name.clone(),
            member.map_or("no member", |member| member.state.as_str()).to_owned(),
        ];
        row.extend(server_cells(here));
        row.extend(gateway_cells(here));
        row.push(reason(member, here));
        row
    });
    let headings = [
        "NODE",
        "MEMBER",
        "SERVER",
        ">PID",
        ">PORT",
        ">RESTARTS",
        "GATEWAY",
        ">CLIENTS",
        ">REQUESTS",
        ">PENDING",
        ">RETAINED",
        "REASON",
    ];
    text.push_str(&table(&headings, rows.collect()));
    if let Some(here) = seen(answers, name).find(|here| !here.channels.is_empty()) {
        text.push_str(&channels::text(here));
    }
    for (joiner, transfer) in transfers(answers, name) {
        text.push_str(&format!("state for {joiner} {}\n", progress_text(transfer)));
    }
    text.push_str(&last_words(answers, name));
    for (node, log) in logs(answers, name) {
        text.push_str(&format!("log of {node}: {log}\n"));
    }
    text.push_str(&unanswered::of_group(answers, name));
    text
}

/// Why a member is not in. Only its own node knows that its server is in quarantine, and why.
fn reason(member: Option<&MemberStatus>, here: Option<&GroupStatus>) -> String {
    let server = here.and_then(|group| group.server.as_ref());
    let quarantine = server.filter(|server| server.state == ServerState::Quarantined);
    let quarantine = quarantine.and_then(|server| server.reason.clone());
    quarantine.or_else(|| member?.reason.clone()).unwrap_or_default()
}

/// States on their way, by joiner, as the one of both sides says it that knows more.
fn transfers<'a>(answers: &'a [Answer], name: &'a str) -> BTreeMap<&'a str, &'a TransferStatus> {
    let mut all = BTreeMap::new();
    for transfer in seen(answers, name).flat_map(|group| &group.transfers) {
        let known = all.entry(transfer.to.as_str()).or_insert(transfer);
        if transfer.done_bytes > known.done_bytes {
            *known = transfer;
        }
    }
    all
}

fn progress_text(transfer: &TransferStatus) -> String {
    let (from, done) = (&transfer.from, size(transfer.done_bytes));
    match transfer.total_bytes.filter(|total| *total > 0) {
        Some(total) => {
            let percent = transfer.done_bytes.saturating_mul(100) / total;
            format!("from {from}: {done} of {} ({percent} %)", size(total))
        }
        None => format!("from {from}: its size is not known yet"),
    }
}

fn server_cells(here: Option<&GroupStatus>) -> [String; 4] {
    let none = || "-".to_owned();
    match here.and_then(|group| group.server.as_ref()) {
        None => [none(), none(), none(), none()],
        Some(server) => [
            server.state.to_string(),
            server.pid.map_or_else(none, |pid| pid.to_string()),
            server.port.map_or_else(none, |port| port.to_string()),
            server.restarts.to_string(),
        ],
    }
}

fn gateway_cells(here: Option<&GroupStatus>) -> [String; 5] {
    let none = || "-".to_owned();
    match here {
        None => [none(), none(), none(), none(), none()],
        Some(group) => [
            group.listen.clone(),
            group.connections.to_string(),
            grouped(group.requests),
            group.pending.to_string(),
            format!("{} ({})", grouped(group.retained), size(group.retained_bytes)),
        ],
    }
}

fn logs<'a>(answers: &'a [Answer], name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    answers.iter().filter_map(move |answer| {
        let said = answer.status.as_ref().ok()?;
        let group = said.groups.iter().find(|group| group.name == name)?;
        let log = group.server.as_ref()?.log.as_deref()?;
        Some((answer.node.as_str(), log))
    })
}

/// What servers printed last that did not come up.
fn last_words(answers: &[Answer], name: &str) -> String {
    let mut text = String::new();
    for answer in answers {
        let Ok(status) = &answer.status else { continue };
        let groups = status.groups.iter().filter(|group| group.name == name);
        for server in groups.filter_map(|group| group.server.as_ref()) {
            if !server.last_output.is_empty() {
                text.push_str(&format!("the server on {} printed last:\n", answer.node));
                let lines = server.last_output.iter().map(|line| format!("  | {line}\n"));
                text.extend(lines);
            }
        }
    }
    text
}

fn survey_json(
    domain: &Domain,
    answers: &[Answer],
    judgement: &Judgement,
    group: Option<&str>,
) -> Value {
    let node = |answer: &Answer| {
        let mut status = answer.status.as_ref().ok().cloned();
        if let (Some(status), Some(name)) = (&mut status, group) {
            status.groups.retain(|group| group.name == name);
        }
        json!({
            "name": answer.node,
            "host": answer.host,
            "admin": answer.admin,
            "silence": answer.status.as_ref().err().map(ToString::to_string),
            "status": status,
        })
    };
    json!({
        "domain": domain.id,
        "health": judgement.health.as_str(),
        "reasons": judgement.reasons(),
        "findings": judgement.findings,
        "notes": judgement.notes,
        "nodes": answers.iter().map(node).collect::<Vec<_>>(),
    })
}
