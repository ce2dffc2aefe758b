//! What is offered to who calls the consumers.
//!
//! Invariant: what was said to be delivered is not offered again, in whatever order that is heard.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::SystemException;
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::quorba::{CutOff, CutOffs, FaultReport, FaultReports, Pending, Pendings};

use crate::notifier::Notifier;

/// Who is said to have what the replication manager was told; no consumer has this number.
pub const MANAGER: u64 = 0;

/// The longest reason, in octets.
const WHY_BYTES_MAX: usize = 512;

impl Notifier {
    /// What the replication manager has to be told, at most so many reports, for the consumer
    /// [`MANAGER`]; nobody else tells it.
    #[must_use]
    pub fn for_manager(&self, how_many: u32) -> Option<(u64, Vec<StructuredEvent>)> {
        let most = usize::try_from(how_many).unwrap_or(usize::MAX).min(self.limits.listed_max);
        let numbers = self.state.for_manager.iter().take(most);
        let last = *numbers.clone().next_back()?;
        let events = numbers.filter_map(|number| self.state.reports.get(number).cloned());
        Some((last, events.collect()))
    }

    /// What waits, at most so many reports for each consumer.
    #[must_use]
    pub fn pending(&self, how_many: u32) -> Pendings {
        let most = usize::try_from(how_many).unwrap_or(usize::MAX).min(self.limits.listed_max);
        let pending = |(id, consumer): (&u64, &crate::notifier::Consumer)| {
            let most = if consumer.is_batch { most } else { most.min(1) };
            let numbers = consumer.waiting.iter().take(most);
            let last = numbers.clone().next_back()?;
            let events = numbers.filter_map(|number| self.state.reports.get(number).cloned());
            Some(Pending {
                consumer: *id,
                reference: consumer.reference.clone(),
                is_batch: consumer.is_batch,
                last: *last,
                events: events.collect(),
            })
        };
        self.state.consumers.iter().filter_map(pending).collect()
    }
}

pub(crate) struct DeliveryView<'n>(pub(crate) &'n mut Notifier);

impl quorba_idl::quorba::FaultDelivery for DeliveryView<'_> {
    fn pending(&mut self, how_many: u32) -> Result<Pendings, SystemException> {
        Ok(self.0.pending(how_many))
    }

    fn delivered(&mut self, consumer: u64, last: u64) -> Result<(), SystemException> {
        if consumer == MANAGER {
            self.0.state.for_manager.retain(|number| *number > last);
            self.0.forget();
        } else if let Some(consumer) = self.0.state.consumers.get_mut(&consumer) {
            consumer.waiting.retain(|number| *number > last);
            self.0.forget();
        }
        Ok(())
    }

    fn cut_off(&mut self, consumer: u64, why: String) -> Result<(), SystemException> {
        let why = why.chars().take(WHY_BYTES_MAX / 4).collect();
        self.0.cut_off(consumer, why);
        Ok(())
    }

    fn node_is_up(&mut self, name: String) -> Result<(), SystemException> {
        // The name of the node, and perhaps of the view in which it has come.
        let (node, view) = crate::analyzer::node_and_view(&name);
        self.0.state.analyzer.is_up(node, view.unwrap_or(u64::MAX));
        Ok(())
    }

    fn reports(&mut self, after: u64, how_many: u32) -> Result<FaultReports, SystemException> {
        let most = usize::try_from(how_many).unwrap_or(usize::MAX).min(self.0.limits.listed_max);
        let behind = self.0.state.reports.range(after.saturating_add(1)..).take(most);
        let report = |(number, event): (&u64, &_)| FaultReport {
            number: *number,
            event: Clone::clone(event),
        };
        Ok(behind.map(report).collect())
    }

    fn cut_offs(&mut self) -> Result<CutOffs, SystemException> {
        let cut_off =
            |(consumer, why): &(u64, String)| CutOff { consumer: *consumer, why: why.clone() };
        Ok(self.0.state.cut_off.iter().map(cut_off).collect())
    }
}
