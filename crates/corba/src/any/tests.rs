//! `any`: in, out, passed on, and what a small one must not cost.

use alloc::string::{String, ToString};
use alloc::vec;

use super::*;
use crate::basic::{Char, LongDouble, WChar};
use crate::object::Object;
use crate::text::WString;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

fn codings() -> impl Iterator<Item = Coding> {
    let sets = [CharSet::Latin1, CharSet::Utf8];
    VERSIONS.into_iter().flat_map(move |version| sets.map(|chars| Coding { version, chars }))
}

fn written(any: &Any, before: usize, endian: Endian, coding: Coding) -> Vec<u8> {
    let mut to = Encoder::new(endian, coding);
    to.writer().write_raw(&vec![0; before]);
    to.write(any);
    to.finish(Completion::No).expect("written")
}

fn read(octets: &[u8], at: usize, endian: Endian, coding: Coding) -> Result<Any, MessageError> {
    Any::read(&mut Decoder::new(Reader::at(octets, at, endian), coding))
}

/// Sends a value through every coding, byte order and alignment, twice each.
fn travels<T: Cdr + Typed + PartialEq + core::fmt::Debug>(value: &T) {
    let any = Any::new(value).expect("a value");
    assert_eq!(any.get::<T>().as_ref(), Some(value));
    for coding in codings() {
        for endian in [Endian::Little, Endian::Big] {
            for before in 0..9 {
                let octets = written(&any, before, endian, coding);
                let read = read(&octets, before, endian, coding).expect("an any");
                assert_eq!(read.get::<T>().as_ref(), Some(value), "{coding:?} {endian:?}");
                assert_eq!(written(&read, before, endian, coding), octets, "as it came");
                let elsewhere = written(&read, 4, Endian::Big, OWN);
                assert_eq!(elsewhere, written(&any, 4, Endian::Big, OWN), "{coding:?} {before}");
            }
        }
    }
}

#[test]
fn values_of_every_basic_type_travel() {
    travels(&-2_i16);
    travels(&2_u16);
    travels(&-3_i32);
    travels(&3_u32);
    travels(&i64::MIN);
    travels(&u64::MAX);
    travels(&1.5_f32);
    travels(&-2.25_f64);
    travels(&true);
    travels(&7_u8);
    travels(&Char(b'x'));
    travels(&WChar(0x20ac));
    travels(&LongDouble(core::array::from_fn(|index| index as u8)));
    travels(&"na\u{ef}ve".to_string());
    travels(&String::new());
    travels(&WString::from("\u{20ac} \u{1f600}"));
    travels(&WString(vec![0xfeff, 0xd800]));
    travels(&vec![1_u8, 2, 3]);
    travels(&vec![vec![1.0_f64], vec![], vec![2.0, 3.0]]);
    travels(&[[1_i16, 2, 3], [4, 5, 6]]);
    travels(&vec!["a".to_string(), String::new()]);
    travels(&Object::nil());
}

#[test]
fn a_type_code_as_a_value_travels() {
    let type_code = TypeCode::sequence(&TypeCode::string(0), 4);
    let octets = written(&Any::new(&type_code).expect("a value"), 0, Endian::Big, OWN);
    let any = read(&octets, 0, Endian::Big, OWN).expect("an any");
    assert!(any.get::<TypeCode>().expect("a TypeCode in it").is_equivalent(&type_code));
}

#[test]
fn an_any_in_an_any_travels() {
    let inner = Any::new(&vec![1_u64, 2]).expect("a value");
    let octets = written(&Any::new(&inner).expect("a value"), 0, Endian::Big, OWN);
    let outer = read(&octets, 0, Endian::Big, OWN).expect("an any");
    let back: Any = outer.get().expect("an any in it");
    assert_eq!(back.get::<Vec<u64>>(), Some(vec![1, 2]));
}

#[test]
fn another_type_is_not_taken_for_it() {
    let any = Any::new(&5_u32).expect("a value");
    assert_eq!(any.get::<i32>(), None);
    assert_eq!(any.get::<String>(), None);
    assert_eq!(Any::new(&"a\0b".to_string()), None, "no string of IDL");
}

