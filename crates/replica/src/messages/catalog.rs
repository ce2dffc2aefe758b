//! Which groups the domain has, which servers outside they call, and what each of them is: a table
//! that all nodes change alike, by ordered commands.
//!
//! A definition is a name and a text. What the text means, [`Definitions`] knows; all nodes must
//! read the same from it. An id is given out by the order: it is made of the place at which the
//! definition was ordered, so that no two are alike, also if a node that was cut off has ordered
//! something that nobody else ever heard of.
//!
//! It also counts, for each definition, how often references to it have become others: that is the
//! version of an object group's reference (FT-CORBA §23.2.2). What was written before there was a
//! count says 0 of each definition, and counts nothing until a component goes on from it: nodes
//! that have it in one form or another would come to different counts else.
//!
//! What it is not: what becomes of the groups, which is `replica::catalog`; nor the disk, which is
//! the driver's. Invariants: a name stands for one definition; a change that came before with the
//! same name of an operation changes nothing again; two catalogs of the same version are equal, but
//! for one that does not count yet; the count of a definition never falls.

mod codec;
mod fixed;
mod record;
mod refused;

pub(crate) use self::codec::{put_position, take_operation, take_position};
pub use self::fixed::FixedDefinitions;
pub use self::record::{CatalogDamaged, CatalogRecord};
pub use self::refused::CatalogRefused;
use crate::calls::outside::OutsideConfig;
use crate::words::config::GroupConfig;
use crate::words::ids::GroupId;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use quorba_base::{FNV_OFFSET, Position, fnv1a};

/// The most definitions that a catalog has: as many as a domain file can have.
pub const DEFINITIONS_MAX: usize = 100_000;
/// The longest name of a group, and of an operation, in octets.
pub const NAME_BYTES_MAX: usize = 64;
/// The longest text of a definition, in octets.
pub const DEFINITION_BYTES_MAX: usize = 64 << 10;
/// Operations that are remembered, so that a repetition changes nothing.
const OPERATIONS_MAX: usize = 1_024;

/// What an operator says that a group, or a server outside, is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Its name, unique in the domain; at most [`NAME_BYTES_MAX`].
    pub name: Arc<str>,
    /// What it is, in words that [`Definitions`] reads; at most [`DEFINITION_BYTES_MAX`].
    pub text: Bytes,
}

/// What a definition means.
#[derive(Clone, Debug)]
pub enum Defined {
    /// A group.
    Group(Box<GroupConfig>),
    /// A server outside of the domain.
    Outside(OutsideConfig),
}

/// Reads definitions: alike on all nodes, and from nothing but the text and the ids of names.
pub trait Definitions: Send + Sync {
    /// What `definition` means. `id_of` gives the ids of groups and servers outside.
    ///
    /// # Errors
    /// What is wrong with it, in words for an operator.
    fn define(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<Defined, String>;
}

/// A change of the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CatalogChange {
    /// There is one more.
    Create(Definition),
    /// The one of this name is something else from here on.
    Change(Definition),
    /// There is none of this name any more.
    Delete(Arc<str>),
}

impl CatalogChange {
    /// The group or server outside that it is about.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Create(definition) | Self::Change(definition) => &definition.name,
            Self::Delete(name) => name,
        }
    }
}

/// What became of a change that was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogChanged {
    /// Whose definition it was.
    pub id: GroupId,
    /// It had been carried out before, under the same name of the operation.
    pub is_repeated: bool,
}

/// What a component that goes on from a catalog makes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CatalogNews {
    /// Nothing.
    Same,
    /// It counts from here on.
    Begun,
    /// References tell of other gateways.
    Moved,
}

/// An operation that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Done {
    operation: Bytes,
    change: u64,
    id: GroupId,
}

/// A definition, and how often references to what it defines have become others.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    definition: Definition,
    reference_version: u32,
}

