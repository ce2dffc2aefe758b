//! Replies of servers that nobody waits for are read late while there is much to do: with the next
//! message that comes from the ring, and not by a wake-up of their own.
//!
//! What it is not: a judgement of which replies those are; that is the engine's. Invariants: what
//! somebody waits for is read at once; nothing lies unread for longer than [`LATE_MAX`] while the
//! node runs, so that a connection's end is seen as well.

use super::DataPlane;
use crate::names::group_id;
use quorba_engine::replica::GroupId;
use quorba_net::ReadOutcome;
use std::time::{Duration, Instant as Clock};

/// How long a reply may lie unread.
const LATE_MAX: Duration = Duration::from_millis(1);
/// So often in a row nobody must have waited before it is not looked at once any more.
const UNWANTED_MIN: u32 = 64;

/// How the replies of one group's server are read.
#[derive(Default)]
pub(super) struct Reading {
    /// Looks in a row at which nobody waited for anything.
    unwanted: u32,
    is_late: bool,
    /// When it ends that replies are read late, unless something comes from the ring before.
    until: Option<Clock>,
}

impl DataPlane {
    /// Whether replies are to be read late from here on, of each server; `is_busy`: there is much
    /// to do, so that something will come from the ring soon.
    pub(super) fn look_who_waits(&mut self, is_busy: bool, now: Clock) {
        for index in 0..self.reading.len() {
            let group = group_id(index);
            match self.engine.reply_wanted(group) {
                // Its server has nothing to say but that it ends, and that is to be seen as well.
                None if self.reading[index].is_late => {
                    self.reading[index].until.get_or_insert(now + LATE_MAX);
                }
                None => {}
                Some(true) => self.read_at_once(index),
                Some(false) if !is_busy => self.read_at_once(index),
                Some(false) => {
                    let reading = &mut self.reading[index];
                    reading.unwanted = reading.unwanted.saturating_add(1);
                    if reading.is_late {
                        reading.until.get_or_insert(now + LATE_MAX);
                    } else if reading.unwanted >= UNWANTED_MIN {
                        reading.is_late = true;
                        reading.until = Some(now + LATE_MAX);
                        self.servers.set_reading(group, false, &self.poller);
                    }
                }
            }
        }
    }

    fn read_at_once(&mut self, index: usize) {
        let reading = &mut self.reading[index];
        let was_late = std::mem::take(reading).is_late;
        if was_late {
            self.servers.set_reading(group_id(index), true, &self.poller);
        }
    }

    /// When [`Self::end_late_reads`] is wanted.
    pub(super) fn late_until(&self) -> Option<Clock> {
        self.reading.iter().filter_map(|reading| reading.until).min()
    }

    /// Nothing has come from the ring for so long that servers are read at once again.
    pub(super) fn end_late_reads(&mut self, now: Clock) {
        for index in 0..self.reading.len() {
            if self.reading[index].until.is_some_and(|until| until <= now) {
                self.read_at_once(index);
            }
        }
    }

    /// Something has come from the ring: reads what servers have said meanwhile.
    pub(super) fn read_late(&mut self) {
        for index in 0..self.reading.len() {
            if !self.reading[index].is_late {
                continue;
            }
            self.reading[index].until = None;
            let group = group_id(index);
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
                if let Some(pace) = &mut self.pace {
                    pace.server_spoke(group);
                }
                let now = self.now();
                let bytes = &self.buffer[..count];
                self.engine.handle_old_server_bytes(now, group, id, bytes);
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::Closed => self.server_gone(token),
        }
    }
}
