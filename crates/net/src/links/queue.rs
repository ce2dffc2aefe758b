//! Messages that wait to be sent on one link, in two lanes, and what is on its way to the socket.
//!
//! What it is not: the socket.
//!
//! Invariants: messages of a lane leave in their order; one of the bulk lane is only taken when
//! nothing waits in the other, and no more of them at once than [`WIRE_BYTES`], so that a small
//! message waits for little else; what waits is bounded in bytes.

use super::frame::{FrameKey, MESSAGE_BYTES_MAX};
use bytes::Bytes;
use quorba_base::Lane;
use std::collections::VecDeque;

/// Bytes that may wait in each lane.
const LANE_BYTES_MAX: usize = 4 << 20;
/// A lane that was full has room again when no more than so many wait.
const LOW_WATER_BYTES: usize = 1 << 20;
/// A small message costs memory, too.
const MESSAGE_COST_BYTES: usize = 64;
/// Sealed at once, if not a single message is longer.
const WIRE_BYTES: usize = 64 << 10;

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It goes out in its turn, unless the link ends before.
    Queued,
    /// There is no link to that node, and the message is dropped.
    NotConnected,
    /// Too much waits in this lane, and the message is dropped; an event says when there is room.
    Full,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// A message was refused since there was room.
    was_full: bool,
}

impl Waiting {
    fn push(&mut self, message: Bytes) -> Sent {
        let bytes = self.bytes + message.len() + MESSAGE_COST_BYTES;
        if bytes > LANE_BYTES_MAX {
            self.was_full = true;
            return Sent::Full;
        }
        self.bytes = bytes;
        self.messages.push_back(message);
        Sent::Queued
    }

    fn pop(&mut self) -> Option<Bytes> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len() + MESSAGE_COST_BYTES;
        Some(message)
    }

    fn has_room_again(&mut self) -> bool {
        let has_room = self.was_full && self.bytes <= LOW_WATER_BYTES;
        self.was_full &= !has_room;
        has_room
    }
}

/// See the module's text.
pub(super) struct Queue {
    key: FrameKey,
    control: Waiting,
    bulk: Waiting,
    /// Sealed, and sent up to `sent`.
    wire: Vec<u8>,
    sent: usize,
}

impl Queue {
    pub(super) fn new(key: FrameKey) -> Self {
        let (control, bulk) = (Waiting::default(), Waiting::default());
        Self { key, control, bulk, wire: Vec::new(), sent: 0 }
    }

    /// # Panics
    /// If the message is longer than [`MESSAGE_BYTES_MAX`].
    pub(super) fn push(&mut self, lane: Lane, message: Bytes) -> Sent {
        assert!(message.len() <= MESSAGE_BYTES_MAX, "{} bytes are too many", message.len());
        match lane {
            Lane::Control => self.control.push(message),
            Lane::Bulk => self.bulk.push(message),
        }
    }

    /// What is to be written next; empty if nothing waits.
    pub(super) fn wire(&mut self) -> &[u8] {
        if self.sent == self.wire.len() {
            self.wire.clear();
            self.sent = 0;
            while self.wire.len() < WIRE_BYTES {
                let next = self.control.pop().or_else(|| self.bulk.pop());
                let Some(message) = next else { break };
                self.key.seal(&message, &mut self.wire);
            }
        }
        &self.wire[self.sent..]
    }

    /// So many bytes of [`Self::wire`] have been written.
    pub(super) fn written(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.wire.len(), "no more than there was");
    }

    /// Whether a lane that was full has room again; says so once.
    pub(super) fn has_room_again(&mut self) -> bool {
        let control = self.control.has_room_again();
        self.bulk.has_room_again() || control
    }

    /// Bytes that wait, or are on their way to the socket.
    pub(super) fn bytes(&self) -> usize {
        self.control.bytes + self.bulk.bytes + self.wire.len() - self.sent
    }
}
