//! Every binding of a naming service, context by context.
//!
//! What it is not: a snapshot. Contexts are listed one after the other, while others bind.
//!
//! Invariants: a context is listed once, however many names it has; it is given out by a number
//! before its own bindings are; the root is number 0. A context of another service is not entered.

use std::collections::{BTreeMap, VecDeque};

use quorba_corba::Object;
use quorba_giop::Endian;
use quorba_idl::cos_naming::naming_context::NotFoundReason;
use quorba_idl::cos_naming::{BindingType, Name, NameComponent};

use super::names::Names;
use super::refusal::Refusal;
use crate::failure::Failure;

/// What a name is bound to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound {
    Object(Object),
    /// A context of the service that is gone through: its number.
    Context(u64),
    /// A context of another service.
    Foreign(Object),
}

/// One binding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// The number of the context that it is in.
    pub(super) context: u64,
    pub(super) component: NameComponent,
    pub(super) bound: Bound,
}

/// A context that is still to be listed.
struct Open {
    number: u64,
    object: Object,
    path: Name,
}

/// Gives out every binding below `root`, and the way to it from there.
pub(super) fn walk(
    names: &mut Names,
    root: &Object,
    mut give: impl FnMut(&Name, Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Contexts by what their references say: a service gives equal ones for one context.
    let mut known = BTreeMap::from([(root.0.encode(Endian::Big), 0_u64)]);
    let first = Open { number: 0, object: root.clone(), path: Name::new() };
    let mut open = VecDeque::from([first]);
    while let Some(Open { number, object, path }) = open.pop_front() {
        let list = names.list(&object).map_err(|refusal| names.failure(refusal, &path))?;
        for binding in list {
            let Some(component) = binding.binding_name.into_iter().next() else { continue };
            let mut full = path.clone();
            full.push(component.clone());
            let one = Name::from([component.clone()]);
            let object = match names.resolve(&object, &one) {
                Ok(object) => object,
                // Unbound since it was listed.
                Err(Refusal::NotFound(NotFoundReason::MissingNode, _)) => continue,
                Err(refusal) => return Err(names.failure(refusal, &full)),
            };
            let bound = match binding.binding_type {
                BindingType::Nobject => Bound::Object(object),
                BindingType::Ncontext if !names.is_own(&object) => Bound::Foreign(object),
                BindingType::Ncontext => {
                    let next = known.len() as u64;
                    let number = *known.entry(object.0.encode(Endian::Big)).or_insert(next);
                    if number == next {
                        open.push_back(Open { number, object, path: full.clone() });
                    }
                    Bound::Context(number)
                }
            };
            give(&full, Item { context: number, component, bound })?;
        }
    }
    Ok(())
}
