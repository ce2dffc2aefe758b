//! What an object implementation looks like to the server.
//!
//! What it is not: a skeleton. An implementation reads its own arguments and writes its own
//! results; [`Reader`] and [`Writer`] do the alignment.
//!
//! Invariant: a servant sees complete requests only, one at a time.

use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{Completion, Endian, ExceptionKind, MessageError, SystemException};

/// An object: what it is, and what its operations do.
pub trait Servant: Send {
    /// The repository id of its most derived interface, such as `IDL:Bank/Ledger:1.0`.
    fn repository_id(&self) -> &str;

    /// Whether the object supports the interface `id`. Override it if the interface has bases.
    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    /// Executes `operation`: reads its arguments, and writes its results, or a user exception
    /// with its members, into `reply`.
    ///
    /// # Errors
    /// The system exception to raise instead of a reply; [`marshal_fault`] makes one of a fault
    /// in the arguments, and [`unknown_operation`] of an operation that the object does not have.
    fn dispatch(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException>;
}

/// The reply that a servant writes.
///
/// Its octets begin at a position of the message that is a multiple of 8 in every version of
/// GIOP, so that what is written here keeps its alignment.
pub struct Reply {
    writer: Writer,
    raised: bool,
}

impl Reply {
    pub(crate) const fn new(endian: Endian) -> Self {
        Self { writer: Writer::new(endian), raised: false }
    }

    /// Where results go, in the order of the IDL: the return value, then `inout` and `out`.
    pub const fn results(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// Raises the user exception with the repository id `id`; its members go where this points.
    /// Results that were written before are dropped.
    pub fn raise(&mut self, id: &str) -> &mut Writer {
        self.writer = Writer::new(self.writer.endian());
        self.raised = true;
        self.writer.write_string(id.as_bytes());
        &mut self.writer
    }

    /// The octets, and whether they are those of a user exception.
    pub(crate) fn finish(self) -> (Vec<u8>, bool) {
        (self.writer.finish(), self.raised)
    }
}

/// The exception for arguments or results that are not what the IDL says.
#[must_use]
pub fn marshal_fault(_fault: MessageError, completed: Completion) -> SystemException {
    SystemException { kind: ExceptionKind::Marshal, minor: 0, completed }
}

/// The exception for an operation that an object does not have.
#[must_use]
pub fn unknown_operation() -> SystemException {
    SystemException { kind: ExceptionKind::BadOperation, minor: 0, completed: Completion::No }
}
