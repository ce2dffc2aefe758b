//! What `quorba events pub` pushes: its arguments, or the lines of a file.
//!
//! What it is not: how JSON becomes a value of IDL; that is `value`'s.
//!
//! Invariants: no more of a file is held than one line, of [`LINE_BYTES_MAX`]; what is JSON is
//! never pushed as a text because it is no event; what cannot be an event is told with its place.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use quorba_corba::Any;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::value;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// An event of 4 MiB is shorter as JSON: six octets for one are the most, as in `\u0001`.
const LINE_BYTES_MAX: u64 = 32 << 20;

/// What an event may be.
const RULES: &str = "an event is JSON of at most 24 levels; its whole numbers have at most 64 \
                     bits, its objects a member at least, whose names have a character at least \
                     and take 64 KiB at most, and neither names nor texts have a zero";

/// Whether a text that is no JSON is itself an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plain {
    IsText,
    IsWrong,
}

/// An event, or why the text is none.
fn read(text: &str, plain: Plain) -> Result<Any, String> {
    let value = match serde_json::from_str(text) {
        Ok(value) => value,
        // It may be JSON all the same: nested deeper, or with a number that is none of IDL.
        Err(error) if plain == Plain::IsWrong || is_json(text) => {
            return Err(error.to_string().replace(" at line 1 column ", ", at its character "));
        }
        Err(_) => Value::String(text.to_owned()),
    };
    if !value.is_string() && has_wide_number(text) {
        return Err("a whole number has more than 64 bits".to_owned());
    }
    value::read(&value).ok_or_else(|| "it has no type of IDL".to_owned())
}

/// Whatever it says.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a whole number of a JSON text fits into no number of IDL. It would be read as the
/// `double` next to it.
fn has_wide_number(json: &str) -> bool {
    let mut rest = json;
    while let Some(begin) = rest.find(|next: char| next == '"' || next == '-' || is_digit(next)) {
        rest = &rest[begin..];
        if let Some(behind) = rest.strip_prefix('"') {
            rest = after_text(behind);
            continue;
        }
        let of_number = |next: char| is_digit(next) || "+-.eE".contains(next);
        let end = rest.find(|next| !of_number(next)).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let is_whole = !number.contains(['.', 'e', 'E']);
        if is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return true;
        }
        rest = behind;
    }
    false
}

const fn is_digit(next: char) -> bool {
    next.is_ascii_digit()
}

/// What stands behind a text whose first quotation mark has been read.
fn after_text(text: &str) -> &str {
    let mut is_escaped = false;
    for (place, octet) in text.bytes().enumerate() {
        match octet {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return &text[place + 1..],
            _ => {}
        }
    }
    ""
}

fn no_event(what: String) -> Failure {
    Failure::new(codes::USAGE, Exit::Usage, what, RULES)
}

/// Events, one after the other.
pub(super) type Events<'e> = Box<dyn Iterator<Item = Result<Any, Failure>> + 'e>;

/// Those that stand in the command line.
pub(super) fn arguments(texts: &[String]) -> Events<'_> {
    let event = |text: &String| {
        let event = read(text, Plain::IsText);
        event.map_err(|why| no_event(format!("{text:.80} cannot be an event: {why}")))
    };
    Box::new(texts.iter().map(event))
}

/// Those of a file, `-` being standard input: JSON on each line that is not empty.
pub(super) fn file(path: &Path) -> Result<Events<'static>, Failure> {
    let (from, name): (Box<dyn Read>, _) = match path == Path::new("-") {
        true => (Box::new(io::stdin()), "standard input".to_owned()),
        false => {
            let file = File::open(path).map_err(|error| unreadable(path.display(), &error))?;
            (Box::new(file), path.display().to_string())
        }
    };
    Ok(Box::new(Lines { from: BufReader::new(from), name, number: 0 }))
}

fn unreadable(name: impl std::fmt::Display, error: &io::Error) -> Failure {
    let what = format!("{name} cannot be read: {}", system_reason(error));
    Failure::new(codes::FILE, Exit::Failed, what, "give a file with one event on each line")
}

