//! Bindings as a file: JSON, one object to a line, so that a million of them need no memory.
//!
//! The first line says what it is; each further one is a binding: the number of its context (the
//! root is 0), its component, and an `object`, the number of a `context`, or a `foreign` context.
//!
//! Invariant: what is written is read as the same.

use std::io::{BufRead, Write};

use quorba_corba::Object;
use quorba_giop::{Endian, Ior};
use quorba_idl::cos_naming::NameComponent;
use serde::{Deserialize, Serialize};

use super::walk::{Bound, Item};

/// What the first line says.
const FORMAT: &str = "quorba-naming";
const VERSION: u32 = 1;
/// A longer line is something else.
const LINE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "in")]
    within: u64,
    id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    foreign: Option<String>,
}

/// Writes the first line.
pub(super) fn begin(out: &mut impl Write) -> std::io::Result<()> {
    put(out, &Head { format: FORMAT.to_owned(), version: VERSION })
}

/// Writes one binding.
pub(super) fn write(out: &mut impl Write, item: &Item) -> std::io::Result<()> {
    let NameComponent { id, kind } = item.component.clone();
    let mut line = Line { within: item.context, id, kind, ..Line::default() };
    match &item.bound {
        Bound::Object(object) => line.object = Some(object.0.stringify(Endian::Big)),
        Bound::Context(number) => line.context = Some(*number),
        Bound::Foreign(object) => line.foreign = Some(object.0.stringify(Endian::Big)),
    }
    put(out, &line)
}

fn put(out: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Reads a file, binding by binding.
pub(super) struct Lines<R> {
    from: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// Why it is no such file.
    pub(super) fn begin(from: R) -> Result<Self, String> {
        let mut lines = Self { from, number: 0 };
        let head: Option<Head> = lines.line()?;
        match head {
            Some(head) if head.format != FORMAT => {
                Err(format!("it is {:?}, and no {FORMAT}", head.format))
            }
            Some(head) if head.version != VERSION => {
                Err(format!("its version is {}, and this program reads {VERSION}", head.version))
            }
            Some(_) => Ok(lines),
            None => Err("it is empty".to_owned()),
        }
    }

    /// The next binding; none at the end.
    ///
    /// # Errors
    /// Where the file is wrong.
    pub(super) fn next(&mut self) -> Result<Option<Item>, String> {
        let Some(line) = self.line::<Line>()? else { return Ok(None) };
        let number = self.number;
        let reference = |text: String| match Ior::parse(&text) {
            Ok(ior) => Ok(Object(ior)),
            Err(error) => Err(format!("line {number}: {error}")),
        };
        let bound = match (line.object, line.context, line.foreign) {
            (Some(object), None, None) => Bound::Object(reference(object)?),
            (None, Some(number), None) => Bound::Context(number),
            (None, None, Some(object)) => Bound::Foreign(reference(object)?),
            _ => return Err(format!("line {number}: it has not one of object, context, foreign")),
        };
        let component = NameComponent { id: line.id, kind: line.kind };
        Ok(Some(Item { context: line.within, component, bound }))
    }

    fn line<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, String> {
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut self.from, LINE_BYTES_MAX);
        let bytes = limited.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if bytes == 0 {
            return Ok(None);
        }
        self.number += 1;
        let wrong = |error: serde_json::Error| format!("line {}: {error}", self.number);
        serde_json::from_slice(&line).map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let corbaloc = quorba_giop::corbaloc::parse("corbaloc::h:1/k").expect("a reference");
        let object = Object(corbaloc.to_ior());
        let bounds =
            [Bound::Object(object.clone()), Bound::Context(7), Bound::Foreign(object.clone())];
        let mut file = Vec::new();
        begin(&mut file).expect("written");
        let items = bounds.map(|bound| Item {
            context: 3,
            component: NameComponent { id: "a/\u{20ac}".into(), kind: "k".into() },
            bound,
        });
        items.iter().for_each(|item| write(&mut file, item).expect("written"));
        let mut lines = Lines::begin(&file[..]).expect("such a file");
        for item in items {
            assert_eq!(lines.next(), Ok(Some(item)));
        }
        assert_eq!(lines.next(), Ok(None));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_line() {
        let told = |text: &str| match Lines::begin(text.as_bytes()) {
            Ok(mut lines) => lines.next().expect_err("a wrong line"),
            Err(told) => told,
        };
        assert_eq!(told(""), "it is empty");
        let head = "{\"format\":\"quorba-naming\",\"version\":1}\n";
        assert_eq!(told(&head.replace('1', "2")), "its version is 2, and this program reads 1");
        assert!(told("{\"format\":\"x\",\"version\":1}").contains("\"x\""));
        let both = "{\"in\":0,\"id\":\"a\",\"context\":1,\"object\":\"IOR:00\"}";
        for line in ["{}", "[]", "{\"in\":0,\"id\":\"a\"}", both, "\u{1}"] {
            let told = told(&format!("{head}{line}"));
            assert!(told.starts_with("line 2: "), "{line}: {told}");
        }
    }
}
