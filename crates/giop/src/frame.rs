//! Cuts whole messages out of a byte stream, joining fragments (GIOP §15.4.9).
//!
//! Invariants: memory grows with the bytes that came, never with a length that a header merely
//! declares; fragments of several messages may be interleaved (1.2), within a budget of messages
//! and of bytes.

use crate::cdr::Reader;
use crate::error::FrameError;
use crate::frame::passing::Overlong;
use crate::limits::HEADER_BYTES;
use crate::message::{Message, MessageType};
use crate::version::{Endian, Version};
use alloc::vec::Vec;
use bytes::{Buf, Bytes, BytesMut};

mod passing;

pub use passing::PassedOver;

const FLAG_MORE_FRAGMENTS: u8 = 2;
/// Where the request id of a GIOP 1.2 message stands, of a Fragment too.
const ID_END: usize = HEADER_BYTES + 4;

/// The longest message whose memory the next ones are read into as well.
const SHARED_BYTES_MAX: usize = 1 << 20;

/// What one connection may cost.
#[derive(Clone, Copy, Debug)]
pub struct FramerLimits {
    /// The largest message, whole or joined, in bytes.
    pub message_bytes_max: usize,
    /// Messages that may be in fragments at once.
    pub fragmented_requests_max: usize,
    /// Bytes of all unfinished messages together.
    pub buffered_bytes_max: usize,
}

/// A message of which fragments are still to come.
struct Partial {
    /// `None` in GIOP 1.1, where only one message can be in fragments.
    request_id: Option<u32>,
    version: Version,
    endian: Endian,
    kind: MessageType,
    bytes: Vec<u8>,
}

/// See the module's text. One per connection.
pub struct Framer {
    limits: FramerLimits,
    buffer: BytesMut,
    partials: Vec<Partial>,
    partial_bytes: usize,
    /// What was too large, if it came in fragments.
    overlong: Option<Overlong>,
    /// So many bytes that are still to come are of a message that is passed over.
    to_skip: usize,
    /// Fragments of GIOP 1.1 are of such a message.
    skips_fragments: bool,
}

struct Header {
    version: Version,
    endian: Endian,
    kind: MessageType,
    more: bool,
    total: usize,
}

impl Framer {
    /// A framer that has seen nothing.
    #[must_use]
    pub fn new(limits: FramerLimits) -> Self {
        Self {
            limits,
            buffer: BytesMut::new(),
            partials: Vec::new(),
            partial_bytes: 0,
            overlong: None,
            to_skip: 0,
            skips_fragments: false,
        }
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        let skipped = self.to_skip.min(bytes.len());
        self.to_skip -= skipped;
        bytes.advance(skipped);
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that are held: received and not yet given out.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len().saturating_add(self.partial_bytes)
    }

    /// Whether a message has begun and is not complete.
    #[must_use]
    pub fn waiting_since_partial(&self) -> bool {
        !self.buffer.is_empty() || !self.partials.is_empty() || self.to_skip > 0
    }

