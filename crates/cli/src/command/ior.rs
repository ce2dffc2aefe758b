//! `quorba ior`: references, taken apart and made.

mod members;

use clap::{Args, Subcommand};
use quorba_config::{Domain, Gateways, Group, Node, code_sets, reference_to};
use quorba_giop::Endian;
use quorba_giop::corbaloc::Corbaloc;
use quorba_giop::describe;
use quorba_giop::ior::{
    CodeSetChoice, Component, ComponentValue, GroupReference, IiopProfile, Ior as Reference,
    Profile,
};
use serde_json::{Value, json};

use self::members::Server;
use crate::args::DomainFile;
use crate::ask::Answer;
use crate::catalog::{self, Found};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;

/// Take object references apart, and make them
#[derive(Debug, Args)]
pub struct Ior {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show everything that a reference says
    Show {
        /// IOR:..., corbaloc:..., corbaname:..., a file that holds one, or - for standard input
        #[arg(value_name = "REF")]
        reference: String,
    },
    Make(Make),
}

/// Print the reference of a group: what its clients are given
///
/// All gateways are in it, in a form with which every ORB moves on when one of them fails.
#[derive(Debug, Args)]
struct Make {
    /// The group
    group: String,

    #[command(flatten)]
    domain: DomainFile,

    /// The object key in the server, such as bank or %00%01 [default: the group's object_key]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// The repository id, such as IDL:Bank/Ledger:1.0 [default: the group's type_id]
    #[arg(long = "type", value_name = "ID")]
    type_id: Option<String>,

    /// The node whose gateway is tried first, such as the one on the client's own host
    #[arg(long, value_name = "NODE")]
    first: Option<String>,

    /// Of a stateless group: the servers of its members come first, and the gateways last. Without
    /// PORT they are those of `connect`; else they listen at PORT of their nodes
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    members: Option<Option<u16>>,

    /// Print a corbaloc, which people can read, instead of an IOR
    #[arg(long)]
    corbaloc: bool,
}

/// A reference, and what is told of it.
struct Made {
    ior: Reference,
    type_id: String,
    gateways: Gateways,
    servers: Vec<Server>,
}

impl Ior {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self.action {
            Action::Show { reference } => show(context, &reference),
            Action::Make(make) => make.run(context),
        }
    }
}

fn show(context: &Context, argument: &str) -> Result<Exit, Failure> {
    let mut text = reference::read_text(argument)?;
    let parsed = reference::resolve(&text);
    if let Ok(ior) = &parsed
        && reference::is_name(&text)
    {
        text = ior.stringify(Endian::Big);
    }
    match (&parsed, context.is_json()) {
        (Ok(ior), true) => context.print_json(&ior_json(ior))?,
        (Err(_), true) => {}
        (_, false) => {
            let shown = describe::reference_text(&text);
            // Of what is malformed it shows what can be read; one line is the error alone.
            if parsed.is_ok() || shown.lines().count() > 1 {
                context.print(&format!("{}\n", shown.trim_end()))?;
            }
        }
    }
    parsed.map(|_| Exit::Ok)
}

fn ior_json(ior: &Reference) -> Value {
    let addresses = ior.endpoints().into_iter().map(|endpoint| {
        json!({
            "host": endpoint.host,
            "port": endpoint.port,
            "giop": endpoint.version.to_string(),
            "object_key": hex(&endpoint.object_key),
        })
    });
    json!({
        "type_id": String::from_utf8_lossy(&ior.type_id),
        "nil": ior.is_nil(),
        "corbaloc": Corbaloc::from_ior(ior).map(|corbaloc| corbaloc.to_string()),
        "addresses": addresses.collect::<Vec<_>>(),
        "profiles": ior.profiles.iter().map(profile_json).collect::<Vec<_>>(),
    })
}

