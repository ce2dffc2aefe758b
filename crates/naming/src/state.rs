//! The state as octets: what replicas hand each other, and what a backup keeps.
//!
//! Invariants: it is a function of what is bound and of the iterators, in one order; a state that
//! cannot be read whole changes nothing.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::limits::REFERENCE_BYTES_MAX;
use quorba_corba::giop::{Endian, Fault, MessageError};
use quorba_idl::checkpoint::{give_state, take_state};
use quorba_idl::ft::Checkpointable;
use quorba_idl::ft::State;
use quorba_idl::ft::checkpointable::{GetStateError, SetStateError};

use crate::iterator::Cursor;
use crate::reference::{Reference, Shape, Shapes};
use crate::service::NamingService;
use crate::tree::{Bindings, Bound, Key, ROOT, Tree};

/// What a state begins with: a name, and the version of what follows.
const HEAD: &[u8] = b"QNAMING\x02";

/// Writes the state: shapes of references in the order in which bindings first have them, then
/// everything else.
pub(crate) fn write(service: &NamingService) -> Vec<u8> {
    let mut numbers = BTreeMap::new();
    let mut shapes = Writer::new(Endian::Big);
    for reference in service.tree.contexts.values().flat_map(BTreeMap::values).filter_map(of) {
        let number = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        numbers.entry(&*reference.shape).or_insert_with_key(|shape| {
            shapes.write_octets(&shape.octets);
            shapes.write_count(shape.places.len());
            shape.places.iter().for_each(|place| shapes.write_u32(*place));
            number
        });
    }
    let mut state = Writer::new(Endian::Big);
    state.write_raw(HEAD);
    state.write_u64(service.tree.next_context);
    state.write_u64(service.next_iterator);
    state.write_count(numbers.len());
    state.write_octets(&shapes.finish());
    state.write_count(service.tree.contexts.len());
    for (number, bindings) in &service.tree.contexts {
        state.write_u64(*number);
        state.write_count(bindings.len());
        for (key, bound) in bindings {
            state.write_octets(key);
            state.write_u8(match bound {
                Bound::Object(_) => 0,
                Bound::Foreign(_) => 1,
                Bound::Context(_) => 2,
            });
            match bound {
                Bound::Object(reference) | Bound::Foreign(reference) => {
                    state.write_u32(numbers.get(&*reference.shape).copied().unwrap_or(u32::MAX));
                    state.write_octets(&reference.key);
                }
                Bound::Context(number) => state.write_u64(*number),
            }
        }
    }
    state.write_count(service.iterators.len());
    for (number, cursor) in &service.iterators {
        state.write_u64(*number);
        state.write_u64(cursor.context);
        state.write_u64(cursor.used);
        state.write_bool(cursor.last.is_some());
        state.write_octets(cursor.last.as_deref().unwrap_or(&[]));
    }
    state.finish()
}

/// A binding's reference.
const fn of(bound: &Bound) -> Option<&Reference> {
    match bound {
        Bound::Object(reference) | Bound::Foreign(reference) => Some(reference),
        Bound::Context(_) => None,
    }
}

/// Reads the shapes of references.
fn read_shapes(
    state: &mut Reader<'_>,
    known: &mut Shapes,
) -> Result<Vec<Arc<Shape>>, MessageError> {
    let count = state.read_count(8, usize::MAX, "shapes")?;
    let mut reader = Reader::new(state.read_octets(usize::MAX, "shapes")?, Endian::Big);
    let mut shapes = Vec::new();
    for _ in 0..count {
        let octets = reader.read_octets(usize::MAX, "shape")?;
        let mut places = Vec::new();
        for _ in 0..reader.read_count(4, usize::MAX, "places")? {
            let place = reader.read_u32("place")?;
            let offset = reader.position();
            if place as usize > octets.len() || places.last().is_some_and(|last| *last > place) {
                return Err(MessageError { what: "place", offset, fault: Fault::Value });
            }
            places.push(place);
        }
        shapes.push(known.shared(Shape { octets: octets.into(), places: places.into() }));
    }
    Ok(shapes)
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
    let mut known = Shapes::default();
    let shapes = read_shapes(&mut state, &mut known)?;
    let contexts = BTreeMap::new();
    let mut tree = Tree { contexts, next_context, bindings: 0, shapes: known };
    for _ in 0..state.read_count(12, usize::MAX, "contexts")? {
        let number = state.read_u64("context")?;
        let bindings = read_bindings(&mut state, next_context, &shapes)?;
        tree.bindings += bindings.len() as u64;
        if number >= next_context || tree.contexts.insert(number, bindings).is_some() {
            return wrong(&state, "context");
        }
    }
    let mut iterators = BTreeMap::new();
    for _ in 0..state.read_count(29, usize::MAX, "iterators")? {
        let number = state.read_u64("iterator")?;
        let context = state.read_u64("context")?;
        let used = state.read_u64("used")?;
        let has_last = state.read_bool("last")?;
        let last = state.read_octets(usize::MAX, "last")?;
        let last = has_last.then(|| Key::from(last));
        let cursor = Cursor { context, last, used };
        if number >= next_iterator || iterators.insert(number, cursor).is_some() {
            return wrong(&state, "iterator");
        }
    }
    drop(shapes);
    if !tree.shapes.are_used() {
        return wrong(&state, "shapes");
    }
    if state.remaining() > 0 || !tree.contexts.contains_key(&ROOT) {
        return wrong(&state, "end");
    }
    service.tree = tree;
    service.iterators = iterators;
    service.next_iterator = next_iterator;
    Ok(())
}

fn read_bindings(
    state: &mut Reader<'_>,
    next_context: u64,
    shapes: &[Arc<Shape>],
) -> Result<Bindings, MessageError> {
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
                let shape = state.read_u32("shape")? as usize;
                let shape = Arc::clone(shapes.get(shape).ok_or(fault)?);
                let key = state.read_octets(usize::MAX, "object key")?.into();
                let reference = Reference { shape, key };
                // Before it is filled: few octets can say a long reference.
                if reference.shape.filled_bytes(&reference.key) > REFERENCE_BYTES_MAX {
                    return Err(fault);
                }
                reference.checked()?;
                if kind == 0 { Bound::Object(reference) } else { Bound::Foreign(reference) }
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

impl Checkpointable for NamingService {
    fn get_state(&mut self) -> Result<State, GetStateError> {
        give_state(self.state())
    }

    fn set_state(&mut self, s: State) -> Result<(), SetStateError> {
        take_state(self.take_over(&s))
    }
}
