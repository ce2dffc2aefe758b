//! What the engine reports, as log lines for the operator.
//!
//! Invariant: only rare things come here; nothing on a request's way does.

use crate::report::{Reporter, basis_text, why_left};
use quorba_admin::health::requests_text;
use quorba_base::{NodeId, NodeSet};
use quorba_engine::Event;
use quorba_engine::order::{LeaveReason, ViewKind};
use quorba_engine::replica::{
    Command, Event as ReplicaEvent, GroupId, IdentityFault, MemberState, RecentRequest, RequestEnd,
};
use std::ops::RangeInclusive;

/// Octets of a client id that a log line shows.
const CLIENT_ID_SHOWN: usize = 64;

/// The request that an event is about, if more than its number is to be told.
pub(crate) fn request_of(event: &Event) -> Option<(GroupId, u64)> {
    match event {
        Event::Replica(ReplicaEvent::RequestEnded { group, request, .. }) => {
            Some((*group, *request))
        }
        _ => None,
    }
}

/// Logs an event, and lets the reporter remember what status shows of it. `about`: what is known of
/// the request of [`request_of`].
pub(crate) fn log(event: &Event, about: Option<&RecentRequest>, reporter: &mut Reporter) {
    match event {
        Event::View(view) if view.kind == ViewKind::Regular => {
            let left: Vec<String> = view
                .left
                .iter()
                .map(|(node, why)| format!("{} ({})", reporter.name_of(*node), why_left(*why)))
                .collect();
            tracing::info!(
                view = view.ring.seq,
                members = names(reporter, view.members),
                joined = names(reporter, view.joined),
                left = left.join(", "),
                reason = reporter.why_gathered(view.reason),
                "new view"
            );
            for (node, _) in view.left.iter().filter(|(_, why)| *why == LeaveReason::PoorLinks) {
                let node = reporter.name_of(*node);
                tracing::warn!(
                    node,
                    "left out of the view: much of what goes to it or comes from it is lost or \
                     late; look at its network, `quorba status` says when it is tried again"
                );
            }
            reporter.saw_view(view);
        }
        Event::View(_) => {}
        // The caller does, because it can ask that node.
        Event::Refused { .. } => {}
        Event::Unanswered { group, number, peer } => {
            reporter.remember_client(*group, *number, *peer);
        }
        Event::TurnedAway { peer, connections, refused } => {
            tracing::warn!(
                address = %peer, connections, refused,
                "connections of this client address are turned away: it has as many as \
                 connections_per_peer, or all have `connections`"
            );
        }
        Event::Replica(ReplicaEvent::RequestEnded { group, request, end }) => {
            log_ended((*group, *request), *end, about, reporter);
            reporter.saw_end(*group, *request);
        }
        Event::Replica(event) => log_replica(event, reporter),
    }
}

fn log_replica(event: &ReplicaEvent, reporter: &mut Reporter) {
    match event {
        ReplicaEvent::Primary { .. }
        | ReplicaEvent::MemoryFrom { .. }
        | ReplicaEvent::MemoryWaits { .. }
        | ReplicaEvent::Blocked { .. } => log_component(event, reporter),
        ReplicaEvent::Member { group, node, state, .. } => {
            let text = match state {
                MemberState::In { .. } => "in, takes part".to_string(),
                MemberState::Joining { donor, .. } => {
                    format!("joining, state from {}", reporter.name_of(*donor))
                }
                MemberState::Down(reason) => format!("down: {}", reason.text()),
                MemberState::Out { reason, .. } => format!("out: {}", reason.text()),
            };
            let member = reporter.name_of(*node).to_string();
            tracing::info!(
                group = reporter.group_name(*group),
                member,
                state = text,
                "a member's state changed"
            );
            reporter.member_changed(*group, format!("{member} {text}"));
            reporter.member_is(*group, *node, *state);
        }
        ReplicaEvent::Opened { group } => {
            tracing::info!(group = reporter.group_name(*group), "group takes requests");
        }
        ReplicaEvent::Changed { .. }
        | ReplicaEvent::Leader { .. }
        | ReplicaEvent::Diverged { .. }
        | ReplicaEvent::Disagreement { .. }
        | ReplicaEvent::CallRefused { .. }
        | ReplicaEvent::OutsideFailed { .. }
        | ReplicaEvent::CallDiffers { .. } => log_work(event, reporter),
        // The caller knows more of it.
        ReplicaEvent::RequestEnded { .. } => {}
        ReplicaEvent::AtFault { .. } => log_at_fault(event, reporter),
        ReplicaEvent::Full { group, is_full } => {
            let group = reporter.group_name(*group);
            if *is_full {
                tracing::warn!(
                    group,
                    "replies that clients may ask for again take more than reply_retention_bytes; \
                     new calls under FT_REQUEST are refused until some are forgotten"
                );
            } else {
                tracing::info!(group, "new calls under FT_REQUEST are taken again");
            }
        }
        ReplicaEvent::IdentityRefused { .. } => log_identity(event, reporter),
        // The caller knows where servers listen.
        ReplicaEvent::Returned { .. } => {}
        ReplicaEvent::Uncleared { group } => log_uncleared(*group, reporter),
        ReplicaEvent::Unreadable { name, reason } => {
            tracing::error!(
                group = &**name,
                reason,
                "the group's definition means nothing to this node, and others may serve it: run \
                 one version of the program on all nodes"
            );
        }
        ReplicaEvent::Skipped { origin } => {
            let origin = reporter.name_of(*origin);
            tracing::error!(origin, "an ordered message of another version was skipped");
        }
    }
}

