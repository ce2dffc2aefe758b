//! A domain that is a table: what a manager calls, with nodes that go down, servers that do not
//! start, and factories of an application. For tests and the simulator.
//!
//! What it is not: the node's. Invariant: it checks what it is told, as a node would.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::ior::{FtGroup, GroupReference, group_reference};
use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Call, Home, Interface, Object, Objects, raise_system};
use quorba_idl::ft::{self, NoFactory, ObjectNotCreated, ObjectNotFound};
use quorba_idl::quorba::domain::{
    ChangeGroupError, CreateByFactoryError, CreateGroupError, DeleteByFactoryError,
    DeleteGroupError, GroupError, MemberError, NoSuchGroup, NoSuchType, PromoteError, Refused,
};
use quorba_idl::quorba::{self, Domain, GroupInfo, GroupInfos, NodeState, NodeStates, Settings};

use crate::property::id_of;

/// A group's definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defined {
    /// As the domain file would have them.
    pub keys: BTreeMap<String, String>,
    /// The node of the primary.
    pub leader: String,
}

impl Defined {
    /// The nodes that it names.
    #[must_use]
    pub fn members(&self) -> Vec<String> {
        let list = self.keys.get("members").map_or("", String::as_str);
        let parts = list.trim_matches(['[', ']']).split(", ").filter(|part| !part.is_empty());
        parts.map(|part| part.trim_matches('"').to_owned()).collect()
    }

    fn text(&self, key: &str) -> String {
        self.keys.get(key).map(|text| text.trim_matches('"').to_owned()).unwrap_or_default()
    }

    /// The version of its references.
    #[must_use]
    pub fn version(&self) -> u32 {
        u32::try_from(self.number("ft_version")).unwrap_or(u32::MAX)
    }

    fn number(&self, key: &str) -> u64 {
        self.keys.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// See the module's text.
#[derive(Clone, Default, Debug)]
pub struct Table {
    /// The name of each node, and whether it is in the ring.
    pub nodes: BTreeMap<String, bool>,
    /// Types that nodes start, and factories make.
    pub types: BTreeSet<String>,
    /// By name.
    pub groups: BTreeMap<String, Defined>,
    /// Nodes where servers do not start, or have died.
    pub failing: BTreeSet<String>,
    /// Servers that have died: the group, and the node.
    pub out: BTreeSet<(String, String)>,
    /// The same of those that are being given a state.
    pub coming: BTreeSet<(String, String)>,
    /// What each factory has made; by the port of its reference.
    pub made: BTreeMap<u16, Vec<u64>>,
    /// Factories that create nothing.
    pub broken: BTreeSet<u16>,
    /// The number of what was made last.
    pub next_made: u64,
    /// Definitions are refused for good, and why.
    pub refuses: Option<String>,
    /// Changes are refused for now.
    pub busy: bool,
    /// Changes are refused for ever.
    pub never: bool,
    /// After so many more changes they are refused for now.
    pub busy_after: Option<u64>,
    /// Groups that were ended.
    pub ended: BTreeSet<String>,
    /// How often it was called.
    pub calls: u64,
}

impl Table {
    fn info(&self, name: &str) -> Option<GroupInfo> {
        let group = self.groups.get(name)?;
        let members = group.members();
        let is_in = |node: &&String| {
            self.nodes.get(*node).copied().unwrap_or(false)
                && !self.failing.contains(*node)
                && !self.out.contains(&(name.to_owned(), (*node).clone()))
                && !self.coming.contains(&(name.to_owned(), (*node).clone()))
        };
        let members_in: Vec<String> = members.iter().filter(is_in).cloned().collect();
        let named = FtGroup {
            domain_id: ID.as_bytes().to_vec(),
            group_id: group.number("ft_group"),
            reference_version: group.version(),
        };
        let gateways: Vec<_> = members.iter().map(|node| (node.clone(), 5000)).collect();
        let type_id = group.text("type_id");
        let key = group.keys.get("object_key").map_or("key", |key| key.trim_matches('"'));
        let reference = Object(group_reference(&GroupReference {
            type_id: type_id.as_bytes(),
            object_key: format!("QRB/{name}/{key}").as_bytes(),
            gateways: &gateways,
            tls: &[],
            group: Some(&named),
            primary: members.iter().position(|node| *node == group.leader),
            heartbeat_enabled: true,
            components: &[],
        }));
        Some(GroupInfo {
            name: name.to_owned(),
            id: named.group_id,
            version: named.reference_version,
            members,
            members_in,
            leader: group.leader.clone(),
            note: group.text("note"),
            reference,
        })
    }

    fn refusal(&self, why: &str) -> Refused {
        Refused { why: why.to_owned(), may_be_repeated: self.busy && !self.never }
    }

    /// A change more, if it is not refused.
    fn count(&mut self) -> Result<(), Refused> {
        if let Some(left) = &mut self.busy_after {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => self.busy = true,
            }
        }
        if self.busy || self.never { Err(self.refusal("busy")) } else { Ok(()) }
    }

    fn set(&mut self, name: &str, keys: Settings) -> Result<(), Refused> {
        self.count()?;
        // The manager's own group has nothing that could be refused.
        if let Some(why) = self.refuses.as_ref().filter(|_| name.starts_with("object-")) {
            return Err(self.refusal(why));
        }
        let mut group = self.groups.get(name).cloned().unwrap_or_default();
        for setting in keys {
            if setting.value.is_empty() {
                group.keys.remove(&setting.name);
            } else {
                group.keys.insert(setting.name, setting.value);
            }
        }
        let members = group.members();
        if members.iter().any(|node| !self.nodes.contains_key(node)) {
            return Err(self.refusal("no such node"));
        }
        if !members.contains(&group.leader) {
            group.leader = members.first().cloned().unwrap_or_default();
        }
        self.groups.insert(name.to_owned(), group);
        Ok(())
    }
}

/// The domain's id.
pub const ID: &str = "test";

fn port(factory: &Object) -> u16 {
    factory.0.endpoints().first().map_or(0, |at| at.port)
}

impl Domain for Table {
    fn id(&mut self) -> Result<String, SystemException> {
        Ok(ID.to_owned())
    }

