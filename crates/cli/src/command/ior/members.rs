//! The members' own servers in the reference of a stateless group (IRL §3.2): its clients go to
//! them directly, and to the gateways when no server answers.
//!
//! What it is not: a look at who is alive; the ORB of the client goes on to the next address.
//! Invariant: of a group that is not stateless nobody is led past the order.

use quorba_base::policy::Style;
use quorba_config::{Backend, Domain, Group, Host};
use quorba_giop::ior::{GroupReference, Ior as Reference, group_reference};
use quorba_giop::limits::PROFILES_MAX;

use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// A server of the group, as clients reach it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) object_key: Vec<u8>,
}

impl Server {
    /// Whether only its own host can reach it.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.parse().map(Host::Address);
        address.unwrap_or_else(|_| Host::Name(self.host.clone())).is_loopback()
    }
}

fn text(host: &Host) -> String {
    match host {
        Host::Address(address) => address.to_string(),
        Host::Name(name) => name.clone(),
    }
}

/// The members' servers, the one at the node `first` in front; `port` is where those listen that
/// nodes start.
pub(super) fn servers(
    domain: &Domain,
    group: &Group,
    key: &[u8],
    port: Option<u16>,
    first: Option<&str>,
) -> Result<Vec<Server>, Failure> {
    if group.style != Style::Stateless {
        let what = format!("group {} is {}: --members is for stateless groups", group.name, {
            group.style.as_str()
        });
        let next = "leave --members out; calls past the order would make its members differ";
        return Err(Failure::new(codes::USAGE, Exit::Usage, what, next));
    }
    if group.tls.is_some() {
        let what = format!("group {} has TLS at its gateways, and none at its members", group.name);
        let next = "leave --members out, or take tls out of the group";
        return Err(Failure::new(codes::USAGE, Exit::Usage, what, next));
    }
    let mut servers: Vec<(&str, Server)> = Vec::new();
    for id in group.members.iter() {
        let Some(node) = domain.node(id) else { continue };
        let (host, port) = match (&group.backend, port) {
            (Backend::Start(_), Some(port)) => (&node.host, port),
            (Backend::Start(_), None) => return Err(no_port(group)),
            (Backend::Connect(_), Some(_)) => return Err(two_ports(group)),
            (Backend::Connect(members), None) => {
                let found = members.iter().find(|(member, _)| *member == id);
                let Some((_, member)) = found else { continue };
                (&member.endpoint.host, member.endpoint.port)
            }
        };
        let object_key = match &group.backend {
            Backend::Start(_) => key.to_vec(),
            Backend::Connect(_) => group.object_key_at(id).unwrap_or(key).to_vec(),
        };
        servers.push((&node.name, Server { host: text(host), port, object_key }));
    }
    let at = first.and_then(|first| servers.iter().position(|(node, _)| *node == first));
    servers.rotate_left(at.unwrap_or(0));
    Ok(servers.into_iter().map(|(_, server)| server).collect())
}

/// A reference to these servers, and behind them to what `gateways` says. Addresses that have the
/// object under one key are alternates of each other; each other key has profiles of its own.
pub(super) fn reference(servers: &[Server], gateways: &GroupReference<'_>) -> Reference {
    let mut places: Vec<Server> = servers.to_vec();
    let room = PROFILES_MAX.saturating_sub(servers.len());
    places.extend(gateways.gateways.iter().take(room).map(|(host, port)| Server {
        host: host.clone(),
        port: *port,
        object_key: gateways.object_key.to_vec(),
    }));
    let mut whole = Reference { type_id: gateways.type_id.to_vec(), profiles: Vec::new() };
    while let Some(next) = places.first() {
        let key = next.object_key.clone();
        let (same, others): (Vec<_>, Vec<_>) =
            places.into_iter().partition(|place| place.object_key == key);
        let same: Vec<_> = same.into_iter().map(|place| (place.host, place.port)).collect();
        let part = GroupReference { object_key: &key, gateways: &same, ..*gateways };
        whole.profiles.extend(group_reference(&part).profiles);
        places = others;
    }
    whole
}

fn no_port(group: &Group) -> Failure {
    let what = format!("nodes start the servers of group {}, at ports of their own", group.name);
    let next = "let the servers listen at one more port, and say it: --members=6000";
    Failure::new(codes::USAGE, Exit::Usage, what, next)
}

fn two_ports(group: &Group) -> Failure {
    let what = format!("the servers of group {} listen where its `connect` says", group.name);
    let next = "say --members without a port";
    Failure::new(codes::USAGE, Exit::Usage, what, next)
}
