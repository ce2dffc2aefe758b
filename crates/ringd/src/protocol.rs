//! What a program and the daemon on its machine say to each other, over a local stream socket.
//!
//! Every frame: `u32` length of what follows, `u8` kind, fields; numbers are big-endian.
//!
//! | to the daemon | kind | fields |
//! |---|---|---|
//! | join | 1 | name |
//! | leave | 2 | group `u32` |
//! | send | 3 | guarantee `u8` (0 agreed, 1 safe), group `u32`, message |
//!
//! | to the program | kind | fields |
//! |---|---|---|
//! | welcome | 16 | process |
//! | joining | 17 | group `u32`, name |
//! | refused | 18 | kind of what was refused `u8`, group `u32` (0 for a join), text |
//! | view | 19 | transitional `u8`, group `u32`, view and members: see below |
//! | message | 20 | group `u32`, process, message |
//!
//! A process: node `u8`, incarnation `u64`, number `u32`. A group's number is the daemon's. A view
//! goes on with its name (ring number `u64`, representative `u8`, change `u64`), the counts of
//! members, joined and left (`u32` each), and these: members as processes, the others as process
//! and reason `u8`.
//!
//! What it is not: authentication; who may open the socket may use the ring.
//!
//! Invariant: a frame is taken only when it is there whole, and at most [`FRAME_BYTES_MAX`] long.

use bytes::{Buf, BufMut, BytesMut};
use quorba_base::fields::{Malformed, Reader, put_ring};
use quorba_groups::{
    GroupName, GroupNumber, GroupView, GroupViewId, JoinReason, MESSAGE_HEADER_BYTES, ProcessId,
    ProcessNumber,
};
use quorba_order::{Guarantee, PAYLOAD_BYTES_MAX, ViewKind};
use std::fmt;

/// The longest frame, its length field not counted.
pub const FRAME_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// Bytes of a `send` frame before the message.
pub const SEND_HEADER_BYTES: usize = 10;
/// A program's message is at most this long: it must fit a `send` frame, the ring's payload, and,
/// which takes most, the `message` frame to every member.
pub const MESSAGE_BYTES_MAX: usize = FRAME_BYTES_MAX - (MESSAGE_FRAME_HEADER_BYTES - LENGTH_BYTES);
const _: () = assert!(
    MESSAGE_BYTES_MAX + MESSAGE_HEADER_BYTES <= PAYLOAD_BYTES_MAX
        && MESSAGE_BYTES_MAX + SEND_HEADER_BYTES - LENGTH_BYTES <= FRAME_BYTES_MAX
);

const LENGTH_BYTES: usize = 4;
const JOIN: u8 = WishKind::Join as u8;
const LEAVE: u8 = WishKind::Leave as u8;
const SEND: u8 = WishKind::Send as u8;
const WELCOME: u8 = 16;
const JOINING: u8 = 17;
const REFUSED: u8 = 18;
const VIEW: u8 = 19;
const MESSAGE: u8 = 20;
/// The header of a `message` frame: length, kind, group, process.
const MESSAGE_FRAME_HEADER_BYTES: usize = LENGTH_BYTES + 1 + 4 + 13;

/// A frame that cannot be understood: the other side's program is broken or of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame(&'static str);

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a frame that cannot be understood: {}", self.0)
    }
}

impl std::error::Error for BadFrame {}

impl From<Malformed> for BadFrame {
    fn from(malformed: Malformed) -> Self {
        Self(match malformed {
            Malformed::Short => "its fields are cut short",
            Malformed::Trailing => "it goes on behind its fields",
            Malformed::Varint => "a number is out of range",
            Malformed::Node => "no such node",
        })
    }
}

/// The kinds of frames that a program sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WishKind {
    /// To be in a group.
    Join = 1,
    /// To be out of it.
    Leave = 2,
    /// To send.
    Send = 3,
}

/// What a program wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To be in a group.
    Join(GroupName),
    /// To be out of it.
    Leave(GroupNumber),
    /// To send; `frame` is the message behind room for the header of the groups' layer.
    Send {
        /// How it is ordered.
        guarantee: Guarantee,
        /// To whom.
        group: GroupNumber,
        /// [`MESSAGE_HEADER_BYTES`] of room, then the message.
        frame: BytesMut,
    },
}

/// What a program is told; messages and texts stand in the program's own buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The connection stands; this is who the program is.
    Welcome(ProcessId),
    /// The daemon's number for a group that the program joins. It is a member at its first view.
    Joining(GroupNumber, GroupName),
    /// A wish was not granted.
    Refused {
        /// What was refused.
        what: WishKind,
        /// Which group; 0 for a join.
        group: GroupNumber,
        /// Why.
        text: &'a str,
    },
    /// A view of a group.
    View(ViewNotice),
    /// A message of a group.
    Message {
        /// Which group.
        group: GroupNumber,
        /// Who sent it.
        from: ProcessId,
        /// What.
        message: &'a [u8],
    },
}

