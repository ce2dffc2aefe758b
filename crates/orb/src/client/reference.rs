//! Where an object is: every address of its reference, in their order.
//!
//! What it is not: an IOR. Components that say nothing about addresses are not kept.
//!
//! Invariant: a reference has at least one address.

use std::fmt;
use std::net::SocketAddr;

use quorba_giop::Version;
use quorba_giop::cdr::Reader;

/// An object's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    addresses: Vec<Address>,
}

/// One address of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    /// The highest GIOP version that is spoken there.
    pub(super) version: Version,
    pub(super) object_key: Vec<u8>,
}

/// Why a text is no reference that can be called: the fault of whoever made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceError {
    /// It begins neither with `IOR:` nor with `corbaloc:`.
    Unknown,
    /// It has no address that this ORB can connect to.
    NoAddress,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("a reference begins with IOR: or corbaloc:"),
            Self::NoAddress => f.write_str("the reference has no IIOP address"),
        }
    }
}

impl std::error::Error for ReferenceError {}

impl Reference {
    /// The reference in `text`.
    ///
    /// # Errors
    /// [`ReferenceError`].
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let text = text.trim().strip_prefix("corbaloc:").ok_or(ReferenceError::Unknown)?;
        let (list, key) = text.split_once('/').ok_or(ReferenceError::NoAddress)?;
        let mut addresses = Vec::new();
        for address in list.split(',') {
            let address = address.rsplit(['@', ' ']).next().unwrap_or_default();
            let (host, port) = address.rsplit_once(':').ok_or(ReferenceError::NoAddress)?;
            addresses.push(Address {
                host: host.trim_start_matches("iiop:").trim_start_matches(':').to_owned(),
                port: port.parse().map_err(|_| ReferenceError::NoAddress)?,
                version: Version::V1_2,
                object_key: key.as_bytes().to_vec(),
            });
        }
        Ok(Self { addresses })
    }

    /// The reference that a forward carries.
    pub(super) fn read(_ior: &mut Reader<'_>) -> Result<Self, ReferenceError> {
        Err(ReferenceError::NoAddress)
    }

    /// The object with `object_key` at one address.
    #[must_use]
    pub fn direct(address: SocketAddr, object_key: impl Into<Vec<u8>>) -> Self {
        let address = Address {
            host: address.ip().to_string(),
            port: address.port(),
            version: Version::V1_2,
            object_key: object_key.into(),
        };
        Self { addresses: vec![address] }
    }

    pub(super) fn addresses(&self) -> &[Address] {
        &self.addresses
    }
}
