//! Properties, as the simulator says and reads them.
//!
//! What it is not: the manager's own. Of each property only values that matter here are said, and
//! some that it cannot have.

use quorba_corba::{Any, Home, Object};
use quorba_idl::cos_naming::NameComponent;
use quorba_idl::ft::{self, FactoryInfo, FaultMonitoringIntervalAndTimeoutValue, Property};
use std::collections::BTreeMap;

/// Which property.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Key {
    Style,
    Membership,
    Monitoring,
    Granularity,
    Factories,
    Initial,
    Minimum,
    Times,
    /// Nobody knows it.
    Colour,
}

impl Key {
    pub(crate) const ALL: [Self; 9] = [
        Self::Style,
        Self::Membership,
        Self::Monitoring,
        Self::Granularity,
        Self::Factories,
        Self::Initial,
        Self::Minimum,
        Self::Times,
        Self::Colour,
    ];

    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Style => "org.omg.ft.ReplicationStyle",
            Self::Membership => "org.omg.ft.MembershipStyle",
            Self::Monitoring => "org.omg.ft.FaultMonitoringStyle",
            Self::Granularity => "org.omg.ft.FaultMonitoringGranularity",
            Self::Factories => "org.omg.ft.Factories",
            Self::Initial => "org.omg.ft.InitialNumberReplicas",
            Self::Minimum => "org.omg.ft.MinimumNumberReplicas",
            Self::Times => "org.omg.ft.FaultMonitoringIntervalAndTimeout",
            Self::Colour => "org.omg.ft.Colour",
        }
    }

    /// Whether a group that there is may get another one.
    pub(crate) const fn is_dynamic(self) -> bool {
        matches!(self, Self::Granularity | Self::Minimum | Self::Times)
    }
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Number(u16),
    Times(u64, u64),
    /// Ports of factories, and where each of them makes objects.
    Factories(Vec<(u16, String)>),
}

/// No property can have it.
pub(crate) const WRONG: u16 = 777;

pub(crate) type Values = BTreeMap<Key, Value>;

/// What is said, in that order.
pub(crate) type Said = Vec<(Key, Value)>;

pub(crate) fn name(id: &str) -> ft::Name {
    vec![NameComponent { id: id.to_owned(), kind: String::new() }]
}

pub(crate) fn factory(port: u16) -> Object {
    let home = Home { addresses: vec![("factory".to_owned(), port)], prefix: Vec::new() };
    home.object("IDL:omg.org/FT/GenericFactory:1.0", b"factory")
}

pub(crate) fn factory_at(port: u16, node: &str) -> FactoryInfo {
    FactoryInfo { the_factory: factory(port), the_location: name(node), the_criteria: Vec::new() }
}

impl Value {
    pub(crate) const fn number(&self) -> Option<u16> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn to_any(&self) -> Any {
        match self {
            Self::Number(number) => Any::new(number),
            Self::Times(interval, timeout) => Any::new(&FaultMonitoringIntervalAndTimeoutValue {
                monitoring_interval: *interval,
                timeout: *timeout,
            }),
            Self::Factories(all) => {
                let infos: Vec<_> =
                    all.iter().map(|(port, node)| factory_at(*port, node)).collect();
                Any::new(&infos)
            }
        }
        .expect("a value")
    }
}

pub(crate) fn properties(said: &[(Key, Value)]) -> ft::Properties {
    said.iter().map(|(key, value)| Property { nam: name(key.id()), val: value.to_any() }).collect()
}

/// What was answered.
pub(crate) fn read(properties: &ft::Properties) -> Values {
    let one = |property: &Property| {
        let id = &property.nam.first()?.id;
        let key = *Key::ALL.iter().find(|key| key.id() == id)?;
        let value = match key {
            Key::Times => {
                let times: FaultMonitoringIntervalAndTimeoutValue = property.val.get()?;
                Value::Times(times.monitoring_interval, times.timeout)
            }
            Key::Factories => {
                let infos: Vec<FactoryInfo> = property.val.get()?;
                let at = |info: FactoryInfo| {
                    let port = info.the_factory.0.endpoints().first()?.port;
                    Some((port, info.the_location.first()?.id.clone()))
                };
                Value::Factories(infos.into_iter().filter_map(at).collect())
            }
            _ => Value::Number(property.val.get()?),
        };
        Some((key, value))
    };
    properties.iter().filter_map(one).collect()
}
