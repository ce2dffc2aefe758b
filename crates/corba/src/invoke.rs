//! What stubs call through.
//!
//! Invariant: a reply that cannot be read is MARSHAL, COMPLETED_MAYBE; what was executed is not
//! said to be not.

use quorba_giop::cdr::Reader;
use quorba_giop::{Completion, Message, MessageError, SystemException};

use crate::codec::{Coding, Decoder, Encoder};
use crate::exception::{Raises, marshal, read_raised};

/// A reply: results, or a user exception.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The message.
    pub message: Message,
    /// Where in it the results, or the exception's id, begin.
    pub offset: usize,
    /// Whether it is an exception.
    pub raised: bool,
    /// How characters in it are written.
    pub coding: Coding,
}

impl Answer {
    /// Reads what it says.
    #[must_use]
    pub fn decoder(&self) -> Decoder<'_> {
        let message = &self.message;
        Decoder::new(Reader::at(message.bytes(), self.offset, message.endian()), self.coding)
    }
}

/// What writes a call's arguments, as often as it is asked to.
pub type Arguments<'a> = &'a dyn Fn(&mut Encoder);

/// A way to one object.
pub trait Transport {
    /// Calls an operation and waits for its reply.
    ///
    /// # Errors
    /// The system exception that was raised on the way or by the server.
    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException>;

    /// Sends an operation that has no reply.
    ///
    /// # Errors
    /// The system exception if it could not be sent.
    fn send(&mut self, operation: &str, arguments: Arguments<'_>) -> Result<(), SystemException>;
}

/// Calls an operation and reads its results; for stubs.
///
/// # Errors
/// The exception that was raised.
pub fn call<R, E: Raises>(
    transport: &mut dyn Transport,
    operation: &str,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Decoder<'_>) -> Result<R, MessageError>,
) -> Result<R, E> {
    let answer = transport.invoke(operation, arguments)?;
    let mut from = answer.decoder();
    if answer.raised {
        return Err(read_raised(&mut from));
    }
    results(&mut from).map_err(|_| marshal(Completion::Maybe).into())
}

/// Sends a oneway; for stubs.
///
/// # Errors
/// The system exception if it could not be sent.
pub fn send(
    transport: &mut dyn Transport,
    operation: &str,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    transport.send(operation, arguments)
}