impl Entry {
    const fn new(definition: Definition) -> Self {
        Self { definition, reference_version: 0 }
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    /// Where in the order it was changed last; `None`: it is what a domain file says, and no
    /// component has gone on from it.
    version: Option<Position>,
    /// Of all gateways of the domain, of which references tell; `None`: nobody has counted yet.
    gateways: Option<u64>,
    definitions: BTreeMap<GroupId, Entry>,
    ids: BTreeMap<Arc<str>, GroupId>,
    /// Oldest first.
    done: VecDeque<Done>,
}

impl Catalog {
    /// What a domain file says, before any component has gone on from it. Names are unique, and so
    /// are ids.
    #[must_use]
    pub fn of_file(definitions: impl IntoIterator<Item = (GroupId, Definition)>) -> Self {
        let mut catalog = Self::default();
        for (id, definition) in definitions {
            catalog.put(id, Entry::new(definition));
        }
        catalog
    }

    /// Where in the order it was changed last.
    #[must_use]
    pub const fn version(&self) -> Option<Position> {
        self.version
    }

    /// All definitions, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Definition)> {
        self.definitions.iter().map(|(id, entry)| (*id, &entry.definition))
    }

    /// How many definitions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.definitions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// The definition with this id.
    #[must_use]
    pub fn get(&self, id: GroupId) -> Option<&Definition> {
        self.definitions.get(&id).map(|entry| &entry.definition)
    }

    /// How often references to it have become others: with each change of its definition, or of the
    /// domain's gateways. 0 of what there is not.
    #[must_use]
    pub fn reference_version(&self, id: GroupId) -> u32 {
        self.definitions.get(&id).map_or(0, |entry| entry.reference_version)
    }

