//! `[group.NAME]` tables.

use quorba_base::{NodeId, NodeSet};
use toml::de::DeValue;

use super::access;
use super::calls;
use super::durable;
use super::execution;
use super::lateness;
use super::node::{NodeDraft, parse_host};
use super::ordered_time;
use super::readonly;
use super::recovery;
use super::style::{self, StyleDraft};
use crate::codes::Code;
use crate::domain::{
    Ack, Backend, Concurrency, Endpoint, Engine, Group, OnTotalLoss, Outside, QuorumRule,
    RETENTION_BYTES_DEFAULT, Recovery, Reply, ServerCommand, Style,
};
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::template::{PLACEHOLDERS, Placeholder, Template, TemplateError};
use crate::walk::{At, Section, Span, Value, shortened};

/// An object key of a reference; longer ones are refused by ORBs in the field.
const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// A group with the places of what other tables can collide with.
#[derive(Debug)]
pub(super) struct GroupDraft {
    pub(super) group: Group,
    pub(super) listen_span: Span,
    pub(super) tls_span: Option<Span>,
}

/// Every group in the order of the file.
pub(super) fn read_all(
    root: &Section<'_>,
    nodes: &[NodeDraft],
    domain: (Engine, QuorumRule),
    outside: &[Outside],
) -> Vec<GroupDraft> {
    let (mut drafts, mut calls) = (Vec::new(), Vec::new());
    for (name, section) in root.named("group") {
        let draft = read_one(name.value, &section, nodes, domain);
        calls.push(calls::read(&section));
        drafts.push(draft);
        section.finish();
    }
    calls::resolve(root.problems, &mut drafts, outside, calls);
    drafts
}

fn read_one(
    name: &str,
    section: &Section<'_>,
    nodes: &[NodeDraft],
    (engine, quorum): (Engine, QuorumRule),
) -> GroupDraft {
    section.require("listen", "the gateway's port on every node, such as listen = 5000");
    let listen = section.port("listen");
    let (tls, tls_span) = access::read_tls(section).unzip();
    let members = read_members(section, nodes);
    let draft = style::read(section, nodes, members);
    let StyleDraft { style, leader, checkpoint, comparison, placement } = draft;
    let replies = [("direct", Reply::Direct), ("ordered", Reply::Ordered)];
    let losses = [("stop", OnTotalLoss::Stop), ("fresh", OnTotalLoss::Fresh)];
    let group = Group {
        name: name.to_owned(),
        style,
        leader,
        placement,
        checkpoint,
        comparison,
        listen: listen.as_ref().map_or(0, |at| at.value),
        members,
        backend: read_backend(section, nodes, members),
        state_object: object_key(section, "state_object"),
        object_key: object_key(section, "object_key"),
        type_id: section.text("type_id").and_then(|at| type_id(section, &at)),
        ack: read_ack(section, engine),
        reply: section.word_or("reply", &replies, &[], Reply::Direct),
        suppress_duplicates: section.boolean_or("suppress_duplicates", true),
        replier: named_member(section, "replier", nodes, members),
        concurrency: read_concurrency(section),
        durable: section.boolean_or("durable", false),
        calls: Vec::new(),
        outside: Vec::new(),
        readonly: readonly::read_operations(section),
        readonly_consistency: readonly::read_consistency(section),
        state_operations: access::read_state_operations(section),
        clients: access::read_clients(section, tls.as_ref()),
        tls,
        reply_retention: section.millis_or("reply_retention_ms", 0..=86_400_000, 300_000),
        recovery: recovery::read(section),
        reply_retention_bytes: section
            .number("reply_retention_bytes", "bytes", 1_048_576..=1 << 30)
            .map_or(RETENTION_BYTES_DEFAULT, |at| at.value as usize),
        unavailable_wait: section.millis_or("unavailable_wait_ms", 0..=3_600_000, 3_000),
        server_reply: section.millis_or("server_reply_ms", 10..=86_400_000, 30_000),
        stuck: section.millis_or("stuck_ms", 10..=86_400_000, 30_000),
        abandon: lateness::read_abandon(section),
        staggered: execution::read(section),
        start_timeout: section.millis_or("start_timeout_ms", 100..=3_600_000, 15_000),
        transfer_rate: section
            .number("transfer_bytes_per_second", "bytes", 1_024..=1 << 40)
            .map(|at| at.value),
        restart_backoff: section.millis_or("restart_backoff_ms", 1..=10_000, 100),
        quarantine_after: section.number_or("quarantine_after", "", 0..=1_000_000, 5),
        quarantine: section.millis_or("quarantine_ms", 1..=3_600_000, 60_000),
        on_total_loss: section.word_or("on_total_loss", &losses, &[], OnTotalLoss::Stop),
    };
    style::check(section, style, &group.backend, group.state_object.as_deref());
    durable::check(section, &group, quorum, engine);
    recovery::check(section, &group);
    lateness::check(section, &group);
    execution::check(section, &group);
    ordered_time::check(section, &group);
    warn(section, &group);
    warn_of_overlap(section, &group);
    let listen_span = listen.map_or(section.header.clone(), |at| at.span);
    GroupDraft { group, listen_span, tls_span }
}

