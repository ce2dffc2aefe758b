//! The messages that nodes exchange in their CPG group.
//!
//! Integers are big-endian. Invariant: what does not parse is `None`; no count is believed before
//! the bytes are there.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorba_base::NodeId;
use quorba_order::{RingId, Ticket};

/// The version of this format; another one is another protocol.
const VERSION: u8 = 1;
const HELLO: u8 = 0;
const PAYLOAD: u8 = 1;
const ACK: u8 = 2;
/// Stands for no ring.
const NOBODY: u8 = u8::MAX;

/// Who a process is, said after every change of the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
    /// Of the domain file.
    pub(crate) digest: u64,
    /// Higher than in any earlier hello of this node, in earlier boots too.
    pub(crate) seq: u64,
    /// The view that the node comes from.
    pub(crate) previous: Option<RingId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Hello(Hello),
    Payload {
        ticket: Ticket,
        payload: Bytes,
    },
    /// In the view `ring` its sender has received the messages of each node up to its ticket.
    Ack {
        ring: RingId,
        received: Vec<(NodeId, Ticket)>,
    },
}

impl Message {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Hello(hello) => {
                out.put_slice(&[HELLO, VERSION, hello.node.index()]);
                out.put_u64(hello.incarnation);
                out.put_u64(hello.digest);
                out.put_u64(hello.seq);
                put_ring(&mut out, hello.previous);
            }
            Self::Payload { ticket, payload } => {
                out.reserve(9 + payload.len());
                out.put_u8(PAYLOAD);
                out.put_u64(ticket.0);
                out.put_slice(payload);
            }
            Self::Ack { ring, received } => {
                out.put_u8(ACK);
                put_ring(&mut out, Some(*ring));
                for (node, ticket) in received {
                    out.put_u8(node.index());
                    out.put_u64(ticket.0);
                }
            }
        }
        out.freeze()
    }

    pub(crate) fn parse(mut from: Bytes) -> Option<Self> {
        match from.try_get_u8().ok()? {
            HELLO => parse_hello(from).map(Self::Hello),
            PAYLOAD => {
                let ticket = Ticket(from.try_get_u64().ok()?);
                Some(Self::Payload { ticket, payload: from })
            }
            ACK => {
                let ring = take_ring(&mut from)??;
                let mut received = Vec::new();
                while from.has_remaining() {
                    let node = NodeId::new(from.try_get_u8().ok()?)?;
                    received.push((node, Ticket(from.try_get_u64().ok()?)));
                }
                Some(Self::Ack { ring, received })
            }
            _ => None,
        }
    }
}

fn parse_hello(mut from: Bytes) -> Option<Hello> {
    if from.try_get_u8().ok()? != VERSION {
        return None;
    }
    let node = NodeId::new(from.try_get_u8().ok()?)?;
    let incarnation = from.try_get_u64().ok()?;
    let digest = from.try_get_u64().ok()?;
    let seq = from.try_get_u64().ok()?;
    let previous = take_ring(&mut from)?;
    (!from.has_remaining()).then_some(Hello { node, incarnation, digest, seq, previous })
}

fn put_ring(out: &mut BytesMut, ring: Option<RingId>) {
    out.put_u64(ring.map_or(0, |ring| ring.seq));
    out.put_u8(ring.map_or(NOBODY, |ring| ring.representative.index()));
}

fn take_ring(from: &mut Bytes) -> Option<Option<RingId>> {
    let seq = from.try_get_u64().ok()?;
    match from.try_get_u8().ok()? {
        NOBODY => Some(None),
        node => Some(Some(RingId { seq, representative: NodeId::new(node)? })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("a small number")
    }

    fn messages() -> Vec<Message> {
        let ring = RingId { seq: 7, representative: node(2) };
        let hello =
            Hello { node: node(1), incarnation: 5, digest: 9, seq: 8, previous: Some(ring) };
        vec![
            Message::Hello(hello),
            Message::Hello(Hello { previous: None, ..hello }),
            Message::Payload { ticket: Ticket(3), payload: Bytes::from_static(b"abc") },
            Message::Ack { ring, received: vec![(node(0), Ticket(4)), (node(2), Ticket(1))] },
        ]
    }

    #[test]
    fn messages_survive_the_wire() {
        for message in messages() {
            assert_eq!(Message::parse(message.encode()), Some(message));
        }
    }

    #[test]
    fn what_is_cut_off_or_strange_is_no_message() {
        for message in messages() {
            let whole = message.encode();
            let header = if matches!(message, Message::Payload { .. }) { 9 } else { whole.len() };
            for length in 0..header {
                let cut = Message::parse(whole.slice(..length));
                // An acknowledgement of fewer nodes is one, too.
                let is_fewer = matches!(cut, Some(Message::Ack { .. }));
                assert!(cut.is_none() || is_fewer, "{message:?} at {length}");
            }
        }
        assert_eq!(Message::parse(Bytes::from_static(&[9, 9])), None);
        assert_eq!(Message::parse(Bytes::from_static(&[HELLO, VERSION + 1])), None);
        assert_eq!(Message::parse(Bytes::from_static(&[HELLO, VERSION, 200])), None);
    }
}
