//! Service contexts that Quorba reads: code sets and the FT ones. All are encapsulations.

mod layout;

pub use layout::check;

use crate::cdr::{Reader, Writer};
use crate::error::MessageError;
use crate::ior::{CODE_SET_UTF_8, CODE_SET_UTF_16};
use crate::limits::CLIENT_ID_BYTES_MAX;
use crate::version::Endian;
use alloc::vec::Vec;

/// TransactionService (Transaction Service §2.11).
pub const TRANSACTION_SERVICE: u32 = 0;
/// CodeSets (GIOP §13.10.2.6).
pub const CODE_SETS: u32 = 1;
/// BI_DIR_IIOP: where the client listens, so that its connection may be used for calls to it
/// (GIOP §15.8).
pub const BI_DIR_IIOP: u32 = 5;
/// SendingContextRunTime: the client's code base (CORBA §5.6.1).
pub const SENDING_CONTEXT_RUN_TIME: u32 = 6;
/// INVOCATION_POLICIES (CORBA §22.2.2).
pub const INVOCATION_POLICIES: u32 = 7;
/// RTCorbaPriority (Real-time CORBA §1.4.5).
pub const RT_CORBA_PRIORITY: u32 = 10;
/// FT_GROUP_VERSION (FT-CORBA §23.2.7.1).
pub const FT_GROUP_VERSION: u32 = 12;
/// FT_REQUEST (FT-CORBA §23.2.8.1).
pub const FT_REQUEST: u32 = 13;
/// How many replicas must have a change before its caller goes on (Huang05 §3.4). TAO's own number;
/// the OMG has given it to nobody.
pub const FT_TRANSACTION_DEPTH: u32 = 30;
/// SecurityAttributeService (CORBA §24.2.2).
pub const SECURITY_ATTRIBUTE_SERVICE: u32 = 15;
/// FT_FORWARD: a newer reference in a reply (FTRT); not registered with the OMG, and not an
/// encapsulation: the reference is written in the message's byte order.
pub const FT_FORWARD: u32 = 32;
/// The same request may have been executed before, under the same FT_REQUEST, by the wish of
/// another node of Quorba whose answer was lost; it has no data. A number of ours, as minor codes
/// are.
pub const CALL_IN_DOUBT: u32 = crate::QUORBA_VMCID | 1;
/// RMICustomMaxStreamFormat: how the client reads custom Java objects (Java to IDL §1.4.10).
pub const RMI_CUSTOM_MAX_STREAM_FORMAT: u32 = 17;

/// TimeT of the POSIX epoch: 100 ns since 1582-10-15 (TimeBase §2.1).
pub const TIME_T_OF_UNIX_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// Which code sets a client uses on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeSets {
    /// For char and string.
    pub char_data: u32,
    /// For wchar and wstring.
    pub wchar_data: u32,
}

impl CodeSets {
    /// What a client of ours sends: UTF-8, and UTF-16 for wide characters.
    pub const UTF: Self = Self { char_data: CODE_SET_UTF_8, wchar_data: CODE_SET_UTF_16 };

    /// Reads the context's data.
    ///
    /// # Errors
    /// If it is no such context.
    pub fn decode(data: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::encapsulation(data)?;
        let char_data = reader.read_u32("char code set")?;
        Ok(Self { char_data, wchar_data: reader.read_u32("wchar code set")? })
    }

    /// The context's data.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut writer = Writer::encapsulation(endian);
        writer.write_u32(self.char_data);
        writer.write_u32(self.wchar_data);
        writer.finish()
    }
}

/// A client's own name for a request, the same in every repetition of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FtRequest {
    /// Unique per client ORB, opaque.
    pub client_id: Vec<u8>,
    /// Unique per request of that client.
    pub retention_id: i32,
    /// Until when the client may repeat it, TimeT; some clients count from 1970.
    pub expiration_time: u64,
}

impl FtRequest {
    /// Reads the context's data.
    ///
    /// # Errors
    /// If it is no such context.
    pub fn decode(data: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::encapsulation(data)?;
        let client_id = reader.read_string(CLIENT_ID_BYTES_MAX, "client id")?.to_vec();
        let retention_id = reader.read_i32("retention id")?;
        let expiration_time = reader.read_u64("expiration time")?;
        Ok(Self { client_id, retention_id, expiration_time })
    }

    /// The context's data.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut writer = Writer::encapsulation(endian);
        writer.write_string(&self.client_id);
        writer.write_i32(self.retention_id);
        writer.write_u64(self.expiration_time);
        writer.finish()
    }
}

/// Which version of a group's reference the client used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupVersion(pub u32);

impl GroupVersion {
    /// Reads the context's data. TAO can be told to send the whole TAG_FT_GROUP body instead,
    /// which is longer than the 8 octets of the standard's form.
    ///
    /// # Errors
    /// If it is neither.
    pub fn decode(data: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::encapsulation(data)?;
        if data.len() > 8 {
            reader.take(2, "component version")?;
            reader.read_string(CLIENT_ID_BYTES_MAX, "domain id")?;
            reader.read_u64("group id")?;
        }
        Ok(Self(reader.read_u32("group version")?))
    }

    /// The context's data.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut writer = Writer::encapsulation(endian);
        writer.write_u32(self.0);
        writer.finish()
    }
}

/// How many replicas must have what is called before the caller goes on (Huang05 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionDepth(pub u32);

impl TransactionDepth {
    /// Reads the context's data; none if it is something else: the number is no standard one.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let mut reader = Reader::encapsulation(data).ok()?;
        let depth = reader.read_i32("transaction depth").ok()?;
        let is_whole = reader.remaining() == 0;
        u32::try_from(depth).ok().filter(|depth| is_whole && *depth > 0).map(Self)
    }

    /// The context's data.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut writer = Writer::encapsulation(endian);
        writer.write_i32(i32::try_from(self.0).unwrap_or(i32::MAX));
        writer.finish()
    }
}
