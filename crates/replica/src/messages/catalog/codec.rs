//! How a catalog and its changes are encoded.
//!
//! A catalog begins with a flag, whose lowest bit says that it has a version, and whose next one
//! that it counts the versions of references. One that does not is written as it was before there
//! were such counts.
//!
//! Invariant: what is read is a catalog: names and ids are unique, lengths are within their bounds.

use super::{
    Catalog, CatalogChange, CatalogMark, DEFINITION_BYTES_MAX, DEFINITIONS_MAX, Definition, Done,
    Entry, NAME_BYTES_MAX, OPERATIONS_MAX, digest,
};
use crate::words::ids::{GroupId, put_view, take_view};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::sync::Arc;
use bytes::Bytes;
use quorba_base::Position;

const CREATE: u8 = 1;
const CHANGE: u8 = 2;
const DELETE: u8 = 3;

/// It has a version.
const HAS_VERSION: u8 = 1;
/// It counts the versions of references.
const IS_COUNTED: u8 = 2;

pub(crate) fn put_position(w: &mut Writer, position: Position) {
    put_view(w, position.component);
    w.u64(position.prefix);
}

pub(crate) fn take_position(r: &mut Reader) -> Result<Position, InvalidEnvelope> {
    Ok(Position { component: take_view(r)?, prefix: r.u64("prefix")? })
}

fn put_version(w: &mut Writer, version: Option<Position>) {
    w.u8(u8::from(version.is_some()));
    if let Some(version) = version {
        put_position(w, version);
    }
}

fn take_version(r: &mut Reader) -> Result<Option<Position>, InvalidEnvelope> {
    if r.bool("version flag")? { take_position(r).map(Some) } else { Ok(None) }
}

fn take_name(r: &mut Reader) -> Result<Arc<str>, InvalidEnvelope> {
    let invalid = r.error("name of a definition");
    let name = r.bytes("name of a definition")?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(invalid);
    }
    core::str::from_utf8(&name).map(Arc::from).map_err(|_| invalid)
}

/// An operation's name.
pub(crate) fn take_operation(r: &mut Reader) -> Result<Bytes, InvalidEnvelope> {
    let invalid = r.error("operation");
    let operation = r.bytes("operation")?;
    if operation.is_empty() || operation.len() > NAME_BYTES_MAX {
        Err(invalid)
    } else {
        Ok(operation)
    }
}

impl Definition {
    fn encode(&self, w: &mut Writer) {
        w.bytes(self.name.as_bytes());
        w.bytes(&self.text);
    }

    fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let name = take_name(r)?;
        let invalid = r.error("text of a definition");
        let text = r.bytes("text of a definition")?;
        // It is kept for long: not as a part of a large message.
        let text = Bytes::copy_from_slice(&text);
        if text.len() > DEFINITION_BYTES_MAX { Err(invalid) } else { Ok(Self { name, text }) }
    }
}

impl CatalogChange {
    pub(crate) fn encode(&self, w: &mut Writer) {
        match self {
            Self::Create(definition) => {
                w.u8(CREATE);
                definition.encode(w);
            }
            Self::Change(definition) => {
                w.u8(CHANGE);
                definition.encode(w);
            }
            Self::Delete(name) => {
                w.u8(DELETE);
                w.bytes(name.as_bytes());
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        match r.u8("change of the catalog")? {
            CREATE => Definition::decode(r).map(Self::Create),
            CHANGE => Definition::decode(r).map(Self::Change),
            DELETE => take_name(r).map(Self::Delete),
            _ => Err(r.error("change of the catalog")),
        }
    }

    /// Two operations of one name are the same if this is.
    pub(super) fn digest(&self) -> u64 {
        let mut w = Writer::default();
        self.encode(&mut w);
        digest(super::FNV_OFFSET, &w.finish())
    }
}

impl CatalogMark {
    pub(crate) fn encode(self, w: &mut Writer) {
        put_version(w, self.version);
        w.u64(self.digest);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        Ok(Self { version: take_version(r)?, digest: r.u64("digest of a catalog")? })
    }
}

impl Catalog {
    pub(crate) fn encode(&self, w: &mut Writer) {
        let has_version = if self.version.is_some() { HAS_VERSION } else { 0 };
        let is_counted = if self.gateways.is_some() { IS_COUNTED } else { 0 };
        w.u8(has_version | is_counted);
        if let Some(version) = self.version {
            put_position(w, version);
        }
        if let Some(gateways) = self.gateways {
            w.u64(gateways);
        }
        w.u32(self.definitions.len() as u32);
        for (id, Entry { definition, reference_version }) in &self.definitions {
            w.u64(id.0);
            if self.gateways.is_some() {
                w.u32(*reference_version);
            }
            definition.encode(w);
        }
        w.u32(self.done.len() as u32);
        for Done { operation, change, id } in &self.done {
            w.bytes(operation);
            w.u64(*change);
            w.u64(id.0);
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let flags = r.u8("flags of a catalog")?;
        if flags > HAS_VERSION | IS_COUNTED {
            return Err(r.error("flags of a catalog"));
        }
        let has = |flag| flags & flag != 0;
        let version = if has(HAS_VERSION) { Some(take_position(r)?) } else { None };
        let gateways = if has(IS_COUNTED) { Some(r.u64("digest of gateways")?) } else { None };
        let mut catalog = Self { version, gateways, ..Self::default() };
        let count = r.count(16, "count of definitions")?;
        if count > DEFINITIONS_MAX {
            return Err(r.error("count of definitions"));
        }
        for _ in 0..count {
            let invalid = r.error("definition");
            let id = GroupId(r.u64("id of a definition")?);
            let reference_version =
                if gateways.is_some() { r.u32("version of a reference")? } else { 0 };
            let definition = Definition::decode(r)?;
            if catalog.get(id).is_some() || catalog.id_of(&definition.name).is_some() {
                return Err(invalid);
            }
            catalog.put(id, Entry { definition, reference_version });
        }
        let count = r.count(20, "count of operations")?;
        if count > OPERATIONS_MAX {
            return Err(r.error("count of operations"));
        }
        for _ in 0..count {
            let operation = Bytes::copy_from_slice(&take_operation(r)?);
            let change = r.u64("digest of an operation")?;
            let id = GroupId(r.u64("id of a definition")?);
            catalog.done.push_back(Done { operation, change, id });
        }
        Ok(catalog)
    }

    /// The whole of it, as one message.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut w = Writer::default();
        self.encode(&mut w);
        w.finish()
    }

    /// What [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, InvalidEnvelope> {
        let mut r = Reader::new(bytes);
        let catalog = Self::decode(&mut r)?;
        r.end()?;
        Ok(catalog)
    }
}
