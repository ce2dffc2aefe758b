//! `quorba config keys`: every key of the domain file; docs/reference/config.md is made of it.
//!
//! What it is not: what a file says. Invariant: text, JSON and Markdown have the same keys.

use clap::Args;
use quorba_config::{Key, Shape, TABLES, keys};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::{self, wrapped};

const WIDTH: usize = 98;

/// Say what each key of the domain file is for, may be, and is by default
#[derive(Debug, Args)]
pub struct Keys {
    /// Only this table, such as group, or this key, such as group.style or style
    name: Option<String>,

    /// Print the page docs/reference/config.md
    #[arg(long, hide = true)]
    markdown: bool,
}

impl Keys {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        if self.markdown {
            context.print(&markdown())?;
            return Ok(Exit::Ok);
        }
        let wanted = |key: &Key| match self.name.as_deref() {
            None => true,
            Some(name) => match name.split_once('.') {
                Some((table, of_table)) => (key.table, key.name) == (table, of_table),
                None => key.table == name || key.name == name,
            },
        };
        let found: Vec<Key> = keys().into_iter().filter(wanted).collect();
        if found.is_empty() {
            let name = self.name.unwrap_or_default();
            let next = "`quorba config keys` prints all of them";
            let what = format!("the domain file has no table and no key `{name}`");
            return Err(Failure::new(codes::USAGE, Exit::Usage, what, next));
        }
        for key in &found {
            if context.is_json() {
                context.print_json(&as_json(key))?;
            } else {
                context.print(&as_text(key))?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn as_text(key: &Key) -> String {
    let text = wrapped(key.text, WIDTH, "    ");
    let values = wrapped(&values(key), WIDTH, "    ");
    format!(
        "{}.{}\n{text}\n{values}\n    Change: {}.\n\n",
        key.table,
        key.name,
        key.effect.as_str()
    )
}

fn as_json(key: &Key) -> Value {
    let mut value = json!({
        "table": key.table,
        "key": key.name,
        "text": key.text,
        "effect": key.effect.word(),
    });
    let shape = match &key.shape {
        Shape::Number { unit, range, default } => {
            let default = default.as_ref().and_then(|digits| digits.parse::<u64>().ok());
            json!({
                "type": "number", "unit": unit, "least": range.start(), "most": range.end(),
                "default": default,
            })
        }
        Shape::Boolean { default } => json!({ "type": "boolean", "default": default }),
        Shape::Word { words, default } => {
            json!({ "type": "word", "words": words, "default": default })
        }
        Shape::Text => json!({ "type": "text" }),
        Shape::Texts => json!({ "type": "texts" }),
        Shape::Other => json!({ "type": "other" }),
    };
    if let (Value::Object(value), Value::Object(shape)) = (&mut value, shape) {
        value.extend(shape);
    }
    value
}

/// What the key may be, and is by default.
fn values(key: &Key) -> String {
    match &key.shape {
        Shape::Number { unit, range, default } => {
            let number = |value: u64| match unit.as_str() {
                "bytes" => bytes(value),
                _ => grouped(value),
            };
            let unit = match unit.as_str() {
                "bytes" | "" => String::new(),
                "port" => return "A port.".to_owned(),
                unit => format!(" {unit}"),
            };
            let range = format!("{} to {}{unit}", number(*range.start()), number(*range.end()));
            match default.as_ref().and_then(|digits| digits.parse().ok()) {
                Some(value) => format!("{range}; default {}.", number(value)),
                None => format!("{range}."),
            }
        }
        Shape::Boolean { default } => format!("`true` or `false`; default `{default}`."),
        Shape::Word { words, default } => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            let words = words.join(", ");
            match default {
                Some(default) => format!("{words}; default `{default}`."),
                None => format!("{words}."),
            }
        }
        Shape::Text => "A text.".to_owned(),
        Shape::Texts => "A list of texts.".to_owned(),
        Shape::Other => String::new(),
    }
}

fn bytes(value: u64) -> String {
    for (unit, size) in [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if value >= size && value.is_multiple_of(size) {
            return format!("{} {unit}", grouped(value / size));
        }
    }
    format!("{} bytes", grouped(value))
}

/// With commas between thousands: at a space a line could end.
fn grouped(value: u64) -> String {
    text::grouped(value).replace(' ', ",")
}

fn markdown() -> String {
    let mut page = String::from(
        "# Keys of the domain file\n\n\
         `quorba config keys` prints the same, `quorba config check FILE` says what is wrong\n\
         with a file. This page is made by `quorba config keys --markdown`, and a test keeps it\n\
         so. Bytes are written as a plain number in the file: 1 MiB is 1048576.\n",
    );
    let all = keys();
    for (table, what) in TABLES {
        page.push_str(&format!("\n## [{table}]\n\n{}\n", wrapped(&sentence(what), WIDTH, "")));
        for key in all.iter().filter(|key| key.table == table) {
            let text = format!("{} {}", key.text, values(key));
            let text = wrapped(text.trim_end(), WIDTH, "");
            let effect = key.effect.as_str();
            page.push_str(&format!("\n### `{}`\n\n{text}\n\nChange: {effect}.\n", key.name));
        }
    }
    page
}

fn sentence(what: &str) -> String {
    let mut chars = what.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
