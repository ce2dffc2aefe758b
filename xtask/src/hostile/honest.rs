//! Honest clients: one at each gateway, on another address than the attackers', who call at a
//! quiet pace and write down how long that takes.
//!
//! As many call at a domain that nobody attacks: what they see is the machine's doing.
//!
//! What it is not: a load. It asks for a small part of what the domain can do.
//!
//! Invariants: a call that has no answer yet counts with the time that it has waited; dropped, no
//! client is left.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::wire::{Answer, Wire, request};

/// Whom honest clients come from.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// Time between the beginnings of two calls of one client.
const PACE: Duration = Duration::from_millis(8);
/// The same of calls with large arguments, so that it is still a small part of what there is.
const LARGE_PACE: Duration = Duration::from_millis(50);
const LARGE_BYTES: usize = 10_000;
/// How long one look at a call that is under way takes.
const LOOK: Duration = Duration::from_millis(100);

/// Parts of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Before = 0,
    During = 1,
    /// Not judged.
    Between = 2,
    After = 3,
}

const PARTS: usize = 4;

/// What one client has seen in each part.
#[derive(Default)]
struct Seen {
    calls: [Vec<Duration>; PARTS],
    faults: [Vec<String>; PARTS],
    since: Option<Instant>,
}

/// The clients.
pub(super) struct Honest {
    part: Arc<AtomicU8>,
    stop: Arc<AtomicBool>,
    seen: Vec<Arc<Mutex<Seen>>>,
    threads: Vec<JoinHandle<()>>,
}

/// Of one part: of the client that fared worst.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) calls: usize,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Honest {
    /// Every call takes arguments of so many octets.
    pub(super) fn start(gateways: &[SocketAddr], octets: usize) -> Self {
        let (part, stop) = (Arc::new(AtomicU8::new(2)), Arc::new(AtomicBool::new(false)));
        let mut honest = Self { part, stop, seen: Vec::new(), threads: Vec::new() };
        for gateway in gateways {
            let seen = Arc::new(Mutex::new(Seen::default()));
            let (part, stop) = (Arc::clone(&honest.part), Arc::clone(&honest.stop));
            honest.seen.push(Arc::clone(&seen));
            let gateway = *gateway;
            let run = move || call_on(gateway, octets, &part, &stop, &seen);
            honest.threads.push(thread::spawn(run));
        }
        honest
    }

    /// Calls that end from now on belong to this part.
    pub(super) fn enter(&self, part: Part) {
        if part != Part::During {
            // What waits has waited in the part that is over.
            self.seen.iter().for_each(|seen| count_open(seen, self.now()));
        }
        self.part.store(part as u8, Ordering::Relaxed);
    }

    fn now(&self) -> usize {
        usize::from(self.part.load(Ordering::Relaxed))
    }

    pub(super) fn times(&self, part: Part) -> Times {
        let times = self.seen.iter().map(|seen| times(seen, part));
        times.max_by_key(|times| times.p99).unwrap_or_default()
    }

    /// What went wrong in a part, in words.
    pub(super) fn faults(&self, part: Part) -> Vec<String> {
        let of = |(index, seen): (usize, &Arc<Mutex<Seen>>)| {
            let seen = lock(seen);
            let faults = &seen.faults[part as usize];
            let (first, count) = (faults.first()?, faults.len());
            Some(format!("{count} honest calls at n{}, the first: {first}", index + 1))
        };
        self.seen.iter().enumerate().filter_map(of).collect()
    }
}

impl Drop for Honest {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does not panic; and if it does, it has said so.
            let _ended = thread.join();
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn times(seen: &Mutex<Seen>, part: Part) -> Times {
    let mut calls = lock(seen).calls[part as usize].clone();
    calls.sort_unstable();
    let rank =
        |hundredths: usize| calls.get((calls.len() * hundredths).div_ceil(100).max(1) - 1).copied();
    let (p50, p99) = (rank(50).unwrap_or_default(), rank(99).unwrap_or_default());
    Times { calls: calls.len(), p50, p99 }
}

fn count_open(seen: &Mutex<Seen>, part: usize) {
    let mut seen = lock(seen);
    if let Some(since) = seen.since {
        seen.calls[part].push(since.elapsed());
    }
}

fn call_on(to: SocketAddr, octets: usize, part: &AtomicU8, stop: &AtomicBool, seen: &Mutex<Seen>) {
    let (mut wire, mut id) = (None, 0);
    let argument = vec![b'h'; octets];
    let pace = if octets < LARGE_BYTES { PACE } else { LARGE_PACE };
    while !stop.load(Ordering::Relaxed) {
        id += 2;
        let begin = Instant::now();
        lock(seen).since = Some(begin);
        let answer = call(&mut wire, to, id, &argument, stop);
        let now = usize::from(part.load(Ordering::Relaxed));
        {
            let mut seen = lock(seen);
            seen.since = None;
            match answer {
                Ok(()) => seen.calls[now].push(begin.elapsed()),
                Err(_) if stop.load(Ordering::Relaxed) => return,
                Err(fault) => seen.faults[now].push(fault),
            }
        }
        thread::sleep(pace.saturating_sub(begin.elapsed()));
    }
}

fn call(
    wire: &mut Option<Wire>,
    to: SocketAddr,
    id: u32,
    argument: &[u8],
    stop: &AtomicBool,
) -> Result<(), String> {
    let mut connection = match wire.take() {
        Some(connection) => connection,
        None => Wire::connect(ADDRESS, to).map_err(|error| format!("no connection: {error}"))?,
    };
    let octets = request(id, "add", true, |out| {
        out.write_u32(0);
        out.write_octets(argument);
    });
    let mut answer = connection.call(id, &octets, LOOK);
    while matches!(answer, Answer::Silence) && !stop.load(Ordering::Relaxed) {
        answer = connection.answer(id, LOOK);
    }
    match answer {
        Answer::Results(_) => {
            *wire = Some(connection);
            Ok(())
        }
        Answer::Raised(exception) => {
            *wire = Some(connection);
            Err(exception.to_string())
        }
        other => Err(other.to_string()),
    }
}
