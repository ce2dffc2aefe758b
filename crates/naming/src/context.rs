//! A context, while it is called.
//!
//! Invariant: an operation that raises has changed nothing.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Object, raise_system};
use quorba_idl::cos_naming::naming_context::{
    AlreadyBound, BindContextError, BindError, BindNewContextError, CannotProceed, DestroyError,
    InvalidName, NotEmpty, NotFound, NotFoundReason, RebindContextError, RebindError, ResolveError,
    UnbindError,
};
use quorba_idl::cos_naming::naming_context_ext::{
    InvalidAddress, ResolveStrError, ToNameError, ToStringError, ToUrlError,
};
use quorba_idl::cos_naming::{
    Binding, BindingList, BindingType, Name, NameComponent, NamingContext, NamingContextExt,
};

use crate::iterator::{Cursor, expire};
use crate::name::{self, UrlFault};
use crate::reference::{Reference, octets};
use crate::service::NamingService;
use crate::tree::{Bound, Key, ROOT, component, key};

/// One context of a service.
pub(crate) struct ContextView<'s> {
    pub(crate) service: &'s mut NamingService,
    pub(crate) number: u64,
}

/// Why a name leads nowhere: what all operations with names have in common.
enum Refusal {
    NotFound(NotFound),
    CannotProceed(CannotProceed),
    InvalidName,
    System(SystemException),
}

macro_rules! refused_as {
    ($($error:ident),*) => {
        $(impl From<Refusal> for $error {
            fn from(refusal: Refusal) -> Self {
                match refusal {
                    Refusal::NotFound(exception) => Self::NotFound(exception),
                    Refusal::CannotProceed(exception) => Self::CannotProceed(exception),
                    Refusal::InvalidName => Self::InvalidName(InvalidName {}),
                    Refusal::System(exception) => Self::System(exception),
                }
            }
        })*
    };
}

refused_as!(
    BindError,
    RebindError,
    BindContextError,
    RebindContextError,
    ResolveError,
    UnbindError,
    BindNewContextError,
    ResolveStrError
);

fn not_found(why: NotFoundReason, rest: &[NameComponent]) -> Refusal {
    Refusal::NotFound(NotFound { why, rest_of_name: rest.to_vec() })
}

/// A name's last component, as a key, and the context of this service that it is bound in.
struct Place {
    context: u64,
    key: Key,
    rest: [NameComponent; 1],
}

impl ContextView<'_> {
    /// Goes through all but the last component.
    fn place(&self, name: &Name) -> Result<Place, Refusal> {
        let limits = self.service.limits;
        let too_long =
            |part: &NameComponent| part.id.len() + part.kind.len() > limits.component_bytes_max;
        if name.len() > limits.components_max || name.iter().any(too_long) {
            return Err(Refusal::System(raise_system(ExceptionKind::ImpLimit)));
        }
        let (last, before) = name.split_last().ok_or(Refusal::InvalidName)?;
        let mut context = self.number;
        for (index, part) in before.iter().enumerate() {
            let from_here = name.get(index..).unwrap_or(&[]);
            match self.service.tree.get(context, &key(part)) {
                None => return Err(not_found(NotFoundReason::MissingNode, from_here)),
                Some(Bound::Object(_)) => {
                    return Err(not_found(NotFoundReason::NotContext, from_here));
                }
                Some(Bound::Context(number)) => {
                    // It may have been destroyed and not unbound.
                    if !self.service.tree.contexts.contains_key(number) {
                        return Err(not_found(NotFoundReason::MissingNode, from_here));
                    }
                    context = *number;
                }
                Some(Bound::Foreign(reference)) => {
                    let rest_of_name = name.get(index + 1..).unwrap_or(&[]).to_vec();
                    let cxt = reference.object();
                    return Err(Refusal::CannotProceed(CannotProceed { cxt, rest_of_name }));
                }
            }
        }
        Ok(Place { context, key: key(last), rest: [last.clone()] })
    }

    fn at(&self, place: &Place) -> Option<&Bound> {
        self.service.tree.get(place.context, &place.key)
    }

    /// A reference to keep. It is packed last, when nothing can be refused any more.
    fn measured(&self, object: &Object) -> Result<Vec<u8>, SystemException> {
        let octets = octets(object);
        if octets.len() > self.service.limits.reference_bytes_max {
            return Err(raise_system(ExceptionKind::ImpLimit));
        }
        Ok(octets)
    }

    /// A reference to a context, to keep.
    fn measured_context(&self, object: &Object) -> Result<Vec<u8>, SystemException> {
        if object.is_nil() {
            return Err(raise_system(ExceptionKind::BadParam));
        }
        self.measured(object)
    }

    fn packed(&mut self, object: &Object, octets: &[u8]) -> Reference {
        self.service.tree.shapes.pack(object, octets)
    }

    fn packed_context(&mut self, object: &Object, octets: &[u8]) -> Bound {
        match self.service.own_context(object) {
            Some(number) => Bound::Context(number),
            None => Bound::Foreign(self.packed(object, octets)),
        }
    }

    /// Whether one more binding has room.
    fn has_room(&self) -> Result<(), SystemException> {
        if self.service.tree.bindings >= self.service.limits.bindings_max {
            return Err(raise_system(ExceptionKind::NoResources));
        }
        Ok(())
    }

    fn found(&self, name: &Name) -> Result<Object, Refusal> {
        let place = self.place(name)?;
        match self.at(&place) {
            None => Err(not_found(NotFoundReason::MissingNode, &place.rest)),
            Some(Bound::Object(reference) | Bound::Foreign(reference)) => Ok(reference.object()),
            Some(Bound::Context(number)) => Ok(self.service.context_object(*number)),
        }
    }

    fn create(&mut self) -> Result<u64, SystemException> {
        if self.service.tree.contexts.len() >= self.service.limits.contexts_max {
            return Err(raise_system(ExceptionKind::NoResources));
        }
        Ok(self.service.tree.new_context())
    }
}