fn profile_json(profile: &Profile) -> Value {
    match (profile.iiop(), profile.multiple_components()) {
        (Some(Ok(iiop)), _) => iiop_json(profile.tag, &iiop),
        (_, Some(Ok(components))) => json!({
            "tag": profile.tag,
            "components": components.iter().map(component_json).collect::<Vec<_>>(),
        }),
        (Some(Err(error)), _) | (_, Some(Err(error))) => json!({
            "tag": profile.tag,
            "data": hex(&profile.data),
            "error": error.to_string(),
        }),
        (None, None) => json!({ "tag": profile.tag, "data": hex(&profile.data) }),
    }
}

fn iiop_json(tag: u32, iiop: &IiopProfile) -> Value {
    json!({
        "tag": tag,
        "giop": iiop.version.to_string(),
        "host": iiop.host,
        "port": iiop.port,
        "object_key": hex(&iiop.object_key),
        "components": iiop.components.iter().map(component_json).collect::<Vec<_>>(),
    })
}

fn component_json(component: &Component) -> Value {
    let known = match component.value() {
        Some(Ok(value)) => value_json(&value),
        Some(Err(error)) => json!({ "error": error.to_string(), "data": hex(&component.data) }),
        None => json!({ "data": hex(&component.data) }),
    };
    let mut object = json!({ "tag": component.tag });
    if let (Value::Object(object), Value::Object(known)) = (&mut object, known) {
        object.extend(known);
    }
    object
}

fn value_json(value: &ComponentValue) -> Value {
    let choice = |choice: &CodeSetChoice| {
        let hex = |number: &u32| format!("{number:#010x}");
        json!({
            "native": hex(&choice.native),
            "conversion": choice.conversion.iter().map(hex).collect::<Vec<_>>(),
        })
    };
    match value {
        ComponentValue::OrbType(number) => json!({ "orb_type": format!("{number:#010x}") }),
        ComponentValue::CodeSets(sets) => {
            json!({ "char": choice(&sets.char_data), "wchar": choice(&sets.wchar_data) })
        }
        ComponentValue::AlternateAddress { host, port } => json!({ "host": host, "port": port }),
        ComponentValue::SslTransport(tls) => json!({
            "tls_port": tls.port,
            "tls_supports": tls.supports,
            "tls_requires": tls.requires,
        }),
        ComponentValue::FtGroup(group) => json!({
            "ft_domain": String::from_utf8_lossy(&group.domain_id),
            "ft_group": group.group_id,
            "ft_version": group.reference_version,
        }),
        ComponentValue::FtPrimary(is) => json!({ "ft_primary": is }),
        ComponentValue::FtHeartbeatEnabled(is) => json!({ "ft_heartbeat": is }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Make {
    fn make(&self, context: &Context, domain: &Domain) -> Result<Made, Failure> {
        let Found { group, answers, identity } = catalog::find(context, domain, &self.group)?;
        let group = &group;
        let key = match (&self.key, &group.object_key) {
            (Some(key), _) => reference::parse_key(key)?,
            (None, Some(key)) => key.clone(),
            (None, None) => return Err(no_key(group)),
        };
        let gateways = self.gateways(domain, group, &answers)?;
        let first = self.first.as_deref();
        let servers = match self.members {
            Some(port) => members::servers(domain, group, &key, port, first)?,
            None => Vec::new(),
        };
        // References to one object group are references to one object.
        let identity = identity.filter(|_| group.object_key.as_ref() == Some(&key));
        let named = identity.map(|identity| (domain.id.as_str(), identity));
        let key = group.client_key(&key);
        let type_id = self.type_id.as_deref().or(group.type_id.as_deref()).unwrap_or("");
        let ior = match servers.is_empty() {
            true => reference_to((&key, type_id), &gateways, named, false),
            // A server does not remember the names of calls, and answers no heartbeat.
            false => members::reference(
                &servers,
                &GroupReference {
                    type_id: type_id.as_bytes(),
                    object_key: &key,
                    gateways: &gateways.addresses,
                    tls: &gateways.tls,
                    group: None,
                    primary: None,
                    heartbeat_enabled: false,
                    components: &[code_sets()],
                },
            ),
        };
        Ok(Made { ior, type_id: type_id.to_owned(), gateways, servers })
    }

    fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.domain.config)?;
        let Made { ior, type_id, gateways, servers } = self.make(context, &domain)?;
        let stringified = ior.stringify(Endian::Big);
        let corbaloc = Corbaloc::from_ior(&ior).map(|corbaloc| corbaloc.to_string());
        if context.is_json() {
            let place = |host: &str, port: u16| json!({ "host": host, "port": port });
            let tls = gateways.tls.iter();
            let gateways = gateways.addresses.iter().map(|(host, port)| place(host, *port));
            let mut shown = json!({
                "tls_ports": tls.map(|tls| tls.port).collect::<Vec<_>>(),
                "group": self.group,
                "type_id": type_id,
                "ior": stringified,
                "corbaloc": corbaloc,
                "gateways": gateways.collect::<Vec<_>>(),
            });
            if self.members.is_some() {
                let servers = servers.iter().map(|server| place(&server.host, server.port));
                shown["members"] = servers.collect();
            }
            context.print_json(&shown)?;
            return Ok(Exit::Ok);
        }
        match (corbaloc, self.corbaloc) {
            (Some(corbaloc), true) => context.print(&format!("{corbaloc}\n"))?,
            (None, true) if self.members.is_some() => return Err(several_keys(&self.group)),
            _ => context.print(&format!("{stringified}\n"))?,
        }
        let is_local = |server: &Server| server.is_loopback();
        if domain.nodes.iter().any(|node| node.host.is_loopback()) || servers.iter().any(is_local) {
            context.tell("note: it names loopback addresses; clients on other hosts cannot use it");
        }
        Ok(Exit::Ok)
    }

    /// The nodes, beginning with the one that was asked for.
    fn nodes<'a>(&self, domain: &'a Domain) -> Result<Vec<&'a Node>, Failure> {
        let mut nodes: Vec<_> = domain.nodes.iter().collect();
        if let Some(first) = &self.first {
            let Some(at) = nodes.iter().position(|node| node.name == *first) else {
                return Err(super::node::no_such_node(domain, first));
            };
            nodes.rotate_left(at);
        }
        Ok(nodes)
    }

    /// Their gateways. A node that answers knows where it listens: its own file may say something
    /// else than this one.
    fn gateways(
        &self,
        domain: &Domain,
        group: &Group,
        answers: &[Answer],
    ) -> Result<Gateways, Failure> {
        let nodes = self.nodes(domain)?;
        let mut gateways = Gateways::of(group, nodes.iter().copied());
        for ((_, port), node) in gateways.addresses.iter_mut().zip(nodes) {
            if let Some(listens) = listens(&node.name, &group.name, answers)
                && group.takes_plain()
            {
                *port = listens;
            }
        }
        Ok(gateways)
    }
}

