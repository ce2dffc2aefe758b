//! Between TAO's descriptions of consumers and suppliers, and what a channel keeps of them.
//!
//! Invariant: payloads in descriptions are not kept.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorba_idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, Dependency, Publication, SupplierQOS};

use crate::channel::Running;
use crate::event::plain;
use crate::filter::{Entry, Header, designator};
use crate::registry::{Offered, Published, Supplier, SupplierForm, Wanted};

pub(crate) fn wanted(qos: &ConsumerQOS) -> Wanted {
    let entry = |one: &Dependency| Entry {
        event_type: one.event.header.r#type,
        source: one.event.header.source,
        period: one.event.header.creation_time,
        rt_info: one.rt_info,
    };
    let entries = qos.dependencies.iter().map(entry).collect();
    Wanted { entries, is_gateway: qos.is_gateway }
}

pub(crate) fn offered(qos: &SupplierQOS) -> Offered {
    let published = |one: &Publication| Published {
        event_type: one.event.header.r#type,
        source: one.event.header.source,
        rt_info: one.dependency_info.rt_info,
    };
    let publications = qos.publications.iter().map(published).collect();
    Offered { publications, is_gateway: qos.is_gateway }
}

fn dependency(header: Header) -> Dependency {
    Dependency { event: plain(header, 0, 0), rt_info: 0 }
}

/// An event of any type and source.
const ANY_EVENT: (i32, i32) = (designator::ANY, 0);

/// Types and sources for observers; if they are too many, or one of them is any, only that.
fn shortened(all: &mut BTreeSet<(i32, i32)>, count_max: usize) {
    if all.len() > count_max || all.contains(&ANY_EVENT) {
        *all = BTreeSet::from([ANY_EVENT]);
    }
}

/// What all consumers want, as a disjunction. Who names nothing may want any event.
pub(crate) fn all_wanted<'r>(
    running: impl Iterator<Item = &'r Running>,
    count_max: usize,
) -> Arc<ConsumerQOS> {
    let mut all = BTreeSet::new();
    for one in running.filter(|one| !one.is_gateway) {
        all.append(&mut one.filter.headers().unwrap_or_else(|| BTreeSet::from([ANY_EVENT])));
        shortened(&mut all, count_max);
    }
    let count = i32::try_from(all.len()).unwrap_or(i32::MAX);
    let group = Header { event_type: designator::DISJUNCTION, source: count };
    let headers = all.into_iter().map(|(event_type, source)| Header { event_type, source });
    let dependencies: Vec<_> = core::iter::once(group).chain(headers).map(dependency).collect();
    Arc::new(ConsumerQOS { dependencies, is_gateway: true })
}

/// What all suppliers have; `of_cos`: what those of the standard's interface do.
pub(crate) fn all_offered<'r>(
    suppliers: impl Iterator<Item = &'r Supplier>,
    of_cos: (i32, i32),
    count_max: usize,
) -> Arc<SupplierQOS> {
    let mut all = BTreeSet::new();
    for one in suppliers.filter(|one| !one.offered.is_gateway && one.peer.is_some()) {
        let published = one.offered.publications.iter().map(|it| (it.event_type, it.source));
        all.extend(published);
        if matches!(one.form, SupplierForm::Push | SupplierForm::Pull) {
            all.insert(of_cos);
        }
        shortened(&mut all, count_max);
    }
    let publication = |(event_type, source)| Publication {
        event: plain(Header { event_type, source }, 0, 0),
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::ONEWAYCALL,
            number_of_calls: 1,
            rt_info: 0,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DEPENDENCYENABLED,
        },
    };
    Arc::new(SupplierQOS {
        publications: all.into_iter().map(publication).collect(),
        is_gateway: true,
    })
}
