//! The table as it is given to nodes that are not up to date.
//!
//! What it is not: what the disk keeps of a group. Invariant: what was encoded is decoded to an
//! equal table, but for verdicts, which are heeded where they come up.

use super::{DownReason, GroupTable, Lacks, MemberState, OutReason};
use crate::table::disk_census::Census;
use crate::table::endings::Endings;
use crate::table::votes::Votes;
use crate::words::clock::OrderedClock;
use crate::words::history::{put_history, take_history};
use crate::words::ids::Attempt;
use crate::words::node_map::NodeMap;
use crate::words::style::{code_of_style, style_of_code};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use quorba_base::{NodeId, NodeSet, canary};

/// No node has this index.
const NO_NODE: u8 = u8::MAX;

impl GroupTable {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        put_history(writer, self.history);
        self.clock.encode(writer);
        writer.u8(u8::from(self.opened));
        writer.u8(code_of_style(self.style));
        writer.u8(self.leader.map_or(NO_NODE, NodeId::index));
        writer.u64(self.led_from);
        writer.u64(self.full.bits());
        writer.u32(self.known_from.len() as u32);
        for (node, from) in self.known_from.iter() {
            writer.node(node);
            writer.u64(*from);
        }
        writer.u32(self.members.len() as u32);
        for (node, state) in self.members() {
            writer.node(node);
            encode_state(state, writer);
        }
        writer.u64(self.removed.bits());
        self.votes.encode(writer);
        self.census.encode(writer);
        self.endings.encode(writer);
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let history = take_history(reader)?;
        let clock = OrderedClock::decode(reader)?;
        let opened = reader.bool("opened")?;
        let invalid = reader.error("style");
        let style = style_of_code(reader.u8("style")?).ok_or(invalid)?;
        let leader = NodeId::new(reader.u8("leader")?);
        let led_from = reader.u64("led from")?;
        let full = NodeSet::from_bits(reader.u64("full members")?);
        let mut known_from = NodeMap::new();
        for _ in 0..reader.count(9, "node count")? {
            known_from.insert(reader.node("node")?, reader.u64("known from")?);
        }
        let mut members = Vec::new();
        for _ in 0..reader.count(11, "member count")? {
            let node = reader.node("member")?;
            members.push((node, decode_state(reader)?));
        }
        let removed = NodeSet::from_bits(reader.u64("removed members")?);
        let removed = if canary!(ForgetsTheRemoved) { NodeSet::EMPTY } else { removed };
        let votes = Votes::decode(reader)?;
        let (verdicts, census) = (Vec::new(), Census::decode(reader)?);
        let endings = Endings::decode(reader)?;
        Ok(Self {
            members: members.into_iter().collect(),
            removed,
            history,
            clock,
            opened,
            style,
            leader,
            led_from,
            known_from,
            full,
            votes,
            verdicts,
            census,
            endings,
        })
    }
}

/// A kind, the try and a detail of the kind.
fn encode_state(state: MemberState, writer: &mut Writer) {
    let (kind, attempt, detail) = match state {
        MemberState::Down(reason) => (0, 0, reason.code()),
        MemberState::Joining { attempt, donor, lacks: Lacks::State } => {
            (1, attempt.0, donor.index())
        }
        MemberState::In { attempt } => (2, attempt.0, 0),
        MemberState::Out { attempt, reason } => (3, attempt.0, reason.code()),
        MemberState::Joining { attempt, donor, lacks: Lacks::Requests } => {
            (4, attempt.0, donor.index())
        }
        MemberState::Joining { attempt, donor, lacks: Lacks::Updates } => {
            (5, attempt.0, donor.index())
        }
    };
    writer.u8(kind);
    writer.u64(attempt);
    writer.u8(detail);
}

fn decode_state(reader: &mut Reader) -> Result<MemberState, InvalidEnvelope> {
    let kind = reader.u8("member state")?;
    let attempt = Attempt(reader.u64("attempt")?);
    let detail = reader.u8("state detail")?;
    let invalid = reader.error("member state");
    let joining = |lacks| {
        let donor = NodeId::new(detail).ok_or(invalid)?;
        Ok(MemberState::Joining { attempt, donor, lacks })
    };
    match kind {
        0 => Ok(MemberState::Down(DownReason::from_code(detail).ok_or(invalid)?)),
        1 => joining(Lacks::State),
        2 => Ok(MemberState::In { attempt }),
        3 => {
            let reason = OutReason::from_code(detail).ok_or(invalid)?;
            Ok(MemberState::Out { attempt, reason })
        }
        4 => joining(Lacks::Requests),
        5 => joining(Lacks::Updates),
        _ => Err(invalid),
    }
}