/// Requests whose names do not hold.
fn log_identity(event: &ReplicaEvent, reporter: &Reporter) {
    let ReplicaEvent::IdentityRefused { group, fault, client_id, subject, count } = event else {
        return;
    };
    let group = reporter.group_name(*group);
    let client = client_id[..client_id.len().min(CLIENT_ID_SHOWN)].escape_ascii().to_string();
    let from = subject_text(*subject);
    match fault {
        IdentityFault::Taken => tracing::warn!(
            group,
            client,
            from,
            count,
            "a request has the client id and retention id of another call and was not executed \
             (FT_REQUEST; said once a minute)"
        ),
        IdentityFault::NoRoom => tracing::warn!(
            group,
            client,
            from,
            count,
            "a request under FT_REQUEST was refused: its client, its address or the group has too \
             many to be remembered (said once a minute)"
        ),
    }
}

/// An address, or the beginning of a certificate's digest.
fn subject_text(subject: [u8; 16]) -> String {
    let address = std::net::Ipv6Addr::from(subject);
    match address.to_ipv4_mapped() {
        Some(address) => address.to_string(),
        None => address.to_string(),
    }
}

/// What the view is.
fn log_component(event: &ReplicaEvent, reporter: &mut Reporter) {
    match event {
        ReplicaEvent::Primary { view, members, current, basis } => {
            let behind = members.difference(*current);
            tracing::info!(
                view = view.seq,
                up_to_date = names(reporter, *current),
                behind = names(reporter, behind),
                basis = basis_text(*basis),
                "primary component: this node serves"
            );
            reporter.is_primary(*basis);
        }
        ReplicaEvent::MemoryFrom { view, current, basis } => {
            tracing::info!(
                view = view.seq,
                up_to_date = names(reporter, *current),
                basis = basis_text(*basis),
                "groups that are not durable go on from the memory of these nodes"
            );
            reporter.memory_is_from(*basis);
        }
        ReplicaEvent::MemoryWaits { view } => {
            tracing::warn!(
                view = view.seq,
                "groups that are not durable wait: a node that is away may have requests in memory \
                 that were acknowledged"
            );
        }
        ReplicaEvent::Blocked { view, reason } => {
            tracing::warn!(
                view = view.seq,
                reason = reason.text(),
                "no primary component: calls are refused (TRANSIENT)"
            );
        }
        _ => unreachable!("the caller matched"),
    }
}

/// How the members share the work, and whether they do the same.
fn log_work(event: &ReplicaEvent, reporter: &mut Reporter) {
    match event {
        ReplicaEvent::Changed { group, command } => {
            log_command(reporter.group_name(*group), *command, reporter);
            reporter.saw_command(*group, *command);
        }
        ReplicaEvent::Leader { group, leader } => {
            let leader = leader.map_or("nobody", |node| reporter.name_of(node));
            tracing::info!(group = reporter.group_name(*group), leader, "the leader changed");
        }
        ReplicaEvent::Diverged { group, node, first, request, expelled } => {
            log_diverged((*group, *first..=*request), *node, *expelled, reporter);
        }
        ReplicaEvent::CallRefused { caller, target, during, why } => {
            let (caller, target) = (reporter.group_name(*caller), reporter.group_name(*target));
            let why = why.text();
            tracing::warn!(
                caller,
                target,
                request = during,
                why,
                "a call of a replicated server is refused"
            );
        }
        ReplicaEvent::OutsideFailed { caller, target, during, why } => {
            let (caller, target) = (reporter.group_name(*caller), reporter.group_name(*target));
            let why = why.text();
            tracing::warn!(
                caller,
                target,
                request = during,
                why,
                "a call to a server outside has no reply"
            );
        }
        ReplicaEvent::CallDiffers { caller, node, during } => {
            let Some(left_out) = reporter.saw_calls_differ(*caller) else { return };
            let member = reporter.name_of(*node).to_string();
            tracing::warn!(
                group = reporter.group_name(*caller),
                member,
                request = during,
                suppressed = left_out,
                "a nested call differs from that of another member: the server is not \
                 deterministic, or its ORB leaves padding as it was in memory \
                 (`compare_replies = \"ignore-padding\"` ignores such behind texts; said once a \
                 minute; quorba status counts)"
            );
            reporter.member_changed(*caller, format!("{member} calls differently"));
        }
        ReplicaEvent::Disagreement { group, first, request } => {
            let what = "replied different things, and none has a majority";
            log_difference((*group, *first..=*request), None, what, reporter);
        }
        _ => unreachable!("the caller looked"),
    }
}

