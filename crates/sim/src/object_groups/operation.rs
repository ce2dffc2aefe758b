//! Calls of the manager, as the order has them: each member executes each one.
//!
//! What it is not: octets. Stubs make a whole call of each at each member.

use super::domain::Way;
use super::values::{self, Key, Said, Values, factory, factory_at, name, properties};
use quorba_base::{FNV_OFFSET, fnv1a};
use quorba_corba::giop::ior::{FtGroup, GroupReference, group_reference};
use quorba_corba::{Any, Home, Local, Object};
use quorba_idl::cos_notification::{
    EventHeader, EventType, FixedEventHeader, Property, StructuredEvent,
};
use quorba_idl::cos_notify_comm::StructuredPushConsumerStub;
use quorba_idl::ft::{self, ReplicationManagerStub};
use quorba_idl::portable_group::FactoryRegistryStub;
use quorba_idl::quorba::{PushMonitorStub, WatcherStub};
use quorba_manager::table::ID;
use quorba_manager::{
    FAULTS_KEY, INCIDENT, MANAGER_KEY, Manager, PUSH_KEY, TAO_KEY, UNANSWERED, WATCHER_KEY,
};
use std::fmt::Debug;

/// The key of the registry of factories.
const REGISTRY_KEY: &str = "TAO/FactoryRegistry";

/// Somebody is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) node: String,
    /// A member of that group; else the node.
    pub(crate) group: Option<(String, u64)>,
    /// A node has seen it.
    pub(crate) incident: Option<String>,
    /// It was asked, and is not alive.
    pub(crate) is_unanswered: bool,
}

/// What is asked of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    Locations,
    Properties,
    Id,
    Reference,
}

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Op {
    Create {
        type_id: String,
        wanted: Said,
        at: Option<String>,
    },
    CreateMember {
        group: u64,
        type_id: String,
        at: String,
    },
    AddMember {
        group: u64,
        at: String,
        port: u16,
    },
    RemoveMember {
        group: u64,
        at: String,
    },
    SetPrimary {
        group: u64,
        at: String,
    },
    Delete(u64),
    SetDefaults(Said),
    RemoveDefaults(Vec<Key>),
    SetOfType(String, Said),
    RemoveOfType(String, Vec<Key>),
    SetDynamically(u64, Said),
    Ask(u64, Question),
    Member(u64, String),
    GroupsAt(String),
    OfType(String),
    Register {
        role: String,
        type_id: String,
        port: u16,
        at: String,
    },
    Unregister {
        role: String,
        at: String,
    },
    Notifier(u16),
    Report(Told),
    Look,
    /// A newcomer of a group is not in, as long as was waited.
    Overdue(u64, String),
    /// An object says that it lives: its port, and its node.
    Alive(u16, String),
    /// All processes have ended and begun anew.
    Restart,
}

/// What a member answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    Done,
    Flag(bool),
    Number(u64),
    /// A reference to a group: which, and its version; to what is created, with its number.
    Group {
        id: u64,
        version: u32,
        created: Option<u64>,
    },
    /// An object: host and port.
    Object(Option<(String, u16)>),
    Places(Vec<String>),
    Groups(Vec<(u64, u32)>),
    Properties(Values),
    /// The exception, and what it speaks of.
    Raised(String, String),
}

/// That, and the state that it has then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    pub(crate) heard: Heard,
    pub(crate) state: u64,
}

pub(crate) fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2810)], prefix: Vec::new() }
}

/// A reference that names a group.
fn group(id: u64) -> Object {
    let named = FtGroup { domain_id: ID.as_bytes().to_vec(), group_id: id, reference_version: 0 };
    Object(group_reference(&GroupReference {
        type_id: b"IDL:Any:1.0",
        object_key: b"",
        gateways: &[],
        tls: &[],
        group: Some(&named),
        primary: None,
        heartbeat_enabled: false,
        components: &[],
    }))
}

/// An application's object, where it says that it is.
pub(crate) fn object(port: u16, node: &str) -> Object {
    Home { addresses: vec![(node.to_owned(), port)], prefix: Vec::new() }.object("", b"ledger")
}

fn named(object: &Object) -> (u64, u32) {
    object.0.ft_group().map_or((0, 0), |it| (it.group_id, it.reference_version))
}

