//! Values of events as JSON, and JSON as values of events.
//!
//! What it is not: a reader of any type there is. Simple values and lists of them are shown as what
//! they are; of all others the type and its size.
//!
//! Invariant: what is pushed from JSON is shown as the same JSON.

use quorba_corba::{Any, Cdr, Typed};
use serde::Serialize;
use serde_json::{Value, json};

fn one<T: Cdr + Typed + Serialize>(any: &Any) -> Option<Value> {
    let value = any.get::<T>().map(|value| json!(value));
    value.or_else(|| any.get::<Vec<T>>().map(|list| json!(list)))
}

/// What an event says.
pub(super) fn shown(any: &Any) -> Value {
    let readers = [
        one::<String>,
        one::<i32>,
        one::<u32>,
        one::<i16>,
        one::<u16>,
        one::<i64>,
        one::<u64>,
        one::<f64>,
        one::<f32>,
        one::<bool>,
        one::<u8>,
    ];
    let read = readers.into_iter().find_map(|read| read(any));
    // An event of another interface comes in an `any` of its own.
    let read = read.or_else(|| any.get::<Any>().map(|inner| shown(&inner)));
    read.unwrap_or_else(
        || json!({ "type": format!("{:?}", any.type_code().kind()), "bytes": any.size() }),
    )
}

/// JSON as a value: a text, a boolean, a number (`long`, `long long`, `unsigned long long` or
/// `double`), or a list of one kind of them.
pub(super) fn read(value: &Value) -> Option<Any> {
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
        Value::Array(list) => list_of(list),
        Value::Null | Value::Object(_) => None,
    }
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
        ];
        for value in values {
            assert_eq!(shown(&read(&value).expect("a value")), value);
        }
        assert!(read(&json!({ "a": 1 })).is_none() && read(&json!(null)).is_none());
        assert!(read(&json!(["a", 1])).is_none());
        // No type has both, and a double has neither.
        assert!(read(&json!([-1, u64::MAX])).is_none());
    }
}
