//! The manager for clients that are linked with TAO.
//!
//! Invariant: nothing is decided here. `shutdown`, by which a client would end the manager for all,
//! does nothing.

use alloc::vec::Vec;

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Object, Transport};
use quorba_idl::portable_group::{self as pg, factory_registry};
use quorba_idl::{ft, tao_ft};

use crate::manager::Manager;
use crate::property::{Flavour, id_of};
use crate::views::managers;

pub(crate) struct TaoView<'m, D>(pub(crate) &'m mut Manager<D>);

managers!(TaoView, pg, Flavour::Tao, {
    fn groups_at_location(
        &mut self,
        the_location: ft::Location,
    ) -> Result<pg::ObjectGroups, SystemException> {
        Ok(self.0.groups_at(&the_location))
    }

    fn get_object_group_ref_from_id(
        &mut self,
        group_id: ft::ObjectGroupId,
    ) -> Result<Object, pg::object_group_manager::GetObjectGroupRefFromIdError> {
        Ok(self.0.group(group_id).map(|group| group.reference.clone())?)
    }
});

impl<D: Transport> tao_ft::FTObjectGroupManager for TaoView<'_, D> {
    fn set_primary_member(
        &mut self,
        object_group: Object,
        the_location: ft::Location,
    ) -> Result<Object, tao_ft::ft_object_group_manager::SetPrimaryMemberError> {
        Ok(self.0.set_primary(&object_group, &the_location)?)
    }
}

impl<D: Transport> tao_ft::ReplicationManager for TaoView<'_, D> {
    fn register_fault_notifier(&mut self, fault_notifier: Object) -> Result<(), SystemException> {
        self.0.register_notifier(fault_notifier)
    }

    fn get_fault_notifier(
        &mut self,
    ) -> Result<Object, tao_ft::replication_manager::GetFaultNotifierError> {
        Ok(self.0.notifier(Flavour::Tao)?)
    }

    fn get_factory_registry(&mut self, _: ft::Criteria) -> Result<Object, SystemException> {
        Ok(self.0.registry.clone())
    }

    fn shutdown(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// TAO's registry of factories.
pub(crate) struct RegistryView<'m, D>(pub(crate) &'m mut Manager<D>);

impl<D: Transport> pg::FactoryRegistry for RegistryView<'_, D> {
    fn register_factory(
        &mut self,
        role: pg::RoleName,
        type_id: ft::TypeId,
        factory_info: ft::FactoryInfo,
    ) -> Result<(), factory_registry::RegisterFactoryError> {
        Ok(self.0.register(role, type_id, factory_info)?)
    }

    fn unregister_factory(
        &mut self,
        role: pg::RoleName,
        location: ft::Location,
    ) -> Result<(), factory_registry::UnregisterFactoryError> {
        Ok(self.0.unregister(role, &location)?)
    }

    fn unregister_factory_by_role(&mut self, role: pg::RoleName) -> Result<(), SystemException> {
        self.0.unregister_all(|of, _| *of != *role).map_err(|fault| fault.unknown())
    }

    fn unregister_factory_by_location(
        &mut self,
        location: ft::Location,
    ) -> Result<(), SystemException> {
        let at = id_of(&location).unwrap_or_default();
        self.0.unregister_all(|_, of| of != at).map_err(|fault| fault.unknown())
    }

    fn list_factories_by_role(
        &mut self,
        role: pg::RoleName,
    ) -> Result<(ft::FactoryInfos, ft::TypeId), SystemException> {
        let found: Vec<_> = self.0.of_role(&role).collect();
        let type_id = found.first().map(|one| one.type_id.clone()).unwrap_or_default();
        Ok((found.into_iter().map(|one| one.info.clone()).collect(), type_id))
    }

    fn list_factories_by_location(
        &mut self,
        location: ft::Location,
    ) -> Result<ft::FactoryInfos, SystemException> {
        let all = self.0.state.registry.values();
        let there = all.filter(|one| one.info.the_location == location);
        Ok(there.map(|one| one.info.clone()).collect())
    }
}