struct Lines<R> {
    from: BufReader<R>,
    name: String,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// The next line; none behind the last one.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        let read = self.from.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
        self.number += 1;
        if read.map_err(|error| unreadable(&self.name, &error))? == 0 {
            return Ok(None);
        }
        if line.len() as u64 > LINE_BYTES_MAX {
            let (number, name) = (self.number, &self.name);
            let what = format!("line {number} of {name} has more than 32 MiB: no event is so long");
            return Err(no_event(what));
        }
        Ok(Some(line))
    }

    fn event(&self, line: Vec<u8>) -> Result<Any, Failure> {
        let text = String::from_utf8(line).map_err(|_| "it is no UTF-8".to_owned());
        text.and_then(|text| read(text.trim_end(), Plain::IsWrong)).map_err(|why| {
            no_event(format!("line {} of {} cannot be an event: {why}", self.number, self.name))
        })
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Result<Any, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.line() {
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                Ok(Some(line)) => return Some(self.event(line)),
                Ok(None) => return None,
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str, plain: Plain) -> String {
        read(text, plain).expect_err(text)
    }

    #[test]
    fn a_text_that_is_no_json_is_itself_where_it_is_an_argument_only() {
        let pump = read("pump 7", Plain::IsText).expect("a text");
        assert_eq!(pump.get::<String>(), Some("pump 7".to_owned()));
        assert!(why("pump 7", Plain::IsWrong).contains("at its character 1"));
        assert!(why("{\"a\": 1", Plain::IsWrong).contains("EOF"));
    }

    #[test]
    fn json_that_is_no_event_is_never_a_text() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        assert!(why(&deep, Plain::IsText).contains("recursion limit"));
        assert!(why("1e999", Plain::IsText).contains("out of range"));
        assert!(why("{}", Plain::IsText).contains("no type of IDL"));
    }

    #[test]
    fn a_whole_number_is_pushed_as_it_is_or_not_at_all() {
        for wide in ["18446744073709551616", "-9223372036854775809"] {
            for text in [wide.to_owned(), format!("{{\"\\\"\": [1.5, {wide}]}}")] {
                assert!(why(&text, Plain::IsText).contains("64 bits"), "{text}");
            }
        }
        for text in ["18446744073709551615", "-9223372036854775808", "1e30", "-0", "2.0"] {
            read(text, Plain::IsText).expect(text);
        }
        // A text may have any number in it.
        let text = "{\"18446744073709551616\": \"\\\\\", \"b\": \"\\\"18446744073709551616\"}";
        read(text, Plain::IsText).expect("no number");
        read("\"18446744073709551616\"", Plain::IsText).expect("a text");
        read("pump 18446744073709551616", Plain::IsText).expect("a text");
    }

    fn lines(octets: &[u8]) -> Vec<Result<Any, Failure>> {
        let lines = Lines { from: BufReader::new(octets), name: "f".to_owned(), number: 0 };
        lines.collect()
    }

    #[test]
    fn lines_are_told_by_their_numbers_and_empty_ones_are_none() {
        let all = lines(b"1\r\n\n  \n2\n{\n\xff\n3");
        assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 3);
        let told: Vec<_> = all.iter().filter_map(|one| one.as_ref().err()).collect();
        assert!(told[0].what.starts_with("line 5 of f cannot be an event: EOF"), "{}", told[0]);
        assert!(told[1].what.contains("line 6 of f cannot be an event: it is no UTF-8"));
    }

    #[test]
    fn a_line_without_an_end_is_not_held() {
        let endless = io::repeat(b'1').take(1 << 40);
        let mut lines = Lines { from: BufReader::new(endless), name: "f".to_owned(), number: 0 };
        let told = lines.next().expect("something").expect_err("too long");
        assert!(told.what.contains("line 1 of f has more than 32 MiB"), "{told}");
    }
}
