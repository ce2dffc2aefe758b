//! What a server is sent at a time of one message.
//!
//! There are ORBs that take no message above some size (Eclipse's ORB: 256,000 octets, above which
//! it drops a request unanswered), but any number of fragments. What only GIOP 1.2 has goes only
//! to those who speak it: in older versions a message stays whole.
//!
//! Invariant: nothing of a message is copied for this, however long it is.

use crate::ids::ChannelId;
use crate::output::ServerCommand;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::fragment_uncopied;

/// Messages larger than this go out in fragments of this size (GIOP §15.4.9).
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// A message, and maybe what stands behind its beginning, uncopied.
pub(super) type Pieces = (Bytes, Option<Bytes>);

/// The message as it goes to a server.
pub(super) enum Compaction {
    /// As nearly all do.
    Whole(Bytes),
    /// To be sent in this order. They are one command, for a thing of a gigabyte has thousands.
    Fragments(Vec<Bytes>),
}

impl Compaction {
    pub(super) fn of((begin, rest): Pieces) -> Self {
        if rest.is_none() && begin.len() <= PIECE_BYTES {
            return Self::Whole(begin);
        }
        Self::Fragments(fragment_uncopied(begin, rest, PIECE_BYTES))
    }

    pub(super) fn send_on(self, channel: ChannelId) -> ServerCommand {
        match self {
            Self::Whole(bytes) => ServerCommand::Send(channel, bytes),
            Self::Fragments(pieces) => ServerCommand::SendAll(channel, pieces),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint;
    use alloc::vec;
    use quorba_giop::{Framer, FramerLimits};

    #[test]
    fn a_state_comes_to_the_server_as_it_is_in_pieces_that_it_takes() {
        for length in [PIECE_BYTES, 2 * PIECE_BYTES, 5 << 20] {
            let state: Bytes = (0..length).map(|at| (at * 7) as u8).collect::<Vec<u8>>().into();
            let message = checkpoint::set(3, b"state", false, &state);
            let total = message.0.len() + message.1.as_ref().map_or(0, Bytes::len);
            let mut framer = Framer::new(FramerLimits {
                message_bytes_max: total,
                fragmented_requests_max: 1,
                buffered_bytes_max: total + (total >> 2),
            });
            let Compaction::Fragments(pieces) = Compaction::of(message.clone()) else {
                panic!("it is large")
            };
            for piece in &pieces {
                assert!(piece.len() <= PIECE_BYTES);
                framer.push(piece);
            }
            let came = framer.next().expect("well-formed").expect("whole");
            let whole = [message.0, message.1.unwrap_or_default()].concat();
            assert!(came.bytes() == &whole[..], "{length}");
        }
    }

    #[test]
    fn a_small_message_stays_what_it_is() {
        let bytes = Bytes::from(vec![1; PIECE_BYTES]);
        let at = bytes.as_ptr();
        assert!(
            matches!(Compaction::of((bytes, None)), Compaction::Whole(of) if of.as_ptr() == at)
        );
    }
}
