//! Every key of the domain file: what it is for, what it may be, and what a change of it takes.
//!
//! What it is not: the reader. Shapes and defaults are what the reader asks a small file for, so
//! that they cannot be others than it uses; only the sentences stand here.
//!
//! Invariant: every key that the reader knows is described, and no other.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::effects::{EFFECTS, Effect};
use crate::key::DomainKey;
use crate::read::shapes_of;
use crate::walk::Shapes;

mod texts;

/// What a value may be, and what it is where the file does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A whole number.
    Number {
        /// Of what, such as `milliseconds`; empty where it is a count.
        unit: String,
        /// What it may be.
        range: RangeInclusive<u64>,
        /// In digits; `None`: the key's text says it.
        default: Option<String>,
    },
    /// `true` or `false`.
    Boolean {
        /// Which, where the file does not say.
        default: bool,
    },
    /// One of a few words.
    Word {
        /// All of them.
        words: Vec<String>,
        /// Which, where the file does not say.
        default: Option<String>,
    },
    /// A text in quotes.
    Text,
    /// A list of texts.
    Texts,
    /// Something of its own, as the key's text says.
    Other,
}

impl Shape {
    pub(crate) fn number(unit: &str, range: RangeInclusive<u64>, default: Option<String>) -> Self {
        Self::Number { unit: unit.to_owned(), range, default }
    }
}

/// One key.
#[derive(Clone, Debug)]
pub struct Key {
    /// The kind of table, such as `group`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub shape: Shape,
    /// What a change of it takes.
    pub effect: Effect,
    /// What it is for: a sentence or two.
    pub text: &'static str,
}

/// The kinds of tables, in the order in which a file has them, each with what it is.
pub const TABLES: [(&str, &str); 10] = [
    ("domain", "the domain as a whole"),
    ("ring", "how messages are ordered and protected"),
    ("gateway", "one port for all groups that have none of their own"),
    ("limits", "what one node's gateways let clients use"),
    ("node", "`[node.NAME]`: one process that takes part in the ring"),
    ("group", "`[group.NAME]`: one replicated server, and how it is reached"),
    (
        "service",
        "`[service.NAME]`: a server that Quorba brings itself, such as `naming`: a group of that \
         name with all keys of `[group]`, of which these have another default",
    ),
    ("channel", "`[service.events.channel.NAME]`: an event channel of the service `events`"),
    (
        "rt_info",
        "`[service.events.channel.NAME.rt_info.NUMBER]`: what a channel's `strategy` is told of an \
         `rt_info`, by which TAO's consumers say how urgent something is",
    ),
    ("outside", "`[outside.NAME]`: a server that is not in the domain, and that groups call"),
];

/// All that is asked for has to be asked: with each table there.
const SAMPLE: &str = r#"
[domain]
id = "d"
key_file = "k"
[gateway]
listen = 5000
[node.n1]
host = "10.0.0.1"
[group.g]
members = ["n1"]
server = ["/bin/true", "{port}"]
[service.naming]
[service.events.channel.c]
rt_info.1 = {}
[outside.o]
reference = "corbaloc:iiop:1.2@h:1/k"
"#;

/// All keys, table by table, each table's in the order of their names.
#[must_use]
pub fn keys() -> Vec<Key> {
    let found = shapes();
    let shape = |table: &str, name: &'static str| found.get(&(table.to_owned(), name)).cloned();
    let texts: BTreeMap<_, _> = texts::TEXTS.iter().map(|(at, text)| (*at, *text)).collect();
    TABLES
        .iter()
        .filter_map(|(table, _)| EFFECTS.iter().find(|(kind, _)| kind == table))
        .flat_map(|(table, keys)| keys.iter().map(move |(name, effect)| (*table, *name, *effect)))
        .map(|(table, name, effect)| Key {
            table,
            name,
            shape: shape(table, name).unwrap_or(Shape::Other),
            effect,
            text: texts.get(&(table, name)).copied().unwrap_or_default(),
        })
        .collect()
}

fn shapes() -> Shapes {
    let key = |_: &Path| Ok(vec![DomainKey::from_bytes([0; 32])]);
    shapes_of(Path::new("quorba.toml"), SAMPLE, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_is_described_and_no_other() {
        let keys = keys();
        for key in &keys {
            assert!(!key.text.is_empty(), "{}.{} has no text", key.table, key.name);
        }
        let known: BTreeSet<_> = keys.iter().map(|key| (key.table, key.name)).collect();
        for (at, _) in texts::TEXTS {
            assert!(known.contains(at), "{at:?} is no key");
        }
        assert_eq!(texts::TEXTS.len(), known.len(), "a key stands twice");
    }

    #[test]
    fn a_shape_is_what_the_reader_asks_for() {
        let keys = keys();
        let shape = |table, name| {
            let found = keys.iter().find(|key| (key.table, key.name) == (table, name));
            found.expect("a key").shape.clone()
        };
        let millis = Shape::number("milliseconds", 10..=86_400_000, Some("30000".into()));
        assert_eq!(shape("group", "server_reply_ms"), millis);
        assert_eq!(shape("group", "durable"), Shape::Boolean { default: false });
        let Shape::Word { words, default } = shape("group", "style") else { panic!("a word") };
        assert!(words.contains(&"warm-passive".to_owned()));
        assert_eq!(default.as_deref(), Some("active"));
        assert_eq!(shape("node", "host"), Shape::Text);
        assert_eq!(shape("group", "readonly"), Shape::Texts);
        assert_eq!(shape("channel", "reliable"), Shape::Boolean { default: false });
        let channel = || keys.iter().filter(|key| key.table == "channel");
        let told = channel().filter(|key| key.name != "rt_info");
        assert!(told.clone().count() > 0 && told.into_iter().all(|key| key.shape != Shape::Other));
        assert_eq!(shape("rt_info", "critical"), Shape::Boolean { default: false });
        assert_eq!(
            shape("limits", "connections"),
            Shape::number("", 1..=1_000_000, Some("1000".into()))
        );
    }
}
