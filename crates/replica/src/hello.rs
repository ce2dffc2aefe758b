//! What a node says of itself when a view begins, and what a newcomer is told.

use crate::history::History;
use crate::ids::ViewId;
use crate::table::GroupTable;
use crate::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use quorba_base::NodeId;

/// A primary component that a node took part in: its view and who was in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lineage {
    /// The view in which the component was decided.
    pub view: ViewId,
    /// Its nodes with the boot in which they took part.
    pub members: Vec<(NodeId, u64)>,
}

/// Sent by every node as soon as a view is installed; the last one delivered decides whether the
/// view is a primary component, and which nodes are up to date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The view that this is about; others are ignored.
    pub view: ViewId,
    /// The last primary component that the disk knows of (of this boot or a former one).
    pub recorded: Option<ViewId>,
    /// The last primary component whose state this node has in memory; `None` after a restart.
    pub lineage: Option<Lineage>,
    /// Messages that it has applied in that component, without those of the transitional view.
    pub prefix: u64,
    /// Digest of all that it would have applied if the transitional view's messages count.
    pub branch: u64,
}

impl Hello {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        put_view(writer, self.view);
        writer.u8(u8::from(self.recorded.is_some()));
        if let Some(recorded) = self.recorded {
            put_view(writer, recorded);
        }
        writer.u64(self.prefix);
        writer.u64(self.branch);
        writer.u8(u8::from(self.lineage.is_some()));
        if let Some(lineage) = &self.lineage {
            put_view(writer, lineage.view);
            writer.u32(lineage.members.len() as u32);
            for (node, incarnation) in &lineage.members {
                writer.node(*node);
                writer.u64(*incarnation);
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let view = take_view(reader)?;
        let recorded = if reader.bool("recorded flag")? { Some(take_view(reader)?) } else { None };
        let prefix = reader.u64("prefix")?;
        let branch = reader.u64("branch")?;
        let lineage = if reader.bool("lineage flag")? {
            let view = take_view(reader)?;
            let mut members = Vec::new();
            for _ in 0..reader.count(9, "lineage members")? {
                members.push((reader.node("lineage member")?, reader.u64("incarnation")?));
            }
            Some(Lineage { view, members })
        } else {
            None
        };
        Ok(Self { view, recorded, lineage, prefix, branch })
    }
}

/// The group tables at the position where a view was decided, for nodes that were away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    /// The view that was decided.
    pub(crate) view: ViewId,
    /// Digest of everything applied so far.
    pub(crate) history: History,
    /// One table per group, in the order of the domain file.
    pub(crate) tables: Vec<GroupTable>,
}

impl Snapshot {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        put_view(writer, self.view);
        writer.u64(self.history.count);
        writer.u64(self.history.digest);
        writer.u32(self.tables.len() as u32);
        for table in &self.tables {
            table.encode(writer);
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let view = take_view(reader)?;
        let history =
            History { count: reader.u64("history")?, digest: reader.u64("history digest")? };
        let mut tables = Vec::new();
        for _ in 0..reader.count(29, "table count")? {
            tables.push(GroupTable::decode(reader)?);
        }
        Ok(Self { view, history, tables })
    }
}

fn put_view(writer: &mut Writer, view: ViewId) {
    writer.u64(view.seq);
    writer.node(view.representative);
}

fn take_view(reader: &mut Reader) -> Result<ViewId, InvalidEnvelope> {
    Ok(ViewId { seq: reader.u64("view")?, representative: reader.node("representative")? })
}
