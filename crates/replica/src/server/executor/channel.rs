//! One connection to a member's server: what was negotiated on it, and what waits for it to open.
//!
//! What it is not: it does not know what is outstanding. Invariant: a server gets each request
//! under a request id of ours, and is asked for a reply even if the client wants none.

use super::pieces::{Cut, Pieces};
use crate::output::ServerCommand;
use crate::words::ids::ChannelId;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_giop::{Body, Framer, FramerLimits, Message, ResponseFlags, Rewrite, renumbered};

/// CodeSets service context (GIOP §13.10.2.6).
const CODE_SETS: u32 = 1;
/// Where the response flags of a request of GIOP 1.2 stand.
const RESPONSE_FLAGS_AT: usize = 16;

/// See the module's text.
pub(super) struct Channel {
    pub(super) id: ChannelId,
    pub(super) code_sets: Option<Bytes>,
    pub(super) framer: Framer,
    /// The object key of clients, and what this server has in its place.
    own_key: Option<(Bytes, Bytes)>,
    open: bool,
    /// A message with the CodeSets context was sent on it.
    negotiated: bool,
    /// Wait for the connection, in order.
    waiting: Vec<Cut>,
}

impl Channel {
    /// A connection that has been asked for.
    pub(super) fn new(
        id: ChannelId,
        code_sets: Option<Bytes>,
        message_bytes_max: usize,
        own_key: Option<(Bytes, Bytes)>,
    ) -> Self {
        let framer = Framer::new(FramerLimits {
            message_bytes_max,
            fragmented_requests_max: super::CALLS_MAX,
            buffered_bytes_max: message_bytes_max + message_bytes_max / 4,
        });
        let (open, negotiated, waiting) = (false, false, Vec::new());
        Self { id, code_sets, framer, own_key, open, negotiated, waiting }
    }

    /// Whether what is sent on it leaves.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether no request was sent on it, so that it can still have any code sets
    /// (CORBA §9.11.3).
    pub(super) const fn is_unused(&self) -> bool {
        !self.negotiated
    }

    /// The connection is there.
    pub(super) fn opened(&mut self, out: &mut Vec<ServerCommand>) {
        self.open = true;
        out.extend(self.waiting.drain(..).map(|message| message.send_on(self.id)));
    }

    /// Sends a message, now or when the connection is there: in fragments if it is large.
    pub(super) fn send(&mut self, message: Pieces, out: &mut Vec<ServerCommand>) {
        let message = Cut::of(message);
        if self.open {
            out.push(message.send_on(self.id));
        } else {
            self.waiting.push(message);
        }
    }

    /// The request as this channel's server gets it: under our request id, with a reply even if
    /// the client wants none, and with the code sets that its connection negotiated. Says whether
    /// the client wants none.
    pub(super) fn prepare(&mut self, giop: &Bytes, request_id: u32) -> (Bytes, bool) {
        if self.negotiated || self.code_sets.is_none() {
            self.negotiated = true;
            if self.own_key.is_none()
                && let Some(prepared) = reissued(giop, request_id)
            {
                return prepared;
            }
        }
        let message = Message::from_bytes(giop.clone()).expect("the gateway parsed it");
        let Ok(Body::Request(request)) = message.parse() else {
            unreachable!("the gateway submits requests only");
        };
        let oneway = !request.response_expected();
        let introduce = !self.negotiated
            && self.code_sets.is_some()
            && request.contexts().all(|(id, _)| id != CODE_SETS);
        self.negotiated = true;
        let context = self.code_sets.as_ref().map(|data| (CODE_SETS, data.as_ref()));
        let add: &[(u32, &[u8])] = match &context {
            Some(context) if introduce => core::slice::from_ref(context),
            _ => &[],
        };
        let named = request.target().object_key();
        let own_key = self.own_key.as_ref().filter(|(key, _)| named == Some(key));
        let own_key = own_key.map(|(_, own)| own.as_ref());
        let rewritten = request.rewrite(&Rewrite {
            request_id: Some(request_id),
            // Always: a reply before the execution, or none, would let the next call overtake it.
            response_flags: Some(ResponseFlags::WithTarget),
            object_key: own_key,
            drop_contexts: &[],
            add_contexts: add,
        });
        (rewritten.into_bytes(), oneway)
    }
}

