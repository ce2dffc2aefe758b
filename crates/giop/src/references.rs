//! References in the results of a reply, found without its IDL: by what a profile of IIOP looks
//! like (GIOP §15.7.2), and texts that begin like a stringified reference.
//!
//! What it is not: a decoder. Octets that happen to look like a profile are taken for one, and what
//! stands in the middle of a text, in a wide string or behind [`LOOKED_AT_BYTES_MAX`] is not found.
//!
//! Invariants: [`has_any`] reads each word once and allocates nothing; both look at no more than so
//! many octets, and [`find`] tries no more than [`TRIES_MAX`] places.

use crate::cdr::Reader;
use crate::corbaloc::{self, Address, Corbaloc};
use crate::ior::{ComponentValue, IiopProfile, Ior};
use crate::limits::{ADDRESSES_MAX, HOST_BYTES_MAX, PROFILES_MAX};
use crate::version::Endian;
use alloc::string::String;
use alloc::vec::Vec;

/// Octets of a message that are looked at.
pub const LOOKED_AT_BYTES_MAX: usize = 64 << 10;
/// References of a message that are given.
pub const REFERENCES_MAX: usize = 64;
/// Places that are read as if a reference stood there.
pub const TRIES_MAX: usize = 256;

/// What is aligned as these stand: lengths, tags, and the beginnings of encapsulations and texts.
const WORD_BYTES: usize = 4;
/// The tag and the length in front of a profile.
const BEFORE_PROFILE_BYTES: usize = 8;
/// Words that are looked at together.
const BLOCK_WORDS: usize = 16;
/// Later minor versions than 1.2 begin alike.
const MINOR_MAX: u8 = 4;

/// A reference that stands in a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where its first profile or its text begins, from the start of the message.
    pub offset: usize,
    /// The octet behind it.
    pub end: usize,
    /// Hosts, without brackets, and ports of all profiles, each once, in their order; those for TLS
    /// among them.
    pub addresses: Vec<(String, u16)>,
    /// The object keys, each once.
    pub keys: Vec<Vec<u8>>,
}

/// Whether a message seems to have a reference in its octets behind `from`. Without one this is a
/// single pass over them.
#[must_use]
pub fn has_any(message: &[u8], from: usize, endian: Endian) -> bool {
    places(message, from, endian).next().is_some()
}

/// The references in the octets of a message behind `from`.
#[must_use]
pub fn find(message: &[u8], from: usize, endian: Endian) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (at, kind) in places(message, from, endian).take(TRIES_MAX) {
        // The profiles behind the first one.
        if found.last().is_some_and(|last| at < last.end) {
            continue;
        }
        let one = match kind {
            Kind::Profile => reference(message, at, endian),
            Kind::Text => text(message, at, endian),
        };
        found.extend(one.filter(|one| !one.addresses.is_empty()));
        if found.len() == REFERENCES_MAX {
            break;
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Profile,
    Text,
}

/// Where a profile or a text that is a reference seems to begin.
fn places(
    message: &[u8],
    from: usize,
    endian: Endian,
) -> impl Iterator<Item = (usize, Kind)> + use<'_> {
    // CDR aligns from the start of the message.
    let first = from.checked_next_multiple_of(WORD_BYTES).unwrap_or(usize::MAX);
    let last = message.len().min(first.saturating_add(LOOKED_AT_BYTES_MAX));
    let (words, _) = message.get(first..last).unwrap_or_default().as_chunks::<WORD_BYTES>();
    // Most blocks have nothing in them, and are looked at without a branch.
    let blocks = words.chunks(BLOCK_WORDS).enumerate();
    let blocks = blocks.filter(|(_, block)| block.iter().fold(false, |any, it| any | may_be(*it)));
    let words = blocks.flat_map(|(block, words)| {
        words.iter().enumerate().map(move |(index, word)| (block * BLOCK_WORDS + index, *word))
    });
    words.filter_map(move |(index, word)| {
        let at = first + index * WORD_BYTES;
        match word {
            // The byte order of an encapsulation, and the version in it.
            [0 | 1, 1, 0..=MINOR_MAX, _] => {
                let is_it = at >= first + BEFORE_PROFILE_BYTES && is_profile(message, at, endian);
                is_it.then_some((at, Kind::Profile))
            }
            [b'I', b'O', b'R', b':'] | [b'c', b'o', b'r', b'b'] => {
                let is_it = at >= first + WORD_BYTES && text_at(message, at, endian).is_some();
                is_it.then_some((at, Kind::Text))
            }
            _ => None,
        }
    })
}

/// Whether one of the patterns of [`places`] may stand there.
#[inline]
fn may_be(word: [u8; WORD_BYTES]) -> bool {
    let word = u32::from_le_bytes(word);
    let is_profile = word & u32::from_le_bytes([!1, !0, !7, 0]) == u32::from_le_bytes([0, 1, 0, 0]);
    let is_ior = word == u32::from_le_bytes(*b"IOR:");
    let is_corbaloc = word == u32::from_le_bytes(*b"corb");
    is_profile | is_ior | is_corbaloc
}

