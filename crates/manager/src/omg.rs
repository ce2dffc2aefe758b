//! The manager in the standard's form.
//!
//! Invariant: nothing is decided here.

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Object, Transport};
use quorba_idl::ft;

use crate::manager::Manager;
use crate::property::Flavour;
use crate::views::managers;

pub(crate) struct OmgView<'m, D>(pub(crate) &'m mut Manager<D>);

managers!(OmgView, ft, Flavour::Omg, {
    fn set_primary_member(
        &mut self,
        object_group: Object,
        the_location: ft::Location,
    ) -> Result<Object, ft::object_group_manager::SetPrimaryMemberError> {
        Ok(self.0.set_primary(&object_group, &the_location)?)
    }
});

impl<D: Transport> ft::ReplicationManager for OmgView<'_, D> {
    fn register_fault_notifier(&mut self, fault_notifier: Object) -> Result<(), SystemException> {
        self.0.register_notifier(fault_notifier)
    }

    fn get_fault_notifier(
        &mut self,
    ) -> Result<Object, ft::replication_manager::GetFaultNotifierError> {
        Ok(self.0.notifier(Flavour::Omg)?)
    }
}