    /// The id of what has this name.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<GroupId> {
        self.ids.get(name).copied()
    }

    /// The id of what a domain file calls so, in a domain that has never been.
    #[must_use]
    pub fn id_in_file(name: &str) -> GroupId {
        GroupId(digest(FNV_OFFSET, name.as_bytes()))
    }

    /// What comes of this operation, if it was carried out before; an error if another one was
    /// under its name.
    pub(crate) fn repeated(
        &self,
        operation: &Bytes,
        change: &CatalogChange,
    ) -> Result<Option<CatalogChanged>, OperationReused> {
        let Some(done) = self.done.iter().rev().find(|done| done.operation == *operation) else {
            return Ok(None);
        };
        if done.change != change.digest() {
            return Err(OperationReused);
        }
        Ok(Some(CatalogChanged { id: done.id, is_repeated: true }))
    }

    /// The id of a definition that is created there.
    pub(crate) fn id_at(&self, at: Position) -> GroupId {
        let mut id = digest(FNV_OFFSET, &at.component.seq.to_le_bytes());
        id = digest(id, &[at.component.representative.index()]);
        id = digest(id, &at.prefix.to_le_bytes());
        while self.definitions.contains_key(&GroupId(id)) {
            id = digest(id, &[0]);
        }
        GroupId(id)
    }

    /// A change, which was found to be right, is carried out at that place of the order.
    pub(crate) fn apply(
        &mut self,
        at: Position,
        operation: Bytes,
        change: &CatalogChange,
    ) -> GroupId {
        let id = match change {
            CatalogChange::Create(definition) => {
                let id = self.id_at(at);
                self.put(id, Entry::new(definition.clone()));
                id
            }
            CatalogChange::Change(definition) => {
                let id = self.ids[&definition.name];
                let is_counted = self.gateways.is_some();
                let entry = self.definitions.get_mut(&id).expect("a name is of a definition");
                if is_counted && entry.definition != *definition {
                    entry.reference_version = entry.reference_version.saturating_add(1);
                }
                entry.definition = definition.clone();
                id
            }
            CatalogChange::Delete(name) => {
                let id = self.ids.remove(name).expect("the caller has found it");
                self.definitions.remove(&id);
                id
            }
        };
        if self.done.len() == OPERATIONS_MAX {
            self.done.pop_front();
        }
        self.done.push_back(Done { operation, change: change.digest(), id });
        self.version = Some(at);
        id
    }

    /// A component goes on from it, in a domain with these gateways. Says what is new of it.
    pub(crate) fn establish(&mut self, at: Position, gateways: u64) -> CatalogNews {
        let before = self.gateways.replace(gateways);
        let is_moved = before.is_some_and(|before| before != gateways);
        if is_moved {
            for entry in self.definitions.values_mut() {
                entry.reference_version = entry.reference_version.saturating_add(1);
            }
        }
        if is_moved || self.version.is_none() {
            self.version = Some(at);
            return if is_moved { CatalogNews::Moved } else { CatalogNews::Begun };
        }
        if before.is_none() { CatalogNews::Begun } else { CatalogNews::Same }
    }

    /// What two nodes compare; see [`CatalogMark`].
    pub(crate) fn mark(&self) -> CatalogMark {
        // Two of the same version are equal, but for one that does not count yet.
        let digest = match (self.version, self.gateways) {
            (None, _) => self.digest(),
            (Some(_), None) => 0,
            (Some(_), Some(gateways)) => digest(FNV_OFFSET, &gateways.to_le_bytes()) | 1,
        };
        CatalogMark { version: self.version, digest }
    }

    /// Whether it is to be taken in the place of another one: it is newer, or it counts and the
    /// other one, of the same version, does not.
    pub(crate) fn is_ahead_of(&self, other: &Self) -> bool {
        let rank = |catalog: &Self| (catalog.version, catalog.gateways.is_some());
        rank(self) > rank(other)
    }

    fn put(&mut self, id: GroupId, entry: Entry) {
        let name = Arc::clone(&entry.definition.name);
        let other = self.ids.insert(name, id);
        let same = self.definitions.insert(id, entry);
        assert!(other.is_none() && same.is_none(), "names and ids are unique");
    }

    fn digest(&self) -> u64 {
        self.iter().fold(FNV_OFFSET, |sum, (id, Definition { name, text })| {
            let sum = digest(digest(sum, &id.0.to_le_bytes()), name.as_bytes());
            digest(digest(sum, &(text.len() as u64).to_le_bytes()), text)
        })
    }

    /// The definitions that are new, changed, or gone in `next`.
    pub(crate) fn changes_to(&self, next: &Self) -> CatalogDifference {
        let mut found = CatalogDifference::default();
        for (id, definition) in next.iter() {
            match self.get(id) {
                None => found.created.push(id),
                Some(own) if own != definition => found.changed.push(id),
                Some(_) => {}
            }
        }
        let gone = self.definitions.keys().filter(|id| !next.definitions.contains_key(id));
        found.deleted = gone.copied().collect();
        found
    }
}

impl fmt::Debug for Catalog {
    /// Not the texts, of which there may be thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.ids.keys().map(|name| &**name).collect();
        f.debug_struct("Catalog").field("version", &self.version).field("names", &names).finish()
    }
}

/// What becomes of one catalog's definitions in another one.
#[derive(Default)]
pub(crate) struct CatalogDifference {
    pub(crate) created: Vec<GroupId>,
    pub(crate) changed: Vec<GroupId>,
    pub(crate) deleted: Vec<GroupId>,
}

/// Another operation has been carried out under this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OperationReused;

/// Which catalog a node has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CatalogMark {
    /// Where in the order it was changed last.
    pub version: Option<Position>,
    /// Of what a domain file says, as long as there is no version; then of the gateways of which
    /// references tell, 0 while nobody counts.
    pub digest: u64,
}

impl CatalogMark {
    /// Whether it is of a catalog that has been changed, and counts.
    pub(crate) const fn counts(self) -> bool {
        self.version.is_some() && self.digest != 0
    }
}

/// FNV-1a, and a last step that mixes the high bits into the low ones.
fn digest(seed: u64, bytes: &[u8]) -> u64 {
    let sum = fnv1a(seed, bytes.iter().copied());
    (sum ^ (sum >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;