/// The reference of a group's own object, beginning at the gateway of the node `first`.
pub(super) fn of_group(
    context: &Context,
    domain: &Domain,
    group: &str,
    first: Option<&str>,
) -> Result<Reference, Failure> {
    let make = Make {
        group: group.to_owned(),
        domain: DomainFile { config: domain.file.clone() },
        key: None,
        type_id: None,
        first: first.map(str::to_owned),
        members: None,
        corbaloc: false,
    };
    make.make(context, domain).map(|made| made.ior)
}

/// The port at which a node says that its clients reach the group.
fn listens(node: &str, group: &str, answers: &[Answer]) -> Option<u16> {
    let answer = answers.iter().find(|answer| answer.node == node)?;
    let groups = &answer.status.as_ref().ok()?.groups;
    let listen = &groups.iter().find(|one| one.name == group)?.listen;
    listen.rsplit_once(':')?.1.parse().ok()
}

fn several_keys(group: &str) -> Failure {
    let what =
        format!("the members and gateways of group {group} have its object under several keys");
    let next = "leave --corbaloc out: a corbaloc has one key for all addresses";
    Failure::new(codes::USAGE, Exit::Usage, what, next)
}

fn no_key(group: &Group) -> Failure {
    let what = format!("group {} has no object_key, and --key is not given", group.name);
    let next = "give the key under which the server has the object: --key bank";
    Failure::new(codes::NO_OBJECT_KEY, Exit::Usage, what, next)
}
