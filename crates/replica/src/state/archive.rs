//! All requests that a group has executed, for servers that have no state to give: who joins
//! executes them again.
//!
//! What it is not: a log. It lives in memory, is as long as the group is old, and ends when it
//! would be longer than it may: from then on it knows nothing.
//! Invariant: it has every request that its server has seen, in their order, or none.

use crate::table::moment::Moment;
use crate::words::ids::{RequestKey, put_key, take_key};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;

/// What is counted for a request besides its bytes.
const ENTRY_BYTES: usize = 96;

/// A request that was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Archived {
    /// Which request of the group it is.
    number: u64,
    pub(crate) key: RequestKey,
    pub(crate) moment: Moment,
    pub(crate) giop: Bytes,
    pub(crate) code_sets: Option<Bytes>,
}

/// See the module's text.
pub(crate) struct Archive {
    requests: Option<Vec<Archived>>,
    bytes: usize,
    bytes_max: usize,
    /// Requests that the group was delivered, with those that were not executed.
    index: u64,
}

impl Archive {
    /// That of a fresh server.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { requests: Some(Vec::new()), bytes: 0, bytes_max, index: 0 }
    }

    /// The server is a fresh one.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    /// The server has, or is about to have, seen everything up to the request with this number.
    /// What is known is worth nothing unless it ends there.
    pub(crate) fn goes_on_at(&mut self, index: u64) {
        if self.index != index {
            self.requests = None;
            self.index = index;
        }
    }

    /// The request with this number was delivered.
    pub(crate) fn delivered(&mut self, index: u64) {
        self.index = index;
    }

    /// And it was new.
    pub(crate) fn add(
        &mut self,
        key: &RequestKey,
        moment: Moment,
        giop: &Bytes,
        code_sets: Option<&Bytes>,
    ) {
        let Some(requests) = &mut self.requests else { return };
        self.bytes += giop.len() + code_sets.map_or(0, Bytes::len) + ENTRY_BYTES;
        if self.bytes > self.bytes_max {
            self.requests = None;
            return;
        }
        let (key, giop, code_sets) = (key.clone(), giop.clone(), code_sets.cloned());
        requests.push(Archived { number: self.index, key, moment, giop, code_sets });
    }

    /// The request with this number was given up: nobody executes it any more (seed 9600301 of the
    /// simulator's `styles`).
    pub(crate) fn leave_out(&mut self, number: u64) {
        let Some(requests) = &mut self.requests else { return };
        requests.retain(|request| request.number != number);
    }

    /// All of them, for a member that joins; `None`: they are not known any more.
    pub(crate) fn encode(&self) -> Option<Bytes> {
        let requests = self.requests.as_ref()?;
        let mut writer = Writer::with_capacity(self.bytes + 8);
        writer.u32(requests.len() as u32);
        for Archived { number, key, moment, giop, code_sets } in requests {
            writer.u64(*number);
            put_key(&mut writer, key, 0);
            moment.encode(&mut writer);
            writer.bytes(giop);
            writer.u8(u8::from(code_sets.is_some()));
            writer.bytes(code_sets.as_deref().unwrap_or_default());
        }
        Some(writer.finish())
    }

    /// Those of another member, up to the request with this number.
    pub(crate) fn decode(&self, bytes: Bytes, index: u64) -> Result<Self, InvalidEnvelope> {
        let mut archive = Self::new(self.bytes_max);
        let mut reader = Reader::new(bytes);
        for _ in 0..reader.count(46, "request count")? {
            let number = reader.u64("request number")?;
            let (key, _) = take_key(&mut reader)?;
            let moment = Moment::decode(&mut reader)?;
            let giop = reader.bytes("request")?;
            let some = reader.bool("code sets flag")?;
            let code_sets = Some(reader.bytes("code sets")?).filter(|_| some);
            archive.index = number;
            archive.add(&key, moment, &giop, code_sets.as_ref());
        }
        reader.end()?;
        archive.index = index;
        Ok(archive)
    }

    /// What is known, in order.
    pub(crate) fn requests(&self) -> Option<&[Archived]> {
        self.requests.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(archive: &mut Archive, number: i32, giop: &'static [u8]) {
        let client_id = Bytes::from_static(b"c");
        let key = RequestKey::Client {
            client_id,
            retention_id: number,
            binding: crate::Binding::default(),
        };
        archive.delivered(number as u64);
        archive.add(&key, Moment::default(), &Bytes::from_static(giop), None);
    }

    #[test]
    fn what_is_given_is_what_was_executed() {
        let mut archive = Archive::new(1_000);
        add(&mut archive, 1, b"one");
        add(&mut archive, 2, b"two");
        let copy = archive.decode(archive.encode().unwrap(), 2).unwrap();
        assert_eq!(copy.requests(), archive.requests());
        assert_eq!(copy.requests().unwrap()[1].giop, b"two"[..]);
        assert!(archive.decode(Bytes::from_static(b"\0\0\0\x09xyz"), 2).is_err());
    }

    #[test]
    fn what_was_given_up_is_given_to_nobody() {
        let mut archive = Archive::new(1_000);
        add(&mut archive, 1, b"one");
        add(&mut archive, 2, b"two");
        let mut copy = archive.decode(archive.encode().unwrap(), 2).unwrap();
        copy.leave_out(1);
        assert_eq!(copy.requests(), Some(&archive.requests().unwrap()[1..]));
    }

    #[test]
    fn what_would_be_too_long_is_known_no_more() {
        let mut archive = Archive::new(2 * (ENTRY_BYTES + 3));
        add(&mut archive, 1, b"one");
        add(&mut archive, 2, b"two");
        assert!(archive.encode().is_some());
        add(&mut archive, 3, b"3");
        assert!(archive.encode().is_none());
        archive.begin_anew();
        assert_eq!(archive.requests(), Some(&[][..]));
    }

    #[test]
    fn a_server_that_kept_all_goes_on_and_one_that_missed_something_does_not() {
        let mut archive = Archive::new(1_000);
        add(&mut archive, 1, b"one");
        archive.goes_on_at(1);
        assert_eq!(archive.requests().map(<[_]>::len), Some(1));
        archive.goes_on_at(5);
        assert_eq!(archive.requests(), None);
    }
}
