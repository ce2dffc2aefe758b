//! What applications register: factories, as TAO has it (`PortableGroup::FactoryRegistry`), and a
//! fault notifier in place of the domain's own.
//!
//! Invariant: a role has one type, and one factory at a location.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Home, Object, Transport, raise_system};
use quorba_idl::quorba::domain::GroupError;
use quorba_idl::{ft, tao_ft};

use crate::fault::Fault;
use crate::manager::{Manager, Registered};
use crate::property::{Flavour, id_of};

/// The group of the domain's own notifier, and the keys of its objects.
const OWN_NOTIFIER: &str = "fault-notifier";
const NOTIFIER_KEY: &str = "FaultNotifier";
const TAO_NOTIFIER_KEY: &str = "TAO/FaultNotifier";

impl<D: Transport> Manager<D> {
    pub(crate) fn register_notifier(&mut self, notifier: Object) -> Result<(), SystemException> {
        let notifier = Some(notifier).filter(|notifier| !notifier.is_nil());
        self.set_common(|state| state.notifier = notifier).map_err(|fault| fault.unknown())
    }

    /// The notifier that was registered.
    #[must_use]
    pub fn registered_notifier(&self) -> Option<Object> {
        self.state.notifier.clone()
    }

    /// The notifier that was registered; else that of the domain, if it has one, in this form.
    pub(crate) fn notifier(&mut self, flavour: Flavour) -> Result<Object, Fault> {
        if let Some(registered) = self.registered_notifier() {
            return Ok(registered);
        }
        let own = match self.domain().group(&String::from(OWN_NOTIFIER)) {
            Ok(info) => info.reference,
            Err(GroupError::NoSuchGroup(_)) => return Err(Fault::InterfaceNotFound),
            Err(GroupError::System(exception)) => return Err(exception.into()),
        };
        let endpoints = own.0.endpoints();
        let Some(prefix) =
            endpoints.first().and_then(|one| one.object_key.strip_suffix(NOTIFIER_KEY.as_bytes()))
        else {
            // Somebody has made another group of that name.
            return Err(Fault::InterfaceNotFound);
        };
        if flavour == Flavour::Omg {
            return Ok(own);
        }
        // A group's reference is of one object only; this is another one of the same servers.
        let addresses = endpoints.iter().map(|one| (one.host.to_string(), one.port)).collect();
        let home = Home { addresses, prefix: prefix.to_vec() };
        Ok(home.object(tao_ft::FAULT_NOTIFIER.id(), TAO_NOTIFIER_KEY.as_bytes()))
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
