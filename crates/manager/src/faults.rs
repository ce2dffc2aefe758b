//! What the manager is told: faults, as structured events (FT-CORBA §23.4.5.1), and that it is to
//! look again.
//!
//! Invariant: an event that is no report of a fault in this domain changes nothing.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::giop::SystemException;
use quorba_corba::{Object, Transport};
use quorba_idl::cos_notification::{EventTypeSeq, StructuredEvent};
use quorba_idl::cos_notify_comm::notify_publish::OfferChangeError;
use quorba_idl::cos_notify_comm::structured_push_consumer::PushStructuredEventError;
use quorba_idl::cos_notify_comm::{NotifyPublish, StructuredPushConsumer};
use quorba_idl::{ft, quorba};

use crate::fault::Fault;
use crate::group::Group;
use crate::manager::Manager;
use crate::property::id_of;
use crate::repair::{Repair, Reported, first};
use crate::reports::Unanswered;
use crate::watched::{INCIDENT, UNANSWERED};

const DOMAIN: &str = "FT_CORBA";
const CRASH: &str = "ObjectCrashFault";

/// Whom a report is about.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    location: String,
    type_id: Option<String>,
    group: Option<u64>,
    /// It was asked and is not alive, although its process may be.
    is_unanswered: bool,
    /// Its maker has named it: a node, or a detector of the domain's own.
    incident: Option<String>,
}

/// Reads a report. TAO's analyzer goes by the place of an item, the standard by its name; what is
/// read by name here has no other place there.
fn read(event: &StructuredEvent, domain_id: &str) -> Option<Report> {
    let header = &event.header.fixed_header.event_type;
    if header.domain_name != DOMAIN || header.type_name != CRASH {
        return None;
    }
    let item = |names: &[&str]| {
        let mut items = event.filterable_data.iter();
        items.find(|item| names.contains(&item.name.as_str())).map(|item| &item.value)
    };
    let of_domain: String = item(&["FTDomainId"])?.get()?;
    let location: ft::Location = item(&["Location"])?.get()?;
    if of_domain != domain_id {
        return None;
    }
    let mut headers = event.header.variable_header.iter();
    Some(Report {
        location: String::from(id_of(&location)?),
        type_id: item(&["TypeId"]).and_then(|value| value.get()),
        group: item(&["ObjectGroupId", "GroupId"]).and_then(|value| value.get()),
        is_unanswered: item(&[UNANSWERED]).and_then(|value| value.get()).unwrap_or(false),
        incident: headers
            .find(|one| one.name == INCIDENT)
            .map(|one| one.value.get().unwrap_or_default()),
    })
}

/// Whether an object that does not answer, or is said to be dead, stands for this group's member at
/// its location.
fn stands_for(report: &Report, group: &Group) -> bool {
    let granularity = match (&report.type_id, report.group) {
        (_, Some(_)) => ft::MEMB,
        (Some(_), None) => ft::LOC_AND_TYPE,
        (None, None) => ft::LOC,
    };
    let member = group.member(&report.location);
    let is_object = member.is_some_and(|member| member.object().is_some());
    let is_asked = group.is_pulled() && member.is_some();
    (is_asked || group.is_pushed() && is_object) && group.granularity() == granularity
}

pub(crate) struct FaultsView<'m, D>(pub(crate) &'m mut Manager<D>);

impl<D: Transport> FaultsView<'_, D> {
    fn handle(&mut self, report: &Report) -> Result<(), Fault> {
        let manager = &mut *self.0;
        let is_by_others = report.incident.is_none() && !report.is_unanswered;
        let concerns = |(id, group): &(&u64, &Group)| {
            report.group.is_none_or(|of| of == **id)
                && report.type_id.as_ref().is_none_or(|of| *of == group.type_id)
                && (group.is_by_infrastructure() || canary!(RepairsForApplications))
                && group.member(&report.location).is_some()
                && (!report.is_unanswered || stands_for(report, group))
        };
        let ids: Vec<u64> =
            manager.state.groups.iter().filter(concerns).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let around = manager.surroundings()?;
        let mut failed = None;
        for id in ids {
            let group = manager.group(id)?;
            if is_by_others && group.is_pushed() && stands_for(report, group) {
                manager.heard.accused.insert((report.location.clone(), id));
            }
            let reported = Reported {
                location: &report.location,
                is_in: !report.is_unanswered,
                leaves: report.is_unanswered && manager.group(id)?.is_pushed(),
            };
            let repair = Repair { reported: Some(reported), unwanted: None };
            let repaired = manager.repair_in(id, repair, &around);
            first(&mut failed, repaired);
        }
        failed.map_or(Ok(()), Err)
    }
}

impl<D: Transport> NotifyPublish for FaultsView<'_, D> {
    fn offer_change(&mut self, _: EventTypeSeq, _: EventTypeSeq) -> Result<(), OfferChangeError> {
        Ok(())
    }
}

impl<D: Transport> StructuredPushConsumer for FaultsView<'_, D> {
    fn push_structured_event(
        &mut self,
        notification: StructuredEvent,
    ) -> Result<(), PushStructuredEventError> {
        let Some(report) = read(&notification, &self.0.state.domain_id) else { return Ok(()) };
        let incident = report.incident.clone().unwrap_or_default();
        if self.0.state.reports.knows(&incident) {
            return Ok(());
        }
        if report.is_unanswered {
            self.0.note_unanswered(Unanswered {
                location: report.location.clone(),
                type_id: report.type_id.clone(),
                group: report.group,
                incident: incident.clone(),
            });
        }
        self.handle(&report).map_err(|fault| fault.unknown())?;
        self.0.state.reports.note(incident);
        Ok(())
    }

    fn disconnect_structured_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl<D: Transport> quorba::Watcher for FaultsView<'_, D> {
    fn look(&mut self) -> Result<u32, SystemException> {
        self.0.look().map_err(|fault| fault.unknown())
    }

    fn overdue(&mut self, group: u64, location: String) -> Result<u32, SystemException> {
        self.0.overdue(group, &location).map_err(|fault| fault.unknown())
    }

    fn answers(&mut self, member: Object) -> Result<(), SystemException> {
        self.0.note_alive(&member);
        Ok(())
    }

    fn told(&mut self, incidents: Vec<String>) -> Result<(), SystemException> {
        self.0.state.reports.told(&incidents);
        Ok(())
    }
}
