//! What is offered to who calls the consumers.
//!
//! Invariant: what was said to be delivered is not offered again, in whatever order that is heard.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::Object;
use quorba_corba::giop::SystemException;
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::quorba::{
    CutOff, CutOffs, FaultConsumer, FaultConsumers, FaultReport, FaultReports, Pending, Pendings,
};

use crate::notifier::{Consumer, Gone, Notifier};

/// Who is said to have what the replication manager was told; no consumer has this number.
pub const MANAGER: u64 = 0;

/// The longest reason, in octets.
const WHY_BYTES_MAX: usize = 512;

impl Notifier {
    /// What the replication manager has to be told behind a report, at most so many, and the last
    /// one's number; nobody else tells it.
    #[must_use]
    pub fn for_manager(&self, behind: u64, how_many: u32) -> Option<(u64, Vec<StructuredEvent>)> {
        self.listed(&self.state.for_manager, behind, self.most(how_many))
    }

    /// What waits, at most so many reports for each consumer.
    #[must_use]
    pub fn pending(&self, how_many: u32) -> Pendings {
        let pending = |(id, one): (&u64, &Consumer)| self.pending_of(*id, one, 0, how_many);
        self.state.consumers.iter().filter_map(pending).collect()
    }

    /// What waits for a consumer behind a report.
    pub(crate) fn pending_of(
        &self,
        id: u64,
        consumer: &Consumer,
        behind: u64,
        how_many: u32,
    ) -> Option<Pending> {
        let most = self.most(how_many);
        let most = if consumer.is_batch { most } else { most.min(1) };
        let (last, events) = self.listed(&consumer.waiting, behind, most)?;
        let form = |event| crate::event::in_form(event, consumer.is_of_tao);
        let events = events.into_iter().map(form).collect();
        let (reference, is_batch) = (consumer.reference.clone(), consumer.is_batch);
        Some(Pending { consumer: id, reference, is_batch, last, events })
    }

    /// Whether somebody was cut off whom nobody has told so.
    #[must_use]
    pub fn has_untold(&self) -> bool {
        self.untold().next().is_some()
    }

    /// Who was cut off, and was not told so; with whether it takes sequences.
    pub(crate) fn untold(&self) -> impl Iterator<Item = (u64, &Object, bool)> {
        let untold = self.state.cut_off.iter().filter(|gone| !gone.is_told);
        untold.map(|gone| (gone.id, &gone.reference, gone.is_batch))
    }

    fn most(&self, how_many: u32) -> usize {
        usize::try_from(how_many).unwrap_or(usize::MAX).min(self.limits.listed_max)
    }

    fn listed(
        &self,
        waiting: &VecDeque<u64>,
        behind: u64,
        most: usize,
    ) -> Option<(u64, Vec<StructuredEvent>)> {
        let numbers = waiting.iter().filter(|number| **number > behind).take(most);
        let last = *numbers.clone().last()?;
        let events = numbers.filter_map(|number| self.state.reports.get(number).cloned());
        let mut events: Vec<StructuredEvent> = events.collect();
        if canary!(GivesLastReportFirst) {
            events.reverse();
        }
        Some((last, events))
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
        // It is shown to people.
        let plain = why.chars().filter(|one| !one.is_control());
        let why = plain.take(WHY_BYTES_MAX / 4).collect();
        self.0.cut_off(consumer, why);
        Ok(())
    }

    fn parted(&mut self, consumer: u64) -> Result<(), SystemException> {
        let mut all = self.0.state.cut_off.iter_mut();
        if let Some(gone) = all.find(|gone| gone.id == consumer) {
            gone.is_told = true;
        }
        Ok(())
    }

    fn node_is_up(&mut self, name: String) -> Result<(), SystemException> {
        // The name of the node, and perhaps of the view in which it has come.
        let (node, view) = crate::analyzer::node_and_view(&name);
        self.0.state.analyzer.is_up(node, view.unwrap_or(u64::MAX));
        Ok(())
    }

    fn reports(&mut self, after: u64, how_many: u32) -> Result<FaultReports, SystemException> {
        let most = self.0.most(how_many);
        let behind = self.0.state.reports.range(after.saturating_add(1)..).take(most);
        let report = |(number, event): (&u64, &_)| FaultReport {
            number: *number,
            event: Clone::clone(event),
        };
        Ok(behind.map(report).collect())
    }

    fn consumers(&mut self, after: u64, how_many: u32) -> Result<FaultConsumers, SystemException> {
        let most = self.0.most(how_many);
        let consumer = |(id, one): (&u64, &Consumer)| FaultConsumer {
            consumer: *id,
            reference: one.reference.clone(),
            is_batch: one.is_batch,
            is_of_tao: one.is_of_tao,
            waiting: u32::try_from(one.waiting.len()).unwrap_or(u32::MAX),
        };
        let behind = self.0.state.consumers.range(after.saturating_add(1)..).take(most);
        Ok(behind.map(consumer).collect())
    }

    fn cut_offs(&mut self) -> Result<CutOffs, SystemException> {
        let cut_off = |gone: &Gone| CutOff {
            consumer: gone.id,
            reference: gone.reference.clone(),
            why: gone.why.clone(),
            is_told: gone.is_told,
        };
        Ok(self.0.state.cut_off.iter().map(cut_off).collect())
    }
}
