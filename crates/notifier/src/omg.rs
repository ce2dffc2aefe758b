//! The notifier in the standard's form.
//!
//! Invariant: a constraint that cannot be read changes nothing. The standard names no exception for
//! it, nor for a consumer that is not connected: both are BAD_PARAM.

use alloc::string::String;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Object, raise_system};
use quorba_idl::cos_event_comm::Disconnected;
use quorba_idl::cos_notification::{EventBatch, EventTypeSeq, StructuredEvent};
use quorba_idl::cos_notify_filter::ConstraintExp;
use quorba_idl::ft::FaultNotifier;
use quorba_idl::ft::fault_notifier::DisconnectConsumerError;

use crate::filter::{Constraint, Filter};
use crate::notifier::{Notifier, Wanted};

pub(crate) struct OmgView<'n>(pub(crate) &'n mut Notifier);

impl FaultNotifier for OmgView<'_> {
    fn push_structured_fault(&mut self, event: StructuredEvent) -> Result<(), SystemException> {
        self.0.take(event)
    }

    fn push_sequence_fault(&mut self, events: EventBatch) -> Result<(), SystemException> {
        events.into_iter().try_for_each(|event| self.0.take(event))
    }

    fn connect_structured_fault_consumer(
        &mut self,
        push_consumer: Object,
    ) -> Result<u64, SystemException> {
        self.0.connect(push_consumer, (false, false), Wanted::Own(Filter::default()))
    }

    fn connect_sequence_fault_consumer(
        &mut self,
        push_consumer: Object,
    ) -> Result<u64, SystemException> {
        self.0.connect(push_consumer, (true, false), Wanted::Own(Filter::default()))
    }

    fn disconnect_consumer(&mut self, connection: u64) -> Result<(), DisconnectConsumerError> {
        if self.0.disconnect(connection) { Ok(()) } else { Err(Disconnected {}.into()) }
    }

    fn replace_constraint(
        &mut self,
        connection: u64,
        event_types: EventTypeSeq,
        constr_expr: String,
    ) -> Result<(), SystemException> {
        let wrong = raise_system(ExceptionKind::BadParam);
        let said = ConstraintExp { event_types, constraint_expr: constr_expr };
        let constraint = Constraint::read(said).ok_or(wrong)?;
        let consumer = self.0.state.consumers.get_mut(&connection).ok_or(wrong)?;
        let mut filter = Filter::default();
        filter.add(constraint);
        consumer.wanted = Wanted::Own(filter);
        Ok(())
    }
}
