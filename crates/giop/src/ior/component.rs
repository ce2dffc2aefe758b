//! Tagged components of a profile (GIOP §13.6.6), and those that Quorba understands.
//!
//! Invariant: a component keeps its octets as they came. Padding inside is arbitrary (TAO leaves
//! what was in memory), so equality of octets is not equality of meaning; compare the values.

use crate::cdr::{Reader, Writer};
use crate::error::{Fault, MessageError};
use crate::limits::{CODE_SETS_MAX, COMPONENTS_MAX, HOST_BYTES_MAX, PROFILE_BYTES_MAX};
use crate::version::{Endian, Version};
use alloc::string::String;
use alloc::vec::Vec;

/// TAG_ORB_TYPE: which ORB made the reference.
pub const TAG_ORB_TYPE: u32 = 0;
/// TAG_CODE_SETS: which code sets the server takes.
pub const TAG_CODE_SETS: u32 = 1;
/// TAG_ALTERNATE_IIOP_ADDRESS: one more address for the same key.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;
/// TAG_SSL_SEC_TRANS: the profile's host speaks TLS on another port (CORBA Security §15.8).
pub const TAG_SSL_SEC_TRANS: u32 = 20;
/// TAG_FT_GROUP: which object group (FT-CORBA §23.2.2).
pub const TAG_FT_GROUP: u32 = 27;
/// TAG_FT_PRIMARY: the profile is of the primary (FT-CORBA §23.2.5).
pub const TAG_FT_PRIMARY: u32 = 28;
/// TAG_FT_HEARTBEAT_ENABLED: the server answers heartbeats (FT-CORBA §23.2.9.1).
pub const TAG_FT_HEARTBEAT_ENABLED: u32 = 29;

/// One component, unread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Component {
    /// What kind.
    pub tag: u32,
    /// Its octets, usually an encapsulation.
    pub data: Vec<u8>,
}

/// A code set and those that it can be converted from and to (GIOP §13.10.2.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeSetChoice {
    /// What the server uses itself; OSF registry number, 0 if none.
    pub native: u32,
    /// What else it takes.
    pub conversion: Vec<u32>,
}

/// Content of TAG_CODE_SETS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeSetInfo {
    /// For char and string.
    pub char_data: CodeSetChoice,
    /// For wchar and wstring.
    pub wchar_data: CodeSetChoice,
}

/// ISO 8859-1 in the OSF registry.
pub const CODE_SET_LATIN_1: u32 = 0x0001_0001;
/// UTF-8 in the OSF registry.
pub const CODE_SET_UTF_8: u32 = 0x0501_0001;
/// UTF-16 in the OSF registry.
pub const CODE_SET_UTF_16: u32 = 0x0001_0109;

impl CodeSetInfo {
    /// What every ORB in use takes: ISO 8859-1 or UTF-8, and UTF-16. A reference without code
    /// sets keeps clients from sending wide strings at all.
    #[must_use]
    pub fn usual() -> Self {
        let char_data =
            CodeSetChoice { native: CODE_SET_LATIN_1, conversion: [CODE_SET_UTF_8].into() };
        let wchar_data =
            CodeSetChoice { native: CODE_SET_UTF_16, conversion: [CODE_SET_UTF_16].into() };
        Self { char_data, wchar_data }
    }
}

/// Content of TAG_FT_GROUP: which object group, and which version of its reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FtGroup {
    /// The fault tolerance domain; in ISO 8859-1 or UTF-8, opaque to us.
    pub domain_id: Vec<u8>,
    /// The group, unique in its domain.
    pub group_id: u64,
    /// Counts up with every change of the reference.
    pub reference_version: u32,
}

impl FtGroup {
    /// Whether both are references of the same group, of whatever versions (FT-CORBA §23.2.3).
    #[must_use]
    pub fn is_same_group(&self, other: &Self) -> bool {
        (&self.domain_id, self.group_id) == (&other.domain_id, other.group_id)
    }
}

/// Content of TAG_SSL_SEC_TRANS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SslTransport {
    /// Association options that the server can keep; [`SslTransport::PROTECTION`] and others.
    pub supports: u16,
    /// Those that it insists on.
    pub requires: u16,
    /// The port for TLS, at the profile's host.
    pub port: u16,
}

impl SslTransport {
    /// Nothing is protected: plain IIOP is served, too.
    pub const NO_PROTECTION: u16 = 1;
    /// What TLS gives: integrity, confidentiality, and no message twice, out of order or lost.
    pub const PROTECTION: u16 = 2 | 4 | 8 | 16;
    /// The server shows who it is.
    pub const TRUST_IN_TARGET: u16 = 32;
    /// The client does.
    pub const TRUST_IN_CLIENT: u16 = 64;
}

/// A component that is understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ComponentValue {
    /// The vendor's number of the ORB that made the reference.
    OrbType(u32),
    /// Code sets that the server takes.
    CodeSets(CodeSetInfo),
    /// One more address for the profile's key.
    AlternateAddress {
        /// Name or number, without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// TLS at another port of the profile's host.
    SslTransport(SslTransport),
    /// The object group.
    FtGroup(FtGroup),
    /// Whether the profile is of the primary.
    FtPrimary(bool),
    /// Whether the server answers heartbeats.
    FtHeartbeatEnabled(bool),
}

