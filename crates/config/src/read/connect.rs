//! `connect`: servers that somebody else runs, by address or by reference.
//!
//! What it is not: it connects to nothing, and looks no host up. Of a reference its first IIOP
//! profile counts: a member has one server, at one address.

use quorba_base::{NodeId, NodeSet};
use quorba_giop::corbaloc;
use quorba_giop::ior::{IiopProfile, Ior};
use toml::de::DeValue;

use super::group::{find_node, refuse_outsider};
use super::node::parse_host;
use super::scope::Scope;
use crate::codes::Code;
use crate::domain::{Endpoint, Member};
use crate::problem::Problem;
use crate::walk::{At, Section, Span, Value, shortened};

/// What the references of members say of the group's object.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The key under which the first member has it.
    pub(super) object_key: Option<Vec<u8>>,
    /// What it is, if one says so.
    pub(super) type_id: Option<String>,
}

/// One server.
struct Server {
    node: NodeId,
    member: Member,
    type_id: Option<String>,
    span: Span,
}

/// The servers of the members, in the order of ids.
pub(super) fn read(
    section: &Section<'_>,
    value: &Value<'_>,
    scope: &Scope<'_>,
    members: NodeSet,
) -> (Vec<(NodeId, Member)>, Found) {
    let mut servers: Vec<Server> = Vec::new();
    match value.get_ref() {
        DeValue::String(text) => {
            let at = At { value: text.as_ref(), span: value.span() };
            if let Some((member, type_id)) = member(section, &at) {
                servers.extend(members.iter().map(|node| Server {
                    node,
                    member: member.clone(),
                    type_id: type_id.clone(),
                    span: value.span(),
                }));
            }
        }
        DeValue::Table(table) => {
            for (name, value) in table.iter() {
                let name = At { value: name.get_ref().as_ref(), span: name.span() };
                let node = find_node(section, scope, "connect", &name);
                let DeValue::String(text) = value.get_ref() else {
                    section.wrong_type(name.value, "a text \"host:port\"", value);
                    continue;
                };
                let at = At { value: text.as_ref(), span: value.span() };
                let member = member(section, &at);
                let (Some(node), Some((member, type_id))) = (node, member) else { continue };
                refuse_outsider(section, "connect", members, node, name);
                servers.push(Server { node, member, type_id, span: value.span() });
            }
            missing_servers(section, value, scope, members, table.len());
        }
        _ => section.wrong_type("connect", "\"host:port\" or { n1 = \"host:port\" }", value),
    }
    servers.sort_by_key(|server| server.node);
    refuse_shared(section, scope, &servers);
    refuse_keyless(section, scope, &servers);
    warn_of_types(section, scope, &servers);
    let found = Found {
        object_key: servers.iter().find_map(|server| server.member.object_key.clone()),
        type_id: servers.iter().find_map(|server| server.type_id.clone()),
    };
    (servers.into_iter().map(|server| (server.node, server.member)).collect(), found)
}