/// A view as a program is told of it. Reasons are small numbers: joins 0 joined, 1 merged; leaves
/// 0 left, 1 died, 2 its node is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewNotice {
    /// Which group.
    pub group: GroupNumber,
    /// Transitional or regular.
    pub kind: ViewKind,
    /// The view's name, the same at all members.
    pub id: GroupViewId,
    /// Ascending.
    pub members: Vec<ProcessId>,
    /// Who has come.
    pub joined: Vec<(ProcessId, u8)>,
    /// Who has gone.
    pub left: Vec<(ProcessId, u8)>,
}

/// Length of the frame at the head of `bytes`, its length field included; `None` if more must be
/// read first.
///
/// # Errors
/// [`BadFrame`]: it is too long, or empty.
pub fn frame_bytes(bytes: &[u8]) -> Result<Option<usize>, BadFrame> {
    let Some(head) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_be_bytes(*head) as usize;
    if length == 0 || length > FRAME_BYTES_MAX {
        return Err(BadFrame("its length is out of range"));
    }
    let whole = LENGTH_BYTES + length;
    Ok((bytes.len() >= whole).then_some(whole))
}

/// The next whole frame of `buffer` with its length field; `None` if more must be read first.
///
/// # Errors
/// As [`frame_bytes`].
pub fn next_frame(buffer: &mut BytesMut) -> Result<Option<BytesMut>, BadFrame> {
    Ok(frame_bytes(buffer)?.map(|bytes| buffer.split_to(bytes)))
}

impl Wish {
    /// Reads a frame from [`next_frame`].
    ///
    /// # Errors
    /// [`BadFrame`].
    pub fn decode(mut frame: BytesMut) -> Result<Self, BadFrame> {
        match frame[LENGTH_BYTES] {
            JOIN => {
                let name = GroupName::new(&frame[LENGTH_BYTES + 1..]);
                name.map(Self::Join).ok_or(BadFrame("a name of 1 to 128 bytes is wanted"))
            }
            LEAVE if frame.len() == LENGTH_BYTES + 5 => {
                frame.advance(LENGTH_BYTES + 1);
                Ok(Self::Leave(GroupNumber(frame.get_u32())))
            }
            SEND if frame.len() > SEND_HEADER_BYTES + MESSAGE_BYTES_MAX => {
                Err(BadFrame("a message longer than any may be"))
            }
            SEND if frame.len() >= SEND_HEADER_BYTES => {
                let guarantee = match frame[LENGTH_BYTES + 1] {
                    0 => Guarantee::Agreed,
                    1 => Guarantee::Safe,
                    _ => return Err(BadFrame("no such guarantee")),
                };
                let group = GroupNumber((&frame[LENGTH_BYTES + 2..]).get_u32());
                frame.advance(SEND_HEADER_BYTES - MESSAGE_HEADER_BYTES);
                Ok(Self::Send { guarantee, group, frame })
            }
            _ => Err(BadFrame("no such kind, or its fields are cut short")),
        }
    }
}

/// Appends a `join`.
pub fn put_join(out: &mut BytesMut, name: &GroupName) {
    out.put_u32(1 + name.as_bytes().len() as u32);
    out.put_u8(JOIN);
    out.put_slice(name.as_bytes());
}

/// Appends a `leave`.
pub fn put_leave(out: &mut BytesMut, group: GroupNumber) {
    out.put_u32(5);
    out.put_u8(LEAVE);
    out.put_u32(group.0);
}

/// Appends a `send`.
///
/// # Panics
/// If the message is longer than [`MESSAGE_BYTES_MAX`].
pub fn put_send(out: &mut BytesMut, group: GroupNumber, guarantee: Guarantee, message: &[u8]) {
    assert!(message.len() <= MESSAGE_BYTES_MAX, "the caller has looked at the length");
    out.reserve(SEND_HEADER_BYTES + message.len());
    out.put_u32((SEND_HEADER_BYTES - LENGTH_BYTES + message.len()) as u32);
    out.put_u8(SEND);
    out.put_u8(u8::from(guarantee == Guarantee::Safe));
    out.put_u32(group.0);
    out.put_slice(message);
}

fn put_process(out: &mut BytesMut, process: ProcessId) {
    out.put_u8(process.node.index());
    out.put_u64(process.incarnation);
    out.put_u32(process.number.0);
}

/// Appends a `welcome`.
pub fn put_welcome(out: &mut BytesMut, process: ProcessId) {
    out.put_u32(14);
    out.put_u8(WELCOME);
    put_process(out, process);
}

/// Appends a `joining`.
pub fn put_joining(out: &mut BytesMut, group: GroupNumber, name: &GroupName) {
    out.put_u32(5 + name.as_bytes().len() as u32);
    out.put_u8(JOINING);
    out.put_u32(group.0);
    out.put_slice(name.as_bytes());
}

