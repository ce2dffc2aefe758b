//! One client: draws a call, makes it, records it.
//!
//! Invariant: one call at a time; between the outcome of one and the beginning of the next there
//! is only the pace.

use std::sync::Arc;
use std::time::Duration;

use quorba_orb::giop::Completion;
use quorba_orb::{Client, ClientOptions, Reference};

use super::mix::{Call, DEPOSIT_FIRST, Mix, account_name};
use super::rate_limiter::RateLimiter;
use super::{LoadOptions, Shared};
use crate::bank::ledger::{Ledger, LedgerError};
use crate::record::{CallRecord, Completed, Outcome};

/// Pause after a system exception.
const PAUSE_AFTER_EXCEPTION: Duration = Duration::from_millis(10);

pub(super) struct Worker {
    ledger: Ledger,
    mix: Mix,
    rate_limiter: RateLimiter,
    shared: Arc<Shared>,
    records: Vec<CallRecord>,
    /// Whether this client opens the accounts for all.
    opens: bool,
    accounts: u32,
    keep: bool,
}

impl Worker {
    pub(super) fn new(
        options: &LoadOptions,
        client: usize,
        reference: &Reference,
        orb: ClientOptions,
        shared: Arc<Shared>,
    ) -> Self {
        let LoadOptions { accounts, oneway_percent, seed, calls_per_s, clients, .. } = *options;
        Self {
            ledger: Ledger::new(Client::new(reference, orb)),
            mix: Mix::new(&options.name, client, accounts, oneway_percent, seed),
            rate_limiter: RateLimiter::new(calls_per_s, clients, client),
            shared,
            records: Vec::new(),
            opens: client == 0,
            accounts,
            // What is in a file need not be in memory, too.
            keep: options.record.is_none(),
        }
    }

    /// Works until the load is stopped; the calls it made.
    pub(super) fn run(mut self) -> Vec<CallRecord> {
        if self.opens {
            self.open_accounts();
            self.shared.begin();
        } else {
            self.shared.await_begin();
        }
        let begin = self.shared.now();
        while !self.shared.is_stopped() {
            let wait = self.rate_limiter.wait(self.shared.now().saturating_sub(begin));
            self.shared.sleep(wait);
            if self.shared.is_stopped() {
                break;
            }
            let call = self.mix.call();
            self.make(call);
        }
        self.records
    }

    fn open_accounts(&mut self) {
        for account in 0..self.accounts {
            for call in [Call::Open { account }, Call::Deposit { account, amount: DEPOSIT_FIRST }] {
                // Until it is known to be done: a call of unknown outcome is made again, under a
                // new reference, which opening and depositing both allow.
                while !self.shared.is_stopped() && !self.make(call) {}
            }
        }
    }

    /// Makes `call` and records it; whether it was answered.
    fn make(&mut self, call: Call) -> bool {
        let reference = self.mix.reference();
        let start = self.shared.now();
        let result = self.invoke(call, &reference);
        let end = self.shared.now();
        let record = record(call, reference, [start, end], result.as_ref().err());
        self.shared.meter().note(&record);
        if let Some(recorder) = &self.shared.recorder {
            recorder.note(&record);
        }
        let answered = record.outcome == Outcome::Ok;
        if self.keep {
            self.records.push(record);
        }
        if !answered {
            self.shared.sleep(PAUSE_AFTER_EXCEPTION);
        }
        answered
    }

    fn invoke(&mut self, call: Call, reference: &str) -> Result<(), LedgerError> {
        let ledger = &mut self.ledger;
        match call {
            Call::Open { account } => ledger.open(&account_name(account), reference),
            Call::Deposit { account, amount } => {
                ledger.deposit(&account_name(account), amount, reference).map(drop)
            }
            Call::Transfer { from, to, amount } => {
                ledger.transfer(&account_name(from), &account_name(to), amount, reference)
            }
            Call::Balance { account } => ledger.balance(&account_name(account)).map(drop),
            Call::Increment => ledger.increment(reference).map(drop),
            Call::Note => ledger.note(reference),
        }
    }
}

fn record(
    call: Call,
    reference: String,
    [start, end]: [Duration; 2],
    error: Option<&LedgerError>,
) -> CallRecord {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let mut record = CallRecord {
        reference,
        operation: call.operation().to_owned(),
        start_us: us(start),
        end_us: us(end),
        outcome: Outcome::Ok,
        exception: None,
        completed: None,
        minor: None,
    };
    match error {
        None => {}
        Some(LedgerError::Raised(id)) => record.exception = Some(id.clone()),
        Some(LedgerError::System(exception)) => {
            record.outcome = Outcome::Exception;
            record.exception = Some(format!("IDL:omg.org/CORBA/{}:1.0", exception.kind.name()));
            record.minor = Some(exception.minor);
            record.completed = Some(match exception.completed {
                Completion::Yes => Completed::Yes,
                Completion::No => Completed::No,
                Completion::Maybe => Completed::Maybe,
            });
        }
    }
    record
}
