//! The service: which objects there are, and where each one's calls go.
//!
//! Invariant: an object's key is made of its number only, so references outlive the process.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_corba::giop::{ExceptionKind, SystemException};
use quorba_corba::{Call, Home, Interface, Object, Objects, key_number, raise_system};
use quorba_idl::{cos_naming, ft};

use crate::context::ContextView;
use crate::iterator::{Cursor, IteratorView};
use crate::tree::{ROOT, Tree};

/// The key of the root context.
pub const ROOT_KEY: &str = "NameService";
/// The key of the object that hands out the state.
pub const STATE_KEY: &str = "NameService/state";
/// What the keys of other contexts begin with; a number follows.
const CONTEXT_PREFIX: &str = "NameService/c";
/// Those of iterators.
const ITERATOR_PREFIX: &str = "NameService/i";

/// How large everything may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bindings in all contexts.
    pub bindings_max: u64,
    /// Contexts.
    pub contexts_max: usize,
    /// Iterators; one more ends the one that was made first.
    pub iterators_max: usize,
    /// How long one may rest, in units of 100 ns of ordered time.
    pub iterator_idle: u64,
    /// Bindings in one reply.
    pub listed_max: u32,
    /// Components of one name.
    pub components_max: usize,
    /// Octets of one component, id and kind together.
    pub component_bytes_max: usize,
    /// Octets of one reference.
    pub reference_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bindings_max: 4_000_000,
            contexts_max: 1_000_000,
            iterators_max: 1000,
            iterator_idle: 10 * 60 * TICKS_PER_S,
            listed_max: 10_000,
            components_max: 64,
            component_bytes_max: 1024,
            reference_bytes_max: 16 << 10,
        }
    }
}

/// Units of ordered time in a second.
const TICKS_PER_S: u64 = 10_000_000;

/// Where ordered time comes from.
pub trait Clock: Send {
    /// The time of the request that is being executed, in units of 100 ns, equal at all replicas;
    /// none if nobody says.
    fn now(&mut self) -> Option<u64>;
}

/// A naming service.
pub struct NamingService {
    pub(crate) tree: Tree,
    pub(crate) iterators: BTreeMap<u64, Cursor>,
    pub(crate) next_iterator: u64,
    pub(crate) clock: Option<Box<dyn Clock>>,
    home: Home,
    pub(crate) limits: Limits,
}

/// What a key says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Context(u64),
    Iterator(u64),
    State,
}

fn place(key: &[u8]) -> Option<Place> {
    let key = core::str::from_utf8(key).ok()?;
    match key {
        ROOT_KEY => Some(Place::Context(ROOT)),
        STATE_KEY => Some(Place::State),
        _ => match (key.strip_prefix(CONTEXT_PREFIX), key.strip_prefix(ITERATOR_PREFIX)) {
            (Some(text), _) => key_number(text).map(Place::Context),
            (_, Some(text)) => key_number(text).map(Place::Iterator),
            _ => None,
        },
    }
}

fn numbered(prefix: &str, number: u64) -> String {
    alloc::format!("{prefix}{number}")
}

impl NamingService {
    /// An empty one, whose references lead to `home`.
    #[must_use]
    pub fn new(home: Home, limits: Limits) -> Self {
        let iterators = BTreeMap::new();
        Self { tree: Tree::new(), iterators, next_iterator: 1, clock: None, home, limits }
    }

    /// The same with ordered time, by which iterators end.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Some(Box::new(clock)), ..self }
    }

    /// The reference to the root context.
    #[must_use]
    pub fn root(&self) -> Object {
        self.context_object(ROOT)
    }

    /// How many names are bound, in all contexts together.
    #[must_use]
    pub const fn bindings(&self) -> u64 {
        self.tree.bindings
    }

    pub(crate) fn context_object(&self, number: u64) -> Object {
        let id = cos_naming::NAMING_CONTEXT_EXT.id();
        if number == ROOT {
            return self.home.object(id, ROOT_KEY.as_bytes());
        }
        self.home.object(id, numbered(CONTEXT_PREFIX, number).as_bytes())
    }

    pub(crate) fn iterator_object(&self, number: u64) -> Object {
        let key = numbered(ITERATOR_PREFIX, number);
        self.home.object(cos_naming::BINDING_ITERATOR.id(), key.as_bytes())
    }

    /// The number of a context of this service that a reference leads to.
    pub(crate) fn own_context(&self, object: &Object) -> Option<u64> {
        match place(&self.home.key_of(object)?)? {
            Place::Context(number) => Some(number),
            Place::Iterator(_) | Place::State => None,
        }
    }

    /// What is bound, as octets.
    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        crate::state::write(self)
    }

    /// Takes over what another one handed out by [`NamingService::state`]; not where it was.
    ///
    /// # Errors
    /// If it is no such state; then nothing changes.
    pub fn take_over(&mut self, state: &[u8]) -> Result<(), quorba_corba::giop::MessageError> {
        crate::state::read(self, state)
    }
}

impl Objects for NamingService {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        match place(key)? {
            Place::Context(number) => {
                let exists = self.tree.contexts.contains_key(&number);
                exists.then_some(cos_naming::NAMING_CONTEXT_EXT)
            }
            Place::Iterator(number) => {
                self.iterators.contains_key(&number).then_some(cos_naming::BINDING_ITERATOR)
            }
            Place::State => Some(ft::CHECKPOINTABLE),
        }
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match place(key) {
            Some(Place::Context(number)) => {
                let mut view = ContextView { service: self, number };
                cos_naming::dispatch_naming_context_ext(&mut view, call)
            }
            Some(Place::Iterator(number)) => {
                let mut view = IteratorView { service: self, number };
                cos_naming::dispatch_binding_iterator(&mut view, call)
            }
            Some(Place::State) => ft::dispatch_checkpointable(self, call),
            None => Err(raise_system(ExceptionKind::ObjectNotExist)),
        }
    }
}
