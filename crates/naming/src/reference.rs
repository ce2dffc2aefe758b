//! References as they are kept: most differ from others in their object key only, which stands in
//! each of their profiles, so that the rest is kept once.
//!
//! Invariants: what is unpacked is what was packed, to the octet, whatever the reference; a shape
//! that no reference has is forgotten.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorba_corba::Object;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{Endian, Ior, MessageError};

/// A shorter key is not worth looking for.
const KEY_BYTES_MIN: usize = 4;

/// A reference without its object key: octets, and where in them the key goes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Shape {
    pub(crate) octets: Box<[u8]>,
    /// Rising.
    pub(crate) places: Box<[u32]>,
}

/// A reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    pub(crate) shape: Arc<Shape>,
    pub(crate) key: Box<[u8]>,
}

/// Every shape that is in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shapes(BTreeSet<Arc<Shape>>);

impl Shape {
    /// Cuts every `key` out of `octets`.
    fn cut(octets: &[u8], key: &[u8]) -> Self {
        let mut shape = Vec::with_capacity(octets.len());
        let mut places = Vec::new();
        let mut rest = octets;
        while let Some((first, behind)) = rest.split_first() {
            match rest.strip_prefix(key) {
                Some(behind) if key.len() >= KEY_BYTES_MIN => {
                    places.push(u32::try_from(shape.len()).unwrap_or(u32::MAX));
                    rest = behind;
                }
                _ => {
                    shape.push(*first);
                    rest = behind;
                }
            }
        }
        Self { octets: shape.into_boxed_slice(), places: places.into_boxed_slice() }
    }

    /// How long the reference with `key` is.
    pub(crate) fn filled_bytes(&self, key: &[u8]) -> usize {
        self.places.len().saturating_mul(key.len()).saturating_add(self.octets.len())
    }

    /// Puts `key` back.
    fn filled(&self, key: &[u8]) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.filled_bytes(key));
        let mut from = 0;
        for place in &self.places {
            let to = *place as usize;
            octets.extend_from_slice(self.octets.get(from..to).unwrap_or(&[]));
            octets.extend_from_slice(key);
            from = to;
        }
        octets.extend_from_slice(self.octets.get(from..).unwrap_or(&[]));
        octets
    }
}

impl Reference {
    /// The reference itself.
    pub(crate) fn object(&self) -> Object {
        self.checked().unwrap_or_default()
    }

    /// Likewise, where octets may be anything.
    pub(crate) fn checked(&self) -> Result<Object, MessageError> {
        let octets = self.shape.filled(&self.key);
        let mut reader = Reader::new(&octets, Endian::Little);
        let ior = Ior::read(&mut reader)?;
        Ok(Object(ior))
    }
}

/// A reference in octets.
pub(crate) fn octets(object: &Object) -> Vec<u8> {
    let mut writer = Writer::new(Endian::Little);
    object.0.write(&mut writer);
    writer.finish()
}

impl Shapes {
    /// Packs a reference, given in octets, too.
    pub(crate) fn pack(&mut self, object: &Object, octets: &[u8]) -> Reference {
        let key = object.0.profiles.iter().find_map(|profile| profile.iiop()?.ok());
        let key = key.map(|profile| profile.object_key).unwrap_or_default();
        let shape = Shape::cut(octets, &key);
        let key = if shape.places.is_empty() { Box::default() } else { key.into_boxed_slice() };
        Reference { shape: self.shared(shape), key }
    }

    /// The one shape that is like `shape`.
    pub(crate) fn shared(&mut self, shape: Shape) -> Arc<Shape> {
        if let Some(known) = self.0.get(&shape) {
            return Arc::clone(known);
        }
        let shape = Arc::new(shape);
        self.0.insert(Arc::clone(&shape));
        shape
    }

    /// A reference is no more.
    pub(crate) fn forget(&mut self, reference: Reference) {
        // This one and the one in here.
        if Arc::strong_count(&reference.shape) == 2 {
            self.0.remove(&reference.shape);
        }
    }

    /// Whether each is in use.
    pub(crate) fn are_used(&self) -> bool {
        self.0.iter().all(|shape| Arc::strong_count(shape) > 1)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::{format, vec};
    use quorba_corba::Home;
    use quorba_corba::giop::ior::Profile;

    fn object(key: &str) -> Object {
        let address = |host: &str| (host.to_string(), 5000);
        let addresses = vec![address("n1"), address("n2"), address("n3")];
        Home { addresses, prefix: Vec::new() }.object("IDL:Thing:1.0", key.as_bytes())
    }

    #[test]
    fn what_is_packed_is_unpacked_as_it_was() {
        let mut shapes = Shapes::default();
        let mut odd = object("some key");
        // A key that stands elsewhere, too; a profile that is none; nothing at all.
        odd.0.type_id = b"IDL:some keysome key:1.0".to_vec();
        let mut broken = object("some key");
        broken.0.profiles.insert(0, Profile { tag: 0, data: vec![9; 5] });
        let samples = ["", "a", "abc", "abcd", "aaaaaaaa", "\0\0\0\0", "n1"].map(object);
        let others = [odd, broken, Object::nil()];
        for sample in samples.into_iter().chain(others) {
            let octets = octets(&sample);
            let packed = shapes.pack(&sample, &octets);
            assert_eq!(packed.object(), sample);
            assert_eq!(packed.shape.filled(&packed.key), octets);
            shapes.forget(packed);
            assert_eq!(shapes.count(), 0);
        }
    }

    #[test]
    fn references_that_differ_in_their_key_share_the_rest() {
        let mut shapes = Shapes::default();
        let mut pack = |key: &str| {
            let object = object(key);
            shapes.pack(&object, &octets(&object))
        };
        let packed: Vec<Reference> =
            (1000..1100).map(|number| pack(&format!("device {number}"))).collect();
        assert!(packed.iter().all(|reference| reference.key.len() == 11));
        assert_eq!(shapes.count(), 1);
        packed.into_iter().for_each(|reference| shapes.forget(reference));
        assert_eq!(shapes.count(), 0);
    }
}
