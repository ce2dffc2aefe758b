//! What a node writes down of the catalog, and how it is put together again at the next boot.
//!
//! A record is either the whole of it, or one change behind the record before. So a change costs
//! what it is long, however many definitions there are.
//!
//! What it is not: a file. Invariant: what is put together is what the last record was made of.

use super::codec::{put_position, take_operation, take_position};
use super::{Catalog, CatalogChange};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use quorba_base::Position;

const WHOLE: u8 = 1;
const CHANGE: u8 = 2;

/// Something to be written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogRecord {
    /// Where in the order the catalog was changed.
    pub version: Position,
    /// Nothing that was written down before is needed any more.
    pub is_whole: bool,
    /// What is to be given back to [`Catalog::recover`].
    pub bytes: Bytes,
}

/// The records are not what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogDamaged {
    /// Which, from 0.
    pub record: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for CatalogDamaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}: {}", self.record, self.what)
    }
}

impl core::error::Error for CatalogDamaged {}

impl Catalog {
    /// The record with the whole of it; none before a component has gone on from it.
    #[must_use]
    pub fn record(&self) -> Option<CatalogRecord> {
        let mut w = Writer::default();
        w.u8(WHOLE);
        self.encode(&mut w);
        Some(CatalogRecord { version: self.version?, is_whole: true, bytes: w.finish() })
    }

    /// The record of the change that was carried out there.
    pub(crate) fn record_of(
        at: Position,
        operation: &[u8],
        change: &CatalogChange,
    ) -> CatalogRecord {
        let mut w = Writer::default();
        w.u8(CHANGE);
        put_position(&mut w, at);
        w.bytes(operation);
        change.encode(&mut w);
        CatalogRecord { version: at, is_whole: false, bytes: w.finish() }
    }

    /// What records say that were written in this order, the first of them a whole one.
    ///
    /// # Errors
    /// [`CatalogDamaged`]: one is not what was written.
    pub fn recover(records: Vec<Bytes>) -> Result<Option<Self>, CatalogDamaged> {
        let mut catalog = None;
        for (record, bytes) in records.into_iter().enumerate() {
            let next = read(catalog.take(), bytes);
            let next = next.map_err(|InvalidEnvelope { what, .. }| CatalogDamaged { record, what });
            catalog = Some(next?);
        }
        Ok(catalog)
    }
}

fn read(before: Option<Catalog>, bytes: Bytes) -> Result<Catalog, InvalidEnvelope> {
    let mut r = Reader::new(bytes);
    let catalog = match (r.u8("kind of a record")?, before) {
        (WHOLE, _) => Catalog::decode(&mut r)?,
        (CHANGE, Some(mut catalog)) => {
            let invalid = |what| InvalidEnvelope { what, offset: 0 };
            let at = take_position(&mut r)?;
            let operation = take_operation(&mut r)?;
            let change = CatalogChange::decode(&mut r)?;
            let is_there = catalog.id_of(change.name()).is_some();
            if is_there == matches!(change, CatalogChange::Create(_)) {
                return Err(invalid("a change that does not fit"));
            }
            if catalog.version().is_some_and(|version| version >= at) {
                return Err(invalid("a change that is older than the one before"));
            }
            catalog.apply(at, operation, &change);
            catalog
        }
        _ => return Err(r.error("kind of a record")),
    };
    r.end()?;
    Ok(catalog)
}
