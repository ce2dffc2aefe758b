//! The payloads of this layer: typed values, and their bytes.
//!
//! Layout: kind (1), then
//! - message: process (4), group number (4), the application's bytes;
//! - join: operation (8), process (4), group number (4), the group's name;
//! - leave: operation (8), process (4), group number (4);
//! - gone: operation (8), process (4);
//! - announcement: ring (9), operations done (8), varint count of groups, per group its number
//!   (4), length of its name (1), name, varint count of members, per member the varint distance
//!   to the one before.
//!
//! Integers are big-endian; varints are LEB128. Group numbers are the sender's.
//!
//! Invariants: every length and count is checked against a named limit before it is used; a
//! decoder returns a whole value or [`InvalidPayload`]; group numbers and members ascend.

use crate::ids::{GroupName, GroupNumber, ProcessNumber};
use crate::{GROUPS_PER_NODE_MAX, MEMBERSHIPS_PER_NODE_MAX};
use alloc::vec::Vec;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;
use quorba_base::fields::{Malformed, Reader, put_ring, put_varint};
use quorba_order::RingId;

/// Room that a message needs in front of the application's bytes.
pub const MESSAGE_HEADER_BYTES: usize = 9;

const KIND_MESSAGE: u8 = 1;
const KIND_JOIN: u8 = 2;
const KIND_LEAVE: u8 = 3;
const KIND_GONE: u8 = 4;
const KIND_ANNOUNCEMENT: u8 = 5;

/// A payload that does not parse. Fault of its sender's program; retrying does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPayload {
    /// It ends before a field does.
    Short,
    /// It goes on behind its last field.
    Trailing,
    /// No such kind.
    Kind(u8),
    /// A name that is empty or too long.
    Name,
    /// More groups or memberships than a node may have.
    Count(u64),
    /// Numbers that do not ascend, or out of range.
    Number,
}

impl fmt::Display for InvalidPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the payload is cut short"),
            Self::Trailing => f.write_str("the payload goes on behind its end"),
            Self::Kind(kind) => write!(f, "no kind of payload has the number {kind}"),
            Self::Name => f.write_str("a group's name is empty or too long"),
            Self::Count(count) => write!(f, "{count} groups or members are too many"),
            Self::Number => f.write_str("a number is out of range or order"),
        }
    }
}

impl core::error::Error for InvalidPayload {}

impl From<Malformed> for InvalidPayload {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Short => Self::Short,
            Malformed::Trailing => Self::Trailing,
            Malformed::Varint | Malformed::Node => Self::Number,
        }
    }
}

/// Any payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Message { process: ProcessNumber, group: GroupNumber, bytes: Bytes },
    Operation(Operation),
    Announcement(Announcement),
}

/// A change of its own memberships that a node orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The node's count of its operations in this boot, from 1.
    pub(crate) id: u64,
    pub(crate) action: Action,
}

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Join { process: ProcessNumber, group: GroupNumber, name: GroupName },
    Leave { process: ProcessNumber, group: GroupNumber },
    Gone { process: ProcessNumber },
}

/// All memberships of a node's processes, when it came into a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) ring: RingId,
    /// The last of the node's operations that is in it.
    pub(crate) applied: u64,
    /// Ascending by number.
    pub(crate) groups: Vec<AnnouncedGroup>,
}

/// One group of an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedGroup {
    pub(crate) number: GroupNumber,
    pub(crate) name: GroupName,
    /// Ascending.
    pub(crate) members: Vec<ProcessNumber>,
}

/// The kind of `payload` says that it is an announcement, whatever follows.
pub(crate) fn is_announcement(payload: &[u8]) -> bool {
    payload.first() == Some(&KIND_ANNOUNCEMENT)
}

/// Writes the header of a message into the room in front of it.
///
/// # Panics
/// If there is less room than [`MESSAGE_HEADER_BYTES`]: the driver's mistake.
pub(crate) fn put_message_header(frame: &mut [u8], process: ProcessNumber, group: GroupNumber) {
    frame[0] = KIND_MESSAGE;
    frame[1..5].copy_from_slice(&process.0.to_be_bytes());
    frame[5..MESSAGE_HEADER_BYTES].copy_from_slice(&group.0.to_be_bytes());
}

