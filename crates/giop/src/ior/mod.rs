//! Interoperable object references (GIOP §13.6), binary and stringified.
//!
//! [`Ior`] keeps profiles and components unread; [`Profile::iiop`] and [`Component::value`] read
//! those that are understood. [`group_reference`] makes the reference that clients of a group get.
//!
//! What it is not: it looks no host up and connects to nothing.
//!
//! Invariant: what is not understood is passed on byte for byte and in order.

mod component;
mod group;
mod identity;
mod profile;

pub use component::{
    CODE_SET_LATIN_1, CODE_SET_UTF_8, CODE_SET_UTF_16, CodeSetChoice, CodeSetInfo, Component,
    ComponentValue, FtGroup, SslTransport, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS, TAG_FT_GROUP,
    TAG_FT_HEARTBEAT_ENABLED, TAG_FT_PRIMARY, TAG_ORB_TYPE, TAG_SSL_SEC_TRANS,
};
pub use group::{GroupReference, group_reference};
pub(crate) use profile::decode_components;
pub use profile::{IiopProfile, Profile, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS};

use crate::cdr::{Reader, Writer};
use crate::error::MessageError;
use crate::limits::{
    ENDPOINTS_MAX, PROFILE_BYTES_MAX, PROFILES_MAX, REFERENCE_BYTES_MAX, TYPE_ID_BYTES_MAX,
};
use crate::version::{Endian, Version};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// A reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ior {
    /// Repository id of the most derived interface; empty if not known.
    pub type_id: Vec<u8>,
    /// Where the object is, each profile by itself enough to reach it.
    pub profiles: Vec<Profile>,
}

/// An address at which an object can be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The highest version that is spoken there, at most 1.2.
    pub version: Version,
    /// Name or number, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The object there, shared by all addresses of a profile.
    pub object_key: Bytes,
    /// Whether heartbeats are answered there (TAG_FT_HEARTBEAT_ENABLED of its profile).
    pub heartbeat_enabled: bool,
}

/// Why something is no reference: the fault of whoever made it, and no retry helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IorError {
    /// It does not begin with `IOR:`.
    Prefix,
    /// It is longer than is taken.
    TooLong {
        /// How many digits it has.
        digits: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A character that is no hexadecimal digit.
    Digit {
        /// Which one, in bytes from the start of the text.
        offset: usize,
    },
    /// A half octet at the end: it was probably cut off.
    OddDigits {
        /// How many digits it has.
        digits: usize,
    },
    /// The octets do not make a reference.
    Content(MessageError),
}

impl fmt::Display for IorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => f.write_str("a stringified reference begins with \"IOR:\""),
            Self::TooLong { digits, limit } => {
                write!(f, "a reference of {digits} digits is over the limit of {limit}")
            }
            Self::Digit { offset } => {
                write!(f, "character {offset} of the reference is no hexadecimal digit")
            }
            Self::OddDigits { digits } => {
                write!(f, "{digits} digits are no whole number of octets; the end is missing")
            }
            Self::Content(error) => write!(f, "malformed reference: {error}"),
        }
    }
}

impl core::error::Error for IorError {}

impl From<MessageError> for IorError {
    fn from(error: MessageError) -> Self {
        Self::Content(error)
    }
}

impl Ior {
    /// The reference to nothing.
    #[must_use]
    pub const fn nil() -> Self {
        Self { type_id: Vec::new(), profiles: Vec::new() }
    }