impl Component {
    /// What it says; `None` if its tag is not one of those that are understood.
    #[must_use]
    pub fn value(&self) -> Option<Result<ComponentValue, MessageError>> {
        let read: fn(&mut Reader<'_>) -> Result<ComponentValue, MessageError> = match self.tag {
            TAG_ORB_TYPE => |reader| Ok(ComponentValue::OrbType(reader.read_u32("ORB type")?)),
            TAG_CODE_SETS => |reader| read_code_sets(reader).map(ComponentValue::CodeSets),
            TAG_ALTERNATE_IIOP_ADDRESS => |reader| {
                let host = read_host(reader)?;
                Ok(ComponentValue::AlternateAddress { host, port: reader.read_u16("port")? })
            },
            TAG_SSL_SEC_TRANS => |reader| {
                let supports = reader.read_u16("options")?;
                let requires = reader.read_u16("options")?;
                let port = reader.read_u16("port")?;
                Ok(ComponentValue::SslTransport(SslTransport { supports, requires, port }))
            },
            TAG_FT_GROUP => |reader| read_group(reader).map(ComponentValue::FtGroup),
            TAG_FT_PRIMARY => {
                |reader| Ok(ComponentValue::FtPrimary(reader.read_bool("primary flag")?))
            }
            TAG_FT_HEARTBEAT_ENABLED => {
                |reader| Ok(ComponentValue::FtHeartbeatEnabled(reader.read_bool("heartbeat flag")?))
            }
            _ => return None,
        };
        Some(Reader::encapsulation(&self.data).and_then(|mut reader| read(&mut reader)))
    }

    /// The other address that it names, if it is a well-formed one of these.
    #[must_use]
    pub fn alternate_address(&self) -> Option<(String, u16)> {
        match self.value()? {
            Ok(ComponentValue::AlternateAddress { host, port }) => Some((host, port)),
            _ => None,
        }
    }
}

impl ComponentValue {
    /// The component that says it.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Component {
        let mut writer = Writer::encapsulation(endian);
        let tag = match self {
            Self::OrbType(number) => {
                writer.write_u32(*number);
                TAG_ORB_TYPE
            }
            Self::CodeSets(info) => {
                for choice in [&info.char_data, &info.wchar_data] {
                    writer.write_u32(choice.native);
                    writer.write_count(choice.conversion.len());
                    choice.conversion.iter().for_each(|set| writer.write_u32(*set));
                }
                TAG_CODE_SETS
            }
            Self::AlternateAddress { host, port } => {
                writer.write_string(host.as_bytes());
                writer.write_u16(*port);
                TAG_ALTERNATE_IIOP_ADDRESS
            }
            Self::SslTransport(SslTransport { supports, requires, port }) => {
                [*supports, *requires, *port].into_iter().for_each(|it| writer.write_u16(it));
                TAG_SSL_SEC_TRANS
            }
            Self::FtGroup(group) => {
                // The version of the component, which is 1.0 whatever the version of GIOP.
                writer.write_raw(&[Version::V1_0.major, Version::V1_0.minor]);
                writer.write_string(&group.domain_id);
                writer.write_u64(group.group_id);
                writer.write_u32(group.reference_version);
                TAG_FT_GROUP
            }
            Self::FtPrimary(primary) => {
                writer.write_bool(*primary);
                TAG_FT_PRIMARY
            }
            Self::FtHeartbeatEnabled(enabled) => {
                writer.write_bool(*enabled);
                TAG_FT_HEARTBEAT_ENABLED
            }
        };
        Component { tag, data: writer.finish() }
    }
}

/// A host name; it has to be text, or nobody could look it up.
pub(super) fn read_host(reader: &mut Reader<'_>) -> Result<String, MessageError> {
    let offset = reader.position();
    let host = reader.read_string(HOST_BYTES_MAX, "host")?;
    core::str::from_utf8(host).map(String::from).map_err(|_| MessageError {
        what: "host",
        offset,
        fault: Fault::Value,
    })
}

fn read_code_sets(reader: &mut Reader<'_>) -> Result<CodeSetInfo, MessageError> {
    let char_data = read_choice(reader)?;
    Ok(CodeSetInfo { char_data, wchar_data: read_choice(reader)? })
}

fn read_choice(reader: &mut Reader<'_>) -> Result<CodeSetChoice, MessageError> {
    let native = reader.read_u32("native code set")?;
    let count = reader.read_count(4, CODE_SETS_MAX, "conversion code sets")?;
    let conversion =
        (0..count).map(|_| reader.read_u32("conversion code set")).collect::<Result<_, _>>()?;
    Ok(CodeSetChoice { native, conversion })
}

fn read_group(reader: &mut Reader<'_>) -> Result<FtGroup, MessageError> {
    reader.take(2, "component version")?;
    let domain_id = reader.read_string(HOST_BYTES_MAX, "domain id")?.to_vec();
    let group_id = reader.read_u64("group id")?;
    Ok(FtGroup { domain_id, group_id, reference_version: reader.read_u32("group version")? })
}

/// Reads components into `components` up to the first that is malformed.
pub(super) fn read_all(
    reader: &mut Reader<'_>,
    components: &mut Vec<Component>,
) -> Result<(), MessageError> {
    for _ in 0..reader.read_count(8, COMPONENTS_MAX, "components")? {
        let tag = reader.read_u32("component tag")?;
        let data = reader.read_octets(PROFILE_BYTES_MAX, "component data")?.to_vec();
        components.push(Component { tag, data });
    }
    Ok(())
}

pub(super) fn write_all(writer: &mut Writer, components: &[Component]) {
    writer.write_count(components.len());
    for component in components {
        writer.write_u32(component.tag);
        writer.write_octets(&component.data);
    }
}
