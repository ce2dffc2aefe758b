//! The groups of the domain, and the servers outside, as this node knows them now: by id and by
//! name. Filled at the start from the domain file; groups may come and go afterwards.
//!
//! What it is not: what the engine knows of them, or what runs here. Invariants: nothing else in
//! this crate knows which id a name has, or what a group is called; what is counted over all
//! groups (ports of gateways, who is called) is right after every change, so that nobody has to go
//! through all of them.

use crate::names::{group_id, outside_id};
use quorba_config::{Backend, Domain, Group, Node, Outside};
use quorba_engine::replica::{GroupId, GroupMap};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Groups {
    known: GroupMap<Arc<Group>>,
    ids: BTreeMap<String, GroupId>,
    outside: GroupMap<Arc<Outside>>,
    /// How many listen there, with or without TLS, before the nodes' offsets.
    gateways: BTreeMap<u16, u32>,
    /// Groups whose servers somebody else runs, by these servers' ports.
    elsewhere: BTreeMap<u16, Vec<GroupId>>,
    /// How many groups call each.
    callers: BTreeMap<GroupId, u32>,
}

impl Groups {
    /// Those of the domain file.
    pub(crate) fn of_domain(domain: &Domain) -> Self {
        let outside = domain.outside.iter().enumerate();
        let outside = outside.map(|(at, server)| (outside_id(at), Arc::new(server.clone())));
        let mut groups = Self { outside: outside.collect(), ..Self::default() };
        for (at, group) in domain.groups.iter().enumerate() {
            groups.insert(group_id(at), Arc::new(group.clone()));
        }
        groups
    }

    /// There is such a group from now on, or it is another one.
    pub(crate) fn insert(&mut self, id: GroupId, group: Arc<Group>) {
        self.remove(id);
        self.ids.insert(group.name.clone(), id);
        for port in listens(&group) {
            *self.gateways.entry(port).or_default() += 1;
        }
        for port in elsewhere(&group) {
            self.elsewhere.entry(port).or_default().push(id);
        }
        for called in self.calls_of(&group) {
            *self.callers.entry(called).or_default() += 1;
        }
        self.known.insert(id, group);
    }

    /// There is no such group any more.
    pub(crate) fn remove(&mut self, id: GroupId) -> Option<Arc<Group>> {
        let group = self.known.remove(id)?;
        if self.ids.get(&group.name) == Some(&id) {
            self.ids.remove(&group.name);
        }
        listens(&group).for_each(|port| one_less(&mut self.gateways, port));
        for port in elsewhere(&group) {
            if let Some(of_port) = self.elsewhere.get_mut(&port) {
                of_port.retain(|of| *of != id);
                if of_port.is_empty() {
                    self.elsewhere.remove(&port);
                }
            }
        }
        for called in self.calls_of(&group) {
            one_less(&mut self.callers, called);
        }
        Some(group)
    }

    pub(crate) fn get(&self, id: GroupId) -> Option<&Arc<Group>> {
        self.known.get(id)
    }

    /// The group called `name`.
    pub(crate) fn id_of(&self, name: &str) -> Option<GroupId> {
        self.ids.get(name).copied()
    }

    /// What a group, or a server outside, is called.
    pub(crate) fn name_of(&self, id: GroupId) -> Option<&str> {
        let group = self.known.get(id).map(|group| group.name.as_str());
        group.or_else(|| self.outside.get(id).map(|server| server.name.as_str()))
    }

