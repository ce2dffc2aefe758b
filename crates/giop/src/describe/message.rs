//! Messages as text.

use super::reference::{self, CodeSet};
use super::{Name, Text, names};
use crate::cdr::Reader;
use crate::context::{self, CodeSets, FtRequest, GroupVersion, TransactionDepth};
use crate::ior::Ior;
use crate::limits::{HEADER_BYTES, TYPE_ID_BYTES_MAX};
use crate::locate::{LocateReply, LocateStatus};
use crate::message::{Body, Message, MessageType};
use crate::reply::{Reply, ReplyStatus};
use crate::request::{Request, ResponseFlags};
use crate::service::Contexts;
use crate::target::Target;
use crate::version::{Endian, Version};
use bytes::Bytes;

pub(super) fn describe_bytes(text: &mut Text, bytes: &[u8]) {
    match Message::from_bytes(Bytes::copy_from_slice(bytes)) {
        Ok(message) => describe(text, &message),
        Err(error) => {
            describe_header(text, bytes);
            text.line(format_args!("not one whole message: {error}"));
            text.dump(bytes);
        }
    }
}

/// What a header says that does not stand before its own message.
fn describe_header(text: &mut Text, bytes: &[u8]) {
    let Some([b'G', b'I', b'O', b'P', major, minor, flags, kind, ..]) =
        bytes.first_chunk::<HEADER_BYTES>()
    else {
        return;
    };
    let version = Version { major: *major, minor: *minor };
    let endian = Endian::from_bit(*flags);
    let size = Reader::at(bytes, 8, endian).read_u32("message size").unwrap_or(0);
    match MessageType::from_octet(*kind, version) {
        Some(kind) => text.line(format_args!("GIOP {version} {kind:?}, {endian:?} endian")),
        None => text.line(format_args!("GIOP {version} type {kind}, {endian:?} endian")),
    }
    text.deeper(|text| {
        text.line(format_args!("{size} bytes follow the header, it says"));
        if *flags & 2 != 0 {
            text.line(format_args!("more fragments follow"));
        }
    });
}

pub(super) fn describe(text: &mut Text, message: &Message) {
    let (version, kind) = (message.version(), message.message_type());
    let length = message.bytes().len();
    let endian = message.endian();
    text.line(format_args!("GIOP {version} {kind:?}, {endian:?} endian, {length} bytes"));
    text.deeper(|text| match message.parse() {
        Ok(Body::Request(request)) => describe_request(text, &request),
        Ok(Body::Reply(reply)) => describe_reply(text, &reply),
        Ok(Body::CancelRequest { request_id }) => describe_id(text, request_id),
        Ok(Body::LocateRequest(request)) => {
            describe_id(text, request.request_id());
            describe_target(text, request.target());
        }
        Ok(Body::LocateReply(reply)) => describe_locate_reply(text, message, &reply),
        Ok(Body::CloseConnection | Body::MessageError) => {}
        Err(error) => {
            text.line(format_args!("malformed: {error}"));
            text.dump(message.bytes());
        }
    });
}

fn describe_id(text: &mut Text, request_id: u32) {
    text.line(format_args!("request id {request_id}"));
}

fn describe_request(text: &mut Text, request: &Request<'_>) {
    describe_id(text, request.request_id());
    match request.response_flags() {
        ResponseFlags::None => text.line(format_args!("no reply wanted")),
        ResponseFlags::Received => text.line(format_args!("reply wanted when received")),
        ResponseFlags::WithTarget => text.line(format_args!("reply wanted when done")),
        ResponseFlags::Other(flags) => text.line(format_args!("response flags {flags:#04x}")),
    }
    describe_target(text, request.target());
    text.line(format_args!("operation {}", Name(request.operation())));
    describe_contexts(text, request.contexts());
    let (length, offset) = (request.body().len(), request.body_offset());
    text.line(format_args!("parameters: {length} bytes from byte {offset}"));
    text.deeper(|text| text.dump(request.body()));
}

