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
use crate::registry::{Offered, Published, Supplier, Wanted};

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

/// What all consumers want, as a disjunction.
pub(crate) fn all_wanted<'r>(
    running: impl Iterator<Item = &'r Running>,
    count_max: usize,
) -> Arc<ConsumerQOS> {
    let mut leaves = BTreeSet::new();
    for one in running.filter(|one| !one.is_gateway) {
        for leaf in one.filter.leaves() {
            if leaves.len() < count_max {
                leaves.insert((leaf.event_type, leaf.source));
            }
        }
    }
    let count = i32::try_from(leaves.len()).unwrap_or(i32::MAX);
    let group = Header { event_type: designator::DISJUNCTION, source: count };
    let headers = leaves.into_iter().map(|(event_type, source)| Header { event_type, source });
    let dependencies: Vec<_> = core::iter::once(group).chain(headers).map(dependency).collect();
    Arc::new(ConsumerQOS { dependencies, is_gateway: true })
}

/// What all suppliers have.
pub(crate) fn all_offered<'r>(
    suppliers: impl Iterator<Item = &'r Supplier>,
    count_max: usize,
) -> Arc<SupplierQOS> {
    let mut all = BTreeSet::new();
    for one in suppliers.filter(|one| !one.offered.is_gateway && one.peer.is_some()) {
        for published in &one.offered.publications {
            if all.len() < count_max {
                all.insert((published.event_type, published.source));
            }
        }
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
