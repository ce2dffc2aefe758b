//! What stubs call through: the client as a [`Transport`].
//!
//! Invariant: arguments that the code set cannot say are found before anything is sent.

use quorba_corba::{Answer, Arguments, Coding, Encoder, Transport};
use quorba_giop::cdr::Writer;
use quorba_giop::{
    Body, Completion, ExceptionKind, Message, ReplyStatus, SystemException, Version,
};

use super::Client;
use super::call::Kind;
use super::reply::{raised, unknown};

impl Client {
    pub(super) fn coding(&self, version: Version) -> Coding {
        let sets = self.options.code_sets;
        sets.map_or(Coding::plain(version), |sets| Coding::agreed(version, sets))
    }

    /// Whether the arguments can be written at all.
    pub(super) fn check(&self, arguments: Arguments<'_>) -> Result<(), SystemException> {
        let mut trial = Encoder::new(self.options.endian, self.coding(self.options.version));
        arguments(&mut trial);
        trial.finish(Completion::No).map(drop)
    }

    /// What a reply says.
    pub(super) fn answer_in(&self, message: Message) -> Result<Answer, SystemException> {
        let coding = self.coding(message.version());
        let Ok(Body::Reply(reply)) = message.parse() else {
            return Err(unknown(ExceptionKind::Marshal));
        };
        let is_raised = match reply.status() {
            ReplyStatus::NoException => false,
            ReplyStatus::UserException => true,
            ReplyStatus::SystemException => return Err(raised(&message)),
            _ => return Err(unknown(ExceptionKind::NoImplement)),
        };
        let offset = reply.body_offset();
        Ok(Answer { message, offset, raised: is_raised, coding })
    }
}

/// Writes arguments behind a message's head.
pub(super) fn put(out: &mut Writer, coding: Coding, arguments: Arguments<'_>) {
    let written = std::mem::replace(out, Writer::new(out.endian()));
    let mut encoder = Encoder::at(written, coding);
    arguments(&mut encoder);
    *out = encoder.into_writer();
}

impl Transport for Client {
    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        self.check(arguments)?;
        let plain = self.coding(self.options.version);
        let write = |out: &mut Writer, version| put(out, Coding { version, ..plain }, arguments);
        let call = self.begin(operation, &write, Kind::Call);
        let message = self.exchange(&call)?;
        self.answer_in(message)
    }

    fn send(&mut self, operation: &str, arguments: Arguments<'_>) -> Result<(), SystemException> {
        self.check(arguments)?;
        let plain = self.coding(self.options.version);
        let write = |out: &mut Writer, version| put(out, Coding { version, ..plain }, arguments);
        let call = self.begin(operation, &write, Kind::Oneway);
        self.run_oneway(&call)
    }
}
