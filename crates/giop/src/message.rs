//! One whole GIOP message and what its type says is in it.

use crate::cdr::Reader;
use crate::error::{Fault, MessageError};
use crate::limits::HEADER_BYTES;
use crate::locate::{LocateReply, LocateRequest};
use crate::reply::Reply;
use crate::request::Request;
use crate::target::Target;
use crate::version::{Endian, Version};
use bytes::{Bytes, BytesMut};

/// Message types (GIOP §15.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MessageType {
    /// A call.
    Request,
    /// Its outcome.
    Reply,
    /// The client wants no reply any more.
    CancelRequest,
    /// Where is the object?
    LocateRequest,
    /// There.
    LocateReply,
    /// The server closes; what it has not answered it has not executed.
    CloseConnection,
    /// What came made no sense.
    MessageError,
    /// More of a message that came before (GIOP 1.1 and later).
    Fragment,
}

impl MessageType {
    /// From the header's octet, as far as `version` has it.
    #[must_use]
    pub fn from_octet(octet: u8, version: Version) -> Option<Self> {
        Some(match octet {
            0 => Self::Request,
            1 => Self::Reply,
            2 => Self::CancelRequest,
            3 => Self::LocateRequest,
            4 => Self::LocateReply,
            5 => Self::CloseConnection,
            6 => Self::MessageError,
            7 if version >= Version::V1_1 => Self::Fragment,
            _ => return None,
        })
    }

    /// The header's octet.
    #[must_use]
    pub const fn octet(self) -> u8 {
        match self {
            Self::Request => 0,
            Self::Reply => 1,
            Self::CancelRequest => 2,
            Self::LocateRequest => 3,
            Self::LocateReply => 4,
            Self::CloseConnection => 5,
            Self::MessageError => 6,
            Self::Fragment => 7,
        }
    }
}

/// A message from its "GIOP" to its last byte, in one piece.
///
/// Invariant: the size field is right, and no more fragments follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    bytes: Bytes,
    version: Version,
    endian: Endian,
    kind: MessageType,
}

/// Where the request id of every message of GIOP 1.2 that has one stands (GIOP §15.4).
const REQUEST_ID_AT: usize = HEADER_BYTES;

/// A copy of a message under another request id, if it is a request or a reply of GIOP 1.2: there
/// the id stands at one place, so that the message need not be read. `None` for any other.
#[must_use]
pub fn renumbered(message: &[u8], request_id: u32) -> Option<BytesMut> {
    let [b'G', b'I', b'O', b'P', 1, 2, flags, 0 | 1, ..] = *message else { return None };
    let endian = Endian::from_bit(flags);
    message.get(REQUEST_ID_AT..REQUEST_ID_AT + 4)?;
    let mut copy = BytesMut::from(message);
    crate::request::patch_u32(&mut copy, REQUEST_ID_AT, request_id, endian);
    Some(copy)
}

