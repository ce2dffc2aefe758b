//! The scheduling class of the threads that events wait for: those that take pushes past the order,
//! that hand out and that call, and the one that hears who leads (Huang05 §3.6).
//!
//! What it is not: a class of any other thread: subscriptions, decisions, states and management are
//! in the normal one. Invariants: a thread with a real-time class waits by sleeping, never by
//! looking again and again; where the system does not permit it every thread is in the normal
//! class, which is logged once and told to the node.

use std::cell::Cell;
use std::io;
use std::thread;
use std::time::Duration;

use quorba_idl::quorba::FiguresStub;
use quorba_orb::{Client, ClientOptions, Reference};
use thread_priority::{
    Error, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use super::Surroundings;

/// How long the node may take to hear it, and when it is told again if it does not.
const TELL_WITHIN: Duration = Duration::from_secs(5);
const TELL_AGAIN: Duration = Duration::from_millis(500);

/// See the module's text. Nothing: the normal class.
#[derive(Clone, Copy, Default)]
pub(super) struct Class(Option<ThreadPriorityValue>);

thread_local! {
    /// This thread has it, or stays without it.
    static IS_TAKEN: Cell<bool> = const { Cell::new(false) };
}

impl Class {
    /// The real-time class with that priority, or the normal one, and why; 0 wants the normal one.
    fn permitted(priority: u8) -> Result<Self, String> {
        if priority == 0 {
            return Ok(Self::default());
        }
        let value = ThreadPriorityValue::try_from(priority)?;
        // A thread that ends at once: nobody else is changed by the question.
        let tried = thread::Builder::new().spawn(move || set(value)).map(thread::JoinHandle::join);
        match tried {
            Ok(Ok(Ok(()))) => Ok(Self(Some(value))),
            Ok(Ok(Err(error))) => Err(reason(&error)),
            Ok(Err(_)) => Err("it cannot be set".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What the threads get of a wish; the node is told.
    pub(super) fn get(priority: u8, around: &Surroundings) -> Self {
        let permitted = Self::permitted(priority);
        let refused = permitted.as_ref().err().cloned().unwrap_or_default();
        if !refused.is_empty() {
            eprintln!(
                "the threads that pass on events have no real-time priority {priority}: {refused}; \
                 they go on in the normal class. CAP_SYS_NICE permits it, or a limit \
                 RLIMIT_RTPRIO of {priority} (systemd: LimitRTPRIO=)"
            );
        }
        if let Some(figures) = around.figures.clone().filter(|_| priority > 0) {
            let group = around.group.clone();
            thread::spawn(move || tell(&figures, &group, priority, &refused));
        }
        permitted.unwrap_or_default()
    }

    /// The calling thread has it from now on, and threads that it begins.
    pub(super) fn take(self) {
        if let Some(value) = self.0
            && !IS_TAKEN.replace(true)
            && let Err(error) = set(value)
        {
            eprintln!("a thread that passes on events is in the normal class: {}", reason(&error));
        }
    }

    /// The calling thread is one for all else, and stays in the class in which it is: pushes that
    /// were ordered come on the same connection.
    pub(super) fn stay() {
        IS_TAKEN.set(true);
    }
}

fn set(value: ThreadPriorityValue) -> Result<(), Error> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriority::Crossplatform(value);
    set_thread_priority_and_policy(thread_native_id(), priority, policy)
}

fn reason(error: &Error) -> String {
    match error {
        Error::OS(code) => io::Error::from_raw_os_error(*code).to_string(),
        other => format!("{other:?}"),
    }
}

/// Until the node has heard it.
fn tell(figures: &Reference, group: &String, priority: u8, refused: &String) {
    let options = ClientOptions { call_timeout: Some(TELL_WITHIN), ..ClientOptions::default() };
    let mut client = Client::new(figures, options);
    let mut figures = FiguresStub(&mut client);
    while figures.scheduled(group, &priority.into(), refused).is_err() {
        thread::sleep(TELL_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_priority_is_refused_in_words_and_none_is_the_normal_class() {
        assert!(Class::permitted(0).is_ok_and(|class| class.0.is_none()));
        assert!(Class::permitted(200).is_err_and(|why| !why.is_empty()));
    }
}
