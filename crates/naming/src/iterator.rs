//! Iterators over the bindings of a context.
//!
//! What it is not: a copy. An iterator remembers the last name that it gave, and goes on behind
//! it; what is bound or unbound meanwhile is seen or not by where its name stands.
//!
//! Invariants: there are at most as many as the limit says, and the one that was made first ends
//! for a new one; one that nobody uses ends when a later call finds, by the time that the order
//! says, that it has rested for too long. Nothing ends by a clock of the process.

use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::raise_system;
use quorba_idl::cos_naming::{Binding, BindingIterator, BindingList, BindingType};

use crate::context::listed;
use crate::service::NamingService;
use crate::tree::Key;

/// Where an iterator stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    pub(crate) context: u64,
    /// The name that was given last.
    pub(crate) last: Option<Key>,
    /// When it was used last, in ordered time; 0: that was not known.
    pub(crate) used: u64,
}

/// Ends the iterators that have rested for too long; the ordered time of this call, or 0.
pub(crate) fn expire(service: &mut NamingService) -> u64 {
    let now = service.clock.as_mut().and_then(|clock| clock.now()).unwrap_or(0);
    let idle = service.limits.iterator_idle;
    // Where either time is not known nothing is said of how long it was.
    let rests = |cursor: &Cursor| now > 0 && cursor.used > 0 && now - now.min(cursor.used) > idle;
    service.iterators.retain(|_, cursor| !rests(cursor));
    now
}

impl Cursor {
    /// Makes an iterator of it; its number.
    pub(crate) fn begin(self, service: &mut NamingService) -> u64 {
        while service.iterators.len() >= service.limits.iterators_max.max(1) {
            service.iterators.pop_first();
        }
        let number = service.next_iterator;
        service.next_iterator += 1;
        service.iterators.insert(number, self);
        number
    }
}

/// One iterator of a service.
pub(crate) struct IteratorView<'s> {
    pub(crate) service: &'s mut NamingService,
    pub(crate) number: u64,
}

impl IteratorView<'_> {
    fn next(&mut self, count: usize) -> Result<BindingList, SystemException> {
        let now = expire(self.service);
        let Some(cursor) = self.service.iterators.get_mut(&self.number) else {
            // It has just ended.
            return Err(raise_system(ExceptionKind::ObjectNotExist));
        };
        cursor.used = now;
        let mut list = BindingList::new();
        let mut last = None;
        for binding in self.service.tree.behind(cursor.context, cursor.last.as_deref()).take(count)
        {
            last = Some(binding.0);
            list.push(listed(binding));
        }
        if let Some(last) = last.cloned() {
            cursor.last = Some(last);
        }
        Ok(list)
    }
}

impl BindingIterator for IteratorView<'_> {
    fn next_one(&mut self) -> Result<(bool, Binding), SystemException> {
        // The standard wants a binding where there is none: this one says nothing.
        let nothing = || Binding { binding_name: Vec::new(), binding_type: BindingType::Nobject };
        let next = self.next(1)?.pop();
        Ok((next.is_some(), next.unwrap_or_else(nothing)))
    }

    fn next_n(&mut self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        if how_many == 0 {
            return Err(raise_system(ExceptionKind::BadParam));
        }
        let list = self.next(how_many.min(self.service.limits.listed_max) as usize)?;
        Ok((!list.is_empty(), list))
    }

    fn destroy(&mut self) -> Result<(), SystemException> {
        self.service.iterators.remove(&self.number);
        Ok(())
    }
}
