//! State on its way from a donor to a member that joins, in pieces through the order.
//!
//! What travels: the retention table at the capture point, then the server's state as
//! `get_state` gave it. Invariant: a donor has at most [`PIECES_IN_FLIGHT`] pieces in the order at
//! once, so that a transfer never crowds out requests.

use crate::ids::Attempt;
use crate::retention::{Frozen, Retention};
use crate::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::NodeId;

/// Bytes of one piece.
pub(crate) const PIECE_BYTES: usize = 32 * 1024;
/// Pieces that may be on their way at once.
pub(crate) const PIECES_IN_FLIGHT: usize = 8;
/// The largest transfer that is taken: more than any state that fits a GIOP message.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 1 << 30;

/// Joins a retention table, as it was at the join, and the state.
pub(crate) fn pack(retention: &Retention, frozen: &Frozen, state: &[u8]) -> Bytes {
    let mut writer = Writer::default();
    retention.encode(frozen, &mut writer);
    writer.rest(state);
    writer.finish()
}

/// Takes them apart again.
pub(crate) fn unpack(bytes: Bytes) -> Result<(Retention, Bytes), InvalidEnvelope> {
    let mut reader = Reader::new(bytes);
    let retention = Retention::decode(&mut reader)?;
    Ok((retention, reader.rest()))
}

/// One piece of a transfer, as it was delivered.
pub(crate) struct Piece {
    pub(crate) joiner: NodeId,
    pub(crate) attempt: Attempt,
    pub(crate) offset: u64,
    pub(crate) total: u64,
    pub(crate) bytes: Bytes,
}

/// A transfer that this member gives.
pub(crate) struct Outgoing {
    bytes: Bytes,
    next: usize,
    started: bool,
}

impl Outgoing {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, next: 0, started: false }
    }

    pub(crate) fn total(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The next piece and where it begins; an empty transfer is one empty piece.
    pub(crate) fn next_piece(&mut self) -> Option<(u64, Bytes)> {
        if self.started && self.next >= self.bytes.len() {
            return None;
        }
        self.started = true;
        let start = self.next;
        let end = (start + PIECE_BYTES).min(self.bytes.len());
        self.next = end;
        Some((start as u64, self.bytes.slice(start..end)))
    }
}

/// A transfer that this member takes.
#[derive(Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Adds a piece; `Some` with everything when it was the last one. Pieces of one donor come in
    /// order, so one that does not fit belongs to an earlier try and is left out.
    pub(crate) fn add(&mut self, offset: u64, total: u64, piece: &[u8]) -> Option<Bytes> {
        if offset != self.bytes.len() as u64 || total > TRANSFER_BYTES_MAX {
            return None;
        }
        self.bytes.extend_from_slice(piece);
        (self.bytes.len() as u64 == total).then(|| Bytes::from(core::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn pieces_add_up_to_the_whole() {
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let state: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let retention = Retention::default();
            let whole = pack(&retention, &retention.freeze(), &state);
            let mut outgoing = Outgoing::new(whole.clone());
            let mut incoming = Incoming::default();
            let mut result = None;
            while let Some((offset, piece)) = outgoing.next_piece() {
                assert!(result.is_none());
                result = incoming.add(offset, outgoing.total(), &piece);
            }
            let (retention, copy) = unpack(result.expect("complete")).unwrap();
            assert_eq!(retention.len(), 0);
            assert_eq!(copy, state);
        }
    }

    #[test]
    fn a_piece_of_another_try_changes_nothing() {
        let mut incoming = Incoming::default();
        assert!(incoming.add(5, 10, &[1]).is_none());
        assert_eq!(incoming.add(0, 2, &[1, 2]), Some(Bytes::from(vec![1, 2])));
    }
}
