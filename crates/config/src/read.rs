//! From the text of a domain file to a [`Domain`].
//!
//! The file is read in three steps, and each goes on after errors of the one before: TOML to a
//! spanned table, each table to typed values with their places, and checks across tables.

mod access;
mod backend;
mod calls;
mod channels;
mod connect;
mod durable;
mod execution;
mod group;
mod lateness;
mod monitoring;
mod node;
mod one;
mod ordered_time;
mod outside;
mod place;
mod readonly;
mod recovery;
mod scope;
mod service;
mod style;
mod types;

use std::path::{Path, PathBuf};

use quorba_base::{NODES_MAX, NodeId};
use toml::de::DeTable;

use crate::codes::Code;
use crate::domain::{Backend, Domain, Engine, Gateway, Group, Limits, Multicast, Ring};
use crate::key::{DomainKey, KEY_BYTES, KeyError};
use crate::problem::{Problem, Report};
use crate::walk::{At, Problems, Section, Shapes, Span};
use group::GroupDraft;
use node::NodeDraft;
pub use one::{Defined, check_definition, read_definition, read_group};
use outside::OutsideDraft;
use quorba_base::policy::QuorumRule;
pub use scope::Known;
use scope::Scope;

/// The most groups that a domain can have.
pub const GROUPS_MAX: usize = 100_000;

/// The result of reading a domain file.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The domain; none if there is an error.
    pub domain: Option<Domain>,
    /// Errors and warnings.
    pub report: Report,
}

/// Whether the name that begins there is that of a table.
fn is_header(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    before.rsplit('\n').next().is_some_and(|line| line.trim_start().starts_with('['))
}

/// Reads `text`, the content of the domain file at `path`. Paths in it are relative to the
/// file's directory. `read_key` is asked for the keys in the file that it names.
pub fn check_text(
    path: &Path,
    text: &str,
    read_key: impl FnOnce(&Path) -> Result<Vec<DomainKey>, KeyError>,
) -> Checked {
    let problems = Problems::default();
    let (table, syntax) = DeTable::parse_recoverable(text);
    // Where a table ends that stands twice: its keys need not be told of as well.
    let mut told_until = 0;
    for error in syntax {
        let span = error.span().unwrap_or(0..0);
        let said = error.message();
        let again = text.get(span.clone()).filter(|_| said == "duplicate key");
        problems.add(match again {
            Some(_) if span.start < told_until => continue,
            Some(name) if is_header(text, span.start) => {
                let rest = text.get(span.end..).unwrap_or_default();
                told_until = rest.find("\n[").map_or(text.len(), |at| span.end + at);
                let message = format!("the table of `{name}` stands here twice");
                Problem::at(Code::Syntax, span, message)
                    .help("leave one out, or give this one another name")
            }
            Some(name) => Problem::at(Code::Syntax, span, format!("`{name}` stands here twice"))
                .help("leave one out"),
            None => Problem::at(Code::Syntax, span, said),
        });
    }
    // Keys that stand in a broken line are missing afterwards; do not report that as well.
    let broken = problems.into_inner();
    let problems = Problems::default();
    let root = Section::new("the file", 0..0, Some(table.get_ref()), &problems);
    let domain = read_domain(path, &root, read_key);
    root.finish();
    let mut all = problems.into_inner();
    if !broken.is_empty() {
        all.retain(|problem| problem.code == Code::UnknownKey);
        all.extend(broken);
    }
    let report = Report::new(path, text, all);
    let warnings = report.problems().iter().filter(|problem| problem.is_warning());
    let warnings = warnings.cloned().collect();
    let domain = match report.error_count() {
        0 => domain.map(|domain| Domain { warnings, ..domain }),
        _ => None,
    };
    debug_assert!(domain.is_some() || report.error_count() > 0, "no domain without an error");
    Checked { domain, report }
}

