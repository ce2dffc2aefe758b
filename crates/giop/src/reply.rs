//! Reply headers of all versions.

use crate::build::MessageWriter;
use crate::cdr::Reader;
use crate::error::{Fault, MessageError};
use crate::exception::SystemException;
use crate::message::{Message, MessageType};
use crate::request::{Rewrite, patch_u32, service_padding};
use crate::service::{self, Contexts};
use crate::version::Version;
use bytes::BytesMut;

/// How a call ended (GIOP §15.4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyStatus {
    /// Results follow.
    NoException,
    /// A user exception follows.
    UserException,
    /// A system exception follows.
    SystemException,
    /// Ask there: an IOR follows.
    LocationForward,
    /// Ask there from now on: an IOR follows. GIOP 1.2.
    LocationForwardPerm,
    /// Say it again with another kind of target address. GIOP 1.2.
    NeedsAddressingMode,
}

impl ReplyStatus {
    fn from_u32(value: u32, version: Version) -> Option<Self> {
        Some(match value {
            0 => Self::NoException,
            1 => Self::UserException,
            2 => Self::SystemException,
            3 => Self::LocationForward,
            4 if version >= Version::V1_2 => Self::LocationForwardPerm,
            5 if version >= Version::V1_2 => Self::NeedsAddressingMode,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::NoException => 0,
            Self::UserException => 1,
            Self::SystemException => 2,
            Self::LocationForward => 3,
            Self::LocationForwardPerm => 4,
            Self::NeedsAddressingMode => 5,
        }
    }
}

/// A view of a Reply.
#[derive(Clone, Debug)]
pub struct Reply<'a> {
    message: &'a Message,
    request_id: u32,
    request_id_offset: usize,
    status: ReplyStatus,
    contexts: Contexts<'a>,
    body_offset: usize,
}

impl<'a> Reply<'a> {
    pub(crate) fn read(
        message: &'a Message,
        reader: &mut Reader<'a>,
    ) -> Result<Self, MessageError> {
        let new = message.version() >= Version::V1_2;
        let mut contexts = if new { Contexts::empty() } else { Contexts::read(reader)? };
        reader.align(4);
        let request_id_offset = reader.position();
        let request_id = reader.read_u32("request id")?;
        let offset = reader.position();
        let invalid = MessageError { what: "reply status", offset, fault: Fault::Value };
        let status = reader.read_u32("reply status")?;
        let status = ReplyStatus::from_u32(status, message.version()).ok_or(invalid)?;
        if new {
            contexts = Contexts::read(reader)?;
        }
        let body_offset = message.body_from(reader);
        Ok(Self { message, request_id, request_id_offset, status, contexts, body_offset })
    }

    /// The id of the request that it answers.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// How the call ended.
    #[must_use]
    pub const fn status(&self) -> ReplyStatus {
        self.status
    }

    /// The service contexts in their order.
    #[must_use]
    pub fn contexts(&self) -> Contexts<'a> {
        self.contexts.clone()
    }

    /// Where the results begin, from the start of the message.
    #[must_use]
    pub const fn body_offset(&self) -> usize {
        self.body_offset
    }

    /// The results, exception or reference.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.message.bytes().get(self.body_offset..).unwrap_or(&[])
    }

    /// A reader of the results.
    #[must_use]
    pub fn reader(&self) -> Reader<'a> {
        Reader::at(self.message.bytes(), self.body_offset, self.message.endian())
    }

    /// The system exception, if the call ended with one.
    #[must_use]
    pub fn system_exception(&self) -> Option<Result<SystemException, MessageError>> {
        (self.status == ReplyStatus::SystemException)
            .then(|| SystemException::read(&mut self.reader()))
    }

    /// The same reply under another id: one copy, four bytes changed.
    #[must_use]
    pub fn with_request_id(&self, request_id: u32) -> Message {
        let (version, endian) = (self.message.version(), self.message.endian());
        let mut bytes = BytesMut::from(self.message.bytes().as_ref());
        patch_u32(&mut bytes, self.request_id_offset, request_id, endian);
        Message::trusted(bytes.freeze(), version, endian, MessageType::Reply)
    }

    /// The reply with changes to its id and contexts; the results are the same bytes at the same
    /// alignment.
    #[must_use]
    pub fn rewrite(&self, rewrite: &Rewrite<'_>) -> Message {
        let plain = self.header(rewrite, None);
        let writer = if plain.fits_body_at(self.body_offset) {
            plain
        } else {
            self.header(rewrite, Some(service_padding()))
        };
        writer.finish_with_body(self.body())
    }

    fn header(&self, rewrite: &Rewrite<'_>, padding: Option<(u32, &[u8])>) -> MessageWriter {
        let (version, endian) = (self.message.version(), self.message.endian());
        let mut writer = MessageWriter::new(version, endian, MessageType::Reply);
        let (dropped, added) = (rewrite.drop_contexts, rewrite.add_contexts);
        let new = version >= Version::V1_2;
        if !new {
            service::write(&mut writer.cdr, &self.contexts, dropped, added, padding);
        }
        writer.cdr.write_u32(rewrite.request_id.unwrap_or(self.request_id));
        writer.cdr.write_u32(self.status.number());
        if new {
            service::write(&mut writer.cdr, &self.contexts, dropped, added, padding);
        }
        writer
    }
}
