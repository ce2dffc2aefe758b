//! The properties of the standard (FT-CORBA §23.3.2): their names, values, and where each may be
//! set (table 23-2).
//!
//! What it is not: a store. Invariant: a value that was read is one that its property can have.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::Any;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{Endian, Fault as Wrong, MessageError};
use quorba_idl::cos_naming::NameComponent;
use quorba_idl::ft::{self, FactoryInfo, FactoryInfos, FaultMonitoringIntervalAndTimeoutValue};
use quorba_idl::portable_group as pg;

use crate::fault::Fault;

/// Which property.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Key {
    ReplicationStyle,
    MembershipStyle,
    ConsistencyStyle,
    FaultMonitoringStyle,
    FaultMonitoringGranularity,
    Factories,
    InitialNumberReplicas,
    MinimumNumberReplicas,
    IntervalAndTimeout,
    CheckpointInterval,
}

/// A property's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Number(u16),
    Time(u64),
    Times { interval: u64, timeout: u64 },
    Factories(FactoryInfos),
}

/// Properties of one level, or those that count.
pub(crate) type Values = BTreeMap<Key, Value>;

/// In whose form values are said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flavour {
    Omg,
    Tao,
}

/// Where a property is being set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    Default,
    Type,
    Creation,
    Dynamic,
}

/// Each with its name, the one that TAO has instead, and the largest number that it may be.
const ALL: [(Key, &str, &str, u16); 10] = [
    (Key::ReplicationStyle, "org.omg.ft.ReplicationStyle", "", ft::SEMI_ACTIVE),
    (
        Key::MembershipStyle,
        "org.omg.ft.MembershipStyle",
        "org.omg.PortableGroup.MembershipStyle",
        ft::MEMB_INF_CTRL,
    ),
    (Key::ConsistencyStyle, "org.omg.ft.ConsistencyStyle", "", ft::CONS_INF_CTRL),
    (Key::FaultMonitoringStyle, "org.omg.ft.FaultMonitoringStyle", "", ft::NOT_MONITORED),
    (
        Key::FaultMonitoringGranularity,
        "org.omg.ft.FaultMonitoringGranularity",
        "",
        ft::LOC_AND_TYPE,
    ),
    (Key::Factories, "org.omg.ft.Factories", "org.omg.PortableGroup.Factories", 0),
    (
        Key::InitialNumberReplicas,
        "org.omg.ft.InitialNumberReplicas",
        "org.omg.PortableGroup.InitialNumberMembers",
        REPLICAS_MAX,
    ),
    (
        Key::MinimumNumberReplicas,
        "org.omg.ft.MinimumNumberReplicas",
        "org.omg.PortableGroup.MinimumNumberMembers",
        REPLICAS_MAX,
    ),
    (Key::IntervalAndTimeout, "org.omg.ft.FaultMonitoringIntervalAndTimeout", "", 0),
    (Key::CheckpointInterval, "org.omg.ft.CheckpointInterval", "", 0),
];

/// The most members of a group; a domain has at most so many nodes.
const REPLICAS_MAX: u16 = 64;
/// The most factories in one property.
const FACTORIES_MAX: usize = 64;

/// A name of one component without a kind.
pub(crate) fn name(id: &str) -> ft::Name {
    Vec::from([NameComponent { id: String::from(id), kind: String::new() }])
}

/// The id of such a name.
pub(crate) fn id_of(name: &ft::Name) -> Option<&str> {
    match name.as_slice() {
        [component] if component.kind.is_empty() => Some(&component.id),
        _ => None,
    }
}

impl Key {
    pub(crate) fn of(name: &ft::Name) -> Option<Self> {
        let id = id_of(name).filter(|id| !id.is_empty())?;
        ALL.iter().find(|(_, ours, theirs, _)| *ours == id || *theirs == id).map(|row| row.0)
    }

