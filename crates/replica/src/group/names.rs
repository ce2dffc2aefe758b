//! Names that clients give their requests (FT_REQUEST) and that do not hold: counted, and said
//! now and then.
//!
//! Invariant: nothing follows from it; how often it is said is bounded, whatever clients do.

use super::Group;
use crate::output::{Event, IdentityFault, Outbox, Output};
use crate::words::ids::RequestKey;
use bytes::Bytes;
use quorba_base::{Duration, Instant};

/// How often one fault is said at most.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// How many were refused at this node since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdentityFigures {
    /// See [`IdentityFault::Taken`].
    pub taken: u64,
    /// See [`IdentityFault::NoRoom`].
    pub no_room: u64,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Names {
    now: Instant,
    pub(super) figures: IdentityFigures,
    /// When each fault may be said again.
    not_before: [Instant; 2],
}

impl Names {
    pub(super) fn at(&mut self, now: Instant) {
        self.now = now;
    }

    /// Counts it. How many there were, if it is to be said.
    fn note(&mut self, fault: IdentityFault) -> Option<u64> {
        let (count, not_before) = match fault {
            IdentityFault::Taken => (&mut self.figures.taken, &mut self.not_before[0]),
            IdentityFault::NoRoom => (&mut self.figures.no_room, &mut self.not_before[1]),
        };
        *count += 1;
        if self.now < *not_before {
            return None;
        }
        *not_before = self.now + SAID_EVERY;
        Some(*count)
    }
}

impl Group {
    /// A request was refused because of its name.
    pub(super) fn note_refusal(
        &mut self,
        key: &RequestKey,
        fault: IdentityFault,
        out: &mut Outbox,
    ) {
        let RequestKey::Client { client_id, binding, .. } = key else { return };
        let Some(count) = self.names.note(fault) else { return };
        let (group, subject) = (self.id, binding.subject);
        let client_id = Bytes::copy_from_slice(client_id);
        let event = Event::IdentityRefused { group, fault, client_id, subject, count };
        out.push_back(Output::Event(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_said_once_a_minute() {
        let mut names = Names::default();
        assert_eq!(names.note(IdentityFault::Taken), Some(1));
        (0..1000).for_each(|_| assert_eq!(names.note(IdentityFault::Taken), None));
        assert_eq!(names.note(IdentityFault::NoRoom), Some(1), "something else");
        names.at(Instant::ZERO + SAID_EVERY);
        assert_eq!(names.note(IdentityFault::Taken), Some(1002));
    }
}
