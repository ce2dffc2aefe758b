//! The thread that waits for the disk, so that the data plane does not.
//!
//! What it is not: a queue without bounds; what waits is counted in octets, and what is over the
//! bound is given back.
//!
//! Invariants: records become durable in the order in which they were handed over; what is
//! reported durable only grows; whatever waits when the thread gets to it is one commit. On a full
//! disk, or without a descriptor, nothing is reported and nothing is lost: the thread tries again
//! until there is space.
//! After a failure that a new segment did not mend, the thread says so and ends.

use crate::checkpoint::Sealed;
use crate::disk::is_shortage;
use crate::format::Seq;
use crate::format::record::{PAYLOAD_BYTES_MAX, Record, Stored};
use crate::journal::{AdoptError, CommitError, Journal};
use quorba_base::{Duration, Instant};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

/// How long the thread waits before it tries a disk again that is full or failed.
const RETRY: Duration = Duration::from_millis(100);
/// How often it tries a disk that failed otherwise.
const ATTEMPTS: u32 = 3;
/// How long it is idle before the metadata learn the watermark.
const IDLE: Duration = Duration::from_secs(1);

/// What the thread tells.
#[derive(Debug)]
pub enum Notice {
    /// Everything up to this record is durable.
    Durable(Seq),
    /// There is no space, or no descriptor. Said once for each job that waits for it; what the job
    /// tells at its end ends it.
    Full(io::Error),
    /// The disk failed and the thread has ended: nothing more becomes durable.
    Failed(io::Error),
    /// A checkpoint was taken in.
    Adopted(Sealed),
    /// A checkpoint was not taken in; the log goes on.
    NotAdopted(Sealed, AdoptError),
    /// The disk is in doubt no more.
    Trusted,
    /// The log now begins with this record.
    Truncated(Seq),
    /// A request other than an append failed on the disk; the log goes on.
    Shortage(io::Error),
}

/// A batch that was not taken.
#[derive(Debug)]
pub enum Refused {
    /// Too much waits already; offer it again when something has become durable.
    Full(Vec<Record>),
    /// A payload is over [`PAYLOAD_BYTES_MAX`].
    TooLong(Vec<Record>),
    /// The thread has ended; it has said why.
    Ended(Vec<Record>),
}

#[derive(Debug)]
enum Job {
    Append(Vec<Record>),
    Adopt(Sealed),
    TruncateBefore(Seq),
    Forget(u64),
    Trust,
    Stop,
}

/// The data plane's end. See the module's text.
#[derive(Debug)]
pub struct Committer {
    jobs: Sender<Job>,
    waiting_bytes: Arc<AtomicUsize>,
    waiting_bytes_max: usize,
    thread: JoinHandle<Option<Journal>>,
}

impl Committer {
    /// Starts the thread. `notify` is called on it. At most `waiting_bytes_max` octets wait, or
    /// one batch.
    ///
    /// # Errors
    /// The operating system's: no thread.
    pub fn start(
        journal: Journal,
        waiting_bytes_max: usize,
        notify: impl FnMut(Notice) + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, receiver) = mpsc::channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let worker = Worker {
            journal,
            jobs: receiver,
            waiting_bytes: Arc::clone(&waiting_bytes),
            taken_bytes: 0,
            later: Vec::new(),
            notify: Box::new(notify),
            epoch: std::time::Instant::now(),
            stops: false,
        };
        let thread =
            std::thread::Builder::new().name("journal".to_string()).spawn(|| worker.run())?;
        Ok(Self { jobs, waiting_bytes, waiting_bytes_max, thread })
    }

    /// Hands over records, which get the next numbers in order.
    ///
    /// # Errors
    /// [`Refused`], with the batch.
    pub fn append(&self, batch: Vec<Record>) -> Result<(), Refused> {
        if batch.iter().any(|record| record.payload().len() > PAYLOAD_BYTES_MAX) {
            return Err(Refused::TooLong(batch));
        }
        let bytes: usize = batch.iter().map(Record::bytes).sum();
        // Only this end adds, so that the sum cannot grow behind the comparison.
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting > 0 && waiting + bytes > self.waiting_bytes_max {
            return Err(Refused::Full(batch));
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.jobs.send(Job::Append(batch)).map_err(|unsent| match unsent.0 {
            Job::Append(batch) => Refused::Ended(batch),
            _ => unreachable!("it comes back as it was sent"),
        })
    }

    /// Has a checkpoint taken in, after everything that was handed over before. False if the
    /// thread has ended; so with the next ones.
    pub fn adopt(&self, sealed: Sealed) -> bool {
        self.jobs.send(Job::Adopt(sealed)).is_ok()
    }

    /// See [`Journal::truncate_before`].
    pub fn truncate_before(&self, seq: Seq) -> bool {
        self.jobs.send(Job::TruncateBefore(seq)).is_ok()
    }

    /// See [`Journal::forget`].
    pub fn forget(&self, group: u64) -> bool {
        self.jobs.send(Job::Forget(group)).is_ok()
    }

    /// See [`Journal::trust`].
    pub fn trust(&self) -> bool {
        self.jobs.send(Job::Trust).is_ok()
    }

    /// Makes durable what waits, ends the thread, and gives the log back; none if it failed.
    ///
    /// # Panics
    /// If the thread has panicked.
    #[must_use]
    pub fn stop(self) -> Option<Journal> {
        // A thread that has ended already needs no telling.
        let _ = self.jobs.send(Job::Stop);
        self.thread.join().expect("the log's thread does not panic")
    }
}