    /// Whether it refers to nothing.
    #[must_use]
    pub const fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }

    /// Reads one inside of a message or encapsulation.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, MessageError> {
        let mut ior = Self::nil();
        ior.fill(reader)?;
        Ok(ior)
    }

    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), MessageError> {
        self.type_id = reader.read_string(TYPE_ID_BYTES_MAX, "type id")?.to_vec();
        for _ in 0..reader.read_count(8, PROFILES_MAX, "profiles")? {
            let tag = reader.read_u32("profile tag")?;
            let data = reader.read_octets(PROFILE_BYTES_MAX, "profile data")?.to_vec();
            self.profiles.push(Profile { tag, data });
        }
        Ok(())
    }

    /// Reads an encapsulated one, which is what a stringified reference contains.
    ///
    /// # Errors
    /// If it is none. Octets behind it are allowed.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (ior, error) = Self::decode_partly(bytes);
        error.map_or(Ok(ior), Err)
    }

    /// Reads as much as can be read, and what stopped it.
    #[must_use]
    pub fn decode_partly(bytes: &[u8]) -> (Self, Option<MessageError>) {
        let mut ior = Self::nil();
        let result = Reader::encapsulation(bytes).and_then(|mut reader| ior.fill(&mut reader));
        (ior, result.err())
    }

    /// Reads a stringified reference: `IOR:` and hexadecimal digits, with space around.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, IorError> {
        Ok(Self::decode(&octets(text)?)?)
    }

    /// Writes it into a message, such as a reply that forwards.
    pub fn write(&self, writer: &mut Writer) {
        writer.write_string(&self.type_id);
        writer.write_count(self.profiles.len());
        for profile in &self.profiles {
            writer.write_u32(profile.tag);
            writer.write_octets(&profile.data);
        }
    }

    /// The reference as an encapsulation.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut writer = Writer::encapsulation(endian);
        self.write(&mut writer);
        writer.finish()
    }

    /// The stringified reference; `endian` is that of its frame, the profiles keep theirs.
    #[must_use]
    pub fn stringify(&self, endian: Endian) -> String {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        let mut text = String::from("IOR:");
        for octet in self.encode(endian) {
            text.push(digit(octet >> 4));
            text.push(digit(octet & 15));
        }
        text
    }

    /// Every address in the order in which a client should try them, each once: a profile's own,
    /// then its alternates. Malformed and unknown profiles have none; the list ends with
    /// [`ENDPOINTS_MAX`].
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for profile in self.profiles.iter().filter_map(|profile| profile.iiop()?.ok()) {
            let alternates = profile.components.iter().filter_map(Component::alternate_address);
            let heartbeat_enabled = profile.heartbeat_enabled();
            let own = (profile.host.clone(), profile.port);
            let object_key = Bytes::from(profile.object_key);
            for (host, port) in core::iter::once(own).chain(alternates) {
                let version = profile.version.min(Version::V1_2);
                let object_key = object_key.clone();
                let endpoint = Endpoint { version, host, port, object_key, heartbeat_enabled };
                if endpoints.len() == ENDPOINTS_MAX {
                    return endpoints;
                }
                // Port 0 is what TLS-only profiles have.
                if port != 0 && !endpoints.contains(&endpoint) {
                    endpoints.push(endpoint);
                }
            }
        }
        endpoints
    }

    /// The object group that it refers to, if it says so anywhere (FT-CORBA §23.2.2).
    #[must_use]
    pub fn ft_group(&self) -> Option<FtGroup> {
        let components = |profile: &Profile| match profile.iiop() {
            Some(iiop) => iiop.ok().map(|iiop| iiop.components),
            None => profile.multiple_components()?.ok(),
        };
        self.profiles.iter().filter_map(components).flatten().find_map(|component| match component
            .value()?
        {
            Ok(ComponentValue::FtGroup(group)) => Some(group),
            _ => None,
        })
    }
}

impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stringify(Endian::Big))
    }
}

impl core::str::FromStr for Ior {
    type Err = IorError;

    fn from_str(text: &str) -> Result<Self, IorError> {
        Self::parse(text)
    }
}

/// The octets of a stringified reference, of which not all need to make sense.
pub(crate) fn octets(text: &str) -> Result<Vec<u8>, IorError> {
    let begin = text.len() - text.trim_start().len();
    let trimmed = text.trim().as_bytes();
    let digits = match trimmed.split_at_checked(4) {
        Some((prefix, digits)) if prefix.eq_ignore_ascii_case(b"IOR:") => digits,
        _ => return Err(IorError::Prefix),
    };
    let limit = 2 * REFERENCE_BYTES_MAX;
    if digits.len() > limit {
        return Err(IorError::TooLong { digits: digits.len(), limit });
    }
    let nibble = |index: usize, digit: u8| {
        let value = char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        value.ok_or(IorError::Digit { offset: begin + 4 + index })
    };
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    for (index, pair) in digits.chunks(2).enumerate() {
        let high = pair.first().map_or(Ok(0), |digit| nibble(2 * index, *digit))?;
        let Some(low) = pair.get(1) else {
            return Err(IorError::OddDigits { digits: digits.len() });
        };
        bytes.push(high << 4 | nibble(2 * index + 1, *low)?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
