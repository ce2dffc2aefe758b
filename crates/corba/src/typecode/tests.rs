//! TypeCodes, built and read.

use alloc::vec;

use super::*;
use crate::codec::Coding;
use quorba_giop::Version;

const CODING: Coding = Coding::plain(Version::V1_2);

fn decoded(octets: &[u8], endian: Endian) -> Result<TypeCode, MessageError> {
    TypeCode::read(&mut Decoder::new(Reader::new(octets, endian), CODING))
}

fn encoded(type_code: &TypeCode, endian: Endian) -> Vec<u8> {
    let mut to = Encoder::new(endian, CODING);
    to.write(type_code);
    to.finish(quorba_giop::Completion::No).expect("written")
}

/// A list: a struct that has a sequence of itself.
fn list() -> TypeCode {
    let kids = TypeCode::sequence(&TypeCode::recursive("IDL:List:1.0"), 0);
    let members = [("value", TypeCode::basic(Kind::Long)), ("kids", kids)];
    TypeCode::structure("IDL:List:1.0", "List", &members)
}

fn samples() -> Vec<TypeCode> {
    let point = [("x", TypeCode::basic(Kind::Double)), ("y", TypeCode::basic(Kind::Float))];
    let point = TypeCode::structure("IDL:Point:1.0", "Point", &point);
    let colour = TypeCode::enumeration("IDL:Colour:1.0", "Colour", &["red", "green"]);
    let arms = [
        (0, "point", point.clone()),
        (1, "text", TypeCode::string(9)),
        (0, "other", TypeCode::basic(Kind::Any)),
    ];
    let short = TypeCode::basic(Kind::Short);
    vec![
        TypeCode::basic(Kind::Null),
        TypeCode::basic(Kind::ULongLong),
        TypeCode::string(0),
        TypeCode::wstring(7),
        TypeCode::object("IDL:omg.org/CosNaming/NamingContext:1.0", "NamingContext"),
        TypeCode::sequence(&point, 3),
        TypeCode::array(&TypeCode::basic(Kind::Octet), 16),
        TypeCode::alias("IDL:Name:1.0", "Name", &TypeCode::sequence(&colour, 0)),
        TypeCode::union("IDL:U:1.0", "U", &colour, Some(2), &arms),
        TypeCode::union("IDL:S:1.0", "S", &short, None, arms.get(..2).expect("two arms")),
        TypeCode::exception("IDL:Empty:1.0", "Empty", &[]),
        list(),
        TypeCode::structure("IDL:Outer:1.0", "Outer", &[("a", list()), ("b", list())]),
    ]
}

#[test]
fn what_is_built_is_read_as_the_same_in_both_byte_orders() {
    for sample in samples() {
        for endian in [Endian::Little, Endian::Big] {
            let octets = encoded(&sample, endian);
            let read = decoded(&octets, endian).expect("a TypeCode");
            assert_eq!(read.kind(), sample.kind());
            assert!(read.is_equivalent(&sample), "{sample:?}");
            assert_eq!(read.id(), sample.id());
            assert_eq!(encoded(&read, endian), octets, "passed on as it came");
            let there_and_back = decoded(&encoded(&read, Endian::Little), Endian::Little);
            assert!(there_and_back.expect("a TypeCode").is_equivalent(&sample));
        }
    }
}

#[test]
fn every_sample_is_equivalent_to_itself_only() {
    let samples = samples();
    for (index, one) in samples.iter().enumerate() {
        for (other_index, other) in samples.iter().enumerate() {
            assert_eq!(one.is_equivalent(other), index == other_index, "{one:?} {other:?}");
        }
    }
}

#[test]
fn aliases_and_names_do_not_count() {
    let plain = TypeCode::sequence(&TypeCode::basic(Kind::Long), 0);
    let alias = TypeCode::alias("IDL:A:1.0", "A", &plain);
    let twice = TypeCode::alias("IDL:B:1.0", "B", &alias);
    assert!(plain.is_equivalent(&twice) && twice.is_equivalent(&plain));
    let struct_of = |id: &str, name: &str| {
        TypeCode::structure(id, name, &[(name, TypeCode::basic(Kind::Long))])
    };
    assert!(struct_of("", "a").is_equivalent(&struct_of("", "b")), "the structure counts");
    assert!(struct_of("", "a").is_equivalent(&struct_of("IDL:X:1.0", "b")));
    assert!(!struct_of("IDL:Y:1.0", "a").is_equivalent(&struct_of("IDL:X:1.0", "a")));
}

