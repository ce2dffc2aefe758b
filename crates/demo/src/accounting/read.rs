//! Reads a replica's final state from its own server port, past every gateway.
//!
//! What it is not: consistent under load. The group must be at rest; the caller waits for that.
//!
//! Invariant: only operations that append no entry are called.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use quorba_orb::{Client, ClientOptions, Reference};

use super::Replica;
use crate::bank::books::Books;
use crate::bank::ledger::{Ledger, LedgerError};
use crate::director::stage::BANK_KEY;

/// Entries that are fetched at once.
const PAGE_ENTRIES: u32 = 1_000;
/// How long a server may take for one call; a state of many megabytes is one.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest reply: a whole state.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Reads the bank that listens at `port` of this machine and carries the replica `name`.
///
/// # Errors
/// [`LedgerError`] if the server does not answer as a bank does.
pub fn replica(name: &str, port: u16) -> Result<Replica, LedgerError> {
    let mut ledger = ledger(port);
    let mut books = Books { counter: ledger.counter()?, ..Books::default() };
    for account in ledger.accounts()? {
        let balance = ledger.balance(&account)?;
        books.balances.insert(account, balance);
    }
    let executed = ledger.executed()?;
    while books.executed() < executed {
        let page = ledger.history(books.executed(), PAGE_ENTRIES)?;
        if page.is_empty() {
            // It counts more entries than it shows. The accounting sees what is not there.
            break;
        }
        books.history.extend(page);
    }
    let state = Some(ledger.state()?);
    Ok(Replica { name: name.to_owned(), books, state })
}

/// How many entries the bank at `port` of this machine has.
///
/// # Errors
/// [`LedgerError`] if the server does not answer as a bank does.
pub fn executed(port: u16) -> Result<u64, LedgerError> {
    ledger(port).executed()
}

/// A client of the bank at `port` of this machine, past every gateway.
#[must_use]
pub fn ledger(port: u16) -> Ledger {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let options = ClientOptions {
        call_timeout: Some(CALL_TIMEOUT),
        message_bytes_max: MESSAGE_BYTES_MAX,
        ..ClientOptions::default()
    };
    Ledger::new(Client::new(&Reference::direct(address, BANK_KEY), options))
}
