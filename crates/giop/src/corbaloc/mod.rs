//! `corbaloc:` references (CORBA §13.6.10): addresses and an object key that people can type.
//!
//! What it is not: it asks no naming service: a `corbaname:` is taken apart ([`parse_name`]), and
//! refused where an object is wanted; `rir:` is read but has no address.
//!
//! Invariants: a [`Corbaloc`] has at least one address; printing and parsing it again gives the
//! same value.

use crate::ior::{Endpoint, IiopProfile, Ior};
use crate::limits::{ADDRESSES_MAX, HOST_BYTES_MAX, OBJECT_KEY_BYTES_MAX};
use crate::version::{Endian, Version};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The port that IANA gave to corbaloc.
pub const DEFAULT_PORT: u16 = 2809;
/// The version of an address that names none.
pub const DEFAULT_VERSION: Version = Version::V1_0;
/// The key of `rir:` without one.
const DEFAULT_RIR_KEY: &[u8] = b"NameService";

/// A parsed reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corbaloc {
    /// Where the object is, in the order in which they are tried.
    pub addresses: Vec<Address>,
    /// The object there; with `rir:` the name of the service.
    pub object_key: Vec<u8>,
}

/// A parsed `corbaname:`: a name in a naming context (Naming Service §2.5.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corbaname {
    /// Where the context is.
    pub context: Corbaloc,
    /// The name, as `resolve_str` of the context takes it; empty: the context itself.
    pub name: String,
}

/// One address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// `iiop:` or nothing.
    Iiop {
        /// The highest version that is spoken there.
        version: Version,
        /// Name or number, without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// `rir:`: whatever the ORB was configured with.
    InitialReferences,
}

/// Why a text is no corbaloc: its author's fault, and no retry helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CorbalocError {
    /// Where, in bytes from the start of the text.
    pub offset: usize,
    /// What is wrong there.
    pub fault: CorbalocFault,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CorbalocFault {
    /// It does not begin with `corbaloc:`.
    Prefix,
    /// It is a `corbaname:`, for which a naming service would have to be asked.
    Corbaname,
    /// It does not begin with `corbaname:`.
    NamePrefix,
    /// The name behind `#` is no UTF-8.
    NameCharacter,
    /// A protocol other than IIOP.
    Protocol,
    /// An address without a host.
    NoHost,
    /// A host that is too long, or has characters that no host has.
    Host,
    /// A `[` without its `]`, or something other than a port behind it.
    Bracket,
    /// An IPv6 address without brackets, or too many colons.
    Colons,
    /// No port: 1 to 65535.
    Port,
    /// No version: 1.0, 1.1 or 1.2.
    Version,
    /// More addresses than allowed.
    TooManyAddresses,
    /// `rir:` beside other addresses, or with one of its own.
    Rir,
    /// A `%` without two hexadecimal digits.
    Escape,
    /// A character that has to be written as `%` and two digits.
    KeyCharacter,
    /// A longer object key than allowed.
    KeyTooLong,
}

impl fmt::Display for CorbalocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.fault {
            CorbalocFault::Prefix => "it does not begin with \"corbaloc:\"",
            CorbalocFault::Corbaname => {
                "a corbaname needs a naming service; give the object's own IOR or corbaloc here"
            }
            CorbalocFault::NamePrefix => "it does not begin with \"corbaname:\"",
            CorbalocFault::NameCharacter => "the name is no text",
            CorbalocFault::Protocol => "only iiop (or nothing) and rir stand before the address",
            CorbalocFault::NoHost => "the address has no host",
            CorbalocFault::Host => "this is no host name",
            CorbalocFault::Bracket => "an IPv6 address ends with \"]\", and a port may follow it",
            CorbalocFault::Colons => "too many colons; an IPv6 address stands in brackets",
            CorbalocFault::Port => "a port is a number from 1 to 65535",
            CorbalocFault::Version => "the version is 1.0, 1.1 or 1.2",
            CorbalocFault::TooManyAddresses => "there are too many addresses",
            CorbalocFault::Rir => "rir stands alone and has no address",
            CorbalocFault::Escape => "% is followed by two hexadecimal digits",
            CorbalocFault::KeyCharacter => "this character of a key is written as %XX",
            CorbalocFault::KeyTooLong => "the object key is too long",
        };
        write!(f, "malformed corbaloc at character {}: {text}", self.offset)
    }
}

impl core::error::Error for CorbalocError {}

const fn error(offset: usize, fault: CorbalocFault) -> CorbalocError {
    CorbalocError { offset, fault }
}