    fn row(self) -> &'static (Self, &'static str, &'static str, u16) {
        // Each key has a row: the first one never is what is found for want of another.
        ALL.iter().find(|row| row.0 == self).unwrap_or(&ALL[0])
    }

    fn name(self, flavour: Flavour) -> ft::Name {
        let (_, ours, theirs, _) = self.row();
        name(if flavour == Flavour::Tao && !theirs.is_empty() { theirs } else { ours })
    }

    const fn number(self) -> u8 {
        self as u8
    }

    /// Whether it may be set there (table 23-2).
    fn may_be_set(self, level: Level) -> bool {
        level != Level::Dynamic
            || matches!(
                self,
                Self::FaultMonitoringGranularity
                    | Self::MinimumNumberReplicas
                    | Self::IntervalAndTimeout
                    | Self::CheckpointInterval
            )
    }

    fn read(self, value: &Any) -> Option<Value> {
        let value = match self {
            Self::Factories => Value::Factories(factories(value)?),
            Self::CheckpointInterval => Value::Time(value.get::<u64>()?),
            Self::IntervalAndTimeout => {
                let times: FaultMonitoringIntervalAndTimeoutValue = value.get()?;
                Value::Times { interval: times.monitoring_interval, timeout: times.timeout }
            }
            _ => Value::Number(number(value)?),
        };
        let fits = match (self, &value) {
            (Self::InitialNumberReplicas | Self::MinimumNumberReplicas, Value::Number(0)) => false,
            (_, Value::Number(number)) => *number <= self.row().3,
            (_, Value::Time(time)) => *time > 0,
            (_, Value::Times { interval, timeout }) => *interval > 0 && *timeout > 0,
            (_, Value::Factories(factories)) => {
                factories.len() <= FACTORIES_MAX
                    && factories.iter().all(|one| id_of(&one.the_location).is_some())
            }
        };
        fits.then_some(value)
    }
}

/// A number of whatever integer type: TAO has some as `long`.
fn number(value: &Any) -> Option<u16> {
    value
        .get::<u16>()
        .or_else(|| u16::try_from(value.get::<i32>()?).ok())
        .or_else(|| u16::try_from(value.get::<i16>()?).ok())
        .or_else(|| u16::try_from(value.get::<u32>()?).ok())
}

fn factories(value: &Any) -> Option<FactoryInfos> {
    let of_tao = |infos: pg::FactoryInfos| {
        let info = |info: pg::FactoryInfo| FactoryInfo {
            the_factory: info.the_factory,
            the_location: info.the_location,
            the_criteria: info.the_criteria.into_iter().map(of_tao).collect(),
        };
        infos.into_iter().map(info).collect()
    };
    value.get::<FactoryInfos>().or_else(|| value.get::<pg::FactoryInfos>().map(of_tao))
}

/// A property in the standard's form.
pub(crate) fn of_tao(property: pg::Property) -> ft::Property {
    ft::Property { nam: property.nam, val: property.val }
}

fn to_tao(property: ft::Property) -> pg::Property {
    pg::Property { nam: property.nam, val: property.val }
}

impl Value {
    pub(crate) fn to_any(&self, flavour: Flavour, key: Key) -> Any {
        let is_count = matches!(key, Key::InitialNumberReplicas | Key::MinimumNumberReplicas);
        let any = match (self, flavour) {
            (Self::Number(number), Flavour::Tao) if !is_count => Any::new(&i32::from(*number)),
            (Self::Number(number), _) => Any::new(number),
            (Self::Time(time), _) => Any::new(time),
            (Self::Times { interval, timeout }, _) => {
                Any::new(&FaultMonitoringIntervalAndTimeoutValue {
                    monitoring_interval: *interval,
                    timeout: *timeout,
                })
            }
            (Self::Factories(infos), Flavour::Omg) => Any::new(infos),
            (Self::Factories(infos), Flavour::Tao) => {
                let info = |info: &FactoryInfo| pg::FactoryInfo {
                    the_factory: info.the_factory.clone(),
                    the_location: info.the_location.clone(),
                    the_criteria: info.the_criteria.iter().cloned().map(to_tao).collect(),
                };
                Any::new(&infos.iter().map(info).collect::<pg::FactoryInfos>())
            }
        };
        any.unwrap_or_default()
    }

