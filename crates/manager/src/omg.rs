//! The manager in the standard's form.
//!
//! Invariant: nothing is decided here.

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Object, Transport};
use quorba_idl::ft::{self, generic_factory, object_group_manager, property_manager};

use crate::fault::Fault;
use crate::manager::Manager;
use crate::property::Flavour;

pub(crate) struct OmgView<'m, D>(pub(crate) &'m mut Manager<D>);

impl<D: Transport> ft::PropertyManager for OmgView<'_, D> {
    fn set_default_properties(
        &mut self,
        props: ft::Properties,
    ) -> Result<(), property_manager::SetDefaultPropertiesError> {
        Ok(self.0.set_defaults(&props)?)
    }

    fn get_default_properties(&mut self) -> Result<ft::Properties, SystemException> {
        Ok(self.0.defaults(Flavour::Omg))
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
        Ok(self.0.of_type(&type_id, Flavour::Omg))
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
        Ok(self.0.properties_of(&object_group, Flavour::Omg)?)
    }
}

impl<D: Transport> ft::ObjectGroupManager for OmgView<'_, D> {
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

    fn set_primary_member(
        &mut self,
        object_group: Object,
        the_location: ft::Location,
    ) -> Result<Object, object_group_manager::SetPrimaryMemberError> {
        Ok(self.0.set_primary(&object_group, &the_location)?)
    }
}

impl<D: Transport> ft::GenericFactory for OmgView<'_, D> {
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

impl<D: Transport> ft::ReplicationManager for OmgView<'_, D> {
    fn register_fault_notifier(&mut self, fault_notifier: Object) -> Result<(), SystemException> {
        self.0.register_notifier(fault_notifier)
    }

    fn get_fault_notifier(
        &mut self,
    ) -> Result<Object, ft::replication_manager::GetFaultNotifierError> {
        Ok(self.0.notifier().ok_or(Fault::InterfaceNotFound)?)
    }
}
