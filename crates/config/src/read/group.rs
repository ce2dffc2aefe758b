//! `[group.NAME]` tables.
//!
//! What it is not: knowledge of other groups. [`read_one`] looks at one table and the domain's;
//! [`check_one`] then compares it with the other groups, of the file or of the running domain.

use quorba_base::{NODES_MAX, NodeId, NodeSet};
use toml::de::DeValue;

use super::access;
use super::backend;
use super::calls;
use super::durable;
use super::execution;
use super::lateness;
use super::monitoring;
use super::ordered_time;
use super::outside::OutsideDraft;
use super::place;
use super::readonly;
use super::recovery;
use super::scope::{InFile, Known, Scope, Told};
use super::service;
use super::style::{self, StyleDraft};
use crate::codes::Code;
use crate::definition::{DEFINITION_BYTES_MAX, Definition, Kind};
use crate::domain::{Backend, Engine, Group, ObjectGroup, RETENTION_BYTES_DEFAULT};
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::template::Placeholder;
use crate::walk::{At, Problems, Section, Span, shortened};
use quorba_base::policy::{Ack, Concurrency, OnTotalLoss, ReplyPath, Style};

/// An object key of a reference; longer ones are refused by ORBs in the field.
const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// A group with the places of what other tables can collide with.
#[derive(Debug)]
pub(super) struct GroupDraft {
    pub(super) group: Group,
    pub(super) definition: Definition,
    pub(super) calls: calls::Draft,
    listen_span: Span,
    tls_span: Option<Span>,
}

impl GroupDraft {
    /// The ports of its own that could be read, and where they stand.
    pub(super) fn listens(&self) -> impl Iterator<Item = (u16, &Span)> {
        let plain = self.group.listen.map(|port| (port, &self.listen_span));
        let tls = self.group.tls.as_ref().zip(self.tls_span.as_ref());
        plain.into_iter().chain(tls.map(|(tls, span)| (tls.listen, span)))
    }
}

/// Every group in the order of the file.
pub(super) fn read_all(
    root: &Section<'_>,
    scope: &Scope<'_>,
    outside: &[OutsideDraft],
) -> Vec<GroupDraft> {
    let mut drafts: Vec<GroupDraft> = Vec::new();
    for (name, section) in root.named("group") {
        drafts.push(read_one(name.value, &section, scope));
        section.finish();
    }
    let nodes: Vec<&str> = scope.nodes.iter().map(|draft| draft.node.name.as_str()).collect();
    for draft in service::read_all(root, &nodes) {
        let section = draft.section(root.problems);
        drafts.push(read_one(draft.name.value, &section, scope));
        section.finish();
    }
    let (mut known, mut told) = (InFile::of(&drafts, outside), Told::default());
    for draft in &mut drafts {
        let place = |port: u16| known.ports.get(&port).map(|(_, span)| span.clone());
        check_one(root.problems, scope, draft, (&known, &place, &mut told));
        known.add(draft);
    }
    drafts
}

/// The other groups, where in the text one has a port, and what was told already.
type Others<'a> = (&'a dyn Known, &'a dyn Fn(u16) -> Option<Span>, &'a mut Told);

/// What a group and others cannot have both.
pub(super) fn check_one(
    problems: &Problems,
    scope: &Scope<'_>,
    draft: &mut GroupDraft,
    (known, place, told): Others<'_>,
) {
    calls::resolve(problems, &mut draft.group, &draft.calls, (known, told));
    if !known.is_judged() {
        place::check_group(problems, scope, draft, (known, place, told));
    }
}

