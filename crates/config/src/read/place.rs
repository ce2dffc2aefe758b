//! Whether nodes and groups that share a host fit there beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::group::GroupDraft;
use super::node::NodeDraft;
use crate::codes::Code;
use crate::problem::Problem;
use crate::walk::{Problems, Span};

/// Someone who opens a port.
struct Claim<'a> {
    node: usize,
    /// The group, if the port is a gateway's.
    group: Option<usize>,
    /// The address; `None` if it is every address, or unknown.
    address: Option<IpAddr>,
    what: String,
    span: &'a Span,
}

impl Claim<'_> {
    fn meets(&self, other: &Self) -> bool {
        match (self.address, other.address) {
            (Some(one), Some(another)) => one == another,
            _ => true,
        }
    }
}

/// Reports listeners that would need the same port, and nodes that would share a directory.
pub(super) fn check(problems: &Problems, nodes: &[NodeDraft], groups: &[GroupDraft]) {
    check_listens(problems, groups);
    check_state_dirs(problems, nodes);
    check_ports(problems, nodes, groups);
}

fn check_listens(problems: &Problems, groups: &[GroupDraft]) {
    let mut seen: BTreeMap<u16, (&GroupDraft, &Span)> = BTreeMap::new();
    for (_, draft, listen, span) in listens(groups) {
        let Some((first, first_span)) = seen.get(&listen) else {
            seen.insert(listen, (draft, span));
            continue;
        };
        let (one, other) = (&first.group.name, &draft.group.name);
        let message = if one == other {
            format!("group {one} listens on {listen} with TLS and without")
        } else {
            format!("groups {one} and {other} both listen on {listen}")
        };
        let problem = Problem::at(Code::Conflict, span.clone(), message);
        let problem = problem.related((*first_span).clone(), format!("taken by {one}"));
        problems.add(problem.help("each group has gateway ports of its own"));
    }
}

/// The ports of groups that were read, with their numbers and where they stand.
fn listens(groups: &[GroupDraft]) -> impl Iterator<Item = (usize, &GroupDraft, u16, &Span)> {
    let all = groups.iter().enumerate().flat_map(|(number, draft)| {
        let plain = (number, draft, draft.group.listen, &draft.listen_span);
        let tls = draft.group.tls.as_ref().zip(draft.tls_span.as_ref());
        let tls = tls.map(|(tls, span)| (number, draft, tls.listen, span));
        [Some(plain), tls].into_iter().flatten()
    });
    all.filter(|(_, _, listen, _)| *listen != 0)
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

fn check_ports(problems: &Problems, nodes: &[NodeDraft], groups: &[GroupDraft]) {
    let mut claims: BTreeMap<(String, u16), Vec<Claim<'_>>> = BTreeMap::new();
    for (index, draft) in nodes.iter().enumerate() {
        for (port, claim) in claims_of(problems, index, draft, groups) {
            claims.entry((draft.machine(), port)).or_default().push(claim);
        }
    }
    let mut told = BTreeSet::new();
    for ((_, port), claims) in &claims {
        for (index, claim) in claims.iter().enumerate() {
            let other = claims[..index].iter().find(|other| other.meets(claim));
            let Some(other) = other else { continue };
            let gateways = claim.group.is_some() && other.group.is_some();
            // Two groups with one `listen` are reported once, not once per node; so are two
            // nodes without an offset between them, not once per group.
            let same_node = gateways && claim.node == other.node;
            let known =
                gateways && claim.group == other.group && !told.insert((other.node, claim.node));
            if same_node || known {
                continue;
            }
            problems.add(conflict(nodes, *port, other, claim));
        }
    }
}

fn claims_of<'a>(
    problems: &Problems,
    index: usize,
    draft: &'a NodeDraft,
    groups: &[GroupDraft],
) -> Vec<(u16, Claim<'a>)> {
    let node = &draft.node;
    let address = node.bind_address().filter(|address| !address.is_unspecified());
    let claim =
        |what: String, group, address, span| Claim { node: index, group, address, what, span };
    let ring = claim("the ring".to_owned(), None, address, &draft.ring_port_span);
    let admin = claim("the admin API".to_owned(), None, Some(node.admin.ip()), &draft.admin_span);
    let mut all = vec![(node.ring_port, ring), (node.admin.port(), admin)];
    for (number, group, listen, span) in listens(groups) {
        let Some(port) = listen.checked_add(node.gateway_port_offset) else {
            let message = format!(
                "gateway port of group {} on {} would be above 65535",
                group.group.name, node.name
            );
            let problem = Problem::at(Code::OutOfRange, draft.offset_span.clone(), message);
            let label = format!("`listen` is {listen}");
            problems.add(problem.related(span.clone(), label));
            continue;
        };
        let what = format!("the gateway of {}", group.group.name);
        all.push((port, claim(what, Some(number), address, &draft.offset_span)));
    }
    all
}

fn conflict(nodes: &[NodeDraft], port: u16, first: &Claim<'_>, second: &Claim<'_>) -> Problem {
    let (one, other) = (&nodes[first.node].node, &nodes[second.node].node);
    let message = if first.node == second.node {
        format!("{} and {} of {} both need port {port}", first.what, second.what, one.name)
    } else {
        format!(
            "{} and {} are on one host: {} and {} both need port {port}",
            one.name, other.name, first.what, second.what
        )
    };
    let help = match (first.group, second.group) {
        (Some(one), Some(another)) if one == another => {
            format!("give {} a `gateway_port_offset` of its own, such as 100", other.name)
        }
        (Some(_), _) | (_, Some(_)) => "change `listen` or `gateway_port_offset`".to_owned(),
        _ => format!("give {} a port of its own", other.name),
    };
    let problem = Problem::at(Code::Conflict, second.span.clone(), message).help(help);
    if first.span == second.span {
        return problem;
    }
    problem.related(first.span.clone(), format!("taken by {}", first.what))
}
