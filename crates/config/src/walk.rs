//! Walks a spanned TOML table and collects what is wrong instead of stopping at it.
//!
//! What it is not: the knowledge of which keys exist. Each reader of a table asks for its keys;
//! [`Section::finish`] then reports every key that nobody asked for.
//!
//! Invariants: asking never fails, it reports and gives `None`, so that one wrong value hides no
//! other; every text and list is capped before it is kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::codes::Code;
use crate::problem::Problem;
use crate::schema::Shape;
use crate::suggest::nearest;

/// The longest text value, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
/// The longest list.
pub(crate) const LIST_VALUES_MAX: usize = 256;
/// The longest name of a domain, node or group, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

pub(crate) type Span = Range<usize>;
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// Where problems are collected.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: RefCell<Vec<Problem>>,
    /// What was asked for, if somebody wants to know that: by kind of table and key.
    shapes: Option<RefCell<Shapes>>,
}

/// The shape of each key's value, by kind of table and key.
pub(crate) type Shapes = BTreeMap<(String, &'static str), Shape>;

impl Problems {
    /// Such that shapes are kept, too.
    pub(crate) fn with_shapes() -> Self {
        Self { shapes: Some(RefCell::default()), ..Self::default() }
    }

    pub(crate) fn add(&self, problem: Problem) {
        self.found.borrow_mut().push(problem);
    }

    pub(crate) fn into_inner(self) -> Vec<Problem> {
        self.found.into_inner()
    }

    pub(crate) fn into_shapes(self) -> Shapes {
        self.shapes.map(RefCell::into_inner).unwrap_or_default()
    }
}

/// One table of the file, asked key by key.
pub(crate) struct Section<'t> {
    /// How messages call it, such as `[group.bank]`.
    pub(crate) title: String,
    /// Its kind of table, such as `group`.
    kind: String,
    /// Where messages about the table as a whole point to.
    pub(crate) header: Span,
    pub(crate) problems: &'t Problems,
    table: Option<&'t DeTable<'t>>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'t> Section<'t> {
    pub(crate) fn new(
        title: impl Into<String>,
        header: Span,
        table: Option<&'t DeTable<'t>>,
        problems: &'t Problems,
    ) -> Self {
        let title = title.into();
        let kind = title.trim_matches(['[', ']']).split('.').next().unwrap_or_default().to_owned();
        Self { title, kind, header, problems, table, asked: RefCell::default() }
    }

    /// The table itself, for who writes it down.
    pub(crate) const fn table(&self) -> Option<&'t DeTable<'t>> {
        self.table
    }

    /// Keeps what shape the value of `key` has, if somebody wants to know. What is said later of
    /// a key says more.
    fn note(&self, key: &'static str, shape: impl FnOnce() -> Shape) {
        let Some(shapes) = &self.problems.shapes else { return };
        shapes.borrow_mut().insert((self.kind.clone(), key), shape());
    }

    /// The value of `key`, of whatever type.
    pub(crate) fn value(&self, key: &'static str) -> Option<&'t Value<'t>> {
        self.asked.borrow_mut().push(key);
        self.table?.get(key)
    }

    /// The table `key`, or an empty section if there is none.
    pub(crate) fn section(&self, key: &'static str) -> Section<'t> {
        let title = format!("[{key}]");
        self.asked.borrow_mut().push(key);
        let entry = self.table.and_then(|table| table.get_key_value(key));
        let Some((name, value)) = entry else {
            return Section::new(title, self.header.clone(), None, self.problems);
        };
        let table = self.as_table(key, value);
        Section::new(title, name.span(), table, self.problems)
    }

    /// The tables under `key` in the order of the file, each with its name.
    pub(crate) fn named(&self, key: &'static str) -> Vec<(At<&'t str>, Section<'t>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(table) = self.as_table(key, value) else { return Vec::new() };
        let mut sections: Vec<_> = table
            .iter()
            .map(|(name, value)| {
                let at = At { value: name.get_ref().as_ref(), span: name.span() };
                self.check_name(key, &at);
                let mut title = format!("[{key}.{}]", at.value);
                if let Some((outer, _)) = self.title.split_once(']')
                    && outer.len() > 1
                {
                    title = format!("{outer}.{}", &title[1..]);
                }
                let table = self.as_table(&format!("{key}.{}", at.value), value);
                let mut section = Section::new(title, at.span.clone(), table, self.problems);
                key.clone_into(&mut section.kind);
                (at, section)
            })
            .collect();
        // The map is sorted by name; node ids are positions in the file.
        sections.sort_by_key(|(name, _)| name.span.start);
        sections
    }

    fn as_table(&self, key: &str, value: &'t Value<'t>) -> Option<&'t DeTable<'t>> {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(key, "a table", value);
            return None;
        };
        Some(table)
    }

    /// A text; reported if it is another type, empty or too long.
    pub(crate) fn text(&self, key: &'static str) -> Option<At<&'t str>> {
        self.note(key, || Shape::Text);
        self.as_text(key, self.value(key)?)
    }

    /// A text of at most so many octets.
    pub(crate) fn long_text(&self, key: &'static str, bytes_max: usize) -> Option<At<&'t str>> {
        self.note(key, || Shape::Text);
        self.as_text_within(key, self.value(key)?, bytes_max)
    }

    pub(crate) fn as_text(&self, key: &str, value: &'t Value<'t>) -> Option<At<&'t str>> {
        self.as_text_within(key, value, TEXT_BYTES_MAX)
    }

    fn as_text_within(
        &self,
        key: &str,
        value: &'t Value<'t>,
        bytes_max: usize,
    ) -> Option<At<&'t str>> {
        let DeValue::String(text) = value.get_ref() else {
            self.wrong_type(key, "a text in quotes", value);
            return None;
        };
        if text.len() > bytes_max {
            let message = format!("`{key}` is longer than {bytes_max} bytes");
            self.problems.add(Problem::at(Code::TooMany, value.span(), message));
            return None;
        }
        if text.is_empty() {
            let message = format!("`{key}` is empty");
            self.problems.add(Problem::at(Code::OutOfRange, value.span(), message));
            return None;
        }
        if text.contains('\0') {
            let message = format!("`{key}` contains a NUL character");
            self.problems.add(Problem::at(Code::OutOfRange, value.span(), message));
            return None;
        }
        Some(At { value: text.as_ref(), span: value.span() })
    }

    /// A text that must be there.
    pub(crate) fn required_text(&self, key: &'static str, hint: &str) -> Option<At<&'t str>> {
        self.require(key, hint);
        self.text(key)
    }

    /// Reports if `key` is missing.
    pub(crate) fn require(&self, key: &'static str, hint: &str) {
        if self.value(key).is_none() {
            let message = format!("{} has no `{key}`", self.title);
            let problem = Problem::at(Code::MissingKey, self.header.clone(), message);
            self.problems.add(problem.label(format!("needs `{key}`")).help(hint));
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &'static str) -> Option<At<Vec<At<&'t str>>>> {
        self.note(key, || Shape::Texts);
        let value = self.value(key)?;
        let DeValue::Array(list) = value.get_ref() else {
            self.wrong_type(key, "a list of texts", value);
            return None;
        };
        if list.len() > LIST_VALUES_MAX {
            let message = format!("`{key}` has more than {LIST_VALUES_MAX} values");
            self.problems.add(Problem::at(Code::TooMany, value.span(), message));
            return None;
        }
        let texts = list.iter().filter_map(|value| self.as_text(key, value)).collect();
        Some(At { value: texts, span: value.span() })
    }

    /// A number in `range`.
    pub(crate) fn number(
        &self,
        key: &'static str,
        unit: &str,
        range: RangeInclusive<u64>,
    ) -> Option<At<u64>> {
        self.note(key, || Shape::number(unit, range.clone(), None));
        let value = self.value(key)?;
        let DeValue::Integer(digits) = value.get_ref() else {
            let expected =
                if unit.is_empty() { "a number".to_owned() } else { format!("a number of {unit}") };
            self.wrong_type(key, &expected, value);
            return None;
        };
        // A number that does not even fit is out of range, too.
        let number = i128::from_str_radix(digits.as_str(), digits.radix()).ok();
        let number = number.and_then(|number| u64::try_from(number).ok());
        if let Some(value_in_range) = number.filter(|number| range.contains(number)) {
            return Some(At { value: value_in_range, span: value.span() });
        }
        let message = format!("`{key}` is out of range");
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let label = format!("possible: {} to {}{unit}", range.start(), range.end());
        self.problems.add(Problem::at(Code::OutOfRange, value.span(), message).label(label));
        None
    }

    /// A number of `range`, or the default.
    pub(crate) fn number_or<T>(
        &self,
        key: &'static str,
        unit: &str,
        range: RangeInclusive<u64>,
        default: T,
    ) -> T
    where
        T: TryFrom<u64> + Display,
    {
        let number = self.number(key, unit, range.clone()).map(|at| at.value);
        self.note(key, || Shape::number(unit, range, Some(default.to_string())));
        number.and_then(|number| T::try_from(number).ok()).unwrap_or(default)
    }

    /// A time in milliseconds, or the default.
    pub(crate) fn millis_or(
        &self,
        key: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Duration {
        Duration::from_millis(self.number_or(key, "milliseconds", range, default))
    }

    /// A port, which is not 0.
    pub(crate) fn port(&self, key: &'static str) -> Option<At<u16>> {
        let range = 1..=u64::from(u16::MAX);
        let at = self.number(key, "", range.clone());
        self.note(key, || Shape::number("port", range, None));
        let at = at?;
        let port = u16::try_from(at.value).ok()?;
        Some(At { value: port, span: at.span })
    }

    /// `true` or `false`, or the default.
    pub(crate) fn boolean_or(&self, key: &'static str, default: bool) -> bool {
        self.note(key, || Shape::Boolean { default });
        match self.value(key) {
            None => default,
            Some(value) => match value.get_ref() {
                DeValue::Boolean(boolean) => *boolean,
                _ => {
                    self.wrong_type(key, "true or false", value);
                    default
                }
            },
        }
    }

    /// One of a few words, or the default. `later` are words of versions to come.
    pub(crate) fn word_or<T: Copy + PartialEq>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        later: &[&str],
        default: T,
    ) -> T {
        let text = self.text(key);
        self.note(key, || {
            let of_default = words.iter().find(|(_, value)| *value == default);
            Shape::Word {
                words: words.iter().map(|(word, _)| (*word).to_owned()).collect(),
                default: of_default.map(|(word, _)| (*word).to_owned()),
            }
        });
        let Some(text) = text else { return default };
        self.as_word(key, &text, words, later).unwrap_or(default)
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key);
        self.note(key, || Shape::Word {
            words: words.iter().map(|(word, _)| (*word).to_owned()).collect(),
            default: None,
        });
        self.as_word(key, &text?, words, &[])
    }

    fn as_word<T: Copy>(
        &self,
        key: &'static str,
        text: &At<&str>,
        words: &[(&str, T)],
        later: &[&str],
    ) -> Option<T> {
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(*value);
        }
        let known: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let known = known.join(", ");
        if later.contains(&text.value) {
            let message = format!("`{key} = \"{}\"` is not in this version", text.value);
            let problem = Problem::at(Code::NotInThisVersion, text.span.clone(), message);
            self.problems.add(problem.help(format!("possible in this version: {known}")));
            return None;
        }
        let candidates = words.iter().map(|(word, _)| *word).chain(later.iter().copied());
        let meant = nearest(text.value, candidates).map(|word| format!("did you mean \"{word}\"?"));
        let message = format!("`{key}` cannot be \"{}\"", text.value);
        let problem = Problem::at(Code::UnknownValue, text.span.clone(), message);
        self.problems.add(problem.label(format!("possible: {known}")).maybe_help(meant));
        None
    }

    /// Reports a name that cannot stand in paths and commands.
    pub(crate) fn check_name(&self, what: &str, name: &At<&str>) {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let bytes = name.value.as_bytes();
        let fine = !bytes.is_empty()
            && bytes.len() <= NAME_BYTES_MAX
            && bytes[0].is_ascii_alphanumeric()
            && bytes.iter().all(|&byte| good(byte));
        if !fine {
            let message = format!("{what} name {:?} cannot be used", shortened(name.value));
            let help = format!(
                "1 to {NAME_BYTES_MAX} letters, digits, '-', '_', '.', the first one a letter or \
                 digit"
            );
            self.problems.add(Problem::at(Code::BadName, name.span.clone(), message).help(help));
        }
    }

    pub(crate) fn wrong_type(&self, key: &str, expected: &str, value: &Value<'_>) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{key}` must be {expected}, found {found}");
        let help = match value.get_ref() {
            DeValue::String(text) if text.parse::<i64>().is_ok() || is_truth(text) => {
                Some(format!("without quotation marks: {key} = {text}"))
            }
            DeValue::String(text) if expected.contains("list") => {
                Some(format!("in brackets: {key} = [{:?}]", shortened(text)))
            }
            DeValue::Integer(_) | DeValue::Boolean(_) if expected.contains("text") => {
                Some(format!("in quotation marks: {key} = \"...\""))
            }
            _ => None,
        };
        let problem = Problem::at(Code::WrongType, value.span(), message).maybe_help(help);
        self.problems.add(problem);
    }

    /// Reports every key that was not asked for.
    pub(crate) fn finish(self) {
        let Some(table) = self.table else { return };
        let asked = self.asked.into_inner();
        for (key, _) in table.iter() {
            let name = key.get_ref().as_ref();
            if asked.contains(&name) {
                continue;
            }
            let meant = nearest(name, asked.iter().copied());
            let help = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => {
                    let mut known = asked.clone();
                    known.sort_unstable();
                    known.dedup();
                    format!("{} knows: {}", self.title, known.join(", "))
                }
            };
            let message = format!("{} has no key `{}`", self.title, shortened(name));
            let problem = Problem::at(Code::UnknownKey, key.span(), message);
            self.problems.add(problem.label("unknown key").help(help));
        }
    }
}

/// The beginning of a text that came from the file, for a message.
pub(crate) fn shortened(text: &str) -> String {
    const CHARS: usize = 80;
    match text.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

fn is_truth(text: &str) -> bool {
    matches!(text, "true" | "false")
}