/// One table, by itself.
pub(super) fn read_one(name: &str, section: &Section<'_>, scope: &Scope<'_>) -> GroupDraft {
    let (tls, tls_span) = access::read_tls(section).unzip();
    let listen = read_listen(section, scope);
    let members = read_members(section, scope);
    let draft = style::read(section, scope, members);
    let StyleDraft { style, leader, checkpoint, comparison, placement } = draft;
    let recovery = recovery::read(section);
    let comparison = recovery.comparison(comparison);
    let (backend, found) = backend::read(section, scope, members);
    let own_listen = listen.as_ref().map(|at| at.value);
    let shared = scope.gateway.map_or(0, |gateway| gateway.listen);
    let group = Group {
        name: name.to_owned(),
        style,
        leader,
        placement,
        checkpoint,
        comparison,
        listen: own_listen,
        port: own_listen.unwrap_or(shared),
        members,
        backend,
        // As long as the definition that it stands in.
        note: section.long_text("note", DEFINITION_BYTES_MAX).map(|at| at.value.to_owned()),
        object_group: read_object_group(section),
        monitored: section.boolean_or("ft_monitored", true),
        pull_monitorable: section.boolean_or("pull_monitorable", false),
        service: service::of(section),
        state_object: object_key(section, "state_object"),
        object_key: object_key(section, "object_key").or(found.object_key),
        type_id: section.text("type_id").and_then(|at| type_id(section, &at)).or(found.type_id),
        ack: read_ack(section, scope.engine),
        reply: read_reply(section),
        replier: named_member(section, "replier", scope, members),
        concurrency: read_concurrency(section),
        durable: section.boolean_or("durable", false),
        calls: Vec::new(),
        readonly: readonly::read_operations(section),
        readonly_consistency: readonly::read_consistency(section),
        state_operations: access::read_state_operations(section),
        clients: access::read_clients(section, tls.as_ref()),
        tls,
        reply_retention: section.millis_or("reply_retention_ms", 0..=86_400_000, 300_000),
        replay_bytes_max: recovery.replay_bytes_max(),
        by_application: recovery.is_by_application(),
        reply_retention_bytes: section
            .number("reply_retention_bytes", "bytes", 1_048_576..=1 << 30)
            .map_or(RETENTION_BYTES_DEFAULT, |at| at.value as usize),
        unavailable_wait: section.millis_or("unavailable_wait_ms", 0..=3_600_000, 3_000),
        server_reply: section.millis_or("server_reply_ms", 10..=86_400_000, 30_000),
        stuck: section.millis_or("stuck_ms", 10..=86_400_000, 30_000),
        abandon: lateness::read_abandon(section),
        staggered: execution::read(section),
        replication: execution::read_replication(section),
        depth: section.number_or("depth", "members", 0..=NODES_MAX as u64, 0),
        start_timeout: section.millis_or("start_timeout_ms", 100..=3_600_000, 15_000),
        transfer_rate: section
            .number("transfer_bytes_per_second", "bytes", 1_024..=1 << 40)
            .map(|at| at.value),
        restart_backoff: section.millis_or("restart_backoff_ms", 1..=10_000, 100),
        quarantine_after: section.number_or("quarantine_after", "", 0..=1_000_000, 5),
        quarantine: section.millis_or("quarantine_ms", 1..=3_600_000, 60_000),
        on_total_loss: section.word_or("on_total_loss", OnTotalLoss::WORDS, &[], OnTotalLoss::Stop),
    };
    check_alone(section, scope, &group);
    let listen_span = listen.map_or(section.header.clone(), |at| at.span);
    let definition = definition_of(name, section);
    GroupDraft { group, definition, calls: calls::read(section), listen_span, tls_span }
}

/// What the table says, as a definition; it may be too long.
fn definition_of(name: &str, section: &Section<'_>) -> Definition {
    let definition = Definition::of(Kind::Group, name, section.table());
    if definition.text.len() > DEFINITION_BYTES_MAX {
        let bytes = definition.text.len();
        let message = format!("{}: its definition has {bytes} bytes", section.title);
        let problem = Problem::at(Code::TooMany, section.header.clone(), message);
        section.problems.add(problem.help(format!("at most {DEFINITION_BYTES_MAX} are possible")));
    }
    definition
}

/// What its keys need of each other, and of the domain.
fn check_alone(section: &Section<'_>, scope: &Scope<'_>, group: &Group) {
    style::check(section, group);
    durable::check(section, group, scope.quorum, scope.engine);
    recovery::check(section, group);
    lateness::check(section, group);
    execution::check(section, group);
    ordered_time::check(section, group);
    monitoring::check(section, group);
    warn(section, group);
    warn_of_overlap(section, group);
    warn_of_own_references(section, group);
}

/// What the replication manager says of a group that it has created.
fn read_object_group(section: &Section<'_>) -> Option<ObjectGroup> {
    let id = section.number("ft_group", "", 1..=i64::MAX as u64);
    let version = section.number_or("ft_version", "", 0..=u32::MAX.into(), 0);
    id.map(|at| ObjectGroup { id: at.value, version })
}

