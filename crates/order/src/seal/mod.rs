//! Authenticated encryption of datagrams, and which boots of which nodes are believed.
//!
//! What it is not: a parser of what is inside. Nothing behind the header is looked at before the
//! tag has been verified.
//!
//! Invariants: a (key, nonce) pair is used once: the key belongs to one boot of one node and one
//! domain key, the nonce is that boot's packet counter, which only grows, whatever the domain key.
//! Lengths are checked before any
//! cryptography. A boot is believed ("proven") only when it has echoed my own fresh salt, so that
//! recordings of earlier boots prove nothing. At most one proven and one candidate boot are kept
//! per node.
//!
//! Header, 36 bytes, big-endian, authenticated but not encrypted:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 2 | `QR` |
//! | 2 | 1 | version, 2 |
//! | 3 | 1 | protection: 0 none, 1 AES-256-GCM |
//! | 4 | 1 | sender node |
//! | 5 | 3 | id of the domain key; zero if nothing is protected |
//! | 8 | 8 | incarnation of the sender |
//! | 16 | 8 | packet counter of that incarnation, from 1 |
//! | 24 | 12 | first 12 bytes of the boot salt: with the incarnation they name the session |
//!
//! Key: HKDF-SHA256, salt = node, incarnation and session, input = domain key.

mod keyring;
mod session;
mod window;

pub(crate) use keyring::KeyRing;
pub use keyring::{InvalidKeys, KEYS_MAX};
pub(crate) use session::{Accepted, Dropped, Sessions};

use crate::config::DomainKey;
use ::ring::{aead, hkdf};
use bytes::{Buf, Bytes, BytesMut};
use quorba_base::NodeId;

/// Bytes before the sealed part.
pub(crate) const HEADER_BYTES: usize = 36;
/// Bytes behind it.
pub(crate) const TAG_BYTES: usize = 16;
/// Bytes that sealing adds to a packet.
pub const SEAL_BYTES: usize = HEADER_BYTES + TAG_BYTES;

const MAGIC: [u8; 2] = *b"QR";
const VERSION: u8 = 3;
const SESSION_BYTES: usize = 12;
/// More datagrams than this are not sealed with one key (2^62: never reached).
pub(crate) const COUNTER_MAX: u64 = 1 << 62;
/// Counters that are left for saying farewell.
const COUNTER_RESERVE: u64 = 1 << 10;

/// The part of the boot salt that travels in each header.
pub(crate) type SessionId = [u8; SESSION_BYTES];

const KEY_ID_BYTES: usize = 3;

/// Names a domain key, without giving it away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct KeyId(pub(crate) [u8; KEY_ID_BYTES]);

impl KeyId {
    /// No key: nothing is protected, or none has been named.
    pub(crate) const NONE: Self = Self([0; KEY_ID_BYTES]);
}

impl core::fmt::Display for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}")
    }
}

impl core::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// Names one boot of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BootId {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
    pub(crate) session: SessionId,
}

/// The clear header, lengths checked, nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) protection: u8,
    pub(crate) key: KeyId,
    pub(crate) boot: BootId,
    pub(crate) counter: u64,
}

/// Why a datagram has no usable header. The sender is not known to be honest: no retry helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// Not ours at all, or cut short.
    Foreign,
    /// Ours, but of another version; sender as claimed.
    Version(Option<NodeId>),
    /// The sender's id is out of range.
    Node,
}

impl Header {
    /// Reads the header of `datagram`, whatever its length.
    pub(crate) fn parse(datagram: &[u8]) -> Result<Self, BadHeader> {
        let Some(head) = datagram.first_chunk::<HEADER_BYTES>() else {
            return Err(BadHeader::Foreign);
        };
        if head[..2] != MAGIC {
            return Err(BadHeader::Foreign);
        }
        if head[2] != VERSION {
            return Err(BadHeader::Version(NodeId::new(head[4])));
        }
        let node = NodeId::new(head[4]).ok_or(BadHeader::Node)?;
        let protection = head[3];
        let key = KeyId([head[5], head[6], head[7]]);
        if protection > 1 || protection == 0 && key != KeyId::NONE {
            return Err(BadHeader::Foreign);
        }
        if protection == 1 && datagram.len() < SEAL_BYTES {
            return Err(BadHeader::Foreign);
        }
        let mut rest = &head[8..];
        let incarnation = rest.get_u64();
        let counter = rest.get_u64();
        let mut session = [0; SESSION_BYTES];
        session.copy_from_slice(rest);
        Ok(Self { protection, key, boot: BootId { node, incarnation, session }, counter })
    }
}

/// The key of one boot of one node, from one domain key.
pub(crate) struct BootKey(aead::LessSafeKey);

