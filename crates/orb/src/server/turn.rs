//! A lock whose holders take turns in the order in which they came.
//!
//! What it is not: a queue with a thread behind it. The thread that brings a request executes it,
//! because handing it to another costs more than most operations do.
//!
//! Invariant: turns are taken in the order of [`Turns::take`]; a holder that panics ends its turn.

use std::sync::{Condvar, Mutex};

#[derive(Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    next: Condvar,
}

#[derive(Default)]
struct State {
    taken: u64,
    served: u64,
}

/// A turn; it is over when this is dropped.
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Takes the next turn and waits for it.
    pub(super) fn take(&self) -> Turn<'_> {
        let mut state = self.state.lock().expect("no holder panics");
        let mine = state.taken;
        state.taken += 1;
        while state.served != mine {
            state = self.next.wait(state).expect("no holder panics");
        }
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().expect("no holder panics");
        state.served += 1;
        let somebody_waits = state.served != state.taken;
        drop(state);
        if somebody_waits {
            self.0.next.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn turns_are_taken_in_the_order_of_coming() {
        let turns = Arc::new(Turns::default());
        let (tell, told) = mpsc::channel();
        let first = turns.take();
        let mut threads = Vec::new();
        for number in 0..20_u64 {
            let (turns, tell) = (Arc::clone(&turns), tell.clone());
            threads.push(thread::spawn({
                let turns = Arc::clone(&turns);
                move || {
                    let _turn = turns.take();
                    tell.send(number).expect("somebody listens");
                }
            }));
            // The next comes only when this one has taken its number.
            while turns.state.lock().expect("no holder panics").taken != number + 2 {
                thread::yield_now();
            }
        }
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        drop(tell);
        assert_eq!(told.iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_ends_the_turn() {
        let turns = Arc::new(Turns::default());
        let panicking = Arc::clone(&turns);
        let thread = thread::spawn(move || {
            let _turn = panicking.take();
            panic!("in its turn");
        });
        assert!(thread.join().is_err());
        drop(turns.take());
    }
}
