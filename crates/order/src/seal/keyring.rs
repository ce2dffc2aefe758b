//! The domain keys that a node accepts, and the one that it seals with.
//!
//! Invariants: one to [`KEYS_MAX`] keys of different ids, the oldest first; the sealing key is
//! one of them; it changes to a newer one, unless it was taken away.

use super::{KEY_ID_BYTES, KeyId};
use crate::config::DomainKey;
use ::ring::hkdf;
use alloc::vec::Vec;
use core::fmt;

/// The most domain keys that are accepted at a time.
pub const KEYS_MAX: usize = 4;

/// Why domain keys were not taken; the old ones stay. The operator's to repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKeys {
    /// None, or more than [`KEYS_MAX`].
    Count(usize),
    /// Two keys are equal, or their ids happen to be (once in 16 million): make another one.
    SameId(KeyId),
}

impl fmt::Display for InvalidKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count} domain keys; there must be 1 to {KEYS_MAX}"),
            Self::SameId(id) => write!(f, "two domain keys have the id {id}"),
        }
    }
}

impl core::error::Error for InvalidKeys {}

struct IdLength;

impl hkdf::KeyType for IdLength {
    fn len(&self) -> usize {
        KEY_ID_BYTES
    }
}

impl KeyId {
    /// The id of a domain key: public, and of no use to find the key.
    pub(crate) fn of(key: &DomainKey) -> Self {
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, b"quorba order").extract(key.bytes());
        let info: [&[u8]; 1] = [b"quorba domain key id v1"];
        let mut id = [0; KEY_ID_BYTES];
        let okm = extracted.expand(&info, IdLength).expect("a short length is valid");
        okm.fill(&mut id).expect("as long as asked for");
        Self(id)
    }
}

/// See the module's text.
pub(crate) struct KeyRing {
    keys: Vec<(KeyId, DomainKey)>,
    sealing: usize,
}

impl KeyRing {
    pub(crate) fn new(key: DomainKey) -> Self {
        Self { keys: alloc::vec![(KeyId::of(&key), key)], sealing: 0 }
    }

    /// Takes over `keys`, oldest first. The sealing key stays if it is among them.
    pub(crate) fn replace(&mut self, keys: Vec<DomainKey>) -> Result<(), InvalidKeys> {
        if !(1..=KEYS_MAX).contains(&keys.len()) {
            return Err(InvalidKeys::Count(keys.len()));
        }
        let keys: Vec<_> = keys.into_iter().map(|key| (KeyId::of(&key), key)).collect();
        for (index, (id, _)) in keys.iter().enumerate() {
            if keys[..index].iter().any(|(other, _)| other == id) {
                return Err(InvalidKeys::SameId(*id));
            }
        }
        let before = self.sealing();
        self.sealing = keys.iter().position(|(id, _)| *id == before).unwrap_or(0);
        self.keys = keys;
        Ok(())
    }

    pub(crate) fn sealing(&self) -> KeyId {
        self.keys[self.sealing].0
    }

    pub(crate) fn newest(&self) -> KeyId {
        self.keys[self.keys.len() - 1].0
    }

    pub(crate) fn get(&self, id: KeyId) -> Option<&DomainKey> {
        self.keys.iter().find(|(known, _)| *known == id).map(|(_, key)| key)
    }

    /// Seals with `id` from now on, if it is newer than what is used; gives whether it is.
    pub(crate) fn turn_to(&mut self, id: KeyId) -> bool {
        let place = self.keys.iter().position(|(known, _)| *known == id);
        let newer = place.is_some_and(|place| place > self.sealing);
        if newer {
            self.sealing = place.unwrap_or(self.sealing);
        }
        newer
    }
}
