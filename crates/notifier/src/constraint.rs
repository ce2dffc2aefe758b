//! The constraint language of the Notification Service (§2.4.2, extended TCL), as a tree.
//!
//! What it is not: its meaning, which is `evaluate`. Enumerators and unions are not known to it.
//!
//! Invariants: a constraint that was read has at most [`BYTES_MAX`] octets and is at most
//! [`DEPTH_MAX`] deep, so that whoever goes through it ends soon.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use winnow::ascii::{digit1, multispace0};
use winnow::combinator::{alt, cut_err, delimited, not, opt, peek, preceded, repeat, terminated};
use winnow::error::{ContextError, ErrMode};
use winnow::prelude::*;
use winnow::stream::Stateful;
use winnow::token::{any, one_of, take_while};

/// The longest constraint, in octets.
pub(crate) const BYTES_MAX: usize = 4096;
/// The deepest.
pub(crate) const DEPTH_MAX: usize = 64;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Boolean(bool),
    Integer(i128),
    Real(f64),
    Text(String),
}

/// A step from a value into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// `.name`, and `._length`.
    Field(String),
    /// `[3]`.
    Index(usize),
    /// `(name)`: of a list of properties the value of that name.
    Named(String),
}

/// `$name.field[0]`: something of the event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Component {
    /// A name that is looked for; none: the event itself.
    pub(crate) root: Option<String>,
    pub(crate) steps: Vec<Step>,
}

/// An operator between two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `a ~ b`: a is part of b.
    Within,
    Plus,
    Minus,
    Times,
    Divided,
}

/// A constraint.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Expression {
    Literal(Value),
    Component(Component),
    Exist(Component),
    In(Box<Self>, Component),
    Not(Box<Self>),
    Negated(Box<Self>),
    Binary(Operator, Box<Self>, Box<Self>),
}

/// The text, and how deep its parser is.
type Input<'t> = Stateful<&'t str, usize>;
type Parsed<T> = Result<T, ErrMode<ContextError>>;

/// Reads a constraint; nothing if it is none. An empty one is true.
pub(crate) fn read(text: &str) -> Option<Expression> {
    if text.len() > BYTES_MAX {
        return None;
    }
    if text.trim().is_empty() {
        return Some(Expression::Literal(Value::Boolean(true)));
    }
    let input = Stateful { input: text, state: 0 };
    terminated(expression, multispace0).parse(input).ok().filter(|tree| depth(tree) <= DEPTH_MAX)
}

/// Chains of operators are deep, too.
fn depth(tree: &Expression) -> usize {
    let mut deepest = 0;
    let mut open = Vec::from([(tree, 1)]);
    while let Some((tree, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match tree {
            Expression::Literal(_) | Expression::Component(_) | Expression::Exist(_) => {}
            Expression::In(inner, _) | Expression::Not(inner) | Expression::Negated(inner) => {
                open.push((inner, depth + 1));
            }
            Expression::Binary(_, left, right) => {
                open.push((left, depth + 1));
                open.push((right, depth + 1));
            }
        }
    }
    deepest
}

/// One deeper.
fn deeper<'t, T>(
    input: &mut Input<'t>,
    mut parser: impl FnMut(&mut Input<'t>) -> Parsed<T>,
) -> Parsed<T> {
    if input.state >= DEPTH_MAX {
        return Err(ErrMode::Cut(ContextError::new()));
    }
    input.state += 1;
    let parsed = parser(input);
    input.state -= 1;
    parsed
}

fn expression(input: &mut Input<'_>) -> Parsed<Expression> {
    deeper(input, |input| {
        chain(input, &mut conjunction, &mut |input: &mut Input<'_>| {
            word("or").value(Operator::Or).parse_next(input)
        })
    })
}

fn conjunction(input: &mut Input<'_>) -> Parsed<Expression> {
    chain(input, &mut negation, &mut |input: &mut Input<'_>| {
        word("and").value(Operator::And).parse_next(input)
    })
}

fn negation(input: &mut Input<'_>) -> Parsed<Expression> {
    if opt(word("not")).parse_next(input)?.is_some() {
        let inner = deeper(input, negation)?;
        return Ok(Expression::Not(Box::new(inner)));
    }
    comparison(input)
}

fn comparison(input: &mut Input<'_>) -> Parsed<Expression> {
    let left = membership(input)?;
    let operator = opt(alt((
        sign("==").value(Operator::Equal),
        sign("!=").value(Operator::Unequal),
        sign("<=").value(Operator::LessOrEqual),
        sign(">=").value(Operator::GreaterOrEqual),
        sign("<").value(Operator::Less),
        sign(">").value(Operator::Greater),
    )))
    .parse_next(input)?;
    match operator {
        None => Ok(left),
        Some(operator) => {
            let right = cut_err(membership).parse_next(input)?;
            Ok(Expression::Binary(operator, Box::new(left), Box::new(right)))
        }
    }
}

fn membership(input: &mut Input<'_>) -> Parsed<Expression> {
    let left = part(input)?;
    match opt(preceded(word("in"), cut_err(component))).parse_next(input)? {
        None => Ok(left),
        Some(list) => Ok(Expression::In(Box::new(left), list)),
    }
}