/// The group's own port; it needs none if the domain has one for all.
fn read_listen(section: &Section<'_>, scope: &Scope<'_>) -> Option<At<u16>> {
    if scope.gateway.is_none() {
        let hint = "the gateway's port on every node, such as listen = 5000; or one port for all \
                    groups that have none: [gateway] listen = 5000";
        section.require("listen", hint);
    }
    let is_own = section.value("listen").is_some();
    if let Some(tls) = section.value("tls").filter(|_| !is_own && scope.gateway.is_some()) {
        let message = format!("{} has `tls`, and no `listen` of its own", section.title);
        let help = "clients with TLS do not come through the port of [gateway]; give the group a \
                    port, such as listen = 5001, with plain = false in `tls` if it is to stay shut";
        section.problems.add(Problem::at(Code::Conflict, tls.span(), message).help(help));
    }
    section.port("listen")
}

fn read_concurrency(section: &Section<'_>) -> Concurrency {
    section.word_or("concurrency", Concurrency::WORDS, &[], Concurrency::Sequential)
}

/// `reply` and `suppress_duplicates`, which means something for ordered replies only.
fn read_reply(section: &Section<'_>) -> ReplyPath {
    let is_ordered = section.word_or("reply", &[("direct", false), ("ordered", true)], &[], false);
    let once = section.boolean_or("suppress_duplicates", true);
    match (is_ordered, once) {
        (false, _) => ReplyPath::Direct,
        (true, false) => ReplyPath::Ordered,
        (true, true) => ReplyPath::OrderedOnce,
    }
}

fn read_ack(section: &Section<'_>, engine: Engine) -> Ack {
    let ack = section.word_or("ack", Ack::WORDS, &[], Ack::Majority);
    if (engine, ack) != (Engine::Corosync, Ack::Safe) {
        return ack;
    }
    let span = section.value("ack").map_or(section.header.clone(), |value| value.span());
    let message = "`ack` cannot be \"safe\" with the engine \"corosync\"";
    let problem = Problem::at(Code::UnknownValue, span, message);
    let help = "Corosync has no safe delivery; \"majority\" keeps every acknowledged request";
    section.problems.add(problem.help(help));
    Ack::Majority
}

fn warn(section: &Section<'_>, group: &Group) {
    let at = |code, message| Problem::at(code, section.header.clone(), message);
    match group.members.len() {
        0 => {}
        1 => {
            let message = format!("group {} has one member: it survives no crash", group.name);
            section.problems.add(at(Code::FewMembers, message));
        }
        _ if group.state_object.is_none()
            && group.replay_bytes_max.is_none()
            && !group.by_application
            && group.style != Style::Stateless =>
        {
            let name = &group.name;
            let message = format!(
                "group {name} has no `state_object`: a replica that was restarted cannot rejoin"
            );
            let help = "name the object key of an FT::Checkpointable in the server, or use \
                        recovery = \"replay\" if it is deterministic";
            section.problems.add(at(Code::NoStateObject, message).help(help));
        }
        _ => {}
    }
}

/// Says so if a server that is to keep calls in order is one of omniORB and was not told.
fn warn_of_overlap(section: &Section<'_>, group: &Group) {
    if group.concurrency != Concurrency::Pipelined {
        return;
    }
    let Some(DeValue::Array(words)) = section.value("server").map(|value| value.get_ref()) else {
        return;
    };
    let says = |word: &str| {
        words
            .iter()
            .any(|value| matches!(value.get_ref(), DeValue::String(text) if text.starts_with(word)))
    };
    let option = "-ORBmaxServerThreadPerConnection";
    if says("-ORB") && !says(option) {
        let span = section.value("concurrency").map_or(section.header.clone(), |v| v.span());
        let message = format!("{}: omniORB changes the order of calls by default", section.title);
        let help = format!("add \"{option}\", \"1\" to `server`");
        section.problems.add(Problem::at(Code::CallsOverlap, span, message).help(help));
    }
}

/// References that a server makes itself have the server's own keys, and nobody's name.
fn warn_of_own_references(section: &Section<'_>, group: &Group) {
    let Backend::Start(server) = &group.backend else { return };
    let published = [Placeholder::Listen, Placeholder::Gateways, Placeholder::GatewaysOfOmniorb];
    if group.listen.is_some() || !published.into_iter().any(|place| server.uses(place)) {
        return;
    }
    let message =
        format!("{}: references that the server makes do not lead back to it", section.title);
    let help = "on the port of [gateway] a group is found by its name in the object key, which \
                the server does not write; if it gives references to clients, give the group a \
                `listen`";
    let span = section.value("server").map_or(section.header.clone(), |value| value.span());
    section.problems.add(Problem::at(Code::OwnReferences, span, message).help(help));
}

