//! In which keys two domain files differ, from their canonical texts; and in which groups a file
//! differs from what runs.
//!
//! What it is not: a comparison of files. What may differ between hosts is in neither text.
//! Invariant: two texts that are not equal differ in at least one thing that is named.

use std::collections::BTreeMap;

use crate::definition::Definition;

/// More are not named.
const NAMED_MAX: usize = 8;

/// The places in which two canonical texts ([`crate::Domain::canonical`]) differ, such as
/// `ring.encrypt`, or `node.n3` where only one has it; in the order of their names, a few of
/// many.
#[must_use]
pub fn differences(one: &str, other: &str) -> Vec<String> {
    if one == other {
        return Vec::new();
    }
    let mut found: Vec<String> =
        changed_keys(one, other).into_iter().map(|(key, _, _)| key).collect();
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

/// The same with both values, all of them; of a section that only one text has there is the name
/// alone.
pub(crate) fn changed_keys(
    one: &str,
    other: &str,
) -> Vec<(String, Option<String>, Option<String>)> {
    let (one, other) = (entries(one), entries(other));
    let mut found = BTreeMap::new();
    for section in one.keys().chain(other.keys()) {
        let (Some(one), Some(other)) = (one.get(section), other.get(section)) else {
            let is_there = |has: bool| has.then(|| "there".to_owned());
            let there =
                (is_there(one.contains_key(section)), is_there(other.contains_key(section)));
            found.insert(section.clone(), there);
            continue;
        };
        for key in one.keys().chain(other.keys()) {
            let (old, new) = (one.get(key), other.get(key));
            if old != new {
                found.insert(format!("{section}.{key}"), (old.cloned(), new.cloned()));
            }
        }
    }
    found.into_iter().map(|(key, (old, new))| (key, old, new)).collect()
}

/// By section, such as `node.n1`, what stands in it by key.
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
                    let key = key.to_owned();
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

/// The groups in which a domain file differs from the running domain, by name, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupDifferences {
    /// Both have it, and say something else of it.
    pub differ: Vec<String>,
    /// The file alone has it.
    pub only_here: Vec<String>,
    /// The running domain alone has it.
    pub only_there: Vec<String>,
}

impl GroupDifferences {
    /// Whether the file says of all groups what runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// In which groups a node's file (`here`) differs from what runs (`there`: names and texts).
#[must_use]
pub fn group_differences<'a>(
    here: &[Definition],
    there: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> GroupDifferences {
    let here: BTreeMap<&str, &[u8]> =
        here.iter().map(|one| (one.name.as_str(), one.text.as_bytes())).collect();
    let there: BTreeMap<&str, &[u8]> = there.into_iter().collect();
    let mut found = GroupDifferences::default();
    for (name, text) in &here {
        match there.get(name) {
            None => found.only_here.push((*name).to_owned()),
            Some(other) if other != text => found.differ.push((*name).to_owned()),
            Some(_) => {}
        }
    }
    let only_there = there.into_keys().filter(|name| !here.contains_key(name));
    found.only_there = only_there.map(str::to_owned).collect();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "quorba 9\ndomain id=plant quorum=majority\nring encrypt=true a=None\n\
                        node n1 host=10.0.0.1 ring_port=4700\nnode n2 host=a b ring_port=1\n";

    #[test]
    fn what_differs_is_named_as_in_the_file() {
        let differ = |from: &str, to: &str| differences(TEXT, &TEXT.replace(from, to));
        assert_eq!(differ("x", "y"), Vec::<String>::new());
        assert_eq!(differ("port=4700", "port=4701"), ["node.n1.ring_port"]);
        assert_eq!(differ("a b", "a c"), ["node.n2.host"]);
        assert_eq!(differ("n1", "n3"), ["node.n1", "node.n3"]);
        assert_eq!(differ("encrypt=true", "encrypt=false"), ["ring.encrypt"]);
        assert_eq!(differ("id=plant", "id=mill"), ["domain.id"]);
        assert_eq!(differ("quorba 9", "quorba 8"), ["quorba.8", "quorba.9"]);
    }

    #[test]
    fn groups_that_differ_are_named_and_those_that_only_one_side_has() {
        let one = |name: &str, text: &str| Definition { name: name.into(), text: text.into() };
        let (bank, other) = (one("bank", "a = 1"), one("bank", "a = 2"));
        let running = |all: [Definition; 3]| all.map(|one| (one.name, one.text));
        let there = running([one("same", "x"), other, one("mill", "")]);
        let there = || there.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
        let found = group_differences(&[one("shop", ""), bank.clone(), one("same", "x")], there());
        let names = |all: &[String]| all.join(",");
        assert_eq!(names(&found.differ), "bank");
        assert_eq!(names(&found.only_here), "shop");
        assert_eq!(names(&found.only_there), "mill");
        let same = [(bank.name.as_str(), bank.text.as_bytes())];
        assert!(group_differences(std::slice::from_ref(&bank), same).is_empty());
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
