//! In which keys two domain files differ, from their canonical texts.
//!
//! What it is not: a comparison of files. What may differ between hosts is in neither text.
//! Invariant: two texts that are not equal differ in at least one thing that is named.

use std::collections::BTreeMap;

/// More are not named.
const NAMED_MAX: usize = 8;

/// The places in which two canonical texts ([`crate::Domain::canonical`]) differ, such as
/// `group.bank.listen`, or `node.n3` where only one has it; in the order of their names, a few of
/// many.
#[must_use]
pub fn differences(one: &str, other: &str) -> Vec<String> {
    if one == other {
        return Vec::new();
    }
    let (one, other) = (entries(one), entries(other));
    let mut found: Vec<String> = Vec::new();
    for section in one.keys().chain(other.keys()) {
        let (Some(one), Some(other)) = (one.get(section), other.get(section)) else {
            found.push(section.clone());
            continue;
        };
        let keys = one.keys().chain(other.keys());
        let differ = keys.filter(|key| one.get(*key) != other.get(*key));
        found.extend(differ.map(|key| format!("{section}.{key}")));
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        found.push("the order of its parts".into());
    }
    if found.len() > NAMED_MAX {
        let more = found.len() - NAMED_MAX;
        found.truncate(NAMED_MAX);
        found.push(format!("{more} more"));
    }
    found
}

/// By section, such as `group.bank`, what stands in it by key.
fn entries(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        let goes_on = line.starts_with(' ');
        let mut words = line.split_whitespace().peekable();
        if !goes_on {
            let kind = words.next().unwrap_or_default();
            // Those of which there are several have names.
            let has_name = words.peek().is_some_and(|word| !word.contains('='));
            section = match words.next_if(|_| has_name) {
                Some(name) => format!("{kind}.{name}"),
                None => kind.to_owned(),
            };
            sections.entry(section.clone()).or_default();
        }
        let keys = sections.entry(section.clone()).or_default();
        let mut last: Option<String> = None;
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => {
                    let key = key_of(key).to_owned();
                    keys.insert(key.clone(), value.to_owned());
                    last = Some(key);
                }
                // A value with a blank in it, or a key that is only there or not.
                None => match last.as_ref().and_then(|key| keys.get_mut(key)) {
                    Some(value) => *value = format!("{value} {word}"),
                    None => drop(keys.insert(word.to_owned(), String::new())),
                },
            }
        }
    }
    sections
}

/// As it is called in the domain file.
fn key_of(key: &str) -> &str {
    match key {
        "key" => "object_key",
        "state" => "state_object",
        "type" => "type_id",
        "offset" => "gateway_port_offset",
        "retention_ms" => "reply_retention_ms",
        "wait_ms" => "unavailable_wait_ms",
        "total_loss" => "on_total_loss",
        "checkpoint" => "checkpoint_requests",
        "compare" => "compare_replies",
        "accelerated" => "mode",
        "rests" => "token",
        "datagram" => "datagram_bytes",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "quorba 9\ndomain plant\nring encrypt=true token_loss_ms=None\n\
                        node n1 host=10.0.0.1 ring_port=4700\n\
                        group bank style=active listen=5000 key=Some(\"a b\")\n\x20ack=all\n\
                        \x20durable\n";

    #[test]
    fn what_differs_is_named_as_in_the_file() {
        let differ = |from: &str, to: &str| differences(TEXT, &TEXT.replace(from, to));
        assert_eq!(differ("x", "y"), Vec::<String>::new());
        assert_eq!(differ("listen=5000", "listen=5001"), ["group.bank.listen"]);
        assert_eq!(differ("a b", "a c"), ["group.bank.object_key"]);
        assert_eq!(
            differ("ack=all\n durable", "ack=one"),
            ["group.bank.ack", "group.bank.durable"]
        );
        assert_eq!(differ("n1", "n2"), ["node.n1", "node.n2"]);
        assert_eq!(differ("encrypt=true", "encrypt=false"), ["ring.encrypt"]);
        assert_eq!(differ("domain plant", "domain mill"), ["domain.mill", "domain.plant"]);
        assert_eq!(differ("quorba 9", "quorba 8"), ["quorba.8", "quorba.9"]);
    }

    #[test]
    fn texts_that_are_not_equal_differ_in_something_whatever_they_are() {
        for other in ["", " ", "=", "\n\n", "group", &format!("{TEXT}\n")] {
            assert!(!differences(TEXT, other).is_empty(), "{other:?}");
        }
        let many: String = (0..100).map(|n| format!("node n{n} a=1\n")).collect();
        assert_eq!(differences("", &many).len(), NAMED_MAX + 1);
    }
}
