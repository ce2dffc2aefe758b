//! The manager for clients that are linked with TAO.
//!
//! Invariant: nothing is decided here. `shutdown`, by which a client would end the manager for all,
//! does nothing.

use alloc::vec::Vec;

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Object, Transport};
use quorba_idl::portable_group::{self as pg, generic_factory, object_group_manager};
use quorba_idl::portable_group::{factory_registry, property_manager};
use quorba_idl::{ft, tao_ft};

use crate::fault::Fault;
use crate::manager::Manager;
use crate::property::{Flavour, id_of};

pub(crate) struct TaoView<'m, D>(pub(crate) &'m mut Manager<D>);

impl<D: Transport> pg::PropertyManager for TaoView<'_, D> {
    fn set_default_properties(
        &mut self,
        props: ft::Properties,
    ) -> Result<(), property_manager::SetDefaultPropertiesError> {
        Ok(self.0.set_defaults(&props)?)
    }

    fn get_default_properties(&mut self) -> Result<ft::Properties, SystemException> {
        Ok(self.0.defaults(Flavour::Tao))
    }

    fn remove_default_properties(
        &mut self,
        props: ft::Properties,
    ) -> Result<(), property_manager::RemoveDefaultPropertiesError> {
        Ok(self.0.remove_defaults(&props)?)
    }

    fn set_type_properties(
        &mut self,
        type_id: ft::TypeId,
        overrides: ft::Properties,
    ) -> Result<(), property_manager::SetTypePropertiesError> {
        Ok(self.0.set_of_type(type_id, &overrides)?)
    }

    fn get_type_properties(
        &mut self,
        type_id: ft::TypeId,
    ) -> Result<ft::Properties, SystemException> {
        Ok(self.0.of_type(&type_id, Flavour::Tao))
    }

    fn remove_type_properties(
        &mut self,
        type_id: ft::TypeId,
        props: ft::Properties,
    ) -> Result<(), property_manager::RemoveTypePropertiesError> {
        Ok(self.0.remove_of_type(&type_id, &props)?)
    }

    fn set_properties_dynamically(
        &mut self,
        object_group: Object,
        overrides: ft::Properties,
    ) -> Result<(), property_manager::SetPropertiesDynamicallyError> {
        Ok(self.0.set_dynamically(&object_group, &overrides)?)
    }

    fn get_properties(
        &mut self,
        object_group: Object,
    ) -> Result<ft::Properties, property_manager::GetPropertiesError> {
        Ok(self.0.properties_of(&object_group, Flavour::Tao)?)
    }
}

impl<D: Transport> pg::ObjectGroupManager for TaoView<'_, D> {
    fn create_member(
        &mut self,
        object_group: Object,
        the_location: ft::Location,
        type_id: ft::TypeId,
        the_criteria: ft::Criteria,
    ) -> Result<Object, object_group_manager::CreateMemberError> {
        Ok(self.0.create_member(&object_group, &the_location, type_id, &the_criteria)?)
    }

    fn add_member(
        &mut self,
        object_group: Object,
        the_location: ft::Location,
        member: Object,
    ) -> Result<Object, object_group_manager::AddMemberError> {
        Ok(self.0.add_member(&object_group, &the_location, member)?)
    }

    fn remove_member(
        &mut self,
        object_group: Object,
        the_location: ft::Location,
    ) -> Result<Object, object_group_manager::RemoveMemberError> {
        Ok(self.0.remove_member(&object_group, &the_location)?)
    }

    fn locations_of_members(
        &mut self,
        object_group: Object,
    ) -> Result<ft::Locations, object_group_manager::LocationsOfMembersError> {
        Ok(self.0.locations(&object_group)?)
    }

    fn get_object_group_id(
        &mut self,
        object_group: Object,
    ) -> Result<ft::ObjectGroupId, object_group_manager::GetObjectGroupIdError> {
        Ok(self.0.group_of(&object_group)?)
    }

    fn get_object_group_ref(
        &mut self,
        object_group: Object,
    ) -> Result<Object, object_group_manager::GetObjectGroupRefError> {
        Ok(self.0.current_reference(&object_group)?)
    }

    fn get_member_ref(
        &mut self,
        object_group: Object,
        loc: ft::Location,
    ) -> Result<Object, object_group_manager::GetMemberRefError> {
        Ok(self.0.member_reference(&object_group, &loc)?)
    }

    fn groups_at_location(
        &mut self,
        the_location: ft::Location,
    ) -> Result<pg::ObjectGroups, SystemException> {
        Ok(self.0.groups_at(&the_location))
    }

    fn get_object_group_ref_from_id(
        &mut self,
        group_id: ft::ObjectGroupId,
    ) -> Result<Object, object_group_manager::GetObjectGroupRefFromIdError> {
        Ok(self.0.group(group_id).map(|group| group.reference.clone())?)
    }
}

impl<D: Transport> pg::GenericFactory for TaoView<'_, D> {
    fn create_object(
        &mut self,
        type_id: ft::TypeId,
        the_criteria: ft::Criteria,
    ) -> Result<(Object, Any), generic_factory::CreateObjectError> {
        Ok(self.0.create_object(type_id, &the_criteria)?)
    }

    fn delete_object(
        &mut self,
        factory_creation_id: Any,
    ) -> Result<(), generic_factory::DeleteObjectError> {
        Ok(self.0.delete_object(&factory_creation_id)?)
    }
}

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
        Ok(self.0.notifier().ok_or(Fault::InterfaceNotFound)?)
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
