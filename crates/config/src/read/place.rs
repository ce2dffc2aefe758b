//! Whether nodes and groups that share a host fit there beside each other.
//!
//! What it is not: a look at ports that are free. Invariant: the work for one group does not grow
//! with the number of groups.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::group::GroupDraft;
use super::node::NodeDraft;
use super::scope::{Known, Scope, Told};
use crate::codes::Code;
use crate::domain::Gateway;
use crate::problem::Problem;
use crate::walk::{Problems, Span};

/// How the port is called that many groups share.
const GATEWAY: &str = "the gateway";

/// Someone who opens a port.
#[derive(Clone)]
struct Claim {
    node: usize,
    /// The group, if the port is that of a group's gateway.
    group: Option<String>,
    /// The address; `None` if it is every address, or unknown.
    address: Option<IpAddr>,
    what: String,
    span: Span,
}

impl Claim {
    fn meets(&self, other: &Self) -> bool {
        match (self.address, other.address) {
            (Some(one), Some(another)) => one == another,
            _ => true,
        }
    }
}

/// Reports nodes of one host that would open the same port or share a directory.
pub(super) fn check_nodes(problems: &Problems, nodes: &[NodeDraft], gateway: Option<Gateway>) {
    check_state_dirs(problems, nodes);
    let mut seen: BTreeMap<(String, u16), Vec<Claim>> = BTreeMap::new();
    for (index, draft) in nodes.iter().enumerate() {
        for (port, claim) in claims_of(problems, index, draft, gateway) {
            let there = seen.entry((draft.machine(), port)).or_default();
            if let Some(other) = there.iter().find(|other| other.meets(&claim)) {
                problems.add(conflict(nodes, port, other, &claim));
            }
            there.push(claim);
        }
    }
}

fn check_state_dirs(problems: &Problems, nodes: &[NodeDraft]) {
    let mut seen: BTreeMap<_, &NodeDraft> = BTreeMap::new();
    for draft in nodes {
        let place = (draft.machine(), draft.node.state_dir.clone());
        let Some(first) = seen.get(&place) else {
            seen.insert(place, draft);
            continue;
        };
        let (one, other) = (&first.node.name, &draft.node.name);
        let message = format!("nodes {one} and {other} are on one host and share a `state_dir`");
        let problem = Problem::at(Code::Conflict, draft.state_dir_span.clone(), message);
        problems.add(problem.related(first.state_dir_span.clone(), format!("taken by {one}")));
    }
}

/// The ports of a node but for those of groups.
fn claims_of(
    problems: &Problems,
    index: usize,
    draft: &NodeDraft,
    gateway: Option<Gateway>,
) -> Vec<(u16, Claim)> {
    let node = &draft.node;
    let claim = |what: &str, address, span: &Span| Claim {
        node: index,
        group: None,
        address,
        what: what.to_owned(),
        span: span.clone(),
    };
    let ring = claim("the ring", address_of(draft), &draft.ring_port_span);
    let admin = claim("the admin API", Some(node.admin.ip()), &draft.admin_span);
    let mut all = vec![(node.ring_port, ring), (node.admin.port(), admin)];
    let Some(Gateway { listen }) = gateway else { return all };
    match listen.checked_add(node.gateway_port_offset) {
        Some(port) => {
            all.push((port, claim(GATEWAY, address_of(draft), &draft.offset_span)));
        }
        None => {
            let message = format!("the gateway's port on {} would be above 65535", node.name);
            let problem = Problem::at(Code::OutOfRange, draft.offset_span.clone(), message);
            problems.add(problem.label(format!("`listen` of [gateway] is {listen}")));
        }
    }
    all
}

fn address_of(draft: &NodeDraft) -> Option<IpAddr> {
    draft.node.bind_address().filter(|address| !address.is_unspecified())
}

/// Where in the text a port is named that another group has.
type Place<'a> = &'a dyn Fn(u16) -> Option<Span>;

