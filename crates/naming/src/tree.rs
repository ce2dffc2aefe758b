//! What is bound: contexts, each with its bindings, under numbers.
//!
//! What it is not: a tree in the strict sense. A context may be bound in several others, in
//! none, or in itself, and a binding may outlive the context that it is to.
//!
//! Invariants: names are in the order of their octets; a binding costs little more than its name
//! and its object key.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound as End;

use quorba_idl::cos_naming::NameComponent;

use crate::reference::{Reference, Shapes};

/// The context that is always there.
pub(crate) const ROOT: u64 = 0;

/// A component of a name as it is kept: id, a zero, kind. Neither has a zero in it.
pub(crate) type Key = Box<[u8]>;

/// What a name is bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// An object, by its reference.
    Object(Reference),
    /// A context of this service, which may be gone.
    Context(u64),
    /// A context of another service, by its reference.
    Foreign(Reference),
}

/// The bindings of one context.
pub(crate) type Bindings = BTreeMap<Key, Bound>;

/// Every context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tree {
    pub(crate) contexts: BTreeMap<u64, Bindings>,
    /// The number of the next context; none is given out twice.
    pub(crate) next_context: u64,
    /// How many bindings there are in all contexts.
    pub(crate) bindings: u64,
    /// What the references in them have in common.
    pub(crate) shapes: Shapes,
}

/// A component as a key.
pub(crate) fn key(component: &NameComponent) -> Key {
    let mut key = Vec::with_capacity(component.id.len() + 1 + component.kind.len());
    key.extend_from_slice(component.id.as_bytes());
    key.push(0);
    key.extend_from_slice(component.kind.as_bytes());
    key.into_boxed_slice()
}

/// A key as a component.
pub(crate) fn component(key: &[u8]) -> NameComponent {
    let at = key.iter().position(|octet| *octet == 0).unwrap_or(key.len());
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let (id, kind) = key.split_at(at);
    NameComponent { id: text(id), kind: text(kind.get(1..).unwrap_or(&[])) }
}

impl Tree {
    /// With an empty root.
    pub(crate) fn new() -> Self {
        let contexts = BTreeMap::from([(ROOT, Bindings::new())]);
        Self { contexts, next_context: ROOT + 1, bindings: 0, shapes: Shapes::default() }
    }

    /// What `key` is bound to in `context`.
    pub(crate) fn get(&self, context: u64, key: &[u8]) -> Option<&Bound> {
        self.contexts.get(&context)?.get(key)
    }

    /// Binds `key` in `context`, which exists, to something, or to something else.
    pub(crate) fn put(&mut self, context: u64, key: Key, bound: Bound) {
        let Some(bindings) = self.contexts.get_mut(&context) else { return };
        match bindings.insert(key, bound) {
            Some(before) => self.forget(before),
            None => self.bindings += 1,
        }
    }

    /// Unbinds it; whether it was bound.
    pub(crate) fn remove(&mut self, context: u64, key: &[u8]) -> bool {
        let bindings = self.contexts.get_mut(&context);
        let Some(removed) = bindings.and_then(|bindings| bindings.remove(key)) else {
            return false;
        };
        self.bindings -= 1;
        self.forget(removed);
        true
    }

    fn forget(&mut self, bound: Bound) {
        if let Bound::Object(reference) | Bound::Foreign(reference) = bound {
            self.shapes.forget(reference);
        }
    }

    /// A new context, which is bound nowhere.
    pub(crate) fn new_context(&mut self) -> u64 {
        let number = self.next_context;
        self.next_context += 1;
        self.contexts.insert(number, Bindings::new());
        number
    }

    /// The bindings of a context behind `after`, or all, in order.
    pub(crate) fn behind(
        &self,
        context: u64,
        after: Option<&[u8]>,
    ) -> impl Iterator<Item = (&Key, &Bound)> {
        let range = (after.map_or(End::Unbounded, End::Excluded), End::Unbounded);
        let bindings = self.contexts.get(&context);
        bindings.map(|bindings| bindings.range::<[u8], _>(range)).into_iter().flatten()
    }
}
