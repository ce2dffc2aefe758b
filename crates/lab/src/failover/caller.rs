//! The client of a repetition: one deposit after the other, and when each was answered.
//!
//! What it is not: an accounting of calls; whether one was lost or done twice, the interop tests
//! find out.
//!
//! Invariant: between an answer and the next call is nothing, so that the time between two answers
//! is the latency of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quorba_demo::bank::ledger::Ledger;
use quorba_orb::{Client, ClientOptions, Reference, Repeat};

/// How long a call may take, with its repetitions.
const CALL_WITHIN: Duration = Duration::from_secs(30);
/// Pause after an exception.
const PAUSE_AFTER_EXCEPTION: Duration = Duration::from_millis(1);
const ACCOUNT: &str = "account";

/// A client at work.
pub(crate) struct Caller {
    shared: Arc<Shared>,
    thread: JoinHandle<Vec<Instant>>,
}

/// What came of the calls.
pub(crate) struct Calls {
    /// When each was answered.
    pub(crate) replies: Vec<Instant>,
    /// How many exceptions there were instead.
    pub(crate) exceptions: u64,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    exceptions: AtomicU64,
}

impl Caller {
    /// Starts it; it has opened its account when [`Caller::answered`] is more than 0.
    pub(crate) fn start(reference: &str) -> Result<Self, String> {
        let reference = Reference::parse(reference).map_err(|error| error.to_string())?;
        let options = ClientOptions {
            call_timeout: Some(CALL_WITHIN),
            repeat: Some(Repeat::new("lab", 0)),
            ..ClientOptions::default()
        };
        let shared = Arc::new(Shared::default());
        let ledger = Ledger::new(Client::new(&reference, options));
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || call(ledger, &of_thread));
        Ok(Self { shared, thread })
    }

    /// Calls answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Stops after the call that it is in.
    pub(crate) fn stop(self) -> Calls {
        self.shared.stop.store(true, Ordering::Relaxed);
        let replies = self.thread.join().expect("a client does not panic");
        Calls { replies, exceptions: self.shared.exceptions.load(Ordering::Relaxed) }
    }
}

fn call(mut ledger: Ledger, shared: &Shared) -> Vec<Instant> {
    let mut replies = Vec::new();
    let mut number = 0_u64;
    while !shared.stop.load(Ordering::Relaxed) {
        let reference = format!("lab-{number}");
        let result = match number {
            0 => ledger.open(ACCOUNT, &reference),
            _ => ledger.deposit(ACCOUNT, 1, &reference).map(drop),
        };
        match result {
            Ok(()) => {
                replies.push(Instant::now());
                shared.answered.fetch_add(1, Ordering::Relaxed);
                number += 1;
            }
            Err(_) => {
                shared.exceptions.fetch_add(1, Ordering::Relaxed);
                thread::sleep(PAUSE_AFTER_EXCEPTION);
            }
        }
    }
    replies
}