/// A member replied something else than the majority.
fn log_diverged(
    (group, requests): (GroupId, RangeInclusive<u64>),
    node: NodeId,
    expelled: bool,
    reporter: &mut Reporter,
) {
    if !expelled {
        let what = "replied something else than the majority";
        return log_difference((group, requests), Some(node), what, reporter);
    }
    let member = reporter.name_of(node).to_string();
    tracing::error!(
        group = reporter.group_name(group),
        member,
        request = requests.end(),
        "its replies differ from those of the majority; it is expelled and rebuilt"
    );
    reporter.member_changed(group, format!("{member} differs at {}", requests_text(&requests)));
}

/// Members do different things, and stay in. A server that differs once does so at each call, so
/// this is said once a minute; status counts.
fn log_difference(
    (group, requests): (GroupId, RangeInclusive<u64>),
    node: Option<NodeId>,
    what: &'static str,
    reporter: &mut Reporter,
) {
    let nodes = node.into_iter().collect();
    let Some(left_out) = reporter.saw_difference(group, nodes, what, &requests) else { return };
    let member = node.map(|node| reporter.name_of(node).to_string());
    tracing::error!(
        group = reporter.group_name(group),
        member,
        requests = requests_text(&requests),
        suppressed = left_out,
        "members {what}: their states may differ (said once a minute; quorba status counts)"
    );
    let who = member.unwrap_or_else(|| "members".into());
    reporter.member_changed(group, format!("{who} differ at {}", requests_text(&requests)));
}

/// Members reply differently, and this may be why.
fn log_uncleared(group: GroupId, reporter: &mut Reporter) {
    let Some(left_out) = reporter.saw_uncleared(group) else { return };
    tracing::warn!(
        group = reporter.group_name(group),
        suppressed = left_out,
        "where members differ, replies have {} (said once a minute)",
        quorba_admin::health::UNCLEARED
    );
}

/// No server replies to a request.
fn log_ended(
    (group, number): (GroupId, u64),
    end: RequestEnd,
    about: Option<&RecentRequest>,
    reporter: &Reporter,
) {
    let known = about.map(|request| reporter.request(group, number, Some(request)));
    let known = known.as_ref();
    tracing::warn!(
        group = reporter.group_name(group),
        request = number,
        operation = known.map(|request| request.operation.as_str()),
        key = known.map(|request| request.key.as_str()),
        bytes = known.map(|request| request.bytes),
        gateway = known.map(|request| request.gateway.as_str()),
        client = known.and_then(|request| request.client.as_deref()),
        "the request has no reply: {}",
        end.text()
    );
}

/// A server did not answer what another one has answered.
fn log_at_fault(event: &ReplicaEvent, reporter: &Reporter) {
    let ReplicaEvent::AtFault { group, node, request, reason } = event else { return };
    let (group, member) = (reporter.group_name(*group), reporter.name_of(*node));
    let reason = reason.text();
    tracing::warn!(
        group,
        member,
        request,
        "other members answered the request, and this one did not: {reason}; its server is \
         started anew"
    );
}

fn log_command(group: &str, command: Command, reporter: &Reporter) {
    match command {
        Command::SetStyle(style) => {
            tracing::info!(group, style = style.as_str(), "the operator changed the style");
        }
        Command::Promote(node) => {
            let leader = reporter.name_of(node);
            tracing::info!(group, leader, "the operator chose the leader");
        }
        Command::Add(node) => {
            let member = reporter.name_of(node);
            tracing::info!(group, member, "the operator added a member");
        }
        Command::Remove(node) => {
            let member = reporter.name_of(node);
            tracing::info!(group, member, "the operator removed a member");
        }
        Command::Restore { node, .. } => {
            let member = reporter.name_of(node);
            tracing::warn!(group, member, "the group has the state of a backup now");
        }
        Command::Adopt(node) => {
            let member = reporter.name_of(node);
            tracing::warn!(
                group,
                member,
                "the operator says that this member's server has the group's state"
            );
        }
        Command::SkipAnswered(at) => {
            tracing::warn!(
                group,
                request = at.count,
                "the operator gave up a request that was answered: what it did is lost"
            );
        }
        Command::Skip(at) => {
            tracing::info!(group, request = at.count, "an operator gave up this request");
        }
        Command::Backup(_) => {}
    }
}

fn names(reporter: &Reporter, nodes: NodeSet) -> String {
    nodes.iter().map(|node| reporter.name_of(node)).collect::<Vec<_>>().join(" ")
}
