//! A call whose reply is looked for now and then: while it is under way nobody waits for it.
//!
//! For operations that answer when there is something to say, as `pull` of the event service does,
//! so that a call costs its connection, and no thread.
//!
//! Invariants: one such call is under way at a time, and any other call of the client gives it up;
//! it is sent once.

use std::time::{Duration, Instant};

use quorba_corba::{Answer, Arguments};
use quorba_giop::cdr::Writer;
use quorba_giop::{Completion, ExceptionKind, SystemException};

use super::Client;
use super::call::Kind;
use super::connection::Received;
use super::reply::{Forward, unknown};
use super::stub::put;

/// Silence after which the kernel asks whether the peer is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long a reply may take from its first octets to its last.
const REPLY_WITHIN: Duration = Duration::from_secs(1);

impl Client {
    /// Sends `operation`, and waits for no reply: [`Client::look_for_reply`] has it.
    ///
    /// # Errors
    /// The system exception if it could not be sent.
    pub fn call_later(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        self.check(arguments)?;
        let plain = self.coding(self.options.version);
        let write = |out: &mut Writer, version| {
            put(out, quorba_corba::Coding { version, ..plain }, arguments);
        };
        let call = self.begin(operation, &write, Kind::Later);
        self.exchange(&call)?;
        if let Some(connection) = &self.connection {
            // Nothing is sent meanwhile, so only the kernel finds out that nobody is there.
            connection.keep_alive(KEEP_ALIVE);
        }
        self.later = self.connection.as_ref().map(super::connection::Connection::request_id);
        Ok(())
    }

    /// Whether such a call is under way.
    #[must_use]
    pub const fn is_called(&self) -> bool {
        self.later.is_some()
    }

    /// The reply to what was sent by [`Client::call_later`], if it has come, or comes within that
    /// time; a system exception if none can come any more.
    pub fn look_for_reply(&mut self, within: Duration) -> Option<Result<Answer, SystemException>> {
        let Some((request_id, connection)) = self.later.zip(self.connection.as_mut()) else {
            return Some(Err(unknown(ExceptionKind::CommFailure)));
        };
        let within = if connection.has_octets() { REPLY_WITHIN } else { within };
        if within.is_zero() {
            return None;
        }
        let received = connection.receive(request_id, Some(Instant::now() + within), None);
        if matches!(received, Received::Timeout) {
            return None;
        }
        self.later = None;
        Some(self.replied(received))
    }

    fn replied(&mut self, received: Received) -> Result<Answer, SystemException> {
        let failed = match received {
            Received::Reply(message) | Received::LocateReply(message) => {
                self.hear(&message);
                let Some(forward) = Forward::read(&message) else {
                    return self.answer_in(message);
                };
                // It was not executed there, and is called anew at the other place.
                self.forward(Some(forward.to));
                let (kind, completed) = (ExceptionKind::Transient, Completion::No);
                return Err(SystemException { kind, minor: 0, completed });
            }
            Received::NotExecuted => {
                let (kind, completed) = (ExceptionKind::Transient, Completion::No);
                SystemException { kind, minor: 0, completed }
            }
            Received::Lost | Received::Timeout => unknown(ExceptionKind::CommFailure),
            Received::Malformed => unknown(ExceptionKind::Marshal),
        };
        self.leave();
        Err(failed)
    }
}
