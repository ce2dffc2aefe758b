//! A way to objects in the same process, through whole messages: for tests and the simulator.
//!
//! Invariant: what goes through here is what would go over a connection.

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::Writer;
use quorba_giop::{
    Body, CodeSets, Completion, Endian, ExceptionKind, Message, ReplyStatus, ResponseFlags,
    SystemException, Version, context,
};

use crate::codec::{Coding, Encoder};
use crate::exception::{marshal, raise_system};
use crate::invoke::{Answer, Arguments, Transport};
use crate::objects::{Objects, answer};

/// A client of one object.
pub struct Local<'o> {
    /// The objects.
    pub objects: &'o mut dyn Objects,
    /// Which.
    pub key: alloc::vec::Vec<u8>,
    /// The version of the messages.
    pub version: Version,
    /// Their byte order.
    pub endian: Endian,
    /// The code sets that the client tells.
    pub code_sets: Option<CodeSets>,
}

impl<'o> Local<'o> {
    /// A client of the object with a key, that speaks GIOP 1.2 and UTF-8.
    #[must_use]
    pub fn new(objects: &'o mut dyn Objects, key: &[u8]) -> Self {
        let code_sets = Some(CodeSets::UTF);
        let key = key.to_vec();
        Self { objects, key, version: Version::V1_2, endian: Endian::Little, code_sets }
    }

    fn coding(&self) -> Coding {
        self.code_sets
            .map_or(Coding::plain(self.version), |sets| Coding::agreed(self.version, sets))
    }

    /// Makes a request, and lets the objects answer it.
    fn exchange(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
        response_flags: ResponseFlags,
    ) -> Result<Option<Message>, SystemException> {
        let mut encoder = Encoder::new(self.endian, self.coding());
        arguments(&mut encoder);
        let octets = encoder.finish(Completion::No)?;
        let sets = self.code_sets.map(|sets| sets.encode(self.endian));
        let contexts = sets.as_deref().map(|data| (context::CODE_SETS, data));
        let head = RequestHead {
            version: self.version,
            endian: self.endian,
            request_id: 1,
            response_flags,
            object_key: &self.key,
            operation: operation.as_bytes(),
            contexts: contexts.as_slice(),
        };
        // Arguments begin at a multiple of 8 in GIOP 1.2 only.
        let message = build::request(&head, |out| {
            if self.version >= Version::V1_2 {
                out.write_raw(&octets);
            } else {
                let written = core::mem::replace(out, Writer::new(self.endian));
                let mut aligned = Encoder::at(written, self.coding());
                arguments(&mut aligned);
                *out = aligned.into_writer();
            }
        });
        let Ok(Body::Request(request)) = message.parse() else {
            return Err(raise_system(ExceptionKind::Internal));
        };
        Ok(answer(&message, &request, self.objects, &mut None))
    }
}

impl Transport for Local<'_> {
    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        let reply = self.exchange(operation, arguments, ResponseFlags::WithTarget)?;
        let message = reply.ok_or(raise_system(ExceptionKind::NoResponse))?;
        let coding = self.coding();
        read_reply(message, coding)
    }

    fn send(&mut self, operation: &str, arguments: Arguments<'_>) -> Result<(), SystemException> {
        self.exchange(operation, arguments, ResponseFlags::None).map(drop)
    }
}

/// A reply as an answer, if it is one.
fn read_reply(message: Message, coding: Coding) -> Result<Answer, SystemException> {
    let maybe = marshal(Completion::Maybe);
    let (status, offset) = match message.parse() {
        Ok(Body::Reply(reply)) => {
            if let Some(exception) = reply.system_exception() {
                return Err(exception.unwrap_or(maybe));
            }
            (reply.status(), reply.body_offset())
        }
        _ => return Err(maybe),
    };
    let raised = match status {
        ReplyStatus::NoException => false,
        ReplyStatus::UserException => true,
        _ => return Err(raise_system(ExceptionKind::NoImplement)),
    };
    Ok(Answer { message, offset, raised, coding })
}