/// The shape of every key that is asked for when `text` is read, which is right.
pub(crate) fn shapes_of(
    path: &Path,
    text: &str,
    read_key: impl FnOnce(&Path) -> Result<Vec<DomainKey>, KeyError>,
) -> Shapes {
    let problems = Problems::with_shapes();
    let (table, _) = DeTable::parse_recoverable(text);
    let root = Section::new("the file", 0..0, Some(table.get_ref()), &problems);
    read_domain(path, &root, read_key);
    drop(root);
    problems.into_shapes()
}

/// The domain, as far as it can be read; `None` where a value is missing that has no default.
/// Whether it is right is for the problems to say.
fn read_domain(
    path: &Path,
    root: &Section<'_>,
    read_key: impl FnOnce(&Path) -> Result<Vec<DomainKey>, KeyError>,
) -> Option<Domain> {
    let base = path.parent().unwrap_or(Path::new(""));
    if root.value("domain").is_none() {
        let problem = Problem::of_file(Code::MissingKey, "the file has no [domain]");
        root.problems.add(problem.help("begin with: [domain] id = \"...\" key_file = \"...\""));
    }
    let section = root.section("domain");
    let present = root.value("domain").is_some();
    let (id, key) = if present { read_identity(base, &section, read_key) } else { (None, None) };
    let quorum = section.word_or("quorum", QuorumRule::WORDS, &[], QuorumRule::Majority);
    let tie_breaker = section.text("tie_breaker");
    section.finish();
    let drafts = node::read_all(root, base);
    let tie_breaker = tie_breaker.and_then(|name| find_node(root, &drafts, &name));
    let ring = read_ring(root.section("ring"), &drafts);
    let limits = read_limits(root.section("limits"), ring.engine);
    let placed = outside::read_all(root, ring.engine);
    let gateway = read_gateway(root);
    let (nodes, engine) = (drafts.as_slice(), ring.engine);
    let state_bytes = limits.state_bytes;
    let scope = Scope { nodes, gateway, engine, quorum, state_bytes, shows_nodes: true };
    place::check_nodes(root.problems, &drafts, gateway);
    let groups = group::read_all(root, &scope, &placed);
    let types = types::read_all(root, &scope, &groups, &placed);
    outside::check(root, &placed, &groups);
    check_counts(root, &drafts, groups.len(), ring.engine);
    let (key_file, keys) = key?;
    let split = |draft: GroupDraft| (located(base, draft.group), draft.definition);
    let (groups, of_groups): (_, Vec<_>) = groups.into_iter().map(split).unzip();
    let split = |draft: OutsideDraft| (draft.server, draft.definition);
    let (mut outside, mut definitions): (Vec<_>, Vec<_>) = placed.into_iter().map(split).unzip();
    outside.push(outside::domain_object());
    definitions.extend(of_groups);
    Some(Domain {
        id: id?,
        keys,
        key_file,
        file: path.to_owned(),
        quorum,
        tie_breaker,
        ring,
        limits,
        gateway,
        nodes: drafts.into_iter().map(|draft| draft.node).collect(),
        groups,
        definitions,
        outside,
        types,
        warnings: Vec::new(),
    })
}

/// The port of all groups that have none of their own.
fn read_gateway(root: &Section<'_>) -> Option<Gateway> {
    let is_there = root.value("gateway").is_some();
    let section = root.section("gateway");
    if is_there {
        section.require("listen", "the port on every node, such as listen = 5000");
    }
    let listen = section.port("listen");
    section.finish();
    listen.map(|at| Gateway { listen: at.value })
}

/// The group with its files found from the domain file's folder.
fn located(base: &Path, mut group: Group) -> Group {
    if let Some(tls) = &mut group.tls {
        for path in [&mut tls.certificate, &mut tls.key].into_iter().chain(&mut tls.client_ca) {
            *path = base.join(&path);
        }
    }
    // One without a slash is looked for in PATH.
    if let Backend::Start(server) = &mut group.backend
        && let Some(program) = server.command.first_mut()
        && program.is_relative_path()
    {
        *program = program.below(&base.display().to_string());
    }
    group
}

