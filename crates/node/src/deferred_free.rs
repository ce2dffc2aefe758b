//! Whole states that are in use, until nobody needs them any more.
//!
//! To give a gigabyte back takes the system 50 to 80 ms, and whoever lets go of it last waits for
//! that; were it the thread that passes the token on, the ring would take its node for dead. So a
//! thread of its own holds every such state a little longer than all others do.
//!
//! What it is not: a place from which anything is taken again. Invariant: a state is held for no
//! more than a moment after all others have let go of it.

use crate::priority::lower_priority;
use bytes::Bytes;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How often the thread looks whether it is the last that holds a state.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// See the module's text. The thread begins with the first state, and ends with this.
#[derive(Default)]
pub(crate) struct DeferredFree {
    sender: Option<Sender<Bytes>>,
}

impl DeferredFree {
    /// Holds on to a state. Without a thread for it, whoever lets go of it last waits.
    pub(crate) fn keep(&mut self, state: Bytes) {
        if self.sender.is_none() {
            let (sender, arrivals) = channel();
            let keeper = thread::Builder::new().name("deferred-free".into()).spawn(move || {
                lower_priority();
                hold(&arrivals, |_| {});
            });
            self.sender = keeper.is_ok().then_some(sender);
        }
        if let Some(sender) = &self.sender {
            // It ends after this does.
            let _ = sender.send(state);
        }
    }
}

/// Until nobody sends any more. `freed` is told of each state how long it was.
fn hold(arrivals: &Receiver<Bytes>, mut freed: impl FnMut(usize)) {
    let mut held: Vec<Bytes> = Vec::new();
    loop {
        let arrival = if held.is_empty() {
            arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            arrivals.recv_timeout(LOOK_AFTER)
        };
        match arrival {
            Ok(state) => held.push(state),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for at in (0..held.len()).rev() {
            if held[at].is_unique() {
                freed(held.swap_remove(at).len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_held_by_one_more_until_nobody_else_needs_it() {
        let mut deferred_free = DeferredFree::default();
        let state = Bytes::from(vec![7; 1_000]);
        assert!(state.is_unique());
        deferred_free.keep(state.clone());
        for _ in 0..5 {
            // It has looked at it when the next one is taken in.
            deferred_free.keep(Bytes::from(vec![1; 10]));
            thread::sleep(LOOK_AFTER / 2);
            assert!(!state.is_unique(), "it is still in use here");
        }
        drop(deferred_free);
        while !state.is_unique() {
            thread::sleep(LOOK_AFTER / 10);
        }
    }

    #[test]
    fn a_state_is_freed_when_nobody_else_needs_it_and_not_before() {
        let (sender, arrivals) = channel();
        let (tell, freed) = channel();
        let keeper = thread::spawn(move || {
            hold(&arrivals, |bytes| tell.send(bytes).expect("the test listens"));
        });
        let [long, longer] = [1_000, 2_000].map(|bytes| Bytes::from(vec![7; bytes]));
        let part = long.slice(10..20);
        for state in [&long, &longer] {
            sender.send(state.clone()).expect("it holds");
        }
        drop((long, longer));
        assert_eq!(freed.recv(), Ok(2_000));
        assert_eq!(part, [7; 10][..]);
        drop(part);
        assert_eq!(freed.recv(), Ok(1_000));
        drop(sender);
        keeper.join().expect("it ends");
    }
}
