//! The PropertyManager (FT-CORBA §23.3.3): defaults, those of types, and of single groups.
//!
//! Invariant: an operation that raises changes nothing.

use alloc::string::String;

use quorba_corba::giop::ExceptionKind;
use quorba_corba::{Object, Transport, raise_system};
use quorba_idl::ft;

use crate::fault::Fault;
use crate::manager::Manager;
use crate::property::{self, Flavour, Level, Values};

/// `above` goes before `below`.
pub(crate) fn over(below: &Values, above: &Values) -> Values {
    let mut values = below.clone();
    values.extend(above.iter().map(|(key, value)| (*key, value.clone())));
    values
}

fn check(values: &Values) -> Result<(), Fault> {
    property::conflict(values).map_or(Ok(()), |property| Err(Fault::InvalidProperty(property)))
}

/// Takes properties away, all or none.
fn without(values: &Values, properties: &ft::Properties) -> Result<Values, Fault> {
    let keys = property::keys(properties)?;
    let mut left = values.clone();
    for (key, property) in keys.iter().zip(properties) {
        if left.remove(key).is_none() {
            return Err(Fault::InvalidProperty(property.clone()));
        }
    }
    Ok(left)
}

impl<D: Transport> Manager<D> {
    pub(crate) fn set_defaults(&mut self, properties: &ft::Properties) -> Result<(), Fault> {
        let set = over(&self.state.defaults, &property::read(properties, Level::Default)?);
        check(&set)?;
        self.set_common(|state| state.defaults = set)
    }

    pub(crate) fn defaults(&self, flavour: Flavour) -> ft::Properties {
        property::said(&self.state.defaults, flavour)
    }

    pub(crate) fn remove_defaults(&mut self, properties: &ft::Properties) -> Result<(), Fault> {
        let left = without(&self.state.defaults, properties)?;
        self.set_common(|state| state.defaults = left)
    }

    pub(crate) fn set_of_type(
        &mut self,
        type_id: String,
        properties: &ft::Properties,
    ) -> Result<(), Fault> {
        let none = Values::new();
        let before = self.state.types.get(&type_id).unwrap_or(&none);
        let set = over(before, &property::read(properties, Level::Type)?);
        check(&over(&self.state.defaults, &set))?;
        let is_new = !self.state.types.contains_key(&type_id);
        let is_long = type_id.len() > self.limits.type_id_bytes_max;
        if is_new && (self.state.types.len() >= self.limits.types_max || is_long) {
            return Err(raise_system(ExceptionKind::NoResources).into());
        }
        self.set_common(|state| drop(state.types.insert(type_id, set)))
    }

    /// Those of the type, on top of the defaults.
    pub(crate) fn of_type(&self, type_id: &str, flavour: Flavour) -> ft::Properties {
        property::said(&self.values_of_type(type_id), flavour)
    }

    pub(crate) fn values_of_type(&self, type_id: &str) -> Values {
        match self.state.types.get(type_id) {
            Some(of_type) => over(&self.state.defaults, of_type),
            None => self.state.defaults.clone(),
        }
    }

    pub(crate) fn remove_of_type(
        &mut self,
        type_id: &str,
        properties: &ft::Properties,
    ) -> Result<(), Fault> {
        let none = Values::new();
        let left = without(self.state.types.get(type_id).unwrap_or(&none), properties)?;
        self.set_common(|state| match left.is_empty() {
            true => drop(state.types.remove(type_id)),
            false => drop(state.types.insert(String::from(type_id), left)),
        })
    }

    pub(crate) fn set_dynamically(
        &mut self,
        reference: &Object,
        properties: &ft::Properties,
    ) -> Result<(), Fault> {
        let id = self.group_of(reference)?;
        let set = property::read(properties, Level::Dynamic)?;
        let group = self.group(id)?;
        let dynamic = over(&group.dynamic, &set);
        if let Some(wrong) = property::conflict(&over(&group.creation, &dynamic)) {
            // The one that does not fit is among those that were there, or is one of these.
            let fits = |one: &&ft::Property| one.nam == wrong.nam;
            let said = properties.iter().find(fits).cloned().unwrap_or(wrong);
            return Err(Fault::InvalidProperty(said));
        }
        let mut changed = group.clone();
        changed.dynamic = dynamic;
        let changed = self.change(id, changed, false);
        if let (Err(Fault::ObjectNotCreated), Some(first)) = (&changed, properties.first()) {
            // The domain does not take it, whatever it is.
            return Err(Fault::InvalidProperty(first.clone()));
        }
        changed?;
        // They are set, whatever comes of this; who is missing is looked for again.
        let _repaired = self.repair(id, None);
        Ok(())
    }

    pub(crate) fn properties_of(
        &self,
        reference: &Object,
        flavour: Flavour,
    ) -> Result<ft::Properties, Fault> {
        let group = self.group(self.group_of(reference)?)?;
        Ok(property::said(&group.properties(), flavour))
    }
}
