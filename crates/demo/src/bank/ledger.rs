//! The caller's side of `Bank::Ledger`.
//!
//! What it is not: a cache, or a guard. Every method is one call, and what the bank says is what
//! the caller gets.

use std::fmt;

use quorba_orb::giop::cdr::{Reader, Writer};
use quorba_orb::giop::{Completion, MessageError, SystemException};
use quorba_orb::{CallError, Client, marshal_fault};

use super::books::Entry;
use super::server::MESSAGE_BYTES_MAX;

/// The longest string of a reply that is believed, in octets.
const STRING_BYTES_MAX: usize = 1 << 20;
/// Octets that an entry has at least: two numbers and four empty strings.
const ENTRY_BYTES_MIN: usize = 36;
/// Octets that a string has at least.
const STRING_BYTES_MIN: usize = 4;
/// The most items of a sequence that is believed; what came is the nearer limit.
const ITEMS_MAX: usize = 10_000_000;

/// A bank, by reference.
pub struct Ledger(Client);

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// The bank raised the user exception with this repository id: nothing has changed.
    Raised(String),
    /// The ORB, the gateway or the server raised a system exception.
    System(SystemException),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(id) => write!(f, "the bank raised {id}"),
            Self::System(exception) => write!(f, "{exception}"),
        }
    }
}

impl std::error::Error for LedgerError {}

impl From<CallError> for LedgerError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::User(exception) => Self::Raised(exception.repository_id().to_owned()),
            CallError::System(exception) => Self::System(exception),
        }
    }
}

impl Ledger {
    /// The bank that `client` refers to.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// `open`.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn open(&mut self, account: &str, reference: &str) -> Result<(), LedgerError> {
        self.call("open", |out| strings(out, [account, reference]), nothing)
    }

    /// `deposit`: the new balance.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn deposit(
        &mut self,
        account: &str,
        amount: i64,
        reference: &str,
    ) -> Result<i64, LedgerError> {
        let arguments = |out: &mut Writer| {
            strings(out, [account]);
            out.write_i64(amount);
            strings(out, [reference]);
        };
        self.call("deposit", arguments, |results| results.read_i64("balance"))
    }

    /// `transfer`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn transfer(
        &mut self,
        from: &str,
        to: &str,
        amount: i64,
        reference: &str,
    ) -> Result<(), LedgerError> {
        let arguments = |out: &mut Writer| {
            strings(out, [from, to]);
            out.write_i64(amount);
            strings(out, [reference]);
        };
        self.call("transfer", arguments, nothing)
    }

    /// `balance`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn balance(&mut self, account: &str) -> Result<i64, LedgerError> {
        let arguments = |out: &mut Writer| strings(out, [account]);
        self.call("balance", arguments, |results| results.read_i64("balance"))
    }

    /// `accounts`.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn accounts(&mut self) -> Result<Vec<String>, LedgerError> {
        self.call(
            "accounts",
            |_| {},
            |results| {
                let count = results.read_count(STRING_BYTES_MIN, ITEMS_MAX, "accounts")?;
                (0..count).map(|_| string(results, "account")).collect()
            },
        )
    }

    /// `executed`.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn executed(&mut self) -> Result<u64, LedgerError> {
        self.call("executed", |_| {}, |results| results.read_u64("executed"))
    }

    /// `history`: at most `max` entries from number `first` on.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn history(&mut self, first: u64, max: u32) -> Result<Vec<Entry>, LedgerError> {
        let arguments = |out: &mut Writer| {
            out.write_u64(first);
            out.write_u32(max);
        };
        self.call("history", arguments, |results| {
            let count = results.read_count(ENTRY_BYTES_MIN, ITEMS_MAX, "entries")?;
            (0..count).map(|_| entry(results)).collect()
        })
    }

    /// `increment`: the counter's new value.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn increment(&mut self, reference: &str) -> Result<u64, LedgerError> {
        let arguments = |out: &mut Writer| strings(out, [reference]);
        self.call("increment", arguments, |results| results.read_u64("counter"))
    }

    /// `counter`.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn counter(&mut self) -> Result<u64, LedgerError> {
        self.call("counter", |_| {}, |results| results.read_u64("counter"))
    }

    /// `note`, a oneway: that it returns says only that it was sent.
    ///
    /// # Errors
    /// [`LedgerError::System`].
    pub fn note(&mut self, text: &str) -> Result<(), LedgerError> {
        let sent = self.0.oneway("note", |out| strings(out, [text]));
        sent.map_err(LedgerError::System)
    }

    /// `get_state`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn state(&mut self) -> Result<Vec<u8>, LedgerError> {
        self.call(
            "get_state",
            |_| {},
            |results| results.read_octets(MESSAGE_BYTES_MAX, "state").map(<[u8]>::to_vec),
        )
    }

    /// `set_state`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn set_state(&mut self, state: &[u8]) -> Result<(), LedgerError> {
        self.call("set_state", |out| out.write_octets(state), nothing)
    }

    fn call<R>(
        &mut self,
        operation: &str,
        arguments: impl Fn(&mut Writer),
        results: impl FnOnce(&mut Reader<'_>) -> Result<R, MessageError>,
    ) -> Result<R, LedgerError> {
        let answer = self.0.call(operation, arguments)?;
        results(&mut answer.results())
            .map_err(|fault| LedgerError::System(marshal_fault(fault, Completion::Yes)))
    }
}

fn strings<const N: usize>(out: &mut Writer, strings: [&str; N]) {
    for string in strings {
        out.write_string(string.as_bytes());
    }
}

fn nothing(_results: &mut Reader<'_>) -> Result<(), MessageError> {
    Ok(())
}

fn string(results: &mut Reader<'_>, what: &'static str) -> Result<String, MessageError> {
    let octets = results.read_string(STRING_BYTES_MAX, what)?;
    // Names of a foreign bank may be in another code set; for comparing them this is enough.
    Ok(String::from_utf8_lossy(octets).into_owned())
}

fn entry(results: &mut Reader<'_>) -> Result<Entry, MessageError> {
    Ok(Entry {
        number: results.read_u64("number")?,
        reference: string(results, "reference")?,
        operation: string(results, "operation")?,
        account: string(results, "account")?,
        other: string(results, "other")?,
        amount: results.read_i64("amount")?,
    })
}
