//! Heartbeats of a client that waits for a reply (FT-CORBA §23.2.9): when one is due, and when
//! their silence means that the connection is dead.
//!
//! What it is not: I/O, or a thread. A client that waits for nothing sends none; whether its
//! connection still lives it finds out with its next call.
//!
//! Invariant: whatever comes on the connection is a sign of life, not only answers to heartbeats.

use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, Message, ResponseFlags, Version};

/// The shortest interval.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// HEARTBEAT_POLICY (§23.2.9.2): how a client that waits looks whether its server lives. It holds
/// for addresses whose profile has TAG_FT_HEARTBEAT_ENABLED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatPolicy {
    /// A heartbeat is sent so often.
    pub interval: Duration,
    /// The connection is given up when so long after a heartbeat nothing has come.
    pub timeout: Duration,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Wait on.
    Nothing,
    /// Send a heartbeat.
    Beat,
    /// Give the connection up.
    Dead,
}

/// The heartbeats of one wait.
#[derive(Debug)]
pub(super) struct Pulse {
    policy: HeartbeatPolicy,
    next: Instant,
    /// The first heartbeat since which nothing has come.
    unanswered: Option<Instant>,
}

impl Pulse {
    pub(super) fn new(policy: HeartbeatPolicy, now: Instant) -> Self {
        let interval = policy.interval.max(INTERVAL_MIN);
        let policy = HeartbeatPolicy { interval, ..policy };
        Self { policy, next: now + interval, unanswered: None }
    }

    /// When to look again.
    pub(super) fn until(&self) -> Instant {
        let dead = self.unanswered.map(|since| since + self.policy.timeout);
        dead.map_or(self.next, |dead| dead.min(self.next))
    }

    /// What is due; `heard` is when something last came.
    pub(super) fn due(&mut self, now: Instant, heard: Instant) -> Due {
        self.unanswered = self.unanswered.filter(|since| heard <= *since);
        if self.unanswered.is_some_and(|since| now >= since + self.policy.timeout) {
            return Due::Dead;
        }
        if now < self.next {
            return Due::Nothing;
        }
        self.next = now + self.policy.interval;
        self.unanswered.get_or_insert(now);
        Due::Beat
    }
}

/// A heartbeat's message. FT_HB is the name that another ORB sends; gateways take `_FT_HB`, too.
pub(super) fn message(
    version: Version,
    endian: Endian,
    request_id: u32,
    object_key: &[u8],
) -> Message {
    let head = RequestHead {
        version,
        endian,
        request_id,
        response_flags: ResponseFlags::WithTarget,
        object_key,
        operation: b"FT_HB",
        contexts: &[],
    };
    build::request(&head, |_| {})
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    const POLICY: HeartbeatPolicy = HeartbeatPolicy { interval: ms(10), timeout: ms(25) };

    #[test]
    fn a_beat_is_due_at_each_interval() {
        let begin = Instant::now();
        let mut pulse = Pulse::new(POLICY, begin);
        assert_eq!(pulse.due(begin + ms(9), begin), Due::Nothing);
        for beat in [10, 20, 30, 40, 50] {
            assert_eq!(pulse.until(), begin + ms(beat));
            let heard = begin + ms(beat - 5);
            assert_eq!(pulse.due(begin + ms(beat), heard), Due::Beat);
            assert_eq!(pulse.due(begin + ms(beat + 5), begin + ms(beat + 5)), Due::Nothing);
        }
    }

    #[test]
    fn silence_since_the_first_unanswered_beat_is_death() {
        let begin = Instant::now();
        let mut pulse = Pulse::new(POLICY, begin);
        assert_eq!(pulse.due(begin + ms(10), begin), Due::Beat);
        assert_eq!(pulse.due(begin + ms(20), begin), Due::Beat);
        assert_eq!(pulse.due(begin + ms(30), begin), Due::Beat);
        assert_eq!(pulse.until(), begin + ms(35));
        assert_eq!(pulse.due(begin + ms(34), begin), Due::Nothing);
        assert_eq!(pulse.due(begin + ms(35), begin), Due::Dead);
    }

    #[test]
    fn a_client_that_looks_late_sends_one_beat_and_no_storm() {
        let begin = Instant::now();
        let mut pulse = Pulse::new(POLICY, begin);
        assert_eq!(pulse.due(begin + ms(500), begin), Due::Beat);
        assert_eq!(pulse.due(begin + ms(501), begin), Due::Nothing);
        let zero = HeartbeatPolicy { interval: ms(0), timeout: ms(5) };
        assert_eq!(Pulse::new(zero, begin).until(), begin + INTERVAL_MIN);
    }
}
