//! Messages on a link as they are on the wire: length, sealed message, tag.
//!
//! What it is not: anything that reads or sends.
//!
//! Invariants: a key seals one direction of one connection, and every frame has the next number, so
//! that no nonce is used twice and a frame that is changed, left out, repeated or moved does not
//! open; a length is compared with the limit before anything is made of it.

use bytes::{Bytes, BytesMut};
use ring::{aead, hmac};

/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Length of the sealed message, without itself and the tag.
pub(super) const HEAD_BYTES: usize = 4;
pub(super) const TAG_BYTES: usize = 16;
/// Far beyond what one connection can carry in a century, and far below the cipher's limit.
const FRAMES_MAX: u64 = 1 << 48;

/// Seals or opens the frames of one direction.
pub(super) struct FrameKey {
    // Half a kilobyte, and moved about while its link is being made.
    key: Box<aead::LessSafeKey>,
    /// The number of the next frame.
    next: u64,
}

/// A frame that is not the other side's next one.
#[derive(Debug)]
pub(super) struct NotTheNext;

impl FrameKey {
    /// `secret` is for this purpose only.
    pub(super) fn new(secret: &hmac::Tag) -> Self {
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, secret.as_ref());
        let key = aead::LessSafeKey::new(key.expect("the tag is as long as the key"));
        Self { key: Box::new(key), next: 0 }
    }

    fn nonce(&mut self) -> aead::Nonce {
        assert!(self.next < FRAMES_MAX, "a nonce is never used twice");
        let mut nonce = [0; aead::NONCE_LEN];
        nonce[4..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        aead::Nonce::assume_unique_for_key(nonce)
    }

    /// Appends the frame of `message` to `wire`; the only time that it is copied.
    ///
    /// # Panics
    /// If it is longer than [`MESSAGE_BYTES_MAX`].
    pub(super) fn seal(&mut self, message: &[u8], wire: &mut Vec<u8>) {
        assert!(message.len() <= MESSAGE_BYTES_MAX, "{} bytes are too many", message.len());
        let head = (message.len() as u32).to_be_bytes();
        wire.reserve(HEAD_BYTES + message.len() + TAG_BYTES);
        wire.extend_from_slice(&head);
        let start = wire.len();
        wire.extend_from_slice(message);
        let (nonce, aad) = (self.nonce(), aead::Aad::from(head));
        let tag = self.key.seal_in_place_separate_tag(nonce, aad, &mut wire[start..]);
        wire.extend_from_slice(tag.expect("far below the cipher's limit").as_ref());
    }

    /// Opens a frame in place; `body` is what follows the head.
    fn open<'a>(&mut self, head: Head, body: &'a mut [u8]) -> Result<&'a mut [u8], NotTheNext> {
        let (nonce, aad) = (self.nonce(), aead::Aad::from(head));
        self.key.open_in_place(nonce, aad, body).map_err(|_| NotTheNext)
    }
}

type Head = [u8; HEAD_BYTES];

/// Bytes behind a head, or none if no frame is so long.
fn body_bytes(head: Head) -> Result<usize, NotTheNext> {
    let message = u32::from_be_bytes(head) as usize;
    if message <= MESSAGE_BYTES_MAX { Ok(message + TAG_BYTES) } else { Err(NotTheNext) }
}

/// A frame whose end has not come.
#[derive(Default)]
enum Partial {
    #[default]
    Nothing,
    /// Less than a head.
    Head(Vec<u8>),
    /// `body` has its full length; what is behind `filled` has not come.
    Body { head: Head, body: BytesMut, filled: usize },
}

/// Makes messages of what comes in.
pub(super) struct Frames {
    key: FrameKey,
    partial: Partial,
}

impl Frames {
    pub(super) fn new(key: FrameKey) -> Self {
        Self { key, partial: Partial::Nothing }
    }

    /// Where the next bytes should be read to before any others; maybe nowhere.
    pub(super) fn rest(&mut self) -> &mut [u8] {
        match &mut self.partial {
            Partial::Body { body, filled, .. } => &mut body[*filled..],
            Partial::Nothing | Partial::Head(_) => &mut [],
        }
    }

