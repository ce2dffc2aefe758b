//! Datagrams on their way out, gathered so that one system call takes many.
//!
//! What it is not: a queue that outlives an event. Whoever puts datagrams in flushes before it
//! waits.
//!
//! Invariants: datagrams leave in the order in which they came, per receiver; all of a batch but
//! its last are of one size, as segmentation offload wants it; one datagram alone is not copied.

use bytes::BytesMut;
use quorba_order::Destination;

/// UDP takes no more at once, headers included.
const BATCH_BYTES_MAX: usize = 65_000;

/// Datagrams to the same receivers, the last one maybe to a single one of them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    to: Option<Destination>,
    /// The only datagram, while there is only one.
    single: BytesMut,
    /// All of them, one behind the other, as soon as there are more.
    batch: Vec<u8>,
    segment_bytes: usize,
    count: usize,
    /// The last is shorter than the others, or for one receiver: nothing may follow.
    closed: bool,
    tail: Option<Tail>,
}

/// The batch's last datagram, if only one node gets it.
#[derive(Clone, Copy, Debug)]
struct Tail {
    node: Destination,
    bytes: usize,
}

/// What one system call sends: datagrams of `segment_bytes` each, the last maybe shorter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Batch<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) segment_bytes: usize,
}

impl Outbox {
    /// Who gets it; `None` if it is empty.
    pub(crate) const fn to(&self) -> Option<Destination> {
        self.to
    }

    /// Whether `datagram` can join what is here; if not, flush first. At most `most` datagrams
    /// make a batch.
    pub(crate) fn takes(&self, to: Destination, datagram: &[u8], most: usize) -> bool {
        let Some(here) = self.to else { return true };
        let joins = here == to || here == Destination::Others;
        let bytes = self.count * self.segment_bytes + datagram.len();
        joins
            && !self.closed
            && datagram.len() <= self.segment_bytes
            && bytes <= BATCH_BYTES_MAX
            && self.count < most
    }

    /// Puts `datagram` behind the others; [`Self::takes`] has said yes.
    pub(crate) fn push(&mut self, to: Destination, datagram: BytesMut) {
        self.count += 1;
        let Some(here) = self.to else {
            self.to = Some(to);
            self.segment_bytes = datagram.len();
            self.single = datagram;
            return;
        };
        if self.count == 2 {
            self.batch.clear();
            self.batch.extend_from_slice(&self.single);
        }
        self.batch.extend_from_slice(&datagram);
        self.closed = datagram.len() < self.segment_bytes;
        if here != to {
            self.closed = true;
            self.tail = Some(Tail { node: to, bytes: datagram.len() });
        }
    }

    /// What everyone of [`Self::to`] gets.
    pub(crate) fn common(&self) -> Batch<'_> {
        let bytes = self.bytes();
        let own = self.tail.map_or(0, |tail| tail.bytes);
        Batch { bytes: &bytes[..bytes.len() - own], segment_bytes: self.segment_bytes }
    }

    /// What `node` gets, if everyone gets something.
    pub(crate) fn for_node(&self, node: Destination) -> Batch<'_> {
        match self.tail {
            Some(tail) if tail.node == node => {
                Batch { bytes: self.bytes(), segment_bytes: self.segment_bytes }
            }
            _ => self.common(),
        }
    }

    /// What only `node` gets, behind what everyone gets.
    pub(crate) fn only_for(&self, node: Destination) -> Option<Batch<'_>> {
        let tail = self.tail.filter(|tail| tail.node == node)?;
        let bytes = self.bytes();
        let own = &bytes[bytes.len() - tail.bytes..];
        Some(Batch { bytes: own, segment_bytes: own.len() })
    }

    fn bytes(&self) -> &[u8] {
        if self.count == 1 { &self.single } else { &self.batch }
    }

    /// It has been sent.
    pub(crate) fn clear(&mut self) {
        self.to = None;
        self.single = BytesMut::new();
        self.count = 0;
        self.closed = false;
        self.tail = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_base::NodeId;

    const MOST: usize = 64;

    fn node(index: u8) -> Destination {
        Destination::Node(NodeId::new(index).expect("in range"))
    }

    fn datagram(bytes: usize) -> BytesMut {
        BytesMut::from(&vec![bytes as u8; bytes][..])
    }

    fn put(outbox: &mut Outbox, to: Destination, bytes: usize) -> bool {
        let datagram = datagram(bytes);
        let takes = outbox.takes(to, &datagram, MOST);
        if takes {
            outbox.push(to, datagram);
        }
        takes
    }

    #[test]
    fn a_batch_is_of_one_size_but_for_its_last() {
        let mut outbox = Outbox::default();
        assert!(put(&mut outbox, Destination::Others, 100));
        assert!(!put(&mut outbox, Destination::Others, 101), "longer than the first");
        assert!(put(&mut outbox, Destination::Others, 100));
        assert!(put(&mut outbox, Destination::Others, 40));
        assert!(!put(&mut outbox, Destination::Others, 40), "behind the shorter one");
        let batch = outbox.for_node(node(1));
        assert_eq!((batch.bytes.len(), batch.segment_bytes), (240, 100));
    }

    #[test]
    fn the_token_travels_behind_the_data_to_its_receiver_only() {
        let mut outbox = Outbox::default();
        assert!(put(&mut outbox, Destination::Others, 100));
        assert!(put(&mut outbox, Destination::Others, 100));
        assert!(put(&mut outbox, node(2), 30));
        assert!(!put(&mut outbox, Destination::Others, 30));
        assert_eq!(outbox.for_node(node(1)).bytes.len(), 200);
        assert_eq!(outbox.for_node(node(2)).bytes.len(), 230);
        assert_eq!(&outbox.for_node(node(2)).bytes[200..], &datagram(30)[..]);
        assert_eq!(outbox.common().bytes.len(), 200);
        assert_eq!(outbox.only_for(node(2)).map(|own| own.bytes.len()), Some(30));
        assert_eq!(outbox.only_for(node(1)), None);
    }

    #[test]
    fn nobody_else_joins_what_one_node_gets() {
        let mut outbox = Outbox::default();
        assert!(put(&mut outbox, node(1), 100));
        assert!(put(&mut outbox, node(1), 100));
        assert!(!put(&mut outbox, node(2), 100));
        assert!(!put(&mut outbox, Destination::Others, 100));
        assert_eq!(outbox.to(), Some(node(1)));
        outbox.clear();
        assert_eq!(outbox.to(), None);
        assert!(put(&mut outbox, node(2), 100));
        assert_eq!(outbox.common().bytes, &datagram(100)[..]);
    }

    #[test]
    fn a_batch_is_bounded_in_bytes_and_datagrams() {
        let mut outbox = Outbox::default();
        let taken = (0..1000).take_while(|_| put(&mut outbox, Destination::Others, 1400)).count();
        assert_eq!(taken, BATCH_BYTES_MAX / 1400);
        outbox.clear();
        let taken = (0..1000).take_while(|_| put(&mut outbox, Destination::Others, 60)).count();
        assert_eq!(taken, MOST);
    }
}
