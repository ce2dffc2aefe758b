//! The canonical octet format of the bank's books: text lines in UTF-8.
//!
//! ```text
//! bank 1
//! counter 2
//! account alice 70
//! account bob 30
//! entry 0 open c0-0 alice - 0
//! …
//! end
//! ```
//! Accounts stand in the order of their names, entries in the order of their numbers; an empty
//! field is `-`, and blank, `%`, line end, and a field that is `-` itself are written as `%` and
//! two upper-case hex digits.
//!
//! Invariants: equal books give equal octets, in every implementation of the bank; what
//! [`decode`] accepts is exactly what [`encode`] writes, so that a state which came over the
//! network leaves as it came.

use std::fmt;

use super::books::{Books, Entry};

/// Octets of an entry line apart from its text fields, about: for sizing the buffer once.
const ENTRY_OCTETS: usize = 48;

/// Why octets are no bank's books: the sender's fault; sending them again does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedState {
    /// The line that is wrong, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub fault: &'static str,
}

impl fmt::Display for MalformedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed bank state in line {}: {}", self.line, self.fault)
    }
}

impl std::error::Error for MalformedState {}

/// The books as octets.
#[must_use]
pub fn encode(books: &Books) -> Vec<u8> {
    let octets = ENTRY_OCTETS * (books.history.len() + books.balances.len() + 3);
    let mut out = String::with_capacity(octets);
    out.push_str("bank 1\n");
    out.push_str(&format!("counter {}\n", books.counter));
    for (account, balance) in &books.balances {
        out.push_str("account ");
        push_field(&mut out, account);
        out.push_str(&format!(" {balance}\n"));
    }
    for entry in &books.history {
        out.push_str(&format!("entry {} ", entry.number));
        for field in [&entry.operation, &entry.reference, &entry.account, &entry.other] {
            push_field(&mut out, field);
            out.push(' ');
        }
        out.push_str(&format!("{}\n", entry.amount));
    }
    out.push_str("end\n");
    out.into_bytes()
}

/// The books that `octets` describe.
///
/// # Errors
/// [`MalformedState`] if the octets are not exactly what [`encode`] would write.
pub fn decode(octets: &[u8]) -> Result<Books, MalformedState> {
    let whole = |fault| MalformedState { line: 1, fault };
    let text = std::str::from_utf8(octets).map_err(|_| whole("not UTF-8"))?;
    let body = text.strip_suffix("end\n").ok_or(whole("does not end with the line `end`"))?;
    let body = body.strip_suffix('\n').ok_or(whole("does not end with the line `end`"))?;
    let mut lines = body.split('\n').enumerate();
    if lines.next().map(|(_, line)| line) != Some("bank 1") {
        return Err(whole("does not begin with the line `bank 1`"));
    }
    let mut books = Books::default();
    match lines.next().and_then(|(_, line)| line.strip_prefix("counter ")) {
        Some(count) => books.counter = number(2, count)?,
        None => return Err(MalformedState { line: 2, fault: "is not the counter" }),
    }
    for (index, line) in lines {
        read_line(&mut books, index + 1, line)?;
    }
    // Anything else than the canonical form would come out different from what came in, and the
    // replicas' states would no longer be comparable octet by octet.
    if encode(&books) != octets {
        return Err(whole("is not in canonical form"));
    }
    Ok(books)
}

fn read_line(books: &mut Books, line: usize, text: &str) -> Result<(), MalformedState> {
    let fault = |fault| MalformedState { line, fault };
    // An account and an entry have 3 and 7 fields; one more tells that there are too many.
    let mut fields = text.splitn(8, ' ');
    let kind = fields.next().unwrap_or_default();
    let mut next = || fields.next().ok_or(fault("has too few fields"));
    match kind {
        "account" if books.history.is_empty() => {
            let (account, balance) = (read_field(line, next()?)?, number(line, next()?)?);
            if books.balances.insert(account, balance).is_some() {
                return Err(fault("repeats an account"));
            }
        }
        "entry" => {
            let entry_number = number(line, next()?)?;
            if entry_number != books.executed() {
                return Err(fault("is an entry out of turn"));
            }
            let operation = read_field(line, next()?)?;
            let reference = read_field(line, next()?)?;
            let account = read_field(line, next()?)?;
            let other = read_field(line, next()?)?;
            let amount = number(line, next()?)?;
            let number = entry_number;
            books.history.push(Entry { number, reference, operation, account, other, amount });
        }
        _ => return Err(fault("is neither an account nor an entry in its place")),
    }
    if next().is_ok() { Err(fault("has too many fields")) } else { Ok(()) }
}

fn number<N: std::str::FromStr>(line: usize, text: &str) -> Result<N, MalformedState> {
    text.parse().map_err(|_| MalformedState { line, fault: "has a number that is none" })
}

fn push_field(out: &mut String, field: &str) {
    match field {
        "" => out.push('-'),
        "-" => out.push_str("%2D"),
        _ => {
            for character in field.chars() {
                match character {
                    ' ' => out.push_str("%20"),
                    '%' => out.push_str("%25"),
                    '\n' => out.push_str("%0A"),
                    _ => out.push(character),
                }
            }
        }
    }
}

fn read_field(line: usize, text: &str) -> Result<String, MalformedState> {
    if text == "-" {
        return Ok(String::new());
    }
    let mut pieces = text.split('%');
    let mut field = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let plain = match piece.get(..2) {
            Some("20") => ' ',
            Some("25") => '%',
            Some("0A") => '\n',
            Some("2D") => '-',
            _ => return Err(MalformedState { line, fault: "has an escape that is none" }),
        };
        field.push(plain);
        field.push_str(&piece[2..]);
    }
    Ok(field)
}
