//! What nodes have on disk of the catalog, and the operators who create, change and delete groups.
//!
//! What it is not: the catalog, which is the replica's. Invariants: what a node was told to be on its
//! disk survives each crash; of what was not, a beginning may.

use crate::event::Event;
use crate::host::Input;
use crate::world::{World, us};
use bytes::Bytes;
use quorba_base::Position;
use quorba_engine::replica::{Catalog, CatalogRecord};
use std::collections::VecDeque;

/// The catalog's file of one node.
#[derive(Default, Debug)]
pub(crate) struct CatalogDisk {
    records: Vec<Bytes>,
    /// What is on its way.
    writing: VecDeque<CatalogRecord>,
}

impl CatalogDisk {
    fn put(&mut self, record: CatalogRecord) -> Position {
        if record.is_whole {
            self.records.clear();
        }
        self.records.push(record.bytes);
        record.version
    }

    /// What a boot finds; none if nothing was ever written.
    pub(crate) fn found(&self) -> Option<Catalog> {
        Catalog::recover(self.records.clone()).expect("disks keep it")
    }
}

impl World {
    /// A node wants it written down.
    pub(crate) fn write_catalog(&mut self, node: usize, record: CatalogRecord) {
        let most = self.disk_rng.pick(&[100, 1_000, 30_000]);
        let wait = us(self.disk_rng.between(20, most));
        let host = &mut self.hosts[node];
        host.catalog.writing.push_back(record);
        self.queue.push(self.now + wait, Event::CatalogWritten { node, boot: host.boot });
    }

    /// One of them is on disk, the oldest.
    pub(crate) fn catalog_written(&mut self, node: usize, boot: u64) {
        if self.hosts[node].boot != boot || !self.hosts[node].is_up() {
            return;
        }
        let host = &mut self.hosts[node].catalog;
        let Some(record) = host.writing.pop_front() else { return };
        let version = host.put(record);
        self.deliver(node, Input::CatalogSaved(version));
    }

    /// The process of a node has ended, and perhaps its host.
    pub(crate) fn tear_catalog(&mut self, node: usize) {
        let kept = self.disk_rng.index(1 + self.hosts[node].catalog.writing.len());
        let host = &mut self.hosts[node].catalog;
        for record in core::mem::take(&mut host.writing).into_iter().take(kept) {
            host.put(record);
        }
    }
}
