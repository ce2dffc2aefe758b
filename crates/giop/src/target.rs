//! Whom a Request or LocateRequest addresses.
//!
//! Invariant: what was read here can be written again, at any place in a message.

use crate::cdr::{Reader, Writer};
use crate::error::{Fault, MessageError};
use crate::limits::{HOST_BYTES_MAX, OBJECT_KEY_BYTES_MAX, PROFILES_MAX, TYPE_ID_BYTES_MAX};
use crate::version::{Endian, Version};

/// TAG_INTERNET_IOP (GIOP §15.7.2).
const IIOP: u32 = 0;

/// Whom a request addresses (GIOP §15.4.2.2).
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// By object key: the usual way, and the only one before GIOP 1.2.
    Key(&'a [u8]),
    /// By a profile of its reference.
    Profile {
        /// Its tag.
        tag: u32,
        /// Its encapsulated data.
        data: &'a [u8],
    },
    /// By its whole reference.
    Reference {
        /// The profile that the client selected.
        index: u32,
        /// The IOR. All parts of it align to 4 at most, and it begins at a multiple of that.
        ior: &'a [u8],
        /// Its byte order, which is the message's.
        endian: Endian,
    },
}

impl<'a> Target<'a> {
    pub(crate) fn read(version: Version, reader: &mut Reader<'a>) -> Result<Self, MessageError> {
        if version < Version::V1_2 {
            return Ok(Self::Key(reader.read_octets(OBJECT_KEY_BYTES_MAX, "object key")?));
        }
        let offset = reader.position();
        match reader.read_u16("target address kind")? {
            0 => Ok(Self::Key(reader.read_octets(OBJECT_KEY_BYTES_MAX, "object key")?)),
            1 => Ok(Self::Profile {
                tag: reader.read_u32("profile tag")?,
                data: reader.read_octets(OBJECT_KEY_BYTES_MAX, "profile data")?,
            }),
            2 => {
                let index = reader.read_u32("profile index")?;
                let mut from = reader.clone();
                skip_reference(reader)?;
                let length = reader.position().saturating_sub(from.position());
                Ok(Self::Reference { index, ior: from.take(length, "IOR")?, endian: from.endian() })
            }
            _ => {
                let fault = Fault::Value;
                Err(MessageError { what: "target address kind", offset, fault })
            }
        }
    }

    /// Whether what stands there is one of the other ways to address an object, and not a key.
    pub(crate) fn is_no_key(version: Version, mut reader: Reader<'_>) -> bool {
        version >= Version::V1_2
            && reader.read_u16("target address kind").is_ok_and(|kind| kind != 0)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        match *self {
            Target::Key(key) => {
                writer.write_u16(0);
                writer.write_octets(key);
            }
            Target::Profile { tag, data } => {
                writer.write_u16(1);
                writer.write_u32(tag);
                writer.write_octets(data);
            }
            Target::Reference { index, ior, .. } => {
                writer.write_u16(2);
                writer.write_u32(index);
                writer.write_raw(ior);
            }
        }
    }

    /// The object key, also out of a profile or reference: that of the selected profile, or of the
    /// first IIOP profile if the selected one is of another protocol, for all profiles of a
    /// reference name one object. `None` if there is no such profile, it cannot be read, or none
    /// has the selected number.
    #[must_use]
    pub fn object_key(&self) -> Option<&'a [u8]> {
        match *self {
            Target::Key(key) => Some(key),
            Target::Profile { tag, data } => key_of_profile(tag, data),
            Target::Reference { index, ior, endian } => {
                let mut reader = Reader::new(ior, endian);
                reader.read_string(TYPE_ID_BYTES_MAX, "type id").ok()?;
                let count = reader.read_count(8, PROFILES_MAX, "profiles").ok()?;
                let selected = usize::try_from(index).ok().filter(|index| *index < count)?;
                let mut first = None;
                for position in 0..count {
                    let tag = reader.read_u32("profile tag").ok()?;
                    let data = reader.read_octets(OBJECT_KEY_BYTES_MAX, "profile data").ok()?;
                    if position == selected && tag == IIOP {
                        return key_of_profile(tag, data);
                    }
                    first = first.or_else(|| key_of_profile(tag, data));
                }
                first
            }
        }
    }
}

