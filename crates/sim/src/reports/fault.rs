//! What somebody reports, as the simulator knows it, and which of it a consumer wants.
//!
//! What it is not: the notifier's constraints; each wish is said in their language, and judged here
//! by itself.

use quorba_corba::Any;
use quorba_idl::cos_notification::{Property, StructuredEvent};
use quorba_idl::quorba::NewsItem;
use quorba_notifier::event::{Report, UNANSWERED};

/// The domain of the notifier.
pub(crate) const DOMAIN: &str = "plant";
/// Its groups: each is of one type.
pub(crate) const GROUPS: u64 = 3;
/// A client's own number of its report, in it.
const SERIAL: &str = "Serial";

/// Who reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// A node, who knows it by that name.
    Node(String),
    /// A detector of the domain's own, who tells the manager by itself.
    Detector(u32),
    Application(u32),
}

/// A report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) by: By,
    /// Of this domain, and not of another one.
    pub(crate) is_ours: bool,
    pub(crate) location: String,
    pub(crate) group: Option<u64>,
}

impl Told {
    /// By what it is known, here and to consumers.
    pub(crate) fn identity(&self) -> String {
        match &self.by {
            By::Node(incident) => incident.clone(),
            By::Detector(serial) | By::Application(serial) => format!("report {serial}"),
        }
    }

    /// Of what a node tells of somebody who has died.
    pub(crate) fn of_news(item: &NewsItem) -> Self {
        Self {
            by: By::Node(item.incident.clone()),
            is_ours: true,
            location: item.node.clone(),
            group: (!item.group.is_empty()).then_some(item.group_id),
        }
    }

    pub(crate) fn to_event(&self) -> StructuredEvent {
        let report = Report {
            domain_id: if self.is_ours { DOMAIN } else { "elsewhere" }.to_owned(),
            location: self.location.clone(),
            type_id: self.group.map(type_of),
            group: self.group,
            incident: String::new(),
        };
        let mut event = report.to_event();
        let mut put = |name: &str, value: Any| {
            event.filterable_data.push(Property { name: name.to_owned(), value });
        };
        match &self.by {
            By::Node(_) => {}
            By::Application(serial) => put(SERIAL, Any::new(serial).expect("a value")),
            By::Detector(serial) => {
                put(SERIAL, Any::new(serial).expect("a value"));
                put(UNANSWERED, Any::new(&true).expect("a value"));
            }
        }
        event
    }
}

/// The type of a group's objects.
pub(crate) fn type_of(group: u64) -> String {
    format!("IDL:Type{group}:1.0")
}

/// By what the event is known that a consumer was given.
pub(crate) fn identity_of(event: &StructuredEvent) -> Option<String> {
    let serial = event.filterable_data.iter().find(|one| one.name == SERIAL);
    if let Some(serial) = serial {
        return serial.value.get::<u32>().map(|serial| format!("report {serial}"));
    }
    Report::of_event(event).map(|report| report.incident)
}

/// What a consumer wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    All,
    /// Of one location.
    At(String),
    /// Of one group.
    Group(u64),
    /// Whole nodes.
    Nodes,
    /// Of this domain, and of a type or of a location.
    Either(u64, String),
}

impl Want {
    /// In the notifier's language.
    pub(crate) fn constraint(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::At(location) => format!("$Location[0].id == '{location}'"),
            Self::Group(group) => format!("$ObjectGroupId == {group}"),
            Self::Nodes => "not exist $ObjectGroupId".to_owned(),
            Self::Either(group, location) => format!(
                "$FTDomainId == '{DOMAIN}' and ($Location[0].id == '{location}' or exist $TypeId \
                 and $TypeId == '{}')",
                type_of(*group)
            ),
        }
    }

    pub(crate) fn takes(&self, told: &Told) -> bool {
        match self {
            Self::All => true,
            Self::At(location) => told.location == *location,
            Self::Group(group) => told.group == Some(*group),
            Self::Nodes => told.group.is_none(),
            Self::Either(group, location) => {
                told.is_ours && (told.location == *location || told.group == Some(*group))
            }
        }
    }
}
