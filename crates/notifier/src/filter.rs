//! Constraints together with the types of events that they are about, and filters of them.
//!
//! Invariant: the tree of a constraint is what its text says.

use alloc::collections::BTreeMap;

use quorba_corba::giop::MessageError;
use quorba_corba::giop::cdr::{Reader, Writer};
use quorba_corba::giop::{Endian, Fault, Version};
use quorba_corba::{CharSet, Coding, Decoder, Encoder};
use quorba_idl::cos_notification::{EventType, StructuredEvent};
use quorba_idl::cos_notify_filter::ConstraintExp;

use crate::constraint::{self, Expression};
use crate::evaluate;

/// The most types of events that one constraint is about.
const TYPES_MAX: usize = 64;

/// How states write what has a type of IDL.
pub(crate) const CODING: Coding = Coding { version: Version::V1_2, chars: CharSet::Utf8 };

/// A constraint.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Constraint {
    pub(crate) said: ConstraintExp,
    tree: Expression,
}

impl Constraint {
    /// Nothing if it is not in the language.
    pub(crate) fn read(said: ConstraintExp) -> Option<Self> {
        let is_short = said.event_types.len() <= TYPES_MAX;
        let tree = constraint::read(&said.constraint_expr).filter(|_| is_short)?;
        Some(Self { said, tree })
    }

    fn matches(&self, event: &StructuredEvent) -> bool {
        let of = &event.header.fixed_header.event_type;
        let types = &self.said.event_types;
        (types.is_empty() || types.iter().any(|one| is_of(one, of)))
            && evaluate::matches(&self.tree, event)
    }
}

/// `*`, `%ALL` and nothing stand for any name.
fn is_of(wanted: &EventType, found: &EventType) -> bool {
    let fits = |wanted: &str, found: &str| matches!(wanted, "" | "*" | "%ALL") || wanted == found;
    fits(&wanted.domain_name, &found.domain_name) && fits(&wanted.type_name, &found.type_name)
}

/// Constraints of which one is enough; no constraint lets everything pass.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) constraints: BTreeMap<i32, Constraint>,
    pub(crate) last: i32,
}

impl Filter {
    pub(crate) fn matches(&self, event: &StructuredEvent) -> bool {
        self.constraints.is_empty() || self.constraints.values().any(|one| one.matches(event))
    }

    pub(crate) fn add(&mut self, constraint: Constraint) -> i32 {
        self.last = self.last.saturating_add(1);
        self.constraints.insert(self.last, constraint);
        self.last
    }

    pub(crate) fn keep(&self, state: &mut Writer) {
        state.write_i32(self.last);
        state.write_count(self.constraints.len());
        for (id, constraint) in &self.constraints {
            state.write_i32(*id);
            let mut to = Encoder::new(Endian::Big, CODING);
            to.write(&constraint.said);
            state.write_octets(&to.into_writer().finish());
        }
    }

    pub(crate) fn kept(state: &mut Reader<'_>) -> Result<Self, MessageError> {
        let mut filter = Self { constraints: BTreeMap::new(), last: state.read_i32("last")? };
        for _ in 0..state.read_count(8, usize::MAX, "constraints")? {
            let offset = state.position();
            let fault = MessageError { what: "constraint", offset, fault: Fault::Value };
            let id = state.read_i32("id")?;
            let octets = state.read_octets(usize::MAX, "constraint")?;
            let mut from = Decoder::new(Reader::new(octets, Endian::Big), CODING);
            let said: ConstraintExp = from.read()?;
            let constraint = Constraint::read(said).filter(|_| from.remaining() == 0);
            let is_next = filter.constraints.last_key_value().is_none_or(|(last, _)| *last < id);
            match constraint {
                Some(constraint) if is_next && id <= filter.last && id > 0 => {
                    filter.constraints.insert(id, constraint);
                }
                _ => return Err(fault),
            }
        }
        Ok(filter)
    }
}
