//! The bank as an object: every operation of `Bank::Ledger`, the `FT::Checkpointable` ones
//! included.
//!
//! What it is not: aware of replication. It executes what it is sent, in the order it is sent.
//!
//! Invariants: a call whose arguments cannot be read changes nothing; a state that cannot be read
//! changes nothing.

use std::process;
use std::thread;
use std::time::Duration;

use quorba_orb::giop::cdr::{Reader, Writer};
use quorba_orb::giop::{Completion, ExceptionKind, MessageError, SystemException, limits};
use quorba_orb::{Reply, Servant, marshal_fault, unknown_operation};
use rustix::process::Signal;

use super::books::{Books, Entry, Refusal};
use super::text;
use crate::processes;

/// Repository id of the bank's interface.
pub const LEDGER_ID: &str = "IDL:Bank/Ledger:1.0";
/// Repository id of its base.
pub const CHECKPOINTABLE_ID: &str = "IDL:omg.org/FT/Checkpointable:1.0";
/// Repository id of `FT::InvalidState`.
pub const INVALID_STATE_ID: &str = "IDL:omg.org/FT/InvalidState:1.0";
/// The longest string that a call may carry, in octets.
const STRING_BYTES_MAX: usize = 4096;
/// The most entries that one `history` returns, so that no caller makes the server build a reply
/// that no message can hold.
const PAGE_ENTRIES_MAX: usize = 10_000;

/// The faults that a bank server can be asked to have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// How long every call that changes something takes on top.
    pub delay: Duration,
    /// The process kills itself (SIGKILL) in its call of this number that changes something,
    /// counted from 1, after executing it and before replying.
    pub crash_after: Option<u64>,
}

/// The bank.
pub struct Bank {
    books: Books,
    faults: Faults,
    changes: u64,
    state_bytes_max: usize,
}

impl Bank {
    /// An empty bank with `faults`, whose state may have `state_bytes_max` octets.
    #[must_use]
    pub fn new(faults: Faults, state_bytes_max: usize) -> Self {
        Self { books: Books::default(), faults, changes: 0, state_bytes_max }
    }

    fn changed(&mut self) {
        self.changes += 1;
        if !self.faults.delay.is_zero() {
            thread::sleep(self.faults.delay);
        }
        if self.faults.crash_after == Some(self.changes) {
            processes::signal(process::id(), Signal::KILL);
            // The signal takes effect before anything else of this process is seen.
            loop {
                thread::park();
            }
        }
    }

    fn execute(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), Fault> {
        let books = &mut self.books;
        match operation {
            "open" => {
                let [account, reference] = read_strings(arguments, ["account", "reference"])?;
                books.open(&account, &reference);
            }
            "deposit" => {
                let [account] = read_strings(arguments, ["account"])?;
                let amount = arguments.read_i64("amount")?;
                let [reference] = read_strings(arguments, ["reference"])?;
                let balance = books.deposit(&account, amount, &reference)?;
                reply.results().write_i64(balance);
            }
            "transfer" => {
                let [from, to] = read_strings(arguments, ["from", "to"])?;
                let amount = arguments.read_i64("amount")?;
                let [reference] = read_strings(arguments, ["reference"])?;
                books.transfer(&from, &to, amount, &reference)?;
            }
            "increment" => {
                let [reference] = read_strings(arguments, ["reference"])?;
                let counter = books.increment(&reference);
                reply.results().write_u64(counter);
            }
            "note" => {
                let [text] = read_strings(arguments, ["text"])?;
                books.note(&text);
            }
            "set_state" => {
                let state = arguments.read_octets(self.state_bytes_max, "state")?;
                match text::decode(state) {
                    Ok(read) => *books = read,
                    Err(_) => _ = reply.raise(INVALID_STATE_ID),
                }
                return Ok(());
            }
            _ => return self.tell(operation, arguments, reply),
        }
        self.changed();
        Ok(())
    }

    /// The operations that change nothing.
    fn tell(
        &self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), Fault> {
        let results = reply.results();
        match operation {
            "balance" => {
                let [account] = read_strings(arguments, ["account"])?;
                results.write_i64(self.books.balance(&account)?);
            }
            "accounts" => {
                results.write_count(self.books.balances.len());
                for account in self.books.balances.keys() {
                    results.write_string(account.as_bytes());
                }
            }
            "executed" => results.write_u64(self.books.executed()),
            "history" => {
                let first = arguments.read_u64("first")?;
                let max = arguments.read_u32("max")? as usize;
                let page = self.books.page(first, max.min(PAGE_ENTRIES_MAX));
                results.write_count(page.len());
                page.iter().for_each(|entry| write_entry(results, entry));
            }
            "counter" => results.write_u64(self.books.counter),
            "get_state" => results.write_octets(&text::encode(&self.books)),
            _ => return Err(Fault::System(unknown_operation())),
        }
        Ok(())
    }
}

impl Servant for Bank {
    fn repository_id(&self) -> &str {
        LEDGER_ID
    }

    fn is_a(&self, id: &str) -> bool {
        [LEDGER_ID, CHECKPOINTABLE_ID].contains(&id)
    }

    fn dispatch(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        match self.execute(operation, arguments, reply) {
            Ok(()) => Ok(()),
            Err(Fault::System(exception)) => Err(exception),
            Err(Fault::Refusal(refusal)) => {
                let members = reply.raise(refusal.repository_id());
                match refusal {
                    Refusal::NoSuchAccount { account } => members.write_string(account.as_bytes()),
                    Refusal::InsufficientFunds { account, balance } => {
                        members.write_string(account.as_bytes());
                        members.write_i64(balance);
                    }
                }
                Ok(())
            }
        }
    }
}

/// Why a call was not executed.
enum Fault {
    Refusal(Refusal),
    System(SystemException),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl From<MessageError> for Fault {
    fn from(fault: MessageError) -> Self {
        Self::System(marshal_fault(fault, Completion::No))
    }
}

fn read_strings<const N: usize>(
    arguments: &mut Reader<'_>,
    names: [&'static str; N],
) -> Result<[String; N], Fault> {
    let mut strings = [const { String::new() }; N];
    for (string, name) in strings.iter_mut().zip(names) {
        let octets = arguments.read_string(STRING_BYTES_MAX, name)?;
        // The state's format is UTF-8, so nothing else may get into the books.
        let text = std::str::from_utf8(octets).map_err(|_| {
            let kind = ExceptionKind::DataConversion;
            Fault::System(SystemException { kind, minor: 0, completed: Completion::No })
        })?;
        text.clone_into(string);
    }
    Ok(strings)
}

fn write_entry(results: &mut Writer, entry: &Entry) {
    results.align(8);
    results.write_u64(entry.number);
    for field in [&entry.reference, &entry.operation, &entry.account, &entry.other] {
        results.write_string(field.as_bytes());
    }
    results.write_i64(entry.amount);
}

/// The largest state that a bank takes: what the largest message of [`super::server`] can hold.
pub(super) const STATE_BYTES_MAX: usize = super::server::MESSAGE_BYTES_MAX;

const _: () = assert!(STATE_BYTES_MAX >= limits::MESSAGE_BYTES_MAX);
