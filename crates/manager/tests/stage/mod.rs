//! A domain that is a table: what the manager calls, with nodes that go down, servers that do not
//! start, and factories of an application.
//!
//! What it is not: the node's. Invariant: it checks what it is told, as a node would.

pub(crate) mod calls;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use quorba_corba::giop::SystemException;
use quorba_corba::giop::ior::{FtGroup, GroupReference, group_reference};
use quorba_corba::{
    Answer, Any, Arguments, Call, Home, Interface, Local, Object, Objects, Transport,
};
use quorba_idl::ft::{self, NoFactory, ObjectNotCreated, ObjectNotFound};
use quorba_idl::quorba::domain::{
    ChangeGroupError, CreateByFactoryError, CreateGroupError, DeleteByFactoryError,
    DeleteGroupError, GroupError, NoSuchGroup, NoSuchType, PromoteError, Refused,
};
use quorba_idl::quorba::{self, Domain, GroupInfo, GroupInfos, NodeState, NodeStates, Settings};
use quorba_manager::{Limits, Manager};

/// A type that the nodes start.
pub(crate) const BANK: &str = "IDL:Bank/Ledger:1.0";

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Defined {
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) leader: String,
}

impl Defined {
    pub(crate) fn members(&self) -> Vec<String> {
        let list = self.keys.get("members").map_or("", String::as_str);
        let parts = list.trim_matches(['[', ']']).split(", ").filter(|part| !part.is_empty());
        parts.map(|part| part.trim_matches('"').to_owned()).collect()
    }

