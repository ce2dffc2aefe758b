//! The value of an `any` as a tree: for programs that show values of types which they do not know.
//!
//! What it is not: a way to write values. [`Any::new`](super::Any::new) and
//! [`Any::structure`](super::Any::structure) make them.
//!
//! Invariants: members have the names that the TypeCode says, and none if it says none; the value
//! was gone through when it was read, so its depth and size are bounded.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_giop::{Fault, Ior, MessageError};

use super::walk::{chosen, label};
use crate::basic::{LongDouble, WChar};
use crate::codec::Decoder;
use crate::text::WString;
use crate::typecode::{Graph, Kind, Node, TypeCode};

/// A value of any type that IDL can say, but for valuetypes.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Of `null` and `void`.
    Nothing,
    /// Of `boolean`.
    Boolean(bool),
    /// Of `short`, `long` and `long long`.
    Signed(i64),
    /// Of `octet` and the unsigned integers.
    Unsigned(u64),
    /// Of `float`.
    Float(f32),
    /// Of `double`.
    Double(f64),
    /// Of `long double`: the IEEE number's octets, the most significant one first.
    LongDouble([u8; 16]),
    /// Of `fixed`: its digits, as it is written.
    Fixed(String),
    /// Of `char`, `wchar`, `string` and `wstring`.
    Text(String),
    /// Of sequences and arrays of `octet`.
    Octets(Vec<u8>),
    /// Of other sequences and arrays.
    List(Vec<Value>),
    /// Of structs and exceptions: members by name.
    Struct(Vec<(String, Value)>),
    /// Of a union: its discriminator, and the member that it chooses, if it does.
    Union(Box<Value>, Option<(String, Box<Value>)>),
    /// Of an enum: the member's name, and its number.
    Enum(String, u32),
    /// A reference.
    Object(Ior),
    /// A type: its kind, and its repository id if it has one.
    Type(Kind, Option<String>),
    /// A value in an `any` of its own.
    Any(Box<Value>),
}

type Outcome = Result<Value, MessageError>;

/// Reads the value of a type that `from` stands before.
pub(super) fn read(type_code: &TypeCode, from: &mut Decoder<'_>) -> Outcome {
    let graph = type_code.named_graph()?;
    node(&graph, graph.root(), from)
}

fn fault(from: &mut Decoder<'_>) -> MessageError {
    let offset = from.reader().position();
    MessageError { what: "value of an any", offset, fault: Fault::Value }
}

fn node(graph: &Graph<'_>, number: u32, from: &mut Decoder<'_>) -> Outcome {
    Ok(match graph.node(graph.original(number)) {
        Node::Basic(kind) => return basic(*kind, from),
        Node::Text { wide: true, .. } => Value::Text(format!("{}", from.read::<WString>()?)),
        Node::Text { wide: false, .. } => Value::Text(from.read()?),
        Node::Fixed { digits, scale } => fixed(*digits, *scale, from)?,
        Node::Object { .. } => Value::Object(Ior::read(from.reader())?),
        Node::Struct { exception, members, .. } => {
            if *exception {
                // Its repository id, which the TypeCode says, too.
                from.read::<String>()?;
            }
            let members = members.iter().enumerate().map(|(index, member)| {
                Ok((String::from(graph.name(number, index)), node(graph, *member, from)?))
            });
            Value::Struct(members.collect::<Result<_, MessageError>>()?)
        }
        Node::Union { discriminator, default, arms, .. } => {
            let label = label(graph, *discriminator, &mut from.reader().clone())?;
            let which = node(graph, *discriminator, from)?;
            let member = match chosen(arms, *default, label) {
                Some((index, arm)) => {
                    let name = String::from(graph.name(number, index));
                    Some((name, Box::new(node(graph, arm.node, from)?)))
                }
                None => None,
            };
            Value::Union(Box::new(which), member)
        }
        Node::Enum { .. } => {
            let value: u32 = from.read()?;
            Value::Enum(String::from(graph.name(number, value as usize)), value)
        }
        Node::Sequence { items: of, .. } => {
            let count: u32 = from.read()?;
            items(graph, *of, count, from)?
        }
        Node::Array { items: of, length } => items(graph, *of, *length, from)?,
        Node::Closed { .. } | Node::Unread | Node::Alias { .. } => return Err(fault(from)),
    })
}

fn items(graph: &Graph<'_>, of: u32, count: u32, from: &mut Decoder<'_>) -> Outcome {
    if let Node::Basic(Kind::Octet) = graph.node(graph.original(of)) {
        return Ok(Value::Octets(from.reader().take(count as usize, "octets")?.to_vec()));
    }
    let items = (0..count).map(|_| node(graph, of, from));
    Ok(Value::List(items.collect::<Result<_, _>>()?))
}

fn basic(kind: Kind, from: &mut Decoder<'_>) -> Outcome {
    Ok(match kind {
        Kind::Null | Kind::Void => Value::Nothing,
        Kind::Short => Value::Signed(from.read::<i16>()?.into()),
        Kind::Long => Value::Signed(from.read::<i32>()?.into()),
        Kind::LongLong => Value::Signed(from.read()?),
        Kind::Octet => Value::Unsigned(from.read::<u8>()?.into()),
        Kind::UShort => Value::Unsigned(from.read::<u16>()?.into()),
        Kind::ULong => Value::Unsigned(from.read::<u32>()?.into()),
        Kind::ULongLong => Value::Unsigned(from.read()?),
        Kind::Float => Value::Float(from.read()?),
        Kind::Double => Value::Double(from.read()?),
        Kind::LongDouble => Value::LongDouble(from.read::<LongDouble>()?.0),
        Kind::Boolean => Value::Boolean(from.read()?),
        // One octet of a code set: of UTF-8 it is a character if it is ASCII.
        Kind::Char => Value::Text(String::from(char::from(from.read::<u8>()?))),
        Kind::WChar => Value::Text(String::from_utf16_lossy(&[from.read::<WChar>()?.0])),
        Kind::Principal => Value::Octets(from.read()?),
        Kind::TypeCode => {
            let type_code: TypeCode = from.read()?;
            Value::Type(type_code.kind(), type_code.id())
        }
        Kind::Any => {
            let type_code = TypeCode::read_octets(from.reader())?;
            Value::Any(Box::new(read(&type_code, from)?))
        }
        _ => return Err(fault(from)),
    })
}

/// Digits of four bits each, the sign behind them (GIOP §15.3.2.8).
fn fixed(digits: u16, scale: i16, from: &mut Decoder<'_>) -> Outcome {
    let octets = from.reader().take(usize::from(digits) / 2 + 1, "fixed")?;
    let mut nibbles: Vec<u8> = octets.iter().flat_map(|octet| [octet >> 4, octet & 0x0f]).collect();
    let negative = nibbles.pop() == Some(0x0d);
    if nibbles.iter().any(|digit| *digit > 9) {
        return Err(fault(from));
    }
    let all: String = nibbles.iter().map(|digit| char::from(b'0' + digit)).collect();
    let places = usize::try_from(scale).unwrap_or_default();
    // At least one digit stands before the point.
    let all = format!("{all:0>width$}", width = places + 1);
    let (whole, behind) = all.split_at(all.len() - places);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let zeros = "0".repeat(usize::from(scale.min(0).unsigned_abs()));
    let point = if behind.is_empty() { "" } else { "." };
    let sign = if negative { "-" } else { "" };
    Ok(Value::Fixed(format!("{sign}{whole}{zeros}{point}{behind}")))
}