/// What [`Channel::prepare`] makes of a request of GIOP 1.2 to which nothing is added: id and flags
/// stand at fixed places there (GIOP §15.4.2), so it is copied unread. `None` for older ones.
fn reissued(giop: &Bytes, request_id: u32) -> Option<(Bytes, bool)> {
    let mut copy = renumbered(giop, request_id)?;
    let flags = copy.get_mut(RESPONSE_FLAGS_AT)?;
    let oneway = *flags & 1 == 0;
    *flags = ResponseFlags::WithTarget.octet();
    Some((copy.freeze(), oneway))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use quorba_giop::build::{self, RequestHead};
    use quorba_giop::{Endian, Version};

    #[test]
    fn a_request_that_is_not_read_is_changed_like_one_that_is() {
        use ResponseFlags::{None as Oneway, Other, Received, WithTarget};
        for endian in [Endian::Little, Endian::Big] {
            for response_flags in [Oneway, Received, WithTarget, Other(2), Other(0x81)] {
                let head = |version| RequestHead {
                    version,
                    endian,
                    request_id: 7,
                    response_flags,
                    object_key: b"key",
                    operation: b"echo",
                    contexts: &[(5, b"context")],
                };
                let octets = vec![9; 1000];
                let request = |version| {
                    build::request(&head(version), |cdr| cdr.write_octets(&octets)).into_bytes()
                };
                let giop = request(Version::V1_2);
                let message = Message::from_bytes(giop.clone()).expect("well-formed");
                let Ok(Body::Request(read)) = message.parse() else { panic!("a request") };
                let rewritten = read.rewrite(&Rewrite {
                    request_id: Some(0x0102_0304),
                    response_flags: Some(WithTarget),
                    ..Rewrite::default()
                });
                let expected = (rewritten.into_bytes(), !read.response_expected());
                assert_eq!(reissued(&giop, 0x0102_0304), Some(expected));
                assert_eq!(reissued(&request(Version::V1_1), 1), None);
            }
        }
    }

    fn sent(version: Version, body_bytes: usize, open_first: bool) -> Vec<ServerCommand> {
        let head = RequestHead {
            version,
            endian: Endian::Big,
            request_id: 7,
            response_flags: ResponseFlags::None,
            object_key: b"key",
            operation: b"store",
            contexts: &[],
        };
        let giop = build::request(&head, |cdr| cdr.write_raw(&vec![9; body_bytes])).into_bytes();
        let mut channel = Channel::new(ChannelId(1), None, 1 << 20, None);
        let mut out = Vec::new();
        if open_first {
            channel.opened(&mut out);
        }
        let (bytes, oneway) = channel.prepare(&giop, 3);
        assert!(oneway);
        channel.send((bytes, None), &mut out);
        if !open_first {
            assert!(out.is_empty());
            channel.opened(&mut out);
        }
        out
    }

    #[test]
    fn a_large_request_goes_to_the_server_in_fragments() {
        for open_first in [true, false] {
            let out = sent(Version::V1_2, 300 << 10, open_first);
            let [ServerCommand::SendAll(ChannelId(1), pieces)] = &out[..] else {
                panic!("one command: {}", out.len());
            };
            let more = |piece: &Bytes| piece.starts_with(b"GIOP") && piece[6] & 2 != 0;
            assert_eq!(pieces.iter().filter(|piece| more(piece)).count(), 2);
            let mut framer = Channel::new(ChannelId(2), None, 1 << 20, None).framer;
            pieces.iter().for_each(|piece| framer.push(piece));
            let message = framer.next().expect("well-formed").expect("whole");
            let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
            assert_eq!((request.request_id(), request.body().len()), (3, 300 << 10));
            assert!(request.response_expected());
            assert!(matches!(
                &sent(Version::V1_2, 100 << 10, open_first)[..],
                [ServerCommand::Send(..)]
            ));
        }
    }

    #[test]
    fn a_request_of_an_older_giop_stays_whole() {
        let [ServerCommand::SendAll(_, pieces)] = &sent(Version::V1_1, 300 << 10, true)[..] else {
            panic!("one command");
        };
        assert_eq!(pieces.len(), 1);
        assert!(Message::from_bytes(pieces[0].clone()).is_ok());
    }
}
