//! The load client: clients of the bank, each a thread with a connection of its own.
//!
//! What it is not: replicated, or aware of replication. It is given a reference and calls it; after
//! an exception it waits a moment and goes on with its next call, under a new reference.
//!
//! Invariants: every call is recorded once, when its outcome is known; a call is never repeated by
//! the client itself (with `ft_request` the ORB repeats it, under one identity).

mod meter;
mod mix;
mod rate_limiter;
mod recorder;
mod worker;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quorba_orb::{ClientOptions, Reference, Repeat, ResolveError};
use serde::Serialize;

use crate::record::{CallRecord, Recording};
pub use meter::{Counts, Latency, Meter, Slot};
use recorder::Recorder;
use worker::Worker;

/// What the clients do.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The bank: `corbaloc:` or `IOR:`.
    pub reference: String,
    /// How many clients.
    pub clients: usize,
    /// Calls per second of all clients together; 0: as fast as answers come.
    pub calls_per_s: u32,
    /// Accounts `acct-0` and on; 0: none, and every call is an increment.
    pub accounts: u32,
    /// Share of calls that are oneways, in percent.
    pub oneway_percent: u8,
    /// Seed of the clients' choices.
    pub seed: u64,
    /// What references begin with; different for each process that calls the same bank.
    pub name: String,
    /// Whether calls carry an FT_REQUEST identity and are repeated by the ORB.
    pub ft_request: bool,
    /// How long a client waits for an answer.
    pub call_timeout: Duration,
    /// The file that calls are recorded in as they end; none: only in memory.
    pub record: Option<PathBuf>,
}

/// Why a load cannot begin.
#[derive(Debug)]
pub enum LoadError {
    /// The reference is none: the caller's fault.
    Reference(ResolveError),
    /// The file for the recording cannot be written.
    Record {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference(error) => write!(f, "{error}"),
            Self::Record { path, source } => {
                write!(f, "cannot record calls in {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// What a load came to.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// Every call.
    pub recording: Recording,
    /// How many ended in which way.
    pub counts: Counts,
    /// How long answered calls took.
    pub latency: Latency,
    /// The longest time without an answer to any client.
    pub longest_gap: Duration,
}

/// The one line of JSON that a load client prints at its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadSummary {
    /// Calls made.
    pub requests: u64,
    /// Calls answered.
    pub acknowledged: u64,
    /// Calls of unknown outcome.
    pub maybe: u64,
    /// Calls refused.
    pub refused: u64,
    /// The longest time without an answer to any client, in milliseconds.
    pub longest_gap_ms: f64,
    /// Median time of an answered call, in microseconds.
    pub p50_us: u64,
    /// 99th percentile of it, in microseconds.
    pub p99_us: u64,
}

impl LoadResult {
    /// The result in one line.
    #[must_use]
    pub fn summary(&self) -> LoadSummary {
        LoadSummary {
            requests: self.counts.requests,
            acknowledged: self.counts.acknowledged,
            maybe: self.counts.maybe,
            refused: self.counts.refused,
            longest_gap_ms: (self.longest_gap.as_secs_f64() * 1e4).round() / 10.0,
            p50_us: self.latency.p50_us,
            p99_us: self.latency.p99_us,
        }
    }
}

/// Clients at work.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<CallRecord>>>,
    name: String,
}

/// What the clients share.
struct Shared {
    epoch: Instant,
    meter: Mutex<Meter>,
    recorder: Option<Recorder>,
    stop: AtomicBool,
    /// Whether the accounts are open, so that everybody can begin.
    open: Mutex<bool>,
    opened: Condvar,
}

impl Load {
    /// Starts the clients.
    ///
    /// # Errors
    /// [`LoadError`]; a bank that does not answer is none, the clients try until they are stopped.
    pub fn start(options: &LoadOptions) -> Result<Self, LoadError> {
        let reference = Reference::resolve(&options.reference, ClientOptions::default());
        let reference = reference.map_err(LoadError::Reference)?;
        let recorder = match &options.record {
            None => None,
            Some(path) => Some(
                Recorder::create(path)
                    .map_err(|source| LoadError::Record { path: path.clone(), source })?,
            ),
        };
        let shared = Arc::new(Shared {
            epoch: Instant::now(),
            meter: Mutex::new(Meter::default()),
            recorder,
            stop: AtomicBool::new(false),
            open: Mutex::new(false),
            opened: Condvar::new(),
        });
        let threads = (0..options.clients)
            .map(|client| {
                let orb = ClientOptions {
                    call_timeout: Some(options.call_timeout),
                    // Spread over the gateways, as the clients of several hosts would be.
                    first_address: client,
                    repeat: options.ft_request.then(|| Repeat::new(&options.name, client)),
                    ..ClientOptions::default()
                };
                let worker = Worker::new(options, client, &reference, orb, Arc::clone(&shared));
                thread::spawn(move || worker.run())
            })
            .collect();
        Ok(Self { shared, threads, name: options.name.clone() })
    }

    /// Stops the clients, each after the call that it is in, and waits for them.
    pub fn stop(&mut self) -> LoadResult {
        self.ask_to_stop();
        let mut records = Vec::new();
        for thread in self.threads.drain(..) {
            records.extend(thread.join().expect("a client does not panic"));
        }
        if let Some(recorder) = &self.shared.recorder {
            recorder.flush();
        }
        records.sort_by_key(|record| record.end_us);
        LoadResult {
            recording: Recording { name: self.name.clone(), records },
            counts: self.counts(),
            latency: self.latency(),
            longest_gap: self.longest_gap(),
        }
    }

    /// What went wrong with the file of the recording, if anything did.
    #[must_use]
    pub fn record_fault(&self) -> Option<String> {
        self.shared.recorder.as_ref().and_then(Recorder::fault)
    }

    /// What time it is in the records.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.shared.now()
    }

    /// How many calls ended in which way so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.meter().counts()
    }

    /// Latencies so far.
    #[must_use]
    pub fn latency(&self) -> Latency {
        self.shared.meter().latency()
    }

    /// The longest time without an answer to any client so far.
    #[must_use]
    pub fn longest_gap(&self) -> Duration {
        self.shared.meter().longest_gap(self.shared.now())
    }

    /// Begins to look for the longest gap anew.
    pub fn mark_gap(&self) {
        self.shared.meter().mark();
    }

    /// The longest gap since the last mark.
    #[must_use]
    pub fn gap_since_mark(&self) -> Duration {
        self.shared.meter().gap_since_mark(self.shared.now())
    }

    /// What happened since this was called last.
    #[must_use]
    pub fn take_slot(&self) -> Slot {
        self.shared.meter().take_slot(self.shared.now())
    }

    fn ask_to_stop(&self) {
        if !self.shared.stop.swap(true, Ordering::Relaxed) {
            // What the clients still wait for is told by their records, and is no gap.
            self.shared.meter().end(self.shared.now());
            *self.shared.open.lock().expect("no holder panics") = true;
            self.shared.opened.notify_all();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ask_to_stop();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().expect("no holder panics")
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The accounts are open: everybody may begin.
    fn begin(&self) {
        if !self.is_stopped() {
            self.meter().begin(self.now());
        }
        *self.open.lock().expect("no holder panics") = true;
        self.opened.notify_all();
    }

    /// Waits for [`Shared::begin`], or for the end.
    fn await_begin(&self) {
        let open = self.open.lock().expect("no holder panics");
        drop(self.opened.wait_while(open, |open| !*open).expect("no holder panics"));
    }

    /// Sleeps for `time`, or until the load is stopped.
    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}