/// Reads a corbaloc, with space around.
///
/// # Errors
/// If it is none.
pub fn parse(text: &str) -> Result<Corbaloc, CorbalocError> {
    let begin = text.len() - text.trim_start().len();
    let text = text.trim();
    let rest = match strip_prefix(text, "corbaloc:") {
        Some(rest) => rest,
        None if strip_prefix(text, "corbaname:").is_some() => {
            return Err(error(begin, CorbalocFault::Corbaname));
        }
        None => return Err(error(begin, CorbalocFault::Prefix)),
    };
    parse_rest(rest, begin + (text.len() - rest.len()), begin)
}

/// Reads a corbaname, with space around. A context without a key is `NameService`.
///
/// # Errors
/// If it is none.
pub fn parse_name(text: &str) -> Result<Corbaname, CorbalocError> {
    let begin = text.len() - text.trim_start().len();
    let text = text.trim();
    let rest = strip_prefix(text, "corbaname:").ok_or(error(begin, CorbalocFault::NamePrefix))?;
    let offset = begin + (text.len() - rest.len());
    let (place, name) = rest.split_once('#').unwrap_or((rest, ""));
    let mut context = parse_rest(place, offset, begin)?;
    if context.object_key.is_empty() {
        context.object_key = DEFAULT_RIR_KEY.to_vec();
    }
    let at = offset + place.len() + 1;
    let name = String::from_utf8(unescape(name, at)?);
    let name = name.map_err(|_| error(at, CorbalocFault::NameCharacter))?;
    Ok(Corbaname { context, name })
}

/// Reads what stands behind the scheme, at `offset` of a text that begins at `begin`.
fn parse_rest(rest: &str, mut offset: usize, begin: usize) -> Result<Corbaloc, CorbalocError> {
    let (list, key) = rest.split_once('/').map_or((rest, None), |(list, key)| (list, Some(key)));
    let mut addresses = Vec::new();
    for part in list.split(',') {
        if addresses.len() == ADDRESSES_MAX {
            return Err(error(offset, CorbalocFault::TooManyAddresses));
        }
        addresses.push(parse_address(part, offset)?);
        offset += part.len() + 1;
    }
    let rir = addresses.contains(&Address::InitialReferences);
    if rir && addresses.len() > 1 {
        return Err(error(begin, CorbalocFault::Rir));
    }
    let object_key = match key {
        None | Some("") if rir => DEFAULT_RIR_KEY.to_vec(),
        None => Vec::new(),
        Some(key) => unescape(key, offset)?,
    };
    Ok(Corbaloc { addresses, object_key })
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// `iiop:1.2@host:port`, `:host`, `rir:`; also `host:port` behind a comma is not one: the colon
/// of the protocol is never left out.
fn parse_address(text: &str, offset: usize) -> Result<Address, CorbalocError> {
    let Some((protocol, rest)) = text.split_once(':') else {
        return Err(error(offset, CorbalocFault::Protocol));
    };
    let mut at = offset + protocol.len() + 1;
    if protocol.eq_ignore_ascii_case("rir") {
        let fault = error(at, CorbalocFault::Rir);
        return if rest.is_empty() { Ok(Address::InitialReferences) } else { Err(fault) };
    }
    if !protocol.is_empty() && !protocol.eq_ignore_ascii_case("iiop") {
        return Err(error(offset, CorbalocFault::Protocol));
    }
    let (version, host_port) = match rest.split_once('@') {
        Some((version, host_port)) => {
            let parsed = parse_version(version).ok_or(error(at, CorbalocFault::Version))?;
            at += version.len() + 1;
            (parsed, host_port)
        }
        None => (DEFAULT_VERSION, rest),
    };
    let (host, port) = parse_host_port(host_port, at)?;
    Ok(Address::Iiop { version, host: String::from(host), port })
}

fn parse_version(text: &str) -> Option<Version> {
    [Version::V1_0, Version::V1_1, Version::V1_2]
        .into_iter()
        .zip(["1.0", "1.1", "1.2"])
        .find_map(|(version, name)| (name == text).then_some(version))
}

fn parse_host_port(text: &str, offset: usize) -> Result<(&str, u16), CorbalocError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let bracket = error(offset, CorbalocFault::Bracket);
            let (host, behind) = rest.split_once(']').ok_or(bracket)?;
            match behind.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if behind.is_empty() => (host, None),
                None => return Err(error(offset + host.len() + 2, CorbalocFault::Bracket)),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) if port.contains(':') => {
                return Err(error(offset + host.len() + 1, CorbalocFault::Colons));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(error(offset, CorbalocFault::NoHost));
    }
    if !is_host(host) {
        return Err(error(offset, CorbalocFault::Host));
    }
    let port = match port {
        // A colon with nothing behind it is the default port, as in a URL.
        None | Some("") => DEFAULT_PORT,
        Some(port) => {
            let at = offset + text.len() - port.len();
            let digits = port.bytes().all(|octet| octet.is_ascii_digit());
            let number = port.parse().ok().filter(|number| digits && *number != 0);
            number.ok_or(error(at, CorbalocFault::Port))?
        }
    };
    Ok((host, port))
}

