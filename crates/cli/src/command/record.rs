//! `quorba group record`: the requests of a group, and their replies, in a file.
//!
//! What it is not: the format of the file, which is `doctor/recording.rs`.
//!
//! Invariants: only its owner may read the file; one with nothing in it is not left behind; one
//! that has not all is known by its end that is missing.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorba_admin::requests::{Messages, Outcome, Requests};
use quorba_config::Domain;

use crate::command::doctor::recording;
use crate::command::log::{AGAIN, ANSWER_WITHIN, Asked, DiskLog, SHOWN_AFTER_MS};
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::grouped;

/// What `quorba group record` was asked for.
pub struct Record<'a> {
    pub group: &'a str,
    pub node: Option<&'a str>,
    pub disk: bool,
    pub for_: Duration,
    pub to: &'a Path,
}

impl Record<'_> {
    pub fn run(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        if self.disk {
            return self.read_from_disk(context, domain);
        }
        let deadline = context.deadline(self.for_ + ANSWER_WITHIN);
        let asked = Asked::find(domain, self.group, self.node, deadline)?;
        // The first question begins the recording; what it finds is from before.
        let begun = asked.ask(self.group, 0, true)?;
        let mut file = self.create()?;
        let last = begun.requests.last().map(|last| last.number);
        let mut tally = Tally { last, ..Tally::default() };
        let head = recording::Head::new(domain, self.group, &asked.name, now_us());
        let written = self.follow(&asked, &head, &mut file, &mut tally, deadline);
        drop(file);
        written.map_err(|failure| self.broke_off(failure, &tally))?;
        self.tell(context, &asked.name, &tally, true)
    }

    fn follow(
        &self,
        asked: &Asked,
        head: &recording::Head,
        file: &mut BufWriter<File>,
        tally: &mut Tally,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let unwritable = |error| self.unwritable(&error);
        recording::write(file, head).map_err(unwritable)?;
        let end = Instant::now() + self.for_.min(deadline.left());
        loop {
            let is_over = Instant::now() >= end;
            let found = asked.ask(self.group, tally.last.unwrap_or(0), true)?;
            let count = tally.requests;
            let between = |last, next| asked.between(self.group, last, next);
            for messages in tally.take(found, is_over, between)? {
                recording::write(file, &messages).map_err(unwritable)?;
            }
            file.flush().map_err(unwritable)?;
            if is_over && (count == tally.requests || Instant::now() >= end + ANSWER_WITHIN) {
                break;
            }
            if !is_over {
                thread::sleep(AGAIN.min(end.saturating_duration_since(Instant::now())));
            }
        }
        let foot = recording::Trailer { requests: tally.requests, missing: tally.missing };
        recording::write(file, &foot).and_then(|()| file.flush()).map_err(unwritable)
    }

    fn create(&self) -> Result<BufWriter<File>, Failure> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(self.to);
        Ok(BufWriter::new(file.map_err(|error| self.unwritable(&error))?))
    }

    fn unwritable(&self, error: &std::io::Error) -> Failure {
        let what = format!("{} cannot be written: {error}", self.to.display());
        let next = "name a file that is not there, on a disk that has room";
        Failure::new(codes::FILE, Exit::Failed, what, next)
    }

    /// What is left of a recording that failed.
    fn broke_off(&self, mut failure: Failure, tally: &Tally) -> Failure {
        if tally.requests == 0 {
            let _ = fs::remove_file(self.to);
        } else {
            let (file, requests) = (self.to.display(), grouped(tally.requests));
            failure.what += &format!("; {file} has what came until then, {requests} requests");
        }
        failure
    }

    /// All that a node's disk has, without replies.
    fn read_from_disk(&self, context: &Context, domain: &Domain) -> Result<Exit, Failure> {
        let log = DiskLog::of(context, domain, (self.group, self.node))?;
        let mut file = self.create()?;
        let mut tally = Tally::default();
        let head = recording::Head::new(domain, self.group, &log.node.name, now_us());
        let mut written = recording::write(&mut file, &head);
        let read = log.read(context, |one, messages| {
            if one.outcome == Outcome::Repetition {
                tally.repetitions += 1;
            } else if written.is_ok() {
                tally.requests += 1;
                written = recording::write(&mut file, &messages);
            }
        });
        let damage = read.map_err(|failure| self.broke_off(failure, &tally))?;
        if damage.is_none() {
            let foot = recording::Trailer { requests: tally.requests, missing: 0 };
            written = written.and_then(|()| recording::write(&mut file, &foot));
        }
        written.and_then(|()| file.flush()).map_err(|error| {
            let failure = self.unwritable(&error);
            self.broke_off(failure, &tally)
        })?;
        self.tell(context, &log.node.name, &tally, damage.is_none())?;
        damage.map_or(Ok(Exit::Ok), Err)
    }

    fn tell(
        &self,
        context: &Context,
        node: &str,
        tally: &Tally,
        is_whole: bool,
    ) -> Result<Exit, Failure> {
        let Tally { requests, repetitions, missing, .. } = *tally;
        if context.is_json() {
            context.print_json(&serde_json::json!({
                "group": self.group,
                "node": node,
                "file": self.to,
                "requests": requests,
                "repetitions": repetitions,
                "missing": is_whole.then_some(missing),
            }))?;
        } else {
            let (file, requests) = (self.to.display(), grouped(requests));
            context.print(&format!("{requests} requests of group {} in {file}\n", self.group))?;
            if missing > 0 {
                let missing = grouped(missing);
                let what = "requests came faster than they were fetched";
                context.tell(format!("at most {missing} {what}"));
            }
        }
        Ok(Exit::Ok)
    }
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// What has been written.
#[derive(Default)]
struct Tally {
    last: Option<u64>,
    requests: u64,
    repetitions: u64,
    missing: u64,
}

impl Tally {
    /// The messages to write now: those that are executed, and all at the end.
    /// `between` says how many requests there may be between two numbers.
    fn take(
        &mut self,
        found: Requests,
        is_over: bool,
        between: impl Fn(u64, u64) -> Result<u64, Failure>,
    ) -> Result<Vec<Messages>, Failure> {
        let outcome = |number| found.requests.iter().find(|one| one.number == number);
        let mut taken = Vec::new();
        for messages in &found.messages {
            // One that is not told in short any more is long executed.
            let outcome = outcome(messages.number).map(|one| (&one.outcome, one.age_ms));
            if !is_over && matches!(outcome, Some((Outcome::Open, age)) if age < SHOWN_AFTER_MS) {
                break;
            }
            if let Some(last) = self.last {
                self.missing += between(last, messages.number)?;
            }
            self.last = Some(messages.number);
            if matches!(outcome, Some((Outcome::Repetition, _))) {
                self.repetitions += 1;
            } else {
                self.requests += 1;
                taken.push(messages.clone());
            }
        }
        Ok(taken)
    }
}
