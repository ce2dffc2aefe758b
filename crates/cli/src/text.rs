//! Small shapes of text: tables, wrapped paragraphs, times and sizes for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
pub use quorba_admin::health::words::{age, size};

/// A table of columns that line up, without lines, as wide as its content. Columns whose
/// heading begins with `>` are aligned to the right.
pub fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|heading| heading.trim_start_matches('>')));
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if headings[index].starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `text` in lines of at most `columns`, each after `indent`.
pub fn wrapped(text: &str, columns: usize, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::from(indent);
    for word in text.split_whitespace() {
        let begun = line.len() > indent.len();
        if begun && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

/// A short time for people: `412 µs`, `3.1 ms`, `2.00 s`.
pub fn span_us(us: f64) -> String {
    match us {
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 1_000_000.0 => format!("{:.1} ms", us / 1_000.0),
        us => format!("{:.2} s", us / 1_000_000.0),
    }
}

/// A number with spaces between thousands: `1 204 417`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// What the system said, without the number that the standard library adds, in lower case.
pub fn system_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let said = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = said.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "no reason given".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_204_417), "1 204 417");
        assert_eq!(span_us(3_140.0), "3.1 ms");
    }

    #[test]
    fn paragraphs_wrap_between_words() {
        assert_eq!(wrapped("one two three", 9, "  "), "  one two\n  three");
        assert_eq!(wrapped("unbreakable", 3, ""), "unbreakable");
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["n1".into(), "7".into()], vec!["node2".into(), "1 204".into()]];
        assert_eq!(table(&["NODE", ">SEQ"], rows), "NODE     SEQ\nn1         7\nnode2  1 204\n");
    }
}
