//! The one function from statuses to facts.

use quorba_base::policy::Style;

use super::clocks::clocks;
use super::requests::{groups, stuck};
use super::{Fact, Judgement, Seen, channels, references};
use crate::status::{
    GroupStatus, MemberState, MemberStatus, NodeStatus, RefusalStatus, ServerState, Status,
    WaitStatus,
};
use std::collections::BTreeSet;

/// A call that is answered by CloseConnection once or twice met a server that was tidying up.
const CLOSES_USUAL: u64 = 2;
/// The style in which nothing that one member has becomes the others'.
const STATELESS: &str = "stateless";
/// A state that was not had once may be had the next time; if it is not asked for again, what it
/// was asked for is told.
const REFUSALS_USUAL: u32 = 1;

/// The status that knows most: a primary view before another, then the latest view.
#[must_use]
pub fn best<'a>(seen: &[Seen<'a>]) -> Option<&'a Status> {
    let statuses = seen.iter().filter_map(Seen::status);
    // max_by_key keeps the last of equals; reversed, the first node of the file wins.
    statuses.rev().max_by_key(|status| (status.ring.primary, status.ring.view_seq))
}

/// Judges what the nodes said: of the whole domain, or of the group called `only` and whether
/// there is a primary component.
#[must_use]
pub fn judge(seen: &[Seen], only: Option<&str>) -> Judgement {
    Judgement::of(facts(seen, only))
}

fn facts(seen: &[Seen], only: Option<&str>) -> Vec<Fact> {
    let Some(best) = best(seen) else {
        return seen.iter().filter_map(silent).collect();
    };
    let mut facts = Vec::new();
    if !best.ring.primary {
        facts.push(Fact::NoPrimary { reason: best.ring.primary_reason.clone() });
    }
    if only.is_none() {
        nodes(&mut facts, seen, best);
        facts.extend(clocks(best));
        facts.extend(memory_lost(seen, best));
    }
    let is_meant = |group: &&GroupStatus| only.is_none_or(|name| group.name == name);
    for group in best.groups.iter().filter(is_meant) {
        members(&mut facts, seen, group, best.ring.primary);
        differences(&mut facts, seen, group);
        references::facts(&mut facts, seen, group);
        hanging(&mut facts, seen, group);
        for (status, here) in groups(seen, &group.name) {
            server(&mut facts, &status.node, here);
            channels::facts(&mut facts, here);
        }
        unanswered(&mut facts, seen, group);
    }
    let is_durable = best.groups.iter().filter(is_meant).any(|group| group.durable);
    if only.is_none() || is_durable {
        seen.iter().filter_map(Seen::status).for_each(|status| log(&mut facts, status));
    }
    facts
}

fn silent(one: &Seen) -> Option<Fact> {
    match one {
        Seen::Answered(_) => None,
        Seen::Silent { node, why, .. } => {
            Some(Fact::Silent { node: (*node).to_owned(), why: why.clone() })
        }
    }
}

/// Who is there.
fn nodes(facts: &mut Vec<Fact>, seen: &[Seen], best: &Status) {
    // Nodes that run, and are away because they are refused.
    let mut kept_out = Vec::new();
    let says =
        |name: &str| seen.iter().any(|one| matches!(one, Seen::Answered(it) if it.node == name));
    let refused = best.nodes.iter().filter_map(|node| Some((node, node.refused.as_ref()?)));
    // Anybody can forge what does not open; it is told of a node that is missing.
    let is_meant = |node: &NodeStatus, of: &RefusalStatus| !node.in_view || of.is_proven;
    for (node, refusal) in refused.filter(|(node, refusal)| is_meant(node, refusal)) {
        if refusal.is_proven || says(&node.name) {
            kept_out.push(&node.name);
        }
        let (node, by) = (node.name.clone(), best.node.clone());
        let RefusalStatus { code, what, next, since_ms, .. } = refusal.clone();
        facts.push(Fact::Refused { node, by, what, next, code, since_ms });
    }
    for node in best.nodes.iter().filter(|node| !node.in_view && !kept_out.contains(&&node.name)) {
        let (node, standing, since_ms) = (node.name.clone(), node.standing.clone(), node.since_ms);
        facts.push(Fact::NodeAway { node, standing, since_ms });
    }
    for one in seen {
        match one {
            Seen::Answered(status) if status.ring.view_seq == best.ring.view_seq => {}
            Seen::Answered(status) if kept_out.contains(&&status.node) => {}
            Seen::Answered(status) if best.ring.primary => facts.push(Fact::OtherView {
                node: status.node.clone(),
                view: status.ring.view_seq,
                best: best.ring.view_seq,
                reason: status.ring.reason.clone(),
            }),
            Seen::Silent { node, why, is_suspect: true } => {
                let in_view = |it: &&NodeStatus| it.name == *node && it.in_view;
                if best.nodes.iter().any(|it| in_view(&it)) {
                    let (node, why) = ((*node).to_owned(), why.clone());
                    facts.push(Fact::Hangs { node, why });
                }
            }
            Seen::Answered(_) | Seen::Silent { .. } => {}
        }
    }
}

