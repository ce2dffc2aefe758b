//! `[node.NAME]` tables.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::codes::Code;
use crate::domain::{ADMIN_PORT_DEFAULT, Host, Node, admin_default};
use crate::problem::Problem;
use crate::walk::{At, Section, Span, shortened};

const RING_PORT_DEFAULT: u16 = 4700;
const STATE_DIR_DEFAULT: &str = "quorba-state";
/// A host name as DNS allows it (RFC 1035 §2.3.4).
const HOST_NAME_BYTES_MAX: usize = 253;

/// A node with the places of what other tables can collide with.
#[derive(Debug)]
pub(super) struct NodeDraft {
    pub(super) node: Node,
    pub(super) name_span: Span,
    pub(super) host_span: Span,
    pub(super) ring_port_span: Span,
    pub(super) admin_span: Span,
    pub(super) state_dir_span: Span,
    pub(super) offset_span: Span,
}

impl NodeDraft {
    /// One that stands in no text that is read.
    pub(super) fn of(node: &Node) -> Self {
        Self {
            node: node.clone(),
            name_span: 0..0,
            host_span: 0..0,
            ring_port_span: 0..0,
            admin_span: 0..0,
            state_dir_span: 0..0,
            offset_span: 0..0,
        }
    }

    /// See [`Node::machine`].
    pub(super) fn machine(&self) -> String {
        self.node.machine()
    }
}

/// Every node in the order of the file, those with errors included, so that groups can name them.
pub(super) fn read_all(root: &Section<'_>, base: &Path) -> Vec<NodeDraft> {
    let mut drafts: Vec<NodeDraft> = Vec::new();
    for (name, section) in root.named("node") {
        let mut draft = read_one(&name, &section, base);
        if section.value("admin").is_none() {
            let machine = draft.machine();
            let earlier = drafts.iter().filter(|other| other.machine() == machine).count();
            draft.node.admin = admin_default(u16::try_from(earlier).unwrap_or(u16::MAX));
        }
        section.finish();
        drafts.push(draft);
    }
    warn_of_loopback(root, &drafts);
    drafts
}

fn read_one(name: &At<&str>, section: &Section<'_>, base: &Path) -> NodeDraft {
    let hint = "the address that other nodes and clients use, such as host = \"10.0.0.1\"";
    let host = section.required_text("host", hint);
    let host_span = host.as_ref().map_or(name.span.clone(), |at| at.span.clone());
    let host = host.and_then(|at| read_host(section, &at));
    let ring_port = section.port("ring_port");
    let offset = section.number("gateway_port_offset", "", 0..=u64::from(u16::MAX));
    let state_dir = section.text("state_dir");
    let admin = section.text("admin");
    let span_of = |span: Option<&Span>| span.unwrap_or(&name.span).clone();
    NodeDraft {
        name_span: name.span.clone(),
        host_span,
        ring_port_span: span_of(ring_port.as_ref().map(|at| &at.span)),
        admin_span: span_of(admin.as_ref().map(|at| &at.span)),
        state_dir_span: span_of(state_dir.as_ref().map(|at| &at.span)),
        offset_span: span_of(offset.as_ref().map(|at| &at.span)),
        node: Node {
            name: name.value.to_owned(),
            host: host.unwrap_or(Host::Name(format!("{}.invalid", name.value))),
            ring_port: ring_port.map_or(RING_PORT_DEFAULT, |at| at.value),
            bind: section.text("bind").and_then(|at| read_bind(section, &at)),
            admin: admin
                .and_then(|at| read_admin(section, &at))
                .unwrap_or_else(|| admin_default(0)),
            state_dir: match state_dir {
                Some(at) => base.join(at.value),
                None => base.join(STATE_DIR_DEFAULT).join(name.value),
            },
            gateway_port_offset: offset.map_or(0, |at| u16::try_from(at.value).unwrap_or(0)),
        },
    }
}

fn read_host(section: &Section<'_>, at: &At<&str>) -> Option<Host> {
    match parse_host(at.value) {
        Ok(host) => Some(host),
        Err(why) => {
            let message = format!("host {:?} cannot be used: {why}", shortened(at.value));
            section.problems.add(Problem::at(Code::BadAddress, at.span.clone(), message));
            None
        }
    }
}

/// A host that others can connect to, without a port.
pub(super) fn parse_host(text: &str) -> Result<Host, &'static str> {
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Ok(address) = inside.unwrap_or(text).parse::<IpAddr>() {
        return match address {
            _ if address.is_unspecified() => Err("nobody can connect to it"),
            _ if address.is_multicast() => Err("it is a multicast address"),
            _ => Ok(Host::Address(address)),
        };
    }
    if text.contains(':') {
        return Err("an address or a name, without a port");
    }
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if digits_only || text.len() > HOST_NAME_BYTES_MAX || !text.split('.').all(label) {
        return Err("neither an IP address nor a host name");
    }
    Ok(Host::Name(text.to_owned()))
}

fn read_bind(section: &Section<'_>, at: &At<&str>) -> Option<IpAddr> {
    if let Ok(address) = at.value.parse::<IpAddr>() {
        return Some(address);
    }
    let message = format!("bind {:?} is no IP address", shortened(at.value));
    let problem = Problem::at(Code::BadAddress, at.span.clone(), message);
    section.problems.add(problem.help("\"0.0.0.0\" binds to every interface"));
    None
}

fn read_admin(section: &Section<'_>, at: &At<&str>) -> Option<SocketAddr> {
    let problem = |message: String| Problem::at(Code::BadAddress, at.span.clone(), message);
    let help = format!("such as admin = \"127.0.0.1:{ADMIN_PORT_DEFAULT}\"");
    let address = match at.value.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => address,
        Ok(_) | Err(_) => {
            let message = format!("admin {:?} is no address with a port", shortened(at.value));
            section.problems.add(problem(message).help(help));
            return None;
        }
    };
    if !address.ip().is_loopback() {
        let message = format!("admin {address} is not on the loopback interface");
        section.problems.add(problem(message).label("others could reach it").help(help));
        return None;
    }
    Some(address)
}

fn warn_of_loopback(root: &Section<'_>, drafts: &[NodeDraft]) {
    if drafts.iter().all(|draft| draft.node.host.is_loopback()) {
        return;
    }
    for draft in drafts.iter().filter(|draft| draft.node.host.is_loopback()) {
        let message = format!("only {} itself can reach {}", draft.node.name, draft.node.host);
        let problem = Problem::at(Code::LoopbackHost, draft.host_span.clone(), message);
        root.problems.add(problem.help("give the address that the other hosts see"));
    }
}
