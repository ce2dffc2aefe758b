//! TypeCodes (CORBA §4.11, GIOP §15.3.5.1): types as values.
//!
//! A [`TypeCode`] is kept as the octets that came or were built: it is passed on as it is, down to
//! the indirections. [`Graph`] is what they say; types that contain themselves make it one.
//!
//! What it is not: an interface repository. Valuetypes are passed on, and not looked into.
//!
//! Invariant: a TypeCode that was read can be made a graph; its octets are at most
//! [`TYPE_CODE_BYTES_MAX`].

mod build;
mod equal;
mod graph;
mod graph_read;
#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;

use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{Endian, Fault, MessageError};

use crate::codec::{Cdr, Decoder, Encoder};
use crate::limits::TYPE_CODE_BYTES_MAX;
pub(crate) use graph::{Arm, Graph, Node};
pub(crate) use graph_read::read_label;

macro_rules! kinds {
    ($($name:ident $number:literal)*) => {
        /// What kind of type a TypeCode is of.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "the names are the standard's")]
        pub enum Kind { $($name,)* }

        impl Kind {
            pub(crate) const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) const fn number(self) -> u32 {
                match self { $(Self::$name => $number,)* }
            }
        }
    };
}

kinds! {
    Null 0 Void 1 Short 2 Long 3 UShort 4 ULong 5 Float 6 Double 7 Boolean 8 Char 9 Octet 10 Any 11
    TypeCode 12 Principal 13 ObjRef 14 Struct 15 Union 16 Enum 17 String 18 Sequence 19 Array 20
    Alias 21 Except 22 LongLong 23 ULongLong 24 LongDouble 25 WChar 26 WString 27 Fixed 28 Value 29
    ValueBox 30 Native 31 AbstractInterface 32 LocalInterface 33 Component 34 Home 35 Event 36
}

/// How a kind's parameters are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// None.
    Bare,
    /// A bound.
    Bound,
    /// Digits and scale.
    Decimal,
    /// An encapsulation.
    Complex,
}

impl Kind {
    pub(crate) const fn form(self) -> Form {
        match self {
            Self::String | Self::WString => Form::Bound,
            Self::Fixed => Form::Decimal,
            _ if matches!(self.number(), 0..=13 | 23..=26) => Form::Bare,
            _ => Form::Complex,
        }
    }
}

/// Instead of a kind: what follows is the distance to a TypeCode that stands before.
pub(crate) const INDIRECTION: u32 = 0xffff_ffff;

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeCode {
    /// Kind and parameters, from an aligned position on.
    octets: Vec<u8>,
    /// Of the kind and of what is not in an encapsulation.
    endian: Endian,
    /// While one is built: where references to types that are not built yet stand.
    open: Vec<(usize, &'static str)>,
}

/// A type of IDL that has a TypeCode.
pub trait Typed {
    /// Its TypeCode inside of those of `open`, by repository id.
    fn type_code_within(open: &mut Vec<&'static str>) -> TypeCode;

    /// Its TypeCode.
    #[must_use]
    fn type_code() -> TypeCode {
        Self::type_code_within(&mut Vec::new())
    }
}

impl TypeCode {
    /// The kind. What has none that is known is not read as a TypeCode.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let mut reader = Reader::new(&self.octets, self.endian);
        reader.read_u32("kind").ok().and_then(Kind::from_number).unwrap_or(Kind::Null)
    }

    /// The repository id, or nothing if the type has none.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        let graph = self.graph().ok()?;
        graph.id(graph.root()).map(String::from)
    }

    /// Whether both are the same type but for names and aliases (CORBA §4.11.1).
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        match (self.graph(), other.graph()) {
            (Ok(ours), Ok(theirs)) => equal::equivalent(&ours, &theirs),
            _ => false,
        }
    }

    pub(crate) fn graph(&self) -> Result<Graph<'_>, MessageError> {
        graph_read::read(&self.octets, self.endian)
    }

    pub(crate) fn named_graph(&self) -> Result<Graph<'_>, MessageError> {
        graph_read::read_named(&self.octets, self.endian)
    }

    pub(crate) const fn octets(&self) -> &[u8] {
        self.octets.as_slice()
    }

    pub(crate) const fn endian(&self) -> Endian {
        self.endian
    }

    /// Reads one and does not yet look whether it makes sense.
    pub(crate) fn read_octets(reader: &mut Reader<'_>) -> Result<Self, MessageError> {
        reader.align(4);
        let begin = reader.position();
        let mut whole = reader.clone();
        let unknown = MessageError { what: "TypeCode", offset: begin, fault: Fault::Value };
        let kind = Kind::from_number(reader.read_u32("TypeCode")?).ok_or(unknown)?;
        match kind.form() {
            Form::Bare => {}
            Form::Bound => drop(reader.read_u32("bound")?),
            Form::Decimal => {
                reader.read_u16("digits")?;
                reader.read_i16("scale")?;
            }
            Form::Complex => drop(reader.read_octets(TYPE_CODE_BYTES_MAX - 8, "TypeCode")?),
        }
        let octets = whole.take(reader.position().saturating_sub(begin), "TypeCode")?.to_vec();
        Ok(Self { octets, endian: reader.endian(), open: Vec::new() })
    }

    /// Writes it: what is in encapsulations stays as it is, in whatever byte order.
    pub(crate) fn write_octets(&self, writer: &mut Writer) {
        writer.align(4);
        if writer.endian() == self.endian {
            return writer.write_raw(&self.octets);
        }
        let mut reader = Reader::new(&self.octets, self.endian);
        let copied = (|| {
            writer.write_u32(reader.read_u32("kind")?);
            match self.kind().form() {
                Form::Bare => {}
                Form::Bound => writer.write_u32(reader.read_u32("bound")?),
                Form::Decimal => {
                    writer.write_u16(reader.read_u16("digits")?);
                    writer.write_i16(reader.read_i16("scale")?);
                }
                Form::Complex => writer.write_octets(reader.read_octets(usize::MAX, "rest")?),
            }
            Ok::<_, MessageError>(())
        })();
        debug_assert!(copied.is_ok(), "the octets were read, or built");
    }
}

impl Cdr for TypeCode {
    const BYTES_MIN: usize = 4;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        let type_code = Self::read_octets(from.reader())?;
        type_code.graph()?;
        Ok(type_code)
    }

    fn write(&self, to: &mut Encoder) {
        self.write_octets(to.writer());
    }
}

impl Typed for TypeCode {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        Self::basic(Kind::TypeCode)
    }
}
