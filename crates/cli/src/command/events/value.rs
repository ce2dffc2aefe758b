//! Values of events as JSON, and JSON as values of events.
//!
//! An event of any type is shown: a struct as an object with its members' names, an enum as the
//! name of its member, a union as its discriminator and its member, a reference as its text. What
//! JSON has no form for is a text.
//!
//! Invariants: what is pushed from JSON is shown as the same JSON; what is pushed has no type that
//! another ORB could not read.

use quorba_corba::giop::Endian;
use quorba_corba::{Any, Kind, Value as Of};
use serde_json::{Map, Value, json};

/// How deep an event that is pushed may be nested. Peers read anys of 64 levels, and a list in an
/// object takes two.
const DEPTH_MAX: u32 = 24;

/// What an event says.
pub(super) fn shown(any: &Any) -> Value {
    match any.value() {
        Ok(value) => tree(&value),
        // More than is shown: a name of its type may stand in each of a million items.
        Err(_) => json!({
            "type": of_type(any.type_code().kind(), any.type_code().id().as_deref()),
            "bytes": any.size(),
        }),
    }
}

/// A type by its repository id, or, if it has none, by its kind.
fn of_type(kind: Kind, id: Option<&str>) -> String {
    id.filter(|id| !id.is_empty()).map_or_else(|| format!("{kind:?}"), str::to_owned)
}

fn number(value: f64) -> Value {
    // JSON has no infinity, and nothing that is no number.
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

fn tree(value: &Of) -> Value {
    match value {
        Of::Nothing => Value::Null,
        Of::Boolean(value) => json!(value),
        Of::Signed(value) => json!(value),
        Of::Unsigned(value) => json!(value),
        // By its text, so that 0.1 does not become 0.10000000149011612.
        Of::Float(value) => number(value.to_string().parse().unwrap_or(f64::NAN)),
        Of::Double(value) => number(*value),
        Of::LongDouble(octets) => {
            json!(octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>())
        }
        Of::Fixed(text) | Of::Text(text) => json!(text),
        Of::Octets(octets) => json!(octets),
        Of::List(items) => items.iter().map(tree).collect(),
        Of::Struct(members) => {
            let members = members.iter().enumerate().map(|(index, (name, member))| {
                // TypeCodes may leave names out (GIOP \u{a7}15.3.5.1).
                let name = if name.is_empty() { index.to_string() } else { name.clone() };
                (name, tree(member))
            });
            Value::Object(members.collect())
        }
        Of::Union(discriminator, member) => {
            let mut both = Map::from_iter([("_d".to_owned(), tree(discriminator))]);
            if let Some((name, member)) = member {
                let name = if name.is_empty() { "_v" } else { name };
                both.insert(name.to_owned(), tree(member));
            }
            Value::Object(both)
        }
        Of::Enum(name, number) if name.is_empty() => json!(number),
        Of::Enum(name, _) => json!(name),
        Of::Object(ior) if ior.is_nil() => Value::Null,
        Of::Object(ior) => json!(ior.stringify(Endian::Big)),
        Of::Type(of, id) => json!(of_type(*of, id.as_deref())),
        Of::Any(inner) => tree(inner),
    }
}

/// JSON as a value: a text, a boolean, a number (`long`, `long long`, `unsigned long long` or
/// `double`), a list (a sequence of one of these if all are of one kind, else of `any`), an object
/// (a struct, whose members have its names and their alphabetical order), or null (an `any` with
/// nothing in it). Nothing if it is nested too deep, an object has no member, a name is empty, or a
/// name or a text has a zero.
pub(super) fn read(value: &Value) -> Option<Any> {
    // A channel takes an event without a value for one of TAO's, so that null stands in an `any`.
    boxed(value, DEPTH_MAX)
}

fn within(value: &Value, depth: u32) -> Option<Any> {
    match value {
        Value::String(text) => Any::new(text),
        Value::Bool(truth) => Any::new(truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => match i32::try_from(whole) {
                Ok(whole) => Any::new(&whole),
                Err(_) => Any::new(&whole),
            },
            (None, Some(large)) => Any::new(&large),
            (None, None) => Any::new(&number.as_f64()?),
        },
        Value::Array(list) => list_of(list).or_else(|| mixed(list, depth.checked_sub(1)?)),
        // A struct has a member at least.
        Value::Object(members) if members.is_empty() => None,
        Value::Object(members) => {
            let depth = depth.checked_sub(1)?;
            let members = members.iter().map(|(name, member)| {
                (!name.is_empty()).then_some(())?;
                Some((name.as_str(), boxed(member, depth)?))
            });
            Any::structure(&members.collect::<Option<Vec<_>>>()?)
        }
        Value::Null => Some(Any::default()),
    }
}

/// What stands where a type is wanted. ORBs know no member without one, so that null is an `any`.
fn boxed(member: &Value, depth: u32) -> Option<Any> {
    let value = within(member, depth)?;
    if member.is_null() { Any::new(&value) } else { Some(value) }
}

fn mixed(list: &[Value], depth: u32) -> Option<Any> {
    let items = list.iter().map(|item| within(item, depth));
    Any::new(&items.collect::<Option<Vec<_>>>()?)
}

/// A number as a `double`, if it is the same.
fn double(value: &Value) -> Option<f64> {
    let number = value.as_f64()?;
    let is_whole = value.is_i64() || value.is_u64();
    (!is_whole || number.abs() <= EXACT).then_some(number)
}

/// Up to here a `double` has all whole numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn list_of(list: &[Value]) -> Option<Any> {
    fn all<T>(list: &[Value], read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        list.iter().map(read).collect()
    }
    if let Some(texts) = all(list, |value| value.as_str().map(str::to_owned)) {
        return Any::new(&texts);
    }
    if let Some(numbers) = all(list, |value| i32::try_from(value.as_i64()?).ok()) {
        return Any::new(&numbers);
    }
    if let Some(numbers) = all(list, Value::as_i64) {
        return Any::new(&numbers);
    }
    if let Some(numbers) = all(list, Value::as_u64) {
        return Any::new(&numbers);
    }
    if let Some(numbers) = all(list, double) {
        return Any::new(&numbers);
    }
    Any::new(&all(list, Value::as_bool)?)
}

