//! Request headers of all versions, as views that forward the parameters untouched.

use crate::build::MessageWriter;
use crate::cdr::Reader;
use crate::error::MessageError;
use crate::limits::{OBJECT_KEY_BYTES_MAX, OPERATION_BYTES_MAX};
use crate::message::{Message, MessageType};
use crate::service::{self, Contexts};
use crate::target::Target;
use crate::version::Version;
use bytes::{Bytes, BytesMut};

/// When the server is to reply (GIOP §15.4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseFlags {
    /// Never: a oneway.
    None,
    /// When it has the request, before it executes it. GIOP 1.2 only.
    Received,
    /// When the operation is done.
    WithTarget,
    /// Another value of GIOP 1.2, kept as it is.
    Other(u8),
}

impl ResponseFlags {
    const fn from_octet(octet: u8) -> Self {
        match octet {
            0 => Self::None,
            1 => Self::Received,
            3 => Self::WithTarget,
            other => Self::Other(other),
        }
    }

    /// The octet of GIOP 1.2.
    #[must_use]
    pub const fn octet(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Received => 1,
            Self::WithTarget => 3,
            Self::Other(other) => other,
        }
    }
}

/// A view of a Request.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    message: &'a Message,
    request_id: u32,
    request_id_offset: usize,
    flags: ResponseFlags,
    flags_offset: usize,
    target: Target<'a>,
    operation: &'a [u8],
    contexts: Contexts<'a>,
    principal: &'a [u8],
    body_offset: usize,
}

/// What to change in a Request or Reply on its way.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rewrite<'a> {
    /// A new request id.
    pub request_id: Option<u32>,
    /// New response flags (requests only).
    pub response_flags: Option<ResponseFlags>,
    /// A new object key in place of the target (requests only).
    pub object_key: Option<&'a [u8]>,
    /// Service contexts to leave out.
    pub drop_contexts: &'a [u32],
    /// Service contexts to add behind the others.
    pub add_contexts: &'a [(u32, &'a [u8])],
}

impl Rewrite<'_> {
    /// Whether the header keeps its length, so that a copy can be patched.
    fn keeps_layout(&self) -> bool {
        self.object_key.is_none() && self.drop_contexts.is_empty() && self.add_contexts.is_empty()
    }
}

impl<'a> Request<'a> {
    pub(crate) fn read(
        message: &'a Message,
        reader: &mut Reader<'a>,
    ) -> Result<Self, MessageError> {
        if message.version() >= Version::V1_2 {
            Self::read_1_2(message, reader)
        } else {
            Self::read_1_0(message, reader)
        }
    }

    fn read_1_2(message: &'a Message, reader: &mut Reader<'a>) -> Result<Self, MessageError> {
        let request_id_offset = reader.position();
        let request_id = reader.read_u32("request id")?;
        let flags_offset = reader.position();
        let flags = ResponseFlags::from_octet(reader.read_u8("response flags")?);
        reader.take(3, "reserved octets")?;
        let target = Target::read(message.version(), reader)?;
        let operation = reader.read_string(OPERATION_BYTES_MAX, "operation")?;
        let contexts = Contexts::read(reader)?;
        let body_offset = message.body_from(reader);
        let principal = &[];
        Ok(Self {
            message,
            request_id,
            request_id_offset,
            flags,
            flags_offset,
            target,
            operation,
            contexts,
            principal,
            body_offset,
        })
    }

    fn read_1_0(message: &'a Message, reader: &mut Reader<'a>) -> Result<Self, MessageError> {
        let contexts = Contexts::read(reader)?;
        reader.align(4);
        let request_id_offset = reader.position();
        let request_id = reader.read_u32("request id")?;
        let flags_offset = reader.position();
        let expected = reader.read_bool("response expected")?;
        let flags = if expected { ResponseFlags::WithTarget } else { ResponseFlags::None };
        if message.version() >= Version::V1_1 {
            reader.take(3, "reserved octets")?;
        }
        let target = Target::read(message.version(), reader)?;
        let operation = reader.read_string(OPERATION_BYTES_MAX, "operation")?;
        let principal = reader.read_octets(OBJECT_KEY_BYTES_MAX, "principal")?;
        let body_offset = message.body_from(reader);
        Ok(Self {
            message,
            request_id,
            request_id_offset,
            flags,
            flags_offset,
            target,
            operation,
            contexts,
            principal,
            body_offset,
        })
    }

    /// The client's id for the call, unique among its unanswered ones on the connection.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// When the client wants a reply; `response_expected` of GIOP 1.0 and 1.1 is `WithTarget`.
    #[must_use]
    pub const fn response_flags(&self) -> ResponseFlags {
        self.flags
    }