/// Reports ports of a group that somebody has already.
pub(super) fn check_group(
    problems: &Problems,
    scope: &Scope<'_>,
    draft: &GroupDraft,
    (known, place, told): (&dyn Known, Place<'_>, &mut Told),
) {
    check_listens(problems, draft, known, place);
    let own: Vec<(u16, &Span)> = draft.listens().collect();
    // Who has it besides; of two groups that have one port it is told only once.
    let owner = |port: u16| match own.iter().any(|(own, _)| *own == port) {
        true => Some(draft.group.name.clone()),
        false => known.listener(port).filter(|name| *name != draft.group.name),
    };
    for (listen, span) in &own {
        for (index, node) in scope.nodes.iter().enumerate() {
            let Some(port) = listen.checked_add(node.node.gateway_port_offset) else {
                problems.add(above(scope, draft, node, (*listen, span)));
                continue;
            };
            let claim = claim(scope, index, &draft.group.name, span);
            check_port(problems, scope, (port, &claim), &owner, told);
        }
    }
}

fn check_listens(problems: &Problems, draft: &GroupDraft, known: &dyn Known, place: Place<'_>) {
    let name = &draft.group.name;
    let mut earlier: Vec<(u16, &Span)> = Vec::new();
    for (listen, span) in draft.listens() {
        let same = earlier.iter().find(|(other, _)| *other == listen);
        let (message, owner, first) = match known.listener(listen).filter(|owner| owner != name) {
            Some(owner) => {
                let message = format!("groups {owner} and {name} both listen on {listen}");
                (message, owner, place(listen))
            }
            None if same.is_some() => {
                let message = format!("group {name} listens on {listen} with TLS and without");
                (message, name.clone(), same.map(|(_, span)| (*span).clone()))
            }
            None => {
                earlier.push((listen, span));
                continue;
            }
        };
        let mut problem = Problem::at(Code::Conflict, span.clone(), message);
        if let Some(first) = first {
            problem = problem.related(first, format!("taken by {owner}"));
        }
        problems.add(problem.help("each group has gateway ports of its own"));
    }
}

fn above(
    scope: &Scope<'_>,
    draft: &GroupDraft,
    node: &NodeDraft,
    (listen, span): (u16, &Span),
) -> Problem {
    let (group, name) = (&draft.group.name, &node.node.name);
    let message = format!("gateway port of group {group} on {name} would be above 65535");
    let label = format!("`listen` is {listen}");
    if scope.shows_nodes {
        let problem = Problem::at(Code::OutOfRange, node.offset_span.clone(), message);
        return problem.related(span.clone(), label);
    }
    Problem::at(Code::OutOfRange, span.clone(), message).label(label)
}

/// The gateway of a group at a node.
fn claim(scope: &Scope<'_>, index: usize, group: &str, listen: &Span) -> Claim {
    let node = &scope.nodes[index];
    Claim {
        node: index,
        group: Some(group.to_owned()),
        address: address_of(node),
        what: format!("the gateway of {group}"),
        span: if scope.shows_nodes { node.offset_span.clone() } else { listen.clone() },
    }
}

/// Compares one port of a group at one node with what others open on that machine. Of two claims
/// of one group the one at the later node is the one that is told.
fn check_port(
    problems: &Problems,
    scope: &Scope<'_>,
    (port, claim): (u16, &Claim),
    owner: &dyn Fn(u16) -> Option<String>,
    told: &mut Told,
) {
    let machine = scope.nodes[claim.node].machine();
    for (index, other) in scope.nodes.iter().enumerate() {
        if other.machine() != machine {
            continue;
        }
        // What is wrong with the node's own ports is told where the nodes are read.
        let quiet = Problems::default();
        let fixed = claims_of(&quiet, index, other, scope.gateway);
        let fixed = fixed.into_iter().find(|(other, fixed)| *other == port && fixed.meets(claim));
        if let Some((_, mut fixed)) = fixed {
            if !scope.shows_nodes {
                fixed.span = claim.span.clone();
            }
            let (one, two) = in_order(&fixed, claim);
            problems.add(conflict(scope.nodes, port, one, two));
        }
        let theirs = port.checked_sub(other.node.gateway_port_offset);
        let Some(group) = theirs.filter(|_| index != claim.node).and_then(owner) else { continue };
        let theirs = self::claim(scope, index, &group, &claim.span);
        if !theirs.meets(claim) {
            continue;
        }
        let is_same = theirs.group == claim.group;
        let pair = (index.min(claim.node), index.max(claim.node));
        if !is_same || told.pairs.insert(pair) {
            let (one, two) = in_order(&theirs, claim);
            problems.add(conflict(scope.nodes, port, one, two));
        }
    }
}

/// By their nodes; what a node has without groups comes first.
fn in_order<'a>(one: &'a Claim, two: &'a Claim) -> (&'a Claim, &'a Claim) {
    if one.node <= two.node { (one, two) } else { (two, one) }
}

fn conflict(nodes: &[NodeDraft], port: u16, first: &Claim, second: &Claim) -> Problem {
    let (one, other) = (&nodes[first.node].node, &nodes[second.node].node);
    let message = if first.node == second.node {
        format!("{} and {} of {} both need port {port}", first.what, second.what, one.name)
    } else {
        format!(
            "{} and {} are on one host: {} and {} both need port {port}",
            one.name, other.name, first.what, second.what
        )
    };
    let help = match (&first.group, &second.group) {
        (Some(one), Some(another)) if one == another => {
            format!("give {} a `gateway_port_offset` of its own, such as 100", other.name)
        }
        (Some(_), _) | (_, Some(_)) => "change `listen` or `gateway_port_offset`".to_owned(),
        _ if first.what == GATEWAY && second.what == GATEWAY => {
            format!("give {} a `gateway_port_offset` of its own, such as 100", other.name)
        }
        _ => format!("give {} a port of its own", other.name),
    };
    let problem = Problem::at(Code::Conflict, second.span.clone(), message).help(help);
    if first.span == second.span {
        return problem;
    }
    problem.related(first.span.clone(), format!("taken by {}", first.what))
}