fn find_node(root: &Section<'_>, drafts: &[NodeDraft], name: &At<&str>) -> Option<NodeId> {
    let index = drafts.iter().position(|draft| draft.node.name == name.value);
    if index.is_none() {
        let message = format!("`tie_breaker` names no node: {:?}", name.value);
        let names: Vec<&str> = drafts.iter().map(|draft| draft.node.name.as_str()).collect();
        let problem = Problem::at(Code::NoSuchNode, name.span.clone(), message);
        root.problems.add(problem.help(format!("nodes: {}", names.join(", "))));
    }
    NodeId::new(u8::try_from(index?).ok()?)
}

fn read_identity(
    base: &Path,
    section: &Section<'_>,
    read_key: impl FnOnce(&Path) -> Result<Vec<DomainKey>, KeyError>,
) -> (Option<String>, Option<(PathBuf, Vec<DomainKey>)>) {
    let id = section.required_text("id", "a name for the domain, such as id = \"plant-a\"");
    if let Some(id) = &id {
        section.check_name("domain", id);
    }
    let hint = "make one with `quorba key new domain.key`, then: key_file = \"domain.key\"";
    let key = section.required_text("key_file", hint).and_then(|at| {
        let file = base.join(at.value);
        let error = match read_key(&file) {
            Ok(keys) => return Some((file, keys)),
            Err(error) => error,
        };
        section.problems.add(key_problem(&file, at.span, &error));
        None
    });
    (id.map(|id| id.value.to_owned()), key)
}

fn key_problem(file: &Path, span: Span, error: &KeyError) -> Problem {
    let shown = file.display();
    let (code, help) = match error {
        KeyError::Missing => (
            Code::KeyFileMissing,
            format!(
                "make one with `quorba key new {shown}`, or copy the domain's from another host"
            ),
        ),
        KeyError::Unreadable { .. } => {
            (Code::KeyFileMissing, "run as the user that the file belongs to".to_owned())
        }
        KeyError::TooOpen { .. } => (Code::KeyFileOpen, format!("chmod 600 {shown}")),
        KeyError::Malformed { .. } => (
            Code::KeyFileMalformed,
            format!("{KEY_BYTES} bytes as hexadecimal digits, as `quorba key new` writes them"),
        ),
    };
    Problem::at(code, span, format!("key file {shown}: {error}")).help(help)
}

/// Silence on the ring that may count as the loss of the token, in milliseconds.
const TOKEN_LOSS_MS: std::ops::RangeInclusive<u64> = 5..=600_000;
/// The smallest datagram that fits every IPv6 path, and the largest that UDP carries.
const DATAGRAM_BYTES: std::ops::RangeInclusive<u64> = 1_200..=65_000;
/// UDP payload that fits an Ethernet frame with room for tunnels.
const DATAGRAM_BYTES_DEFAULT: u16 = 1_400;
/// On loopback there are no frames; few large datagrams are cheaper than many small ones.
const DATAGRAM_BYTES_LOOPBACK: u16 = 60_000;

fn read_ring(section: Section<'_>, drafts: &[NodeDraft]) -> Ring {
    let loopback = !drafts.is_empty() && drafts.iter().all(|draft| draft.node.host.is_loopback());
    let datagram = if loopback { DATAGRAM_BYTES_LOOPBACK } else { DATAGRAM_BYTES_DEFAULT };
    let token_loss = section.number("token_loss_ms", "milliseconds", TOKEN_LOSS_MS);
    let engines = [("totem", Engine::Totem), ("corosync", Engine::Corosync)];
    let ring = Ring {
        engine: section.word_or("engine", &engines, &[], Engine::Totem),
        encrypt: section.boolean_or("encrypt", true),
        accelerated: section.boolean_or("accelerated", true),
        token_rests: section.boolean_or("token_rests", true),
        token_loss: token_loss.map(|at| std::time::Duration::from_millis(at.value)),
        datagram_bytes_max: section.number_or(
            "datagram_bytes_max",
            "bytes",
            DATAGRAM_BYTES,
            datagram,
        ),
        multicast: read_multicast(&section),
    };
    section.finish();
    ring
}