impl Payload {
    pub(crate) fn decode(payload: &Bytes) -> Result<Self, InvalidPayload> {
        let mut reader = Reader::new(payload);
        let decoded = match reader.u8()? {
            KIND_MESSAGE => {
                let (process, group) = (process(&mut reader)?, group(&mut reader)?);
                let mut bytes = payload.clone();
                bytes.advance(MESSAGE_HEADER_BYTES);
                return Ok(Self::Message { process, group, bytes });
            }
            KIND_JOIN => {
                let (id, process, group) =
                    (reader.u64()?, process(&mut reader)?, group(&mut reader)?);
                let name = GroupName::new(reader.rest()).ok_or(InvalidPayload::Name)?;
                let action = Action::Join { process, group, name };
                return Ok(Self::Operation(Operation { id, action }));
            }
            KIND_LEAVE => {
                let (id, process, group) =
                    (reader.u64()?, process(&mut reader)?, group(&mut reader)?);
                Self::Operation(Operation { id, action: Action::Leave { process, group } })
            }
            KIND_GONE => {
                let (id, process) = (reader.u64()?, process(&mut reader)?);
                Self::Operation(Operation { id, action: Action::Gone { process } })
            }
            KIND_ANNOUNCEMENT => Self::Announcement(Announcement::decode(&mut reader)?),
            kind => return Err(InvalidPayload::Kind(kind)),
        };
        reader.end()?;
        Ok(decoded)
    }
}

impl Operation {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(17 + crate::NAME_BYTES_MAX);
        let (kind, process) = match &self.action {
            Action::Join { process, .. } => (KIND_JOIN, process),
            Action::Leave { process, .. } => (KIND_LEAVE, process),
            Action::Gone { process } => (KIND_GONE, process),
        };
        out.put_u8(kind);
        out.put_u64(self.id);
        out.put_u32(process.0);
        match &self.action {
            Action::Join { group, name, .. } => {
                out.put_u32(group.0);
                out.put_slice(name.as_bytes());
            }
            Action::Leave { group, .. } => out.put_u32(group.0),
            Action::Gone { .. } => {}
        }
        out.freeze()
    }
}

impl Announcement {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u8(KIND_ANNOUNCEMENT);
        put_ring(&mut out, self.ring);
        out.put_u64(self.applied);
        put_varint(&mut out, self.groups.len() as u64);
        for group in &self.groups {
            out.put_u32(group.number.0);
            let name = group.name.as_bytes();
            out.put_u8(u8::try_from(name.len()).expect("at most NAME_BYTES_MAX"));
            out.put_slice(name);
            put_varint(&mut out, group.members.len() as u64);
            let mut before = 0;
            for member in &group.members {
                put_varint(&mut out, u64::from(member.0 - before));
                before = member.0;
            }
        }
        out.freeze()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, InvalidPayload> {
        let ring = reader.ring()?;
        let applied = reader.u64()?;
        let mut groups: Vec<AnnouncedGroup> = Vec::new();
        let mut memberships = 0;
        for _ in 0..count(reader, GROUPS_PER_NODE_MAX)? {
            let number = group(reader)?;
            if groups.last().is_some_and(|last| last.number >= number) {
                return Err(InvalidPayload::Number);
            }
            let length = usize::from(reader.u8()?);
            let name = GroupName::new(reader.slice(length)?).ok_or(InvalidPayload::Name)?;
            let count = count(reader, MEMBERSHIPS_PER_NODE_MAX)?;
            memberships += count;
            if memberships > MEMBERSHIPS_PER_NODE_MAX {
                return Err(InvalidPayload::Count(memberships as u64));
            }
            groups.push(AnnouncedGroup { number, name, members: members(reader, count)? });
        }
        Ok(Self { ring, applied, groups })
    }
}

fn process(reader: &mut Reader<'_>) -> Result<ProcessNumber, Malformed> {
    reader.u32().map(ProcessNumber)
}

fn group(reader: &mut Reader<'_>) -> Result<GroupNumber, Malformed> {
    reader.u32().map(GroupNumber)
}

fn count(reader: &mut Reader<'_>, max: usize) -> Result<usize, InvalidPayload> {
    let count = reader.varint32()?;
    if count as usize > max {
        return Err(InvalidPayload::Count(u64::from(count)));
    }
    Ok(count as usize)
}

fn members(reader: &mut Reader<'_>, count: usize) -> Result<Vec<ProcessNumber>, InvalidPayload> {
    let mut members: Vec<ProcessNumber> = Vec::new();
    let mut before = 0_u32;
    for _ in 0..count {
        let step = reader.varint32()?;
        if step == 0 && !members.is_empty() {
            return Err(InvalidPayload::Number);
        }
        before = before.checked_add(step).ok_or(InvalidPayload::Number)?;
        members.push(ProcessNumber(before));
    }
    Ok(members)
}

#[cfg(test)]
mod tests;
