//! Messages that span packets, put together again.
//!
//! Invariants: one unfinished message per origin; its buffer grows with what has arrived, not
//! with what a header announces, and never beyond the announced length.

use crate::ids::Ticket;
use crate::wire::Chunk;
use alloc::collections::BTreeMap;
use bytes::{Bytes, BytesMut};
use quorba_base::NodeId;

#[derive(Debug)]
struct Partial {
    ticket: Ticket,
    message_bytes: usize,
    bytes: BytesMut,
}

/// The unfinished messages of all origins in one ring.
#[derive(Debug, Default)]
pub(crate) struct Partials {
    by_origin: BTreeMap<NodeId, Partial>,
    /// Chunks that did not fit to what came before. Always 0 unless a sender is broken.
    misfits: u64,
}

impl Partials {
    /// Takes the next chunk of `origin`, out of `body`; gives the message that it completes.
    pub(crate) fn take(&mut self, origin: NodeId, chunk: Chunk, body: &Bytes) -> Option<Bytes> {
        let Chunk { ticket, first, last, message_bytes, range } = chunk;
        if first && last && self.by_origin.is_empty() {
            return Some(body.slice(range));
        }
        let bytes = &body[range.clone()];
        if first {
            self.by_origin.remove(&origin);
            if last {
                return Some(body.slice(range));
            }
            let bytes = BytesMut::from(bytes);
            self.by_origin.insert(origin, Partial { ticket, message_bytes, bytes });
            return None;
        }
        let Some(partial) = self.by_origin.get_mut(&origin) else {
            self.misfits += 1;
            return None;
        };
        let total = partial.bytes.len() + bytes.len();
        let fits =
            if last { total == partial.message_bytes } else { total < partial.message_bytes };
        if partial.ticket != ticket || !fits {
            self.misfits += 1;
            self.by_origin.remove(&origin);
            return None;
        }
        partial.bytes.extend_from_slice(bytes);
        if !last {
            return None;
        }
        self.by_origin.remove(&origin).map(|partial| partial.bytes.freeze())
    }

    /// Bytes kept, for the snapshot.
    pub(crate) fn bytes(&self) -> usize {
        self.by_origin.values().map(|partial| partial.bytes.len()).sum()
    }

    pub(crate) const fn misfits(&self) -> u64 {
        self.misfits
    }
}
