//! The bank's books as plain data, and what each operation of `Bank::Ledger` does to them.
//!
//! What it is not: a servant. Nothing here knows of GIOP, time or threads.
//!
//! Invariants: deterministic (no clock, no randomness, no hash order), so books that are led
//! through the same calls in the same order are equal; entries are numbered from 0 without gaps;
//! `transfer` keeps the sum of all balances.

use std::collections::BTreeMap;
use std::fmt;

/// One line of the history: a call that changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position in the history, from 0.
    pub number: u64,
    /// What the caller named the call; unique per call of a client.
    pub reference: String,
    /// `open`, `deposit`, `transfer`, `increment` or `note`.
    pub operation: String,
    /// The account, or empty where the operation has none.
    pub account: String,
    /// Where a transfer goes to; else empty.
    pub other: String,
    /// The amount of money; 0 where the operation has none.
    pub amount: i64,
}

/// Why a call changed nothing: the user exceptions of `Bank::Ledger`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `Bank::NoSuchAccount`.
    NoSuchAccount {
        /// The account that was asked for.
        account: String,
    },
    /// `Bank::InsufficientFunds`.
    InsufficientFunds {
        /// The account that the money was to come from.
        account: String,
        /// What it holds.
        balance: i64,
    },
}

/// Repository id of `Bank::NoSuchAccount`.
pub const NO_SUCH_ACCOUNT_ID: &str = "IDL:Bank/NoSuchAccount:1.0";
/// Repository id of `Bank::InsufficientFunds`.
pub const INSUFFICIENT_FUNDS_ID: &str = "IDL:Bank/InsufficientFunds:1.0";

impl Refusal {
    /// The repository id of the user exception.
    #[must_use]
    pub const fn repository_id(&self) -> &'static str {
        match self {
            Self::NoSuchAccount { .. } => NO_SUCH_ACCOUNT_ID,
            Self::InsufficientFunds { .. } => INSUFFICIENT_FUNDS_ID,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchAccount { account } => write!(f, "no account {account:?}"),
            Self::InsufficientFunds { account, balance } => {
                write!(f, "account {account:?} holds only {balance}")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// The whole state of one bank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// The counter that `increment` counts up.
    pub counter: u64,
    /// Balance by account, in the order of names.
    pub balances: BTreeMap<String, i64>,
    /// Every call that changed something, in order; index = number.
    pub history: Vec<Entry>,
}

impl Books {
    /// Opens `account` with nothing in it; no error if it exists, and logged either way.
    pub fn open(&mut self, account: &str, reference: &str) {
        self.balances.entry(account.to_owned()).or_insert(0);
        self.log("open", reference, account, "", 0);
    }

    /// Adds `amount` to `account`; the new balance.
    ///
    /// # Errors
    /// [`Refusal::NoSuchAccount`], and nothing has changed.
    pub fn deposit(&mut self, account: &str, amount: i64, reference: &str) -> Result<i64, Refusal> {
        // Wrapping, as the arithmetic of the C++ and Java examples does: replicas of whatever
        // language must agree even on sums that no bank has.
        let balance = self.balance(account)?.wrapping_add(amount);
        self.balances.insert(account.to_owned(), balance);
        self.log("deposit", reference, account, "", amount);
        Ok(balance)
    }

    /// Moves `amount` from one account to another.
    ///
    /// # Errors
    /// A [`Refusal`], and nothing has changed.
    pub fn transfer(
        &mut self,
        from: &str,
        to: &str,
        amount: i64,
        reference: &str,
    ) -> Result<(), Refusal> {
        let balance = self.balance(from)?;
        self.balance(to)?;
        if balance < amount {
            return Err(Refusal::InsufficientFunds { account: from.to_owned(), balance });
        }
        self.balances.insert(from.to_owned(), balance.wrapping_sub(amount));
        // Read again: `from` and `to` may be one account.
        let target = self.balance(to)?.wrapping_add(amount);
        self.balances.insert(to.to_owned(), target);
        self.log("transfer", reference, from, to, amount);
        Ok(())
    }

    /// What `account` holds.
    ///
    /// # Errors
    /// [`Refusal::NoSuchAccount`].
    pub fn balance(&self, account: &str) -> Result<i64, Refusal> {
        self.balances
            .get(account)
            .copied()
            .ok_or_else(|| Refusal::NoSuchAccount { account: account.to_owned() })
    }

    /// Counts up by one; the new value.
    pub fn increment(&mut self, reference: &str) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        self.log("increment", reference, "", "", 0);
        self.counter
    }

    /// Writes `text` into the history as the reference of an entry.
    pub fn note(&mut self, text: &str) {
        self.log("note", text, "", "", 0);
    }

    /// How many entries the history has.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.history.len() as u64
    }

    /// At most `entries_max` entries, from number `first` on.
    #[must_use]
    pub fn page(&self, first: u64, entries_max: usize) -> &[Entry] {
        let start = usize::try_from(first).unwrap_or(usize::MAX).min(self.history.len());
        let end = start.saturating_add(entries_max).min(self.history.len());
        &self.history[start..end]
    }

    /// The books that `history` leads to, begun with empty ones. An entry that could not have
    /// been written (a transfer of money that is not there) is passed over, so that the caller
    /// sees it as a difference.
    #[must_use]
    pub fn replay(history: &[Entry]) -> Self {
        let mut books = Self::default();
        for entry in history {
            let _written = books.apply(entry);
        }
        books
    }

    fn apply(&mut self, entry: &Entry) -> Result<(), Refusal> {
        let Entry { reference, operation, account, other, amount, .. } = entry;
        match operation.as_str() {
            "open" => self.open(account, reference),
            "deposit" => self.deposit(account, *amount, reference).map(drop)?,
            "transfer" => self.transfer(account, other, *amount, reference)?,
            "increment" => _ = self.increment(reference),
            _ => self.note(reference),
        }
        Ok(())
    }

    fn log(&mut self, operation: &str, reference: &str, account: &str, other: &str, amount: i64) {
        self.history.push(Entry {
            number: self.executed(),
            reference: reference.to_owned(),
            operation: operation.to_owned(),
            account: account.to_owned(),
            other: other.to_owned(),
            amount,
        });
    }
}
