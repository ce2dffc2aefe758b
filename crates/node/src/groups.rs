//! The groups of the domain, and the servers outside, as this node knows them now: by id and by
//! name. Filled at the start from the catalog; groups may come and go afterwards.
//!
//! What it is not: what the engine knows of them, or what runs here. Invariants: nothing else in
//! this crate knows which id a name has, or what a group is called; what is counted over all
//! groups (ports of gateways) is right after every change, so that nobody has to go
//! through all of them.

use crate::definitions::{Read, Reader};
use quorba_config::{Backend, DOMAIN_OBJECT, Domain, Group, Node, Outside};
use quorba_engine::replica::{Catalog, GroupId, GroupMap};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Groups {
    known: GroupMap<Arc<Group>>,
    ids: BTreeMap<String, GroupId>,
    outside: GroupMap<Arc<Outside>>,
    outside_ids: BTreeMap<String, GroupId>,
    /// How many listen there, with or without TLS, before the nodes' offsets.
    gateways: BTreeMap<u16, u32>,
    /// Groups whose servers somebody else runs, by these servers' ports.
    elsewhere: BTreeMap<u16, BTreeSet<GroupId>>,
}

impl Groups {
    /// No group, and of servers outside the one that every domain has: the nodes' own object.
    pub(crate) fn none(domain: &Domain) -> Self {
        let mut groups = Self::default();
        for server in domain.outside.iter().filter(|server| server.name == DOMAIN_OBJECT) {
            groups.insert_outside(Catalog::id_in_file(&server.name), Arc::new(server.clone()));
        }
        groups
    }

    /// Those of a catalog. What cannot be read is left out; the engine tells of it.
    pub(crate) fn of_catalog(reader: &Reader, catalog: &Catalog) -> Self {
        let mut groups = Self::none(reader.shared());
        let mut all = Vec::new();
        for (id, definition) in catalog.iter() {
            match reader.read(definition) {
                Ok(Read::Group(group)) => all.push((id, group)),
                Ok(Read::Outside(server)) => groups.insert_outside(id, server),
                Err(_) => {}
            }
        }
        // All names are known before anybody is asked whom he calls.
        groups.ids = all.iter().map(|(id, group)| (group.name.clone(), *id)).collect();
        for (id, group) in all {
            groups.insert(id, group);
        }
        groups
    }

    /// Those of a domain file before any component has gone on from it.
    #[cfg(test)]
    pub(crate) fn of_domain(domain: &Domain) -> Self {
        let mut groups = Self::none(domain);
        for server in &domain.outside {
            groups.insert_outside(Catalog::id_in_file(&server.name), Arc::new(server.clone()));
        }
        for group in &domain.groups {
            groups.ids.insert(group.name.clone(), Catalog::id_in_file(&group.name));
        }
        for group in &domain.groups {
            groups.insert(Catalog::id_in_file(&group.name), Arc::new(group.clone()));
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
            self.elsewhere.entry(port).or_default().insert(id);
        }
        self.known.insert(id, group);
    }

    /// There is such a server outside from now on, or it is another one.
    pub(crate) fn insert_outside(&mut self, id: GroupId, server: Arc<Outside>) {
        self.outside_ids.insert(server.name.clone(), id);
        self.outside.insert(id, server);
    }

    /// There is no such server outside any more.
    pub(crate) fn remove_outside(&mut self, id: GroupId) -> Option<Arc<Outside>> {
        let server = self.outside.remove(id)?;
        if self.outside_ids.get(&server.name) == Some(&id) {
            self.outside_ids.remove(&server.name);
        }
        Some(server)
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
                of_port.remove(&id);
                if of_port.is_empty() {
                    self.elsewhere.remove(&port);
                }
            }
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

    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = GroupId> + '_ {
        self.known.ids()
    }

    /// All servers outside, in the order of their ids.
    pub(crate) fn outside(&self) -> &GroupMap<Arc<Outside>> {
        &self.outside
    }

    /// The groups, and servers outside, that the servers of `group` call.
    pub(crate) fn calls_of(&self, group: &Group) -> Vec<GroupId> {
        let id_of = |name: &String| self.ids.get(name).or_else(|| self.outside_ids.get(name));
        group.calls.iter().filter_map(id_of).copied().collect()
    }

    /// Whether a group's gateway on `node` listens at that port.
    pub(crate) fn has_gateway(&self, node: &Node, port: u16) -> bool {
        let before = port.checked_sub(node.gateway_port_offset);
        before.is_some_and(|port| self.gateways.contains_key(&port))
    }

    /// Groups that have a server at that port which somebody else runs, on whatever host.
    pub(crate) fn served_at(&self, port: u16) -> impl Iterator<Item = &Group> {
        let ids = self.elsewhere.get(&port).into_iter().flatten();
        ids.filter_map(|id| self.known.get(*id)).map(|group| &**group)
    }
}

fn listens(group: &Group) -> impl Iterator<Item = u16> {
    let tls = group.tls.as_ref().map(|tls| tls.listen);
    // The port that groups share counts for each of them.
    std::iter::once(group.port).chain(tls)
}

/// Each port once.
fn elsewhere(group: &Group) -> BTreeSet<u16> {
    match &group.backend {
        Backend::Start(_) => BTreeSet::new(),
        Backend::Connect(servers) => {
            servers.iter().map(|(_, server)| server.endpoint.port).collect()
        }
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
        assert_eq!(groups.served_at(2809).count(), 1);
        assert!(groups.remove(names).is_some() && groups.remove(names).is_none());
        assert!(!groups.has_gateway(node, 5011));
        assert_eq!((groups.served_at(2809).count(), groups.id_of("names")), (0, None));
        groups.remove(shop);
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
