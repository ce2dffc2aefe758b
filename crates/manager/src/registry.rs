//! What applications register: factories, as TAO has it (`PortableGroup::FactoryRegistry`), and a
//! fault notifier.
//!
//! Invariant: a role has one type, and one factory at a location.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Object, Transport, raise_system};
use quorba_idl::ft;

use crate::fault::Fault;
use crate::manager::{Manager, Registered};
use crate::property::id_of;

impl<D: Transport> Manager<D> {
    pub(crate) fn register_notifier(&mut self, notifier: Object) -> Result<(), SystemException> {
        let notifier = Some(notifier).filter(|notifier| !notifier.is_nil());
        self.set_common(|state| state.notifier = notifier).map_err(|fault| fault.unknown())
    }

    /// The notifier that was registered.
    #[must_use]
    pub fn notifier(&self) -> Option<Object> {
        self.state.notifier.clone()
    }

    /// Those that create objects of a type, by role and location.
    pub(crate) fn registered(&self, type_id: &str) -> Vec<ft::FactoryInfo> {
        let of_type = self.state.registry.values().filter(|one| one.type_id == type_id);
        of_type.map(|one| one.info.clone()).collect()
    }

    pub(crate) fn register(
        &mut self,
        role: String,
        type_id: String,
        info: ft::FactoryInfo,
    ) -> Result<(), Fault> {
        let location = id_of(&info.the_location);
        let location = location.ok_or(raise_system(ExceptionKind::BadParam))?;
        let key = (role, String::from(location));
        if self.of_role(&key.0).any(|one| one.type_id != type_id) {
            return Err(Fault::TypeConflict);
        }
        if self.state.registry.contains_key(&key) {
            return Err(Fault::MemberAlreadyPresent);
        }
        let is_full = self.state.registry.len() >= self.limits.factories_max;
        if is_full || type_id.len() + key.0.len() > self.limits.type_id_bytes_max {
            return Err(raise_system(ExceptionKind::NoResources).into());
        }
        let registered = Registered { type_id, info };
        self.set_common(|state| drop(state.registry.insert(key, registered)))
    }

    pub(crate) fn of_role<'m>(&'m self, role: &'m str) -> impl Iterator<Item = &'m Registered> {
        let registry = self.state.registry.iter();
        registry.filter(move |((of, _), _)| of == role).map(|(_, one)| one)
    }

    pub(crate) fn unregister(
        &mut self,
        role: String,
        location: &ft::Location,
    ) -> Result<(), Fault> {
        let at = id_of(location).ok_or(Fault::MemberNotFound)?;
        let key = (role, String::from(at));
        if !self.state.registry.contains_key(&key) {
            return Err(Fault::MemberNotFound);
        }
        self.set_common(|state| drop(state.registry.remove(&key)))
    }

    /// Forgets those that are not to stay.
    pub(crate) fn unregister_all(
        &mut self,
        stays: impl Fn(&str, &str) -> bool,
    ) -> Result<(), Fault> {
        self.set_common(|state| state.registry.retain(|(role, location), _| stays(role, location)))
    }
}