/// Who executes.
fn members(facts: &mut Vec<Fact>, seen: &[Seen], group: &GroupStatus, is_primary: bool) {
    let name = || group.name.clone();
    if !group.waits_for.is_empty() {
        facts.push(Fact::WaitsForMemory { group: name(), nodes: group.waits_for.clone() });
        return;
    }
    let is = |state| move |member: &&MemberStatus| member.state == state;
    let taking_part = group.members.iter().filter(|it| !is(MemberState::Removed)(it)).count();
    let mut inside = group.members.iter().filter(is(MemberState::In));
    let (first, count) = (inside.next(), 1 + inside.count());
    if first.is_none() && taking_part > 0 {
        let has_state = group.style != STATELESS;
        let behind = groups(seen, &group.name).find_map(|(_, it)| {
            it.ends_behind.clone().filter(|it| !it.request.operation.is_empty())
        });
        let (is_durable, behind) = (group.durable, behind.or_else(|| group.ends_behind.clone()));
        facts.push(Fact::NobodyIn { group: name(), is_durable, has_state, behind });
    }
    // Whom an operator took out is where it should be.
    let is_fine = |state| matches!(state, MemberState::In | MemberState::Removed);
    for member in group.members.iter().filter(|member| !is_fine(member.state)) {
        facts.push(Fact::MemberOut {
            group: name(),
            node: member.node.clone(),
            state: member.state,
            reason: why_out(seen, group, member),
            since_ms: member.since_ms,
        });
    }
    // In a minority nobody knows who else is in.
    let is_last = is_primary && count == 1 && taking_part > 1;
    if let Some(last) = first.filter(|_| is_last && !is_kept(group)) {
        facts.push(Fact::LastMember { group: name(), node: last.node.clone() });
    }
}

/// Requests that servers are at for too long. If another one has gone on, these servers are late;
/// else it is the request.
fn hanging(facts: &mut Vec<Fact>, seen: &[Seen], group: &GroupStatus) {
    let all_execute = Style::from_word(&group.style).is_some_and(Style::all_execute);
    let is_in =
        |node: &str| group.members.iter().any(|it| it.node == node && it.state == MemberState::In);
    let goes_on = groups(seen, &group.name)
        .any(|(status, here)| here.stuck.is_empty() && is_in(&status.node));
    for (one, nodes) in stuck(seen, &group.name) {
        // While its gateway waits for it nobody has answered.
        let is_open = groups(seen, &group.name)
            .any(|(_, here)| here.waiting.iter().any(|it| it.number == one.request.number));
        if all_execute && goes_on && !is_open {
            let late = nodes.into_iter().filter(|node| !group.late.contains(node));
            facts.extend(late.map(|node| Fact::Late { group: group.name.clone(), node }));
        } else {
            let (group, request, since_ms) = (group.name.clone(), one.request, one.since_ms);
            facts.push(Fact::Stuck { group, request, nodes, since_ms });
        }
    }
}

/// Clients that wait for what is no request that a server is known to be at, such as a read.
fn unanswered(facts: &mut Vec<Fact>, seen: &[Seen], group: &GroupStatus) {
    let says_why = |fact: &Fact| match fact {
        Fact::NoPrimary { .. } => true,
        Fact::NobodyIn { .. } | Fact::WaitsForMemory { .. } | Fact::Stuck { .. } => {
            fact.group() == Some(&group.name)
        }
        _ => false,
    };
    if facts.iter().any(says_why) {
        return;
    }
    for (status, here) in groups(seen, &group.name) {
        if let Some(WaitStatus { client, since_ms }) = here.longest_wait.clone() {
            let (group, node) = (group.name.clone(), status.node.clone());
            facts.push(Fact::Unanswered { group, node, client, since_ms });
        }
    }
}

/// For a day: whom it concerns has heard of it then.
const MEMORY_LOST_TOLD_MS: u64 = 86_400_000;