#[test]
fn what_is_kept_is_exactly_what_was_there() {
    for before in 0..8 {
        for endian in [Endian::Little, Endian::Big] {
            let coding = Coding::plain(Version::V1_1);
            let any = Any::new(&vec!["x".to_string(), "\u{e9}".to_string()]).expect("a value");
            let octets = written(&any, before, endian, coding);
            let any = read(&octets, before, endian, coding).expect("an any");
            let mut state = Writer::new(Endian::Big);
            any.keep(&mut state);
            let state = state.finish();
            let kept = Any::kept(&mut Reader::new(&state, Endian::Big)).expect("a state");
            assert_eq!(kept, any);
            for cut in 0..state.len() {
                let part = state.get(..cut).expect("shorter");
                assert!(Any::kept(&mut Reader::new(part, Endian::Big)).is_err(), "{cut}");
            }
        }
    }
}

fn refused(type_code: &TypeCode, value: &[u8]) -> MessageError {
    let mut to = Encoder::new(Endian::Little, OWN);
    to.write(type_code);
    to.writer().align(4);
    to.writer().write_raw(value);
    let octets = to.finish(Completion::No).expect("written");
    read(&octets, 0, Endian::Little, OWN).expect_err("too much")
}

#[test]
fn a_type_that_says_much_of_nothing_costs_little() {
    let nothing = || TypeCode::structure("", "", &[]);
    assert_eq!(refused(&TypeCode::array(&nothing(), u32::MAX), &[]).fault, Fault::OverLimit);
    let of_many = TypeCode::sequence(&nothing(), 0);
    assert_eq!(refused(&of_many, &[0xff; 4]).fault, Fault::OverLimit);
    let twice =
        |inner: TypeCode| TypeCode::structure("", "", &[("a", inner.clone()), ("b", inner)]);
    // Two of two of two of nothing: said in full here, and by distances in the test below.
    let doubled = (0..11).fold(nothing(), |inner, _| twice(inner));
    assert!(doubled.octets().len() > 1 << 11);
}

/// A struct of two of the type before, again and again, the second said by its distance.
fn doubled(levels: usize) -> Vec<u8> {
    fn put(to: &mut Writer, base: usize, levels: usize) -> usize {
        to.align(4);
        let at = base + to.position();
        to.write_u32(Kind::Struct.number());
        let mut inside = Writer::encapsulation(Endian::Little);
        let inside_base = at + 8;
        inside.write_string(b"");
        inside.write_string(b"");
        if levels == 0 {
            inside.write_u32(0);
        } else {
            inside.write_u32(2);
            inside.write_string(b"");
            let first = put(&mut inside, inside_base, levels - 1);
            inside.write_string(b"");
            inside.write_u32(u32::MAX);
            let here = inside_base + inside.position();
            inside.write_i32(-i32::try_from(here - first).expect("small"));
        }
        to.write_octets(&inside.finish());
        at
    }
    let mut to = Writer::new(Endian::Little);
    put(&mut to, 0, levels);
    to.finish()
}

#[test]
fn two_of_two_of_two_of_nothing_ends_soon() {
    assert!(read(&doubled(8), 0, Endian::Little, OWN).is_ok(), "511 steps");
    for levels in [20, 40, 60] {
        let octets = doubled(levels);
        assert!(octets.len() < 4000);
        let error = read(&octets, 0, Endian::Little, OWN).expect_err("too many steps");
        assert_eq!(error.fault, Fault::OverLimit, "{levels}");
    }
}

#[test]
fn a_value_that_was_taken_in_can_be_kept_and_written_anywhere() {
    // As many steps without octets as are allowed: what follows in the message does not matter.
    let nothing = TypeCode::structure("", "", &[]);
    let many = TypeCode::array(&nothing, 1000);
    let octets = written_type(&many);
    let any = read(&octets, 0, Endian::Little, OWN).expect("an any");
    let mut state = Writer::new(Endian::Big);
    any.keep(&mut state);
    let state = state.finish();
    assert_eq!(Any::kept(&mut Reader::new(&state, Endian::Big)), Ok(any.clone()));
    assert!(written(&any, 1, Endian::Big, OWN).len() > octets.len());
    let mut longer = written_type(&TypeCode::array(&nothing, 1100));
    longer.extend([0; 4096]);
    assert!(read(&longer, 0, Endian::Little, OWN).is_err(), "and what follows does not help");
}