fn describe_target(text: &mut Text, target: &Target<'_>) {
    match target {
        Target::Key(key) => text.line(format_args!("object key {}", Name(key))),
        Target::Profile { tag, data } => {
            text.line(format_args!("addressed by a profile"));
            let ior = Ior {
                type_id: [].into(),
                profiles: [crate::ior::Profile { tag: *tag, data: data.to_vec() }].into(),
            };
            text.deeper(|text| reference::describe(text, &ior));
        }
        Target::Reference { index, ior, endian } => {
            let number = u64::from(*index) + 1;
            text.line(format_args!("addressed by profile {number} of a reference"));
            text.deeper(|text| describe_reference(text, Reader::new(ior, *endian)));
        }
    }
}

fn describe_reference(text: &mut Text, mut reader: Reader<'_>) {
    match Ior::read(&mut reader) {
        Ok(ior) => reference::describe(text, &ior),
        Err(error) => text.line(format_args!("malformed reference: {error}")),
    }
}

fn describe_reply(text: &mut Text, reply: &Reply<'_>) {
    describe_id(text, reply.request_id());
    text.line(format_args!("status {:?}", reply.status()));
    describe_contexts(text, reply.contexts());
    match reply.status() {
        ReplyStatus::SystemException => match reply.system_exception() {
            Some(Ok(exception)) => text.line(format_args!("{exception}")),
            Some(Err(error)) => text.line(format_args!("malformed exception: {error}")),
            None => {}
        },
        ReplyStatus::UserException => {
            let id = reply.reader().read_string(TYPE_ID_BYTES_MAX, "exception id");
            match id {
                Ok(id) => text.line(format_args!("raises {}", Name(id))),
                Err(error) => text.line(format_args!("malformed exception: {error}")),
            }
        }
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            text.line(format_args!("ask there:"));
            text.deeper(|text| describe_reference(text, reply.reader()));
        }
        ReplyStatus::NoException | ReplyStatus::NeedsAddressingMode => {}
    }
    let (length, offset) = (reply.body().len(), reply.body_offset());
    text.line(format_args!("body: {length} bytes from byte {offset}"));
    text.deeper(|text| text.dump(reply.body()));
}

fn describe_locate_reply(text: &mut Text, message: &Message, reply: &LocateReply<'_>) {
    describe_id(text, reply.request_id());
    text.line(format_args!("status {:?}", reply.status()));
    let forward = [LocateStatus::ObjectForward, LocateStatus::ObjectForwardPerm];
    if forward.contains(&reply.status()) {
        // In no version is this body aligned to more than its own values are.
        let offset = message.bytes().len().saturating_sub(reply.body().len());
        let reader = Reader::at(message.bytes(), offset, message.endian());
        text.deeper(|text| describe_reference(text, reader));
    }
    if !reply.body().is_empty() {
        text.line(format_args!("body: {} bytes", reply.body().len()));
        text.deeper(|text| text.dump(reply.body()));
    }
}

fn describe_contexts(text: &mut Text, contexts: Contexts<'_>) {
    for (id, data) in contexts {
        let name = names::context(id).unwrap_or("unknown");
        let length = data.len();
        text.line(format_args!("context {id:#x} ({name}), {length} bytes"));
        text.deeper(|text| describe_context(text, id, data));
    }
}

fn describe_context(text: &mut Text, id: u32, data: &[u8]) {
    let error = match id {
        context::CODE_SETS => match CodeSets::decode(data) {
            Ok(CodeSets { char_data, wchar_data }) => {
                let (chars, wide) = (CodeSet(char_data), CodeSet(wchar_data));
                return text.line(format_args!("char {chars}, wchar {wide}"));
            }
            Err(error) => Some(error),
        },
        context::FT_GROUP_VERSION => match GroupVersion::decode(data) {
            Ok(GroupVersion(version)) => return text.line(format_args!("version {version}")),
            Err(error) => Some(error),
        },
        context::FT_TRANSACTION_DEPTH => match TransactionDepth::decode(data) {
            Some(TransactionDepth(depth)) => return text.line(format_args!("depth {depth}")),
            None => None,
        },
        context::FT_REQUEST => match FtRequest::decode(data) {
            Ok(FtRequest { client_id, retention_id, expiration_time }) => {
                let client = Name(&client_id);
                return text.line(format_args!(
                    "client {client}, retention id {retention_id}, expires {expiration_time:#x}"
                ));
            }
            Err(error) => Some(error),
        },
        _ => None,
    };
    if let Some(error) = error {
        text.line(format_args!("malformed: {error}"));
    }
    text.dump(data);
}