/// Appends a `refused`; `group` is 0 for a join.
pub fn put_refused(out: &mut BytesMut, what: WishKind, group: GroupNumber, text: &str) {
    out.put_u32(6 + text.len() as u32);
    out.put_u8(REFUSED);
    out.put_u8(what as u8);
    out.put_u32(group.0);
    out.put_slice(text.as_bytes());
}

/// Appends the head of a `message` frame; so many bytes of message are to follow.
pub fn put_message_head(out: &mut BytesMut, group: GroupNumber, from: ProcessId, bytes: usize) {
    out.put_u32((MESSAGE_FRAME_HEADER_BYTES - LENGTH_BYTES + bytes) as u32);
    out.put_u8(MESSAGE);
    out.put_u32(group.0);
    put_process(out, from);
}

/// Appends a `view`.
pub fn put_view(out: &mut BytesMut, group: GroupNumber, view: &GroupView) {
    let start = out.len();
    out.put_u32(0);
    out.put_u8(VIEW);
    out.put_u8(u8::from(view.kind == ViewKind::Transitional));
    out.put_u32(group.0);
    put_ring(out, view.id.ring);
    out.put_u64(view.id.change);
    out.put_u32(view.members.len() as u32);
    out.put_u32(view.joined.len() as u32);
    out.put_u32(view.left.len() as u32);
    for member in view.members.iter() {
        put_process(out, *member);
    }
    for (member, reason) in &view.joined {
        put_process(out, *member);
        out.put_u8(u8::from(*reason == JoinReason::Merged));
    }
    for (member, reason) in &view.left {
        put_process(out, *member);
        out.put_u8(match reason {
            quorba_groups::Gone::Left => 0,
            quorba_groups::Gone::Died => 1,
            quorba_groups::Gone::Node(_) => 2,
        });
    }
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

fn group(reader: &mut Reader<'_>) -> Result<GroupNumber, Malformed> {
    reader.u32().map(GroupNumber)
}

fn process(reader: &mut Reader<'_>) -> Result<ProcessId, Malformed> {
    let (node, incarnation) = (reader.node()?, reader.u64()?);
    Ok(ProcessId { node, incarnation, number: ProcessNumber(reader.u32()?) })
}

fn with_reason(reader: &mut Reader<'_>) -> Result<(ProcessId, u8), Malformed> {
    Ok((process(reader)?, reader.u8()?))
}

impl<'a> Notice<'a> {
    /// Reads a whole frame, see [`frame_bytes`].
    ///
    /// # Errors
    /// [`BadFrame`].
    pub fn decode(frame: &'a [u8]) -> Result<Self, BadFrame> {
        let mut reader = Reader::new(frame.get(LENGTH_BYTES..).unwrap_or_default());
        match reader.u8()? {
            WELCOME => Ok(Self::Welcome(process(&mut reader)?)),
            JOINING => {
                let group = group(&mut reader)?;
                let name = GroupName::new(reader.rest());
                let name = name.ok_or(BadFrame("a name of 1 to 128 bytes is wanted"))?;
                Ok(Self::Joining(group, name))
            }
            REFUSED => {
                let what = match reader.u8()? {
                    JOIN => WishKind::Join,
                    LEAVE => WishKind::Leave,
                    SEND => WishKind::Send,
                    _ => return Err(BadFrame("no such kind of wish")),
                };
                let group = group(&mut reader)?;
                let text = std::str::from_utf8(reader.rest());
                let text = text.map_err(|_| BadFrame("its text is no UTF-8"))?;
                Ok(Self::Refused { what, group, text })
            }
            VIEW => view(&mut reader).map(Self::View),
            MESSAGE => {
                let (group, from) = (group(&mut reader)?, process(&mut reader)?);
                Ok(Self::Message { group, from, message: reader.rest() })
            }
            _ => Err(BadFrame("no such kind")),
        }
    }
}

fn view(reader: &mut Reader<'_>) -> Result<ViewNotice, BadFrame> {
    let kind = if reader.u8()? == 1 { ViewKind::Transitional } else { ViewKind::Regular };
    let group = group(reader)?;
    let id = GroupViewId { ring: reader.ring()?, change: reader.u64()? };
    let (members, joined, left) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let processes = [members, joined, left].into_iter().map(u64::from).sum::<u64>();
    if processes * 13 > reader.rest().len() as u64 {
        return Err(BadFrame("it has fewer processes than it says"));
    }
    Ok(ViewNotice {
        group,
        kind,
        id,
        members: (0..members).map(|_| process(reader)).collect::<Result<_, _>>()?,
        joined: (0..joined).map(|_| with_reason(reader)).collect::<Result<_, _>>()?,
        left: (0..left).map(|_| with_reason(reader)).collect::<Result<_, _>>()?,
    })
}