    pub(crate) const fn number(&self) -> Option<u16> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads properties that are to be set at a level.
pub(crate) fn read(properties: &ft::Properties, level: Level) -> Result<Values, Fault> {
    let mut values = Values::new();
    for property in properties {
        let invalid = || Fault::InvalidProperty(property.clone());
        let key =
            Key::of(&property.nam).ok_or_else(|| Fault::UnsupportedProperty(property.clone()))?;
        if !key.may_be_set(level) {
            return Err(invalid());
        }
        let value = key.read(&property.val).ok_or_else(invalid)?;
        // Two values for one: which counts nobody could say.
        if values.insert(key, value).is_some() {
            return Err(invalid());
        }
    }
    Ok(values)
}

/// Which properties are meant, whatever the values.
pub(crate) fn keys(properties: &ft::Properties) -> Result<Vec<Key>, Fault> {
    let key = |property: &ft::Property| {
        Key::of(&property.nam).ok_or_else(|| Fault::UnsupportedProperty(property.clone()))
    };
    properties.iter().map(key).collect()
}

/// Says properties.
pub(crate) fn said(values: &Values, flavour: Flavour) -> ft::Properties {
    let property = |(key, value): (&Key, &Value)| ft::Property {
        nam: key.name(flavour),
        val: value.to_any(flavour, *key),
    };
    values.iter().map(property).collect()
}

/// A property of `values` that does not go with the others (FT-CORBA §23.3.4).
pub(crate) fn conflict(values: &Values) -> Option<ft::Property> {
    let number = |key| values.get(&key).and_then(Value::number);
    let style = number(Key::ReplicationStyle);
    let is_stateless = style == Some(ft::STATELESS);
    let by_application = number(Key::ConsistencyStyle) == Some(ft::CONS_APP_CTRL);
    let needs_states =
        matches!(style, Some(ft::COLD_PASSIVE | ft::WARM_PASSIVE | ft::ACTIVE_WITH_VOTING));
    let key = if values.contains_key(&Key::CheckpointInterval) && (is_stateless || by_application) {
        Key::CheckpointInterval
    } else if needs_states && by_application {
        // Passive styles move states, and voters must be alike.
        Key::ConsistencyStyle
    } else if number(Key::InitialNumberReplicas) < number(Key::MinimumNumberReplicas)
        && values.contains_key(&Key::InitialNumberReplicas)
    {
        Key::MinimumNumberReplicas
    } else {
        return None;
    };
    property_of(values, key)
}

/// A property that a definition was refused for.
pub(crate) fn consistency(values: &Values) -> Option<ft::Property> {
    property_of(values, Key::ConsistencyStyle)
}

/// What is said of the monitoring of objects, where nobody can monitor them so.
pub(crate) fn monitoring(values: &Values) -> Option<ft::Property> {
    property_of(values, Key::FaultMonitoringStyle)
}

fn property_of(values: &Values, key: Key) -> Option<ft::Property> {
    let value = values.get(&key)?;
    Some(ft::Property { nam: key.name(Flavour::Omg), val: value.to_any(Flavour::Omg, key) })
}

/// Writes properties into a state.
pub(crate) fn keep(values: &Values, state: &mut Writer) {
    state.write_count(values.len());
    for (key, value) in values {
        state.write_u8(key.number());
        match value {
            Value::Number(number) => state.write_u16(*number),
            Value::Time(time) => state.write_u64(*time),
            Value::Times { interval, timeout } => {
                state.write_u64(*interval);
                state.write_u64(*timeout);
            }
            Value::Factories(_) => value.to_any(Flavour::Omg, *key).keep(state),
        }
    }
}

/// Reads what [`keep`] wrote.
pub(crate) fn kept(state: &mut Reader<'_>) -> Result<Values, MessageError> {
    let mut values = Values::new();
    for _ in 0..state.read_count(3, ALL.len(), "properties")? {
        let offset = state.position();
        let fault = MessageError { what: "property", offset, fault: Wrong::Value };
        let number = state.read_u8("property")?;
        let key = ALL.iter().map(|row| row.0).find(|key| key.number() == number).ok_or(fault)?;
        let value = match key {
            Key::Factories => {
                Value::Factories(Any::kept(state)?.get::<FactoryInfos>().ok_or(fault)?)
            }
            Key::CheckpointInterval => Value::Time(state.read_u64("time")?),
            Key::IntervalAndTimeout => {
                let interval = state.read_u64("interval")?;
                Value::Times { interval, timeout: state.read_u64("timeout")? }
            }
            _ => Value::Number(state.read_u16("number")?),
        };
        // In the one order that is written.
        if values.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(fault);
        }
        // Only what could have been set.
        if key.read(&value.to_any(Flavour::Omg, key)).as_ref() != Some(&value) {
            return Err(fault);
        }
        values.insert(key, value);
    }
    Ok(values)
}

/// The byte order of states.
pub(crate) const ORDER: Endian = Endian::Big;
