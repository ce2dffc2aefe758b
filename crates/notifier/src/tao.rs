//! The notifier for clients that are linked with TAO: constraints are in filter objects.
//!
//! Invariant: an operation that raises changes nothing. As in TAO, a filter without constraints
//! lets everything pass, and a nil one is none.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Any, Object, raise_system};
use quorba_idl::cos_event_comm::Disconnected;
use quorba_idl::cos_notification::{EventBatch, StructuredEvent};
use quorba_idl::cos_notify_filter::filter::{
    AddConstraintsError, GetConstraintsError, MatchError, MatchStructuredError,
    ModifyConstraintsError,
};
use quorba_idl::cos_notify_filter::{
    ConstraintExp, ConstraintExpSeq, ConstraintIDSeq, ConstraintInfo, ConstraintInfoSeq,
    ConstraintNotFound, InvalidConstraint, InvalidGrammar, UnsupportedFilterableData,
};
use quorba_idl::ft::PullMonitorable;
use quorba_idl::tao_ft::FaultNotifier;
use quorba_idl::tao_ft::fault_notifier::{CreateSubscriptionFilterError, DisconnectConsumerError};

use crate::filter::{Constraint, Filter};
use crate::notifier::{Notifier, Wanted};

/// The language's names.
const GRAMMARS: [&str; 5] = ["EXTENDED_TCL", "ETCL", "TCL", "ExtendedTCL", ""];

pub(crate) struct TaoView<'n>(pub(crate) &'n mut Notifier);

impl TaoView<'_> {
    fn wanted(&self, filter: &Object) -> Result<Wanted, SystemException> {
        if filter.is_nil() {
            return Ok(Wanted::Own(Filter::default()));
        }
        let own = self.0.own_filter(filter);
        own.map(Wanted::Of).ok_or(raise_system(ExceptionKind::BadParam))
    }
}

impl PullMonitorable for TaoView<'_> {
    fn is_alive(&mut self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

impl FaultNotifier for TaoView<'_> {
    fn push_structured_fault(&mut self, event: StructuredEvent) -> Result<(), SystemException> {
        self.0.take(event)
    }

    fn push_sequence_fault(&mut self, events: EventBatch) -> Result<(), SystemException> {
        events.into_iter().try_for_each(|event| self.0.take(event))
    }

    fn create_subscription_filter(
        &mut self,
        constraint_grammar: String,
    ) -> Result<Object, CreateSubscriptionFilterError> {
        if !GRAMMARS.contains(&constraint_grammar.as_str()) {
            return Err(InvalidGrammar {}.into());
        }
        let state = &mut self.0.state;
        if state.filters.len() >= self.0.limits.filters_max {
            return Err(raise_system(ExceptionKind::NoResources).into());
        }
        state.last_filter += 1;
        let number = state.last_filter;
        state.filters.insert(number, Filter::default());
        Ok(self.0.filter_object(number))
    }

    fn connect_structured_fault_consumer(
        &mut self,
        push_consumer: Object,
        filter: Object,
    ) -> Result<u64, SystemException> {
        let wanted = self.wanted(&filter)?;
        self.0.connect(push_consumer, (false, true), wanted)
    }

    fn connect_sequence_fault_consumer(
        &mut self,
        push_consumer: Object,
        filter: Object,
    ) -> Result<u64, SystemException> {
        let wanted = self.wanted(&filter)?;
        self.0.connect(push_consumer, (true, true), wanted)
    }

    fn disconnect_consumer(&mut self, connection: u64) -> Result<(), DisconnectConsumerError> {
        if self.0.disconnect(connection) { Ok(()) } else { Err(Disconnected {}.into()) }
    }
}

/// One filter of a notifier.
pub(crate) struct FilterView<'n> {
    pub(crate) notifier: &'n mut Notifier,
    pub(crate) number: u64,
}

