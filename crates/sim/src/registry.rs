//! The naming service as a servant of the simulation: each object of the log is a name in it, bound
//! to the last reference of its kind.
//!
//! What it is not: a model. It is the room `naming`, called through the stubs that clients have, by
//! the same octets.
//!
//! Invariant: what is bound is a function of the references that were appended, in their order.

use crate::servant::Reference;
use quorba_corba::{Home, Local, Object};
use quorba_idl::cos_naming::{Name, NameComponent, NamingContextStub};
use quorba_naming::{Limits, NamingService, ROOT_KEY};
use std::fmt;

/// The context of all names.
const CONTEXT: &str = "objects";
/// One reference in so many leaves an iterator behind.
const ITERATOR_EVERY: u64 = 8;

/// See the module's text.
pub(crate) struct Registry(NamingService);

fn home() -> Home {
    Home { addresses: vec![("names".to_owned(), 2809)], prefix: Vec::new() }
}

/// Where the objects are that are bound.
fn elsewhere() -> Home {
    Home { addresses: vec![("clients".to_owned(), 1)], prefix: Vec::new() }
}

fn part(id: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: String::new() }
}

fn name_of(object: u64) -> Name {
    vec![part(CONTEXT), part(&format!("object-{object}"))]
}

impl Registry {
    pub(crate) fn new() -> Self {
        let mut registry = Self::empty();
        let made = registry.root(|root| root.bind_new_context(&vec![part(CONTEXT)]));
        made.expect("nothing is bound yet");
        registry
    }

    fn empty() -> Self {
        let limits = Limits { iterators_max: 5, ..Limits::default() };
        Self(NamingService::new(home(), limits))
    }

    fn root<R>(&mut self, call: impl FnOnce(&mut NamingContextStub<'_>) -> R) -> R {
        let mut local = Local::new(&mut self.0, ROOT_KEY.as_bytes());
        call(&mut NamingContextStub(&mut local))
    }

    /// Binds the object of a reference to it.
    pub(crate) fn bind(&mut self, reference: Reference) {
        let object = elsewhere().object("IDL:Reference:1.0", &reference.0.to_be_bytes());
        let name = name_of(reference.object());
        self.root(|root| root.rebind(&name, &object)).expect("an object, or nothing, is bound");
        if reference.0.is_multiple_of(ITERATOR_EVERY) {
            let context = self.root(|root| root.resolve(&vec![part(CONTEXT)]));
            let context = context.expect("it was bound at the beginning");
            let key = home().key_of(&context).expect("one of its own");
            let mut local = Local::new(&mut self.0, &key);
            NamingContextStub(&mut local).list(&1).expect("a list");
        }
    }

    /// What an object is bound to; 0 if it is not.
    pub(crate) fn resolve(&mut self, object: u64) -> u64 {
        let found = self.root(|root| root.resolve(&name_of(object)));
        found.ok().and_then(|found| number(&found)).unwrap_or(0)
    }

    /// A planted bug loses the first name.
    pub(crate) fn lose_one(&mut self) {
        let bound = (0..crate::servant::OBJECTS).find(|object| self.resolve(*object) > 0);
        if let Some(object) = bound {
            self.root(|root| root.unbind(&name_of(object))).expect("it is bound");
        }
    }

    pub(crate) fn state(&self) -> Vec<u8> {
        self.0.state()
    }

    /// Another one, from a state.
    pub(crate) fn from_state(state: &[u8]) -> Option<Self> {
        let mut registry = Self::empty();
        registry.0.take_over(state).ok()?;
        Some(registry)
    }
}

fn number(object: &Object) -> Option<u64> {
    let key = elsewhere().key_of(object)?;
    Some(u64::from_be_bytes(key.try_into().ok()?))
}

impl Clone for Registry {
    fn clone(&self) -> Self {
        Self::from_state(&self.state()).expect("a state of one is one for others")
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({} bindings)", self.0.bindings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bound_to_the_last_reference_and_survive_a_transfer() {
        let mut registry = Registry::new();
        assert_eq!(registry.resolve(1), 0);
        for reference in [1, 5, 2, 8, 16, 24] {
            registry.bind(Reference(reference));
        }
        assert_eq!([0, 1, 2, 3].map(|object| registry.resolve(object)), [24, 5, 2, 0]);
        let mut copy = registry.clone();
        assert_eq!(copy.state(), registry.state());
        copy.lose_one();
        assert_eq!((copy.resolve(0), registry.resolve(0)), (0, 24));
    }
}
