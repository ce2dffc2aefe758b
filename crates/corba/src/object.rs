//! References to objects, and how a service makes those to its own.
//!
//! Invariant: references that a service makes are equal at all of its replicas: they name what the
//! service was told to publish, and an object key of its own choice.

use alloc::string::String;
use alloc::vec::Vec;

use quorba_giop::ior::{CodeSetInfo, ComponentValue, GroupReference, Ior, group_reference};
use quorba_giop::{Endian, MessageError};

use crate::codec::{Cdr, Decoder, Encoder};
use crate::typecode::{TypeCode, Typed};

/// A reference, perhaps to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object(pub Ior);

impl Object {
    /// The reference to nothing.
    #[must_use]
    pub const fn nil() -> Self {
        Self(Ior::nil())
    }

    /// Whether it refers to nothing.
    #[must_use]
    pub const fn is_nil(&self) -> bool {
        self.0.is_nil()
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::nil()
    }
}

impl From<Ior> for Object {
    fn from(ior: Ior) -> Self {
        Self(ior)
    }
}

impl Cdr for Object {
    // A type id and a count.
    const BYTES_MIN: usize = 8;

    fn read(from: &mut Decoder<'_>) -> Result<Self, MessageError> {
        Ior::read(from.reader()).map(Self)
    }

    fn write(&self, to: &mut Encoder) {
        self.0.write(to.writer());
    }
}

impl Typed for Object {
    fn type_code_within(_: &mut Vec<&'static str>) -> TypeCode {
        TypeCode::object("IDL:omg.org/CORBA/Object:1.0", "Object")
    }
}

/// The number that the rest of an object key is. There is one way only to write a number: a key
/// that differs is another object's.
#[must_use]
pub fn key_number(text: &str) -> Option<u64> {
    let number = text.parse::<u64>().ok()?;
    (number > 0 && !text.starts_with(['0', '+'])).then_some(number)
}

/// Where a service's objects are reached: what its references say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Home {
    /// Host and port of each gateway, or of the server itself, in the order of preference.
    pub addresses: Vec<(String, u16)>,
    /// What its object keys begin with outside, such as a group's name at a shared port.
    pub prefix: Vec<u8>,
}

impl Home {
    /// The reference to one of its objects.
    #[must_use]
    pub fn object(&self, type_id: &str, key: &[u8]) -> Object {
        let mut object_key = self.prefix.clone();
        object_key.extend_from_slice(key);
        let code_sets = ComponentValue::CodeSets(CodeSetInfo::usual()).encode(Endian::Big);
        Object(group_reference(&GroupReference {
            type_id: type_id.as_bytes(),
            object_key: &object_key,
            gateways: &self.addresses,
            tls: &[],
            group: None,
            primary: None,
            heartbeat_enabled: false,
            components: &[code_sets],
        }))
    }

    /// The object key of a reference to one of its objects; none if it refers to somebody else's.
    /// It need not be up to date: one address in common is enough.
    #[must_use]
    pub fn key_of(&self, object: &Object) -> Option<Vec<u8>> {
        let endpoints = object.0.endpoints();
        let ours = endpoints.iter().find(|endpoint| {
            let same = |(host, port): &(String, u16)| {
                *port == endpoint.port && host.eq_ignore_ascii_case(&endpoint.host)
            };
            self.addresses.iter().any(same)
        })?;
        ours.object_key.strip_prefix(self.prefix.as_slice()).map(Vec::from)
    }
}
