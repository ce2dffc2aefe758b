//! References that this node's servers return: where they lead, and which of them harm.
//!
//! What it is not: a resolver. A name is this machine's if it is written as one of its names, and a
//! reference to what nobody here knows is nobody's fault. Invariants: of each group so many
//! operations are remembered for each kind, each once; what is remembered ends with the server.

use super::Reporter;
use crate::groups::Groups;
use crate::recent::escaped;
use quorba_admin::health::references::next;
use quorba_admin::status::ReferenceKind;
use quorba_admin::status::{ReferenceKeysStatus, ReferenceStatus, millis};
use quorba_base::NodeId;
use quorba_config::{Backend, Domain, Group, Host, Node};
use quorba_engine::replica::{GroupId, Returned, Short};
use quorba_giop::references::{self, Found};
use quorba_giop::split_shared_key;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, UdpSocket};
use std::time::Instant;
use twox_hash::XxHash3_64;

/// Operations that are remembered of each group, for each kind.
const OPERATIONS_MAX: usize = 16;
/// Replies whose keys are remembered of each operation; members may be so far apart.
const REPLIES_MAX: usize = 8;
/// Hosts of which it is remembered whether they are this machine.
const HOSTS_MAX: usize = 64;

struct Known {
    kind: ReferenceKind,
    operation: String,
    address: String,
    times: u64,
    since: Instant,
}

/// The object keys of references in a reply.
struct Keys {
    operation: String,
    request: u64,
    key: String,
    digest: u64,
    since: Instant,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct References {
    known: HashMap<GroupId, Vec<Known>>,
    keys: HashMap<GroupId, VecDeque<Keys>>,
    hosts: HashMap<String, bool>,
}

/// Where a reference leads, as far as that is known here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// To the gateways of this node of the domain file.
    Gateway(usize),
    /// To a gateway's port, at a host that the file does not name: another name of one, perhaps.
    PerhapsGateway,
    /// To a server.
    Server,
    Unknown,
}

impl References {
    /// The server of the group is another one from here on.
    pub(super) fn forget(&mut self, group: GroupId) {
        self.known.remove(&group);
        self.keys.remove(&group);
    }

    /// Remembers; true if it is new.
    fn saw(
        &mut self,
        group: GroupId,
        operation: &str,
        kind: ReferenceKind,
        address: String,
    ) -> bool {
        let known = self.known.entry(group).or_default();
        let is_it = |one: &&mut Known| one.kind == kind && one.operation == operation;
        if let Some(one) = known.iter_mut().find(is_it) {
            one.times += 1;
            one.address = address;
            return false;
        }
        // Notes leave room for what harms.
        let is_new = known.iter().filter(|one| one.kind == kind).count() < OPERATIONS_MAX;
        if is_new {
            let (operation, since) = (operation.to_owned(), Instant::now());
            known.push(Known { kind, operation, address, times: 1, since });
        }
        is_new
    }

    pub(super) fn status(&self, group: GroupId) -> Vec<ReferenceStatus> {
        let known = self.known.get(&group).map(Vec::as_slice).unwrap_or_default();
        let status = |one: &Known| ReferenceStatus {
            operation: one.operation.clone(),
            kind: one.kind,
            address: one.address.clone(),
            times: one.times,
            since_ms: millis(one.since.elapsed()),
        };
        known.iter().map(status).collect()
    }

    /// Remembers the keys of the last replies of each operation.
    fn saw_keys(&mut self, group: GroupId, operation: &str, request: u64, found: &[Found]) {
        let Some(first) = found.iter().find_map(|one| one.keys.first()) else { return };
        let keys = self.keys.entry(group).or_default();
        let is_it = |one: &&Keys| one.operation == operation;
        let oldest = match keys.iter().filter(is_it).count() >= REPLIES_MAX {
            true => keys.iter().position(|one| one.operation == operation),
            false => (keys.len() >= OPERATIONS_MAX * REPLIES_MAX).then_some(0),
        };
        if let Some(oldest) = oldest {
            keys.remove(oldest);
        }
        let mut all = Vec::new();
        for key in found.iter().flat_map(|one| &one.keys) {
            all.extend((key.len() as u64).to_le_bytes());
            all.extend(key);
        }
        keys.push_back(Keys {
            operation: operation.to_owned(),
            request,
            key: escaped(&Short::new(first)),
            digest: XxHash3_64::oneshot(&all),
            since: Instant::now(),
        });
    }

    pub(super) fn keys(&self, group: GroupId) -> Vec<ReferenceKeysStatus> {
        let status = |one: &Keys| ReferenceKeysStatus {
            operation: one.operation.clone(),
            request: one.request,
            key: one.key.clone(),
            digest: one.digest,
            since_ms: millis(one.since.elapsed()),
        };
        self.keys.get(&group).into_iter().flatten().map(status).collect()
    }

    /// Whether a host, as it is written in a reference, is this machine.
    fn is_here(&mut self, host: &str) -> bool {
        if let Some(known) = self.hosts.get(host) {
            return *known;
        }
        if self.hosts.len() == HOSTS_MAX {
            self.hosts.clear();
        }
        let is_here = is_this_machine(host);
        self.hosts.insert(host.to_owned(), is_here);
        is_here
    }
}

/// An address is this machine's if a socket can be bound to it.
fn is_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        return UdpSocket::bind((address, 0)).is_ok();
    }
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let own = label(own.trim());
    host.eq_ignore_ascii_case("localhost") || (!own.is_empty() && label(host) == own)
}

/// Whether a host of the domain file is what stands in a reference.
fn is_same(host: &Host, written: &str) -> bool {
    match host {
        Host::Address(address) => written.parse() == Ok(*address),
        Host::Name(name) => name.eq_ignore_ascii_case(written),
    }
}