/// The thread's end.
struct Worker {
    journal: Journal,
    jobs: Receiver<Job>,
    waiting_bytes: Arc<AtomicUsize>,
    /// Octets that are in the journal and not durable.
    taken_bytes: usize,
    /// What is done after the next commit.
    later: Vec<Job>,
    notify: Box<dyn FnMut(Notice) + Send>,
    epoch: std::time::Instant,
    stops: bool,
}

impl Worker {
    fn run(mut self) -> Option<Journal> {
        while !self.stops {
            if self.later.is_empty() && !self.take(IDLE) {
                let now = self.now();
                self.journal.settle(now);
                continue;
            }
            if let Err(error) = self.commit() {
                (self.notify)(Notice::Failed(error));
                return None;
            }
            for job in std::mem::take(&mut self.later) {
                if let Err(error) = self.after(&job) {
                    (self.notify)(Notice::Failed(error));
                    return None;
                }
            }
        }
        Some(self.journal)
    }

    /// Takes all jobs that are there, and waits for one if there is none.
    fn take(&mut self, at_most: Duration) -> bool {
        match self.jobs.recv_timeout(at_most) {
            Ok(job) => self.sort(job),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => self.stops = true,
        }
        while let Ok(job) = self.jobs.try_recv() {
            self.sort(job);
        }
        true
    }

    fn sort(&mut self, job: Job) {
        match job {
            Job::Append(batch) => {
                for record in batch {
                    self.taken_bytes += record.bytes();
                    self.journal.append(record).expect("lengths were compared at the other end");
                }
            }
            Job::Stop => self.stops = true,
            job => self.later.push(job),
        }
    }

    /// Commits, and tries again for as long as it makes sense.
    fn commit(&mut self) -> Result<(), io::Error> {
        let mut attempts = 0;
        let mut is_full = false;
        loop {
            let before = self.journal.durable();
            let now = self.now();
            let result = self.journal.commit(now);
            if result.is_ok() {
                // Before it is told: who was refused offers its batch again when it hears of this,
                // and hears of nothing more if that is refused, too.
                let bytes = std::mem::take(&mut self.taken_bytes);
                self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
            if self.journal.durable() > before {
                (self.notify)(Notice::Durable(self.journal.durable()));
            }
            match result {
                Ok(_) => return Ok(()),
                Err(CommitError::Full(error)) if self.stops => return Err(error),
                Err(CommitError::Full(error)) if !is_full => {
                    is_full = true;
                    (self.notify)(Notice::Full(error));
                }
                Err(CommitError::Full(_)) => {}
                Err(CommitError::Failed(error)) => {
                    attempts += 1;
                    if attempts == ATTEMPTS {
                        return Err(error);
                    }
                }
            }
            self.pause();
        }
    }

    /// Takes in what comes for a moment.
    fn pause(&mut self) {
        let until = std::time::Instant::now() + RETRY;
        while let Some(left) = until.checked_duration_since(std::time::Instant::now())
            && !self.stops
        {
            self.take(left);
        }
    }

    /// Does what comes after a commit, and on a full disk tries again until there is space; what
    /// is to be committed meanwhile is. An error is one of a commit, after which the thread ends.
    fn after(&mut self, job: &Job) -> Result<(), io::Error> {
        let mut is_full = false;
        loop {
            let error = match self.attempt(job) {
                Ok(notice) => {
                    notice.into_iter().for_each(&mut self.notify);
                    return Ok(());
                }
                Err(error) if !is_shortage(&error) || self.stops => error,
                Err(error) => {
                    if !std::mem::replace(&mut is_full, true) {
                        (self.notify)(Notice::Full(error));
                    }
                    self.pause();
                    self.commit()?;
                    continue;
                }
            };
            (self.notify)(match job {
                Job::Adopt(sealed) => Notice::NotAdopted(sealed.clone(), AdoptError::Disk(error)),
                _ => Notice::Shortage(error),
            });
            return Ok(());
        }
    }

    fn attempt(&mut self, job: &Job) -> Result<Option<Notice>, io::Error> {
        match job {
            Job::Adopt(sealed) => match self.journal.adopt(sealed) {
                Ok(()) => Ok(Some(Notice::Adopted(sealed.clone()))),
                Err(AdoptError::Disk(error)) => Err(error),
                Err(error) => Ok(Some(Notice::NotAdopted(sealed.clone(), error))),
            },
            Job::TruncateBefore(seq) => {
                self.journal.truncate_before(*seq).map(|first| Some(Notice::Truncated(first)))
            }
            Job::Forget(group) => self.journal.forget(*group).map(|()| None),
            Job::Trust => self.journal.trust().map(|()| Some(Notice::Trusted)),
            Job::Append(_) | Job::Stop => unreachable!("done when they came"),
        }
    }

    fn now(&self) -> Instant {
        let since = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(since)
    }
}
