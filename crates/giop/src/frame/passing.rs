//! Requests that are too large: who made them is told, and the stream goes on behind them.
//!
//! What it is not: a reason to keep them; of what is passed over only the beginning is looked at.
//! Invariant: what is passed over is exactly one message, with all its fragments.

use super::{Framer, Partial};
use crate::cdr::Reader;
use crate::limits::{CONTEXTS_MAX, HEADER_BYTES};
use crate::message::MessageType;
use crate::version::{Endian, Version};
use bytes::{Buf, Bytes};

/// How far the id of a request may stand behind its beginning: in front of it there are service
/// contexts in GIOP 1.0 and 1.1.
const ID_WITHIN: usize = 64 << 10;

/// What became of a message that is too large; see [`Framer::pass_over`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassedOver {
    /// More of it has to come before anything can be said.
    NotYet,
    /// It is a request, and is passed over.
    Request {
        /// In which version it came.
        version: Version,
        /// In which byte order.
        endian: Endian,
        /// The client's id for it, if it waits for a reply.
        awaited: Option<u32>,
    },
    /// It is something else, or cannot be read: the stream cannot be read any further.
    Unreadable,
}

/// The beginning of a message whose fragments are too many.
pub(super) struct Overlong {
    version: Version,
    endian: Endian,
    kind: MessageType,
    bytes: Bytes,
    /// There are more of them.
    more: bool,
}

impl Overlong {
    pub(super) fn of(partial: Partial, more: bool) -> Self {
        let Partial { version, endian, kind, bytes, .. } = partial;
        Self { version, endian, kind, bytes: Bytes::from(bytes), more }
    }
}

enum Asked {
    NotYet,
    Unreadable,
    Awaited(u32),
    Oneway,
}

impl Framer {
    /// After [`crate::FrameError::TooLarge`]: what it was that is too large. If it is a request,
    /// the rest of it is passed over as it comes, and the next message is the one behind it.
    pub fn pass_over(&mut self) -> PassedOver {
        if let Some(overlong) = self.overlong.take() {
            let Overlong { version, endian, kind, bytes, more } = overlong;
            self.skips_fragments = more && version < Version::V1_2;
            return said(version, endian, asked(kind, version, endian, &bytes, true));
        }
        let Ok(Some(header)) = self.header() else { return PassedOver::Unreadable };
        let is_all = self.buffer.len() >= ID_WITHIN.min(header.total);
        let asked = asked(header.kind, header.version, header.endian, &self.buffer, is_all);
        if matches!(asked, Asked::Awaited(_) | Asked::Oneway) {
            let here = self.buffer.len().min(header.total);
            self.to_skip = header.total - here;
            self.buffer.advance(here);
            self.skips_fragments = header.more && header.version < Version::V1_2;
        }
        said(header.version, header.endian, asked)
    }
}

fn said(version: Version, endian: Endian, asked: Asked) -> PassedOver {
    let awaited = match asked {
        Asked::NotYet => return PassedOver::NotYet,
        Asked::Unreadable => return PassedOver::Unreadable,
        Asked::Awaited(id) => Some(id),
        Asked::Oneway => None,
    };
    PassedOver::Request { version, endian, awaited }
}

/// `is_all`: more of it would not help.
fn asked(kind: MessageType, version: Version, endian: Endian, bytes: &[u8], is_all: bool) -> Asked {
    if kind != MessageType::Request {
        return Asked::Unreadable;
    }
    let reader = &mut Reader::at(bytes, HEADER_BYTES, endian);
    let found = if version < Version::V1_2 { old_head(reader) } else { head(reader) };
    match found {
        Some((id, true)) => Asked::Awaited(id),
        Some((_, false)) => Asked::Oneway,
        None if is_all => Asked::Unreadable,
        None => Asked::NotYet,
    }
}

/// Id, and whether a reply is awaited (GIOP §15.4.2.1).
fn head(reader: &mut Reader<'_>) -> Option<(u32, bool)> {
    let id = reader.read_u32("request id").ok()?;
    Some((id, reader.read_u8("response flags").ok()? & 1 != 0))
}

/// The same of GIOP 1.0 and 1.1 (§15.4.2).
fn old_head(reader: &mut Reader<'_>) -> Option<(u32, bool)> {
    let count = reader.read_u32("service contexts").ok()? as usize;
    if count > CONTEXTS_MAX {
        return None;
    }
    for _ in 0..count {
        reader.read_u32("context id").ok()?;
        reader.read_octets(ID_WITHIN, "context").ok()?;
    }
    let id = reader.read_u32("request id").ok()?;
    Some((id, reader.read_bool("response expected").ok()?))
}

#[cfg(test)]
mod tests;
