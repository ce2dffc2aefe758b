//! `any`: a value together with its type.
//!
//! It is kept as the octets that came, and passed on as these wherever byte order, alignment and
//! code set are the same there; else it is written anew, by its TypeCode.
//!
//! What it is not: a tree of values. Who knows the type takes the value out with [`Any::get`]; who
//! does not has a tree made of it, with [`Any::value`].
//!
//! Invariants: the value was gone through when it was read, so it is what its TypeCode says; what
//! is written depends on nothing but the octets that came and on where they go, so that replicas
//! that took over a state by [`Any::keep`] write what the others write.

mod value;
mod walk;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{Completion, Endian, Fault, MessageError, Version};

use crate::codec::{Cdr, CharSet, Coding, Decoder, Encoder};
use crate::limits::TYPE_CODE_BYTES_MAX;
use crate::typecode::{Kind, TypeCode, Typed};
pub use value::Value;
pub(crate) use walk::Walk;

/// What values are aligned to, at most.
const ALIGNMENT: usize = 8;

/// A value and its type. Two are equal if they came in the same octets at the same alignment; to
/// compare what they say, take it out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Any {
    type_code: TypeCode,
    /// The value, behind as many zeros as keep its alignment.
    octets: Vec<u8>,
    shift: usize,
    endian: Endian,
    coding: Coding,
}

impl Default for Any {
    /// Nothing, of the type that has no value.
    fn default() -> Self {
        Self {
            type_code: TypeCode::basic(Kind::Null),
            octets: Vec::new(),
            shift: 0,
            endian: Endian::Little,
            coding: OWN,
        }
    }
}

/// How values that were put in here are written.
const OWN: Coding = Coding { version: Version::V1_2, chars: CharSet::Utf8 };

impl Any {
    /// Puts a value in. One that cannot be written, such as a string with a zero, gives nothing.
    #[must_use]
    pub fn new<T: Cdr + Typed>(value: &T) -> Option<Self> {
        let mut to = Encoder::new(Endian::Little, OWN);
        to.write(value);
        let octets = to.finish(Completion::No).ok()?;
        let type_code = T::type_code();
        Some(Self { type_code, octets, shift: 0, endian: Endian::Little, coding: OWN })
    }

    /// The value, if its type is equivalent to `T`.
    #[must_use]
    pub fn get<T: Cdr + Typed>(&self) -> Option<T> {
        if !T::type_code().is_equivalent(&self.type_code) {
            return None;
        }
        T::read(&mut self.decoder()).ok()
    }

    /// A struct of these members, of a type without a repository id. Names with a zero, or too much
    /// of a type, give nothing.
    #[must_use]
    pub fn structure(members: &[(&str, Self)]) -> Option<Self> {
        let mut to = Encoder::new(Endian::Little, OWN);
        for (name, member) in members {
            member.copy(&mut to).ok()?;
            (!name.contains('\0')).then_some(())?;
        }
        let types: Vec<_> =
            members.iter().map(|(name, member)| (*name, member.type_code.clone())).collect();
        let type_code = TypeCode::structure("", "", &types);
        let octets = to.finish(Completion::No).ok()?;
        (type_code.octets().len() <= TYPE_CODE_BYTES_MAX).then_some(())?;
        Some(Self { type_code, octets, shift: 0, endian: Endian::Little, coding: OWN })
    }

    /// The value as a tree, for whoever does not know its type.
    ///
    /// # Errors
    /// If it is of a type whose values are not read.
    pub fn value(&self) -> Result<Value, MessageError> {
        value::read(&self.type_code, &mut self.decoder())
    }

    /// Writes the value, and not its type.
    fn copy(&self, to: &mut Encoder) -> Result<(), MessageError> {
        let mut from = self.decoder();
        Walk::again(&mut from).value(&self.type_code.graph()?, &mut from, &mut Some(to))
    }

    /// The type.
    #[must_use]
    pub const fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// Octets that its type and its value take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.type_code.octets().len() + self.octets.len().saturating_sub(self.shift)
    }

    fn decoder(&self) -> Decoder<'_> {
        Decoder::new(Reader::at(&self.octets, self.shift, self.endian), self.coding)
    }

    /// Writes it into a state, from which [`Any::kept`] makes exactly this again.
    pub fn keep(&self, state: &mut Writer) {
        state.write_u8(self.endian.bit());
        state.write_u8(self.coding.version.minor);
        state.write_bool(self.coding.chars == CharSet::Utf8);
        state.write_u8(self.shift as u8 % ALIGNMENT as u8);
        state.write_u8(self.type_code.endian().bit());
        state.write_octets(self.type_code.octets());
        state.write_octets(self.octets.get(self.shift..).unwrap_or(&[]));
    }

    /// Reads what [`Any::keep`] wrote.
    ///
    /// # Errors
    /// If it is not that.
    pub fn kept(state: &mut Reader<'_>) -> Result<Self, MessageError> {
        let bit = |state: &mut Reader<'_>| state.read_bool("order").map(u8::from);
        let endian = Endian::from_bit(bit(state)?);
        let offset = state.position();
        let fault = MessageError { what: "any", offset, fault: Fault::Value };
        let minor = state.read_u8("version")?;
        let version = Version { major: 1, minor };
        let chars = if state.read_bool("chars")? { CharSet::Utf8 } else { CharSet::Latin1 };
        let coding = Coding { version, chars };
        let shift = usize::from(state.read_u8("shift")?);
        let type_endian = Endian::from_bit(bit(state)?);
        let mut types = Reader::new(state.read_octets(usize::MAX, "TypeCode")?, type_endian);
        let type_code = TypeCode::read_octets(&mut types)?;
        let value = state.read_octets(usize::MAX, "value")?;
        if version > Version::V1_2 || shift >= ALIGNMENT || types.remaining() > 0 {
            return Err(fault);
        }
        let any = Self { type_code, octets: shifted(shift, value), shift, endian, coding };
        let mut from = any.decoder();
        Walk::again(&mut from).value(&any.type_code.graph()?, &mut from, &mut None)?;
        if from.remaining() > 0 { Err(fault) } else { Ok(any) }
    }
}

/// Octets behind `shift` zeros.
fn shifted(shift: usize, value: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(shift + value.len());
    octets.resize(shift, 0);
    octets.extend_from_slice(value);
    octets
}

impl Cdr for Any {
    const BYTES_MIN: usize = 4;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        let (endian, coding) = (from.endian(), from.coding());
        let type_code = TypeCode::read_octets(from.reader())?;
        let begin = from.reader().position();
        let mut whole = from.reader().clone();
        let graph = type_code.graph()?;
        Walk::new(from).value(&graph, from, &mut None)?;
        drop(graph);
        let length = from.reader().position().saturating_sub(begin);
        let shift = begin % ALIGNMENT;
        let octets = shifted(shift, whole.take(length, "any")?);
        Ok(Self { type_code, octets, shift, endian, coding })
    }

    fn write(&self, to: &mut Encoder) {
        to.write(&self.type_code);
        let as_it_is = to.endian() == self.endian
            && to.coding() == self.coding
            && to.position() % ALIGNMENT == self.shift;
        if as_it_is {
            return to.writer().write_raw(self.octets.get(self.shift..).unwrap_or(&[]));
        }
        if self.copy(to).is_err() {
            // It was gone through before.
            to.fail(quorba_giop::ExceptionKind::Internal);
        }
    }
}

impl Typed for Any {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::basic(Kind::Any)
    }
}