fn group_of(object: &Object, created: Option<u64>) -> Heard {
    let (id, version) = named(object);
    Heard::Group { id, version, created }
}

fn endpoint_of(object: &Object) -> Heard {
    Heard::Object(object.0.endpoints().first().map(|at| (at.host.clone(), at.port)))
}

/// An exception by its words: its name, and the first id in it.
fn raised(error: &impl Debug) -> Heard {
    let text = format!("{error:?}");
    let what = text.split_once("id: \"").map_or("", |(_, rest)| rest);
    let what = what.split('"').next().unwrap_or_default().to_owned();
    let system = text.strip_prefix("System(").or(text.starts_with("SystemE").then_some(&text));
    let system = system.and_then(|text| text.split_once("kind: "));
    let text = system.map_or(text.as_str(), |(_, kind)| kind);
    let end = text.find(|it: char| !it.is_alphanumeric()).unwrap_or(text.len());
    Heard::Raised(text[..end].to_owned(), what)
}

fn heard<R, E: Debug>(result: Result<R, E>, of: impl FnOnce(R) -> Heard) -> Heard {
    result.map_or_else(|error| raised(&error), of)
}

fn done<E: Debug>(result: Result<(), E>) -> Heard {
    heard(result, |()| Heard::Done)
}

fn without(keys: &[Key]) -> ft::Properties {
    let any = |key: &Key| (*key, values::Value::Number(1));
    properties(&keys.iter().map(any).collect::<Vec<_>>())
}

impl Told {
    fn to_event(&self) -> StructuredEvent {
        let item = |name: &str, value: Any| Property { name: name.to_owned(), value };
        let text = |text: &String| Any::new(text).expect("a text");
        let mut filterable_data = vec![
            item("FTDomainId", text(&ID.to_owned())),
            item("Location", Any::new(&name(&self.node)).expect("a name")),
        ];
        if let Some((type_id, group)) = &self.group {
            filterable_data.push(item("TypeId", text(type_id)));
            filterable_data.push(item("ObjectGroupId", Any::new(group).expect("a number")));
        }
        if self.is_unanswered {
            filterable_data.push(item(UNANSWERED, Any::new(&true).expect("a boolean")));
        }
        let incident = self.incident.iter().map(|incident| item(INCIDENT, text(incident)));
        let event_type = EventType {
            domain_name: "FT_CORBA".to_owned(),
            type_name: "ObjectCrashFault".to_owned(),
        };
        StructuredEvent {
            header: EventHeader {
                fixed_header: FixedEventHeader { event_type, event_name: String::new() },
                variable_header: incident.collect(),
            },
            filterable_data,
            remainder_of_body: Any::default(),
        }
    }
}

impl Op {
    /// Executes it at a member.
    pub(crate) fn execute(&self, manager: &mut Manager<Way>) -> Reply {
        let heard = self.call(manager);
        Reply { heard, state: fnv1a(FNV_OFFSET, manager.state()) }
    }

    /// The group that it is about.
    pub(crate) const fn group(&self) -> Option<u64> {
        match self {
            Self::CreateMember { group, .. }
            | Self::AddMember { group, .. }
            | Self::RemoveMember { group, .. }
            | Self::SetPrimary { group, .. } => Some(*group),
            Self::SetDynamically(group, _)
            | Self::Delete(group)
            | Self::Ask(group, _)
            | Self::Overdue(group, _)
            | Self::Member(group, _) => Some(*group),
            _ => None,
        }
    }