    /// Whether the client wants a reply at all.
    #[must_use]
    pub const fn response_expected(&self) -> bool {
        self.flags.octet() & 1 != 0
    }

    /// Whom it addresses.
    #[must_use]
    pub const fn target(&self) -> &Target<'a> {
        &self.target
    }

    /// The object key, also out of a profile or reference: see [`Target::object_key`].
    #[must_use]
    pub fn object_key(&self) -> Option<&'a [u8]> {
        self.target.object_key()
    }

    /// The operation's name.
    #[must_use]
    pub const fn operation(&self) -> &'a [u8] {
        self.operation
    }

    /// The service contexts in their order.
    #[must_use]
    pub fn contexts(&self) -> Contexts<'a> {
        self.contexts.clone()
    }

    /// Where the parameters begin, from the start of the message.
    #[must_use]
    pub const fn body_offset(&self) -> usize {
        self.body_offset
    }

    /// The parameters.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.message.bytes().get(self.body_offset..).unwrap_or(&[])
    }

    /// The same request under another id: one copy, four bytes changed.
    #[must_use]
    pub fn with_request_id(&self, request_id: u32) -> Message {
        self.rewrite(&Rewrite { request_id: Some(request_id), ..Rewrite::default() })
    }

    /// The request with changes; the parameters are the same bytes at the same alignment.
    #[must_use]
    pub fn rewrite(&self, rewrite: &Rewrite<'_>) -> Message {
        let flags = rewrite.response_flags.unwrap_or(self.flags);
        let request_id = rewrite.request_id.unwrap_or(self.request_id);
        let (version, endian) = (self.message.version(), self.message.endian());
        if rewrite.keeps_layout() {
            let mut bytes = BytesMut::from(self.message.bytes().as_ref());
            patch_u32(&mut bytes, self.request_id_offset, request_id, endian);
            if let Some(octet) = bytes.get_mut(self.flags_offset) {
                *octet = flags_octet(flags, version);
            }
            return Message::trusted(bytes.freeze(), version, endian, MessageType::Request);
        }
        let plain = self.header(rewrite, request_id, flags, None);
        let writer = if plain.fits_body_at(self.body_offset) {
            plain
        } else {
            self.header(rewrite, request_id, flags, Some(service_padding()))
        };
        writer.finish_with_body(self.body())
    }

    fn header(
        &self,
        rewrite: &Rewrite<'_>,
        request_id: u32,
        flags: ResponseFlags,
        padding: Option<(u32, &[u8])>,
    ) -> MessageWriter {
        let version = self.message.version();
        let mut writer = MessageWriter::new(version, self.message.endian(), MessageType::Request);
        let contexts = |writer: &mut MessageWriter| {
            let (dropped, added) = (rewrite.drop_contexts, rewrite.add_contexts);
            service::write(&mut writer.cdr, &self.contexts, dropped, added, padding);
        };
        if version >= Version::V1_2 {
            writer.cdr.write_u32(request_id);
            writer.cdr.write_u8(flags_octet(flags, version));
            writer.cdr.write_raw(&[0; 3]);
            let target = rewrite.object_key.map_or(self.target, Target::Key);
            target.write(&mut writer.cdr);
            writer.cdr.write_string(self.operation);
            contexts(&mut writer);
        } else {
            contexts(&mut writer);
            writer.cdr.write_u32(request_id);
            writer.cdr.write_u8(flags_octet(flags, version));
            if version >= Version::V1_1 {
                writer.cdr.write_raw(&[0; 3]);
            }
            let key = rewrite.object_key.or(self.object_key()).unwrap_or(&[]);
            writer.cdr.write_octets(key);
            writer.cdr.write_string(self.operation);
            writer.cdr.write_octets(self.principal);
        }
        writer
    }

    /// The message that this is a view of, sharing its bytes.
    #[must_use]
    pub fn message_bytes(&self) -> &Bytes {
        self.message.bytes()
    }
}

fn flags_octet(flags: ResponseFlags, version: Version) -> u8 {
    if version >= Version::V1_2 { flags.octet() } else { flags.octet() & 1 }
}

/// A context that only takes up room: before GIOP 1.2 the parameters' alignment depends on where
/// the header ends, and 12 more bytes shift that by 4 modulo 8. The id is of our own range.
pub(crate) fn service_padding() -> (u32, &'static [u8]) {
    (crate::QUORBA_VMCID | 1, &[0; 4])
}

pub(crate) fn patch_u32(bytes: &mut [u8], offset: usize, value: u32, endian: crate::Endian) {
    let raw = match endian {
        crate::Endian::Big => value.to_be_bytes(),
        crate::Endian::Little => value.to_le_bytes(),
    };
    let end = offset.saturating_add(4);
    if let Some(field) = bytes.get_mut(offset..end) {
        field.copy_from_slice(&raw);
    }
}
