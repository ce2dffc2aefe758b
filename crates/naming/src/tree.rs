//! What is bound: contexts, each with its bindings, under numbers.
//!
//! What it is not: a tree in the strict sense. A context may be bound in several others, in
//! none, or in itself, and a binding may outlive the context that it is to.
//!
//! Invariants: names are in the order of their octets; a binding costs little more than its name
//! and its reference, which is kept as it is written.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound as End;

use quorba_corba::Object;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{Endian, Ior};
use quorba_idl::cos_naming::NameComponent;

/// The context that is always there.
pub(crate) const ROOT: u64 = 0;

/// A component of a name as it is kept: id, a zero, kind. Neither has a zero in it.
pub(crate) type Key = Box<[u8]>;

/// What a name is bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// An object, by its reference.
    Object(Box<[u8]>),
    /// A context of this service, which may be gone.
    Context(u64),
    /// A context of another service, by its reference.
    Foreign(Box<[u8]>),
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

/// A reference as it is kept.
pub(crate) fn packed(object: &Object) -> Box<[u8]> {
    let mut writer = Writer::new(Endian::Little);
    object.0.write(&mut writer);
    writer.finish().into_boxed_slice()
}

/// And back.
pub(crate) fn unpacked(octets: &[u8]) -> Object {
    Ior::read(&mut Reader::new(octets, Endian::Little)).map_or(Object::nil(), Object)
}

impl Tree {
    /// With an empty root.
    pub(crate) fn new() -> Self {
        let contexts = BTreeMap::from([(ROOT, Bindings::new())]);
        Self { contexts, next_context: ROOT + 1, bindings: 0 }
    }

    /// What `key` is bound to in `context`.
    pub(crate) fn get(&self, context: u64, key: &[u8]) -> Option<&Bound> {
        self.contexts.get(&context)?.get(key)
    }

    /// Binds `key` in `context`, which exists, to something, or to something else.
    pub(crate) fn put(&mut self, context: u64, key: Key, bound: Bound) {
        if let Some(bindings) = self.contexts.get_mut(&context)
            && bindings.insert(key, bound).is_none()
        {
            self.bindings += 1;
        }
    }

    /// Unbinds it; whether it was bound.
    pub(crate) fn remove(&mut self, context: u64, key: &[u8]) -> bool {
        let bindings = self.contexts.get_mut(&context);
        let removed = bindings.is_some_and(|bindings| bindings.remove(key).is_some());
        self.bindings -= u64::from(removed);
        removed
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