/// A binding as it is listed.
pub(crate) fn listed((key, bound): (&Key, &Bound)) -> Binding {
    let binding_type = match bound {
        Bound::Object(_) => BindingType::Nobject,
        Bound::Context(_) | Bound::Foreign(_) => BindingType::Ncontext,
    };
    Binding { binding_name: Vec::from([component(key)]), binding_type }
}

impl NamingContext for ContextView<'_> {
    fn bind(&mut self, n: Name, obj: Object) -> Result<(), BindError> {
        let place = self.place(&n)?;
        if self.at(&place).is_some() {
            return Err(AlreadyBound {}.into());
        }
        let octets = self.measured(&obj)?;
        self.has_room()?;
        let bound = Bound::Object(self.packed(&obj, &octets));
        self.service.tree.put(place.context, place.key, bound);
        Ok(())
    }

    fn rebind(&mut self, n: Name, obj: Object) -> Result<(), RebindError> {
        let place = self.place(&n)?;
        match self.at(&place) {
            Some(Bound::Context(_) | Bound::Foreign(_)) => {
                return Err(not_found(NotFoundReason::NotObject, &place.rest).into());
            }
            Some(Bound::Object(_)) => {}
            None => self.has_room()?,
        }
        let octets = self.measured(&obj)?;
        let bound = Bound::Object(self.packed(&obj, &octets));
        self.service.tree.put(place.context, place.key, bound);
        Ok(())
    }

    fn bind_context(&mut self, n: Name, nc: Object) -> Result<(), BindContextError> {
        let octets = self.measured_context(&nc)?;
        let place = self.place(&n)?;
        if self.at(&place).is_some() {
            return Err(AlreadyBound {}.into());
        }
        self.has_room()?;
        let bound = self.packed_context(&nc, &octets);
        self.service.tree.put(place.context, place.key, bound);
        Ok(())
    }

    fn rebind_context(&mut self, n: Name, nc: Object) -> Result<(), RebindContextError> {
        let octets = self.measured_context(&nc)?;
        let place = self.place(&n)?;
        match self.at(&place) {
            Some(Bound::Object(_)) => {
                return Err(not_found(NotFoundReason::NotContext, &place.rest).into());
            }
            Some(Bound::Context(_) | Bound::Foreign(_)) => {}
            None => self.has_room()?,
        }
        let bound = self.packed_context(&nc, &octets);
        self.service.tree.put(place.context, place.key, bound);
        Ok(())
    }

    fn resolve(&mut self, n: Name) -> Result<Object, ResolveError> {
        Ok(self.found(&n)?)
    }

    fn unbind(&mut self, n: Name) -> Result<(), UnbindError> {
        let place = self.place(&n)?;
        if self.service.tree.remove(place.context, &place.key) {
            return Ok(());
        }
        Err(not_found(NotFoundReason::MissingNode, &place.rest).into())
    }

    fn new_context(&mut self) -> Result<Object, SystemException> {
        let number = self.create()?;
        Ok(self.service.context_object(number))
    }

    fn bind_new_context(&mut self, n: Name) -> Result<Object, BindNewContextError> {
        let place = self.place(&n)?;
        if self.at(&place).is_some() {
            return Err(AlreadyBound {}.into());
        }
        self.has_room()?;
        let number = self.create()?;
        self.service.tree.put(place.context, place.key, Bound::Context(number));
        Ok(self.service.context_object(number))
    }

    fn destroy(&mut self) -> Result<(), DestroyError> {
        let bindings = self.service.tree.contexts.get(&self.number);
        if bindings.is_some_and(|bindings| !bindings.is_empty()) {
            return Err(NotEmpty {}.into());
        }
        if self.number == ROOT {
            return Err(raise_system(ExceptionKind::NoPermission).into());
        }
        self.service.tree.contexts.remove(&self.number);
        let number = self.number;
        self.service.iterators.retain(|_, cursor| cursor.context != number);
        Ok(())
    }

    fn list(&mut self, how_many: u32) -> Result<(BindingList, Object), SystemException> {
        let count = how_many.min(self.service.limits.listed_max) as usize;
        let mut behind = self.service.tree.behind(self.number, None);
        let mut list = BindingList::new();
        let mut last = None;
        for binding in behind.by_ref().take(count) {
            last = Some(binding.0.clone());
            list.push(listed(binding));
        }
        let has_more = behind.next().is_some();
        drop(behind);
        if !has_more {
            return Ok((list, Object::nil()));
        }
        let used = expire(self.service);
        let number = Cursor { context: self.number, last, used }.begin(self.service);
        Ok((list, self.service.iterator_object(number)))
    }
}

impl NamingContextExt for ContextView<'_> {
    fn to_string(&mut self, n: Name) -> Result<String, ToStringError> {
        name::to_string(&n).map_err(|_| InvalidName {}.into())
    }

    fn to_name(&mut self, sn: String) -> Result<Name, ToNameError> {
        name::to_name(&sn).map_err(|_| InvalidName {}.into())
    }

    fn to_url(&mut self, addr: String, sn: String) -> Result<String, ToUrlError> {
        name::to_url(&addr, &sn).map_err(|fault| match fault {
            UrlFault::Address => InvalidAddress {}.into(),
            UrlFault::Name => InvalidName {}.into(),
        })
    }

    fn resolve_str(&mut self, sn: String) -> Result<Object, ResolveStrError> {
        let name = name::to_name(&sn).map_err(|_| Refusal::InvalidName)?;
        Ok(self.found(&name)?)
    }
}
