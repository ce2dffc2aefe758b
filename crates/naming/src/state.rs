//! The state as octets: what replicas hand each other, and what a backup keeps.
//!
//! Invariants: it is a function of what is bound and of the iterators, in one order; a state that
//! cannot be read whole changes nothing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{Endian, Fault, Ior, MessageError};
use quorba_idl::ft::Checkpointable;
use quorba_idl::ft::State;
use quorba_idl::ft::checkpointable::{GetStateError, SetStateError};
use quorba_idl::ft::{InvalidState, NoStateAvailable};

use crate::iterator::Cursor;
use crate::service::NamingService;
use crate::tree::{Bindings, Bound, Key, ROOT, Tree};

/// What a state begins with: a name, and the version of what follows.
const HEAD: &[u8] = b"QNAMING\x01";

/// Writes the state.
pub(crate) fn write(service: &NamingService) -> Vec<u8> {
    let mut state = Writer::new(Endian::Big);
    state.write_raw(HEAD);
    state.write_u64(service.tree.next_context);
    state.write_u64(service.next_iterator);
    state.write_count(service.tree.contexts.len());
    for (number, bindings) in &service.tree.contexts {
        state.write_u64(*number);
        state.write_count(bindings.len());
        for (key, bound) in bindings {
            state.write_octets(key);
            match bound {
                Bound::Object(reference) => {
                    state.write_u8(0);
                    state.write_octets(reference);
                }
                Bound::Foreign(reference) => {
                    state.write_u8(1);
                    state.write_octets(reference);
                }
                Bound::Context(number) => {
                    state.write_u8(2);
                    state.write_u64(*number);
                }
            }
        }
    }
    state.write_count(service.iterators.len());
    for (number, cursor) in &service.iterators {
        state.write_u64(*number);
        state.write_u64(cursor.context);
        state.write_bool(cursor.last.is_some());
        state.write_octets(cursor.last.as_deref().unwrap_or(&[]));
    }
    state.finish()
}

/// Reads a state into `service`.
pub(crate) fn read(service: &mut NamingService, octets: &[u8]) -> Result<(), MessageError> {
    let mut state = Reader::new(octets, Endian::Big);
    let wrong = |state: &Reader<'_>, what| {
        Err(MessageError { what, offset: state.position(), fault: Fault::Value })
    };
    if state.take(HEAD.len(), "head")? != HEAD {
        return wrong(&state, "head");
    }
    let next_context = state.read_u64("contexts")?;
    let next_iterator = state.read_u64("iterators")?;
    let mut tree = Tree { contexts: BTreeMap::new(), next_context, bindings: 0 };
    for _ in 0..state.read_count(12, usize::MAX, "contexts")? {
        let number = state.read_u64("context")?;
        let bindings = read_bindings(&mut state, next_context)?;
        tree.bindings += bindings.len() as u64;
        if number >= next_context || tree.contexts.insert(number, bindings).is_some() {
            return wrong(&state, "context");
        }
    }
    let mut iterators = BTreeMap::new();
    for _ in 0..state.read_count(21, usize::MAX, "iterators")? {
        let number = state.read_u64("iterator")?;
        let context = state.read_u64("context")?;
        let has_last = state.read_bool("last")?;
        let last = state.read_octets(usize::MAX, "last")?;
        let last = has_last.then(|| Key::from(last));
        let cursor = Cursor { context, last };
        if number >= next_iterator || iterators.insert(number, cursor).is_some() {
            return wrong(&state, "iterator");
        }
    }
    if state.remaining() > 0 || !tree.contexts.contains_key(&ROOT) {
        return wrong(&state, "end");
    }
    service.tree = tree;
    service.iterators = iterators;
    service.next_iterator = next_iterator;
    Ok(())
}

fn read_bindings(state: &mut Reader<'_>, next_context: u64) -> Result<Bindings, MessageError> {
    let mut bindings = Bindings::new();
    for _ in 0..state.read_count(10, usize::MAX, "bindings")? {
        let offset = state.position();
        let fault = MessageError { what: "binding", offset, fault: Fault::Value };
        let key = Key::from(state.read_octets(usize::MAX, "name")?);
        let text = core::str::from_utf8(&key).map_err(|_| fault)?;
        if text.matches('\0').count() != 1 {
            return Err(fault);
        }
        let kind = state.read_u8("kind")?;
        let bound = match kind {
            0 | 1 => {
                let reference = state.read_octets(usize::MAX, "reference")?;
                let mut reader = Reader::new(reference, Endian::Little);
                Ior::read(&mut reader)?;
                if reader.remaining() > 0 {
                    return Err(fault);
                }
                if kind == 0 {
                    Bound::Object(reference.into())
                } else {
                    Bound::Foreign(reference.into())
                }
            }
            2 => Bound::Context(state.read_u64("context")?),
            _ => return Err(fault),
        };
        if matches!(bound, Bound::Context(number) if number >= next_context)
            || bindings.insert(key, bound).is_some()
        {
            return Err(fault);
        }
    }
    Ok(bindings)
}

/// The object that hands out the state.
pub(crate) struct StateView<'s>(pub(crate) &'s mut NamingService);

impl Checkpointable for StateView<'_> {
    fn get_state(&mut self) -> Result<State, GetStateError> {
        // A reply has to hold it.
        match write(self.0) {
            state if u32::try_from(state.len()).is_ok() => Ok(state),
            _ => Err(NoStateAvailable {}.into()),
        }
    }

    fn set_state(&mut self, s: State) -> Result<(), SetStateError> {
        read(self.0, &s).map_err(|_| InvalidState {}.into())
    }
}