    /// The next whole message, if all of it has come.
    ///
    /// # Errors
    /// When the stream cannot be read any further: answer MessageError and close. After
    /// [`FrameError::TooLarge`] it may be that it can, see [`Self::pass_over`].
    // Not an iterator: an error ends the connection, `None` does not.
    #[expect(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Message>, FrameError> {
        loop {
            let Some(header) = self.header()? else { return Ok(None) };
            if header.total > self.limits.message_bytes_max {
                let limit = self.limits.message_bytes_max;
                return Err(FrameError::TooLarge { bytes: header.total, limit });
            }
            if self.buffer.len() < header.total {
                if self.buffered_bytes() > self.limits.buffered_bytes_max {
                    let limit = self.limits.buffered_bytes_max;
                    return Err(FrameError::TooMuchBuffered { limit });
                }
                return Ok(None);
            }
            let bytes = self.cut(header.total);
            if let Some(message) = self.take(&header, bytes)? {
                return Ok(Some(message));
            }
        }
    }

    /// The first `total` bytes. What comes behind a long message gets memory of its own: it would
    /// keep all of the message's for as long as the connection lasts.
    fn cut(&mut self, total: usize) -> Bytes {
        let rest = if total > SHARED_BYTES_MAX {
            BytesMut::from(self.buffer.get(total..).unwrap_or_default())
        } else {
            return self.buffer.split_to(total).freeze();
        };
        let mut bytes = core::mem::replace(&mut self.buffer, rest);
        bytes.truncate(total);
        bytes.freeze()
    }

    fn header(&self) -> Result<Option<Header>, FrameError> {
        // The magic is checked as it comes, so that garbage is not waited for.
        let magic = b"GIOP";
        if self.buffer.iter().zip(magic).any(|(a, b)| a != b) {
            return Err(FrameError::Magic);
        }
        let Some(raw) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [_, _, _, _, major, minor, flags, kind, ..] = *raw;
        let version = Version { major, minor };
        if !version.is_known() {
            return Err(FrameError::Version { major, minor });
        }
        let flags_max = if version >= Version::V1_1 { 3 } else { 1 };
        if flags > flags_max {
            return Err(FrameError::Flags(flags));
        }
        let endian = Endian::from_bit(flags);
        let unknown = FrameError::MessageType(kind);
        let kind = MessageType::from_octet(kind, version).ok_or(unknown)?;
        let size = Reader::at(raw, 8, endian).read_u32("size").unwrap_or(u32::MAX) as usize;
        let total = size.saturating_add(HEADER_BYTES);
        Ok(Some(Header { version, endian, kind, more: flags & FLAG_MORE_FRAGMENTS != 0, total }))
    }

    fn take(&mut self, header: &Header, bytes: Bytes) -> Result<Option<Message>, FrameError> {
        if header.kind == MessageType::Fragment {
            return self.continue_with(header, &bytes);
        }
        if header.more {
            self.begin(header, &bytes)?;
            return Ok(None);
        }
        if header.kind == MessageType::CancelRequest {
            self.cancel(header, &bytes);
        }
        let Header { version, endian, kind, .. } = *header;
        Ok(Some(Message::trusted(bytes, version, endian, kind)))
    }

    fn begin(&mut self, header: &Header, bytes: &Bytes) -> Result<(), FrameError> {
        let with_id = header.version >= Version::V1_2;
        let may = match header.kind {
            MessageType::Request | MessageType::Reply => true,
            MessageType::LocateRequest | MessageType::LocateReply => with_id,
            _ => false,
        };
        if !may {
            return Err(FrameError::UnexpectedFragment);
        }
        let request_id = if with_id { Some(request_id(bytes, header.endian)?) } else { None };
        if self.partials.iter().any(|partial| partial.request_id == request_id) {
            return Err(FrameError::FragmentedTwice(request_id.unwrap_or(0)));
        }
        if self.partials.len() >= self.limits.fragmented_requests_max {
            let limit = self.limits.fragmented_requests_max;
            return Err(FrameError::TooManyFragmented { limit });
        }
        self.hold(bytes.len())?;
        self.skips_fragments &= with_id;
        let Header { version, endian, kind, .. } = *header;
        self.partials.push(Partial { request_id, version, endian, kind, bytes: bytes.to_vec() });
        Ok(())
    }

    fn continue_with(
        &mut self,
        header: &Header,
        bytes: &Bytes,
    ) -> Result<Option<Message>, FrameError> {
        let (id, more_bytes) = if header.version >= Version::V1_2 {
            (Some(request_id(bytes, header.endian)?), bytes.get(ID_END..))
        } else {
            (None, bytes.get(HEADER_BYTES..))
        };
        let more_bytes = more_bytes.unwrap_or(&[]);
        let index = self.partials.iter().position(|partial| partial.request_id == id);
        // A fragment of a request that was cancelled meanwhile continues nothing (1.2).
        let Some(index) = index else {
            if id.is_none() && self.skips_fragments {
                self.skips_fragments = header.more;
                return Ok(None);
            }
            return if id.is_some() { Ok(None) } else { Err(FrameError::UnexpectedFragment) };
        };
        self.hold(more_bytes.len())?;
        let limit = self.limits.message_bytes_max;
        let Some(partial) = self.partials.get_mut(index) else { return Ok(None) };
        if partial.version != header.version || partial.endian != header.endian {
            return Err(FrameError::UnexpectedFragment);
        }
        let total = partial.bytes.len().saturating_add(more_bytes.len());
        if total > limit {
            let partial = self.partials.swap_remove(index);
            self.partial_bytes = self.partial_bytes.saturating_sub(total);
            self.overlong = Some(Overlong::of(partial, header.more));
            return Err(FrameError::TooLarge { bytes: total, limit });
        }
        partial.bytes.extend_from_slice(more_bytes);
        if header.more {
            return Ok(None);
        }
        let partial = self.partials.swap_remove(index);
        self.partial_bytes = self.partial_bytes.saturating_sub(partial.bytes.len());
        Ok(Some(partial.finish()))
    }

    /// Counts bytes that are to be held.
    fn hold(&mut self, bytes: usize) -> Result<(), FrameError> {
        self.partial_bytes = self.partial_bytes.saturating_add(bytes);
        if self.buffered_bytes() > self.limits.buffered_bytes_max {
            let limit = self.limits.buffered_bytes_max;
            return Err(FrameError::TooMuchBuffered { limit });
        }
        Ok(())
    }

    /// A CancelRequest for a request that is still in fragments: the rest will not come.
    fn cancel(&mut self, header: &Header, bytes: &Bytes) {
        let Ok(id) = request_id(bytes, header.endian) else { return };
        let index = self.partials.iter().position(|partial| partial.request_id == Some(id));
        if let Some(index) = index {
            let partial = self.partials.swap_remove(index);
            self.partial_bytes = self.partial_bytes.saturating_sub(partial.bytes.len());
        }
    }
}