/// Whether the tag and a length stand before these octets, and a host in them.
fn is_profile(message: &[u8], at: usize, endian: Endian) -> bool {
    let Some(data) = profile_data(message, at, endian) else { return false };
    let Ok(mut reader) = Reader::encapsulation(data) else { return false };
    let host = reader.take(2, "IIOP version").and_then(|_| {
        let host = reader.read_string(HOST_BYTES_MAX, "host")?;
        reader.read_u16("port")?;
        Ok(host)
    });
    host.is_ok_and(|host| !host.is_empty() && host.iter().all(u8::is_ascii_graphic))
}

/// The octets of the profile whose encapsulation begins there.
fn profile_data(message: &[u8], at: usize, endian: Endian) -> Option<&[u8]> {
    let mut reader = Reader::at(message, at.checked_sub(BEFORE_PROFILE_BYTES)?, endian);
    if reader.read_u32("profile tag").ok()? != crate::ior::TAG_INTERNET_IOP {
        return None;
    }
    reader.read_octets(LOOKED_AT_BYTES_MAX, "profile data").ok()
}

/// The text that begins there, if it is as long as it says and begins like a reference.
fn text_at(message: &[u8], at: usize, endian: Endian) -> Option<&str> {
    let mut reader = Reader::at(message, at.checked_sub(WORD_BYTES)?, endian);
    let octets = reader.read_octets(LOOKED_AT_BYTES_MAX, "text").ok()?;
    let octets = octets.strip_suffix(&[0]).unwrap_or(octets);
    let is_it = octets.starts_with(b"IOR:") || octets.starts_with(b"corbaloc:");
    core::str::from_utf8(octets).ok().filter(|_| is_it)
}

/// The reference whose first profile of IIOP begins there: as many profiles as the number before
/// it says, if that many can be read, else this one.
fn reference(message: &[u8], at: usize, endian: Endian) -> Option<Found> {
    let begin = at.checked_sub(BEFORE_PROFILE_BYTES)?;
    let number = begin.checked_sub(WORD_BYTES).and_then(|number| {
        let number = Reader::at(message, number, endian).read_u32("profiles").ok()?;
        usize::try_from(number).ok().filter(|number| (1..=PROFILES_MAX).contains(number))
    });
    let mut found = Found { offset: at, end: at, addresses: Vec::new(), keys: Vec::new() };
    let all = number.and_then(|number| profiles(message, begin, number, endian));
    let (profiles, end) = match all {
        Some(all) => all,
        None => profiles(message, begin, 1, endian)?,
    };
    profiles.iter().for_each(|profile| found.add(profile));
    found.end = end;
    Some(found)
}

/// So many profiles, those of IIOP read, and where they end.
fn profiles(
    message: &[u8],
    begin: usize,
    count: usize,
    endian: Endian,
) -> Option<(Vec<IiopProfile>, usize)> {
    let mut reader = Reader::at(message, begin, endian);
    let mut profiles = Vec::new();
    for _ in 0..count {
        let tag = reader.read_u32("profile tag").ok()?;
        let data = reader.read_octets(LOOKED_AT_BYTES_MAX, "profile data").ok()?;
        if tag == crate::ior::TAG_INTERNET_IOP {
            profiles.push(IiopProfile::decode(data).ok()?);
        }
    }
    Some((profiles, reader.position()))
}

/// The reference whose text begins there.
fn text(message: &[u8], at: usize, endian: Endian) -> Option<Found> {
    let text = text_at(message, at, endian)?;
    let mut found =
        Found { offset: at, end: at + text.len(), addresses: Vec::new(), keys: Vec::new() };
    if text.starts_with("IOR:") {
        let ior = Ior::parse(text).ok()?;
        let profiles = ior.profiles.iter().filter_map(|profile| profile.iiop()?.ok());
        profiles.for_each(|profile| found.add(&profile));
    } else {
        let Corbaloc { addresses, object_key } = corbaloc::parse(text).ok()?;
        for address in addresses {
            if let Address::Iiop { host, port, .. } = address {
                found.add_address(host, port);
            }
        }
        found.keys.push(object_key);
    }
    Some(found)
}

impl Found {
    fn add(&mut self, profile: &IiopProfile) {
        self.add_address(profile.host.clone(), profile.port);
        for component in &profile.components {
            match component.value() {
                Some(Ok(ComponentValue::SslTransport(tls))) => {
                    self.add_address(profile.host.clone(), tls.port);
                }
                Some(Ok(ComponentValue::AlternateAddress { host, port })) => {
                    self.add_address(host, port);
                }
                _ => {}
            }
        }
        if !self.keys.contains(&profile.object_key) {
            self.keys.push(profile.object_key.clone());
        }
    }

    /// Port 0 is what profiles for TLS only have.
    fn add_address(&mut self, host: String, port: u16) {
        let address = (host, port);
        let has_room = self.addresses.len() < ADDRESSES_MAX;
        if has_room && address.1 != 0 && !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }
}

#[cfg(test)]
mod tests;
