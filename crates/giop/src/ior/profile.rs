//! Profiles of a reference (GIOP §13.6.2), and the IIOP one (GIOP §15.7.2).
//!
//! Invariant: a profile keeps its octets as they came, whether they are understood or not.

use super::component::{self, Component, ComponentValue, TAG_FT_HEARTBEAT_ENABLED};
use crate::cdr::{Reader, Writer};
use crate::error::{Fault, MessageError};
use crate::limits::OBJECT_KEY_BYTES_MAX;
use crate::version::{Endian, Version};
use alloc::string::String;
use alloc::vec::Vec;

/// TAG_INTERNET_IOP: IIOP over TCP.
pub const TAG_INTERNET_IOP: u32 = 0;
/// TAG_MULTIPLE_COMPONENTS: components without an address.
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;

/// One profile, unread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// What kind.
    pub tag: u32,
    /// Its octets, usually an encapsulation.
    pub data: Vec<u8>,
}

/// Content of TAG_INTERNET_IOP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IiopProfile {
    /// The highest version that is spoken there. Later minor versions than are known here have
    /// the same first fields.
    pub version: Version,
    /// Name or number, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The object there.
    pub object_key: Vec<u8>,
    /// What else is to be known; none in IIOP 1.0.
    pub components: Vec<Component>,
}

impl Profile {
    /// Its content if it is an IIOP profile, else `None`.
    #[must_use]
    pub fn iiop(&self) -> Option<Result<IiopProfile, MessageError>> {
        (self.tag == TAG_INTERNET_IOP).then(|| IiopProfile::decode(&self.data))
    }

    /// Its components if it is a TAG_MULTIPLE_COMPONENTS profile, else `None`.
    #[must_use]
    pub fn multiple_components(&self) -> Option<Result<Vec<Component>, MessageError>> {
        (self.tag == TAG_MULTIPLE_COMPONENTS).then(|| {
            let (components, error) = decode_components(&self.data);
            error.map_or(Ok(components), Err)
        })
    }

    /// A profile that has components only.
    #[must_use]
    pub fn of_components(components: &[Component], endian: Endian) -> Self {
        let mut writer = Writer::encapsulation(endian);
        component::write_all(&mut writer, components);
        Self { tag: TAG_MULTIPLE_COMPONENTS, data: writer.finish() }
    }
}

/// Components of a TAG_MULTIPLE_COMPONENTS profile up to the first fault, and that.
pub(crate) fn decode_components(data: &[u8]) -> (Vec<Component>, Option<MessageError>) {
    let mut components = Vec::new();
    let result = Reader::encapsulation(data)
        .and_then(|mut reader| component::read_all(&mut reader, &mut components));
    (components, result.err())
}

impl IiopProfile {
    /// Reads the data of a profile.
    ///
    /// # Errors
    /// If it is no such profile; offsets count from the start of `data`.
    pub fn decode(data: &[u8]) -> Result<Self, MessageError> {
        let (profile, error) = Self::decode_partly(data);
        error.map_or(Ok(profile), Err)
    }

    /// Reads as much as can be read, and what stopped it; fields behind that are empty.
    #[must_use]
    pub fn decode_partly(data: &[u8]) -> (Self, Option<MessageError>) {
        let mut profile = Self {
            version: Version { major: 0, minor: 0 },
            host: String::new(),
            port: 0,
            object_key: Vec::new(),
            components: Vec::new(),
        };
        let error = profile.read(data).err();
        (profile, error)
    }

    fn read(&mut self, data: &[u8]) -> Result<(), MessageError> {
        let mut reader = Reader::encapsulation(data)?;
        let offset = reader.position();
        let major = reader.read_u8("IIOP version")?;
        let minor = reader.read_u8("IIOP version")?;
        self.version = Version { major, minor };
        if major != 1 {
            return Err(MessageError { what: "IIOP version", offset, fault: Fault::Value });
        }
        self.host = component::read_host(&mut reader)?;
        self.port = reader.read_u16("port")?;
        self.object_key = reader.read_octets(OBJECT_KEY_BYTES_MAX, "object key")?.to_vec();
        if self.version >= Version::V1_1 {
            component::read_all(&mut reader, &mut self.components)?;
        }
        Ok(())
    }

    /// Whether the server there answers heartbeats (FT-CORBA §23.2.9.1).
    pub(super) fn heartbeat_enabled(&self) -> bool {
        let mut says = self.components.iter().filter(|it| it.tag == TAG_FT_HEARTBEAT_ENABLED);
        says.any(|it| it.value() == Some(Ok(ComponentValue::FtHeartbeatEnabled(true))))
    }

    /// The profile that says it. IIOP 1.0 has no components: they are left out.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Profile {
        let mut writer = Writer::encapsulation(endian);
        writer.write_raw(&[self.version.major, self.version.minor]);
        writer.write_string(self.host.as_bytes());
        writer.write_u16(self.port);
        writer.write_octets(&self.object_key);
        if self.version >= Version::V1_1 {
            component::write_all(&mut writer, &self.components);
        }
        Profile { tag: TAG_INTERNET_IOP, data: writer.finish() }
    }
}
