//! What a constraint says of an event.
//!
//! Invariants: what cannot be answered (a name that the event does not have, a text that is
//! compared with a number) makes the constraint not match; work is bounded by the constraint's
//! size times the event's.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use quorba_corba::Any;
use quorba_idl::cos_naming::{Name, NameComponent};
use quorba_idl::cos_notification as cn;

use crate::constraint::{Component, Expression, Operator, Step, Value};
use crate::event::alias;

/// Something of an event.
enum Node<'e> {
    Event(&'e cn::StructuredEvent),
    Header(&'e cn::EventHeader),
    Fixed(&'e cn::FixedEventHeader),
    Type(&'e cn::EventType),
    Properties(&'e [cn::Property]),
    Property(&'e cn::Property),
    Any(&'e Any),
    Name(Name),
    NameComponent(NameComponent),
    Value(Value),
}

/// Whether an event is what a constraint wants.
pub(crate) fn matches(constraint: &Expression, event: &cn::StructuredEvent) -> bool {
    evaluate(constraint, event) == Some(Value::Boolean(true))
}

fn evaluate(tree: &Expression, event: &cn::StructuredEvent) -> Option<Value> {
    match tree {
        Expression::Literal(value) => Some(value.clone()),
        Expression::Component(component) => value(find(component, event)?),
        Expression::Exist(component) => Some(Value::Boolean(find(component, event).is_some())),
        Expression::In(left, list) => {
            let left = evaluate(left, event)?;
            let Node::Name(name) = opened(find(list, event)?) else { return None };
            let has = |one: &NameComponent| Value::Text(one.id.clone()) == left;
            Some(Value::Boolean(name.iter().any(has)))
        }
        Expression::Not(inner) => match evaluate(inner, event)? {
            Value::Boolean(boolean) => Some(Value::Boolean(!boolean)),
            _ => None,
        },
        Expression::Negated(inner) => match evaluate(inner, event)? {
            Value::Integer(number) => number.checked_neg().map(Value::Integer),
            Value::Real(number) => Some(Value::Real(-number)),
            _ => None,
        },
        Expression::Binary(operator, left, right) => {
            let left = evaluate(left, event)?;
            match (operator, &left) {
                (Operator::And, Value::Boolean(false)) | (Operator::Or, Value::Boolean(true)) => {
                    Some(left)
                }
                _ => binary(*operator, &left, &evaluate(right, event)?),
            }
        }
    }
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    let ordered = |is: fn(Ordering) -> bool| Some(Value::Boolean(is(compare(left, right)?)));
    match operator {
        Operator::And | Operator::Or => match (left, right) {
            // The left one has not decided it.
            (Value::Boolean(_), Value::Boolean(right)) => Some(Value::Boolean(*right)),
            _ => None,
        },
        Operator::Equal => ordered(Ordering::is_eq),
        Operator::Unequal => ordered(Ordering::is_ne),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::LessOrEqual => ordered(Ordering::is_le),
        Operator::Greater => ordered(Ordering::is_gt),
        Operator::GreaterOrEqual => ordered(Ordering::is_ge),
        Operator::Within => match (left, right) {
            (Value::Text(part), Value::Text(whole)) => {
                Some(Value::Boolean(whole.contains(part.as_str())))
            }
            _ => None,
        },
        Operator::Plus | Operator::Minus | Operator::Times | Operator::Divided => {
            calculate(operator, left, right)
        }
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        _ => real(left)?.partial_cmp(&real(right)?),
    }
}

#[allow(clippy::cast_precision_loss, reason = "the language has one kind of real number")]
const fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

fn calculate(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
        return match operator {
            Operator::Plus => left.checked_add(*right),
            Operator::Minus => left.checked_sub(*right),
            Operator::Times => left.checked_mul(*right),
            _ => left.checked_div(*right),
        }
        .map(Value::Integer);
    }
    let (left, right) = (real(left)?, real(right)?);
    let result = match operator {
        Operator::Plus => left + right,
        Operator::Minus => left - right,
        Operator::Times => left * right,
        _ => left / right,
    };
    result.is_finite().then_some(Value::Real(result))
}

fn find<'e>(component: &Component, event: &'e cn::StructuredEvent) -> Option<Node<'e>> {
    let mut node = match component.root.as_deref() {
        None => Node::Event(event),
        Some(name) => named(name, event)?,
    };
    for step in &component.steps {
        node = into(node, step)?;
    }
    Some(node)
}

/// A name without a path: of the header, or of a property (Notification Service §2.4.4).
fn named<'e>(name: &str, event: &'e cn::StructuredEvent) -> Option<Node<'e>> {
    let fixed = &event.header.fixed_header;
    let text = |text: &String| Some(Node::Value(Value::Text(text.clone())));
    match name {
        "domain_name" => text(&fixed.event_type.domain_name),
        "type_name" => text(&fixed.event_type.type_name),
        "event_name" => text(&fixed.event_name),
        _ => {
            let all = || event.filterable_data.iter().chain(&event.header.variable_header);
            property(name, all).map(Node::Any)
        }
    }
}

/// The value of that name; else of the one that the other form has for it.
fn property<'e, P>(name: &str, all: impl Fn() -> P) -> Option<&'e Any>
where
    P: Iterator<Item = &'e cn::Property>,
{
    let named = |name: &str| all().find(|one| one.name == name).map(|one| &one.value);
    named(name).or_else(|| named(alias(name)?))
}

fn into<'e>(node: Node<'e>, step: &Step) -> Option<Node<'e>> {
    let text = |text: &String| Some(Node::Value(Value::Text(text.clone())));
    let length = |length: usize| i128::try_from(length).ok().map(Value::Integer).map(Node::Value);
    match (opened(node), step) {
        (Node::Event(event), Step::Field(name)) => match name.as_str() {
            "header" => Some(Node::Header(&event.header)),
            "filterable_data" => Some(Node::Properties(&event.filterable_data)),
            "remainder_of_body" => Some(Node::Any(&event.remainder_of_body)),
            _ => None,
        },
        (Node::Header(header), Step::Field(name)) => match name.as_str() {
            "fixed_header" => Some(Node::Fixed(&header.fixed_header)),
            "variable_header" => Some(Node::Properties(&header.variable_header)),
            _ => None,
        },
        (Node::Fixed(fixed), Step::Field(name)) => match name.as_str() {
            "event_type" => Some(Node::Type(&fixed.event_type)),
            "event_name" => text(&fixed.event_name),
            _ => None,
        },
        (Node::Type(event_type), Step::Field(name)) => match name.as_str() {
            "domain_name" => text(&event_type.domain_name),
            "type_name" => text(&event_type.type_name),
            _ => None,
        },
        (Node::Property(property), Step::Field(name)) => match name.as_str() {
            "name" => text(&property.name),
            "value" => Some(Node::Any(&property.value)),
            _ => None,
        },
        (Node::NameComponent(one), Step::Field(name)) => match name.as_str() {
            "id" => text(&one.id),
            "kind" => text(&one.kind),
            _ => None,
        },
        (Node::Properties(list), Step::Field(name)) if name == "_length" => length(list.len()),
        (Node::Properties(list), Step::Index(at)) => list.get(*at).map(Node::Property),
        (Node::Properties(list), Step::Named(name)) => {
            property(name, || list.iter()).map(Node::Any)
        }
        (Node::Name(name), Step::Field(field)) if field == "_length" => length(name.len()),
        (Node::Name(name), Step::Index(at)) => name.get(*at).cloned().map(Node::NameComponent),
        _ => None,
    }
}

/// What is in an `any`, of the types that reports have.
fn opened(node: Node<'_>) -> Node<'_> {
    let Node::Any(any) = node else { return node };
    let integer = || {
        let small = any.get::<u16>().map(i128::from).or_else(|| any.get::<i16>().map(i128::from));
        let small = small.or_else(|| any.get::<u8>().map(i128::from));
        let usual =
            || any.get::<i32>().map(i128::from).or_else(|| any.get::<u32>().map(Into::into));
        let large =
            || any.get::<u64>().map(i128::from).or_else(|| any.get::<i64>().map(Into::into));
        small.or_else(usual).or_else(large)
    };
    let value = any
        .get::<String>()
        .map(Value::Text)
        .or_else(|| any.get::<bool>().map(Value::Boolean))
        .or_else(|| integer().map(Value::Integer))
        .or_else(|| any.get::<f64>().or_else(|| any.get::<f32>().map(f64::from)).map(Value::Real));
    match value {
        Some(value) => Node::Value(value),
        None => any.get::<Vec<NameComponent>>().map_or(Node::Any(any), Node::Name),
    }
}

fn value(node: Node<'_>) -> Option<Value> {
    match opened(node) {
        Node::Value(value) => Some(value),
        _ => None,
    }
}
