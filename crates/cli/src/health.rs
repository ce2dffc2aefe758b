//! From what the nodes say to one word: whether the domain does what it promises.

mod unanswered;

use quorba_node::status::{GroupStatus, MemberState, Status};

pub use self::unanswered::{ended, ended_note};

use crate::ask::Answer;
use crate::exit::Exit;

/// How the domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// All nodes are in the primary view, and all members execute.
    Ok,
    /// It serves, and one more crash may be one too many.
    Degraded,
    /// No node that answers is in the primary component: nothing is served.
    NoQuorum,
    /// No node answers.
    Unknown,
}

impl Health {
    /// The word that is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::NoQuorum => "no quorum",
            Self::Unknown => "unknown",
        }
    }

    /// How a command ends that found this.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Ok => Exit::Ok,
            Self::Degraded | Self::NoQuorum => Exit::Degraded,
            Self::Unknown => Exit::Failed,
        }
    }
}

/// The judgement on a domain, with its reasons in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The worst that was found.
    pub health: Health,
    /// What is not as it should be, the most important first.
    pub reasons: Vec<String>,
}

/// The status that knows most: a primary view before another, then the latest view.
pub fn best(answers: &[Answer]) -> Option<&Status> {
    let statuses = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    // max_by_key keeps the last of equals; reversed, the first node of the file wins.
    statuses.rev().max_by_key(|status| (status.ring.primary, status.ring.view_seq))
}

/// Judges what the nodes said.
pub fn judge(answers: &[Answer]) -> Judgement {
    let Some(best) = best(answers) else { return unknown(answers) };
    let mut judgement = judge_component(best);
    for node in best.nodes.iter().filter(|node| !node.in_view) {
        judgement
            .add(Health::Degraded, format!("{} is out of the view {}", node.name, node.standing));
    }
    for status in answers.iter().filter_map(|answer| answer.status.as_ref().ok()) {
        if status.ring.view_seq != best.ring.view_seq && best.ring.primary {
            let reason = format!(
                "{} is in view {}, not {}: {}",
                status.node, status.ring.view_seq, best.ring.view_seq, status.ring.reason
            );
            judgement.add(Health::Degraded, reason);
        }
    }
    for group in &best.groups {
        judge_group(&mut judgement, group);
        unanswered::judge_stuck(&mut judgement, answers, &group.name);
    }
    for status in answers.iter().filter_map(|answer| answer.status.as_ref().ok()) {
        judge_servers(&mut judgement, status, |_| true);
    }
    judgement
}

/// Judges what the nodes said of one group: its members, its servers, and whether there is a
/// primary component.
pub fn judge_one(answers: &[Answer], name: &str) -> Judgement {
    let Some(best) = best(answers) else { return unknown(answers) };
    let mut judgement = judge_component(best);
    for group in best.groups.iter().filter(|group| group.name == name) {
        judge_group(&mut judgement, group);
        unanswered::judge_stuck(&mut judgement, answers, name);
    }
    for status in answers.iter().filter_map(|answer| answer.status.as_ref().ok()) {
        judge_servers(&mut judgement, status, |group| group.name == name);
    }
    judgement
}

fn unknown(answers: &[Answer]) -> Judgement {
    let reasons = answers
        .iter()
        .filter_map(|answer| {
            let silence = answer.status.as_ref().err()?;
            Some(format!("{}: {silence} ({})", answer.node, answer.admin))
        })
        .collect();
    Judgement { health: Health::Unknown, reasons }
}

fn judge_component(best: &Status) -> Judgement {
    let mut judgement = Judgement { health: Health::Ok, reasons: Vec::new() };
    if !best.ring.primary {
        judgement.add(Health::NoQuorum, format!("no primary view: {}", best.ring.primary_reason));
    }
    judgement
}

/// What only a server's own node knows.
fn judge_servers(
    judgement: &mut Judgement,
    status: &Status,
    is_meant: impl Fn(&GroupStatus) -> bool,
) {
    for group in status.groups.iter().filter(|group| is_meant(group)) {
        unanswered::judge_server(judgement, &status.node, group);
        let Some(server) = group.server.as_ref().filter(|it| it.state == "quarantined") else {
            continue;
        };
        let (name, node) = (&group.name, &status.node);
        let reason = server.reason.as_deref().unwrap_or("it failed again and again");
        let said = format!("group {name}: the server on {node} is quarantined: {reason}");
        judgement.add(Health::Degraded, said);
    }
}

fn judge_group(judgement: &mut Judgement, group: &GroupStatus) {
    if !group.waits_for.is_empty() {
        let (name, nodes) = (&group.name, group.waits_for.join(", "));
        let said = format!(
            "group {name} is not durable, and waits for {nodes}: acknowledged requests may be in \
             memory there (start what is down, with an empty disk if there is no other)"
        );
        return judgement.add(Health::Degraded, said);
    }
    // Whom an operator took out is where it should be.
    let is_fine = |state| matches!(state, MemberState::In | MemberState::Removed);
    for member in group.members.iter().filter(|member| !is_fine(member.state)) {
        let reason = match &member.reason {
            Some(reason) => format!(": {reason}"),
            None => String::new(),
        };
        let state = member.state.as_str();
        let said = format!("group {}: member {} is {state}{reason}", group.name, member.node);
        judgement.add(Health::Degraded, said);
    }
    unanswered::judge_members(judgement, group);
}

impl Judgement {
    fn add(&mut self, health: Health, reason: String) {
        self.health = self.health.max(health);
        self.reasons.push(reason);
    }
}
