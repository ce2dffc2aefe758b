//! The basic types of IDL, sequences and arrays.
//!
//! Invariant: a bounded sequence never holds more than its bound.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;

use quorba_giop::{Endian, Fault, MessageError, Version};

use crate::codec::{Cdr, Decoder, Encoder, read_sequence};
use crate::typecode::{Kind, TypeCode, Typed};

/// Octets as a sequence of them.
pub type Octets = Vec<u8>;

macro_rules! number {
    ($type:ty, $read:ident, $write:ident, $kind:ident) => {
        impl Cdr for $type {
            const BYTES_MIN: usize = size_of::<$type>();

            fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
                from.reader().$read(stringify!($type))
            }

            fn write(&self, to: &mut Encoder) {
                to.writer().$write(*self);
            }
        }

        impl Typed for $type {
            fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
                TypeCode::basic(Kind::$kind)
            }
        }
    };
}

number!(i16, read_i16, write_i16, Short);
number!(i32, read_i32, write_i32, Long);
number!(i64, read_i64, write_i64, LongLong);
number!(u16, read_u16, write_u16, UShort);
number!(u32, read_u32, write_u32, ULong);
number!(u64, read_u64, write_u64, ULongLong);
number!(f32, read_f32, write_f32, Float);
number!(f64, read_f64, write_f64, Double);
number!(bool, read_bool, write_bool, Boolean);

impl Cdr for u8 {
    const BYTES_MIN: usize = 1;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        from.reader().read_u8("octet")
    }

    fn write(&self, to: &mut Encoder) {
        to.writer().write_u8(*self);
    }

    fn read_items(count: usize, from: &mut Decoder<'_>) -> Result<Vec<Self>, MessageError> {
        Ok(from.reader().take(count, "octets")?.to_vec())
    }

    fn write_items(items: &[Self], to: &mut Encoder) {
        to.writer().write_raw(items);
    }
}

impl Typed for u8 {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::basic(Kind::Octet)
    }
}

impl Cdr for () {
    const BYTES_MIN: usize = 0;

    fn read(_: &mut Decoder<'_>) -> Result<Self, MessageError> {
        Ok(())
    }

    fn write(&self, _: &mut Encoder) {}
}

/// A `char`: one octet in the connection's code set, passed on as it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Char(pub u8);

impl Cdr for Char {
    const BYTES_MIN: usize = 1;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        from.reader().read_u8("char").map(Self)
    }

    fn write(&self, to: &mut Encoder) {
        to.writer().write_u8(self.0);
    }
}

impl Typed for Char {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::basic(Kind::Char)
    }
}

/// A `wchar`: one unit of UTF-16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct WChar(pub u16);

impl Cdr for WChar {
    const BYTES_MIN: usize = 1;

    /// Before GIOP 1.2 it has a fixed size and the message's byte order (GIOP §15.3.1.6); since,
    /// its size stands before it, and a byte order mark may.
    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        if from.coding().version < Version::V1_2 {
            return from.reader().read_u16("wchar").map(Self);
        }
        let offset = from.reader().position();
        let fault = MessageError { what: "wchar", offset, fault: Fault::Value };
        let length = usize::from(from.reader().read_u8("wchar")?);
        match from.reader().take(length, "wchar")? {
            [high, low] | [0xfe, 0xff, high, low] => Ok(Self(u16::from_be_bytes([*high, *low]))),
            [0xff, 0xfe, low, high] => Ok(Self(u16::from_be_bytes([*high, *low]))),
            _ => Err(fault),
        }
    }

    fn write(&self, to: &mut Encoder) {
        if to.coding().version < Version::V1_2 {
            return to.writer().write_u16(self.0);
        }
        to.writer().write_u8(2);
        to.writer().write_raw(&self.0.to_be_bytes());
    }
}

impl Typed for WChar {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::basic(Kind::WChar)
    }
}

/// A `long double`: the octets of an IEEE number of 128 bits, the most significant one first.
/// There is no arithmetic for it here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LongDouble(pub [u8; 16]);

impl Cdr for LongDouble {
    const BYTES_MIN: usize = 16;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        from.reader().align(8);
        let offset = from.reader().position();
        let short = MessageError { what: "long double", offset, fault: Fault::Short };
        let octets = from.reader().take(16, "long double")?;
        let mut octets: [u8; 16] = octets.try_into().map_err(|_| short)?;
        if from.endian() == Endian::Little {
            octets.reverse();
        }
        Ok(Self(octets))
    }

    fn write(&self, to: &mut Encoder) {
        let mut octets = self.0;
        if to.endian() == Endian::Little {
            octets.reverse();
        }
        to.writer().align(8);
        to.writer().write_raw(&octets);
    }
}

impl Typed for LongDouble {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::basic(Kind::LongDouble)
    }
}

impl<T: Cdr> Cdr for Vec<T> {
    const BYTES_MIN: usize = 4;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        read_sequence(from, usize::MAX)
    }

    fn write(&self, to: &mut Encoder) {
        to.writer().write_count(self.len());
        T::write_items(self, to);
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn type_code_within(open: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::sequence(&T::type_code_within(open), 0)
    }
}

impl<T: Cdr, const N: usize> Cdr for [T; N] {
    const BYTES_MIN: usize = N * T::BYTES_MIN;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        let offset = from.reader().position();
        let short = MessageError { what: "array", offset, fault: Fault::Short };
        T::read_items(N, from)?.try_into().map_err(|_| short)
    }

    fn write(&self, to: &mut Encoder) {
        T::write_items(self, to);
    }
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    fn type_code_within(open: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::array(&T::type_code_within(open), u32::try_from(N).unwrap_or(u32::MAX))
    }
}

impl<T: Cdr> Cdr for Box<T> {
    const BYTES_MIN: usize = T::BYTES_MIN;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        T::read(from).map(Self::new)
    }

    fn write(&self, to: &mut Encoder) {
        T::write(self, to);
    }
}

/// A `sequence<T, N>`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounded<T, const N: usize>(Vec<T>);

impl<T, const N: usize> Default for Bounded<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const N: usize> Bounded<T, N> {
    /// The items, if they are not too many.
    #[must_use]
    pub fn new(items: Vec<T>) -> Option<Self> {
        (items.len() <= N).then_some(Self(items))
    }

    /// The items.
    #[must_use]
    pub fn into_inner(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: usize> Deref for Bounded<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Cdr, const N: usize> Cdr for Bounded<T, N> {
    const BYTES_MIN: usize = 4;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        read_sequence(from, N).map(Self)
    }

    fn write(&self, to: &mut Encoder) {
        self.0.write(to);
    }
}

impl<T: Typed, const N: usize> Typed for Bounded<T, N> {
    fn type_code_within(open: &mut Vec<&'static str>) -> TypeCode {
        let bound = u32::try_from(N).unwrap_or(u32::MAX);
        TypeCode::sequence(&T::type_code_within(open), bound)
    }
}
