//! Calls of the manager through its stubs, and what is said in them.
//!
//! What it is not: a check. Invariant: who calls is told what came of it.

use quorba_corba::{Any, Cdr, Home, Local, Object, Typed};
use quorba_idl::cos_naming::NameComponent;
use quorba_idl::cos_notification as cn;
use quorba_idl::cos_notify_comm::StructuredPushConsumerStub;
use quorba_idl::ft::{self, FactoryInfo, Property, ReplicationManagerStub};
use quorba_idl::quorba::WatcherStub;
use quorba_manager::{FAULTS_KEY, INCIDENT, MANAGER_KEY, Manager, WATCHER_KEY};

use super::{BANK, Way};

pub(crate) fn name(id: &str) -> ft::Name {
    vec![NameComponent { id: id.to_owned(), kind: String::new() }]
}

pub(crate) fn property<T: Cdr + Typed>(id: &str, value: &T) -> Property {
    Property { nam: name(id), val: Any::new(value).expect("a value") }
}

pub(crate) const STYLE: &str = "org.omg.ft.ReplicationStyle";
pub(crate) const MEMBERSHIP: &str = "org.omg.ft.MembershipStyle";
pub(crate) const CONSISTENCY: &str = "org.omg.ft.ConsistencyStyle";
pub(crate) const INITIAL: &str = "org.omg.ft.InitialNumberReplicas";
pub(crate) const MINIMUM: &str = "org.omg.ft.MinimumNumberReplicas";
pub(crate) const CHECKPOINT: &str = "org.omg.ft.CheckpointInterval";
pub(crate) const FACTORIES: &str = "org.omg.ft.Factories";
pub(crate) const MONITORING: &str = "org.omg.ft.FaultMonitoringStyle";
pub(crate) const GRANULARITY: &str = "org.omg.ft.FaultMonitoringGranularity";
pub(crate) const TIMES: &str = "org.omg.ft.FaultMonitoringIntervalAndTimeout";

pub(crate) fn with<R>(
    manager: &mut Manager<Way>,
    call: impl FnOnce(&mut ReplicationManagerStub<'_>) -> R,
) -> R {
    let mut local = Local::new(manager, MANAGER_KEY.as_bytes());
    call(&mut ReplicationManagerStub(&mut local))
}

pub(crate) fn wanted(properties: Vec<Property>) -> ft::Criteria {
    vec![property("org.omg.ft.FTProperties", &properties)]
}

pub(crate) fn create(manager: &mut Manager<Way>, properties: Vec<Property>) -> (Object, Any) {
    let criteria = wanted(properties);
    with(manager, |it| it.create_object(&BANK.to_owned(), &criteria)).expect("created")
}

pub(crate) fn locations(manager: &mut Manager<Way>, group: &Object) -> Vec<String> {
    let found = with(manager, |it| it.locations_of_members(group)).expect("a group");
    found.into_iter().map(|location| location[0].id.clone()).collect()
}

pub(crate) fn version(group: &Object) -> u32 {
    group.0.ft_group().expect("a group").reference_version
}

pub(crate) fn factory(port: u16) -> Object {
    let home = Home { addresses: vec![("factory".to_owned(), port)], prefix: Vec::new() };
    home.object("IDL:omg.org/FT/GenericFactory:1.0", b"factory")
}

pub(crate) fn factory_at(port: u16, location: &str) -> FactoryInfo {
    FactoryInfo {
        the_factory: factory(port),
        the_location: name(location),
        the_criteria: Vec::new(),
    }
}

pub(crate) fn fault(location: &str, more: Vec<cn::Property>) -> cn::StructuredEvent {
    let item = |name: &str, value: Any| cn::Property { name: name.to_owned(), value };
    let mut filterable_data = vec![
        item("FTDomainId", Any::new(&"test".to_owned()).expect("a text")),
        item("Location", Any::new(&name(location)).expect("a name")),
    ];
    filterable_data.extend(more);
    let event_type = cn::EventType {
        domain_name: "FT_CORBA".to_owned(),
        type_name: "ObjectCrashFault".to_owned(),
    };
    cn::StructuredEvent {
        header: cn::EventHeader {
            fixed_header: cn::FixedEventHeader { event_type, event_name: String::new() },
            variable_header: Vec::new(),
        },
        filterable_data,
        remainder_of_body: Any::default(),
    }
}

pub(crate) fn push(manager: &mut Manager<Way>, event: &cn::StructuredEvent) {
    let mut local = Local::new(manager, FAULTS_KEY.as_bytes());
    StructuredPushConsumerStub(&mut local).push_structured_event(event).expect("taken");
}

/// A report that its maker has named.
pub(crate) fn named(mut event: cn::StructuredEvent, incident: &str) -> cn::StructuredEvent {
    let value = Any::new(&incident.to_owned()).expect("a text");
    event.header.variable_header.push(cn::Property { name: INCIDENT.to_owned(), value });
    event
}

pub(crate) fn with_watcher<R>(
    manager: &mut Manager<Way>,
    call: impl FnOnce(&mut WatcherStub<'_>) -> R,
) -> R {
    let mut local = Local::new(manager, WATCHER_KEY.as_bytes());
    call(&mut WatcherStub(&mut local))
}
