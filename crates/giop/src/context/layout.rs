//! Whether the data of a service context is what its id says.
//!
//! What it is not: a reader of what it says. Invariants: nothing is copied; ids whose layout no
//! standard gives are taken as they are, and so is whatever stands behind what the layout names.

use super::{
    BI_DIR_IIOP, CODE_SETS, FT_GROUP_VERSION, FT_REQUEST, INVOCATION_POLICIES,
    RMI_CUSTOM_MAX_STREAM_FORMAT, RT_CORBA_PRIORITY, SECURITY_ATTRIBUTE_SERVICE,
    SENDING_CONTEXT_RUN_TIME, TRANSACTION_SERVICE,
};
use crate::cdr::Reader;
use crate::error::MessageError;
use crate::limits::{CLIENT_ID_BYTES_MAX, HOST_BYTES_MAX, REFERENCE_BYTES_MAX};
use crate::target::skip_reference;

/// Listen points, policies, transactions or authorizations of one context.
const ITEMS_MAX: usize = 1024;

type Outcome = Result<(), MessageError>;

/// Checks that a context of a request can be read, as far as the standard says what is in it
/// (GIOP §13.7.1; all are encapsulations).
///
/// # Errors
/// If it cannot.
pub fn check(id: u32, data: &[u8]) -> Outcome {
    let layout = match id {
        TRANSACTION_SERVICE => transaction,
        CODE_SETS => code_sets,
        BI_DIR_IIOP => listen_points,
        SENDING_CONTEXT_RUN_TIME => skip_reference,
        INVOCATION_POLICIES => policies,
        RT_CORBA_PRIORITY => |reader: &mut Reader<'_>| reader.read_i16("priority").map(drop),
        FT_GROUP_VERSION => |reader: &mut Reader<'_>| reader.read_u32("version").map(drop),
        FT_REQUEST => ft_request,
        SECURITY_ATTRIBUTE_SERVICE => security,
        RMI_CUSTOM_MAX_STREAM_FORMAT => {
            |reader: &mut Reader<'_>| reader.read_u8("stream format").map(drop)
        }
        _ => return Ok(()),
    };
    layout(&mut Reader::encapsulation(data)?)
}

/// CONV_FRAME::CodeSetContext (GIOP §13.10.2.6).
fn code_sets(reader: &mut Reader<'_>) -> Outcome {
    reader.read_u32("char code set")?;
    reader.read_u32("wchar code set").map(drop)
}

/// FT::FTRequestServiceContext (FT-CORBA §23.2.8.1).
fn ft_request(reader: &mut Reader<'_>) -> Outcome {
    reader.read_string(CLIENT_ID_BYTES_MAX, "client id")?;
    reader.read_i32("retention id")?;
    reader.read_u64("expiration time").map(drop)
}

/// IIOP::BiDirIIOPServiceContext (GIOP §15.8).
fn listen_points(reader: &mut Reader<'_>) -> Outcome {
    for _ in 0..reader.read_count(6, ITEMS_MAX, "listen points")? {
        reader.read_string(HOST_BYTES_MAX, "host")?;
        reader.read_u16("port")?;
    }
    Ok(())
}

/// Messaging::PolicyValueSeq (CORBA §22.2.2).
fn policies(reader: &mut Reader<'_>) -> Outcome {
    for _ in 0..reader.read_count(8, ITEMS_MAX, "policies")? {
        reader.read_u32("policy type")?;
        reader.read_octets(usize::MAX, "policy value")?;
    }
    Ok(())
}

/// CosTransactions::PropagationContext (Transaction Service §2.11), or the string that Narayana
/// can be told to send instead: the coordinator's reference.
fn transaction(reader: &mut Reader<'_>) -> Outcome {
    let mut other = reader.clone();
    propagation(reader).or_else(|error| match other.read_string(REFERENCE_BYTES_MAX, "reference") {
        Ok([b'I', b'O', b'R', b':', ..]) => Ok(()),
        _ => Err(error),
    })
}

fn propagation(reader: &mut Reader<'_>) -> Outcome {
    reader.read_u32("timeout")?;
    identity_of_transaction(reader)?;
    for _ in 0..reader.read_count(32, ITEMS_MAX, "parents")? {
        identity_of_transaction(reader)?;
    }
    // What is in the `any` is the transaction service's own.
    reader.read_u32("type of implementation_specific_data").map(drop)
}

fn identity_of_transaction(reader: &mut Reader<'_>) -> Outcome {
    skip_reference(reader)?;
    skip_reference(reader)?;
    reader.read_i32("formatID")?;
    reader.read_i32("bqual_length")?;
    reader.read_octets(usize::MAX, "tid").map(drop)
}

