//! Goes through a value by its TypeCode: to see where it ends, or to write it anew.
//!
//! Invariants: steps are counted, and their number is bounded by the octets that the value has so
//! far: a type can say that nothing is repeated four thousand million times, or twice of twice of
//! twice; values are not nested deeper than [`DEPTH_MAX`], anys in anys counted together. What is
//! left of the message does not count: a value that was taken in can be written anywhere.

use alloc::string::String;

use quorba_giop::cdr::Reader;
use quorba_giop::{Fault, Ior, MessageError};

use crate::basic::{LongDouble, WChar};
use crate::codec::{Cdr, Decoder, Encoder};
use crate::limits::{DEPTH_MAX, STEPS_MIN, STEPS_PER_OCTET};
use crate::text::WString;
use crate::typecode::{Arm, Graph, Kind, Node, TypeCode};

/// What may be spent on one value.
pub(crate) struct Walk {
    steps: usize,
    /// How many steps each octet allows.
    per_octet: usize,
    begin: usize,
    depth: u32,
}

/// Where a value goes, if it goes anywhere.
type To<'t> = Option<&'t mut Encoder>;

type Outcome = Result<(), MessageError>;

fn error(from: &mut Decoder<'_>, what: &'static str, fault: Fault) -> MessageError {
    MessageError { what, offset: from.reader().position(), fault }
}

/// Reads a value of a type that is known, and passes it on.
fn pass<T: Cdr>(from: &mut Decoder<'_>, to: &mut To<'_>) -> Outcome {
    let value: T = from.read()?;
    if let Some(to) = to {
        to.write(&value);
    }
    Ok(())
}

impl Walk {
    /// For a value that comes from a peer, and begins where `from` stands.
    pub(crate) fn new(from: &mut Decoder<'_>) -> Self {
        let begin = from.reader().position();
        Self { steps: 0, per_octet: STEPS_PER_OCTET, begin, depth: 0 }
    }

    /// For one that was gone through before: no step is too many.
    pub(crate) fn again(from: &mut Decoder<'_>) -> Self {
        Self { per_octet: usize::MAX, ..Self::new(from) }
    }

    /// Goes through a value of the type of `graph`.
    pub(crate) fn value(
        &mut self,
        graph: &Graph<'_>,
        from: &mut Decoder<'_>,
        to: &mut To<'_>,
    ) -> Outcome {
        self.node(graph, graph.root(), from, to)
    }

    fn step(&mut self, from: &mut Decoder<'_>) -> Outcome {
        self.steps += 1;
        let octets = from.reader().position().saturating_sub(self.begin).saturating_add(1);
        let allowed = octets.saturating_mul(self.per_octet).saturating_add(STEPS_MIN);
        if self.steps > allowed { Err(error(from, "any", Fault::OverLimit)) } else { Ok(()) }
    }

    fn node(
        &mut self,
        graph: &Graph<'_>,
        number: u32,
        from: &mut Decoder<'_>,
        to: &mut To<'_>,
    ) -> Outcome {
        self.step(from)?;
        if self.depth >= DEPTH_MAX {
            return Err(error(from, "any", Fault::OverLimit));
        }
        self.depth += 1;
        self.of_node(graph, number, from, to)?;
        self.depth -= 1;
        Ok(())
    }

    fn of_node(
        &mut self,
        graph: &Graph<'_>,
        number: u32,
        from: &mut Decoder<'_>,
        to: &mut To<'_>,
    ) -> Outcome {
        match graph.node(graph.original(number)) {
            Node::Basic(kind) => self.basic(*kind, from, to),
            Node::Text { wide, bound } => text(*wide, *bound, from, to),
            Node::Fixed { digits, .. } => raw(usize::from(*digits) / 2 + 1, from, to),
            Node::Object { .. } => object(from, to),
            Node::Struct { exception, members, .. } => {
                if *exception {
                    pass::<String>(from, to)?;
                }
                members.iter().try_for_each(|member| self.node(graph, *member, from, to))
            }
            node @ Node::Union { .. } => self.union(graph, node, from, to),
            Node::Enum { members, .. } => {
                let fault = error(from, "enum", Fault::Value);
                let value: u32 = from.read()?;
                if value >= *members {
                    return Err(fault);
                }
                if let Some(to) = to {
                    to.write(&value);
                }
                Ok(())
            }
            Node::Sequence { items, bound } => {
                let fault = error(from, "sequence", Fault::OverLimit);
                let count: u32 = from.read()?;
                if *bound != 0 && count > *bound {
                    return Err(fault);
                }
                if let Some(to) = to {
                    to.write(&count);
                }
                self.items(graph, *items, count, from, to)
            }
            Node::Array { items, length } => self.items(graph, *items, *length, from, to),
            Node::Closed { .. } | Node::Unread | Node::Alias { .. } => {
                Err(error(from, "value of an any", Fault::Value))
            }
        }
    }

