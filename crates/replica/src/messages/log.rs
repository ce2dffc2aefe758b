//! What a node writes down of what it applies, and what it finds of it at the next boot.
//!
//! What it is not: a file. Invariants: records are handed out in the order in which they took
//! effect; a component's record has everything that a node must know to go on from it, save for
//! the states of servers.

use crate::calls::nested::Calls;
use crate::messages::catalog::Catalog;
use crate::messages::hello::{Lineage, put_lineage, put_tables, take_lineage, take_tables};
use crate::table::GroupTable;
use crate::words::group_map::GroupMap;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::GroupId;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;
pub use quorba_base::{LogRecord, Recovered};

/// What a component's record says: all that a node must know to go on from there, save for its
/// members.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Established {
    /// The boot in which the memory began that goes on in this log.
    pub(crate) since: u64,
    pub(crate) lineage: Lineage,
    /// Messages that were applied in it before this was written; 0 when it was established.
    pub(crate) prefix: u64,
    /// What had been applied before.
    pub(crate) history: History,
    /// Which groups there were, and what they were.
    pub(crate) catalog: Catalog,
    /// The table of each group.
    pub(crate) tables: GroupMap<GroupTable>,
    /// What they have called.
    pub(crate) calls: Calls,
    /// Where groups that are not durable stand, if they wait in this component.
    pub(crate) memory_groups: Option<MemoryGroups>,
}

/// Where groups that are not durable stand while the domain goes on without them: their tables are
/// as they were then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MemoryGroups {
    /// Which groups these are.
    pub(crate) groups: Vec<GroupId>,
    pub(crate) lineage: Option<Lineage>,
    /// Messages that were applied in it.
    pub(crate) prefix: u64,
    /// What had been applied then.
    pub(crate) history: History,
}

impl MemoryGroups {
    fn encode(&self, w: &mut Writer) {
        w.u32(self.groups.len() as u32);
        self.groups.iter().for_each(|group| w.u64(group.0));
        put_lineage(w, self.lineage.as_ref());
        w.u64(self.prefix);
        put_history(w, self.history);
    }

    fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut groups = Vec::new();
        for _ in 0..r.count(2, "groups")? {
            groups.push(GroupId(r.u64("group")?));
        }
        Ok(Self {
            groups,
            lineage: take_lineage(r)?,
            prefix: r.u64("prefix")?,
            history: take_history(r)?,
        })
    }
}

impl Established {
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::default();
        w.u64(self.since);
        self.lineage.encode(&mut w);
        w.u64(self.prefix);
        put_history(&mut w, self.history);
        self.catalog.encode(&mut w);
        put_tables(&mut w, &self.tables);
        self.calls.encode(&mut w);
        w.u8(u8::from(self.memory_groups.is_some()));
        if let Some(memory_groups) = &self.memory_groups {
            memory_groups.encode(&mut w);
        }
        w.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self, InvalidEnvelope> {
        let mut r = Reader::new(bytes);
        let since = r.u64("since")?;
        let lineage = Lineage::decode(&mut r)?;
        let prefix = r.u64("prefix")?;
        let history = take_history(&mut r)?;
        let catalog = Catalog::decode(&mut r)?;
        let tables = take_tables(&mut r)?;
        let calls = Calls::decode(&mut r)?;
        let memory_groups = match r.bool("apart flag")? {
            true => Some(MemoryGroups::decode(&mut r)?),
            false => None,
        };
        r.end()?;
        Ok(Self { since, lineage, prefix, history, catalog, tables, calls, memory_groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::ids::RingId;
    use alloc::vec;
    use quorba_base::NodeId;

    #[test]
    fn a_component_is_read_as_it_was_written_and_damage_is_no_panic() {
        let node = NodeId::new(2).unwrap();
        let view = RingId { seq: 12, representative: node };
        let lineage = Lineage { view, members: vec![(node, 3)] };
        let (history, tables) = (History::EMPTY, GroupMap::new());
        let (calls, catalog) = (Calls::default(), Catalog::default());
        let (groups, former) = (vec![GroupId(1), GroupId(4)], Some(lineage.clone()));
        let memory_groups = Some(MemoryGroups { groups, lineage: former, prefix: 7, history });
        let established = Established {
            since: 2,
            lineage,
            prefix: 3,
            history,
            catalog,
            tables,
            calls,
            memory_groups,
        };
        let bytes = established.encode();
        for length in 0..bytes.len() {
            assert!(Established::decode(bytes.slice(..length)).is_err());
        }
        assert_eq!(Established::decode(bytes), Ok(established));
    }
}
