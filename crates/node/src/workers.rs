//! A few threads for what blocks: a process that is started, a name that is looked up.
//!
//! What it is not: a place where anybody waits; what comes of a job, the job itself tells.
//! Invariants: there are no more threads than were allowed, and none that has had nothing to do for
//! a while; jobs begin in their order.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// A thread without a job ends after so long.
const IDLE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

/// See the module's text.
pub(crate) struct Workers {
    name: &'static str,
    most: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Of these, those that have no job.
    idle: usize,
}

impl Workers {
    /// `most` threads called `name`.
    pub(crate) fn new(name: &'static str, most: usize) -> Self {
        Self { name, most, shared: Arc::default() }
    }

    /// Does a job as soon as a thread is free.
    ///
    /// # Errors
    /// There is no thread, and the system gives none: it is not done.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut queue = self.shared.queue.lock().expect("no holder panics");
        queue.jobs.push_back(Box::new(job));
        if queue.jobs.len() > queue.idle && queue.threads < self.most {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name(self.name.into());
            match thread.spawn(move || work(&shared)) {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => {
                    queue.jobs.pop_back();
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        drop(queue);
        self.shared.more.notify_one();
        Ok(())
    }
}

fn work(shared: &Shared) {
    let mut queue = shared.queue.lock().expect("no holder panics");
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            drop(queue);
            job();
            queue = shared.queue.lock().expect("no holder panics");
            continue;
        }
        queue.idle += 1;
        let (woken, waited) = shared.more.wait_timeout(queue, IDLE).expect("no holder panics");
        queue = woken;
        queue.idle -= 1;
        if waited.timed_out() && queue.jobs.is_empty() {
            queue.threads -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn no_more_jobs_run_at_once_than_there_are_threads_and_all_are_done() {
        let workers = Workers::new("test", 2);
        let (began, begun) = channel();
        let (go, gone) = channel::<()>();
        let gone = Arc::new(Mutex::new(gone));
        for number in 0..5 {
            let (began, gone) = (began.clone(), Arc::clone(&gone));
            let job = move || {
                began.send(number).expect("somebody listens");
                let _ = gone.lock().expect("nobody panics").recv();
            };
            workers.run(job).expect("a thread");
        }
        let first: Vec<i32> = begun.iter().take(2).collect();
        assert!(first.contains(&0) && first.contains(&1), "{first:?}");
        assert_eq!(workers.shared.queue.lock().expect("nobody panics").threads, 2);
        drop(go);
        let mut rest: Vec<i32> = begun.iter().take(3).collect();
        rest.sort_unstable();
        assert_eq!(rest, [2, 3, 4]);
    }
}
