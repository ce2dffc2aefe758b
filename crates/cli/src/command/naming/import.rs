//! Bindings from elsewhere, bound here.
//!
//! Invariants: what is there stays as it is unless the operator says otherwise; doing it again
//! after it was broken off adds what is missing.

use std::collections::BTreeMap;

use quorba_corba::Object;
use quorba_idl::cos_naming::Name;
use serde_json::json;

use super::names::{self, Names};
use super::refusal::Refusal;
use super::walk::{Bound, Item};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Of so many names that are bound to something else it is said which.
const CONFLICTS_TOLD: usize = 20;

/// What was done, for the operator.
#[derive(Debug, Default)]
struct Count {
    objects: u64,
    contexts: u64,
    foreign: u64,
    same: u64,
    replaced: u64,
    conflicts: u64,
}

/// An import under way.
pub(super) struct Import<'n> {
    to: &'n mut Names,
    /// Puts an object in the place of another one.
    replaces: bool,
    /// The contexts here, by their numbers there, and how they are called from the root; none where
    /// something else is bound.
    contexts: BTreeMap<u64, Option<(Object, Name)>>,
    count: Count,
    conflicts: Vec<String>,
}

impl<'n> Import<'n> {
    /// Into the context `root`.
    pub(super) fn new(to: &'n mut Names, root: Object, name: Name, replaces: bool) -> Self {
        let contexts = BTreeMap::from([(0, Some((root, name)))]);
        Self { to, replaces, contexts, count: Count::default(), conflicts: Vec::new() }
    }

    /// Binds one more.
    pub(super) fn add(&mut self, item: Item) -> Result<(), Failure> {
        let Some(known) = self.contexts.get(&item.context).cloned() else {
            let what = format!("context {} is not bound before what is in it", item.context);
            let next = "a file that quorba naming export wrote has them in order";
            return Err(Failure::new(codes::FILE, Exit::Failed, what, next));
        };
        let Some((context, mut full)) = known else { return Ok(()) };
        full.push(item.component.clone());
        let one = Name::from([item.component]);
        let done = match item.bound {
            Bound::Object(object) => self.object(&context, &one, &object, &full),
            Bound::Foreign(object) => self.foreign(&context, &one, &object, &full),
            Bound::Context(number) => self.context(&context, &one, number, &full),
        };
        done.map_err(|refusal| self.to.failure(refusal, &full))
    }

    fn object(
        &mut self,
        context: &Object,
        one: &Name,
        object: &Object,
        full: &Name,
    ) -> Result<(), Refusal> {
        match self.to.call(context, one, |stub, name| stub.bind(name, object)) {
            Ok(()) => self.count.objects += 1,
            Err(Refusal::AlreadyBound) => {
                if self.to.resolve(context, one)? == *object {
                    self.count.same += 1;
                } else if self.replaces {
                    match self.to.call(context, one, |stub, name| stub.rebind(name, object)) {
                        Ok(()) => self.count.replaced += 1,
                        Err(Refusal::NotFound(..)) => self.conflict(full),
                        Err(refusal) => return Err(refusal),
                    }
                } else {
                    self.conflict(full);
                }
            }
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    fn foreign(
        &mut self,
        context: &Object,
        one: &Name,
        object: &Object,
        full: &Name,
    ) -> Result<(), Refusal> {
        match self.to.call(context, one, |stub, name| stub.bind_context(name, object)) {
            Ok(()) => self.count.foreign += 1,
            Err(Refusal::AlreadyBound) if self.to.resolve(context, one)? == *object => {
                self.count.same += 1;
            }
            Err(Refusal::AlreadyBound) => self.conflict(full),
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// A context, which may have another name already.
    fn context(
        &mut self,
        context: &Object,
        one: &Name,
        number: u64,
        full: &Name,
    ) -> Result<(), Refusal> {
        match self.contexts.get(&number).cloned() {
            Some(Some((there, _))) => return self.foreign(context, one, &there, full),
            Some(None) => return Ok(()),
            None => {}
        }
        let made = self.to.call(context, one, |stub, name| stub.bind_new_context(name));
        let there = match made {
            Ok(there) => {
                self.count.contexts += 1;
                there
            }
            Err(Refusal::AlreadyBound) => {
                let there = self.to.resolve(context, one)?;
                if !self.to.is_context(context, one)? {
                    self.contexts.insert(number, None);
                    self.conflict(full);
                    return Ok(());
                }
                self.count.same += 1;
                there
            }
            Err(refusal) => return Err(refusal),
        };
        self.contexts.insert(number, Some((there, full.clone())));
        Ok(())
    }

    fn conflict(&mut self, full: &Name) {
        self.count.conflicts += 1;
        if self.conflicts.len() < CONFLICTS_TOLD {
            self.conflicts.push(names::text(full));
        }
    }

    /// Says what was done.
    pub(super) fn end(self, context: &Context) -> Result<Exit, Failure> {
        let Count { objects, contexts, foreign, same, replaced, conflicts } = self.count;
        if context.is_json() {
            context.print_json(&json!({
                "objects": objects, "contexts": contexts, "foreign_contexts": foreign,
                "were_there": same, "replaced": replaced, "conflicts": conflicts,
                "conflicting": self.conflicts,
            }))?;
        } else {
            context.print(&format!(
                "bound: {objects} objects, {contexts} new contexts, {foreign} contexts by \
                 reference; {same} were there, {replaced} replaced, {conflicts} conflicts\n"
            ))?;
            for name in &self.conflicts {
                context.tell(format!("conflict: {name} is bound to something else here"));
            }
        }
        if conflicts == 0 {
            return Ok(Exit::Ok);
        }
        let place = self.to.place();
        let what = format!("bound to something else at {place}: {conflicts} of the names");
        let next = "import with --replace to put what is imported in their place, or unbind them";
        Err(Failure::new(codes::NAMING, Exit::Failed, what, next))
    }
}
