//! Replies of the server in which references seem to stand, for whoever knows what they should say.
//!
//! What it is not: a judgement. Invariants: a reply without one costs one look at its beginning and
//! nothing else; what nobody takes is forgotten but for the newest few.

use crate::gist::Gist;
use crate::recent::{self, Short};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::{Endian, references};

/// So many wait to be taken.
const WAITING_MAX: usize = 16;

/// A reply with something in it that looks like a reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned {
    /// What was asked for.
    pub operation: Short,
    /// The whole GIOP message.
    pub reply: Bytes,
    /// Where its results begin.
    pub body_offset: usize,
    /// Their byte order.
    pub endian: Endian,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Replies(Vec<Returned>);

impl Replies {
    /// The server has replied this to the request `giop`.
    pub(super) fn look(&mut self, giop: &Bytes, (reply, gist): (&Bytes, Gist), endian: Endian) {
        let body_offset = gist.body_offset();
        if !references::has_any(reply, body_offset, endian) {
            return;
        }
        if self.0.len() == WAITING_MAX {
            self.0.remove(0);
        }
        let (operation, _) = recent::names(giop);
        self.0.push(Returned { operation, reply: reply.clone(), body_offset, endian });
    }

    pub(super) fn take(&mut self) -> Vec<Returned> {
        core::mem::take(&mut self.0)
    }
}
