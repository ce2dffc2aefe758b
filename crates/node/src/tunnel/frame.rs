//! What two nodes say of a tunnel to each other, as messages over their link.
//!
//! Invariant: no message of the replica begins with [`FIRST_OCTET`].

use bytes::{BufMut, Bytes, BytesMut};

/// What distinguishes these messages from those of the replica, whose kinds are small numbers.
pub(crate) const FIRST_OCTET: u8 = 0xA0;
/// Octets of a tunnel that one message carries at the most.
pub(super) const DATA_BYTES_MAX: usize = 16 << 10;

const OPEN: u8 = 1;
const DATA: u8 = 2;
const CREDIT: u8 = 3;
const END: u8 = 4;
const RESET: u8 = 5;
const HEADER_BYTES: usize = 11;

/// A message: of which tunnel, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The sender has opened the tunnel, not the receiver.
    pub(super) is_senders: bool,
    /// Its number among those that the same node has opened.
    pub(super) number: u64,
    pub(super) what: What,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// There is a new tunnel.
    Open,
    /// The next octets.
    Data(Bytes),
    /// So many octets were taken, and as many more may come.
    Credit(u32),
    /// The sender says nothing more.
    End,
    /// The tunnel is gone, with all that was on its way.
    Reset,
}

impl Frame {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER_BYTES);
        out.put_u8(FIRST_OCTET);
        let (kind, data) = match &self.what {
            What::Open => (OPEN, Bytes::new()),
            What::Data(data) => (DATA, data.clone()),
            What::Credit(octets) => (CREDIT, Bytes::copy_from_slice(&octets.to_be_bytes())),
            What::End => (END, Bytes::new()),
            What::Reset => (RESET, Bytes::new()),
        };
        out.put_u8(kind);
        out.put_u8(u8::from(self.is_senders));
        out.put_u64(self.number);
        out.put(data);
        out.freeze()
    }

    /// `None` if that is no such message.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        if bytes.len() < HEADER_BYTES || bytes[0] != FIRST_OCTET || bytes[2] > 1 {
            return None;
        }
        let header = bytes.split_to(HEADER_BYTES);
        let number = u64::from_be_bytes(header[3..].try_into().ok()?);
        let what = match header[1] {
            OPEN if bytes.is_empty() => What::Open,
            DATA if !bytes.is_empty() && bytes.len() <= DATA_BYTES_MAX => What::Data(bytes),
            CREDIT => What::Credit(u32::from_be_bytes(bytes[..].try_into().ok()?)),
            END if bytes.is_empty() => What::End,
            RESET if bytes.is_empty() => What::Reset,
            _ => return None,
        };
        Some(Self { is_senders: header[2] == 1, number, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_as_it_was_written_and_nothing_else_is_read() {
        let data = Bytes::from_static(b"GET / HTTP/1.1");
        for what in [What::Open, What::Data(data), What::Credit(70_000), What::End, What::Reset] {
            let frame = Frame { is_senders: true, number: 7 << 40, what };
            let bytes = frame.encode();
            assert_eq!(Frame::decode(bytes.clone()), Some(frame.clone()));
            for length in 0..HEADER_BYTES {
                assert_eq!(Frame::decode(bytes.slice(..length)), None);
            }
            let mut longer = bytes.to_vec();
            longer.push(0);
            let longer = Frame::decode(longer.into());
            assert_eq!(longer.is_some(), matches!(frame.what, What::Data(_)), "{frame:?}");
        }
        let data = Bytes::from(vec![0; DATA_BYTES_MAX + 1]);
        let frame = Frame { is_senders: false, number: 1, what: What::Data(data) };
        assert_eq!(Frame::decode(frame.encode()), None);
    }
}