    fn text(&self, key: &str) -> String {
        self.keys.get(key).map(|text| text.trim_matches('"').to_owned()).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u64 {
        self.keys.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) nodes: BTreeMap<String, bool>,
    pub(crate) groups: BTreeMap<String, Defined>,
    /// Where servers do not start, or have died.
    pub(crate) failing: BTreeSet<String>,
    /// What each factory has made; by the port of its reference.
    pub(crate) made: BTreeMap<u16, Vec<u64>>,
    /// Factories that create nothing.
    pub(crate) broken: BTreeSet<u16>,
    pub(crate) next_made: u64,
    /// Definitions are refused for good, and why.
    pub(crate) refuses: Option<String>,
    /// Changes are refused for now.
    pub(crate) busy: bool,
    /// After so many more changes they are.
    pub(crate) busy_after: Option<u64>,
    /// How often it was called.
    pub(crate) calls: u64,
}

impl Table {
    fn info(&self, name: &str) -> GroupInfo {
        let group = &self.groups[name];
        let members = group.members();
        let is_in = |node: &&String| self.nodes[*node] && !self.failing.contains(*node);
        let members_in: Vec<String> = members.iter().filter(is_in).cloned().collect();
        let (id, version) = (group.number("ft_group"), group.number("ft_version"));
        let named = FtGroup {
            domain_id: b"test".to_vec(),
            group_id: id,
            reference_version: u32::try_from(version).expect("small"),
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
        GroupInfo {
            name: name.to_owned(),
            id,
            version: named.reference_version,
            members,
            members_in,
            leader: group.leader.clone(),
            note: group.text("note"),
            reference,
        }
    }

    fn refusal(&self, why: &str) -> Refused {
        Refused { why: why.to_owned(), may_be_repeated: self.busy }
    }

    fn set(&mut self, name: &str, keys: Settings) -> Result<(), Refused> {
        if let Some(left) = &mut self.busy_after {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => self.busy = true,
            }
        }
        if self.busy {
            return Err(self.refusal("busy"));
        }
        if let Some(why) = &self.refuses {
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

fn port(factory: &Object) -> u16 {
    factory.0.endpoints()[0].port
}

impl Domain for Table {
    fn id(&mut self) -> Result<String, SystemException> {
        Ok("test".to_owned())
    }

    fn nodes(&mut self) -> Result<NodeStates, SystemException> {
        let state =
            |(name, is_up): (&String, &bool)| NodeState { name: name.clone(), is_up: *is_up };
        Ok(self.nodes.iter().map(state).collect())
    }

    fn types(&mut self) -> Result<Vec<String>, SystemException> {
        Ok(vec![BANK.to_owned()])
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
        if type_id != BANK && !keys.iter().any(|key| key.name == "connect") {
            return Err(NoSuchType {}.into());
        }
        self.set(&name, keys)?;
        Ok(self.info(&name))
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
        Ok(self.info(&name))
    }

    fn delete_group(&mut self, name: String) -> Result<bool, DeleteGroupError> {
        if self.busy {
            return Err(self.refusal("busy").into());
        }
        Ok(self.groups.remove(&name).is_some())
    }

    fn promote(&mut self, name: String, node: String) -> Result<(), PromoteError> {
        if !self.nodes[&node] {
            return Err(self.refusal("it is down").into());
        }
        let group = self.groups.get_mut(&name).ok_or(NoSuchGroup {})?;
        group.leader = node;
        Ok(())
    }

    fn group(&mut self, name: String) -> Result<GroupInfo, GroupError> {
        if !self.groups.contains_key(&name) {
            return Err(NoSuchGroup {}.into());
        }
        Ok(self.info(&name))
    }

    fn noted_groups(
        &mut self,
        after: String,
        how_many: u32,
    ) -> Result<GroupInfos, SystemException> {
        let noted = self.groups.iter().filter(|(_, group)| group.keys.contains_key("note"));
        let behind = noted.filter(|(name, _)| **name > after).take(how_many as usize);
        Ok(behind.map(|(name, _)| self.info(name)).collect())
    }

    fn create_by_factory(
        &mut self,
        the_factory: Object,
        type_id: String,
        the_criteria: ft::Criteria,
    ) -> Result<(Object, Any), CreateByFactoryError> {
        let port = port(&the_factory);
        let at = the_criteria.last().and_then(|one| one.val.get::<ft::Location>());
        let at = at.expect("factories are told where");
        if type_id != BANK {
            return Err(NoFactory { the_location: at, type_id }.into());
        }
        if self.broken.contains(&port) {
            return Err(ObjectNotCreated {}.into());
        }
        self.next_made += 1;
        self.made.entry(port).or_default().push(self.next_made);
        let home = Home { addresses: vec![(at[0].id.clone(), port)], prefix: Vec::new() };
        let id = Any::new(&self.next_made).expect("a number");
        Ok((home.object(BANK, b"ledger"), id))
    }

    fn delete_by_factory(
        &mut self,
        the_factory: Object,
        factory_creation_id: Any,
    ) -> Result<(), DeleteByFactoryError> {
        let id = factory_creation_id.get::<u64>().expect("ours");
        let made = self.made.entry(port(&the_factory)).or_default();
        let index = made.iter().position(|one| *one == id).ok_or(ObjectNotFound {})?;
        made.remove(index);
        Ok(())
    }
}

struct TableObjects<'t>(&'t mut Table);

impl Objects for TableObjects<'_> {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(quorba::DOMAIN)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        self.0.calls += 1;
        quorba::dispatch_domain(self.0, call)
    }
}

/// A way to a table.
#[derive(Clone, Default)]
pub(crate) struct Way(pub(crate) Rc<RefCell<Table>>);

impl Transport for Way {
    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        let mut table = self.0.borrow_mut();
        Local::new(&mut TableObjects(&mut table), b"domain").invoke(operation, arguments)
    }

    fn send(&mut self, operation: &str, arguments: Arguments<'_>) -> Result<(), SystemException> {
        self.invoke(operation, arguments).map(drop)
    }
}

/// The group of the manager itself.
pub(crate) const OWN: &str = "replication-manager";

/// A domain of nodes n1 to n5, with a manager's group on the first three.
pub(crate) fn domain() -> Way {
    let way = Way::default();
    {
        let mut table = way.0.borrow_mut();
        for number in 1..=5 {
            table.nodes.insert(format!("n{number}"), true);
        }
        table.groups.insert(OWN.to_owned(), Defined::default());
    }
    way
}

pub(crate) fn manager(way: &Way) -> Manager<Way> {
    let home = Home { addresses: vec![("n1".to_owned(), 2810)], prefix: Vec::new() };
    Manager::new(way.clone(), OWN, &home, Limits::default())
}