/// What a message says.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// A call.
    Request(Request<'a>),
    /// Its outcome.
    Reply(Reply<'a>),
    /// The client wants no reply any more.
    CancelRequest {
        /// To this request.
        request_id: u32,
    },
    /// Where is the object?
    LocateRequest(LocateRequest<'a>),
    /// There.
    LocateReply(LocateReply<'a>),
    /// The sender closes.
    CloseConnection,
    /// What we sent made no sense.
    MessageError,
}

/// What is asked of an object that cannot be read; see [`Message::unaddressed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unaddressed {
    /// A call whose reply is awaited.
    Call {
        /// The client's id for it.
        request_id: u32,
    },
    /// A call that gets no reply.
    Oneway,
    /// The question where the object is.
    Locate {
        /// The client's id for it.
        request_id: u32,
    },
}

impl Message {
    /// Checks that `bytes` are one whole message.
    ///
    /// # Errors
    /// If the header is not one, the size is not that of `bytes`, or fragments would follow.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, MessageError> {
        let error = |what, offset, fault| MessageError { what, offset, fault };
        let short = error("message header", 0, Fault::Short);
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(short)?;
        let [b'G', b'I', b'O', b'P', major, minor, flags, kind, ..] = *header else {
            return Err(error("magic", 0, Fault::Value));
        };
        let version = Version { major, minor };
        if !version.is_known() {
            return Err(error("version", 4, Fault::Value));
        }
        let endian = Endian::from_bit(flags);
        if flags > 1 {
            return Err(error("flags", 6, Fault::Value));
        }
        let kind = MessageType::from_octet(kind, version)
            .filter(|kind| *kind != MessageType::Fragment)
            .ok_or(error("message type", 7, Fault::Value))?;
        let size = Reader::at(&bytes, 8, endian).read_u32("message size")? as usize;
        if size.checked_add(HEADER_BYTES) != Some(bytes.len()) {
            return Err(error("message size", 8, Fault::Value));
        }
        Ok(Self { bytes, version, endian, kind })
    }

    /// A message whose header this crate has just written.
    pub(crate) fn trusted(
        bytes: Bytes,
        version: Version,
        endian: Endian,
        kind: MessageType,
    ) -> Self {
        Self { bytes, version, endian, kind }
    }

    /// The GIOP version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The byte order.
    #[must_use]
    pub const fn endian(&self) -> Endian {
        self.endian
    }

    /// The type.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        self.kind
    }

    /// The whole message.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole message, uncopied.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What the message says; nothing is copied.
    ///
    /// # Errors
    /// If the content is not what the type promises: the peer's fault, answered by MessageError.
    pub fn parse(&self) -> Result<Body<'_>, MessageError> {
        let mut reader = Reader::at(&self.bytes, HEADER_BYTES, self.endian);
        Ok(match self.kind {
            MessageType::Request => Body::Request(Request::read(self, &mut reader)?),
            MessageType::Reply => Body::Reply(Reply::read(self, &mut reader)?),
            MessageType::CancelRequest => {
                Body::CancelRequest { request_id: reader.read_u32("request id")? }
            }
            MessageType::LocateRequest => {
                Body::LocateRequest(LocateRequest::read(self.version, &mut reader)?)
            }
            MessageType::LocateReply => Body::LocateReply(LocateReply::read(self, &mut reader)?),
            MessageType::CloseConnection => Body::CloseConnection,
            MessageType::MessageError => Body::MessageError,
            MessageType::Fragment => {
                let fault = Fault::Value;
                return Err(MessageError { what: "message type", offset: 7, fault });
            }
        })
    }

    /// Who asks, if this is a Request or LocateRequest of GIOP 1.2 that names its object by a
    /// profile or a reference (GIOP §15.4.2.2), and only that cannot be read: the message ends
    /// where it should, so that what follows it can still be understood.
    #[must_use]
    pub fn unaddressed(&self) -> Option<Unaddressed> {
        let mut reader = Reader::at(&self.bytes, HEADER_BYTES, self.endian);
        let request_id = reader.read_u32("request id").ok()?;
        let asked = match self.kind {
            MessageType::Request => {
                let flags = reader.read_u8("response flags").ok()?;
                reader.take(3, "reserved octets").ok()?;
                if flags & 1 == 0 { Unaddressed::Oneway } else { Unaddressed::Call { request_id } }
            }
            MessageType::LocateRequest => Unaddressed::Locate { request_id },
            _ => return None,
        };
        let other_way = Target::is_no_key(self.version, reader.clone());
        let unreadable = other_way && Target::read(self.version, &mut reader).is_err();
        unreadable.then_some(asked)
    }

    /// The parameters that begin at `offset`: in GIOP 1.2 they are aligned to 8 if there are any.
    pub(crate) fn body_from(&self, reader: &Reader<'_>) -> usize {
        let position = reader.position();
        if self.version < Version::V1_2 {
            return position;
        }
        // Some ORBs pad even if nothing follows, others do not.
        position.next_multiple_of(8).min(self.bytes.len())
    }
}