fn missing_servers(
    section: &Section<'_>,
    value: &Value<'_>,
    scope: &Scope<'_>,
    members: NodeSet,
    entries: usize,
) {
    let DeValue::Table(table) = value.get_ref() else { return };
    let name_of = |node: NodeId| scope.node(node).name.as_str();
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
fn refuse_shared(section: &Section<'_>, scope: &Scope<'_>, servers: &[Server]) {
    for (index, server) in servers.iter().enumerate() {
        let endpoint = &server.member.endpoint;
        let node = scope.node(server.node);
        let same = servers[..index].iter().find(|other| {
            *endpoint == other.member.endpoint
                && (!endpoint.host.is_loopback()
                    || node.machine() == scope.node(other.node).machine())
        });
        let Some(other) = same else { continue };
        let (first, second) = (&scope.node(other.node).name, &node.name);
        let message = format!("members {first} and {second} would use one server, {endpoint}");
        let help =
            "each member needs a server of its own: connect = { n1 = \"...\", n2 = \"...\" }";
        let problem = Problem::at(Code::SharedServer, server.span.clone(), message);
        section.problems.add(problem.help(help));
        return;
    }
}

/// Where some members have keys of their own, nobody knows under which the others have the object;
/// the group's own says it.
fn refuse_keyless(section: &Section<'_>, scope: &Scope<'_>, servers: &[Server]) {
    let has_key = |server: &&Server| server.member.object_key.is_some();
    if section.value("object_key").is_some() || !servers.iter().any(|server| has_key(&server)) {
        return;
    }
    let Some(keyless) = servers.iter().find(|server| !has_key(server)) else { return };
    let name = &scope.node(keyless.node).name;
    let message = format!("connect says no object key for {name}, and others have one");
    let help = "give a reference of every member, or the `object_key` that servers have which are \
                given as host:port";
    let problem = Problem::at(Code::BadReference, keyless.span.clone(), message);
    section.problems.add(problem.help(help));
}

/// References that name different types are probably of different objects. Who says the group's
/// `type_id` knows.
fn warn_of_types(section: &Section<'_>, scope: &Scope<'_>, servers: &[Server]) {
    let mut typed = servers.iter().filter_map(|server| Some((server, server.type_id.as_deref()?)));
    let Some((first, of_first)) = typed.next() else { return };
    let other = typed.find(|(_, of_other)| *of_other != of_first);
    let Some((other, of_other)) = other.filter(|_| section.value("type_id").is_none()) else {
        return;
    };
    let (name, of) = (&scope.node(other.node).name, &scope.node(first.node).name);
    let message = format!(
        "the reference for {name} is to an object of type {of_other}, and that for {of} of type \
         {of_first}"
    );
    let help = "all members must be the same object; clients are told the first type, unless \
                `type_id` says another";
    let problem = Problem::at(Code::SilentSetting, other.span.clone(), message);
    section.problems.add(problem.help(help));
}

/// A server, and what its object is if that is said.
fn member(section: &Section<'_>, at: &At<&str>) -> Option<(Member, Option<String>)> {
    let begins = |with: &str| {
        at.value.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let read = if begins("IOR:") {
        Ior::parse(at.value).map_err(|error| error.to_string())
    } else if begins("corbaloc:") {
        corbaloc::parse(at.value).map(|url| url.to_ior()).map_err(|error| error.to_string())
    } else {
        let member = endpoint(section, at).map(|endpoint| Member { endpoint, object_key: None });
        return member.map(|member| (member, None));
    };
    match read.and_then(|ior| of_reference(section, at, &ior)) {
        Ok(found) => Some(found),
        Err(why) => {
            let shown = shortened(at.value);
            let message = format!("connect {shown:?} cannot be used: {why}");
            let problem = Problem::at(Code::BadReference, at.span.clone(), message);
            let help = "the reference of the object in the member's server, as that prints it, or \
                        its address: \"127.0.0.1:6000\"";
            section.problems.add(problem.help(help));
            None
        }
    }
}

fn of_reference(
    section: &Section<'_>,
    at: &At<&str>,
    ior: &Ior,
) -> Result<(Member, Option<String>), String> {
    if ior.is_nil() {
        return Err("it is a nil reference, to no object".to_owned());
    }
    let mut profiles = ior.profiles.iter().filter_map(|profile| profile.iiop());
    let first = profiles.next().ok_or("it has no IIOP profile")?;
    let first = first.map_err(|error| format!("its IIOP profile cannot be read: {error}"))?;
    let host =
        parse_host(&first.host).map_err(|why| format!("its host {:?}: {why}", first.host))?;
    if first.port == 0 {
        return Err("its IIOP profile has no port; servers with TLS only cannot be used".to_owned());
    }
    warn_of_alternates(section, at, ior, &first);
    let type_id = String::from_utf8(ior.type_id.clone()).ok().filter(|id| !id.is_empty());
    let endpoint = Endpoint { host, port: first.port };
    Ok((Member { endpoint, object_key: Some(first.object_key) }, type_id))
}

/// Says so if the reference has more addresses than the one that is used.
fn warn_of_alternates(section: &Section<'_>, at: &At<&str>, ior: &Ior, first: &IiopProfile) {
    let is_other = |one: &quorba_giop::ior::Endpoint| {
        (one.host.as_str(), one.port) != (first.host.as_str(), first.port)
    };
    let endpoints = ior.endpoints();
    let Some(other) = endpoints.iter().find(|one| is_other(one)) else { return };
    let message = format!(
        "connect uses {}:{} of the reference, and not {}:{}",
        first.host, first.port, other.host, other.port
    );
    let problem = Problem::at(Code::SilentSetting, at.span.clone(), message);
    let help = "a member has one server at one address: that of the first IIOP profile";
    section.problems.add(problem.help(help));
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