    fn basic(&mut self, kind: Kind, from: &mut Decoder<'_>, to: &mut To<'_>) -> Outcome {
        match kind {
            Kind::Null | Kind::Void => Ok(()),
            Kind::Short | Kind::UShort => pass::<u16>(from, to),
            Kind::Long | Kind::ULong | Kind::Float => pass::<u32>(from, to),
            Kind::LongLong | Kind::ULongLong | Kind::Double => pass::<u64>(from, to),
            Kind::Boolean => pass::<bool>(from, to),
            Kind::Char | Kind::Octet => pass::<u8>(from, to),
            Kind::LongDouble => pass::<LongDouble>(from, to),
            Kind::WChar => pass::<WChar>(from, to),
            Kind::TypeCode => pass::<TypeCode>(from, to),
            Kind::Principal => pass::<alloc::vec::Vec<u8>>(from, to),
            Kind::Any => {
                let type_code = TypeCode::read_octets(from.reader())?;
                if let Some(to) = to {
                    to.write(&type_code);
                }
                self.value(&type_code.graph()?, from, to)
            }
            _ => Err(error(from, "value of an any", Fault::Value)),
        }
    }

    fn items(
        &mut self,
        graph: &Graph<'_>,
        items: u32,
        count: u32,
        from: &mut Decoder<'_>,
        to: &mut To<'_>,
    ) -> Outcome {
        // Octets are most of what is sent in bulk.
        if let Node::Basic(Kind::Octet | Kind::Char) = graph.node(graph.original(items)) {
            return raw(count as usize, from, to);
        }
        (0..count).try_for_each(|_| self.node(graph, items, from, to))
    }

    fn union(
        &mut self,
        graph: &Graph<'_>,
        union: &Node<'_>,
        from: &mut Decoder<'_>,
        to: &mut To<'_>,
    ) -> Outcome {
        let Node::Union { discriminator, default, arms, .. } = union else { return Ok(()) };
        let label = label(graph, *discriminator, &mut from.reader().clone())?;
        self.node(graph, *discriminator, from, to)?;
        match chosen(arms, *default, label) {
            Some((_, arm)) => self.node(graph, arm.node, from, to),
            None => Ok(()),
        }
    }
}

/// Which member of a union a label means, and its number.
pub(super) fn chosen(arms: &[Arm], default: Option<u32>, label: i64) -> Option<(usize, &Arm)> {
    let is_default = |index: usize| default.is_some_and(|at| at as usize == index);
    let mut named = arms.iter().enumerate();
    let named = named.find(|(index, arm)| arm.label == label && !is_default(*index));
    named.or_else(|| default.and_then(|at| Some((at as usize, arms.get(at as usize)?))))
}

/// The label of a value that `reader` stands before.
pub(super) fn label(
    graph: &Graph<'_>,
    discriminator: u32,
    reader: &mut Reader<'_>,
) -> Result<i64, MessageError> {
    let kind = match graph.node(graph.original(discriminator)) {
        Node::Basic(kind) => *kind,
        _ => Kind::ULong,
    };
    crate::typecode::read_label(kind, reader)
}

/// Octets that are the same everywhere.
fn raw(count: usize, from: &mut Decoder<'_>, to: &mut To<'_>) -> Outcome {
    let octets = from.reader().take(count, "octets")?;
    if let Some(to) = to {
        to.writer().write_raw(octets);
    }
    Ok(())
}

fn text(wide: bool, bound: u32, from: &mut Decoder<'_>, to: &mut To<'_>) -> Outcome {
    let fault = error(from, "string", Fault::OverLimit);
    let length = if wide {
        let text: WString = from.read()?;
        if let Some(to) = to {
            to.write(&text);
        }
        text.0.len()
    } else {
        let text: String = from.read()?;
        if let Some(to) = to {
            to.write(&text);
        }
        text.chars().count()
    };
    if bound != 0 && length > bound as usize { Err(fault) } else { Ok(()) }
}

fn object(from: &mut Decoder<'_>, to: &mut To<'_>) -> Outcome {
    let ior = Ior::read(from.reader())?;
    if let Some(to) = to {
        ior.write(to.writer());
    }
    Ok(())
}
