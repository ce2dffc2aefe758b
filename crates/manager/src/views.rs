//! What the manager's two forms have in common: the operations of which only the module differs.
//!
//! Invariant: nothing is decided here.

/// PropertyManager, ObjectGroupManager with `more` operations, and GenericFactory of the module
/// `idl`, for a view of the manager.
macro_rules! managers {
    ($view:ident, $idl:ident, $flavour:expr, { $($more:tt)* }) => {
        impl<D: Transport> $idl::PropertyManager for $view<'_, D> {
            fn set_default_properties(
                &mut self,
                props: ft::Properties,
            ) -> Result<(), $idl::property_manager::SetDefaultPropertiesError> {
                Ok(self.0.set_defaults(&props)?)
            }

            fn get_default_properties(&mut self) -> Result<ft::Properties, SystemException> {
                Ok(self.0.defaults($flavour))
            }

            fn remove_default_properties(
                &mut self,
                props: ft::Properties,
            ) -> Result<(), $idl::property_manager::RemoveDefaultPropertiesError> {
                Ok(self.0.remove_defaults(&props)?)
            }

            fn set_type_properties(
                &mut self,
                type_id: ft::TypeId,
                overrides: ft::Properties,
            ) -> Result<(), $idl::property_manager::SetTypePropertiesError> {
                Ok(self.0.set_of_type(type_id, &overrides)?)
            }

            fn get_type_properties(
                &mut self,
                type_id: ft::TypeId,
            ) -> Result<ft::Properties, SystemException> {
                Ok(self.0.of_type(&type_id, $flavour))
            }

            fn remove_type_properties(
                &mut self,
                type_id: ft::TypeId,
                props: ft::Properties,
            ) -> Result<(), $idl::property_manager::RemoveTypePropertiesError> {
                Ok(self.0.remove_of_type(&type_id, &props)?)
            }

            fn set_properties_dynamically(
                &mut self,
                object_group: Object,
                overrides: ft::Properties,
            ) -> Result<(), $idl::property_manager::SetPropertiesDynamicallyError> {
                Ok(self.0.set_dynamically(&object_group, &overrides)?)
            }

            fn get_properties(
                &mut self,
                object_group: Object,
            ) -> Result<ft::Properties, $idl::property_manager::GetPropertiesError> {
                Ok(self.0.properties_of(&object_group, $flavour)?)
            }
        }

        impl<D: Transport> $idl::ObjectGroupManager for $view<'_, D> {
            fn create_member(
                &mut self,
                object_group: Object,
                the_location: ft::Location,
                type_id: ft::TypeId,
                the_criteria: ft::Criteria,
            ) -> Result<Object, $idl::object_group_manager::CreateMemberError> {
                Ok(self.0.create_member(&object_group, &the_location, type_id, &the_criteria)?)
            }

            fn add_member(
                &mut self,
                object_group: Object,
                the_location: ft::Location,
                member: Object,
            ) -> Result<Object, $idl::object_group_manager::AddMemberError> {
                Ok(self.0.add_member(&object_group, &the_location, member)?)
            }

            fn remove_member(
                &mut self,
                object_group: Object,
                the_location: ft::Location,
            ) -> Result<Object, $idl::object_group_manager::RemoveMemberError> {
                Ok(self.0.remove_member(&object_group, &the_location)?)
            }

            fn locations_of_members(
                &mut self,
                object_group: Object,
            ) -> Result<ft::Locations, $idl::object_group_manager::LocationsOfMembersError> {
                Ok(self.0.locations(&object_group)?)
            }

            fn get_object_group_id(
                &mut self,
                object_group: Object,
            ) -> Result<ft::ObjectGroupId, $idl::object_group_manager::GetObjectGroupIdError> {
                Ok(self.0.group_of(&object_group)?)
            }

            fn get_object_group_ref(
                &mut self,
                object_group: Object,
            ) -> Result<Object, $idl::object_group_manager::GetObjectGroupRefError> {
                Ok(self.0.current_reference(&object_group)?)
            }

            fn get_member_ref(
                &mut self,
                object_group: Object,
                loc: ft::Location,
            ) -> Result<Object, $idl::object_group_manager::GetMemberRefError> {
                Ok(self.0.member_reference(&object_group, &loc)?)
            }

            $($more)*
        }

        impl<D: Transport> $idl::GenericFactory for $view<'_, D> {
            fn create_object(
                &mut self,
                type_id: ft::TypeId,
                the_criteria: ft::Criteria,
            ) -> Result<(Object, Any), $idl::generic_factory::CreateObjectError> {
                Ok(self.0.create_object(type_id, &the_criteria)?)
            }

            fn delete_object(
                &mut self,
                factory_creation_id: Any,
            ) -> Result<(), $idl::generic_factory::DeleteObjectError> {
                Ok(self.0.delete_object(&factory_creation_id)?)
            }
        }
    };
}

pub(crate) use managers;