/// CSI::SASContextBody (CORBA §24.2.3), as far as it stands in requests.
fn security(reader: &mut Reader<'_>) -> Outcome {
    /// MTEstablishContext, MTMessageInContext.
    const ESTABLISH: u16 = 0;
    const IN_CONTEXT: u16 = 5;
    match reader.read_u16("SAS message type")? {
        ESTABLISH => {
            reader.read_u64("client context id")?;
            for _ in 0..reader.read_count(8, ITEMS_MAX, "authorization elements")? {
                reader.read_u32("authorization element type")?;
                reader.read_octets(usize::MAX, "authorization element")?;
            }
            match reader.read_u32("identity token type")? {
                // ITTAbsent, ITTAnonymous.
                0 | 1 => reader.read_bool("identity token").map(drop)?,
                _ => reader.read_octets(usize::MAX, "identity token").map(drop)?,
            }
            reader.read_octets(usize::MAX, "client authentication token").map(drop)
        }
        IN_CONTEXT => {
            reader.read_u64("client context id")?;
            reader.read_bool("discard context").map(drop)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::Writer;
    use crate::context::{CodeSets, FtRequest, GroupVersion};
    use crate::version::Endian;
    use alloc::vec::Vec;

    fn nil(cdr: &mut Writer) {
        cdr.write_string(b"");
        cdr.write_count(0);
    }

    fn reference(cdr: &mut Writer) {
        cdr.write_string(b"IDL:omg.org/SendingContext/CodeBase:1.0");
        cdr.write_count(2);
        for (tag, data) in [(0, &b"an IIOP profile"[..]), (1, b"x")] {
            cdr.write_u32(tag);
            cdr.write_octets(data);
        }
    }

    fn identity(cdr: &mut Writer) {
        reference(cdr);
        nil(cdr);
        cdr.write_i32(0x4a54);
        cdr.write_i32(1);
        cdr.write_octets(b"tid");
    }

    fn encapsulated(endian: Endian, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut cdr = Writer::encapsulation(endian);
        write(&mut cdr);
        cdr.finish()
    }

    /// Contexts as the standard has them, and how long one of them must be at least.
    fn contexts(endian: Endian) -> Vec<(u32, Vec<u8>)> {
        let of = |write: fn(&mut Writer)| encapsulated(endian, write);
        let client_id = b"client".to_vec();
        let ft = FtRequest { client_id, retention_id: 1, expiration_time: u64::MAX };
        [
            (
                TRANSACTION_SERVICE,
                of(|cdr| {
                    cdr.write_u32(60);
                    identity(cdr);
                    cdr.write_count(1);
                    identity(cdr);
                    cdr.write_u32(0);
                }),
            ),
            (TRANSACTION_SERVICE, of(|cdr| cdr.write_string(b"IOR:00000000"))),
            (CODE_SETS, CodeSets { char_data: 1, wchar_data: 2 }.encode(endian)),
            (
                BI_DIR_IIOP,
                of(|cdr| {
                    cdr.write_count(2);
                    for port in [1234, 4321] {
                        cdr.write_string(b"host");
                        cdr.write_u16(port);
                    }
                }),
            ),
            (SENDING_CONTEXT_RUN_TIME, of(reference)),
            (
                INVOCATION_POLICIES,
                of(|cdr| {
                    cdr.write_count(1);
                    cdr.write_u32(27);
                    cdr.write_octets(b"data");
                }),
            ),
            (RT_CORBA_PRIORITY, of(|cdr| cdr.write_i16(-1))),
            (FT_GROUP_VERSION, GroupVersion(3).encode(endian)),
            (FT_REQUEST, ft.encode(endian)),
            (
                SECURITY_ATTRIBUTE_SERVICE,
                of(|cdr| {
                    cdr.write_u16(0);
                    cdr.write_u64(0);
                    cdr.write_count(0);
                    cdr.write_u32(0);
                    cdr.write_bool(true);
                    cdr.write_octets(b"token");
                }),
            ),
            (
                SECURITY_ATTRIBUTE_SERVICE,
                of(|cdr| {
                    cdr.write_u16(5);
                    cdr.write_u64(7);
                    cdr.write_bool(false);
                }),
            ),
            (RMI_CUSTOM_MAX_STREAM_FORMAT, of(|cdr| cdr.write_u8(2))),
        ]
        .into()
    }

    #[test]
    fn a_context_is_taken_whole_and_with_octets_behind_it_and_not_cut() {
        for endian in [Endian::Big, Endian::Little] {
            for (id, data) in contexts(endian) {
                assert_eq!(check(id, &data), Ok(()), "{id}");
                let mut more = data.clone();
                more.extend([0xff; 5]);
                assert_eq!(check(id, &more), Ok(()), "{id} with octets behind it");
                for length in 0..data.len() {
                    assert!(check(id, &data[..length]).is_err(), "{id} cut to {length}");
                }
                let mut other = data.clone();
                other[0] = 2;
                assert!(check(id, &other).is_err(), "{id} in no byte order");
            }
        }
    }

    #[test]
    fn a_count_in_a_context_is_not_believed() {
        for id in [BI_DIR_IIOP, INVOCATION_POLICIES] {
            let endless = encapsulated(Endian::Big, |cdr| cdr.write_u32(u32::MAX));
            assert!(check(id, &endless).is_err(), "{id}");
        }
        let endless = encapsulated(Endian::Big, |cdr| {
            cdr.write_string(b"");
            cdr.write_u32(0x4000_0000);
        });
        assert!(check(SENDING_CONTEXT_RUN_TIME, &endless).is_err());
    }

    #[test]
    fn of_other_contexts_nothing_is_known() {
        for id in [2, 3, 9, 14, 0x5151_0000] {
            assert_eq!(check(id, &[]), Ok(()), "{id}");
        }
    }
}