#[cfg(test)]
mod tests {
    use quorba_corba::giop::cdr::Reader;
    use quorba_corba::giop::{Completion, Version};
    use quorba_corba::{Coding, Decoder, Encoder, Object, TypeCode};

    use super::*;

    #[test]
    fn what_is_pushed_is_shown_as_the_same() {
        let values = [
            json!("a text"),
            json!(true),
            json!(7),
            json!(-5_000_000_000_i64),
            json!(1.5),
            json!(["a", "b"]),
            json!([1, 2, 3]),
            json!([1, 5_000_000_000_i64]),
            json!(1_u64 << 63),
            json!(u64::MAX),
            json!(i64::MIN),
            json!([1, u64::MAX]),
            json!([1.5, 2.0]),
            json!([true, false]),
            json!(["a", 1, null, [true], { "b": 2.5 }]),
            // No number of IDL is both, so that each has a type of its own.
            json!([-1, u64::MAX]),
            json!({ "volts": 1.5, "of": { "name": "p", "parts": [1, 2] }, "none": null }),
            json!([{ "a": 1 }, { "a": 2 }]),
            json!([]),
            json!(null),
        ];
        for value in values {
            assert_eq!(shown(&read(&value).expect("a value")), value);
        }
    }

    #[test]
    fn what_is_nested_deeper_than_peers_read_is_not_pushed() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "in": inner }));
        assert_eq!(shown(&read(&nested(24)).expect("not too deep")), nested(24));
        assert_eq!(read(&nested(25)), None);
        assert_eq!(read(&json!({ "a\u{0}": 1 })), None, "a name ends at its zero");
        assert_eq!(read(&json!([{}])), None, "a struct has a member");
        assert_eq!(read(&json!({ "": 1 })), None, "a member has a name");
        let null = read(&json!(null)).expect("an any in an any");
        assert_eq!(null.type_code().kind(), Kind::Any, "a channel takes it for a value");
    }

    #[test]
    fn a_name_that_would_stand_in_a_million_items_is_not_shown() {
        let name = "n".repeat(60_000);
        let long = TypeCode::structure("", "", &[(&name, TypeCode::basic(Kind::Octet))]);
        let of_long = TypeCode::sequence(&long, 0);
        let mut to = Encoder::new(Endian::Little, Coding::plain(Version::V1_2));
        to.write(&of_long);
        to.write(&vec![0_u8; 1_000_000]);
        let octets = to.finish(Completion::No).expect("writable");
        let reader = Reader::new(&octets, Endian::Little);
        let any: Any = Decoder::new(reader, Coding::plain(Version::V1_2)).read().expect("an any");
        assert_eq!(shown(&any)["type"], json!("Sequence"));
    }

    #[test]
    fn an_event_of_any_type_is_shown() {
        let union = TypeCode::union(
            "IDL:Lab/State:1.0",
            "State",
            &TypeCode::enumeration("IDL:Lab/Which:1.0", "Which", &["OFF", "ON"]),
            None,
            &[(1, "since", TypeCode::basic(Kind::ULongLong))],
        );
        let reading = TypeCode::structure(
            "IDL:Lab/Reading:1.0",
            "Reading",
            &[
                ("volts", TypeCode::basic(Kind::Float)),
                ("state", union),
                ("raw", TypeCode::sequence(&TypeCode::basic(Kind::Octet), 0)),
                ("by", TypeCode::object("IDL:Lab/Device:1.0", "Device")),
            ],
        );
        let mut to = Encoder::new(Endian::Little, Coding::plain(Version::V1_2));
        to.write(&reading);
        to.write(&0.1_f32);
        to.write(&1_u32);
        to.write(&7_u64);
        to.write(&vec![1_u8, 2]);
        to.write(&Object::nil());
        let octets = to.finish(Completion::No).expect("writable");
        let reader = Reader::new(&octets, Endian::Little);
        let any: Any = Decoder::new(reader, Coding::plain(Version::V1_2)).read().expect("an any");
        let expected = json!({
            "volts": 0.1,
            "state": { "_d": "ON", "since": 7 },
            "raw": [1, 2],
            "by": null,
        });
        assert_eq!(shown(&any), expected);
    }
}
