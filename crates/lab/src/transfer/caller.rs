//! A client of a transfer: short calls with a pause between them, and how long each took.
//!
//! What it is not: load. It calls so seldom that what it waits for is not its own calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quorba_orb::{CallError, Client, ClientOptions, Reference};

/// Between an answer and the next call.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a call may take.
pub(super) const CALL_WITHIN: Duration = Duration::from_secs(60);

/// When a call began, and how long it took.
pub(super) type Timed = (Instant, Duration);

/// A client at work.
pub(super) struct Caller {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    thread: JoinHandle<Result<Vec<Timed>, CallError>>,
}

impl Caller {
    pub(super) fn start(gateway: SocketAddr) -> Result<Self, String> {
        let mut client = client(gateway)?;
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&answered));
        let thread = thread::spawn(move || {
            let mut calls = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                client.call("touch", |_| {})?;
                calls.push((began, began.elapsed()));
                count.fetch_add(1, Ordering::Relaxed);
                thread::sleep(PAUSE);
            }
            Ok(calls)
        });
        Ok(Self { stop, answered, thread })
    }

    /// Calls answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// It gets no answers any more.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops after the call that it is in.
    pub(super) fn stop(self) -> Result<Vec<Timed>, String> {
        self.stop.store(true, Ordering::Relaxed);
        let calls = self.thread.join().expect("a client does not panic");
        calls.map_err(|error| format!("a client: {error}"))
    }
}

/// A client of the group at this gateway.
pub(super) fn client(gateway: SocketAddr) -> Result<Client, String> {
    let key = crate::ballast::KEY;
    let reference = Reference::parse(&format!("corbaloc:iiop:1.2@{gateway}/{key}"));
    let reference = reference.map_err(|error| error.to_string())?;
    let options = ClientOptions { call_timeout: Some(CALL_WITHIN), ..ClientOptions::default() };
    Ok(Client::new(&reference, options))
}
