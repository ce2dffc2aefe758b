//! Where an object is: every address of its reference, in their order.
//!
//! What it is not: an IOR. Components that say nothing about addresses or the group are not kept.
//!
//! Invariant: a reference has at least one address.

use std::fmt;
use std::net::SocketAddr;

use quorba_giop::cdr::Reader;
use quorba_giop::corbaloc::{self, CorbalocError};
use quorba_giop::ior::{Endpoint, FtGroup, Ior, IorError};
use quorba_giop::{MessageError, Version};

/// An object's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    addresses: Vec<Endpoint>,
    group: Option<FtGroup>,
}

/// Why a text is no reference that can be called: the fault of whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceError {
    /// It begins neither with `IOR:` nor with `corbaloc:`.
    Unknown,
    /// It is a malformed IOR.
    Ior(IorError),
    /// It is a malformed corbaloc.
    Corbaloc(CorbalocError),
    /// What a peer sent as a reference is malformed.
    Message(MessageError),
    /// It has no address that this ORB can connect to.
    NoAddress,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("a reference begins with IOR:, corbaloc: or corbaname:"),
            Self::Ior(error) => write!(f, "{error}"),
            Self::Corbaloc(error) => write!(f, "{error}"),
            Self::Message(error) => write!(f, "{error}"),
            Self::NoAddress => f.write_str("the reference has no IIOP address"),
        }
    }
}

impl std::error::Error for ReferenceError {}

impl Reference {
    /// The reference in `text`: `corbaloc:` or `IOR:`.
    ///
    /// # Errors
    /// [`ReferenceError`].
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let text = text.trim();
        let begins = |with: &str| {
            text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        if begins("IOR:") {
            Self::from_ior(&Ior::parse(text).map_err(ReferenceError::Ior)?)
        } else if begins("corbaloc:") {
            Self::from_ior(&corbaloc::parse(text).map_err(ReferenceError::Corbaloc)?.to_ior())
        } else {
            Err(ReferenceError::Unknown)
        }
    }

    /// The addresses in `ior`, in the order in which they are to be tried.
    ///
    /// # Errors
    /// [`ReferenceError::NoAddress`].
    pub fn from_ior(ior: &Ior) -> Result<Self, ReferenceError> {
        let addresses = ior.endpoints();
        if addresses.is_empty() {
            return Err(ReferenceError::NoAddress);
        }
        Ok(Self { addresses, group: ior.ft_group() })
    }

    /// The object group that it refers to, and its version, if it says so (TAG_FT_GROUP).
    #[must_use]
    pub const fn group(&self) -> Option<&FtGroup> {
        self.group.as_ref()
    }

    /// Whether it refers to the same group as `other`, and is a later version of it: then it may
    /// replace it (FT-CORBA §23.2.6).
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        let (Some(this), Some(other)) = (&self.group, &other.group) else { return false };
        this.is_same_group(other) && this.reference_version > other.reference_version
    }

    /// The reference that a reply carries.
    pub(super) fn read(ior: &mut Reader<'_>) -> Result<Self, ReferenceError> {
        Self::from_ior(&Ior::read(ior).map_err(ReferenceError::Message)?)
    }

    /// The object with `object_key` at one address.
    #[must_use]
    pub fn direct(address: SocketAddr, object_key: impl Into<Vec<u8>>) -> Self {
        let address = Endpoint {
            host: address.ip().to_string(),
            port: address.port(),
            version: Version::V1_2,
            object_key: object_key.into().into(),
            heartbeat_enabled: false,
        };
        Self { addresses: vec![address], group: None }
    }

    /// Where the object is, in the order in which it is tried.
    #[must_use]
    pub fn addresses(&self) -> &[Endpoint] {
        &self.addresses
    }
}