fn read_concurrency(section: &Section<'_>) -> Concurrency {
    use Concurrency::{PerObject, Pipelined, Sequential};
    let words = [("sequential", Sequential), ("pipelined", Pipelined), ("per-object", PerObject)];
    section.word_or("concurrency", &words, &[], Sequential)
}

fn read_ack(section: &Section<'_>, engine: Engine) -> Ack {
    let acks = [("majority", Ack::Majority), ("safe", Ack::Safe), ("agreed", Ack::Agreed)];
    let ack = section.word_or("ack", &acks, &[], Ack::Majority);
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
            && group.recovery == Recovery::Checkpoint
            && group.style != Style::Stateless =>
        {
            let message =
                format!("group {} has no `state_object`: who restarts stays out", group.name);
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

fn read_members(section: &Section<'_>, nodes: &[NodeDraft]) -> NodeSet {
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
        let Some(node) = find_node(section, nodes, "members", name) else { continue };
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
    nodes: &[NodeDraft],
    members: NodeSet,
) -> Option<NodeId> {
    let name = section.text(key)?;
    let node = find_node(section, nodes, key, &name)?;
    refuse_outsider(section, key, members, node, name)
}

/// A key that names a node must name a member; if the members could not be read, that is enough.
fn refuse_outsider(
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

fn find_node(
    section: &Section<'_>,
    nodes: &[NodeDraft],
    key: &str,
    name: &At<&str>,
) -> Option<NodeId> {
    let names = || nodes.iter().map(|draft| draft.node.name.as_str());
    if let Some(index) = names().position(|node| node == name.value) {
        // Beyond NODES_MAX the count is reported, once.
        return u8::try_from(index).ok().and_then(NodeId::new);
    }
    let wrong = shortened(name.value);
    let message = format!("{key} names {wrong}, which is no [node.{wrong}]");
    let help = match nearest(name.value, names()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None if nodes.is_empty() => "the file has no [node.NAME]".to_owned(),
        None => format!("nodes: {}", names().collect::<Vec<_>>().join(", ")),
    };
    section.problems.add(Problem::at(Code::NoSuchNode, name.span.clone(), message).help(help));
    None
}

fn read_backend(section: &Section<'_>, nodes: &[NodeDraft], members: NodeSet) -> Backend {
    let server = section.texts("server");
    let connect = section.value("connect");
    let env = read_env(section);
    let cwd = section.text("cwd").and_then(|at| template(section, "cwd", &at));
    match (section.value("server"), connect) {
        (Some(_), None) => {
            let server = server.unwrap_or(At { value: Vec::new(), span: section.header.clone() });
            Backend::Start(read_command(section, server, env, cwd))
        }
        (None, Some(value)) => {
            for key in ["env", "cwd"] {
                if let Some(idle) = section.value(key) {
                    let message = format!("`{key}` has no effect without `server`");
                    section.problems.add(Problem::at(Code::SilentSetting, idle.span(), message));
                }
            }
            Backend::Connect(read_connect(section, value, nodes, members))
        }
        (Some(first), Some(second)) => {
            let message = format!("{} has both `server` and `connect`", section.title);
            let problem = Problem::at(Code::Backend, second.span(), message);
            let problem = problem.related(first.span(), "either this");
            section.problems.add(problem.label("or this"));
            Backend::Connect(Vec::new())
        }
        (None, None) => {
            let message = format!("{} has no server", section.title);
            let help = "server = [\"program\", \"...\"] starts one at each member; \
                        connect = \"host:port\" uses one that runs already";
            let problem = Problem::at(Code::Backend, section.header.clone(), message);
            section.problems.add(problem.label("needs `server` or `connect`").help(help));
            Backend::Connect(Vec::new())
        }
    }
}

fn read_command(
    section: &Section<'_>,
    server: At<Vec<At<&str>>>,
    env: Vec<(String, Template)>,
    cwd: Option<Template>,
) -> ServerCommand {
    let arguments = server.value.len();
    let command: Vec<Template> =
        server.value.iter().filter_map(|at| template(section, "server", at)).collect();
    let told = command.iter().chain(env.iter().map(|(_, value)| value));
    let is_place =
        |template: &Template| [Placeholder::Port, Placeholder::Socket].map(|it| template.uses(it));
    let told = told.into_iter().any(|template| is_place(template).contains(&true));
    // An argument that could not be read may be the one with {port}.
    if !told && command.len() == arguments {
        let message = format!("{} never tells its server where to listen", section.title);
        let help = "{port} stands for a port: \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\" with \
                    omniORB, \"-DOAPort={port}\" with JacORB; {socket} for a socket's file: \
                    \"giop:unix:{socket}\"";
        section.problems.add(Problem::at(Code::Backend, server.span, message).help(help));
    }
    ServerCommand { command, env, cwd }
}

fn template(section: &Section<'_>, key: &str, at: &At<&str>) -> Option<Template> {
    let error = match Template::parse(at.value) {
        Ok(template) => return Some(template),
        Err(error) => error,
    };
    let known = || PLACEHOLDERS.iter().map(|(name, _)| *name);
    let (message, help) = match &error {
        TemplateError::Unknown(name) => (
            format!("`{key}` has a placeholder {{{}}} that does not exist", shortened(name)),
            match nearest(name, known()) {
                Some(meant) => format!("did you mean {{{meant}}}?"),
                None => {
                    let names: Vec<String> = known().map(|name| format!("{{{name}}}")).collect();
                    format!("possible: {}; a brace itself is {{{{ or }}}}", names.join(" "))
                }
            },
        ),
        TemplateError::Unbalanced => (
            format!("`{key}` has a brace without its partner"),
            "a brace itself is written twice: {{ or }}".to_owned(),
        ),
    };
    section.problems.add(Problem::at(Code::BadPlaceholder, at.span.clone(), message).help(help));
    None
}

fn read_env(section: &Section<'_>) -> Vec<(String, Template)> {
    let Some(value) = section.value("env") else { return Vec::new() };
    let DeValue::Table(table) = value.get_ref() else {
        section.wrong_type("env", "a table { NAME = \"value\" }", value);
        return Vec::new();
    };
    let mut env = Vec::new();
    for (name, value) in table.iter() {
        let key = name.get_ref();
        if key.is_empty() || key.contains(['=', '\0']) {
            let message = format!("{:?} is no name of an environment variable", shortened(key));
            section.problems.add(Problem::at(Code::BadName, name.span(), message));
            continue;
        }
        // An empty value is common here, and means what it says.
        let empty = matches!(value.get_ref(), DeValue::String(text) if text.is_empty());
        let read = if empty {
            Template::parse("").ok()
        } else {
            section.as_text(key, value).and_then(|at| template(section, key, &at))
        };
        env.extend(read.map(|template| (key.to_string(), template)));
    }
    env
}

fn read_connect(
    section: &Section<'_>,
    value: &'_ Value<'_>,
    nodes: &[NodeDraft],
    members: NodeSet,
) -> Vec<(NodeId, Endpoint)> {
    let mut servers: Vec<(NodeId, Endpoint, Span)> = Vec::new();
    match value.get_ref() {
        DeValue::String(text) => {
            let at = At { value: text.as_ref(), span: value.span() };
            if let Some(endpoint) = endpoint(section, &at) {
                servers.extend(members.iter().map(|node| (node, endpoint.clone(), value.span())));
            }
        }
        DeValue::Table(table) => {
            for (name, value) in table.iter() {
                let name = At { value: name.get_ref().as_ref(), span: name.span() };
                let node = find_node(section, nodes, "connect", &name);
                let DeValue::String(text) = value.get_ref() else {
                    section.wrong_type(name.value, "a text \"host:port\"", value);
                    continue;
                };
                let at = At { value: text.as_ref(), span: value.span() };
                let endpoint = endpoint(section, &at);
                let (Some(node), Some(endpoint)) = (node, endpoint) else { continue };
                refuse_outsider(section, "connect", members, node, name);
                servers.push((node, endpoint, value.span()));
            }
            missing_servers(section, value, nodes, members, table.len());
        }
        _ => section.wrong_type("connect", "\"host:port\" or { n1 = \"host:port\" }", value),
    }
    servers.sort_by_key(|(node, _, _)| *node);
    refuse_shared(section, nodes, &servers);
    servers.into_iter().map(|(node, endpoint, _)| (node, endpoint)).collect()
}

fn missing_servers(
    section: &Section<'_>,
    value: &Value<'_>,
    nodes: &[NodeDraft],
    members: NodeSet,
    entries: usize,
) {
    let DeValue::Table(table) = value.get_ref() else { return };
    let name_of = |node: NodeId| nodes[usize::from(node.index())].node.name.as_str();
    let missing: Vec<&str> =
        members.iter().map(name_of).filter(|name| table.get(*name).is_none()).collect();
    if !missing.is_empty() && entries > 0 {
        let message = format!("connect has no server for {}", missing.join(", "));
        section.problems.add(Problem::at(Code::MissingKey, value.span(), message));
    } else if entries == 0 {
        let message = "connect names no server";
        section.problems.add(Problem::at(Code::MissingKey, value.span(), message));
    }
}

/// Two members that use the same server would execute each request twice in it.
fn refuse_shared(section: &Section<'_>, nodes: &[NodeDraft], servers: &[(NodeId, Endpoint, Span)]) {
    let draft = |node: NodeId| &nodes[usize::from(node.index())];
    for (index, (node, endpoint, span)) in servers.iter().enumerate() {
        let same = servers[..index].iter().find(|(other, other_endpoint, _)| {
            endpoint == other_endpoint
                && (!endpoint.host.is_loopback()
                    || draft(*node).machine() == draft(*other).machine())
        });
        let Some((other, _, _)) = same else { continue };
        let (first, second) = (&draft(*other).node.name, &draft(*node).node.name);
        let message = format!("members {first} and {second} would use one server, {endpoint}");
        let help =
            "each member needs a server of its own: connect = { n1 = \"...\", n2 = \"...\" }";
        section.problems.add(Problem::at(Code::SharedServer, span.clone(), message).help(help));
        return;
    }
}

fn endpoint(section: &Section<'_>, at: &At<&str>) -> Option<Endpoint> {
    let parsed = at.value.rsplit_once(':').ok_or("it has no port").and_then(|(host, port)| {
        let port: u16 = port.parse().map_err(|_| "its port is no number up to 65535")?;
        let bare_v6 = host.contains(':') && !host.starts_with('[');
        match port {
            0 => Err("its port is 0"),
            _ if bare_v6 => Err("an IPv6 address stands in brackets"),
            _ => Ok(Endpoint { host: parse_host(host)?, port }),
        }
    });
    match parsed {
        Ok(endpoint) => Some(endpoint),
        Err(why) => {
            let message = format!("connect {:?} cannot be used: {why}", shortened(at.value));
            let problem = Problem::at(Code::BadAddress, at.span.clone(), message);
            section.problems.add(problem.help("host:port, such as \"127.0.0.1:6000\""));
            None
        }
    }
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
