//! TypeCodes of types that are known: what generated code calls.
//!
//! Invariants: what is built is little-endian throughout, so the same everywhere; a type that
//! contains itself is built from within, with a place holder where it stands in itself.

use alloc::vec::Vec;

use quorba_giop::Endian;
use quorba_giop::cdr::Writer;

use super::{INDIRECTION, Kind, TypeCode};

/// Octets of kind and length, which stand before an encapsulation.
const HEAD_BYTES: usize = 8;

/// An encapsulation under construction, and the place holders in it.
struct Parameters {
    writer: Writer,
    open: Vec<(usize, &'static str)>,
}

impl Parameters {
    fn new(names: &[&str]) -> Self {
        let mut writer = Writer::encapsulation(Endian::Little);
        names.iter().for_each(|name| writer.write_string(name.as_bytes()));
        Self { writer, open: Vec::new() }
    }

    fn put(&mut self, type_code: &TypeCode) {
        self.writer.align(4);
        let begin = HEAD_BYTES + self.writer.position();
        self.open.extend(type_code.open.iter().map(|(at, id)| (begin + at, *id)));
        type_code.write_octets(&mut self.writer);
    }

    fn member(&mut self, name: &str, type_code: &TypeCode) {
        self.writer.write_string(name.as_bytes());
        self.put(type_code);
    }

    /// The TypeCode, of the repository id `id`, which place holders in it mean.
    fn finish(self, kind: Kind, id: &str) -> TypeCode {
        let mut whole = Writer::new(Endian::Little);
        whole.write_u32(kind.number());
        whole.write_octets(&self.writer.finish());
        let mut octets = whole.finish();
        let mut open = self.open;
        open.retain(|(at, meant)| {
            let closes = !id.is_empty() && *meant == id;
            if closes && let Some(place) = octets.get_mut(*at..*at + 4) {
                // The distance from where it stands back to the kind, at 0.
                let back = i32::try_from(*at).unwrap_or(i32::MAX).wrapping_neg();
                place.copy_from_slice(&back.to_le_bytes());
            }
            !closes
        });
        TypeCode { octets, endian: Endian::Little, open }
    }
}

fn words(words: &[u32]) -> TypeCode {
    let octets = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    TypeCode { octets, endian: Endian::Little, open: Vec::new() }
}

impl TypeCode {
    /// Of a kind without parameters.
    #[must_use]
    pub fn basic(kind: Kind) -> Self {
        words(&[kind.number()])
    }

    /// Of `string`, or `string<bound>`.
    #[must_use]
    pub fn string(bound: u32) -> Self {
        words(&[Kind::String.number(), bound])
    }

    /// Of `wstring`, or `wstring<bound>`.
    #[must_use]
    pub fn wstring(bound: u32) -> Self {
        words(&[Kind::WString.number(), bound])
    }

    /// Of references to an interface.
    #[must_use]
    pub fn object(id: &str, name: &str) -> Self {
        Parameters::new(&[id, name]).finish(Kind::ObjRef, id)
    }

    fn members(kind: Kind, id: &str, name: &str, members: &[(&str, Self)]) -> Self {
        let mut parameters = Parameters::new(&[id, name]);
        parameters.writer.write_count(members.len());
        members.iter().for_each(|(name, type_code)| parameters.member(name, type_code));
        parameters.finish(kind, id)
    }

    /// Of a struct.
    #[must_use]
    pub fn structure(id: &str, name: &str, members: &[(&str, Self)]) -> Self {
        Self::members(Kind::Struct, id, name, members)
    }

    /// Of an exception.
    #[must_use]
    pub fn exception(id: &str, name: &str, members: &[(&str, Self)]) -> Self {
        Self::members(Kind::Except, id, name, members)
    }

    /// Of a union: `arms` are label, name and type; `default` is which of them has no label.
    #[must_use]
    pub fn union(
        id: &str,
        name: &str,
        discriminator: &Self,
        default: Option<usize>,
        arms: &[(i64, &str, Self)],
    ) -> Self {
        let mut parameters = Parameters::new(&[id, name]);
        parameters.put(discriminator);
        let default_at = default.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1);
        parameters.writer.write_i32(default_at);
        parameters.writer.write_count(arms.len());
        for (index, (label, name, type_code)) in arms.iter().enumerate() {
            if default == Some(index) {
                // The octet 0, whatever the discriminator is (GIOP §15.3.5.1).
                parameters.writer.write_u8(0);
            } else {
                write_label(&mut parameters.writer, discriminator, *label);
            }
            parameters.member(name, type_code);
        }
        parameters.finish(Kind::Union, id)
    }

    /// Of an enum.
    #[must_use]
    pub fn enumeration(id: &str, name: &str, members: &[&str]) -> Self {
        let mut parameters = Parameters::new(&[id, name]);
        parameters.writer.write_count(members.len());
        members.iter().for_each(|name| parameters.writer.write_string(name.as_bytes()));
        parameters.finish(Kind::Enum, id)
    }

    fn of_items(kind: Kind, items: &Self, number: u32) -> Self {
        let mut parameters = Parameters::new(&[]);
        parameters.put(items);
        parameters.writer.write_u32(number);
        parameters.finish(kind, "")
    }

    /// Of a sequence; a bound of 0 is none.
    #[must_use]
    pub fn sequence(items: &Self, bound: u32) -> Self {
        Self::of_items(Kind::Sequence, items, bound)
    }

    /// Of an array.
    #[must_use]
    pub fn array(items: &Self, length: u32) -> Self {
        Self::of_items(Kind::Array, items, length)
    }

    /// Of a typedef.
    #[must_use]
    pub fn alias(id: &str, name: &str, original: &Self) -> Self {
        let mut parameters = Parameters::new(&[id, name]);
        parameters.put(original);
        parameters.finish(Kind::Alias, id)
    }

    /// The place of a type in itself: of the one with the repository id `id`, which is to be built
    /// around it.
    #[must_use]
    pub fn recursive(id: &'static str) -> Self {
        Self { open: Vec::from([(4, id)]), ..words(&[INDIRECTION, 0]) }
    }
}

/// Writes a label as a value of the discriminator's type.
fn write_label(writer: &mut Writer, discriminator: &TypeCode, label: i64) {
    let Ok(graph) = discriminator.graph() else { return };
    match graph.label_bytes(graph.root()) {
        // Cut to the size that the type has.
        Some(1) => writer.write_u8(label as u8),
        Some(2) => writer.write_i16(label as i16),
        Some(4) => writer.write_i32(label as i32),
        _ => writer.write_i64(label),
    }
}
