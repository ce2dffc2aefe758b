//! What a node says of itself when a view begins, and what a newcomer is told.

use crate::calls::nested::Calls;
use crate::messages::catalog::CatalogMark;
use crate::table::GroupTable;
use crate::words::group_map::GroupMap;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{GroupId, RingId, put_view, take_view};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet};

/// A primary component that a node took part in: its view and who was in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lineage {
    /// The view in which the component was decided.
    pub view: RingId,
    /// Its nodes with the boot in which they took part.
    pub members: Vec<(NodeId, u64)>,
}

impl Lineage {
    /// Its nodes.
    #[must_use]
    pub fn nodes(&self) -> NodeSet {
        self.members.iter().map(|(node, _)| *node).collect()
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        put_view(writer, self.view);
        writer.u32(self.members.len() as u32);
        for (node, incarnation) in &self.members {
            writer.node(*node);
            writer.u64(*incarnation);
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let view = take_view(reader)?;
        let mut members = Vec::new();
        for _ in 0..reader.count(9, "lineage members")? {
            members.push((reader.node("lineage member")?, reader.u64("incarnation")?));
        }
        Ok(Self { view, members })
    }
}

/// What a node has written to its disk about primary components, in any of its boots.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Record {
    /// The last one that it knows to have been formed.
    pub formed: Option<Lineage>,
    /// The last component that anybody remembered when `formed` was decided: what it goes on from.
    pub base: Option<RingId>,
    /// Later ones that it took part in preparing, and that may have been formed (dynamic rule).
    pub attempts: Vec<Lineage>,
    /// The same for groups that are not durable, if they had no part in `formed`; see
    /// `primary::disks`.
    pub former: Option<Former>,
}

/// The last component in which groups that are not durable took part.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Former {
    /// Which one; `None`: they never did.
    pub formed: Option<Lineage>,
    /// What it went on from.
    pub base: Option<RingId>,
}

impl Record {
    /// The last component in it.
    #[must_use]
    pub fn latest(&self) -> Option<RingId> {
        self.formed.iter().chain(&self.attempts).map(|lineage| lineage.view).max()
    }

    fn encode(&self, writer: &mut Writer) {
        put_lineage(writer, self.formed.as_ref());
        put_base(writer, self.base);
        writer.u8(u8::from(self.former.is_some()));
        if let Some(former) = &self.former {
            put_lineage(writer, former.formed.as_ref());
            put_base(writer, former.base);
        }
        writer.u32(self.attempts.len() as u32);
        for attempt in &self.attempts {
            attempt.encode(writer);
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let formed = take_lineage(reader)?;
        let base = take_base(reader)?;
        let former = match reader.bool("former flag")? {
            true => Some(Former { formed: take_lineage(reader)?, base: take_base(reader)? }),
            false => None,
        };
        let mut attempts = Vec::new();
        for _ in 0..reader.count(13, "attempts")? {
            attempts.push(Lineage::decode(reader)?);
        }
        Ok(Self { formed, base, attempts, former })
    }
}

/// Sent by every node as soon as a view is installed; the last one delivered decides whether the
/// view is a primary component, and which nodes are up to date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The view that this is about; others are ignored.
    pub view: RingId,
    /// What the disk knows (of this boot or a former one).
    pub record: Record,
    /// The first boot of the memory that goes on: this one, unless a log has carried it over.
    pub since: u64,
    /// The last primary component whose state this node has in memory; `None` after a restart
    /// without a log.
    pub lineage: Option<Lineage>,
    /// Messages that it has applied in that component: so many from the beginning of its order.
    pub prefix: u64,
    /// Digest of all that it has applied, in this and former components.
    pub branch: u64,
    /// Where its groups that are not durable stand, if that is not there.
    pub memory_groups: Option<MemoryPosition>,
    /// Which groups it knows.
    pub catalog: CatalogMark,
}

/// Where groups stand that live in memory alone, and were left behind when disks decided; see
/// [`crate::primary`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemoryPosition {
    /// The last component in which these groups took part, as far as this node has it in memory.
    pub lineage: Option<Lineage>,
    /// Messages that were applied in it.
    pub prefix: u64,
    /// Digest of all that had been applied then.
    pub branch: u64,
}

impl MemoryPosition {
    fn encode(&self, writer: &mut Writer) {
        put_lineage(writer, self.lineage.as_ref());
        writer.u64(self.prefix);
        writer.u64(self.branch);
    }

    fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        Ok(Self {
            lineage: take_lineage(reader)?,
            prefix: reader.u64("prefix")?,
            branch: reader.u64("branch")?,
        })
    }
}

impl Hello {
    /// What it says of groups that are not durable.
    pub(crate) fn of_memory(mut self) -> Self {
        if let Some(Former { formed, base }) = self.record.former.take() {
            (self.record.formed, self.record.base) = (formed, base);
        }
        if let Some(MemoryPosition { lineage, prefix, branch }) = self.memory_groups.take() {
            (self.lineage, self.prefix, self.branch) = (lineage, prefix, branch);
        }
        self
    }

    /// Whether its groups that are not durable have had no part in the last component, as far as it
    /// knows.
    pub(crate) fn memory_groups_are_detached(&self) -> bool {
        self.memory_groups.is_some() || self.record.former.is_some()
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        put_view(writer, self.view);
        self.record.encode(writer);
        writer.u64(self.since);
        writer.u64(self.prefix);
        writer.u64(self.branch);
        put_lineage(writer, self.lineage.as_ref());
        writer.u8(u8::from(self.memory_groups.is_some()));
        if let Some(memory_groups) = &self.memory_groups {
            memory_groups.encode(writer);
        }
        self.catalog.encode(writer);
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let view = take_view(reader)?;
        let record = Record::decode(reader)?;
        let since = reader.u64("since")?;
        let prefix = reader.u64("prefix")?;
        let branch = reader.u64("branch")?;
        let lineage = take_lineage(reader)?;
        let memory_groups = match reader.bool("apart flag")? {
            true => Some(MemoryPosition::decode(reader)?),
            false => None,
        };
        let catalog = CatalogMark::decode(reader)?;
        Ok(Self { view, record, since, lineage, prefix, branch, memory_groups, catalog })
    }
}

/// The group tables at the position where a view was decided, for nodes that were away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    /// The view that was decided.
    pub(crate) view: RingId,
    /// It tells of groups that are not durable, which go on from other nodes than the domain.
    pub(crate) of_memory_groups: bool,
    /// Digest of everything applied so far.
    pub(crate) history: History,
    /// The table of each group.
    pub(crate) tables: GroupMap<GroupTable>,
    /// What they have called.
    pub(crate) calls: Calls,
}

impl Snapshot {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        put_view(writer, self.view);
        writer.u8(u8::from(self.of_memory_groups));
        put_history(writer, self.history);
        put_tables(writer, &self.tables);
        self.calls.encode(writer);
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let view = take_view(reader)?;
        let of_memory_groups = reader.bool("apart flag")?;
        let history = take_history(reader)?;
        let tables = take_tables(reader)?;
        Ok(Self { view, of_memory_groups, history, tables, calls: Calls::decode(reader)? })
    }
}

/// The tables of groups, with their ids.
pub(crate) fn put_tables(writer: &mut Writer, tables: &GroupMap<GroupTable>) {
    writer.u32(tables.len() as u32);
    for (id, table) in tables.iter() {
        writer.u64(id.0);
        table.encode(writer);
    }
}

/// See [`put_tables`].
pub(crate) fn take_tables(reader: &mut Reader) -> Result<GroupMap<GroupTable>, InvalidEnvelope> {
    let mut tables = GroupMap::new();
    for _ in 0..reader.count(31, "table count")? {
        let invalid = reader.error("table of a group twice");
        let id = GroupId(reader.u64("group")?);
        if tables.insert(id, GroupTable::decode(reader)?).is_some() {
            return Err(invalid);
        }
    }
    Ok(tables)
}

fn put_base(writer: &mut Writer, base: Option<RingId>) {
    writer.u8(u8::from(base.is_some()));
    if let Some(base) = base {
        put_view(writer, base);
    }
}

fn take_base(reader: &mut Reader) -> Result<Option<RingId>, InvalidEnvelope> {
    match reader.bool("base flag")? {
        true => take_view(reader).map(Some),
        false => Ok(None),
    }
}

pub(crate) fn put_lineage(writer: &mut Writer, lineage: Option<&Lineage>) {
    writer.u8(u8::from(lineage.is_some()));
    if let Some(lineage) = lineage {
        lineage.encode(writer);
    }
}

pub(crate) fn take_lineage(reader: &mut Reader) -> Result<Option<Lineage>, InvalidEnvelope> {
    match reader.bool("lineage flag")? {
        true => Lineage::decode(reader).map(Some),
        false => Ok(None),
    }
}