impl FilterView<'_> {
    fn filter(&mut self) -> Result<&mut Filter, SystemException> {
        let found = self.notifier.state.filters.get_mut(&self.number);
        found.ok_or(raise_system(ExceptionKind::ObjectNotExist))
    }

    fn check_room(&self, more: usize) -> Result<(), SystemException> {
        let there = self.notifier.state.filters.get(&self.number);
        let there = there.map_or(0, |filter| filter.constraints.len());
        if there + more > self.notifier.limits.constraints_max {
            return Err(raise_system(ExceptionKind::NoResources));
        }
        Ok(())
    }
}

fn read(said: ConstraintExp) -> Result<Constraint, InvalidConstraint> {
    Constraint::read(said.clone()).ok_or(InvalidConstraint { constr: said })
}

fn info((id, constraint): (&i32, &Constraint)) -> ConstraintInfo {
    ConstraintInfo { constraint_expression: constraint.said.clone(), constraint_id: *id }
}

impl quorba_idl::cos_notify_filter::Filter for FilterView<'_> {
    fn constraint_grammar(&mut self) -> Result<String, SystemException> {
        Ok("EXTENDED_TCL".to_string())
    }

    fn add_constraints(
        &mut self,
        constraint_list: ConstraintExpSeq,
    ) -> Result<ConstraintInfoSeq, AddConstraintsError> {
        self.check_room(constraint_list.len())?;
        let constraints: Vec<Constraint> =
            constraint_list.into_iter().map(read).collect::<Result<_, _>>()?;
        let filter = self.filter()?;
        let add = |constraint: Constraint| {
            let said = constraint.said.clone();
            ConstraintInfo { constraint_id: filter.add(constraint), constraint_expression: said }
        };
        Ok(constraints.into_iter().map(add).collect())
    }

    fn modify_constraints(
        &mut self,
        del_list: ConstraintIDSeq,
        modify_list: ConstraintInfoSeq,
    ) -> Result<(), ModifyConstraintsError> {
        let mut changed = self.filter()?.clone();
        for info in modify_list {
            let constraint = read(info.constraint_expression)?;
            match changed.constraints.get_mut(&info.constraint_id) {
                Some(place) => *place = constraint,
                None => return Err(ConstraintNotFound { id: info.constraint_id }.into()),
            }
        }
        for id in del_list {
            changed.constraints.remove(&id).ok_or(ConstraintNotFound { id })?;
        }
        *self.filter()? = changed;
        Ok(())
    }

    fn get_constraints(
        &mut self,
        id_list: ConstraintIDSeq,
    ) -> Result<ConstraintInfoSeq, GetConstraintsError> {
        let constraints_max = self.notifier.limits.constraints_max;
        let filter = self.filter()?;
        // One that is named twice is given twice; but a reply is no longer than that of all.
        if id_list.len() > constraints_max {
            return Err(raise_system(ExceptionKind::ImpLimit).into());
        }
        let mut infos = ConstraintInfoSeq::new();
        for id in id_list {
            let found = filter.constraints.get_key_value(&id);
            infos.push(found.map(info).ok_or(ConstraintNotFound { id })?);
        }
        Ok(infos)
    }

    fn get_all_constraints(&mut self) -> Result<ConstraintInfoSeq, SystemException> {
        Ok(self.filter()?.constraints.iter().map(info).collect())
    }

    fn remove_all_constraints(&mut self) -> Result<(), SystemException> {
        self.filter()?.constraints.clear();
        Ok(())
    }

    fn destroy(&mut self) -> Result<(), SystemException> {
        let number = self.number;
        self.notifier.state.filters.remove(&number);
        Ok(())
    }

    fn r#match(&mut self, filterable_data: Any) -> Result<bool, MatchError> {
        let event = filterable_data.get::<StructuredEvent>().ok_or(UnsupportedFilterableData {})?;
        Ok(self.filter()?.matches(&event))
    }

    fn match_structured(
        &mut self,
        filterable_data: StructuredEvent,
    ) -> Result<bool, MatchStructuredError> {
        Ok(self.filter()?.matches(&filterable_data))
    }
}