    fn nodes(&mut self) -> Result<NodeStates, SystemException> {
        let state =
            |(name, is_up): (&String, &bool)| NodeState { name: name.clone(), is_up: *is_up };
        Ok(self.nodes.iter().map(state).collect())
    }

    fn types(&mut self) -> Result<Vec<String>, SystemException> {
        Ok(self.types.iter().cloned().collect())
    }

    fn create_group(
        &mut self,
        name: String,
        type_id: String,
        keys: Settings,
        _wait_ms: u32,
    ) -> Result<GroupInfo, CreateGroupError> {
        if self.groups.contains_key(&name) {
            return Err(self.refusal("it exists").into());
        }
        if !self.types.contains(&type_id) && !keys.iter().any(|key| key.name == "connect") {
            return Err(NoSuchType {}.into());
        }
        self.set(&name, keys)?;
        Ok(self.info(&name).ok_or(raise_system(ExceptionKind::Internal))?)
    }

    fn change_group(
        &mut self,
        name: String,
        keys: Settings,
        _wait_ms: u32,
    ) -> Result<GroupInfo, ChangeGroupError> {
        if !self.groups.contains_key(&name) {
            return Err(NoSuchGroup {}.into());
        }
        self.set(&name, keys)?;
        Ok(self.info(&name).ok_or(raise_system(ExceptionKind::Internal))?)
    }

    fn delete_group(&mut self, name: String) -> Result<bool, DeleteGroupError> {
        self.count()?;
        let is_there = self.groups.remove(&name).is_some();
        if is_there {
            self.ended.insert(name);
        }
        Ok(is_there)
    }

    fn promote(&mut self, name: String, node: String) -> Result<(), PromoteError> {
        if !self.nodes.get(&node).copied().unwrap_or(false) {
            return Err(self.refusal("it is down").into());
        }
        let group = self.groups.get_mut(&name).ok_or(NoSuchGroup {})?;
        group.leader = node;
        Ok(())
    }

    fn group(&mut self, name: String) -> Result<GroupInfo, GroupError> {
        Ok(self.info(&name).ok_or(NoSuchGroup {})?)
    }

    fn member(&mut self, name: String, node: String) -> Result<Object, MemberError> {
        let info = self.info(&name).ok_or(NoSuchGroup {})?;
        if !info.members_in.contains(&node) {
            return Ok(Object::nil());
        }
        let home = Home { addresses: Vec::from([(node, 5000)]), prefix: Vec::new() };
        Ok(home.object("", format!("QRB/{name}/key").as_bytes()))
    }

    fn coming(&mut self, name: String) -> Result<Vec<String>, SystemException> {
        let coming = self.coming.iter().filter(|(group, _)| *group == name);
        Ok(coming.map(|(_, node)| node.clone()).collect())
    }

    fn noted_groups(
        &mut self,
        after: String,
        how_many: u32,
    ) -> Result<GroupInfos, SystemException> {
        let noted = self.groups.iter().filter(|(_, group)| group.keys.contains_key("note"));
        let behind = noted.filter(|(name, _)| **name > after).take(how_many as usize);
        Ok(behind.filter_map(|(name, _)| self.info(name)).collect())
    }

    fn create_by_factory(
        &mut self,
        the_factory: Object,
        type_id: String,
        the_criteria: ft::Criteria,
    ) -> Result<(Object, Any), CreateByFactoryError> {
        let port = port(&the_factory);
        let at = the_criteria.last().and_then(|one| one.val.get::<ft::Location>());
        let at = at.ok_or(raise_system(ExceptionKind::BadParam))?;
        if !self.types.contains(&type_id) {
            return Err(NoFactory { the_location: at, type_id }.into());
        }
        if self.broken.contains(&port) {
            return Err(ObjectNotCreated {}.into());
        }
        self.next_made += 1;
        self.made.entry(port).or_default().push(self.next_made);
        let host = id_of(&at).ok_or(raise_system(ExceptionKind::BadParam))?;
        let home = Home { addresses: Vec::from([(host.to_owned(), port)]), prefix: Vec::new() };
        let id = Any::new(&self.next_made).unwrap_or_default();
        Ok((home.object(&type_id, b"ledger"), id))
    }

    fn delete_by_factory(
        &mut self,
        the_factory: Object,
        factory_creation_id: Any,
    ) -> Result<(), DeleteByFactoryError> {
        let id = factory_creation_id.get::<u64>().ok_or(ObjectNotFound {})?;
        let made = self.made.entry(port(&the_factory)).or_default();
        let index = made.iter().position(|one| *one == id).ok_or(ObjectNotFound {})?;
        made.remove(index);
        Ok(())
    }
}

impl Objects for Table {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(quorba::DOMAIN)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.calls += 1;
        quorba::dispatch_domain(self, call)
    }
}