#[test]
fn recursion_and_repetition_by_indirection_are_read() {
    // struct { Point first; Point second; } where the second is said by its distance.
    let mut parameters = Writer::encapsulation(Endian::Big);
    parameters.write_string(b"IDL:Pair:1.0");
    parameters.write_string(b"Pair");
    parameters.write_u32(2);
    parameters.write_string(b"first");
    let sample = TypeCode::array(&TypeCode::basic(Kind::Short), 2);
    parameters.align(4);
    let first = parameters.position();
    sample.write_octets(&mut parameters);
    parameters.write_string(b"second");
    parameters.write_u32(INDIRECTION);
    let here = parameters.position();
    parameters.write_i32(i32::try_from(first).unwrap() - i32::try_from(here).unwrap());
    let parameters = parameters.finish();
    let mut whole = Writer::new(Endian::Little);
    whole.write_u32(Kind::Struct.number());
    whole.write_octets(&parameters);
    let octets = whole.finish();
    let read = decoded(&octets, Endian::Little).expect("a TypeCode");
    let plain = [("first", sample.clone()), ("second", sample)];
    assert!(read.is_equivalent(&TypeCode::structure("", "", &plain)));
}

#[test]
fn indirections_that_lead_nowhere_are_refused() {
    for distance in [0, 4, -8, -5, 100, i32::MIN, i32::MAX] {
        let mut parameters = Writer::encapsulation(Endian::Little);
        parameters.write_u32(INDIRECTION);
        parameters.write_i32(distance);
        parameters.write_u32(0);
        let parameters = parameters.finish();
        let mut whole = Writer::new(Endian::Little);
        whole.write_u32(Kind::Sequence.number());
        whole.write_octets(&parameters);
        assert!(decoded(&whole.finish(), Endian::Little).is_err(), "{distance}");
    }
    // A whole TypeCode that is an indirection means one of another value, which is not allowed.
    assert!(decoded(&[0xff; 8], Endian::Little).is_err());
}

#[test]
fn types_are_nested_up_to_the_limit() {
    let nested = |levels: u32| {
        let inner = TypeCode::basic(Kind::Octet);
        (0..levels).fold(inner, |inner, _| TypeCode::sequence(&inner, 0))
    };
    let read = |levels| decoded(&encoded(&nested(levels), Endian::Little), Endian::Little);
    assert!(read(crate::limits::DEPTH_MAX).is_ok());
    assert_eq!(read(crate::limits::DEPTH_MAX + 1).unwrap_err().fault, Fault::OverLimit);
}

#[test]
fn a_long_chain_of_types_by_indirection_is_compared_without_end_of_stack() {
    // struct { T0; seq<T0>; seq<seq<T0>>; ... }, each said by its distance to the one before.
    let mut parameters = Writer::encapsulation(Endian::Little);
    parameters.write_string(b"");
    parameters.write_string(b"");
    let count = 2000_u32;
    parameters.write_u32(count);
    let mut before: Option<usize> = None;
    for _ in 0..count {
        parameters.write_string(b"");
        parameters.align(4);
        let at = parameters.position();
        parameters.write_u32(Kind::Sequence.number());
        parameters.write_u32(16);
        let begin = parameters.position();
        parameters.write_raw(&[1, 0, 0, 0]);
        match before {
            None => {
                parameters.write_u32(Kind::Long.number());
                parameters.write_u32(0);
            }
            Some(before) => {
                parameters.write_u32(INDIRECTION);
                let back = parameters.position() - before;
                parameters.write_i32(-i32::try_from(back).unwrap());
            }
        }
        parameters.write_u32(0);
        let filled = parameters.position() - begin;
        parameters.write_raw(&vec![0; 16 - filled.min(16)]);
        before = Some(at);
    }
    let mut whole = Writer::new(Endian::Little);
    whole.write_u32(Kind::Struct.number());
    whole.write_octets(&parameters.finish());
    let type_code = decoded(&whole.finish(), Endian::Little).expect("a TypeCode");
    assert!(!type_code.is_equivalent(&list()));
    // Too deep to be sure of; what matters is that it ends.
    let _ = type_code.is_equivalent(&type_code);
}

#[test]
fn a_valuetype_is_passed_on() {
    let mut parameters = Writer::encapsulation(Endian::Little);
    for text in ["IDL:V:1.0", "V"] {
        parameters.write_string(text.as_bytes());
    }
    parameters.write_u16(0);
    parameters.write_u32(Kind::Null.number());
    parameters.write_u32(0);
    let mut whole = Writer::new(Endian::Little);
    whole.write_u32(Kind::Value.number());
    whole.write_octets(&parameters.finish());
    let octets = whole.finish();
    let read = decoded(&octets, Endian::Little).expect("a TypeCode");
    assert_eq!(read.kind(), Kind::Value);
    assert_eq!(encoded(&read, Endian::Little), octets);
}