fn read_multicast(section: &Section<'_>) -> Multicast {
    let Some(text) = section.text("multicast") else { return Multicast::Auto };
    match text.value {
        "auto" => return Multicast::Auto,
        "off" => return Multicast::Off,
        _ => {}
    }
    match text.value.parse::<std::net::SocketAddrV4>() {
        Ok(address) if address.ip().is_multicast() && address.port() != 0 => {
            return Multicast::Group(address);
        }
        Ok(_) | Err(_) => {}
    }
    let message = format!("`multicast` cannot be {:?}", text.value);
    let label = "possible: \"auto\", \"off\", or a multicast address such as \"239.1.2.3:4701\"";
    section.problems.add(Problem::at(Code::UnknownValue, text.span, message).label(label));
    Multicast::Auto
}

const MIB: u64 = 1 << 20;
/// The largest `message_bytes`: what the ring carries in one piece (16 MiB), less what a message is
/// wrapped in. `node` checks that it is no more.
pub const MESSAGE_BYTES_MAX: u32 = (16 << 20) - 2048;
/// The same for Corosync.
pub const MESSAGE_BYTES_COROSYNC_MAX: u32 = 900_000;
/// The largest state: what is passed from member to member.
const STATE_BYTES_MAX: u32 = 1 << 30;
const STATE_BYTES_DEFAULT: u32 = 256 << 20;
/// What a gateway holds for its clients: with what is not counted, and other nodes' copies of it, a
/// node stays below twice as much.
const BUFFERED_DEFAULT: u64 = 128 * MIB;
/// By how much the durable log grows before it is compacted. Each time every server gives its
/// state; a start reads about twice as much.
const LOG_BYTES_DEFAULT: u64 = 256 << 20;
const LOG_BYTES_MIN: u64 = MIB;

/// Clients that say nothing for an hour have forgotten the connection, or are gone.
const IDLE_MS_DEFAULT: u64 = 3_600_000;

fn read_limits(section: Section<'_>, engine: Engine) -> Limits {
    let idle = section.number("idle_ms", "milliseconds", 0..=86_400_000);
    let idle = idle.map_or(IDLE_MS_DEFAULT, |at| at.value);
    let count = 1..=1_000_000;
    let held = MIB..=MIB << 20;
    let buffered: u64 =
        section.number_or("buffered_bytes", "bytes", held.clone(), BUFFERED_DEFAULT);
    let message_bytes = read_message_bytes(&section, engine);
    // No less than a message, which would never be complete.
    let held_by = |key, part: u64| {
        let usual = (buffered / part).max(u64::from(message_bytes)).min(buffered);
        section.number_or(key, "bytes", held.clone(), usual)
    };
    let limits = Limits {
        connections: section.number_or("connections", "", count.clone(), 1_000),
        connections_per_peer: section.number_or("connections_per_peer", "", count.clone(), 100),
        message_bytes,
        state_bytes: section.number_or(
            "state_bytes",
            "bytes",
            1_024..=u64::from(STATE_BYTES_MAX),
            STATE_BYTES_DEFAULT,
        ),
        buffered_bytes: buffered,
        buffered_bytes_per_peer: held_by("buffered_bytes_per_peer", 4),
        buffered_bytes_per_group: held_by("buffered_bytes_per_group", 2),
        unsent_bytes_per_connection: section.number_or(
            "unsent_bytes_per_connection",
            "bytes",
            64 << 10..=1 << 30,
            MIB as u32,
        ),
        requests_per_second_per_peer: section.number_or(
            "requests_per_second_per_peer",
            "",
            0..=10_000_000,
            0,
        ),
        idle: (idle > 0).then(|| std::time::Duration::from_millis(idle)),
        header: section.millis_or("header_ms", 10..=3_600_000, 5_000),
        request: section.millis_or("request_ms", 10..=86_400_000, 60_000),
        requests_pending_per_connection: section.number_or(
            "requests_pending_per_connection",
            "",
            count.clone(),
            64,
        ),
        requests_pending: section.number_or("requests_pending", "", count, 4_096),
        log_bytes: read_log_bytes(&section),
    };
    for (key, bytes) in [
        ("buffered_bytes", limits.buffered_bytes),
        ("buffered_bytes_per_peer", limits.buffered_bytes_per_peer),
        ("buffered_bytes_per_group", limits.buffered_bytes_per_group),
    ] {
        let is_meant = key == "buffered_bytes" || section.value(key).is_some();
        if is_meant && u64::from(limits.message_bytes) > bytes {
            let message = format!("`{key}` is smaller than one message of `message_bytes`");
            let span = section.value(key).map_or(section.header.clone(), |v| v.span());
            section.problems.add(Problem::at(Code::OutOfRange, span, message));
        }
    }
    section.finish();
    limits
}

