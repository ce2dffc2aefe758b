//! Calls that tell clients the end of their connections: one each, once, by threads of their own.
//!
//! What it is not: relied on. Who is not told finds out with its next call.
//!
//! Invariants: what waits for a thread, or is under way, has a bound, so clients that come and go
//! and cannot be reached keep nobody else waiting and fill no memory; what is left out is counted,
//! and said in the log once until everybody who waits has been called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorba_corba::Object;

/// Calls that wait or are under way: all clients of a channel can be told its end at once.
const CALLS_MAX: usize = 20_000;
/// Octets of their references.
const BYTES_MAX: usize = 32 << 20;

#[derive(Default)]
struct State {
    calls: usize,
    bytes: usize,
    /// Those that were left out since the log said that some are.
    left_out: u64,
}

/// See the module's text.
#[derive(Clone, Default)]
pub(super) struct Goodbyes(Arc<Mutex<State>>);

/// The place of one call: it is free when this is dropped.
pub(super) struct Place {
    of: Goodbyes,
    bytes: usize,
}

fn bytes_of(to: &Object) -> usize {
    let profiles = to.0.profiles.iter().map(|profile| profile.data.len());
    to.0.type_id.len() + profiles.sum::<usize>()
}

impl Goodbyes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more; none if there are too many.
    pub(super) fn place(&self, to: &Object) -> Option<Place> {
        let bytes = bytes_of(to);
        let mut state = self.lock();
        if state.calls >= CALLS_MAX || state.bytes.saturating_add(bytes) > BYTES_MAX {
            state.left_out += 1;
            if state.left_out == 1 {
                eprintln!(
                    "{} clients wait to be told that they are disconnected: others are not told, \
                     and find out with their next call; those that wait cannot be reached, perhaps",
                    state.calls
                );
            }
            return None;
        }
        state.calls += 1;
        state.bytes += bytes;
        Some(Place { of: self.clone(), bytes })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.calls -= 1;
        state.bytes -= self.bytes;
        if state.calls == 0 {
            let left_out = std::mem::take(&mut state.left_out);
            if left_out > 0 {
                eprintln!("{left_out} clients were not told that they are disconnected");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_corba::Home;

    fn with_key(octets: usize) -> Object {
        let home = Home { addresses: vec![("nobody".to_owned(), 1)], prefix: Vec::new() };
        home.object("IDL:P:1.0", &vec![7; octets])
    }

    #[test]
    fn goodbyes_that_wait_have_a_bound_and_what_is_left_out_is_counted() {
        for (to, most) in [(with_key(1), CALLS_MAX), (with_key(16 << 10), BYTES_MAX >> 14)] {
            let goodbyes = Goodbyes::default();
            let mut places: Vec<Place> = (0..).map_while(|_| goodbyes.place(&to)).collect();
            assert!((most - most / 50..=most).contains(&places.len()), "{}", places.len());
            assert!(goodbyes.place(&to).is_none());
            assert_eq!(goodbyes.lock().left_out, 2);
            places.pop();
            let again = goodbyes.place(&to);
            assert!(again.is_some(), "there is room again");
            drop((places, again));
            let state = goodbyes.lock();
            assert_eq!((state.calls, state.bytes, state.left_out), (0, 0, 0));
        }
    }
}