    /// So many bytes have been read, into [`Self::rest`] first, the others into `more`.
    pub(super) fn take(
        &mut self,
        count: usize,
        more: &mut [u8],
        mut message: impl FnMut(Bytes),
    ) -> Result<(), NotTheNext> {
        let into_rest = count.min(self.rest().len());
        if let Partial::Body { head, body, filled } = &mut self.partial {
            *filled += into_rest;
            if *filled < body.len() {
                return Ok(());
            }
            let plain = self.key.open(*head, body)?.len();
            body.truncate(plain);
            message(std::mem::take(body).freeze());
            self.partial = Partial::Nothing;
        }
        self.split(&mut more[..count - into_rest], message)
    }

    fn split(
        &mut self,
        mut bytes: &mut [u8],
        mut message: impl FnMut(Bytes),
    ) -> Result<(), NotTheNext> {
        while !bytes.is_empty() {
            let mut known = match std::mem::take(&mut self.partial) {
                Partial::Head(known) => known,
                _ => Vec::new(),
            };
            let missing = (HEAD_BYTES - known.len()).min(bytes.len());
            let (begin, rest) = bytes.split_at_mut(missing);
            known.extend_from_slice(begin);
            bytes = rest;
            let Some(head) = known.first_chunk::<HEAD_BYTES>().copied() else {
                self.partial = Partial::Head(known);
                return Ok(());
            };
            let length = body_bytes(head)?;
            if length <= bytes.len() {
                let (body, rest) = bytes.split_at_mut(length);
                message(Bytes::copy_from_slice(self.key.open(head, body)?));
                bytes = rest;
            } else {
                let mut body = BytesMut::zeroed(length);
                body[..bytes.len()].copy_from_slice(bytes);
                self.partial = Partial::Body { head, body, filled: bytes.len() };
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: u8) -> FrameKey {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[of]);
        FrameKey::new(&hmac::sign(&key, b"a test"))
    }

    fn messages() -> Vec<Vec<u8>> {
        let lengths = [0, 1, 3, 100, 70_000, 5, MESSAGE_BYTES_MAX, 17];
        lengths.map(|length| (0..length).map(|at| (at * 7) as u8).collect()).into()
    }

    fn wire() -> Vec<u8> {
        let (mut sealer, mut wire) = (key(1), Vec::new());
        messages().iter().for_each(|message| sealer.seal(message, &mut wire));
        wire
    }

    /// What comes of `wire` if at most `most` bytes are read at once into the common room.
    fn read(wire: &[u8], most: usize, key: FrameKey) -> Result<Vec<Bytes>, NotTheNext> {
        let (mut frames, mut came, mut wire) = (Frames::new(key), Vec::new(), wire);
        while !wire.is_empty() {
            let mut room = vec![0; most];
            let rest = frames.rest();
            let into_rest = rest.len().min(wire.len()).min(most);
            rest[..into_rest].copy_from_slice(&wire[..into_rest]);
            let is_full = into_rest == rest.len();
            wire = &wire[into_rest..];
            let more = if is_full { room.len().min(wire.len()) } else { 0 };
            room[..more].copy_from_slice(&wire[..more]);
            wire = &wire[more..];
            frames.take(into_rest + more, &mut room, |message| came.push(message))?;
        }
        Ok(came)
    }

    #[test]
    fn messages_come_as_they_were_sent_in_whatever_pieces() {
        for most in [1, 2, 3, 19, 20, 21, 1_000, 65_536, 1 << 20] {
            let came = read(&wire(), most, key(1)).expect("it is whole");
            assert_eq!(came, messages(), "{most} at once");
        }
    }

    #[test]
    fn what_is_changed_repeated_left_out_or_of_another_key_does_not_open() {
        let (mut sealer, mut first, mut second) = (key(1), Vec::new(), Vec::new());
        sealer.seal(b"first", &mut first);
        sealer.seal(b"second", &mut second);
        let right = [first.as_slice(), &second].concat();
        assert!(read(&right, 1_000, key(1)).is_ok());
        assert!(read(&right, 1_000, key(2)).is_err());
        assert!(read(&second, 1_000, key(1)).is_err());
        assert!(read(&[first.as_slice(), &first].concat(), 1_000, key(1)).is_err());
        for bit in 0..first.len() * 8 {
            let mut bent = right.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            // A frame that has become longer may wait for the rest of it.
            let came = read(&bent, 1_000, key(1)).map_or(0, |came| came.len());
            assert_eq!(came, 0, "bit {bit}");
        }
    }

    #[test]
    fn a_length_that_no_frame_has_is_refused_before_memory_is_taken() {
        for head in [MESSAGE_BYTES_MAX as u32 + 1, u32::MAX] {
            assert!(read(&head.to_be_bytes(), 10, key(1)).is_err());
        }
    }
}