    fn call(&self, manager: &mut Manager<Way>) -> Heard {
        match self {
            Self::Report(told) => {
                let mut local = Local::new(manager, FAULTS_KEY.as_bytes());
                let event = told.to_event();
                done(StructuredPushConsumerStub(&mut local).push_structured_event(&event))
            }
            Self::Look => {
                let mut local = Local::new(manager, WATCHER_KEY.as_bytes());
                heard(WatcherStub(&mut local).look(), |done| Heard::Number(done.into()))
            }
            Self::Overdue(group, at) => {
                let mut local = Local::new(manager, WATCHER_KEY.as_bytes());
                let done = WatcherStub(&mut local).overdue(group, at);
                heard(done, |done| Heard::Number(done.into()))
            }
            Self::Alive(port, node) => {
                let mut local = Local::new(manager, PUSH_KEY.as_bytes());
                heard(PushMonitorStub(&mut local).alive(&object(*port, node)), Heard::Flag)
            }
            Self::Register { role, type_id, port, at } => {
                let mut local = Local::new(manager, REGISTRY_KEY.as_bytes());
                let info = factory_at(*port, at);
                done(FactoryRegistryStub(&mut local).register_factory(role, type_id, &info))
            }
            Self::Unregister { role, at } => {
                let mut local = Local::new(manager, REGISTRY_KEY.as_bytes());
                done(FactoryRegistryStub(&mut local).unregister_factory(role, &name(at)))
            }
            Self::GroupsAt(at) => {
                let mut local = Local::new(manager, TAO_KEY.as_bytes());
                let mut it = quorba_idl::tao_ft::ReplicationManagerStub(&mut local);
                heard(it.groups_at_location(&name(at)), |all| {
                    Heard::Groups(all.iter().map(named).collect())
                })
            }
            _ => {
                let mut local = Local::new(manager, MANAGER_KEY.as_bytes());
                self.manage(&mut ReplicationManagerStub(&mut local))
            }
        }
    }

    fn manage(&self, it: &mut ReplicationManagerStub<'_>) -> Heard {
        match self {
            Self::Create { type_id, wanted, at } => {
                let property = |id: &str, val: Any| ft::Property { nam: name(id), val };
                let said = Any::new(&properties(wanted)).expect("properties");
                let mut criteria = vec![property("org.omg.ft.FTProperties", said)];
                if let Some(at) = at {
                    let at = Any::new(&name(at)).expect("a name");
                    criteria.push(property("org.omg.ft.ObjectLocation", at));
                }
                heard(it.create_object(type_id, &criteria), |(object, id)| {
                    group_of(&object, id.get::<u64>())
                })
            }
            Self::CreateMember { group: id, type_id, at } => {
                let created = it.create_member(&group(*id), &name(at), type_id, &Vec::new());
                heard(created, |object| group_of(&object, None))
            }
            Self::AddMember { group: id, at, port } => {
                let added = it.add_member(&group(*id), &name(at), &object(*port, at));
                heard(added, |object| group_of(&object, None))
            }
            Self::RemoveMember { group: id, at } => {
                let removed = it.remove_member(&group(*id), &name(at));
                heard(removed, |object| group_of(&object, None))
            }
            Self::SetPrimary { group: id, at } => {
                let set = it.set_primary_member(&group(*id), &name(at));
                heard(set, |object| group_of(&object, None))
            }
            Self::Delete(id) => done(it.delete_object(&Any::new(id).expect("a number"))),
            Self::SetDefaults(said) => done(it.set_default_properties(&properties(said))),
            Self::RemoveDefaults(keys) => done(it.remove_default_properties(&without(keys))),
            Self::SetOfType(of, said) => done(it.set_type_properties(of, &properties(said))),
            Self::RemoveOfType(of, keys) => done(it.remove_type_properties(of, &without(keys))),
            Self::SetDynamically(id, said) => {
                done(it.set_properties_dynamically(&group(*id), &properties(said)))
            }
            Self::Ask(id, Question::Locations) => {
                heard(it.locations_of_members(&group(*id)), |all| {
                    let id = |at: ft::Location| at.first().map(|one| one.id.clone());
                    Heard::Places(all.into_iter().filter_map(id).collect())
                })
            }
            Self::Ask(id, Question::Properties) => {
                heard(it.get_properties(&group(*id)), |all| Heard::Properties(values::read(&all)))
            }
            Self::Ask(id, Question::Id) => {
                heard(it.get_object_group_id(&group(*id)), Heard::Number)
            }
            Self::Ask(id, Question::Reference) => {
                heard(it.get_object_group_ref(&group(*id)), |object| group_of(&object, None))
            }
            Self::Member(id, at) => {
                heard(it.get_member_ref(&group(*id), &name(at)), |it| endpoint_of(&it))
            }
            Self::OfType(of) => {
                heard(it.get_type_properties(of), |all| Heard::Properties(values::read(&all)))
            }
            Self::Notifier(port) => done(it.register_fault_notifier(&factory(*port))),
            _ => Heard::Done,
        }
    }
}
