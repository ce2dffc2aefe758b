//! LocateRequest and LocateReply of all versions.

use crate::cdr::Reader;
use crate::error::{Fault, MessageError};
use crate::message::Message;
use crate::target::Target;
use crate::version::Version;

/// A view of a LocateRequest.
#[derive(Clone, Debug)]
pub struct LocateRequest<'a> {
    request_id: u32,
    target: Target<'a>,
}

impl<'a> LocateRequest<'a> {
    pub(crate) fn read(version: Version, reader: &mut Reader<'a>) -> Result<Self, MessageError> {
        let request_id = reader.read_u32("request id")?;
        Ok(Self { request_id, target: Target::read(version, reader)? })
    }

    /// The client's id for the question.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// Whom it looks for.
    #[must_use]
    pub const fn target(&self) -> &Target<'a> {
        &self.target
    }
}

/// The answer (GIOP §15.4.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocateStatus {
    /// There is no such object.
    UnknownObject,
    /// It is here.
    ObjectHere,
    /// Ask there: an IOR follows.
    ObjectForward,
    /// Ask there from now on: an IOR follows. GIOP 1.2.
    ObjectForwardPerm,
    /// A system exception follows. GIOP 1.2.
    SystemException,
    /// Say it again with another kind of target address. GIOP 1.2.
    NeedsAddressingMode,
}

impl LocateStatus {
    fn from_u32(value: u32, version: Version) -> Option<Self> {
        Some(match value {
            0 => Self::UnknownObject,
            1 => Self::ObjectHere,
            2 => Self::ObjectForward,
            3 if version >= Version::V1_2 => Self::ObjectForwardPerm,
            4 if version >= Version::V1_2 => Self::SystemException,
            5 if version >= Version::V1_2 => Self::NeedsAddressingMode,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::UnknownObject => 0,
            Self::ObjectHere => 1,
            Self::ObjectForward => 2,
            Self::ObjectForwardPerm => 3,
            Self::SystemException => 4,
            Self::NeedsAddressingMode => 5,
        }
    }
}

/// A view of a LocateReply.
#[derive(Clone, Debug)]
pub struct LocateReply<'a> {
    request_id: u32,
    status: LocateStatus,
    body: &'a [u8],
}

impl<'a> LocateReply<'a> {
    pub(crate) fn read(
        message: &'a Message,
        reader: &mut Reader<'a>,
    ) -> Result<Self, MessageError> {
        let request_id = reader.read_u32("request id")?;
        let offset = reader.position();
        let invalid = MessageError { what: "locate status", offset, fault: Fault::Value };
        let status = reader.read_u32("locate status")?;
        let status = LocateStatus::from_u32(status, message.version()).ok_or(invalid)?;
        let body = message.bytes().get(reader.position()..).unwrap_or(&[]);
        Ok(Self { request_id, status, body })
    }

    /// The id of the question.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// The answer.
    #[must_use]
    pub const fn status(&self) -> LocateStatus {
        self.status
    }

    /// What follows it, if anything.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}
