//! Replies of the server in which references seem to stand, for whoever knows what they should say,
//! and padding in replies where members were seen to differ.
//!
//! What it is not: a judgement. Invariants: a reply without one costs one look at its beginning and
//! nothing else; what nobody takes is forgotten but for the newest few.

use super::Call;
use crate::recent::{self, Short};
use crate::reply_summary::ReplySummary;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::{Endian, padding, references};

/// So many wait to be taken.
const WAITING_MAX: usize = 16;

/// A reply with something in it that looks like a reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned {
    /// What was asked for.
    pub operation: Short,
    /// Which request, counted from the group's first, if it is one that all members execute.
    pub request: Option<u64>,
    /// The whole GIOP message.
    pub reply: Bytes,
    /// Where its results begin.
    pub body_offset: usize,
    /// Their byte order.
    pub endian: Endian,
}

/// After replies were seen to differ so many of the next ones are looked at for padding.
const LOOKED_AT_MAX: u32 = 64;

/// See the module's text.
#[derive(Default)]
pub(super) struct Replies {
    waiting: Vec<Returned>,
    /// So many of the next replies are looked at for padding.
    looks: u32,
    is_uncleared: bool,
}

impl Replies {
    /// Padding in the next replies is of interest.
    pub(super) fn look_for_padding(&mut self) {
        self.looks = LOOKED_AT_MAX;
    }

    /// Whether a reply was seen whose padding is not cleared, since the last time.
    pub(super) fn was_uncleared(&mut self) -> bool {
        core::mem::take(&mut self.is_uncleared)
    }

    /// The server has replied this to the request `giop`.
    pub(super) fn look(
        &mut self,
        (call, giop): (&Call, &Bytes),
        (reply, reply_summary): (&Bytes, ReplySummary),
        endian: Endian,
    ) {
        let body_offset = reply_summary.body_offset();
        if self.looks > 0 {
            self.looks -= 1;
            if padding::is_uncleared(reply, body_offset, endian) {
                (self.looks, self.is_uncleared) = (0, true);
            }
        }
        if !references::has_any(reply, body_offset, endian) {
            return;
        }
        if self.waiting.len() == WAITING_MAX {
            self.waiting.remove(0);
        }
        let (operation, _) = recent::names(giop);
        let request = match call {
            Call::Request(_, at) => Some(at.count),
            Call::Again(_) | Call::Read(_) => None,
        };
        let reply = reply.clone();
        self.waiting.push(Returned { operation, request, reply, body_offset, endian });
    }

    pub(super) fn take(&mut self) -> Vec<Returned> {
        core::mem::take(&mut self.waiting)
    }
}