/// An IOR (CORBA §13.6.2), whose profiles are not looked into.
pub(crate) fn skip_reference(reader: &mut Reader<'_>) -> Result<(), MessageError> {
    reader.read_string(TYPE_ID_BYTES_MAX, "type id")?;
    for _ in 0..reader.read_count(8, PROFILES_MAX, "profiles")? {
        reader.read_u32("profile tag")?;
        reader.read_octets(OBJECT_KEY_BYTES_MAX, "profile data")?;
    }
    Ok(())
}

/// The object key of an IIOP profile's data (GIOP §15.7.2).
fn key_of_profile(tag: u32, data: &[u8]) -> Option<&[u8]> {
    if tag != IIOP {
        return None;
    }
    let mut reader = Reader::encapsulation(data).ok()?;
    reader.take(2, "version").ok()?;
    reader.read_string(HOST_BYTES_MAX, "host").ok()?;
    reader.read_u16("port").ok()?;
    reader.read_octets(OBJECT_KEY_BYTES_MAX, "object key").ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::MessageWriter;
    use crate::message::{Body, Message, MessageType, Unaddressed};
    use crate::request::{ResponseFlags, Rewrite};
    use alloc::vec::Vec;

    const CONTEXTS: [(u32, &[u8]); 2] = [(1, b"odd"), (0x5151, b"another")];
    const NUMBER: f64 = 1.5;

    fn profile(key: &[u8], endian: Endian) -> Vec<u8> {
        let mut cdr = Writer::encapsulation(endian);
        cdr.write_raw(&[1, 2]);
        cdr.write_string(b"host");
        cdr.write_u16(2809);
        cdr.write_octets(key);
        cdr.write_count(0);
        cdr.finish()
    }

    fn reference(index: u32, profiles: &[(u32, &[u8])]) -> impl FnOnce(&mut Writer) {
        let profiles: Vec<_> = profiles.iter().map(|(tag, data)| (*tag, data.to_vec())).collect();
        move |cdr| {
            cdr.write_u16(2);
            cdr.write_u32(index);
            cdr.write_string(b"IDL:Bank:1.0");
            cdr.write_count(profiles.len());
            for (tag, data) in profiles {
                cdr.write_u32(tag);
                cdr.write_octets(&data);
            }
        }
    }

    fn request(endian: Endian, operation: &[u8], target: impl FnOnce(&mut Writer)) -> Message {
        let mut writer = MessageWriter::new(Version::V1_2, endian, MessageType::Request);
        writer.cdr.write_u32(7);
        writer.cdr.write_raw(&[3, 0, 0, 0]);
        target(&mut writer.cdr);
        writer.cdr.write_string(operation);
        writer.cdr.write_count(CONTEXTS.len());
        for (id, data) in CONTEXTS {
            writer.cdr.write_u32(id);
            writer.cdr.write_octets(data);
        }
        let mut body = Writer::new(endian);
        body.write_f64(NUMBER);
        body.write_u8(9);
        writer.finish_with_body(&body.finish())
    }

    fn key_of(message: &Message) -> Option<Vec<u8>> {
        let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
        request.object_key().map(<[u8]>::to_vec)
    }

    fn assert_readdressed(message: &Message, key: &[u8], operation: &[u8]) {
        let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
        let found = request.object_key().expect("it has a key");
        let anew = request.rewrite(&Rewrite { object_key: Some(found), ..Rewrite::default() });
        let anew = Message::from_bytes(anew.into_bytes()).expect("the size is right");
        let Ok(Body::Request(anew)) = anew.parse() else { panic!("a request") };
        assert!(matches!(anew.target(), Target::Key(found) if *found == key));
        assert_eq!(anew.operation(), operation);
        assert_eq!((anew.request_id(), anew.response_flags()), (7, ResponseFlags::WithTarget));
        assert!(anew.contexts().eq(CONTEXTS));
        assert_eq!(anew.body_offset() % 8, 0);
        let mut body = Reader::at(anew.message_bytes(), anew.body_offset(), message.endian());
        assert_eq!((body.read_f64("number"), body.read_u8("octet")), (Ok(NUMBER), Ok(9)));
        assert_eq!(body.remaining(), 0);
    }

    #[test]
    fn a_request_by_profile_or_reference_becomes_one_by_key_and_nothing_else_changes() {
        for endian in [Endian::Big, Endian::Little] {
            for length in 0..9 {
                let key = &b"abcdefgh"[..length.min(8)];
                let operation = &b"operation"[..length.max(1)];
                // An encapsulation has its own byte order.
                for inner in [Endian::Big, Endian::Little] {
                    let data = profile(key, inner);
                    let by_profile = request(endian, operation, |cdr| {
                        cdr.write_u16(1);
                        cdr.write_u32(IIOP);
                        cdr.write_octets(&data);
                    });
                    assert_readdressed(&by_profile, key, operation);
                    let other = profile(b"another", inner);
                    let profiles = [(IIOP, &other[..]), (IIOP, &data), (1, b"")];
                    let by_reference = request(endian, operation, reference(1, &profiles));
                    assert_readdressed(&by_reference, key, operation);
                }
            }
        }
    }

    #[test]
    fn of_a_reference_the_selected_iiop_profile_counts() {
        let endian = Endian::Little;
        let (a, b) = (profile(b"a", endian), profile(b"b", endian));
        let key = |index, profiles: &[(u32, &[u8])]| {
            key_of(&request(endian, b"op", reference(index, profiles)))
        };
        assert_eq!(key(0, &[(IIOP, &a), (IIOP, &b)]), Some(b"a".to_vec()));
        assert_eq!(key(1, &[(IIOP, &a), (IIOP, &b)]), Some(b"b".to_vec()));
        assert_eq!(key(0, &[(1, b""), (IIOP, &b)]), Some(b"b".to_vec()), "of another protocol");
        assert_eq!(key(2, &[(IIOP, &a), (IIOP, &b)]), None, "no such profile");
        assert_eq!(key(u32::MAX, &[(IIOP, &a)]), None, "no such profile");
        assert_eq!(key(0, &[(1, b"")]), None, "none of IIOP");
        assert_eq!(key(0, &[(IIOP, &a[..9]), (IIOP, &b)]), None, "one that is cut");
        assert_eq!(key(0, &[]), None, "a nil reference");
    }

    #[test]
    fn a_target_that_cannot_be_read_does_not_hide_who_asks() {
        let endless: fn(&mut Writer) = |cdr| {
            cdr.write_u16(2);
            cdr.write_u32(0);
            cdr.write_u32(u32::MAX);
        };
        let unknown: fn(&mut Writer) = |cdr| cdr.write_u16(3);
        let profile: fn(&mut Writer) = |cdr| {
            cdr.write_u16(1);
            cdr.write_u32(0);
            cdr.write_u32(1 << 30);
        };
        let asked = Some(Unaddressed::Call { request_id: 7 });
        for target in [endless, unknown, profile] {
            let message = request(Endian::Big, b"op", target);
            assert!(message.parse().is_err());
            assert_eq!(message.unaddressed(), asked);
        }
        let key: fn(&mut Writer) = |cdr| {
            cdr.write_u16(0);
            cdr.write_u32(u32::MAX);
        };
        assert_eq!(request(Endian::Big, b"op", key).unaddressed(), None);
    }
}
