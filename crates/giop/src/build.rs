//! Makes messages: requests, replies, and those that consist of a header only.
//!
//! Invariant: what is built here is read back by [`Message::from_bytes`] and [`Message::parse`].

use crate::cdr::Writer;
use crate::exception::SystemException;
use crate::limits::HEADER_BYTES;
use crate::locate::LocateStatus;
use crate::message::{Message, MessageType};
use crate::reply::ReplyStatus;
use crate::request::{ResponseFlags, patch_u32};
use crate::service::{self, Contexts};
use crate::version::{Endian, Version};
use bytes::Bytes;

/// A message under construction: the header stands, the size is filled in at the end.
pub(crate) struct MessageWriter {
    pub(crate) cdr: Writer,
    version: Version,
    kind: MessageType,
}

impl MessageWriter {
    pub(crate) fn new(version: Version, endian: Endian, kind: MessageType) -> Self {
        let mut cdr = Writer::new(endian);
        cdr.write_raw(b"GIOP");
        cdr.write_raw(&[version.major, version.minor, endian.bit(), kind.octet(), 0, 0, 0, 0]);
        Self { cdr, version, kind }
    }

    /// Whether parameters that were aligned for `offset` may stand behind this header.
    pub(crate) fn fits_body_at(&self, offset: usize) -> bool {
        self.version >= Version::V1_2 || self.cdr.position() % 8 == offset % 8
    }

    pub(crate) fn finish_with_body(mut self, body: &[u8]) -> Message {
        if self.version >= Version::V1_2 && !body.is_empty() {
            self.cdr.align(8);
        }
        self.cdr.write_raw(body);
        self.finish()
    }

    pub(crate) fn finish(mut self) -> Message {
        let endian = self.cdr.endian();
        let size = self.cdr.position().saturating_sub(HEADER_BYTES);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        patch_u32(self.cdr.bytes_mut(), 8, size, endian);
        Message::trusted(Bytes::from(self.cdr.finish()), self.version, endian, self.kind)
    }
}

/// The head of a request to build.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// In this version.
    pub version: Version,
    /// In this byte order.
    pub endian: Endian,
    /// Under this id.
    pub request_id: u32,
    /// When a reply is wanted.
    pub response_flags: ResponseFlags,
    /// To this object.
    pub object_key: &'a [u8],
    /// This operation.
    pub operation: &'a [u8],
    /// With these service contexts.
    pub contexts: &'a [(u32, &'a [u8])],
}

/// A request; `body` writes the parameters, which begin at the right alignment.
#[must_use]
pub fn request(head: &RequestHead<'_>, body: impl FnOnce(&mut Writer)) -> Message {
    let mut writer = MessageWriter::new(head.version, head.endian, MessageType::Request);
    let cdr = &mut writer.cdr;
    let contexts = |cdr: &mut Writer| {
        service::write(cdr, &Contexts::empty(), &[], head.contexts, None);
    };
    if head.version >= Version::V1_2 {
        cdr.write_u32(head.request_id);
        cdr.write_u8(head.response_flags.octet());
        cdr.write_raw(&[0; 3]);
        cdr.write_u16(0);
        cdr.write_octets(head.object_key);
        cdr.write_string(head.operation);
        contexts(cdr);
    } else {
        contexts(cdr);
        cdr.write_u32(head.request_id);
        cdr.write_bool(head.response_flags != ResponseFlags::None);
        if head.version >= Version::V1_1 {
            cdr.write_raw(&[0; 3]);
        }
        cdr.write_octets(head.object_key);
        cdr.write_string(head.operation);
        cdr.write_octets(&[]);
    }
    write_body(&mut writer, body);
    writer.finish()
}

/// A reply; `body` writes the results, which begin at the right alignment.
#[must_use]
pub fn reply(
    version: Version,
    endian: Endian,
    request_id: u32,
    status: ReplyStatus,
    body: impl FnOnce(&mut Writer),
) -> Message {
    let mut writer = MessageWriter::new(version, endian, MessageType::Reply);
    let cdr = &mut writer.cdr;
    if version >= Version::V1_2 {
        cdr.write_u32(request_id);
        cdr.write_u32(status.number());
        cdr.write_u32(0);
    } else {
        cdr.write_u32(0);
        cdr.write_u32(request_id);
        cdr.write_u32(status.number());
    }
    write_body(&mut writer, body);
    writer.finish()
}

/// In GIOP 1.2 a body is aligned to 8, and there is no padding without a body.
fn write_body(writer: &mut MessageWriter, body: impl FnOnce(&mut Writer)) {
    let end = writer.cdr.position();
    if writer.version >= Version::V1_2 {
        writer.cdr.align(8);
    }
    let begin = writer.cdr.position();
    body(&mut writer.cdr);
    if writer.cdr.position() == begin {
        writer.cdr.truncate(end);
    }
}

/// A reply that raises a system exception.
#[must_use]
pub fn system_exception(
    version: Version,
    endian: Endian,
    request_id: u32,
    exception: &SystemException,
) -> Message {
    reply(version, endian, request_id, ReplyStatus::SystemException, |cdr| exception.write(cdr))
}

/// A LocateRequest for an object key.
#[must_use]
pub fn locate_request(
    version: Version,
    endian: Endian,
    request_id: u32,
    object_key: &[u8],
) -> Message {
    let mut writer = MessageWriter::new(version, endian, MessageType::LocateRequest);
    writer.cdr.write_u32(request_id);
    if version >= Version::V1_2 {
        writer.cdr.write_u16(0);
    }
    writer.cdr.write_octets(object_key);
    writer.finish()
}

/// A LocateReply without a body.
#[must_use]
pub fn locate_reply(
    version: Version,
    endian: Endian,
    request_id: u32,
    status: LocateStatus,
) -> Message {
    let mut writer = MessageWriter::new(version, endian, MessageType::LocateReply);
    writer.cdr.write_u32(request_id);
    writer.cdr.write_u32(status.number());
    writer.finish()
}

/// A CancelRequest.
#[must_use]
pub fn cancel_request(version: Version, endian: Endian, request_id: u32) -> Message {
    let mut writer = MessageWriter::new(version, endian, MessageType::CancelRequest);
    writer.cdr.write_u32(request_id);
    writer.finish()
}

/// A CloseConnection.
#[must_use]
pub fn close_connection(version: Version) -> Message {
    MessageWriter::new(version, Endian::Big, MessageType::CloseConnection).finish()
}

/// A MessageError.
#[must_use]
pub fn message_error(version: Version) -> Message {
    MessageWriter::new(version, Endian::Big, MessageType::MessageError).finish()
}

#[cfg(test)]
mod tests;
