//! The value of an `any` as a tree: for programs that show values of types which they do not know.
//!
//! What it is not: a way to write values. [`Any::new`](super::Any::new) and
//! [`Any::structure`](super::Any::structure) make them.
//!
//! Invariants: members have the names that the TypeCode says, and none if it says none; the value
//! was gone through when it was read, so its depth is bounded; and so is the size of the tree,
//! which may be far more than that of the value.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorba_giop::{Fault, Ior, MessageError};

use super::walk::{chosen, label};
use crate::basic::{LongDouble, WChar};
use crate::codec::Decoder;
use crate::limits::TREE_BYTES_MAX;
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
    /// A type: its kind, and its repository id unless that is empty.
    Type(Kind, Option<String>),
    /// A value in an `any` of its own.
    Any(Box<Value>),
}

type Outcome = Result<Value, MessageError>;

/// Reads the value of a type that `from` stands before.
pub(super) fn read(type_code: &TypeCode, from: &mut Decoder<'_>) -> Outcome {
    Reading { left: TREE_BYTES_MAX }.value(type_code, from)
}

fn fault(from: &mut Decoder<'_>, fault: Fault) -> MessageError {
    let offset = from.reader().position();
    MessageError { what: "value of an any", offset, fault }
}

/// A tree that is being made.
struct Reading {
    /// Octets that it may still take.
    left: usize,
}

impl Reading {
    fn value(&mut self, type_code: &TypeCode, from: &mut Decoder<'_>) -> Outcome {
        let graph = type_code.named_graph()?;
        self.node(&graph, graph.root(), from)
    }

    fn spend(&mut self, octets: usize, from: &mut Decoder<'_>) -> Result<(), MessageError> {
        let left = self.left.checked_sub(octets);
        self.left = left.ok_or_else(|| fault(from, Fault::OverLimit))?;
        Ok(())
    }

    fn name(&mut self, name: &str, from: &mut Decoder<'_>) -> Result<String, MessageError> {
        self.spend(size_of::<String>() + name.len(), from)?;
        Ok(String::from(name))
    }

    fn node(&mut self, graph: &Graph<'_>, number: u32, from: &mut Decoder<'_>) -> Outcome {
        self.spend(size_of::<Value>(), from)?;
        Ok(match graph.node(graph.original(number)) {
            Node::Basic(kind) => return self.basic(*kind, from),
            Node::Text { wide, .. } => {
                let text = match wide {
                    true => format!("{}", from.read::<WString>()?),
                    false => from.read()?,
                };
                self.spend(text.len(), from)?;
                Value::Text(text)
            }
            Node::Fixed { digits, scale } => {
                let text = fixed(*digits, *scale, from)?;
                self.spend(text.len(), from)?;
                Value::Fixed(text)
            }
            Node::Object { .. } => {
                let begin = from.reader().position();
                let ior = Ior::read(from.reader())?;
                let octets = from.reader().position().saturating_sub(begin);
                self.spend(octets, from)?;
                Value::Object(ior)
            }
            Node::Struct { exception, members, .. } => {
                if *exception {
                    // Its repository id, which the TypeCode says, too.
                    from.read::<String>()?;
                }
                let mut named = Vec::new();
                for (index, member) in members.iter().enumerate() {
                    let name = self.name(graph.name(number, index), from)?;
                    named.push((name, self.node(graph, *member, from)?));
                }
                Value::Struct(named)
            }
            node @ Node::Union { .. } => return self.union(graph, (number, node), from),
            Node::Enum { .. } => {
                let value: u32 = from.read()?;
                Value::Enum(self.name(graph.name(number, value as usize), from)?, value)
            }
            Node::Sequence { items, .. } => {
                let count: u32 = from.read()?;
                return self.items(graph, *items, count, from);
            }
            Node::Array { items, length } => return self.items(graph, *items, *length, from),
            Node::Closed { .. } | Node::Unread | Node::Alias { .. } => {
                return Err(fault(from, Fault::Value));
            }
        })
    }

    fn union(
        &mut self,
        graph: &Graph<'_>,
        (number, union): (u32, &Node<'_>),
        from: &mut Decoder<'_>,
    ) -> Outcome {
        let Node::Union { discriminator, default, arms, .. } = union else {
            return Err(fault(from, Fault::Value));
        };
        let label = label(graph, *discriminator, &mut from.reader().clone())?;
        let which = Box::new(self.node(graph, *discriminator, from)?);
        let Some((index, arm)) = chosen(arms, *default, label) else {
            return Ok(Value::Union(which, None));
        };
        let name = self.name(graph.name(number, index), from)?;
        Ok(Value::Union(which, Some((name, Box::new(self.node(graph, arm.node, from)?)))))
    }

    fn items(&mut self, graph: &Graph<'_>, of: u32, count: u32, from: &mut Decoder<'_>) -> Outcome {
        if let Node::Basic(Kind::Octet) = graph.node(graph.original(of)) {
            self.spend(count as usize, from)?;
            return Ok(Value::Octets(from.reader().take(count as usize, "octets")?.to_vec()));
        }
        let items = (0..count).map(|_| self.node(graph, of, from));
        Ok(Value::List(items.collect::<Result<_, _>>()?))
    }

    fn basic(&mut self, kind: Kind, from: &mut Decoder<'_>) -> Outcome {
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
                let id = type_code.id().filter(|id| !id.is_empty());
                self.spend(id.as_ref().map_or(0, String::len), from)?;
                Value::Type(type_code.kind(), id)
            }
            Kind::Any => {
                let type_code = TypeCode::read_octets(from.reader())?;
                Value::Any(Box::new(self.value(&type_code, from)?))
            }
            _ => return Err(fault(from, Fault::Value)),
        })
    }
}

/// Digits of four bits each, the sign behind them (GIOP §15.3.2.8).
fn fixed(digits: u16, scale: i16, from: &mut Decoder<'_>) -> Result<String, MessageError> {
    let octets = from.reader().take(usize::from(digits) / 2 + 1, "fixed")?;
    let mut nibbles: Vec<u8> = octets.iter().flat_map(|octet| [octet >> 4, octet & 0x0f]).collect();
    let negative = nibbles.pop() == Some(0x0d);
    if nibbles.iter().any(|digit| *digit > 9) {
        return Err(fault(from, Fault::Value));
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
    Ok(format!("{sign}{whole}{zeros}{point}{behind}"))
}