fn written_type(type_code: &TypeCode) -> Vec<u8> {
    let mut to = Encoder::new(Endian::Little, OWN);
    to.write(type_code);
    to.finish(Completion::No).expect("written")
}

#[test]
fn values_that_contain_themselves_are_nested_up_to_the_limit() {
    let kids = TypeCode::sequence(&TypeCode::recursive("IDL:Tree:1.0"), 0);
    let tree = TypeCode::structure("IDL:Tree:1.0", "Tree", &[("kids", kids)]);
    let nested = |levels: usize| {
        let mut to = Encoder::new(Endian::Little, OWN);
        to.write(&tree);
        (1..levels).for_each(|_| to.write(&1_u32));
        to.write(&0_u32);
        read(&to.finish(Completion::No).expect("written"), 0, Endian::Little, OWN)
    };
    // Two steps down for each level: a struct and a sequence.
    assert!(nested(30).is_ok());
    assert_eq!(nested(40).unwrap_err().fault, Fault::OverLimit);
    let mut anys = Encoder::new(Endian::Little, OWN);
    (0..70).for_each(|_| anys.write(&TypeCode::basic(Kind::Any)));
    anys.write(&TypeCode::basic(Kind::Null));
    let octets = anys.finish(Completion::No).expect("written");
    assert_eq!(read(&octets, 0, Endian::Little, OWN).unwrap_err().fault, Fault::OverLimit);
    // A struct that has itself in it, without a sequence between, has no values at all.
    let endless = TypeCode::recursive("IDL:E:1.0");
    let endless = TypeCode::structure("IDL:E:1.0", "E", &[("e", endless)]);
    assert_eq!(refused(&endless, &[0; 64]).fault, Fault::OverLimit);
}

#[test]
fn values_that_are_not_of_their_type_are_refused() {
    let colour = TypeCode::enumeration("", "", &["red", "green"]);
    assert_eq!(refused(&colour, &[2, 0, 0, 0]).fault, Fault::Value);
    assert_eq!(refused(&TypeCode::basic(Kind::Boolean), &[2]).fault, Fault::Value);
    let two = TypeCode::sequence(&TypeCode::basic(Kind::Octet), 2);
    assert_eq!(refused(&two, &[3, 0, 0, 0, 1, 2, 3]).fault, Fault::OverLimit);
    assert_eq!(refused(&TypeCode::string(1), b"\x03\0\0\0ab\0").fault, Fault::OverLimit);
    assert_eq!(refused(&TypeCode::basic(Kind::Double), &[0; 3]).fault, Fault::Short);
}

#[test]
fn a_union_has_the_arm_of_its_label() {
    let long = TypeCode::basic(Kind::Long);
    let arms = [(1, "a", TypeCode::basic(Kind::Octet)), (7, "b", TypeCode::string(0))];
    let of = |default| {
        let mut arms = arms.to_vec();
        if default {
            arms.push((0, "c", TypeCode::basic(Kind::Double)));
        }
        TypeCode::union("IDL:U:1.0", "U", &long, default.then_some(2), &arms)
    };
    let length = |type_code: &TypeCode, label: i32| {
        let mut to = Encoder::new(Endian::Big, OWN);
        to.write(type_code);
        to.write(&label);
        to.writer().write_raw(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let octets = to.finish(Completion::No).expect("written");
        let any = read(&octets, 0, Endian::Big, OWN).expect("an any");
        any.octets.len() - any.shift
    };
    for default in [false, true] {
        assert_eq!(length(&of(default), 1), 5);
        assert_eq!(length(&of(default), 7), 9);
    }
    assert_eq!(length(&of(false), 9), 4, "no arm");
    assert!(length(&of(true), 0) >= 12, "the default's own label counts for nothing");
}