fn part(input: &mut Input<'_>) -> Parsed<Expression> {
    let left = sum(input)?;
    match opt(preceded(sign("~"), cut_err(sum))).parse_next(input)? {
        None => Ok(left),
        Some(right) => Ok(Expression::Binary(Operator::Within, Box::new(left), Box::new(right))),
    }
}

fn sum(input: &mut Input<'_>) -> Parsed<Expression> {
    chain(input, &mut product, &mut |input: &mut Input<'_>| {
        alt((sign("+").value(Operator::Plus), sign("-").value(Operator::Minus))).parse_next(input)
    })
}

fn product(input: &mut Input<'_>) -> Parsed<Expression> {
    chain(input, &mut factor, &mut |input: &mut Input<'_>| {
        alt((sign("*").value(Operator::Times), sign("/").value(Operator::Divided)))
            .parse_next(input)
    })
}

/// Operands between operators of one rank; the left ones first.
fn chain<'t>(
    input: &mut Input<'t>,
    operand: &mut dyn FnMut(&mut Input<'t>) -> Parsed<Expression>,
    operator: &mut dyn FnMut(&mut Input<'t>) -> Parsed<Operator>,
) -> Parsed<Expression> {
    let mut left = operand(input)?;
    let mut length = 1;
    while let Some(between) = opt(&mut *operator).parse_next(input)? {
        length += 1;
        if length > DEPTH_MAX {
            return Err(ErrMode::Cut(ContextError::new()));
        }
        let right = match operand(input) {
            Err(ErrMode::Backtrack(error)) => return Err(ErrMode::Cut(error)),
            other => other?,
        };
        left = Expression::Binary(between, Box::new(left), Box::new(right));
    }
    Ok(left)
}

fn factor(input: &mut Input<'_>) -> Parsed<Expression> {
    multispace0.parse_next(input)?;
    alt((
        delimited('(', cut_err(expression), cut_err(sign(")"))),
        preceded(word("exist"), cut_err(component)).map(Expression::Exist),
        word("TRUE").value(Expression::Literal(Value::Boolean(true))),
        word("FALSE").value(Expression::Literal(Value::Boolean(false))),
        text.map(|text| Expression::Literal(Value::Text(text))),
        number.map(Expression::Literal),
        component.map(Expression::Component),
        preceded('+', |input: &mut Input<'_>| deeper(input, factor)),
        preceded('-', |input: &mut Input<'_>| deeper(input, factor))
            .map(|inner| Expression::Negated(Box::new(inner))),
    ))
    .parse_next(input)
}

/// A word of the language, behind white space, that does not go on.
fn word<'t>(word: &'static str) -> impl Parser<Input<'t>, (), ErrMode<ContextError>> {
    let end = not(one_of(|letter: char| letter.is_alphanumeric() || letter == '_'));
    (multispace0, word, peek(end)).void()
}

/// A sign, behind white space.
fn sign<'t>(sign: &'static str) -> impl Parser<Input<'t>, (), ErrMode<ContextError>> {
    (multispace0, sign).void()
}

fn text(input: &mut Input<'_>) -> Parsed<String> {
    let letter =
        alt((preceded('\\', any), one_of(|letter: char| letter != '\'' && letter != '\\')));
    let letters = repeat(0.., letter).fold(String::new, |mut text, letter: char| {
        text.push(letter);
        text
    });
    delimited('\'', letters, cut_err('\'')).parse_next(input)
}

fn number(input: &mut Input<'_>) -> Parsed<Value> {
    let exponent = (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1).take();
    let (whole, fraction, exponent) =
        (digit1, opt(('.', digit1).take()), opt(exponent)).parse_next(input)?;
    let failed = || ErrMode::Cut(ContextError::new());
    if fraction.is_none() && exponent.is_none() {
        return whole.parse().map(Value::Integer).map_err(|_| failed());
    }
    let mut text = whole.to_string();
    text.push_str(fraction.unwrap_or_default());
    text.push_str(exponent.unwrap_or_default());
    match text.parse::<f64>() {
        Ok(real) if real.is_finite() => Ok(Value::Real(real)),
        _ => Err(failed()),
    }
}

fn identifier(input: &mut Input<'_>) -> Parsed<String> {
    let begin = one_of(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let letters = take_while(0.., |letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    // A backslash says that what follows is a name, and no word of the language.
    preceded(opt('\\'), (begin, letters).take()).map(ToString::to_string).parse_next(input)
}

fn component(input: &mut Input<'_>) -> Parsed<Component> {
    multispace0.parse_next(input)?;
    '$'.parse_next(input)?;
    let root = opt(identifier).parse_next(input)?;
    let step = alt((
        preceded('.', identifier).map(Step::Field),
        delimited('[', digit1.try_map(str::parse), ']').map(Step::Index),
        delimited('(', identifier, ')').map(Step::Named),
    ));
    let steps: Vec<Step> = repeat(0..=DEPTH_MAX, step).parse_next(input)?;
    Ok(Component { root, steps })
}
