//! Replies of servers that nobody waits for are deferred while there is much to do: with the next
//! message that comes from the ring, and not by a wake-up of their own.
//!
//! What it is not: a judgement of which replies those are; that is the engine's. Invariants: what
//! somebody waits for is read at once; nothing lies unread for longer than [`DEFERRED_MAX`] while
//! the node runs, so that a connection's end is seen as well.

use super::DataPlane;
use quorba_engine::replica::{GroupId, GroupMap};
use quorba_net::ReadOutcome;
use std::time::{Duration, Instant as Clock};

/// How long a reply may lie unread.
const DEFERRED_MAX: Duration = Duration::from_millis(1);
/// So often in a row nobody must have waited before it is not looked at once any more.
const UNWANTED_MIN: u32 = 64;
/// After so many looks in a row at which it has nothing to do, a server is not looked at any more.
const IDLE_MIN: u32 = 64;

/// How the replies of one group's server are read.
#[derive(Default)]
struct Reading {
    /// Looks in a row at which nobody waited for anything.
    unwanted: u32,
    /// Looks in a row at which it had nothing to do.
    idle: u32,
    is_deferred: bool,
    /// When it ends that replies are deferred, unless something comes from the ring before.
    until: Option<Clock>,
}

/// Of the servers that have something to do, or had a moment ago: of the others nothing is known,
/// so that however many they are, they cost nothing.
#[derive(Default)]
pub(super) struct Readings(GroupMap<Reading>);

impl Readings {
    /// The group's server is given something to do.
    pub(super) fn asked(&mut self, group: GroupId) {
        match self.0.get_mut(group) {
            Some(reading) => reading.idle = 0,
            None => _ = self.0.insert(group, Reading::default()),
        }
    }

    /// There is no such group any more.
    pub(super) fn close(&mut self, group: GroupId) {
        self.0.remove(group);
    }

    /// When [`DataPlane::end_deferred_reads`] is wanted.
    pub(super) fn deferred_until(&self) -> Option<Clock> {
        self.0.values().filter_map(|reading| reading.until).min()
    }

    /// The next group behind `behind`, or the first.
    fn next(&self, behind: Option<GroupId>) -> Option<GroupId> {
        self.0.next_id(behind)
    }
}

impl DataPlane {
    /// Whether replies are to be deferred from here on, of each server; `is_busy`: there is much
    /// to do, so that something will come from the ring soon.
    pub(super) fn look_who_waits(&mut self, is_busy: bool, now: Clock) {
        let mut at = None;
        while let Some(group) = self.reading.next(at) {
            at = Some(group);
            let wanted = self.engine.reply_wanted(group);
            let Some(reading) = self.reading.0.get_mut(group) else { continue };
            reading.idle = if wanted.is_none() { reading.idle + 1 } else { 0 };
            match wanted {
                // Its server has nothing to say but that it ends, and that is to be seen as well.
                None if reading.is_deferred => _ = reading.until.get_or_insert(now + DEFERRED_MAX),
                None if reading.idle >= IDLE_MIN => self.reading.close(group),
                None => {}
                Some(true) => self.read_at_once(group),
                Some(false) if !is_busy => self.read_at_once(group),
                Some(false) => {
                    reading.unwanted = reading.unwanted.saturating_add(1);
                    if reading.is_deferred {
                        reading.until.get_or_insert(now + DEFERRED_MAX);
                    } else if reading.unwanted >= UNWANTED_MIN {
                        reading.is_deferred = true;
                        reading.until = Some(now + DEFERRED_MAX);
                        self.servers.set_reading(group, false, &self.poller);
                    }
                }
            }
        }
    }

    fn read_at_once(&mut self, group: GroupId) {
        let Some(reading) = self.reading.0.get_mut(group) else { return };
        let was_deferred = std::mem::take(reading).is_deferred;
        if was_deferred {
            self.servers.set_reading(group, true, &self.poller);
        }
    }

    /// Nothing has come from the ring for so long that servers are read at once again.
    pub(super) fn end_deferred_reads(&mut self, now: Clock) {
        let is_due = |reading: &Reading| reading.until.is_some_and(|until| until <= now);
        let mut at = None;
        while let Some(group) = self.reading.next(at) {
            at = Some(group);
            if self.reading.0.get(group).is_some_and(is_due) {
                self.read_at_once(group);
            }
        }
    }

    /// Something has come from the ring: reads what servers have said meanwhile.
    pub(super) fn read_deferred(&mut self) {
        let mut at = None;
        while let Some(group) = self.reading.next(at) {
            at = Some(group);
            let Some(reading) = self.reading.0.get_mut(group) else { continue };
            if !reading.is_deferred {
                continue;
            }
            reading.until = None;
            for token in self.servers.tokens_of(group) {
                self.read_old(group, token);
            }
        }
    }

    fn read_old(&mut self, group: GroupId, token: u64) {
        let Some(channel) = self.servers.get(token).filter(|channel| channel.connected) else {
            return;
        };
        let id = channel.id;
        match channel.stream.read(&mut self.buffer) {
            ReadOutcome::Bytes(count) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.server_spoke(group);
                }
                if let Some(call_timings) = &mut self.call_timings {
                    call_timings.server_spoke(group);
                }
                let now = self.now();
                let bytes = &self.buffer[..count];
                self.engine.handle_deferred_server_bytes(now, group, id, bytes);
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::Closed => self.server_gone(token),
        }
    }
}
