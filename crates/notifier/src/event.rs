//! Reports of faults as structured events (FT-CORBA §23.4.5.1), made and read.
//!
//! Invariant: items stand in the order that the standard names, for TAO's analyzer goes by places.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_corba::{Any, Cdr, Typed};
use quorba_idl::cos_naming::{Name, NameComponent};
use quorba_idl::cos_notification as cn;

/// The domain of a report's event type.
pub const DOMAIN_NAME: &str = "FT_CORBA";
/// Its name.
pub const TYPE_NAME: &str = "ObjectCrashFault";
/// The name of a property in the header, by which repetitions of one report are known.
pub const INCIDENT: &str = "QuorbaIncident";

/// The name of an item: the object was asked, and is not alive although its process may be. Who
/// asked it has told the replication manager already.
pub const UNANSWERED: &str = "QuorbaUnanswered";

/// Who has died: everything at the location; all objects of a type there; or one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The fault tolerance domain.
    pub domain_id: String,
    /// The node.
    pub location: String,
    /// The type.
    pub type_id: Option<String>,
    /// The object group.
    pub group: Option<u64>,
    /// The same in repetitions of it, and in no other; empty: nobody repeats it.
    pub incident: String,
}

/// A location's name.
#[must_use]
pub fn location(id: &str) -> Name {
    Vec::from([NameComponent { id: id.to_string(), kind: String::new() }])
}

fn item<T: Cdr + Typed>(name: &str, value: &T) -> cn::Property {
    cn::Property { name: name.to_string(), value: Any::new(value).unwrap_or_default() }
}

/// The name of a member's group in the standard's form, and in TAO's.
const GROUPS: [&str; 2] = ["ObjectGroupId", "GroupId"];

/// The other name of an item, if it has two.
pub(crate) fn alias(name: &str) -> Option<&'static str> {
    let [standard, tao] = GROUPS;
    match name {
        _ if name == standard => Some(tao),
        _ if name == tao => Some(standard),
        _ => None,
    }
}

/// A report with the names of one form, whoever made it; any other event is what it was.
pub(crate) fn in_form(mut event: cn::StructuredEvent, is_of_tao: bool) -> cn::StructuredEvent {
    let event_type = &event.header.fixed_header.event_type;
    if event_type.domain_name == DOMAIN_NAME && event_type.type_name == TYPE_NAME {
        let [standard, tao] = GROUPS;
        let right = if is_of_tao { tao } else { standard };
        for item in &mut event.filterable_data {
            if alias(&item.name) == Some(right) {
                item.name = right.to_string();
            }
        }
    }
    event
}

/// Whether a detector of the domain's own has asked an object.
pub(crate) fn is_by_detector(event: &cn::StructuredEvent) -> bool {
    event.filterable_data.iter().any(|one| one.name == UNANSWERED)
}

/// Whether only this notifier knows of it: neither a node nor a detector of the domain's own has
/// said it, who tell the replication manager themselves.
pub(crate) fn is_by_others(event: &cn::StructuredEvent) -> bool {
    let of_node = |one: &cn::Property| one.name == INCIDENT;
    !event.header.variable_header.iter().any(of_node) && !is_by_detector(event)
}

impl Report {
    /// As an event.
    #[must_use]
    pub fn to_event(&self) -> cn::StructuredEvent {
        let [standard, _] = GROUPS;
        let mut filterable_data = Vec::from([
            item("FTDomainId", &self.domain_id),
            item("Location", &location(&self.location)),
        ]);
        filterable_data.extend(self.type_id.iter().map(|type_id| item("TypeId", type_id)));
        filterable_data.extend(self.group.iter().map(|group| item(standard, group)));
        let event_type = cn::EventType {
            domain_name: DOMAIN_NAME.to_string(),
            type_name: TYPE_NAME.to_string(),
        };
        let is_named = !self.incident.is_empty();
        let variable_header = is_named.then(|| item(INCIDENT, &self.incident));
        cn::StructuredEvent {
            header: cn::EventHeader {
                fixed_header: cn::FixedEventHeader { event_type, event_name: String::new() },
                variable_header: variable_header.into_iter().collect(),
            },
            filterable_data,
            remainder_of_body: Any::default(),
        }
    }

    /// Of an event; nothing if it is no report.
    #[must_use]
    pub fn of_event(event: &cn::StructuredEvent) -> Option<Self> {
        let event_type = &event.header.fixed_header.event_type;
        if event_type.domain_name != DOMAIN_NAME || event_type.type_name != TYPE_NAME {
            return None;
        }
        let item = |names: &[&str]| {
            let mut items = event.filterable_data.iter();
            items.find(|item| names.contains(&item.name.as_str())).map(|item| &item.value)
        };
        let location = item(&["Location"])?.get::<Name>()?;
        let location = location.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join("/");
        let header = &event.header.variable_header;
        let incident = header.iter().find(|one| one.name == INCIDENT);
        Some(Self {
            domain_id: item(&["FTDomainId"])?.get()?,
            location,
            type_id: item(&["TypeId"]).and_then(|value| value.get()),
            group: item(&GROUPS).and_then(|value| value.get()),
            incident: incident.and_then(|one| one.value.get()).unwrap_or_default(),
        })
    }
}