/// Names and numbers, also those of IPv6 with a zone. Anything else could not be looked up, and
/// would not be read again as it was printed.
fn is_host(host: &str) -> bool {
    let may = |octet: u8| octet.is_ascii_alphanumeric() || b"-._:%~".contains(&octet);
    !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.bytes().all(may)
}

/// Characters of a key that stand for themselves (CORBA §13.6.10.5, RFC 2396).
fn stands_for_itself(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b";/:?@&=+$,-_.!~*'()".contains(&octet)
}

/// Reads an object key as a corbaloc has it: `%41` is the octet 0x41.
fn unescape(text: &str, offset: usize) -> Result<Vec<u8>, CorbalocError> {
    let hex = |digit: Option<(usize, u8)>| {
        digit.and_then(|(_, digit)| char::from(digit).to_digit(16)).and_then(|v| v.try_into().ok())
    };
    let mut key: Vec<u8> = Vec::new();
    let mut octets = text.bytes().enumerate();
    while let Some((index, octet)) = octets.next() {
        let at = offset + index;
        if key.len() == OBJECT_KEY_BYTES_MAX {
            return Err(error(at, CorbalocFault::KeyTooLong));
        }
        key.push(match octet {
            b'%' => {
                let high: Option<u8> = hex(octets.next());
                let low: Option<u8> = hex(octets.next());
                let both = high.zip(low).ok_or(error(at, CorbalocFault::Escape))?;
                both.0 << 4 | both.1
            }
            // More than the standard allows, but without a second meaning: people forget them.
            _ if octet.is_ascii_graphic() => octet,
            _ => return Err(error(at, CorbalocFault::KeyCharacter)),
        });
    }
    Ok(key)
}

/// Prints an object key as a corbaloc and the domain file have it: what is no character of a URL as
/// `%` and two digits (CORBA §13.6.10.5).
#[derive(Clone, Copy, Debug)]
pub struct EscapedKey<'a>(
    /// Its octets.
    pub &'a [u8],
);

impl fmt::Display for EscapedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| match octet {
            _ if stands_for_itself(*octet) => write!(f, "{}", char::from(*octet)),
            _ => write!(f, "%{octet:02x}"),
        })
    }
}

/// Prints `host:port`, with brackets around an IPv6 address, and such that it cannot steer a
/// terminal.
#[derive(Clone, Copy, Debug)]
pub struct HostPort<'a>(pub &'a str, pub u16);

impl fmt::Display for HostPort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(host, port) = self;
        // A host came from outside, and this goes to terminals.
        let host = host.escape_default();
        match self.0.contains(':') {
            true => write!(f, "[{host}]:{port}"),
            false => write!(f, "{host}:{port}"),
        }
    }
}

impl Corbaloc {
    /// The reference as an IOR without a type: a profile per address, in their order. `rir:` has
    /// no address, so that of a `rir:` is nil.
    #[must_use]
    pub fn to_ior(&self) -> Ior {
        let profile = |address: &Address| match address {
            Address::Iiop { version, host, port } => {
                let profile = IiopProfile {
                    version: *version,
                    host: host.clone(),
                    port: *port,
                    object_key: self.object_key.clone(),
                    components: Vec::new(),
                };
                Some(profile.encode(Endian::Big))
            }
            Address::InitialReferences => None,
        };
        let profiles = self.addresses.iter().filter_map(profile).collect();
        Ior { type_id: Vec::new(), profiles }
    }

    /// The addresses of an IOR; `None` if it has none, or a host that is no host name, or several
    /// object keys: one corbaloc cannot say that.
    #[must_use]
    pub fn from_ior(ior: &Ior) -> Option<Self> {
        let endpoints = ior.endpoints();
        let object_key = endpoints.first()?.object_key.clone();
        let fits =
            |endpoint: &Endpoint| endpoint.object_key == object_key && is_host(&endpoint.host);
        if !endpoints.iter().all(fits) {
            return None;
        }
        let address = |endpoint: Endpoint| {
            let Endpoint { version, host, port, .. } = endpoint;
            Address::Iiop { version, host, port }
        };
        let object_key = object_key.to_vec();
        Some(Self { addresses: endpoints.into_iter().map(address).collect(), object_key })
    }
}

impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaloc:")?;
        for (index, address) in self.addresses.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match address {
                Address::Iiop { version, host, port } => {
                    write!(f, "iiop:{version}@{}", HostPort(host, *port))?;
                }
                Address::InitialReferences => f.write_str("rir:")?,
            }
        }
        write!(f, "/{}", EscapedKey(&self.object_key))
    }
}

impl core::str::FromStr for Corbaloc {
    type Err = CorbalocError;

    fn from_str(text: &str) -> Result<Self, CorbalocError> {
        parse(text)
    }
}

#[cfg(test)]
mod tests;