/// 0: the log is never compacted.
fn read_log_bytes(section: &Section<'_>) -> Option<u64> {
    let bytes = section.number_or("log_bytes", "bytes", 0..=MIB << 20, LOG_BYTES_DEFAULT);
    if (1..LOG_BYTES_MIN).contains(&bytes) {
        let span = section.value("log_bytes").map_or(section.header.clone(), |v| v.span());
        let problem = Problem::at(Code::OutOfRange, span, "`log_bytes` is less than one MiB");
        section.problems.add(problem.help("0: the log is never compacted"));
    }
    Some(bytes).filter(|bytes| *bytes > 0)
}

/// Every message of a client goes through the order in one piece: one that the order cannot carry
/// must not get in.
fn read_message_bytes(section: &Section<'_>, engine: Engine) -> u32 {
    let (most, carrier) = match engine {
        Engine::Totem => (MESSAGE_BYTES_MAX, "the ring"),
        Engine::Corosync => (MESSAGE_BYTES_COROSYNC_MAX, "Corosync"),
    };
    let range = 1_024..=u64::from(u32::MAX);
    let Some(at) = section.number("message_bytes", "bytes", range) else { return most };
    match u32::try_from(at.value) {
        Ok(bytes) if bytes <= most => return bytes,
        Ok(_) | Err(_) => {}
    }
    let message = format!("`message_bytes` is more than {carrier} carries in one message");
    let problem = Problem::at(Code::OutOfRange, at.span, message);
    let problem = problem.label(format!("possible: 1024 to {most} bytes"));
    section.problems.add(problem.help("a group's state may be larger: `state_bytes` limits it"));
    most
}

/// Bytes of the table of a group on so many nodes, as one that was away is told it.
const fn table_bytes(nodes: usize) -> usize {
    64 + 36 * nodes
}

fn check_counts(root: &Section<'_>, drafts: &[NodeDraft], groups: usize, engine: Engine) {
    // The tables of all groups are one message. The ring carries those of any domain.
    let tables = groups.saturating_mul(table_bytes(drafts.len()));
    if engine == Engine::Corosync && tables > MESSAGE_BYTES_COROSYNC_MAX as usize {
        let nodes = drafts.len();
        let message =
            format!("Corosync cannot carry the tables of {groups} groups on {nodes} nodes");
        let problem = Problem::of_file(Code::TooMany, message);
        root.problems.add(problem.help("the ring can (`engine = \"totem\"`)"));
    }
    if drafts.is_empty() {
        let problem = Problem::of_file(Code::MissingKey, "the file has no [node.NAME]");
        root.problems.add(problem.help("three nodes survive one crash; each needs a `host`"));
    }
    if let Some(draft) = drafts.get(NODES_MAX) {
        let message = format!("the domain has more than {NODES_MAX} nodes");
        root.problems.add(Problem::at(Code::TooMany, draft.name_span.clone(), message));
    }
    if groups > GROUPS_MAX {
        let message = format!("the domain has more than {GROUPS_MAX} groups");
        root.problems.add(Problem::of_file(Code::TooMany, message));
    }
    if let [_, second] = drafts {
        let message = "the domain has two nodes: a crash of either stops it";
        let problem = Problem::at(Code::TwoNodes, second.name_span.clone(), message);
        root.problems.add(problem.help("add a third node; it needs no server of its own"));
    }
}