    /// All groups, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (GroupId, &Arc<Group>)> + Clone {
        self.known.iter()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.known.ids()
    }

    /// All servers outside, in the order of their ids.
    pub(crate) fn outside(&self) -> &GroupMap<Arc<Outside>> {
        &self.outside
    }

    /// The groups, and servers outside, that the servers of `group` call.
    pub(crate) fn calls_of(&self, group: &Group) -> Vec<GroupId> {
        let outside = group.outside.iter().map(|at| outside_id(*at));
        group.calls.iter().map(|at| group_id(*at)).chain(outside).collect()
    }

    /// Whether servers of a group call it.
    pub(crate) fn is_called(&self, id: GroupId) -> bool {
        self.callers.contains_key(&id)
    }

    /// Whether a group's gateway on `node` listens at that port.
    pub(crate) fn has_gateway(&self, node: &Node, port: u16) -> bool {
        let before = port.checked_sub(node.gateway_port_offset);
        before.is_some_and(|port| self.gateways.contains_key(&port))
    }

    /// Groups that have a server at that port which somebody else runs, on whatever host.
    pub(crate) fn served_at(&self, port: u16) -> impl Iterator<Item = &Group> {
        let ids = self.elsewhere.get(&port).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.known.get(*id)).map(|group| &**group)
    }
}

fn listens(group: &Group) -> impl Iterator<Item = u16> {
    let tls = group.tls.as_ref().map(|tls| tls.listen);
    std::iter::once(group.listen).chain(tls)
}

/// Each port once.
fn elsewhere(group: &Group) -> std::collections::BTreeSet<u16> {
    match &group.backend {
        Backend::Start(_) => std::collections::BTreeSet::new(),
        Backend::Connect(servers) => servers.iter().map(|(_, server)| server.port).collect(),
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_config::{DomainKey, check_text};
    use std::path::Path;

    const FILE: &str = "[domain]\nid = \"d\"\nkey_file = \"key\"\n\
        [node.n1]\nhost = \"127.0.0.1\"\ngateway_port_offset = 10\n\
        [group.bank]\nlisten = 5000\nmembers = [\"n1\"]\nserver = [\"b\", \"{port}\"]\n\
        [group.names]\nlisten = 5001\nmembers = [\"n1\"]\nconnect = { n1 = \"127.0.0.1:2809\" }\n\
        [group.shop]\nlisten = 5002\nmembers = [\"n1\"]\ncalls = [\"bank\"]\n\
        server = [\"s\", \"{port}\", \"{call.bank}\"]\n";

    fn domain() -> Domain {
        let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
        let read = check_text(Path::new("quorba.toml"), FILE, key);
        read.domain.unwrap_or_else(|| panic!("{}", read.report))
    }

    #[test]
    fn what_is_counted_over_all_groups_is_right_after_one_has_gone() {
        let domain = domain();
        let node = &domain.nodes[0];
        let mut groups = Groups::of_domain(&domain);
        let [bank, names, shop] = ["bank", "names", "shop"].map(|name| groups.id_of(name));
        let (bank, names, shop) =
            (bank.expect("there"), names.expect("there"), shop.expect("there"));
        assert!(groups.has_gateway(node, 5011) && !groups.has_gateway(node, 5001));
        assert!(groups.is_called(bank) && !groups.is_called(shop));
        assert_eq!(groups.served_at(2809).count(), 1);
        assert!(groups.remove(names).is_some() && groups.remove(names).is_none());
        assert!(!groups.has_gateway(node, 5011));
        assert_eq!((groups.served_at(2809).count(), groups.id_of("names")), (0, None));
        groups.remove(shop);
        assert!(!groups.is_called(bank));
        assert_eq!(groups.name_of(bank), Some("bank"));
        assert_eq!(groups.name_of(shop), None);
    }

    /// A group of a former one's name, which is still being forgotten, keeps its name.
    #[test]
    fn a_later_group_of_the_same_name_is_found_by_it() {
        let mut groups = Groups::of_domain(&domain());
        let first = groups.id_of("bank").expect("there");
        let bank = Arc::clone(groups.get(first).expect("there"));
        let later = GroupId(4711);
        groups.insert(later, bank);
        groups.remove(first);
        assert_eq!(groups.id_of("bank"), Some(later));
        assert!(groups.has_gateway(&domain().nodes[0], 5010));
    }
}