fn memory_lost(seen: &[Seen], best: &Status) -> Option<Fact> {
    let saw = seen.iter().filter_map(Seen::status).filter_map(|status| status.ring.memory_lost_ms);
    let since_ms = saw.max().filter(|ms| *ms < MEMORY_LOST_TOLD_MS)?;
    // Who has seen it knows which groups came later.
    let known = seen.iter().filter_map(Seen::status).flat_map(|status| &status.groups);
    let there: BTreeSet<&str> =
        known.filter(|group| group.lost_memory).map(|group| group.name.as_str()).collect();
    let lost = best.groups.iter().filter(|group| !is_kept(group));
    let lost = lost.map(|group| group.name.as_str()).filter(|name| there.contains(name));
    let groups: Vec<String> = lost.map(str::to_owned).collect();
    (!groups.is_empty()).then_some(Fact::MemoryLost { groups, since_ms })
}

/// Whether the end of all servers loses nothing.
fn is_kept(group: &GroupStatus) -> bool {
    group.durable || group.style == STATELESS
}

/// The server's own node may know more than the domain does.
fn why_out(seen: &[Seen], group: &GroupStatus, member: &MemberStatus) -> Option<String> {
    let here = groups(seen, &group.name).find(|(status, _)| status.node == member.node);
    let server = here.and_then(|(_, here)| here.server.as_ref());
    // One that is started again has the reason of before, until it serves.
    let server =
        server.filter(|server| matches!(server.state, ServerState::Down | ServerState::Starting));
    let server = server.and_then(|server| server.reason.as_deref());
    let known = match (member.reason.as_deref(), server) {
        // It need not be said twice that it ended.
        (Some(reason), Some(server)) if reason.ends_with("ended") => {
            vec![reason, server.strip_prefix("ended: ").unwrap_or(server)]
        }
        known => [known.0, known.1].into_iter().flatten().collect(),
    };
    (!known.is_empty()).then(|| known.join(": "))
}

/// Whether those who execute do the same.
fn differences(facts: &mut Vec<Fact>, seen: &[Seen], group: &GroupStatus) {
    let since = |of: fn(&GroupStatus) -> Option<u64>| {
        groups(seen, &group.name).filter_map(|(_, here)| of(here)).max()
    };
    if let Some(request) = group.may_differ {
        let since_ms = since(|here| here.may_differ_ms);
        facts.push(Fact::MayDiffer { group: group.name.clone(), request, since_ms });
    }
    // A node that was started anew does not know of it; who saw most of it tells.
    let known = groups(seen, &group.name).filter_map(|(_, here)| here.differ.as_ref());
    if let Some(differ) = known.max_by_key(|differ| differ.times) {
        facts.push(Fact::Differ {
            group: group.name.clone(),
            nodes: differ.nodes.clone(),
            what: differ.what.clone(),
            first_request: differ.first_request,
            request: differ.request,
            times: differ.times,
            since_ms: Some(differ.since_ms),
            can_rebuild: group.has_state_object,
            may_be_padding: differ.may_be_padding,
        });
    }
    for node in &group.late {
        facts.push(Fact::Late { group: group.name.clone(), node: node.clone() });
    }
}

/// What only a server's own node knows.
fn server(facts: &mut Vec<Fact>, node: &str, here: &GroupStatus) {
    let names = || (here.name.clone(), node.to_owned());
    let server = here.server.as_ref();
    let log = server.and_then(|server| server.log.clone());
    if let Some(refused) = here.state_refused.as_ref().filter(|it| it.times > REFUSALS_USUAL) {
        let ((group, node), refused) = (names(), refused.clone());
        facts.push(Fact::StateRefused { group, node, refused, log: log.clone() });
    }
    if let Some(refused) = &here.state_not_taken {
        let ((group, node), refused) = (names(), refused.clone());
        facts.push(Fact::StateNotTaken { group, node, refused, log: log.clone() });
    }
    if here.checkpoint_overdue {
        let ((group, node), requests) = (names(), here.logged);
        facts.push(Fact::CheckpointOverdue { group, node, requests });
    }
    facts.extend(super::scheduling::fact(node, here));
    let Some(server) = server else { return };
    if server.closes > CLOSES_USUAL {
        let ((group, node), times) = (names(), server.closes);
        facts.push(Fact::Closes { group, node, times, log: log.clone() });
    }
    if let Some(key) = &server.missing_object {
        let ((group, node), since_ms) = (names(), server.since_ms);
        facts.push(Fact::ObjectMissing { group, node, key: key.clone(), since_ms });
    }
    if server.state == ServerState::Quarantined {
        let ((group, node), reason, since_ms) = (names(), server.reason.clone(), server.since_ms);
        facts.push(Fact::Quarantined { group, node, reason, since_ms, log });
    }
}

fn log(facts: &mut Vec<Fact>, status: &Status) {
    let Some(log) = &status.log else { return };
    if let Some(reason) = &log.waits {
        let (node, reason, since_ms) = (status.node.clone(), reason.clone(), log.waits_ms);
        facts.push(Fact::LogWaits { node, reason, since_ms });
    }
}