impl Partial {
    fn finish(mut self) -> Message {
        let size = self.bytes.len().saturating_sub(HEADER_BYTES);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let size = match self.endian {
            Endian::Big => size.to_be_bytes(),
            Endian::Little => size.to_le_bytes(),
        };
        if let Some(flags) = self.bytes.get_mut(6) {
            *flags &= !FLAG_MORE_FRAGMENTS;
        }
        if let Some(field) = self.bytes.get_mut(8..HEADER_BYTES) {
            field.copy_from_slice(&size);
        }
        Message::trusted(Bytes::from(self.bytes), self.version, self.endian, self.kind)
    }
}

fn request_id(bytes: &[u8], endian: Endian) -> Result<u32, FrameError> {
    Reader::at(bytes, HEADER_BYTES, endian).read_u32("request id").map_err(|_| FrameError::Short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::reply::ReplyStatus;
    use alloc::vec;

    #[test]
    fn behind_a_long_message_comes_the_next_one_and_not_its_memory() {
        let message_bytes_max = 4 * SHARED_BYTES_MAX;
        let mut framer = Framer::new(FramerLimits {
            message_bytes_max,
            fragmented_requests_max: 1,
            buffered_bytes_max: 2 * message_bytes_max,
        });
        let reply = |id, length: usize| {
            let octets = vec![7; length];
            build::reply(Version::V1_2, Endian::Little, id, ReplyStatus::NoException, |out| {
                out.write_raw(&octets);
            })
        };
        let (long, next) = (reply(1, 3 * SHARED_BYTES_MAX), reply(2, 10));
        framer.push(&[&long.bytes()[..], &next.bytes()[..20]].concat());
        let came = framer.next().expect("well-formed").expect("whole");
        assert!(came.bytes() == long.bytes());
        assert!(framer.buffer.capacity() < SHARED_BYTES_MAX);
        framer.push(&next.bytes()[20..]);
        let came = framer.next().expect("well-formed").expect("whole");
        assert!(came.bytes() == next.bytes());
    }
}