/// What is known when a reference is judged.
struct Scene<'a> {
    domain: &'a Domain,
    groups: &'a Groups,
    me: NodeId,
    /// The group whose server has returned it.
    group: &'a Group,
    /// Where this node's servers listen.
    ports: &'a [u16],
}

impl Scene<'_> {
    /// `is_here`: whether a host is this machine.
    fn place(
        &self,
        (host, port): (&str, u16),
        keys: &[Vec<u8>],
        is_here: &mut impl FnMut(&str) -> bool,
    ) -> Place {
        let at = |node| self.groups.has_gateway(node, port);
        let mut nodes = self.domain.nodes.iter().enumerate();
        if let Some((index, _)) = nodes.find(|(_, node)| is_same(&node.host, host) && at(node)) {
            return Place::Gateway(index);
        }
        if self.groups.served_at(port).any(|group| connects_to(group, host, port)) {
            return Place::Server;
        }
        if self.ports.contains(&port) && self.is_near(host, is_here) {
            return Place::Server;
        }
        if self.domain.nodes.iter().any(at) {
            return Place::PerhapsGateway;
        }
        let is_node = || self.domain.nodes.iter().any(|node| is_same(&node.host, host));
        if keys.iter().any(|key| self.has_key(key)) && (is_node() || is_here(host)) {
            return Place::Server;
        }
        Place::Unknown
    }

    /// Whether a server of the group has its object, or its state, under this key; servers that
    /// somebody else runs may have keys of their own.
    fn has_key(&self, key: &[u8]) -> bool {
        let members = match &self.group.backend {
            Backend::Start(_) => &[][..],
            Backend::Connect(members) => members,
        };
        let members = members.iter().map(|(_, member)| &member.object_key);
        let mut keys =
            [&self.group.object_key, &self.group.state_object].into_iter().chain(members);
        keys.any(|own| own.as_deref() == Some(key))
    }

    /// The address of a gateway's shared port, if no key names a group that is reached there: calls
    /// are refused by whichever node.
    fn is_refused(&self, found: &Found) -> Option<String> {
        let shared = self.domain.gateway?.listen;
        let is_shared = |(host, port): &&(String, u16)| {
            let at = |node: &Node| shared.checked_add(node.gateway_port_offset) == Some(*port);
            self.domain.nodes.iter().any(|node| is_same(&node.host, host) && at(node))
        };
        let (host, port) = found.addresses.iter().find(is_shared)?;
        let names_one = |key: &Vec<u8>| {
            let named = split_shared_key(key).and_then(|(name, _)| self.groups.id_of(name));
            let group = named.and_then(|id| self.groups.get(id));
            group.is_some_and(|group| group.listen.is_none())
        };
        let is_named = found.keys.iter().all(names_one);
        (!is_named).then(|| written((host, *port)))
    }

    fn is_near(&self, host: &str, is_here: &mut impl FnMut(&str) -> bool) -> bool {
        let node = self.domain.node(self.me);
        node.is_some_and(|node| is_same(&node.host, host)) || is_here(host)
    }

    /// What is wrong with a reference, and the address that shows it.
    fn judge(
        &self,
        found: &Found,
        is_here: &mut impl FnMut(&str) -> bool,
    ) -> Option<(ReferenceKind, String)> {
        let addresses = found.addresses.iter().map(|(host, port)| (host.as_str(), *port));
        let mut places = Vec::new();
        for address in addresses.clone() {
            let place = self.place(address, &found.keys, is_here);
            if place == Place::Server {
                return Some((ReferenceKind::PastTheOrder, written(address)));
            }
            places.push(place);
        }
        if let Some(address) = self.is_refused(found) {
            return Some((ReferenceKind::NoGroup, address));
        }
        let one = *places.first()?;
        let is_one = matches!(one, Place::Gateway(_)) && places.iter().all(|place| *place == one);
        let has_more = self.domain.nodes.len() > 1;
        let address = addresses.clone().next()?;
        (is_one && has_more).then(|| (ReferenceKind::OneGateway, written(address)))
    }
}

fn connects_to(group: &Group, host: &str, port: u16) -> bool {
    let Backend::Connect(servers) = &group.backend else { return false };
    // Loopback is another machine at each node; what this node's server has is looked at behind.
    let is_it = |(_, server): &(NodeId, quorba_config::Member)| {
        let server = &server.endpoint;
        !server.host.is_loopback() && server.port == port && is_same(&server.host, host)
    };
    servers.iter().any(is_it)
}

fn written((host, port): (&str, u16)) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl Reporter {
    /// The server of a group has returned references; `ports`: where this node's servers listen.
    /// What is new and wrong: in words, and what helps.
    pub(crate) fn saw_returned(
        &mut self,
        group: GroupId,
        returned: &Returned,
        ports: &[u16],
    ) -> Vec<(String, &'static str)> {
        let Self { domain, groups, me, references, .. } = self;
        let Some(config) = groups.get(group) else { return Vec::new() };
        let scene = Scene { domain, groups, me: *me, group: config, ports };
        let Returned { reply, body_offset, endian, .. } = returned;
        let operation = escaped(&returned.operation);
        let mut news = Vec::new();
        let all = references::find(reply, *body_offset, *endian);
        if let Some(request) = returned.request {
            references.saw_keys(group, &operation, request, &all);
        }
        for found in all {
            let judged = scene.judge(&found, &mut |host| references.is_here(host));
            let Some((kind, address)) = judged else { continue };
            if references.saw(group, &operation, kind, address) {
                let one = references.status(group).pop().expect("just added");
                news.push((quorba_admin::health::references::words(&one), next(&one)));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests;
