//! What a call gives: results, a user exception, or a system exception.

use std::fmt;

use quorba_giop::cdr::Reader;
use quorba_giop::{Message, SystemException};

/// The longest repository id of an exception that is read, in octets.
const REPOSITORY_ID_BYTES_MAX: usize = 4096;

/// The reply to a call, with its results.
#[derive(Clone, Debug)]
pub struct Answer {
    message: Message,
    results_at: usize,
}

impl Answer {
    pub(super) const fn new(message: Message, results_at: usize) -> Self {
        Self { message, results_at }
    }

    /// Reads the results, in the order of the IDL: the return value, then `inout` and `out`.
    #[must_use]
    pub fn results(&self) -> Reader<'_> {
        Reader::at(self.message.bytes(), self.results_at, self.message.endian())
    }

    /// The whole message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }
}

/// A user exception that a server raised.
#[derive(Clone, Debug)]
pub struct UserException {
    id: String,
    answer: Answer,
}

impl UserException {
    /// Reads the exception that begins where `answer`'s results would.
    pub(super) fn read(mut answer: Answer) -> Option<Self> {
        let mut reader = answer.results();
        let id = reader.read_string(REPOSITORY_ID_BYTES_MAX, "exception id").ok()?;
        let id = String::from_utf8_lossy(id).into_owned();
        answer.results_at = reader.position();
        Some(Self { id, answer })
    }

    /// Its repository id.
    #[must_use]
    pub fn repository_id(&self) -> &str {
        &self.id
    }

    /// Reads its members.
    #[must_use]
    pub fn members(&self) -> Reader<'_> {
        self.answer.results()
    }
}

/// Why a call gave no results.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The server raised an exception of its interface.
    User(UserException),
    /// The server, anything on the way, or this ORB raised a system exception.
    System(SystemException),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(exception) => write!(f, "user exception {}", exception.id),
            Self::System(exception) => write!(f, "{exception}"),
        }
    }
}

impl std::error::Error for CallError {}