impl BootKey {
    /// Derives the key of `boot`. Costs microseconds: the caller bounds how often.
    pub(crate) fn derive(domain: &DomainKey, boot: &BootId) -> Self {
        let mut salt = [0; 1 + 8 + SESSION_BYTES];
        salt[0] = boot.node.index();
        salt[1..9].copy_from_slice(&boot.incarnation.to_be_bytes());
        salt[9..].copy_from_slice(&boot.session);
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, &salt).extract(domain.bytes());
        let info: [&[u8]; 1] = [b"quorba order datagram v1"];
        let okm = extracted.expand(&info, &aead::AES_256_GCM).expect("32 bytes is a valid length");
        Self(aead::LessSafeKey::new(aead::UnboundKey::from(okm)))
    }

    fn nonce(counter: u64) -> aead::Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&counter.to_be_bytes());
        aead::Nonce::assume_unique_for_key(nonce)
    }

    /// Verifies and decrypts in place; on success the datagram is the plaintext alone.
    fn open(&self, header: &Header, mut datagram: BytesMut) -> Option<Bytes> {
        let (head, sealed) = datagram.split_at_mut_checked(HEADER_BYTES)?;
        let aad = aead::Aad::from(&*head);
        let plain = self.0.open_in_place(Self::nonce(header.counter), aad, sealed).ok()?.len();
        datagram.truncate(HEADER_BYTES + plain);
        let mut packet = datagram.freeze();
        packet.advance(HEADER_BYTES);
        Some(packet)
    }
}

/// Seals what this boot sends.
pub(crate) struct Sealer {
    key: Option<BootKey>,
    id: KeyId,
    boot: BootId,
    /// Goes on when the key changes: see the invariants.
    counter: u64,
}

impl Sealer {
    /// A sealer for this boot; without a key nothing is protected.
    pub(crate) fn new(domain: &DomainKey, boot: BootId, encrypt: bool) -> Self {
        let key = encrypt.then(|| BootKey::derive(domain, &boot));
        let id = if encrypt { KeyId::of(domain) } else { KeyId::NONE };
        Self { key, id, boot, counter: 0 }
    }

    /// Seals with another domain key from the next datagram on.
    pub(crate) fn turn_to(&mut self, domain: &DomainKey) {
        if self.key.is_some() {
            self.key = Some(BootKey::derive(domain, &self.boot));
            self.id = KeyId::of(domain);
        }
    }

    /// Whether this boot has sent all that it may: it must leave, and come back as a new boot.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.counter + COUNTER_RESERVE >= COUNTER_MAX
    }

    /// The domain key that datagrams are sealed with.
    pub(crate) const fn key_id(&self) -> KeyId {
        self.id
    }

    /// As if so many datagrams had been sent.
    #[cfg(test)]
    pub(crate) const fn skip_to(&mut self, counter: u64) {
        self.counter = counter;
    }

    /// An empty datagram with room for the header and `packet_bytes`, to be filled and sealed.
    pub(crate) fn start(packet_bytes: usize) -> BytesMut {
        let mut datagram = BytesMut::with_capacity(packet_bytes + SEAL_BYTES);
        datagram.resize(HEADER_BYTES, 0);
        datagram
    }

    /// Writes the header into a datagram from [`Self::start`] and encrypts the rest in place.
    pub(crate) fn seal(&mut self, datagram: &mut BytesMut) {
        self.counter += 1;
        assert!(self.counter < COUNTER_MAX, "a nonce is never used twice");
        let (head, plain) = datagram.split_at_mut(HEADER_BYTES);
        head[..2].copy_from_slice(&MAGIC);
        head[2] = VERSION;
        head[3] = u8::from(self.key.is_some());
        head[4] = self.boot.node.index();
        head[5..8].copy_from_slice(&self.id.0);
        head[8..16].copy_from_slice(&self.boot.incarnation.to_be_bytes());
        head[16..24].copy_from_slice(&self.counter.to_be_bytes());
        head[24..].copy_from_slice(&self.boot.session);
        if let Some(BootKey(key)) = &self.key {
            let aad = aead::Aad::from(&*head);
            let nonce = BootKey::nonce(self.counter);
            let tag = key
                .seal_in_place_separate_tag(nonce, aad, plain)
                .expect("a datagram is far below the cipher's limit");
            datagram.extend_from_slice(tag.as_ref());
        }
    }
}

/// The session part of a boot salt.
pub(crate) fn session_id(salt: &[u8; 16]) -> SessionId {
    let mut session = [0; SESSION_BYTES];
    session.copy_from_slice(&salt[..SESSION_BYTES]);
    session
}

#[cfg(test)]
mod tests;