fn read_members(section: &Section<'_>, scope: &Scope<'_>) -> NodeSet {
    section
        .require("members", "the nodes that carry a replica: members = [\"n1\", \"n2\", \"n3\"]");
    let Some(list) = section.texts("members") else { return NodeSet::EMPTY };
    if list.value.is_empty() {
        let message = format!("{} has no members", section.title);
        section.problems.add(Problem::at(Code::OutOfRange, list.span, message));
        return NodeSet::EMPTY;
    }
    let mut members = NodeSet::EMPTY;
    for name in &list.value {
        let Some(node) = find_node(section, scope, "members", name) else { continue };
        if members.contains(node) {
            let message = format!("member {:?} stands twice", name.value);
            let problem = Problem::at(Code::Conflict, name.span.clone(), message);
            section.problems.add(problem.help("name each node once"));
        }
        members.insert(node);
    }
    members
}

/// The member that a key names.
pub(super) fn named_member(
    section: &Section<'_>,
    key: &'static str,
    scope: &Scope<'_>,
    members: NodeSet,
) -> Option<NodeId> {
    let name = section.text(key)?;
    let node = find_node(section, scope, key, &name)?;
    refuse_outsider(section, key, members, node, name)
}

/// A key that names a node must name a member; if the members could not be read, that is enough.
pub(super) fn refuse_outsider(
    section: &Section<'_>,
    key: &str,
    members: NodeSet,
    node: NodeId,
    name: At<&str>,
) -> Option<NodeId> {
    if members.is_empty() || members.contains(node) {
        return Some(node);
    }
    let message = format!("{key} names {}, which is no member", name.value);
    section.problems.add(Problem::at(Code::NoSuchNode, name.span, message));
    None
}

/// The node that a key names.
pub(super) fn find_node(
    section: &Section<'_>,
    scope: &Scope<'_>,
    key: &str,
    name: &At<&str>,
) -> Option<NodeId> {
    let names = || scope.nodes.iter().map(|draft| draft.node.name.as_str());
    if let Some(index) = names().position(|node| node == name.value) {
        // Beyond NODES_MAX the count is reported, once.
        return u8::try_from(index).ok().and_then(NodeId::new);
    }
    let wrong = shortened(name.value);
    let message = format!("{key} names {wrong}, which is no [node.{wrong}]");
    let help = match nearest(name.value, names()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None if scope.nodes.is_empty() => "the file has no [node.NAME]".to_owned(),
        None => format!("nodes: {}", names().collect::<Vec<_>>().join(", ")),
    };
    section.problems.add(Problem::at(Code::NoSuchNode, name.span.clone(), message).help(help));
    None
}

/// An object key as corbaloc writes it: `%41` stands for the octet 0x41 (CORBA §13.6.10.5).
fn object_key(section: &Section<'_>, key: &'static str) -> Option<Vec<u8>> {
    let at = section.text(key)?;
    let mut octets = Vec::with_capacity(at.value.len());
    let mut rest = at.value.as_bytes();
    let wrong = loop {
        match rest {
            [] => break None,
            [b'%', high, low, tail @ ..] => {
                let digit = |octet: &u8| char::from(*octet).to_digit(16);
                let (Some(high), Some(low)) = (digit(high), digit(low)) else {
                    break Some("% must be followed by two hexadecimal digits");
                };
                octets.extend(u8::try_from(high << 4 | low));
                rest = tail;
            }
            [b'%', ..] => break Some("% must be followed by two hexadecimal digits"),
            [octet, tail @ ..] => {
                octets.push(*octet);
                rest = tail;
            }
        }
    };
    let wrong =
        wrong.or((octets.len() > OBJECT_KEY_BYTES_MAX).then_some("longer than 1024 octets"));
    match wrong {
        None => Some(octets),
        Some(why) => {
            let message = format!("`{key}` is no object key: {why}");
            let problem = Problem::at(Code::OutOfRange, at.span, message);
            section.problems.add(problem.help(
                "octets that are no letters or digits are written as %XX, such as %AF; a percent \
                 sign is %25",
            ));
            None
        }
    }
}

fn type_id(section: &Section<'_>, at: &At<&str>) -> Option<String> {
    let kinds = ["IDL:", "RMI:", "DCE:", "LOCAL:"];
    if kinds.iter().any(|kind| at.value.starts_with(kind)) {
        return Some(at.value.to_owned());
    }
    let message = format!("{:?} is no repository id", shortened(at.value));
    let problem = Problem::at(Code::OutOfRange, at.span.clone(), message);
    section.problems.add(problem.help("such as type_id = \"IDL:Bank/Ledger:1.0\""));
    None
}
